//! Which session a panel belongs to, and when that changes.

use std::sync::Arc;
use std::time::Duration;

use agents::panel::identity::{Mark, PRINTS_MAX, Traits, print_of, workspace};
use agents::panel::profile::TargetKind;
use agents::panel::{Attached, News, Profile};
use domain::SessionId;
use tokio::time::Instant;

use super::anew::Look;
use super::{Live, Service};
use crate::engine::Adoption;
use crate::host::Input;
use crate::panels::sights::{Number, Peek, Sight};

/// A conversation whose name cannot be read for so long is not shown any more: pages are without
/// one for a moment while they load.
const NAMELESS_AFTER: Duration = Duration::from_secs(3);
/// A panel shows the new chat that a person asked for within this time.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
/// So many words must be known before a blank chat is taken for an earlier one.
const RETURN_PRINTS_MIN: usize = 2;

impl Service {
    /// A panel is seen, or another document in one that was there.
    pub(super) async fn appeared(&mut self, sight: Sight) {
        let mut sight = sight;
        let peek = Peek::read(&sight.push);
        // A page's own title is newer than what the browser told of it.
        if sight.profile.target.kind == TargetKind::Page && !peek.title.is_empty() {
            sight.window_title.clone_from(&peek.title);
        }
        let mark = self.mark(&sight, &peek);
        let known = self.panels.remove(&sight.number);
        let session = known.and_then(|panel| panel.session);
        let panel = Live {
            address: sight.address,
            target: sight.target,
            window: sight.window,
            workspace_path: folder_of(&sight.window_url),
            window_title: title_of(&sight.profile, &sight.window_title),
            profile: sight.profile,
            mark,
            session: None,
            hand: sight.hand,
            nameless_since: None,
            new_chats: peek.new_chats,
            begins_until: None,
            look: Look::Idle,
        };
        if let Some(session) = &session {
            self.shown.remove(session);
        }
        self.panels.insert(sight.number, panel);
        if self.claim_for_launch(sight.number, &sight.push).await {
            return;
        }
        self.identify(sight.number, session.as_ref(), sight.push).await;
    }

    /// Finds whose a panel is, and tells them; nobody's becomes a new session.
    pub(in crate::panels) async fn identify(
        &mut self,
        number: Number,
        before: Option<&SessionId>,
        push: String,
    ) {
        let Some(panel) = self.panels.get(&number) else { return };
        let mark = panel.mark.clone();
        let found = self.book.recognise(&mark, |session| self.shown.contains_key(session));
        let found = found.cloned();
        if let Some(before) = before
            && found.as_ref().is_none_or(|entry| entry.session != *before)
        {
            self.book.unhand(before);
            self.tell(before, shows_another()).await;
        }
        let session = match found {
            Some(entry) if entry.is_put_away => {
                if entry.is_still(&mark) {
                    // A person closed it, and nothing was said since.
                    return;
                }
                self.book.remove(&entry.session);
                None
            }
            Some(entry) => Some(entry.session),
            None => None,
        };
        let Some(session) = session.or_else(|| self.new_session()) else { return };
        self.hand_over(number, session, push).await;
    }

    /// A panel is this session's from now on.
    pub(in crate::panels) async fn hand_over(
        &mut self,
        number: Number,
        session: SessionId,
        push: String,
    ) {
        let Some(panel) = self.panels.get_mut(&number) else { return };
        let known = self.book.get(&session);
        // The number stays the one that the session was known by.
        panel.mark.traits.ordinal = match known {
            Some(entry) => entry.mark.traits.ordinal,
            None => self.book.free_ordinal(&panel.mark),
        };
        if panel.mark.prints.is_empty()
            && let Some(entry) = known
        {
            // A list that shows only a part may show none of what was said.
            panel.mark.prints.clone_from(&entry.mark.prints);
        }
        panel.session = Some(session.clone());
        panel.new_chats = Peek::read(&push).new_chats;
        panel.begins_until = None;
        panel.look = Look::Idle;
        let (mark, adoption) = (panel.mark.clone(), adoption(panel, &session));
        let attached = Attached {
            profile: Arc::clone(&panel.profile),
            window_title: adoption.window_title.clone(),
            workspace_path: adoption.workspace_path.clone(),
            signature: adoption.signature.clone(),
        };
        self.shown.insert(session.clone(), number);
        self.book.note(&session, mark);
        self.book.save();
        self.say(Input::Adopted(adoption)).await;
        self.tell(&session, News::Attached(attached)).await;
        self.tell(&session, News::Pushed(push)).await;
    }

    /// A window is called otherwise: another file was opened in it, or it has come to its name.
    pub(super) async fn titled(&mut self, number: Number, title: &str, url: &str) {
        let Some(panel) = self.panels.get_mut(&number) else { return };
        let folder = folder_of(url);
        let now = Traits::new(&panel.profile, "", title, folder.as_deref());
        let title = title_of(&panel.profile, title);
        let is_same = panel.mark.traits.workspace == now.workspace && panel.window_title == title;
        let Some(session) = panel.session.clone().filter(|_| !is_same && title.is_some()) else {
            return;
        };
        panel.window_title = title;
        panel.workspace_path = folder.or(panel.workspace_path.take());
        panel.mark.traits.workspace = now.workspace;
        if let Some(entry) = self.book.get(&session) {
            // What was said since it was handed over is known there.
            panel.mark.prints.clone_from(&entry.mark.prints);
        }
        let (mark, adoption) = (panel.mark.clone(), adoption(panel, &session));
        self.book.note(&session, mark);
        self.book.save();
        self.say(Input::Adopted(adoption)).await;
    }

    /// What an observer says, to whose panel it is; which may change by it.
    pub(super) async fn pushed(&mut self, number: Number, push: String) {
        let peek = Peek::read(&push);
        let is_opening = self.is_opening(number);
        if self.is_looked_at(number) {
            return;
        }
        let Some(panel) = self.panels.get_mut(&number) else { return };
        let prints = prints(&peek);
        let Some(session) = panel.session.clone() else {
            // It was put away; somebody may have said something since.
            let is_new = prints.iter().any(|print| !panel.mark.prints.contains(print));
            let named = peek.conversation.filter(|_| peek.ready);
            let is_other = named.is_some() && named != panel.mark.traits.conversation;
            if (is_new || is_other) && !is_opening {
                add_prints(&mut panel.mark, &prints);
                if let Some(named) = named {
                    panel.mark.traits.conversation = Some(named);
                }
                self.see_anew(number);
            }
            return;
        };
        if self.is_another(number, &session, &peek, &prints) && !is_opening {
            return self.begin_another(number, &session).await;
        }
        let Some(panel) = self.panels.get_mut(&number) else { return };
        match (panel.mark.traits.conversation.clone(), peek.conversation) {
            (Some(known), Some(now)) if known != now => {
                return self.switch(number, &session, Some(now), &prints).await;
            }
            (None, Some(now)) => {
                let elsewhere = Mark {
                    target: String::new(),
                    traits: Traits { conversation: Some(now.clone()), ..panel.mark.traits.clone() },
                    prints: vec![],
                };
                let other = self.book.recognise(&elsewhere, |it| self.shown.contains_key(it));
                let is_others = other.is_some_and(|entry| {
                    entry.session != session
                        && entry.mark.traits.conversation.as_deref() == Some(now.as_str())
                });
                if is_others {
                    return self.switch(number, &session, Some(now), &prints).await;
                }
                if let Some(panel) = self.panels.get_mut(&number) {
                    panel.mark.traits.conversation = Some(now.clone());
                }
                self.book.note_conversation(&session, &now);
                self.book.save();
            }
            (Some(_), None) if peek.ready && peek.composer.is_some() => {
                let since = *panel.nameless_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= NAMELESS_AFTER {
                    return self.switch(number, &session, None, &prints).await;
                }
            }
            (Some(_) | None, None | Some(_)) => panel.nameless_since = None,
        }
        for print in &prints {
            self.book.note_print(&session, print);
        }
        self.tell(&session, News::Pushed(push)).await;
    }

    /// Whether a panel whose conversations have no names shows another one: a person asked for a
    /// new chat and it is blank, or nothing was said in it yet and all of an earlier one is there.
    /// By the rows alone nobody could tell it from a chat that was cleared, or is being loaded.
    fn is_another(
        &mut self,
        number: Number,
        session: &SessionId,
        peek: &Peek,
        prints: &[String],
    ) -> bool {
        let Some(panel) = self.panels.get_mut(&number) else { return false };
        let has_asked = std::mem::replace(&mut panel.new_chats, peek.new_chats) < peek.new_chats;
        if has_asked {
            panel.begins_until = Some(Instant::now() + BEGINS_WITHIN);
        }
        if panel.mark.traits.conversation.is_some() || peek.conversation.is_some() {
            return false;
        }
        let is_silent = self.book.get(session).is_none_or(|entry| entry.mark.prints.is_empty());
        if !is_silent {
            return peek.is_blank() && panel.begins_until.is_some_and(|it| Instant::now() < it);
        }
        let traits = Traits { ordinal: usize::MAX, ..panel.mark.traits.clone() };
        let seen = Mark { target: String::new(), traits, prints: prints.to_vec() };
        let is_shown = |session: &SessionId| self.shown.contains_key(session);
        prints.len() >= RETURN_PRINTS_MIN
            && self.book.recognise(&seen, is_shown).is_some_and(|entry| !entry.is_put_away)
    }

    /// The panel's chat without a name is another one now.
    async fn begin_another(&mut self, number: Number, session: &SessionId) {
        self.book.unhand(session);
        self.shown.remove(session);
        self.tell(session, shows_another()).await;
        if let Some(panel) = self.panels.get_mut(&number) {
            panel.session = None;
            panel.mark.prints.clear();
            // Not the one that it was, though it is like it.
            panel.mark.traits.ordinal = self.book.free_ordinal(&panel.mark);
        }
        self.see_anew(number);
    }

    /// The panel shows another conversation.
    async fn switch(
        &mut self,
        number: Number,
        session: &SessionId,
        conversation: Option<String>,
        prints: &[String],
    ) {
        if self.is_opening(number) {
            // Whoever opens it says whose it is.
            return;
        }
        self.book.unhand(session);
        self.shown.remove(session);
        self.tell(session, shows_another()).await;
        if let Some(panel) = self.panels.get_mut(&number) {
            panel.session = None;
            panel.nameless_since = None;
            panel.mark.traits.conversation = conversation;
            panel.mark.traits.ordinal = 0;
            panel.mark.prints = prints.to_vec();
        }
        self.see_anew(number);
    }

    fn mark(&self, sight: &Sight, peek: &Peek) -> Mark {
        let folder = folder_of(&sight.window_url);
        let mut traits =
            Traits::new(&sight.profile, &sight.target_url, &sight.window_title, folder.as_deref());
        traits.conversation.clone_from(&peek.conversation);
        let is_alike = |panel: &&Live| {
            let other = &panel.mark.traits;
            other.profile == traits.profile
                && other.extension == traits.extension
                && other.workspace == traits.workspace
        };
        let before = self.panels.iter().filter(|(number, _)| **number != sight.number);
        traits.ordinal = before.map(|(_, panel)| panel).filter(is_alike).count();
        Mark { target: sight.target.clone(), traits, prints: prints(peek) }
    }
}

fn adoption(panel: &Live, session: &SessionId) -> Adoption {
    Adoption {
        session: session.clone(),
        agent: panel.profile.id.as_str().into(),
        display_name: panel.profile.display_name.clone(),
        window_title: panel.window_title.clone(),
        workspace_path: panel.workspace_path.clone(),
        signature: panel.mark.traits.signature(),
    }
}

/// What a window is called, without the file that is open in it where that can be told.
fn title_of(profile: &Profile, title: &str) -> Option<String> {
    let whole = || Some(title.to_owned()).filter(|title| !title.is_empty());
    workspace(profile, title).or_else(whole)
}

fn shows_another() -> News {
    let reason = "The panel shows another chat".to_owned();
    News::Gone { reason, is_closed: false }
}

/// The last things that a person said.
pub(super) fn prints(peek: &Peek) -> Vec<String> {
    let users = peek.rows.iter().filter(|row| row.role == "user" && !row.text.trim().is_empty());
    let mut prints: Vec<_> = users.map(|row| print_of(&row.text)).collect();
    let surplus = prints.len().saturating_sub(PRINTS_MAX);
    prints.drain(..surplus);
    prints
}

fn add_prints(mark: &mut Mark, prints: &[String]) {
    let new: Vec<_> = prints.iter().filter(|it| !mark.prints.contains(it)).cloned().collect();
    mark.prints.extend(new);
    let surplus = mark.prints.len().saturating_sub(PRINTS_MAX);
    mark.prints.drain(..surplus);
}

/// The folder that a window's address names, as VS Code in a browser does.
pub(super) fn folder_of(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next()?;
    let pair = query.split('&').find_map(|pair| {
        pair.strip_prefix("folder=").or_else(|| pair.strip_prefix("workspace="))
    })?;
    let path = decoded(pair)?;
    path.starts_with('/').then_some(path)
}

/// Without `%20` and the like.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = vec![];
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            b'+' => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_from_a_windows_address() {
        let url = "http://127.0.0.1:8390/?folder=/src/my%20kite&x=1#h";
        assert_eq!(folder_of(url).as_deref(), Some("/src/my kite"));
        assert_eq!(folder_of("http://127.0.0.1/?folder=kite"), None);
        assert_eq!(folder_of("http://127.0.0.1/"), None);
        assert_eq!(folder_of("http://127.0.0.1/?folder=/a%2"), None);
    }
}
