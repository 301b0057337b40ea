//! `list_sessions`, `switch_session` and `new_session`.
//!
//! A session's path is the agent's own file, otherwise `farhelm/<session id>.jsonl`. Each
//! connection has its own active session: switching affects no other connection.
//!
//! Not here: how the connection joins its session (`join`).

use std::collections::BTreeMap;

use domain::content::{Author, Failure, Part};
use domain::fleet::LaunchWish;
use domain::session::config::AgentConfig;
use domain::session::{Event, Recorded, transcript};
use domain::{AgentType, RequestId, Sequence, SessionId, Timestamp};
use serde_json::{Value, json};

use super::frames::Body;
use super::join::Why;
use super::messages::{encode, trouble};
use super::{Asked, Connection, Stage};
use crate::port::{Denied, Listing, PageOf};
use crate::time::Time;
use crate::visitor::Act;

/// Sessions that a list shows; of more, the latest.
const LISTED_MAX: usize = 1_000;
/// Sessions of one list whose first words are looked up.
const FIRSTS_READ_MAX: usize = 100;
/// Events of a session in which its first words are looked for.
const FIRST_EVENTS: usize = 32;
/// Beginnings that are remembered; more are looked up each time.
const FIRSTS_MAX: usize = 2_000;
/// Characters of a first message that lists show.
const FIRST_CHARACTERS_MAX: usize = 500;
/// Where paths of sessions are, as far as a client can tell.
const FOLDER: &str = "farhelm/";
const ENDING: &str = ".jsonl";
/// Bytes of a folder's or an agent's name.
const NAME_BYTES_MAX: usize = 4_096;

/// How sessions began, as far as it was looked up.
pub(super) type Firsts = BTreeMap<SessionId, First>;

/// How a session began. It never changes.
#[derive(Debug, Clone)]
pub(super) struct First {
    words: String,
    at: Timestamp,
}

/// A list whose beginnings are being looked up.
#[derive(Debug)]
pub(super) struct Row {
    listings: Vec<Listing>,
    left: usize,
}

/// Lists under way, by their commands.
pub(super) type Lists = BTreeMap<u64, Row>;

/// The path of a session: the agent's own file, where it has one.
pub(super) fn path_of(session: &SessionId, config: Option<&AgentConfig>) -> String {
    let own = config.and_then(|config| config.session_file.clone());
    own.unwrap_or_else(|| format!("{FOLDER}{session}{ENDING}"))
}

/// The session that a path, or an id, names.
pub(super) fn named<'l>(listings: &'l [Listing], path: &str) -> Option<&'l Listing> {
    let file = |it: &Listing| {
        it.card.config.as_ref().is_some_and(|config| config.session_file.as_deref() == Some(path))
    };
    let id = id_of(path);
    let by_id = || listings.iter().find(|it| Some(&it.id) == id.as_ref());
    listings.iter().find(|it| file(it)).or_else(by_id)
}

/// The id in a path that the relay made.
fn id_of(path: &str) -> Option<SessionId> {
    let name = path.rsplit('/').next().unwrap_or(path);
    SessionId::parse(name.strip_suffix(ENDING).unwrap_or(name))
}

/// Sorts by what works now, and then by when anything was last heard.
pub(super) fn latest_first(listings: &mut [Listing]) {
    listings.sort_by(|a, b| {
        let key = |it: &Listing| (it.card.run.is_some(), it.card.status.last_seen_at, it.head);
        key(b).cmp(&key(a)).then_with(|| a.id.cmp(&b.id))
    });
}

impl Connection {
    pub(super) fn list(&mut self, flight: u64, body: &Body) -> Vec<Act> {
        let is_here = match body.scope.as_deref() {
            None | Some("all") => false,
            Some("cwd") => true,
            Some(_) => {
                let words = "scope must be 'all' or 'cwd'";
                return self.flights.fail(flight, words).into_iter().collect();
            }
        };
        vec![Act::List { ticket: self.ticket(Asked::List { flight, is_here }) }]
    }

    pub(super) fn on_list(
        &mut self,
        flight: u64,
        is_here: bool,
        mut listings: Vec<Listing>,
    ) -> Vec<Act> {
        let here = self.view.meta.workspace_path.clone();
        listings.retain(|it| {
            let status = &it.card.status;
            !status.archived && (!is_here || status.meta.workspace_path == here)
        });
        latest_first(&mut listings);
        listings.truncate(LISTED_MAX);
        let unknown = listings.iter().filter(|it| !self.firsts.contains_key(&it.id));
        let unknown: Vec<_> = unknown.take(FIRSTS_READ_MAX).map(|it| it.id.clone()).collect();
        let left = unknown.len();
        self.lists.insert(flight, Row { listings, left });
        if left == 0 {
            return self.listed(flight);
        }
        let mut acts = vec![];
        for session in unknown {
            let ticket = self.ticket(Asked::First { flight, session: session.clone() });
            let (after, upto, limit) = (Sequence(0), None, FIRST_EVENTS);
            acts.push(Act::Read { session, after, upto, limit, ticket });
        }
        acts
    }

    pub(super) fn on_first(
        &mut self,
        flight: u64,
        session: SessionId,
        page: &Result<PageOf, Denied>,
    ) -> Vec<Act> {
        if let Ok(page) = page
            && let Some(first) = first(&page.events)
            && self.firsts.len() < FIRSTS_MAX
        {
            self.firsts.insert(session, first);
        }
        let Some(row) = self.lists.get_mut(&flight) else { return vec![] };
        row.left = row.left.saturating_sub(1);
        if row.left > 0 { vec![] } else { self.listed(flight) }
    }

    fn listed(&mut self, flight: u64) -> Vec<Act> {
        let Some(row) = self.lists.remove(&flight) else { return vec![] };
        let sessions: Vec<_> =
            row.listings.iter().map(|it| info(it, self.firsts.get(&it.id))).collect();
        let data = json!({ "sessions": sessions });
        self.flights.succeed(flight, Some(&data)).into_iter().collect()
    }

    pub(super) fn switch(&mut self, flight: u64, body: &Body) -> Vec<Act> {
        let Some(path) = body.session_path.as_deref() else {
            let words = "switch_session needs a sessionPath";
            return self.flights.fail(flight, words).into_iter().collect();
        };
        let path = path.to_owned();
        // What its client says next is for the other session.
        self.is_switching = true;
        vec![Act::List { ticket: self.ticket(Asked::Switch { flight, path }) }]
    }

    pub(super) fn on_switch(
        &mut self,
        flight: u64,
        path: &str,
        listings: &[Listing],
        now: Timestamp,
    ) -> Vec<Act> {
        self.is_switching = false;
        let Some(listing) = named(listings, path) else {
            let mut acts = self.not_found(flight);
            acts.extend(self.take_early(now));
            return acts;
        };
        let answer = self.flights.succeed(flight, Some(&json!({ "cancelled": false })));
        let mut acts: Vec<_> = answer.into_iter().collect();
        acts.extend(self.drop_controls("Switched to another session"));
        acts.extend(self.go(listing, Why::Switch));
        acts
    }

    fn not_found(&mut self, flight: u64) -> Vec<Act> {
        self.flights.fail(flight, "Session file not found").into_iter().collect()
    }

    /// Starts a session like the active one, where nothing else is said.
    pub(super) fn new_session(&mut self, flight: u64, body: Body) -> Vec<Act> {
        let is_alone = matches!(self.stage, Stage::Alone);
        let known = (!is_alone).then(|| self.view.meta.agent.clone());
        let Some(agent) = body.agent.map(AgentType::from).or(known) else {
            let words = "Name an agent: no session is active to take it from";
            return self.flights.fail(flight, words).into_iter().collect();
        };
        let cwd = body.cwd.filter(|cwd| !cwd.is_empty());
        let is_long = |text: &str| text.len() > NAME_BYTES_MAX;
        if is_long(agent.as_str()) || cwd.as_deref().is_some_and(is_long) {
            let words = "An agent's name and a folder can have at most 4096 bytes";
            return self.flights.fail(flight, words).into_iter().collect();
        }
        self.flights.otherwise(flight, json!({ "cancelled": false }));
        let ticket = self.ticket(Asked::Launch(flight));
        let wish = Box::new(LaunchWish {
            request: RequestId::from(format!("{}:{ticket}", self.own_name)),
            agent,
            workspace_path: cwd.or_else(|| self.view.meta.workspace_path.clone()),
            window_title: None,
            machine: self.view.meta.machine.clone(),
            model: None,
            permission_mode: None,
            has_worktree: false,
            earlier: None,
            arguments: vec![],
        });
        vec![Act::Launch { wish, ticket }]
    }

    pub(super) fn on_launched(
        &mut self,
        flight: u64,
        launched: Result<SessionId, Failure>,
    ) -> Vec<Act> {
        match launched {
            Ok(session) => {
                let answer = self.flights.succeed(flight, Some(&json!({ "cancelled": false })));
                let mut acts: Vec<_> = answer.into_iter().collect();
                acts.extend(self.drop_controls("Switched to another session"));
                acts.extend(self.go_new(session));
                acts
            }
            Err(failure) => {
                let answer = self.flights.fail(flight, &failure.message);
                vec![answer.unwrap_or_else(|| {
                    Act::Send(encode(&trouble("new_session", &failure.message)))
                })]
            }
        }
    }
}

fn info(listing: &Listing, first: Option<&First>) -> Value {
    let status = &listing.card.status;
    let modified = Time(status.last_seen_at);
    let created = first.map_or(modified, |first| Time(first.at));
    let words = first.map_or("", |first| first.words.as_str());
    let mut info = json!({
        "path": path_of(&listing.id, listing.card.config.as_ref()), "id": listing.id,
        "cwd": status.meta.workspace_path.as_deref().unwrap_or(""),
        "created": created, "modified": modified, "messageCount": listing.card.messages + listing.card.results,
        "firstMessage": words, "allMessagesText": words,
    });
    // Where nobody named it, clients show how it began.
    if let Some(name) = status.title.as_deref().filter(|title| !title.is_empty()) {
        info["name"] = json!(name);
    }
    info
}

/// How a session began; `None` while nobody has said anything.
fn first(events: &[Recorded]) -> Option<First> {
    let at = events.first()?.at;
    let said = events.iter().find_map(|recorded| match &recorded.event {
        Event::Transcript(transcript::Event::Message(message))
            if message.author == Author::User =>
        {
            let parts = message.parts.open().into_iter().flatten();
            parts.into_iter().find_map(|part| match part {
                Part::Text(text) => Some(text),
                Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::ToolCall(_) => None,
            })
        }
        Event::Transcript(_)
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Run(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_) => None,
    });
    let words = said?.chars().take(FIRST_CHARACTERS_MAX).collect();
    Some(First { words, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: pi/sessions.1
    #[test]
    fn a_path_and_an_id_name_the_same_session() {
        let id = SessionId::from("sess_1");
        assert_eq!(path_of(&id, None), "farhelm/sess_1.jsonl");
        for named in ["farhelm/sess_1.jsonl", "sess_1", "/anywhere/sess_1.jsonl"] {
            assert_eq!(id_of(named).as_ref(), Some(&id), "{named}");
        }
        for named in ["", "..", "/path/to/a session.jsonl", "farhelm/$fleet.jsonl"] {
            assert_eq!(id_of(named), None, "{named}");
        }
    }
}
