//! The dialect of pi's web frontend (`docs/spec/pi.md`): commands with answers, and the events of
//! one session at a time.
//!
//! **Invariant**: every command is answered once and within 25 s; every connection that is active
//! on a session receives its events.
//!
//! Not here: pi as an agent, which uses the same family of commands toward the machine (`agents`).

mod commands;
mod dialogs;
mod events;
mod forms;
mod frames;
mod history;
mod join;
mod messages;
mod queue;
mod responses;
mod sends;
mod sessions;
mod stream;
mod tools;
mod view;

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::passing::Passing;
use domain::session::{Event, Recorded};
use domain::{AttachmentId, ConnectionId, Principal, PromptId, RequestId, SessionId, Timestamp};
use serde_json::Value;

use self::commands::Settings;
use self::dialogs::Dialogs;
use self::events::Turn;
use self::frames::Frame;
use self::history::Readings;
use self::join::{Early, Joining, Wanted};
use self::queue::Clearings;
use self::responses::{Flights, failed};
use self::sends::Outgoing;
use self::sessions::{Firsts, Lists};
use self::stream::{How, Streaming, Told};
use self::view::View;
use crate::port::{Limits, Throttle};
use crate::visitor::{Act, Answer, Encoded, Followed, Slot, Visitor};

const TOO_FAST: &str = "Too many commands; try again in a moment";

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    /// Names what this connection makes.
    own_name: ConnectionId,
    principal: Option<Principal>,
    limits: Limits,
    wanted: Wanted,
    stage: Stage,
    early: Early,
    /// Whether its client asked for another session, and it is not known yet whether that is there.
    is_switching: bool,
    view: View,
    streaming: Streaming,
    turn: Turn,
    /// The end of the agent's message that a run may have stopped with; told once that is known.
    maybe_last: Option<Bytes>,
    /// A person's words that wait for the beginning of their run, which is the next event.
    held: Vec<Bytes>,
    /// The first words of a run that has just begun.
    first: Option<Bytes>,
    tickets: BTreeMap<u64, Asked>,
    count: u64,
    flights: Flights,
    settings: Settings,
    /// The model that this client has set, until the agent tells it.
    chosen_model: Option<Value>,
    clearings: Clearings,
    dialogs: Dialogs,
    lists: Lists,
    firsts: Firsts,
    readings: Readings,
    outgoing: Outgoing,
}

/// How far the connection is.
#[derive(Debug)]
enum Stage {
    /// Not let in, for this reason.
    Refused(&'static str, u16),
    /// On the way to a session.
    Joining(Joining),
    /// With its session.
    Following,
    /// With none: there is none, or not the one it asked for.
    Alone,
}

/// What was asked of the shell. The numbers are those of commands in flight.
#[derive(Debug)]
enum Asked {
    /// Which sessions there are, to go to one.
    Where,
    /// What happened lately, for tools at work.
    LookBack(SessionId),
    Follow(SessionId),
    Send(u64),
    /// A picture of the send that is next.
    Store,
    Plain(u64),
    Setting(RequestId),
    Answer(PromptId),
    Discard {
        flight: u64,
        text: String,
        is_steer: bool,
    },
    List {
        flight: u64,
        is_here: bool,
    },
    First {
        flight: u64,
        session: SessionId,
    },
    Switch {
        flight: u64,
        path: String,
    },
    Launch(u64),
    Page,
    Picture(AttachmentId),
}

impl Connection {
    /// A socket opened. `query` is what its address said behind the question mark.
    pub fn new(
        connection: ConnectionId,
        principal: Option<Principal>,
        query: &str,
        limits: Limits,
        _now: Timestamp,
    ) -> Self {
        let wanted = Wanted::read(query);
        Self {
            own_name: connection,
            principal,
            limits,
            stage: Stage::Alone,
            early: Early::default(),
            is_switching: false,
            view: View::new(SessionId::from("")),
            streaming: Streaming::new(wanted.is_full),
            wanted,
            turn: Turn::default(),
            maybe_last: None,
            held: vec![],
            first: None,
            tickets: BTreeMap::new(),
            count: 0,
            flights: Flights::default(),
            settings: Settings::new(),
            chosen_model: None,
            clearings: Clearings::new(),
            dialogs: Dialogs::default(),
            lists: Lists::new(),
            firsts: Firsts::new(),
            readings: Readings::default(),
            outgoing: Outgoing::default(),
        }
    }

    /// Takes a frame of a client that has arrived.
    fn take(&mut self, frame: Frame, now: Timestamp) -> Vec<Act> {
        match frame {
            Frame::Command(caller, body) => self.on_command(caller, *body, now),
            Frame::Answer(answer) => self.on_dialog(&answer),
        }
    }

    /// Answers a frame that is not taken.
    fn decline(&mut self, frame: &Frame, words: &str) -> Act {
        match frame {
            Frame::Command(caller, _) => failed(caller, words),
            Frame::Answer(_) => self.note(words, "warning"),
        }
    }

    fn ticket(&mut self, asked: Asked) -> u64 {
        self.count += 1;
        self.tickets.insert(self.count, asked);
        self.count
    }

    fn is_following(&self) -> bool {
        matches!(self.stage, Stage::Following)
    }
}

impl Visitor for Connection {
    fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    fn on_open(&mut self, _now: Timestamp) -> Vec<Act> {
        self.open()
    }

    fn on_text(&mut self, text: &str, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        let read = frames::read(text);
        if let Stage::Refused(reason, code) = self.stage {
            let refused = match &read {
                Ok(frame) => self.decline(frame, reason),
                Err(broken) => failed(&broken.caller, reason),
            };
            return vec![refused, Act::Close { code, reason }];
        }
        let frame = match read {
            Ok(frame) => frame,
            Err(broken) if throttle.frame(now) => {
                return vec![failed(&broken.caller, &broken.words)];
            }
            Err(broken) => return vec![failed(&broken.caller, TOO_FAST)],
        };
        let is_send = match &frame {
            Frame::Command(caller, _) => {
                matches!(caller.command.as_str(), "prompt" | "steer" | "follow_up")
            }
            Frame::Answer(_) => false,
        };
        if !throttle.frame(now) || (is_send && !throttle.send(now)) {
            return vec![self.decline(&frame, TOO_FAST)];
        }
        if self.is_on_the_way() {
            return self.hold(frame, text.len());
        }
        self.take(frame, now)
    }

    fn on_answer(&mut self, ticket: u64, answer: Answer, now: Timestamp) -> Vec<Act> {
        let Some(asked) = self.tickets.remove(&ticket) else { return vec![] };
        match (asked, answer) {
            (Asked::Where, Answer::Listed(listings)) => self.on_where(listings, now),
            (Asked::LookBack(session), Answer::Page(page)) => self.on_look_back(session, page),
            (Asked::Follow(session), Answer::Followed(followed)) => {
                self.on_followed(&session, followed, now)
            }
            (Asked::Send(flight), Answer::Done(done)) => self.on_sent(flight, &done),
            (Asked::Store, Answer::Stored(stored)) => self.on_stored(stored),
            (Asked::Plain(flight), Answer::Done(done)) => self.on_plain(flight, &done),
            (Asked::Setting(request), Answer::Done(done)) => self.on_setting(&request, &done),
            (Asked::Answer(prompt), Answer::Done(done)) => self.on_answered(&prompt, &done),
            (Asked::Discard { flight, text, is_steer }, Answer::Done(done)) => {
                self.on_discarded(flight, text, is_steer, done.is_ok())
            }
            (Asked::List { flight, is_here }, Answer::Listed(listings)) => {
                self.on_list(flight, is_here, listings)
            }
            (Asked::First { flight, session }, Answer::Page(page)) => {
                self.on_first(flight, session, &page)
            }
            (Asked::Switch { flight, path }, Answer::Listed(listings)) => {
                self.on_switch(flight, &path, &listings, now)
            }
            (Asked::Launch(flight), Answer::Launched(launched)) => {
                self.on_launched(flight, launched)
            }
            (Asked::Page, Answer::Page(page)) => self.on_page(page),
            (Asked::Picture(id), Answer::Loaded(loaded)) => self.on_picture(id, loaded),
            // The shell answers what was asked.
            (
                Asked::Where
                | Asked::LookBack(_)
                | Asked::Follow(_)
                | Asked::Send(_)
                | Asked::Store
                | Asked::Plain(_)
                | Asked::Setting(_)
                | Asked::Answer(_)
                | Asked::Discard { .. }
                | Asked::List { .. }
                | Asked::First { .. }
                | Asked::Switch { .. }
                | Asked::Launch(_)
                | Asked::Page
                | Asked::Picture(_),
                _,
            ) => vec![],
        }
    }

    fn on_event(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        if !self.is_following() {
            return;
        }
        if matches!(recorded.event, Event::Config(_)) {
            self.chosen_model = None;
        }
        let frames = self.show(recorded, encoded);
        self.view.apply(recorded);
        if let (Some(first), Some(run)) = (self.first.take(), &mut self.view.run) {
            run.keep(first);
        }
        let told = acts.len();
        acts.extend(frames.into_iter().map(Act::Send));
        self.hold_back(acts, told);
    }

    fn on_passing(&mut self, passing: &Passing, encoded: &Encoded, acts: &mut Vec<Act>) {
        if !self.is_following() {
            return;
        }
        let told = acts.len();
        self.flush_held(acts);
        acts.extend(self.settle_last().into_iter().map(Act::Send));
        let delta = &passing.delta;
        if self.streaming.begins(delta) {
            acts.extend(self.begin_message().into_iter().map(Act::Send));
        }
        match self.streaming.take(&self.view, delta, How::Live) {
            Told::Own(frames) => acts.extend(frames.into_iter().map(Act::Send)),
            Told::Shared(frames) => {
                acts.extend(frames.into_iter().map(Act::Send));
                let words = encoded.frames(Slot::Pi, || {
                    let said = delta.words.open().map_or("", String::as_str);
                    vec![stream::words(delta.voice, delta.part, said)]
                });
                acts.extend(words.iter().cloned().map(Act::Send));
            }
        }
        self.hold_back(acts, told);
    }

    fn on_caught_up(&mut self, followed: Followed, _now: Timestamp) -> Vec<Act> {
        if !self.is_following() || self.view.session != followed.session {
            return vec![];
        }
        let mut told = if followed.drafts.is_empty() { vec![] } else { self.settle_last() };
        told.extend(self.drafts(&followed.drafts, How::Live));
        let mut acts = told.into_iter().map(Act::Send).collect();
        self.hold_back(&mut acts, 0);
        acts
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Act> {
        self.flights.expire(now)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.flights.deadline()
    }
}
