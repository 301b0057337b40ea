//! The end of a world: no more troubles, everything comes back, comes to rest and answers.
//!
//! Not here: what is looked at afterwards (`judge`).

use domain::SessionId;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

use super::World;
use crate::client_node;
use crate::effects::Effect;
use crate::visitor_node;

/// Virtual time that a healed world gets to come to rest.
const REST_MS_MAX: u64 = 600_000;
/// Virtual time that it gets at least: longer than any deadline.
const REST_MS_MIN: u64 = 120_000;
/// The same once more, after every session was asked once more.
const REST_AGAIN_MS_MIN: u64 = 30_000;
/// A world is at rest when its ledgers stay the same for so many looks.
const LOOKS_AT_REST: u32 = 4;
/// Between two of them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What a session was asked at the end, and what should come of it.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) session: String,
    /// The id of the send.
    pub(super) send: String,
    /// The id of the request for its history.
    pub(super) history: String,
    /// The code of the refusal, where one is due.
    pub(super) refusal: Option<&'static str>,
}

impl World {
    pub(super) async fn heal(&mut self) {
        self.note("the troubles end");
        self.healing = true;
        self.flaws.heal();
        if let Some(files) = self.disk.files() {
            files.heal();
        }
        self.come_to_rest(REST_MS_MIN).await;
        self.probe();
        self.come_to_rest(REST_AGAIN_MS_MIN).await;
        if !self.relay.is_up() {
            self.wrong.push("the relay does not start again".to_owned());
        }
        let wrong: Vec<_> =
            self.probes.iter().filter_map(|probe| self.check_probe(probe)).collect();
        self.wrong.extend(wrong);
    }

    async fn come_to_rest(&mut self, rest_ms_min: u64) {
        let begun = Instant::now();
        let (mut heads, mut looks) = (vec![], 0);
        loop {
            self.relight().await;
            for proxy in &mut self.proxies {
                proxy.away_until = None;
            }
            self.settle();
            self.reconnect();
            self.notice_launches();
            self.ask_for_histories();
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.relay.heads();
            looks = if now == heads { looks + 1 } else { 0 };
            heads = now;
            let elapsed = begun.elapsed();
            let is_quiet = looks >= LOOKS_AT_REST && self.everybody_was_answered();
            if elapsed > Duration::from_millis(rest_ms_min) && is_quiet {
                return;
            }
            if elapsed > Duration::from_millis(REST_MS_MAX) {
                let why = if looks < LOOKS_AT_REST { "its ledgers grow" } else { "sends wait" };
                self.wrong.push(format!("the world did not come to rest: {why}"));
                return;
            }
        }
    }

    /// People answer what is open, and let go what an interrupt held.
    fn settle(&mut self) {
        for person in &self.people {
            person.does(client_node::Deed::Answer);
        }
        for session in self.sessions.iter().chain(&self.launched) {
            let resume = json!({
                "type": "queue_resume",
                "protocol_version": 1,
                "session_id": session,
            });
            self.people[0].does(client_node::Deed::Control(resume));
        }
        for visitor in &self.visitors {
            let mut state = visitor.lock();
            let is_lost = state.lives.last().is_none_or(|it| it.testimony.lock().views.is_empty());
            if state.is_connected && is_lost {
                // It came before its session did, and its dialect does not look again.
                state.is_connected = false;
                drop(state);
                visitor.does(visitor_node::Deed::HangUp);
            }
        }
    }

    fn everybody_was_answered(&self) -> bool {
        let people = self.people.iter().filter(|person| !person.is_revoked);
        people.map(|person| person.look(|seen| seen.unconfirmed)).all(|open| open == 0)
    }

    /// Every session is spoken to and read once more. Whatever happened to one of them, the
    /// others take it.
    fn probe(&mut self) {
        let all: Vec<_> = self.sessions.iter().chain(&self.launched).cloned().collect();
        for (number, session) in all.into_iter().enumerate() {
            let is_closed = self.relay.is_closed(&SessionId::from(session.as_str()));
            let refusal = match is_closed {
                Some(false) => None,
                Some(true) => Some("session_not_connected"),
                None => Some("session_unknown"),
            };
            if is_closed.is_none() && !self.erased.contains(&session) {
                self.wrong.push(format!("{session}: is not listed at the end"));
            }
            let (send, history) = (format!("probe-{number}"), format!("history-{number}"));
            self.people[0].does(client_node::Deed::Send {
                session: session.clone(),
                id: send.clone(),
                text: format!("hello {send}"),
            });
            self.note(&format!("{session} is asked once more, expecting {refusal:?}"));
            self.probes.push(Probe { session, send, history, refusal });
        }
    }

    /// Until each is answered: this client may be about to connect.
    fn ask_for_histories(&self) {
        let person = &self.people[0];
        let unread = person.look(|seen| {
            let unread = self.probes.iter().filter(|probe| !seen.read.contains_key(&probe.history));
            unread.cloned().collect::<Vec<_>>()
        });
        for Probe { session, history, .. } in unread {
            person.does(client_node::Deed::Control(json!({
                "type": "history_request", "protocol_version": 1, "request_id": history,
                "session_id": session, "after_sequence": 0,
            })));
        }
    }

    fn check_probe(&self, probe: &Probe) -> Option<String> {
        let Probe { session, send, history, refusal } = probe;
        let sent = self.people[0].look(|seen| seen.fate_of(session, send));
        let read = self.people[0].look(|seen| seen.read.get(history).cloned());
        let is_damaged = self.damaged.as_ref().is_some_and(|it| it.as_str() == session);
        let is_refused = sent.as_deref() == Some("session_damaged");
        let is_unread = read.as_deref() == Some("history_not_available");
        if is_damaged && (is_refused || is_unread) {
            self.effects.count(Effect::DamageFound);
            // What a stored state covers is not read to go on from it.
            return None;
        }
        let due = refusal.unwrap_or("accepted");
        if sent.as_deref() != Some(due) {
            return Some(format!("{session}: {send} was answered {sent:?}, and {due} was due"));
        }
        let due = if *refusal == Some("session_unknown") { "session_unknown" } else { "told" };
        let is_good = read.as_deref() == Some(due);
        (!is_good).then(|| format!("{session}: its history was {read:?}, and {due} was due"))
    }

    /// Whether the damage of this session was met when it was spoken to or read.
    pub(super) fn is_refused(&self, session: &SessionId) -> bool {
        let probe = self.probes.iter().find(|probe| probe.session == session.as_str());
        let Some(Probe { session, send, history, .. }) = probe else { return false };
        let sent = self.people[0].look(|seen| seen.fate_of(session, send));
        let read = self.people[0].look(|seen| seen.read.get(history).cloned());
        sent.as_deref() == Some("session_damaged")
            || read.as_deref() == Some("history_not_available")
    }
}
