//! The Agent Blob dialect (`docs/spec/blob.md`): requests and responses, and the events of the
//! connection's one session.
//!
//! **Invariant**: every request is answered once, and before the events that it led to. A
//! connection receives the events of its session and of no other.
//!
//! Not here: Agent Blob's own gateway; this relay talks to its clients.

mod commands;
mod events;
mod frames;
mod gateway;
mod history;
mod names;
mod prompts;
mod sends;
mod sessions;
mod switch;
mod tokens;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use domain::content::{Author, Usage};
use domain::passing::Passing;
use domain::session::{Event, Recorded, controls, delivery, runs, transcript};
use domain::{
    AgentType, ConnectionId, MachineLabel, MessageId, Principal, Refusal, RequestId, RunId,
    SessionId, Timestamp,
};

use self::commands::Menu;
use self::frames::{Broken, Request, refuse};
use self::gateway::NO_CONNECT;
use self::sessions::{ListFor, New, Page, Past, Reply};
use self::switch::{RECENT_DEFAULT, Switch, Waiting};
use self::tokens::Tokens;
use self::view::View;
use crate::port::{Denied, Limits, Throttle};
use crate::visitor::{Act, Answer, Encoded, Figures, Followed, Slot, Visitor};

/// The close code of text that is not JSON.
const NOT_JSON: u16 = 1007;
/// Questions to the shell that one connection may have open. More requests are refused.
const ASKED_MAX: usize = 1_024;
/// Sends that were shown and not yet delivered. The relay's own queue is shorter; of more, some
/// are shown again when they are delivered.
const ECHOED_MAX: usize = 2_048;
/// What a request hears that one too many.
const TOO_MANY: &str = "Too many requests in flight";
const TOO_FAST: &str = "Rate limit exceeded; try again in a moment";
const DENIED: &str = "Permission denied";

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    /// Names what this connection makes.
    own_name: ConnectionId,
    principal: Option<Principal>,
    limits: Limits,
    wanted: Wanted,
    stage: Stage,
    /// As the shell last told.
    now: Timestamp,
    /// Messages that come with a session.
    recent: usize,
    /// The session that the connection is in.
    view: Option<View>,
    switch: Option<Box<Switch>>,
    held: Waiting,
    /// Of the frames that came since it was empty.
    held_bytes: usize,
    tokens: Tokens,
    tickets: BTreeMap<u64, Asked>,
    count: u64,
    /// What was sent lately, and in which session.
    said: VecDeque<(MessageId, SessionId)>,
    /// Sends of this connection that are not answered, with their requests.
    sends: BTreeMap<MessageId, String>,
    /// The same of cancellations of waiting sends.
    cancels: BTreeMap<MessageId, String>,
    /// Runs to stop as soon as they begin.
    stops: Vec<String>,
    interrupts: BTreeMap<RequestId, String>,
    echoed: BTreeSet<MessageId>,
    menu: Menu,
    /// When it is told that a run of its own waits for an answer.
    frees_at: Option<Timestamp>,
    /// The run that it was told so of.
    freed: Option<RunId>,
}

/// What the address asks for, about new sessions.
#[derive(Debug, Default)]
struct Wanted {
    agent: Option<AgentType>,
    machine: Option<MachineLabel>,
}

impl Wanted {
    /// Reads what stands behind the question mark. What is unknown is ignored.
    fn read(query: &str) -> Self {
        let mut wanted = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "agent" => wanted.agent = Some(value.into()),
                "machine" => wanted.machine = Some(value.into()),
                _ => {}
            }
        }
        wanted
    }
}

/// How far the connection is.
#[derive(Debug)]
enum Stage {
    /// It must say `connect` by then.
    Greeting(Timestamp),
    /// It said something, but may not come in.
    Denied,
    Connected,
}

/// What was asked of the shell.
#[derive(Debug)]
enum Asked {
    SwitchFirst,
    SwitchFollow,
    SwitchPage,
    Send(MessageId),
    Discard(MessageId),
    /// Where a run stands that is not of this session: the request, the run, its session.
    Elsewhere(String, String, SessionId),
    DiscardElsewhere(String, String, SessionId),
    Interrupt(Option<String>, RequestId),
    Decision,
    List(ListFor),
    ListPage(Box<Page>),
    HistoryFirst(Box<Past>),
    HistoryPage(Box<Past>),
    Launch(New),
    Named(New, SessionId),
    Figures(Reply, Option<SessionId>),
    Glance(Reply, Figures, SessionId),
    Nothing,
}

impl Connection {
    /// A socket opened. `query` is what its address said behind the question mark.
    pub fn new(
        connection: ConnectionId,
        principal: Option<Principal>,
        query: &str,
        limits: Limits,
        now: Timestamp,
    ) -> Self {
        Self {
            own_name: connection,
            principal,
            limits,
            wanted: Wanted::read(query),
            stage: Stage::Greeting(now.plus_ms(limits.hello_timeout_ms)),
            now,
            recent: RECENT_DEFAULT,
            view: None,
            switch: None,
            held: Waiting::new(),
            held_bytes: 0,
            tokens: Tokens::default(),
            tickets: BTreeMap::new(),
            count: 0,
            sends: BTreeMap::new(),
            said: VecDeque::new(),
            cancels: BTreeMap::new(),
            stops: vec![],
            interrupts: BTreeMap::new(),
            echoed: BTreeSet::new(),
            menu: Menu::default(),
            frees_at: None,
            freed: None,
        }
    }

    /// Takes a request of a client that is connected.
    fn take(&mut self, request: Request, now: Timestamp) -> Vec<Act> {
        if self.tickets.len() >= ASKED_MAX {
            return refuse(&request.id, TOO_MANY);
        }
        match request.method.as_str() {
            "agent" => self.agent(request, now),
            "agent.cancel" => self.cancel(request),
            "sessions.list" => self.sessions_list(request),
            "sessions.new" => self.sessions_new(request),
            "sessions.switch" => self.sessions_switch(request),
            "sessions.history" => self.sessions_history(request),
            "status" => self.status(request),
            "connect" => refuse(&request.id, "Already connected"),
            unknown => refuse(&request.id, &format!("Unknown method: {unknown}")),
        }
    }

    fn on_broken(&mut self, broken: Broken) -> Vec<Act> {
        match (broken, &self.stage) {
            (Broken::NotJson, _) => {
                vec![Act::Close { code: NOT_JSON, reason: "the frame is not JSON" }]
            }
            (Broken::Shape(id, words), Stage::Greeting(_)) => {
                let mut acts = refuse(&id, &words);
                acts.push(Act::Close {
                    code: NO_CONNECT,
                    reason: "the first frame must be connect",
                });
                acts
            }
            (Broken::Shape(id, words), Stage::Denied | Stage::Connected) => refuse(&id, &words),
        }
    }

    /// The frames of an event for this connection; first the response that it brings, if any.
    fn show(&mut self, recorded: &Recorded, encoded: &Encoded) -> (Option<Bytes>, Vec<Bytes>) {
        let (mut response, mut frames) = (None, vec![]);
        let Some(view) = &self.view else { return (None, frames) };
        let shared = |frames: &mut Vec<Bytes>| {
            let shared = encoded.frames(Slot::Blob, || events::shared(view, recorded));
            frames.extend_from_slice(shared);
        };
        match &recorded.event {
            Event::Delivery(delivery::Event::Accepted(send)) => {
                if self.echoed.len() < ECHOED_MAX {
                    self.echoed.insert(send.id.clone());
                }
                match self.sends.remove(&send.id) {
                    Some(request) => {
                        frames = events::accepted(view, recorded, send, true);
                        let waits = view.line.waits(send);
                        response =
                            Some((request.clone(), sends::accepted(&request, &send.id, waits)));
                    }
                    None => shared(&mut frames),
                }
            }
            Event::Transcript(transcript::Event::Message(message)) => {
                match (message.author, &view.run) {
                    (Author::User, _) if self.echoed.remove(&message.id) => {}
                    (Author::User, _) if names::is_own(&self.own_name, &message.id) => {
                        let at = (recorded.sequence, recorded.at);
                        frames.extend(events::own_message(message, at));
                    }
                    (Author::Assistant, Some(_)) => {
                        self.tokens.on_message(view, message, &mut frames);
                    }
                    (Author::User | Author::Assistant | Author::System, _) => shared(&mut frames),
                }
            }
            Event::Transcript(transcript::Event::ToolUpdate(update))
                if view.tool(&update.id).is_none() =>
            {
                frames = events::shared(view, recorded);
            }
            Event::Run(runs::Event::Ended { outcome, usage, .. }) => {
                if let Some(run) = &view.run {
                    let total = total_tokens(usage.as_ref());
                    frames = events::ended(run, outcome, total, recorded.sequence);
                }
                self.tokens.reset();
            }
            Event::Run(runs::Event::Started { .. }) => {
                self.tokens.reset();
                shared(&mut frames);
            }
            Event::Transcript(transcript::Event::ToolCall(_)) => {
                self.tokens.pause();
                shared(&mut frames);
            }
            Event::Transcript(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Status(_) => shared(&mut frames),
            Event::Control(_) | Event::Config(_) => {}
        }
        let answered = self.settle(recorded, &mut frames);
        if let Some(view) = &mut self.view {
            view.apply(recorded);
        }
        let response = match response {
            // It brought the connection here: it is answered before what happened since.
            Some((request, response)) if self.switches_for(&request) => {
                return (Some(response), frames);
            }
            Some((_, response)) => Some(response),
            None => answered,
        };
        if let Some(response) = response {
            frames.insert(0, response);
        }
        (None, frames)
    }

    /// What an event means for requests of this connection.
    fn settle(&mut self, recorded: &Recorded, frames: &mut Vec<Bytes>) -> Option<Bytes> {
        match &recorded.event {
            Event::Delivery(delivery::Event::Failed { id, .. }) => {
                self.echoed.remove(id);
                self.cancelled(id)
            }
            Event::Control(controls::Event::Settled { request, failure, .. }) => {
                let run = self.stopped(request, failure.as_ref())?;
                let words = failure.as_ref().map_or("", |failure| failure.message.as_str());
                let sequence = Some(recorded.sequence);
                frames.push(events::error(Some(&run), words, true, "AGENT_ERROR", sequence));
                None
            }
            Event::Delivery(_)
            | Event::Control(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_)
            | Event::Transcript(_) => None,
        }
    }

    /// Stops a run that was cancelled on its way to the agent.
    fn stop_begun(&mut self) -> Vec<Act> {
        let Some(run) = self.view.as_ref().and_then(|view| view.run.as_ref()) else {
            return vec![];
        };
        let Some(at) = self.stops.iter().position(|stop| run.is(stop)) else { return vec![] };
        let stop = self.stops.remove(at);
        self.interrupt(None, stop)
    }

    fn may_steer(&self) -> bool {
        self.principal.as_ref().is_some_and(Principal::may_steer)
    }

    fn ticket(&mut self, asked: Asked) -> u64 {
        self.count += 1;
        self.tickets.insert(self.count, asked);
        self.count
    }
}

impl Visitor for Connection {
    fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    fn on_open(&mut self, now: Timestamp) -> Vec<Act> {
        self.now = now;
        vec![]
    }

    fn on_text(&mut self, text: &str, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        self.now = now;
        let lets = throttle.frame(now);
        let request = match frames::read(text) {
            Ok(request) => request,
            Err(broken @ Broken::NotJson) => return self.on_broken(broken),
            Err(broken) if lets => return self.on_broken(broken),
            Err(_) => return vec![],
        };
        let is_send = request.method == "agent" && !commands::is_known(&request.params);
        if !lets || (is_send && !throttle.send(now)) {
            return refuse(&request.id, TOO_FAST);
        }
        if self.principal.is_none() {
            self.stage = Stage::Denied;
            return refuse(&request.id, DENIED);
        }
        match &self.stage {
            Stage::Greeting(_) | Stage::Denied => self.connect(request),
            Stage::Connected if self.switch.is_some() => self.hold(request, text.len()),
            Stage::Connected => self.take(request, now),
        }
    }

    fn on_answer(&mut self, ticket: u64, answer: Answer, now: Timestamp) -> Vec<Act> {
        self.now = now;
        let Some(asked) = self.tickets.remove(&ticket) else { return vec![] };
        match (asked, answer) {
            (Asked::SwitchFirst, Answer::Page(page)) => self.on_first(page, now),
            (Asked::SwitchFollow, Answer::Followed(followed)) => self.on_followed(followed, now),
            (Asked::SwitchPage, Answer::Page(page)) => self.on_recent(page, now),
            (Asked::Send(id), Answer::Done(done)) => self.on_sent(&id, done, now),
            (Asked::Discard(id), Answer::Done(done)) => self.on_discarded(&id, done),
            (Asked::Elsewhere(request, run, session), Answer::Glanced(glanced)) => {
                self.on_elsewhere(request, run, session, glanced)
            }
            (Asked::DiscardElsewhere(request, run, session), Answer::Done(done)) => {
                self.on_discarded_elsewhere(request, run, session, done)
            }
            (Asked::Interrupt(request, name), Answer::Done(done)) => {
                self.on_interrupted(request.as_deref(), &name, done.err().as_ref())
            }
            (Asked::Decision, Answer::Done(done)) => self.on_decided(done.err().as_ref()),
            (Asked::List(purpose), Answer::Listed(listings)) => {
                self.on_listed(purpose, listings, now)
            }
            (Asked::ListPage(page), Answer::Page(read)) => self.on_list_page(*page, read),
            (Asked::HistoryFirst(past), Answer::Page(page)) => self.on_history_first(*past, page),
            (Asked::HistoryPage(past), Answer::Page(page)) => self.on_history_page(*past, page),
            (Asked::Launch(new), Answer::Launched(launched)) => {
                self.on_launched(new, launched, now)
            }
            (Asked::Named(new, session), Answer::Done(_)) => self.on_made(new, session, now),
            (Asked::Figures(reply, session), Answer::Figures(figures)) => {
                self.on_figures(reply, session, figures)
            }
            (Asked::Glance(reply, figures, session), Answer::Glanced(glanced)) => {
                self.on_glanced(reply, figures, &session, glanced)
            }
            // The shell answers what was asked.
            (
                Asked::SwitchFirst
                | Asked::SwitchFollow
                | Asked::SwitchPage
                | Asked::Send(_)
                | Asked::Discard(_)
                | Asked::Elsewhere(..)
                | Asked::DiscardElsewhere(..)
                | Asked::Interrupt(..)
                | Asked::Decision
                | Asked::List(_)
                | Asked::ListPage(_)
                | Asked::HistoryFirst(_)
                | Asked::HistoryPage(_)
                | Asked::Launch(_)
                | Asked::Named(..)
                | Asked::Figures(..)
                | Asked::Glance(..)
                | Asked::Nothing,
                _,
            ) => vec![],
        }
    }

    fn on_event(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        let (response, mut frames) = self.show(recorded, encoded);
        self.note_blocked(recorded);
        acts.extend(self.hold_late(&mut frames));
        if response.is_some() {
            acts.extend(self.finish(response, self.now));
        }
        acts.extend(frames.into_iter().map(Act::Send));
        acts.extend(self.stop_begun());
    }

    fn on_passing(&mut self, passing: &Passing, encoded: &Encoded, acts: &mut Vec<Act>) {
        let Some(view) = self.view.as_ref().filter(|view| view.run.is_some()) else { return };
        let told = self.tokens.on_delta(view, &passing.delta, encoded).into_iter().flatten();
        if self.switch.is_none() {
            return acts.extend(told.map(Act::Send));
        }
        let mut frames = told.collect();
        acts.extend(self.hold_late(&mut frames));
        acts.extend(frames.into_iter().map(Act::Send));
    }

    fn on_caught_up(&mut self, followed: Followed, now: Timestamp) -> Vec<Act> {
        self.now = now;
        let Some(view) = self.view.as_ref().filter(|view| view.run.is_some()) else {
            return vec![];
        };
        let mut frames = vec![];
        for delta in &followed.drafts {
            let told = self.tokens.on_delta(view, delta, &Encoded::default());
            frames.extend(told.into_iter().flatten());
        }
        let mut acts: Vec<Act> = self.hold_late(&mut frames).into_iter().collect();
        acts.extend(frames.into_iter().map(Act::Send));
        acts
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Act> {
        self.now = now;
        match self.stage {
            Stage::Greeting(until) if until <= now => {
                vec![Act::Close { code: NO_CONNECT, reason: "no connect in time" }]
            }
            Stage::Greeting(_) | Stage::Denied | Stage::Connected => self.free(now),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Greeting(until) => Some(until),
            Stage::Denied | Stage::Connected => self.frees_at,
        }
    }
}

fn total_tokens(usage: Option<&Usage>) -> u64 {
    let count = |tokens: Option<u64>| tokens.unwrap_or(0);
    usage.map_or(0, |usage| count(usage.input_tokens).saturating_add(count(usage.output_tokens)))
}

/// Why nothing came of it, in words.
fn words(denied: &Denied, session: Option<&SessionId>) -> String {
    match (denied, session) {
        (Denied::Refused(Refusal::Unauthorized | Refusal::OwnerOnly), _) => DENIED.to_owned(),
        (Denied::Refused(Refusal::SessionUnknown), Some(session)) => not_found(session.as_str()),
        (Denied::Refused(refusal), _) => refusal.to_string(),
        (Denied::Failed(words) | Denied::Code(_, words), _) => words.clone(),
    }
}

fn not_found(session: &str) -> String {
    format!("Session not found: {session}")
}
