//! How a connection joins a session and switches to another one.
//!
//! **Invariant**: switching to an unknown session leaves the connection where it was. Frames that
//! a client sends during a switch wait and are handled in order. Events of the new session during
//! the switch are sent after the response and the history.
//!
//! Not here: which session to join (`sessions`, `sends`, `commands`).

use std::collections::VecDeque;

use bytes::Bytes;
use domain::passing::Delta;
use domain::{MessageId, Refusal, Sequence, SessionId, Timestamp};
use serde_json::json;

use super::events::{queued, status_event};
use super::frames::{Request, event, granted, refused};
use super::history::{LookBack, Looked, Row};
use super::tokens::Tokens;
use super::view::{Backwards, View};
use super::{Asked, Connection, prompts, words};
use crate::port::{Denied, PageOf};
use crate::time::Time;
use crate::visitor::{Act, Encoded, Followed};

/// Messages that come with a session, unless the client wants another number.
pub(super) const RECENT_DEFAULT: usize = 20;
/// Requests that wait for a switch, and their bytes; more are refused.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Frames for a client that wait until the past is told; more close the socket.
const LATE_MAX: usize = 4_096;
/// The close code of a client that is to come again.
const TRY_AGAIN: u16 = 1013;

/// What a switch is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// `sessions.switch`, by its request.
    Method(String),
    /// `agent` in another session: its request and words.
    Agent(String, String),
    /// The wish of a `connect`, which is answered already.
    Quiet,
    /// A slash command, which is answered already: these words and the session's title tell its
    /// writer that it was carried out.
    Command(&'static str),
}

/// A switch under way.
#[derive(Debug)]
pub(super) struct Switch {
    session: SessionId,
    purpose: Purpose,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Whether it asked for the session that the connection is in.
    is_stay: bool,
    /// Whether the shell follows the new session already.
    is_following: bool,
    look_back: Option<LookBack>,
    late: Vec<Bytes>,
    changed: Option<Bytes>,
    /// The run that goes on, and whether a question of it waits.
    run: Option<(String, bool)>,
    tools: Backwards,
    status: Option<Bytes>,
}

/// Something that waits for a switch to end.
#[derive(Debug)]
pub(super) enum Held {
    Request(Request),
    Switch(SessionId, Purpose),
}

/// What waits for a switch, in order.
pub(super) type Waiting = VecDeque<Held>;

impl Connection {
    /// Goes to a session, after the switch that is under way.
    pub(super) fn switch_to(&mut self, session: SessionId, purpose: Purpose) -> Vec<Act> {
        if self.switch.is_some() {
            self.held.push_back(Held::Switch(session, purpose));
            return vec![];
        }
        let is_here = self.view.as_ref().is_some_and(|view| view.session == session);
        let purpose = match purpose {
            Purpose::Agent(request, text) if is_here => return self.say(request, text, self.now),
            purpose @ (Purpose::Method(_)
            | Purpose::Agent(..)
            | Purpose::Quiet
            | Purpose::Command(_)) => purpose,
        };
        let is_stay = is_here && matches!(purpose, Purpose::Method(_));
        self.switch = Some(Box::new(Switch {
            session: session.clone(),
            purpose,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            is_stay,
            is_following: false,
            look_back: None,
            late: vec![],
            changed: None,
            run: None,
            tools: Backwards::default(),
            status: None,
        }));
        // The first event tells whether the session is there, and since when.
        let ticket = self.ticket(Asked::SwitchFirst);
        vec![Act::Read { session, after: Sequence(0), upto: None, limit: 1, ticket }]
    }

    /// A request came while the connection is on its way.
    pub(super) fn hold(&mut self, request: Request, bytes: usize) -> Vec<Act> {
        if self.held.is_empty() {
            self.held_bytes = 0;
        }
        self.held_bytes += bytes;
        if self.held.len() >= WAITING_MAX || self.held_bytes > WAITING_BYTES_MAX {
            return vec![Act::Send(refused(&request.id, super::TOO_MANY))];
        }
        self.held.push_back(Held::Request(request));
        vec![]
    }

    /// Whether this request's words are what the switch is for.
    pub(super) fn switches_for(&self, request: &str) -> bool {
        let purpose = self.switch.as_ref().map(|switch| &switch.purpose);
        matches!(purpose, Some(Purpose::Agent(own, _)) if own == request)
    }

    /// Frames for a client that still waits for the past.
    pub(super) fn hold_late(&mut self, frames: &mut Vec<Bytes>) -> Option<Act> {
        let switch = self.switch.as_mut().filter(|switch| switch.is_following)?;
        switch.late.append(frames);
        let reason = "too much happened meanwhile; connect again";
        (switch.late.len() > LATE_MAX).then_some(Act::Close { code: TRY_AGAIN, reason })
    }

    pub(super) fn on_first(&mut self, page: Result<PageOf, Denied>, now: Timestamp) -> Vec<Act> {
        let Some(switch) = &mut self.switch else { return vec![] };
        match page {
            Err(denied) => self.give_up(&denied, now),
            Ok(page) => {
                switch.created_at = page.events.first().map_or(now, |first| first.at);
                switch.is_following = true;
                let session = switch.session.clone();
                if switch.is_stay {
                    // It hears everything already; only the past is wanted.
                    let recent = LookBack::new(session, page.head, None, self.recent);
                    return self.read_recent(recent);
                }
                let ticket = self.ticket(Asked::SwitchFollow);
                vec![Act::Follow { session, ticket }]
            }
        }
    }

    pub(super) fn on_followed(
        &mut self,
        followed: Option<Box<Followed>>,
        now: Timestamp,
    ) -> Vec<Act> {
        let limit = self.recent;
        let Some(switch) = &mut self.switch else { return vec![] };
        let Some(followed) = followed else {
            // It was erased just now, and the shell no longer follows the old one either.
            self.view = None;
            return self.give_up(&Denied::Refused(Refusal::SessionUnknown), now);
        };
        let Followed { session, head, glance, drafts } = *followed;
        self.echoed.clear();
        self.interrupts.clear();
        self.stops.clear();
        self.frees_at = None;
        self.tokens.reset();
        switch.updated_at = glance.card.status.last_seen_at;
        let waiting: Vec<_> = glance.waiting.iter().map(|send| send.id.clone()).collect();
        let view = View::of(session.clone(), glance);
        switch.late = standing(&mut self.tokens, &view, &waiting, &drafts, now);
        switch.run = view.run_name().map(|run| (run.to_owned(), !view.prompts.is_empty()));
        self.view = Some(view);
        self.read_recent(LookBack::new(session, head, None, limit))
    }

    pub(super) fn on_recent(&mut self, page: Result<PageOf, Denied>, now: Timestamp) -> Vec<Act> {
        let (Some(switch), Some(view)) = (&mut self.switch, &mut self.view) else { return vec![] };
        let Some(mut look_back) = switch.look_back.take() else { return vec![] };
        let looked = match page {
            Ok(page) if switch.is_stay => look_back.take(page, |_| {}),
            Ok(page) => {
                let tools = &mut switch.tools;
                look_back.take(page, |past| {
                    view.recall(past);
                    tools.see(past);
                })
            }
            // What was said is not to be had; what happens is.
            Err(_) => Looked::Over,
        };
        if looked == Looked::On {
            return self.read_recent(look_back);
        }
        self.arrive(&look_back.into_rows().0, now)
    }

    fn read_recent(&mut self, look_back: LookBack) -> Vec<Act> {
        let read = look_back.read(self.ticket(Asked::SwitchPage));
        if let Some(switch) = &mut self.switch {
            switch.look_back = Some(look_back);
        }
        vec![read]
    }

    /// The past is known. `agent` has still to send its words, and is answered first.
    fn arrive(&mut self, rows: &[Row], now: Timestamp) -> Vec<Act> {
        let (Some(switch), Some(view)) = (&mut self.switch, &self.view) else { return vec![] };
        let times = (switch.created_at, switch.updated_at);
        if !switch.is_stay {
            switch.changed = Some(session_changed(view, times, rows));
        }
        if let Some((run, is_asking)) = &switch.run {
            let is_at_a_tool = *is_asking || switch.tools.is_at_work();
            let word = if is_at_a_tool { "executing_tool" } else { "thinking" };
            switch.status = Some(status_event(Some(run), word, None));
        }
        match &switch.purpose {
            Purpose::Method(request) => {
                let payload = json!({
                    "sessionId": view.session, "title": view.title, "recentMessages": rows,
                });
                let response = granted(request, &payload);
                self.finish(Some(response), now)
            }
            Purpose::Agent(request, text) => {
                let (request, text) = (request.clone(), text.clone());
                self.say(request, text, now)
            }
            Purpose::Quiet => self.finish(None, now),
            Purpose::Command(words) => {
                let words = format!("{words} {} ({})", view.title, view.session);
                let told = self.told(&words);
                self.finish_with(None, Some(told), now)
            }
        }
    }

    /// The switch is over: the answer, the change, and what happened meanwhile.
    pub(super) fn finish(&mut self, response: Option<Bytes>, now: Timestamp) -> Vec<Act> {
        self.finish_with(response, None, now)
    }

    /// The same; a slash command also has its outcome told, after the change.
    fn finish_with(
        &mut self,
        response: Option<Bytes>,
        outcome: Option<Bytes>,
        now: Timestamp,
    ) -> Vec<Act> {
        let Some(switch) = self.switch.take() else {
            return response.into_iter().map(Act::Send).collect();
        };
        let told = response.into_iter().chain(switch.changed).chain(outcome).chain(switch.status);
        let told = told.chain(switch.late);
        let mut acts: Vec<Act> = told.map(Act::Send).collect();
        acts.extend(self.go_on(now));
        acts
    }

    /// There is no such session.
    fn give_up(&mut self, denied: &Denied, now: Timestamp) -> Vec<Act> {
        let Some(switch) = self.switch.take() else { return vec![] };
        let words = words(denied, Some(&switch.session));
        let mut acts = match switch.purpose {
            Purpose::Method(request) | Purpose::Agent(request, _) => {
                vec![Act::Send(refused(&request, &words))]
            }
            Purpose::Quiet | Purpose::Command(_) => self.tell(&words),
        };
        acts.extend(self.go_on(now));
        acts
    }

    /// Takes what waited, until the next switch.
    fn go_on(&mut self, now: Timestamp) -> Vec<Act> {
        let mut acts = vec![];
        while self.switch.is_none() {
            match self.held.pop_front() {
                None => break,
                Some(Held::Request(request)) => acts.extend(self.take(request, now)),
                Some(Held::Switch(session, purpose)) => {
                    acts.extend(self.switch_to(session, purpose));
                }
            }
        }
        acts
    }
}

/// How things stand: what waits, what is asked, words in the making.
fn standing(
    tokens: &mut Tokens,
    view: &View,
    waiting: &[MessageId],
    drafts: &[Delta],
    now: Timestamp,
) -> Vec<Bytes> {
    let places = waiting.iter().enumerate();
    let mut told: Vec<_> = places.map(|(place, send)| queued(send, place + 1, None)).collect();
    told.extend(view.prompts.iter().map(|prompt| prompts::asked(prompt, None, now, None)));
    for delta in drafts {
        told.extend(tokens.on_delta(view, delta, &Encoded::default()).into_iter().flatten());
    }
    told
}

fn session_changed(view: &View, (created, updated): (Timestamp, Timestamp), rows: &[Row]) -> Bytes {
    let (used, limit) =
        view.context.map_or((0, 0), |context| (context.used_tokens, context.window_tokens));
    let payload = json!({
        "sessionId": view.session, "title": view.title, "createdAt": Time(created),
        "updatedAt": Time(updated), "messages": rows,
        "stats": {
            "messageCount": view.messages, "modelName": view.model, "tokensUsed": used,
            "tokensLimit": limit,
        },
        "message": format!("Switched to {}", view.title),
    });
    event("session_changed", &payload, None)
}
