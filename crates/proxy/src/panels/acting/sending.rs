//! Types a message and sends it.
//!
//! **Invariant:** until the send button is pressed, everything can be undone, and is undone when
//! something goes wrong: the text is removed, and the person's draft and focus are restored. After
//! the press, the outcome is what the panel shows, or `delivery_unknown` if it shows nothing.
//!
//! Not here: choosing the moment (`waiting`), pressing (`pressing`), keys (`input`).

use std::time::Duration;

use agents::Image;
use agents::panel::Done;
use agents::panel::profile::{Editor, Press};
use cdp::Fault;
use domain::content::Failure;
use serde_json::{Value, json};

use super::attention::Attention;
use super::fault::{
    asked, hindered, lost_unsent as lost, missing, not_injected, rejected, unheard, unknown,
};
use super::hand::{Given, Hand, State};
use super::input::Chord;
use super::pressing::Pressed;
use super::waiting::begun;

/// A send button comes to life within this time after the text.
const ENABLED_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a message is given to a panel that refuses it.
const REFUSALS_MAX: u32 = 6;
/// Longer each time.
const REFUSED_STEP: Duration = Duration::from_secs(1);
/// A pasted picture shows within this time.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// A text with more lines or bytes is long.
const SHORT_LINES_MAX: usize = 60;
const SHORT_BYTES_MAX: usize = 8 << 10;
/// How long a browser may take for a whole text.
const INSERT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often an editor that is slow is asked again for its text.
const READS_MAX: usize = 20;
const READ_STEP: Duration = Duration::from_millis(100);

/// Types and sends.
pub(super) async fn send(hand: &Hand<'_>, text: &str, images: &[Image]) -> Result<Done, Failure> {
    if !images.is_empty() && !hand.actor.profile.composer.takes_images {
        let words = "This panel does not accept pictures";
        return Err(Failure::new("control_not_supported", words));
    }
    // Whoever names the participant takes the place of the one that is named there.
    let named: String =
        hand.call("stickyIn", &[json!(text)]).await.map_err(|fault| lost(&fault))?;
    let mut state = begun(hand).await?;
    let rest = text.strip_prefix(&named).filter(|rest| !named.is_empty() && !rest.is_empty());
    let renames = rest.is_some() && !state.sticky.is_empty() && state.sticky != named;
    if rest.is_some() {
        state.sticky = named;
    }
    let text = rest.unwrap_or(text);
    let outcome = match Attention::take(hand).await {
        Ok(attention) => {
            let mut attempt = Attempt::new(hand, &state, renames, !images.is_empty());
            let outcome = attempt.run(text, images).await;
            attempt.put_back(text, &outcome).await;
            attention.give_back(hand).await;
            outcome
        }
        Err(fault) => Err(lost(&fault)),
    };
    let _ = hand.call::<()>("finish", &[]).await;
    outcome.map(|()| Done::Plainly)
}

fn meddled() -> Failure {
    rejected("Somebody typed in the panel at the same time")
}

fn astray() -> Failure {
    not_injected("The focus moved elsewhere while the message was being typed")
}

#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was done")]
struct Attempt<'a, 'b> {
    hand: &'a Hand<'b>,
    state: &'a State,
    /// Whether what stands before every message is to be another one.
    renames: bool,
    /// What was in the composer.
    draft: String,
    /// Whether that was taken out.
    is_cleared: bool,
    /// Whether something of ours is in the composer.
    is_dirty: bool,
    has_images: bool,
}

/// A way of bringing a text into an editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// At once, as an input method does. Browsers take some milliseconds for each line.
    Insert,
    /// Line by line, with Shift and Enter between.
    Lines,
    /// By an event that says that it was pasted.
    Paste,
    /// The same, with a paragraph for each line.
    PasteParagraphs,
    /// As the value of a text field.
    Value,
    /// As one piece of an editable element.
    Piece,
}

/// The ways that were seen to be exact, best first; for long texts, those that are quick first.
fn ways(editor: Editor, is_long: bool) -> &'static [Way] {
    match (editor, is_long) {
        (Editor::Textarea, false) => &[Way::Insert, Way::Value],
        (Editor::Textarea, true) => &[Way::Value, Way::Insert],
        (Editor::Lexical, false) => &[Way::Insert, Way::Paste, Way::Lines],
        (Editor::Lexical | Editor::Monaco, true) => &[Way::Paste, Way::Insert],
        (Editor::Monaco, false) => &[Way::Insert, Way::Paste],
        (Editor::Prosemirror, false) => &[Way::Insert, Way::PasteParagraphs, Way::Lines],
        (Editor::Prosemirror, true) => &[Way::PasteParagraphs, Way::Insert],
        (Editor::Plaintext, false) => &[Way::Lines, Way::Piece, Way::Insert],
        (Editor::Plaintext, true) => &[Way::Piece, Way::Insert],
    }
}

impl<'a, 'b> Attempt<'a, 'b> {
    fn new(hand: &'a Hand<'b>, state: &'a State, renames: bool, has_images: bool) -> Self {
        let draft = state.text.clone().unwrap_or_default();
        let (is_cleared, is_dirty) = (false, false);
        Self { hand, state, renames, draft, is_cleared, is_dirty, has_images }
    }

    async fn run(&mut self, text: &str, images: &[Image]) -> Result<(), Failure> {
        self.focus().await?;
        if self.shows_some() && !self.draft.trim().is_empty() {
            self.draft = self.whole().await.map_err(|fault| lost(&fault))?;
        }
        self.is_cleared = true;
        self.clear().await?;
        self.paste_images(images).await?;
        self.write(text).await?;
        self.give(text).await
    }

    async fn focus(&self) -> Result<(), Failure> {
        let is_there: bool =
            self.hand.call("focusComposer", &[]).await.map_err(|fault| lost(&fault))?;
        if is_there {
            return Ok(());
        }
        // Some editors take the focus only from the mouse.
        let composer = json!({"kind": "composer"});
        let pressed = self.hand.press(&composer, Press::Mouse).await;
        pressed.map_err(|fault| lost(&fault))?;
        let is_there: bool =
            self.hand.call("focusComposer", &[]).await.map_err(|fault| lost(&fault))?;
        if is_there {
            Ok(())
        } else {
            Err(not_injected("The panel's input field cannot be focused"))
        }
    }

    /// Empties the composer with trusted keys: by script, some editors keep their text.
    async fn clear(&self) -> Result<(), Failure> {
        let failed = |fault: Fault| lost(&fault);
        let Some(backspace) = Chord::parse("Backspace") else { return Ok(()) };
        for round in 0..3 {
            let state = self.hand.state().await.map_err(failed)?;
            let has_other = self.renames && !state.sticky.is_empty();
            if state.text.as_deref() == Some("") && !has_other {
                return Ok(());
            }
            if round == 1 {
                self.hand.call::<bool>("selectAll", &[]).await.map_err(failed)?;
            }
            let is_selected = self.hand.select_all(self.state.is_mac).await.map_err(failed)?;
            if !is_selected || !self.hand.key_within(&backspace).await.map_err(failed)? {
                return Err(astray());
            }
        }
        let state = self.hand.state().await.map_err(failed)?;
        if state.text.is_none_or(|text| text.trim().is_empty()) {
            return Ok(());
        }
        Err(not_injected("The panel's input field could not be cleared"))
    }

    async fn paste_images(&mut self, images: &[Image]) -> Result<(), Failure> {
        for (number, image) in images.iter().enumerate() {
            let failed = |fault: Fault| lost(&fault);
            let signs: usize = self.hand.call("signs", &[]).await.map_err(failed)?;
            self.is_dirty = true;
            let args = [json!(image.media_type), json!(image.base64), json!(number + 1)];
            self.hand.call::<bool>("pasteImage", &args).await.map_err(failed)?;
            let shown = self.hand.until("grown", json!({"signs": signs}), IMAGE_TIMEOUT).await;
            if !shown.map_err(failed)? {
                return Err(not_injected("The panel did not accept the picture"));
            }
        }
        Ok(())
    }

    /// Brings the text into the composer, and makes sure that it is there as it is.
    async fn write(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let editor = self.hand.actor.profile.composer.editor;
        let is_long = text.len() > SHORT_BYTES_MAX || text.lines().count() > SHORT_LINES_MAX;
        // Emptying the field again would take the pictures away as well.
        let tries = if self.has_images { 1 } else { usize::MAX };
        let (mut near, mut found) = (None, String::new());
        for way in ways(editor, is_long).iter().take(tries) {
            found = self.try_way(text, *way).await?;
            if is_exact(text, &found) {
                return Ok(());
            }
            tracing::debug!(
                ?way,
                wanted = text.len(),
                found = found.len(),
                "the panel shows other text than was typed"
            );
            let state = self.hand.state().await.map_err(|fault| lost(&fault))?;
            if state.typed_meanwhile {
                return Err(meddled());
            }
            if is_near(text, &found) && near.is_none() {
                near = Some(*way);
            }
        }
        // Editors differ in how they show empty lines: where no way was seen to be exact, the
        // first that kept every word and line is taken.
        if let Some(way) = near.filter(|_| !self.has_images) {
            found = self.try_way(text, way).await?;
            if is_near(text, &found) {
                return Ok(());
            }
        }
        Err(not_injected(format!(
            "The panel's input field does not contain the text as it was typed ({} of {} bytes)",
            found.len(),
            text.len()
        )))
    }

    async fn try_way(&mut self, text: &str, way: Way) -> Result<String, Failure> {
        if self.is_dirty && !self.has_images {
            self.clear().await?;
        }
        self.is_dirty = true;
        let there = self.hand.state().await.map_err(|fault| lost(&fault))?;
        let sticky = &self.state.sticky;
        let text_with_sticky = format!("{sticky}{text}");
        // What the panel puts before every message was emptied with the rest.
        let words = if there.sticky.is_empty() { text_with_sticky.as_str() } else { text };
        if let Some(end) = self.end().filter(|_| !there.sticky.is_empty()) {
            self.hand.key_within(&end).await.map_err(|fault| lost(&fault))?;
        }
        if !self.bring(words, way).await.map_err(|fault| lost(&fault))? {
            return Err(astray());
        }
        self.read_back(text).await.map_err(|fault| lost(&fault))
    }

    /// The key that goes behind everything.
    fn end(&self) -> Option<Chord> {
        Chord::parse(if self.state.is_mac { "Meta+ArrowDown" } else { "Control+End" })
    }

    /// Whether it came to the composer.
    async fn bring(&self, text: &str, way: Way) -> Result<bool, Fault> {
        let by_script = async |name: &str, args: &[serde_json::Value]| {
            self.hand.call::<bool>(name, args).await.map(|_| true)
        };
        match way {
            Way::Insert => self.hand.insert_within(INSERT_TIMEOUT, text).await,
            Way::Paste => by_script("paste", &[json!(text), json!(false)]).await,
            Way::PasteParagraphs => by_script("paste", &[json!(text), json!(true)]).await,
            Way::Value => by_script("setValue", &[json!(text)]).await,
            Way::Piece => by_script("insertHtml", &[json!(text)]).await,
            Way::Lines => {
                let Some(line_break) = Chord::parse("Shift+Enter") else { return Ok(false) };
                for (number, line) in text.split('\n').enumerate() {
                    if number > 0 && !self.hand.key_within(&line_break).await? {
                        return Ok(false);
                    }
                    let time = cdp::CALL_TIMEOUT;
                    if !line.is_empty() && !self.hand.insert_within(time, line).await? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Whether the editor shows only some of its lines.
    fn shows_some(&self) -> bool {
        self.hand.actor.profile.composer.editor == Editor::Monaco
    }

    /// All that the composer holds.
    async fn whole(&self) -> Result<String, Fault> {
        if self.shows_some() {
            self.hand.select_all(self.state.is_mac).await?;
        }
        let found = self.hand.call::<Option<String>>("whole", &[]).await?.unwrap_or_default();
        self.unselect().await?;
        Ok(found)
    }

    async fn unselect(&self) -> Result<(), Fault> {
        if let Some(end) = Chord::parse("ArrowRight").filter(|_| self.shows_some()) {
            self.hand.key_within(&end).await?;
        }
        Ok(())
    }

    /// What the composer holds; asked again while an editor is still at it.
    async fn read_back(&self, text: &str) -> Result<String, Fault> {
        let mut found = String::new();
        for _ in 0..READS_MAX {
            if self.shows_some() {
                self.hand.select_all(self.state.is_mac).await?;
            }
            found = self.hand.call::<Option<String>>("whole", &[]).await?.unwrap_or_default();
            if is_exact(text, &found) {
                break;
            }
            tokio::time::sleep(READ_STEP).await;
        }
        self.unselect().await?;
        Ok(found)
    }

    /// Presses, and sees what comes of it. What the panel refuses for now is tried again.
    async fn give(&self, text: &str) -> Result<(), Failure> {
        let mut refusals = 0;
        while let Some(words) = self.refused(text).await? {
            refusals += 1;
            if refusals == REFUSALS_MAX {
                return Err(not_injected(format!("The panel says: {words}")));
            }
            tracing::debug!(%words, "the panel rejected the message; trying again");
            tokio::time::sleep(REFUSED_STEP * refusals).await;
        }
        Ok(())
    }

    /// Presses once; the panel's words where it does not take it.
    async fn refused(&self, text: &str) -> Result<Option<String>, Failure> {
        let rules = &self.hand.actor.profile.send;
        // From here on the button is pressed only while this very text is there.
        let before: State = self.hand.call("hold", &[]).await.map_err(|fault| lost(&fault))?;
        let whole = before.text.clone().unwrap_or_default();
        if before.is_asking {
            return Err(asked());
        }
        let is_other = !self.shows_some() && !text.is_empty() && !is_near(text, &whole);
        if before.typed_meanwhile || is_other {
            return Err(meddled());
        }
        let check = json!({"rows": before.user_rows, "words": text});
        let button = json!({"kind": "control", "name": "send", "gives": true});
        let mut failure = missing("send button");
        for how in &rules.ladder {
            if *how != Press::Enter {
                let is_ready =
                    self.hand.until("enabled", json!({"wanted": button}), ENABLED_TIMEOUT).await;
                if !is_ready.map_err(|fault| lost(&fault))? {
                    continue;
                }
            }
            match self.hand.press(&button, *how).await.map_err(|fault| lost(&fault))? {
                Pressed::Landed => {}
                Pressed::Absent | Pressed::Disabled => continue,
                Pressed::Hindered(why) => {
                    failure = not_injected(hindered("send button", &why).message);
                    continue;
                }
                Pressed::Astray => {
                    failure = not_injected(unheard().message);
                    continue;
                }
                Pressed::Unknown(fault) => {
                    return Err(unknown(format!("Lost the panel while sending: {fault}")));
                }
            }
            // No other way is tried after a press that landed: a panel may only be slow.
            return self.outcome(check).await;
        }
        let after = self.hand.state().await.map_err(|fault| lost(&fault))?;
        if after.is_asking {
            return Err(asked());
        }
        let is_other = after.text.is_some() && after.text.as_deref() != Some(whole.as_str());
        Err(if is_other || after.typed_meanwhile { meddled() } else { failure })
    }

    /// What came of a press that landed: the panel's words where it does not take it.
    async fn outcome(&self, check: Value) -> Result<Option<String>, Failure> {
        let within = Duration::from_secs(self.hand.actor.profile.send.taken_within_s);
        let given = self.hand.given(check, within).await;
        let lost = |fault| unknown(format!("Lost the panel after sending: {fault}"));
        let Given { is_sent, refusal } = given.map_err(lost)?;
        if is_sent || refusal.is_some() {
            return Ok(refusal.filter(|_| !is_sent));
        }
        Err(unknown(
            "The send button was clicked, but the text is still in the input field. Check the \
             panel",
        ))
    }

    /// The composer as the person left it, and with what they typed meanwhile.
    async fn put_back(&mut self, text: &str, outcome: &Result<(), Failure>) {
        let has_draft = !self.draft.trim().is_empty();
        if !self.is_cleared || (outcome.is_ok() && !has_draft) {
            return;
        }
        let restored = async {
            let found = self.whole().await.map_err(|fault| lost(&fault))?;
            let state = self.hand.state().await.map_err(|fault| lost(&fault))?;
            let draft = self.draft.as_str();
            let is_unknown =
                matches!(outcome, Err(failure) if failure.code.as_str() == "delivery_unknown");
            let wanted = if outcome.is_ok() {
                format!("{draft}{found}")
            } else if is_unknown {
                // Nobody can tell whose the text is now: only a draft takes its place.
                if !has_draft || !is_near(text, &found) {
                    return Ok(());
                }
                draft.to_owned()
            } else if state.typed_meanwhile {
                format!("{draft}{}", found.replacen(text, "", 1))
            } else {
                draft.to_owned()
            };
            if wanted == found || (wanted.trim().is_empty() && found.trim().is_empty()) {
                return Ok(());
            }
            self.focus().await?;
            self.clear().await?;
            self.is_dirty = false;
            if wanted.trim().is_empty() { Ok(()) } else { self.write(&wanted).await }
        };
        if let Err(failure) = restored.await {
            tracing::warn!(reason = failure.message, "could not restore the panel's draft");
        }
    }
}

/// Whether a composer holds a text exactly, as far as a composer can show it.
fn is_exact(wanted: &str, found: &str) -> bool {
    let wanted = wanted.replace("\r\n", "\n").replace('\u{a0}', " ");
    let shown = |c: &char| !matches!(c, '\u{200b}' | '\u{feff}');
    let wanted: String = wanted.chars().filter(shown).collect();
    // An empty last line is shown by some editors and not by others; one too many is one too many.
    wanted == found || wanted.trim_end_matches('\n') == found
}

/// Whether it does but for empty lines.
fn is_near(wanted: &str, found: &str) -> bool {
    let squeezed = |text: &str| {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.collect::<Vec<&str>>().join("\n")
    };
    is_exact(&squeezed(wanted), &squeezed(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_their_lines_and_nothing_else_may_differ() {
        assert!(is_exact("a\n\nb 🎉", "a\n\nb 🎉"));
        assert!(is_exact("a\r\nb\u{a0}c", "a\nb c"));
        assert!(is_exact("a\n", "a") && !is_exact("a", "a\n"));
        assert!(!is_exact("a\n\nb", "a\nb"));
        assert!(is_near("a\n\nb", "a\nb"));
        for (wanted, found) in
            [("a\nb", "ab"), ("a b", "ab"), ("a", "my draft a"), ("  a", "a"), ("a", "")]
        {
            assert!(!is_near(wanted, found), "{wanted:?} {found:?}");
        }
    }
}
