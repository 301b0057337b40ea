//! Sessions: listing, creating, switching, and reading their history.
//!
//! **Invariant**: `total` is the true total, and the most recently active session comes first.
//! Only `sessions.switch` changes the session of a connection.
//!
//! Not here: how a switch works (`switch`), how history is read (`history`).

use std::collections::VecDeque;

use domain::fleet::LaunchWish;
use domain::session::Wish;
use domain::{MessageId, Sequence, SessionId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::frames::{Request, granted, params, refuse};
use super::history::{LookBack, Looked};
use super::switch::{Purpose, RECENT_DEFAULT};
use super::view::title;
use super::{Asked, Connection, DENIED, not_found, words};
use crate::port::{Denied, Listing, PageOf};
use crate::time::Time;
use crate::visitor::Act;

/// Sessions of one answer, where the client names no number, and at most.
const LIST_DEFAULT: usize = 10;
const LIST_MAX: usize = 100;
/// Characters of a session's last message in a list.
const LAST_MESSAGE_CHARS: usize = 100;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 200;
/// The title of a new session that is not named.
const NEW_TITLE: &str = "New conversation";
/// The agent of a new session where there is none to take after.
const AGENT_DEFAULT: &str = "demo";

/// What a list is for.
#[derive(Debug)]
pub(super) enum ListFor {
    /// `sessions.list`.
    Method { request: String, limit: usize, offset: usize },
    /// The session that was active last.
    Latest(Purpose),
    /// A new session takes after it.
    New(New),
    /// `/sessions`: which page, of those that have this word in their titles.
    Menu { page: usize, search: Option<String> },
}

/// A new session on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct New {
    /// `None`: the connection goes there instead of being answered.
    pub(super) request: Option<String>,
    pub(super) title: Option<String>,
}

/// A list on its way: each session's last message is looked up.
#[derive(Debug)]
pub(super) struct Page {
    request: String,
    total: usize,
    left: VecDeque<Listing>,
    rows: Vec<Value>,
    look_back: LookBack,
}

/// A history on its way.
#[derive(Debug)]
pub(super) struct Past {
    reply: Reply,
    look_back: LookBack,
}

/// How an answer is told.
#[derive(Debug)]
pub(super) enum Reply {
    /// As a response.
    Response(String),
    /// As words of the system, for a slash command.
    Words,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    offset: Option<usize>,
}

#[derive(Deserialize)]
struct Titled {
    #[serde(default)]
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    session_id: String,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    before: Option<String>,
}

impl Connection {
    pub(super) fn sessions_list(&mut self, request: Request) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        match params::<List>(given) {
            Ok(List { limit, offset }) => self.list(ListFor::Method {
                request: id,
                limit: limit.unwrap_or(LIST_DEFAULT).min(LIST_MAX),
                offset: offset.unwrap_or(0),
            }),
            Err(words) => refuse(&id, &words),
        }
    }

    pub(super) fn sessions_new(&mut self, request: Request) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        if !self.may_steer() {
            return refuse(&id, DENIED);
        }
        match params::<Titled>(given) {
            Ok(Titled { title: Some(title) }) if title.chars().count() > TITLE_CHARS_MAX => {
                let words = format!(
                    "Invalid parameters: title is longer than {TITLE_CHARS_MAX} characters"
                );
                refuse(&id, &words)
            }
            Ok(Titled { title }) => {
                let title = title.filter(|title| !title.trim().is_empty());
                let title = Some(title.unwrap_or_else(|| NEW_TITLE.to_owned()));
                self.list(ListFor::New(New { request: Some(id), title }))
            }
            Err(words) => refuse(&id, &words),
        }
    }

    pub(super) fn sessions_switch(&mut self, request: Request) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        match params::<Named>(given) {
            Ok(Named { session_id }) => match SessionId::parse(&session_id) {
                Some(session) => self.switch_to(session, Purpose::Method(id)),
                None => refuse(&id, &not_found(&session_id)),
            },
            Err(words) => refuse(&id, &words),
        }
    }

    pub(super) fn sessions_history(&mut self, request: Request) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        match params::<History>(given) {
            Ok(History { session_id, limit, before }) => match SessionId::parse(&session_id) {
                Some(session) => {
                    let limit = limit.unwrap_or(RECENT_DEFAULT);
                    let before = before.map(MessageId::from);
                    self.history(Reply::Response(id), session, before, limit)
                }
                None => refuse(&id, &not_found(&session_id)),
            },
            Err(words) => refuse(&id, &words),
        }
    }

    pub(super) fn list(&mut self, purpose: ListFor) -> Vec<Act> {
        vec![Act::List { ticket: self.ticket(Asked::List(purpose)) }]
    }

    /// Every session, in no order.
    pub(super) fn on_listed(
        &mut self,
        purpose: ListFor,
        mut listings: Vec<Listing>,
        now: Timestamp,
    ) -> Vec<Act> {
        listings.retain(|listing| !listing.card.status.archived);
        let active = |it: &Listing| (std::cmp::Reverse(it.card.status.last_seen_at), it.id.clone());
        listings.sort_by_key(active);
        match purpose {
            ListFor::Method { request, limit, offset } => {
                let total = listings.len();
                let left = listings.into_iter().skip(offset).take(limit).collect();
                self.go_through(request, total, left)
            }
            ListFor::Latest(purpose) => {
                // Nothing can be said to a session that is closed.
                let open = listings.iter().find(|it| !it.card.status.is_closed());
                self.on_latest(purpose, open.or(listings.first()), now)
            }
            ListFor::New(new) => self.launch(new, listings.first()),
            ListFor::Menu { page, search } => self.on_menu(page, search, &listings),
        }
    }

    fn on_latest(
        &mut self,
        purpose: Purpose,
        latest: Option<&Listing>,
        now: Timestamp,
    ) -> Vec<Act> {
        match (latest, purpose) {
            // Another request chose one meanwhile.
            (_, Purpose::Agent(request, text)) if self.view.is_some() && self.switch.is_none() => {
                self.say(request, text, now)
            }
            (Some(latest), purpose) => self.switch_to(latest.id.clone(), purpose),
            (None, Purpose::Method(request) | Purpose::Agent(request, _)) => {
                refuse(&request, "No sessions yet; create one with sessions.new")
            }
            (None, Purpose::Quiet | Purpose::Command(_)) => {
                self.tell("No sessions yet; create one with /new")
            }
        }
    }

    fn go_through(
        &mut self,
        request: String,
        total: usize,
        mut left: VecDeque<Listing>,
    ) -> Vec<Act> {
        let Some(first) = left.front_mut() else {
            return vec![listed(&request, total, &[])];
        };
        let look_back = LookBack::last(first.id.clone(), first.head);
        self.look_up(Page { request, total, left, rows: vec![], look_back })
    }

    fn look_up(&mut self, page: Page) -> Vec<Act> {
        // The next ticket is this one.
        let read = page.look_back.read(self.count + 1);
        self.ticket(Asked::ListPage(Box::new(page)));
        vec![read]
    }

    pub(super) fn on_list_page(
        &mut self,
        mut page: Page,
        read: Result<PageOf, Denied>,
    ) -> Vec<Act> {
        let looked = read.map_or(Looked::Over, |read| page.look_back.take(read, |_| {}));
        if looked == Looked::On {
            return self.look_up(page);
        }
        let Page { request, total, mut left, mut rows, look_back } = page;
        let last = look_back.into_rows().0.pop();
        if let Some(listing) = left.pop_front() {
            let last = last.map(|row| row.content);
            let shown: Option<String> =
                last.map(|words| words.chars().take(LAST_MESSAGE_CHARS).collect());
            rows.push(json!({
                "id": listing.id, "title": title(&listing.card.status),
                "lastMessage": shown.unwrap_or_default(),
                "lastActivity": Time(listing.card.status.last_seen_at),
                "messageCount": listing.card.messages,
            }));
        }
        match left.front() {
            None => vec![listed(&request, total, &rows)],
            Some(next) => {
                let look_back = LookBack::last(next.id.clone(), next.head);
                self.look_up(Page { request, total, left, rows, look_back })
            }
        }
    }

    /// A new session takes agent, machine and folder after the one that was active last, unless
    /// the address named them.
    fn launch(&mut self, new: New, latest: Option<&Listing>) -> Vec<Act> {
        let meta = latest.map(|latest| &latest.card.status.meta);
        let wanted = &self.wanted;
        let is_like = wanted.agent.is_none();
        let agent = wanted.agent.clone().or_else(|| meta.map(|meta| meta.agent.clone()));
        let machine = meta.and_then(|meta| meta.machine.clone()).filter(|_| is_like);
        let folder = meta.and_then(|meta| meta.workspace_path.clone()).filter(|_| is_like);
        let wish = LaunchWish {
            // The shell names it.
            request: "".into(),
            agent: agent.unwrap_or_else(|| AGENT_DEFAULT.into()),
            workspace_path: folder,
            window_title: new.title.clone(),
            machine: wanted.machine.clone().or(machine),
            model: None,
            permission_mode: None,
            has_worktree: false,
            earlier: None,
            arguments: vec![],
        };
        let ticket = self.ticket(Asked::Launch(new));
        vec![Act::Launch { wish: Box::new(wish), ticket }]
    }

    pub(super) fn on_launched(
        &mut self,
        new: New,
        launched: Result<SessionId, domain::content::Failure>,
        now: Timestamp,
    ) -> Vec<Act> {
        match (launched, &new.request, &new.title) {
            (Ok(session), _, Some(title)) => {
                let wish = Box::new(Wish::Rename(title.clone()));
                let ticket = self.ticket(Asked::Named(new, session.clone()));
                vec![Act::Wish { session, wish, ticket }]
            }
            (Ok(session), _, None) => self.on_made(new, session, now),
            (Err(failure), Some(request), _) => refuse(request, &failure.message),
            (Err(failure), None, _) => {
                self.tell(&format!("Could not create a session: {}", failure.message))
            }
        }
    }

    /// The new session is there and has its name.
    pub(super) fn on_made(&mut self, new: New, session: SessionId, now: Timestamp) -> Vec<Act> {
        let Some(request) = new.request else {
            return self.switch_to(session, Purpose::Command("Started a new session:"));
        };
        let payload = json!({
            "sessionId": session, "title": new.title, "createdAt": Time(now),
        });
        vec![Act::Send(granted(&request, &payload))]
    }

    pub(super) fn history(
        &mut self,
        reply: Reply,
        session: SessionId,
        before: Option<MessageId>,
        limit: usize,
    ) -> Vec<Act> {
        // One event is enough to learn whether the session is there, and where it ends.
        let look_back = LookBack::new(session.clone(), Sequence(0), before, limit);
        let ticket = self.ticket(Asked::HistoryFirst(Box::new(Past { reply, look_back })));
        vec![Act::Read { session, after: Sequence(0), upto: None, limit: 1, ticket }]
    }

    pub(super) fn on_history_first(
        &mut self,
        mut past: Past,
        page: Result<PageOf, Denied>,
    ) -> Vec<Act> {
        match page {
            Ok(page) => {
                past.look_back.begin_at(page.head);
                self.read_past(past)
            }
            Err(denied) => {
                let words = words(&denied, Some(past.look_back.session()));
                self.reply_no(&past.reply, &words)
            }
        }
    }

    pub(super) fn on_history_page(
        &mut self,
        mut past: Past,
        page: Result<PageOf, Denied>,
    ) -> Vec<Act> {
        let page = match page {
            Ok(page) => page,
            Err(denied) => return self.reply_no(&past.reply, &words(&denied, None)),
        };
        match past.look_back.take(page, |_| {}) {
            Looked::On => self.read_past(past),
            Looked::NoSuchMessage => {
                self.reply_no(&past.reply, "Invalid parameters: before is not the id of a message")
            }
            Looked::Over => {
                let (rows, has_more) = past.look_back.into_rows();
                match past.reply {
                    Reply::Response(request) => {
                        let payload = json!({ "messages": rows, "hasMore": has_more });
                        vec![Act::Send(granted(&request, &payload))]
                    }
                    Reply::Words => {
                        let line =
                            |row: &super::history::Row| format!("{}: {}", row.role, row.content);
                        let lines: Vec<_> = rows.iter().map(line).collect();
                        let nothing = lines.is_empty().then(|| "No messages yet".to_owned());
                        self.tell(&nothing.unwrap_or_else(|| lines.join("\n")))
                    }
                }
            }
        }
    }

    fn read_past(&mut self, past: Past) -> Vec<Act> {
        // The next ticket is this one.
        let read = past.look_back.read(self.count + 1);
        self.ticket(Asked::HistoryPage(Box::new(past)));
        vec![read]
    }

    pub(super) fn reply_no(&mut self, reply: &Reply, words: &str) -> Vec<Act> {
        match reply {
            Reply::Response(request) => refuse(request, words),
            Reply::Words => self.tell(words),
        }
    }
}

fn listed(request: &str, total: usize, rows: &[Value]) -> Act {
    Act::Send(granted(request, &json!({ "sessions": rows, "total": total })))
}
