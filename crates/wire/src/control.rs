//! The dialect of Claude Code's remote control (`docs/spec/control.md`): SDK messages, and control
//! requests in both directions, about one session.
//!
//! **Invariant**: every request of a client is answered once. A prompt is a request to every
//! client, and all clients except the one that answered it are notified when it ends.
//!
//! Not here: Claude Code as an agent, which uses the same protocol toward the machine (`agents`).

mod answers;
mod events;
mod frames;
mod join;
mod messages;
mod modes;
mod names;
mod prompts;
mod requests;
mod sends;
mod stream;
mod system;
mod view;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use domain::content::Author;
use domain::passing::Passing;
use domain::session::{Event, Recorded, controls, delivery, prompts as asked, runs, transcript};
use domain::{ConnectionId, MessageId, Principal, PromptId, RequestId, SessionId, Timestamp};

use self::answers::AskedAgain;
use self::frames::{Broken, Frame};
use self::join::{Joining, Wanted};
use self::messages::Frames;
use self::requests::Waiting;
use self::sends::Outgoing;
use self::stream::Streaming;
use self::view::View;
use crate::port::{Limits, Throttle};
use crate::visitor::{Act, Answer, Encoded, Followed, Slot, Visitor};

/// The close code of text that is not JSON.
const NOT_JSON: u16 = 1007;
/// Sends of this connection that are not delivered yet. The relay's queue is shorter; of more, the
/// oldest come back as anybody's.
const OWN_SENDS_MAX: usize = 1_024;

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    /// Names what this connection makes.
    own_name: ConnectionId,
    principal: Option<Principal>,
    limits: Limits,
    wanted: Wanted,
    stage: Stage,
    view: View,
    streaming: Streaming,
    tickets: BTreeMap<u64, Asked>,
    count: u64,
    /// Requests that the session still owes an answer, by our own names for them.
    requests: BTreeMap<RequestId, Waiting>,
    own_sends: VecDeque<MessageId>,
    asked_again: AskedAgain,
    outgoing: Outgoing,
}

/// How far the connection is.
#[derive(Debug)]
enum Stage {
    /// Not let in, for this reason. A first frame is answered before the close, if it comes until
    /// then.
    Refused { words: &'static str, code: u16, until: Timestamp },
    /// On the way to its session.
    Joining(Box<Joining>),
    /// With its session.
    Following,
}

/// What was asked of the shell.
#[derive(Debug)]
enum Asked {
    Follow,
    Page,
    /// A send, as it would be told again.
    Send(Box<delivery::Send>),
    /// A file of the send that is next.
    Store,
    /// A control command or an answer, by our own name for it.
    Control(RequestId),
    /// An answer to this prompt.
    Answer(PromptId),
    /// A send is taken out of the queue for this request.
    Discard(RequestId, MessageId),
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
        let session = wanted.session.clone().unwrap_or_else(|| SessionId::from(""));
        Self {
            own_name: connection,
            principal,
            limits,
            wanted,
            stage: Stage::Joining(Box::default()),
            view: View::new(session),
            streaming: Streaming::default(),
            tickets: BTreeMap::new(),
            count: 0,
            requests: BTreeMap::new(),
            own_sends: VecDeque::new(),
            asked_again: AskedAgain::default(),
            outgoing: Outgoing::default(),
        }
    }

    /// Takes a frame of a client that is with its session.
    fn take(&mut self, frame: Frame, now: Timestamp) -> Vec<Act> {
        match frame {
            Frame::User(user) => self.on_user(user, now),
            Frame::Request { id, request } => self.on_request(id, &request),
            Frame::Response(response) => self.on_response(&response),
            Frame::Cancel(id) => {
                self.forget(&id);
                vec![]
            }
            Frame::KeepAlive | Frame::Unknown => vec![],
        }
    }

    /// Answers a frame that cannot be read.
    fn on_broken(&self, broken: Broken) -> Vec<Act> {
        match broken {
            Broken::NotJson => {
                vec![Act::Close { code: NOT_JSON, reason: "the frame is not JSON" }]
            }
            Broken::Request(id, words) => vec![requests::error(&id, &words)],
            Broken::User(id, words) => {
                vec![self.send_failed(id.map(MessageId::from).as_ref(), &words)]
            }
            Broken::Other => vec![],
        }
    }

    /// Answers a frame that comes too soon after the others.
    fn too_fast(&self, frame: &Frame) -> Vec<Act> {
        let words = "Too many frames; try again in a moment";
        match frame {
            Frame::Request { id: Some(id), .. } => vec![requests::error(id, words)],
            Frame::User(user) => {
                let id = user.uuid.clone().map(MessageId::from);
                vec![self.send_failed(id.as_ref(), words)]
            }
            Frame::Response(_) => vec![Act::Send(join::note(&self.view.session, words))],
            Frame::Request { id: None, .. }
            | Frame::Cancel(_)
            | Frame::KeepAlive
            | Frame::Unknown => vec![],
        }
    }

    /// Answers a frame of a client that is not let in.
    fn turn_away(frame: &Frame, words: &str) -> Vec<Act> {
        match frame {
            Frame::Request { id: Some(id), .. } => vec![requests::error(id, words)],
            Frame::User(user) => {
                let id = user.uuid.clone().map(MessageId::from);
                let nowhere = View::new(SessionId::from(""));
                vec![Act::Send(sends::failed(&nowhere, id.as_ref(), words))]
            }
            Frame::Request { id: None, .. }
            | Frame::Response(_)
            | Frame::Cancel(_)
            | Frame::KeepAlive
            | Frame::Unknown => vec![],
        }
    }

    /// The frames of an event, for this connection.
    fn show(&mut self, recorded: &Recorded, encoded: &Encoded) -> Vec<Bytes> {
        let mut frames = vec![];
        if self.view.wants_init(&recorded.event) {
            let mut init = Frames::of(&self.view, recorded);
            init.push(system::init(&self.view));
            frames.extend(init.unnumbered());
        }
        match &recorded.event {
            Event::Transcript(transcript::Event::Message(message)) => {
                let own = self.own_sends.iter().position(|id| *id == message.id);
                if let (Some(own), Author::User) = (own, message.author) {
                    self.own_sends.remove(own);
                    let mut own = Frames::of(&self.view, recorded);
                    messages::message(&mut own, &self.view, message, true);
                    frames.extend(own.bytes());
                    return frames;
                }
                if self.wanted.partial && message.author == Author::Assistant {
                    frames.extend(self.streaming.finish(&self.view, message));
                }
                frames.extend_from_slice(self.shared(recorded, encoded));
            }
            Event::Transcript(transcript::Event::ToolUpdate(update)) => {
                frames.extend(self.tool_update(recorded, update, encoded));
            }
            Event::Prompt(asked::Event::Settled { request, .. }) => {
                let shared = self.shared(recorded, encoded);
                let skip = usize::from(self.answered(request));
                frames.extend(shared.iter().skip(skip).cloned());
            }
            Event::Run(runs::Event::Ended { outcome, usage, .. }) => {
                frames.extend(self.streaming.cut(&self.view));
                let mut result = Frames::of(&self.view, recorded);
                let usage = usage.as_ref();
                result.push(system::recorded_result(&self.view, outcome, usage, recorded));
                frames.extend(result.unnumbered());
                frames.extend_from_slice(self.shared(recorded, encoded));
            }
            Event::Delivery(delivery::Event::Failed { id, failure }) => {
                frames.extend(self.on_send_failed(id, failure));
            }
            Event::Control(controls::Event::Settled { request, failure, .. }) => {
                frames.extend(self.settle(request, failure.as_ref()));
            }
            Event::Transcript(_)
            | Event::Prompt(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_) => frames.extend_from_slice(self.shared(recorded, encoded)),
            Event::Delivery(_) | Event::Queue(_) | Event::Control(_) => {}
        }
        frames
    }

    fn shared<'a>(&self, recorded: &Recorded, encoded: &'a Encoded) -> &'a [Bytes] {
        encoded.frames(Slot::Control, || events::shared(&self.view, recorded))
    }

    /// The end of a tool call, or a sign of life of it.
    fn tool_update(
        &self,
        recorded: &Recorded,
        update: &domain::content::ToolUpdate,
        encoded: &Encoded,
    ) -> Vec<Bytes> {
        let tool = self.view.tools.get(&update.id);
        let parent = tool.and_then(|tool| tool.parent.as_ref());
        // Who joined later knows neither the parent nor what a person said about it.
        let is_own = parent.is_some() || self.view.refusal(update).is_some();
        let mut frames = Frames::of(&self.view, recorded);
        match (messages::tool_end(&self.view, update, parent), tool) {
            (Some(end), _) if is_own => frames.push(end),
            (Some(_), _) | (None, None) => return self.shared(recorded, encoded).to_vec(),
            (None, Some(tool)) => frames.push(serde_json::json!({
                "type": "tool_progress", "tool_use_id": update.id, "tool_name": tool.name,
                "parent_tool_use_id": tool.parent,
                "elapsed_time_seconds": recorded.at.ms_since(tool.began_at) / 1_000,
            })),
        }
        frames.bytes()
    }

    fn ticket(&mut self, asked: Asked) -> u64 {
        self.count += 1;
        self.tickets.insert(self.count, asked);
        self.count
    }

    fn own(&mut self, id: &MessageId) {
        if self.own_sends.contains(id) {
            return;
        }
        if self.own_sends.len() >= OWN_SENDS_MAX {
            self.own_sends.pop_front();
        }
        self.own_sends.push_back(id.clone());
    }
}

impl Visitor for Connection {
    fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    fn on_open(&mut self, now: Timestamp) -> Vec<Act> {
        self.open(now)
    }

    fn on_text(&mut self, text: &str, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        let frame = match frames::read(text) {
            Ok(Frame::KeepAlive) => return vec![],
            Ok(frame) => frame,
            Err(broken) if throttle.frame(now) => return self.on_broken(broken),
            Err(_) => return vec![],
        };
        let is_send = matches!(frame, Frame::User(_));
        if !throttle.frame(now) || (is_send && !throttle.send(now)) {
            return self.too_fast(&frame);
        }
        match &self.stage {
            Stage::Refused { words, code, .. } => {
                let (code, reason) = (*code, *words);
                let mut acts = Self::turn_away(&frame, reason);
                acts.push(Act::Close { code, reason });
                acts
            }
            Stage::Joining(_) => self.hold(frame, text.len()),
            Stage::Following => self.take(frame, now),
        }
    }

    fn on_answer(&mut self, ticket: u64, answer: Answer, now: Timestamp) -> Vec<Act> {
        let Some(asked) = self.tickets.remove(&ticket) else { return vec![] };
        match (asked, answer) {
            (Asked::Follow, Answer::Followed(followed)) => self.on_followed(followed, now),
            (Asked::Page, Answer::Page(page)) => self.on_page(page, now),
            (Asked::Send(send), Answer::Done(done)) => self.on_sent(&send, done),
            (Asked::Store, Answer::Stored(stored)) => self.on_stored(stored, now),
            (Asked::Control(request), Answer::Done(done)) => self.on_asked(&request, done),
            (Asked::Answer(prompt), Answer::Done(done)) => self.on_answered(&prompt, done),
            (Asked::Discard(request, id), Answer::Done(done)) => {
                self.on_discarded(&request, id, done.is_ok());
                vec![]
            }
            // The shell answers what was asked.
            (
                Asked::Follow
                | Asked::Page
                | Asked::Send(_)
                | Asked::Store
                | Asked::Control(_)
                | Asked::Answer(_)
                | Asked::Discard(..),
                _,
            ) => vec![],
        }
    }

    fn on_event(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        let frames = self.show(recorded, encoded);
        join::remember_words(&mut self.view, &recorded.event, &frames);
        self.view.apply(recorded);
        acts.extend(frames.into_iter().map(Act::Send));
        acts.extend(self.ask_after(&recorded.event));
        if matches!(self.stage, Stage::Joining(_)) {
            self.hold_late(acts);
        }
    }

    fn on_passing(&mut self, passing: &Passing, encoded: &Encoded, acts: &mut Vec<Act>) {
        if !self.wanted.partial || !matches!(self.stage, Stage::Following) {
            return;
        }
        let delta = &passing.delta;
        let Some(before) = self.streaming.before(&self.view, delta) else { return };
        acts.extend(before.into_iter().map(Act::Send));
        let words = encoded.frames(Slot::ControlPartial, || {
            stream::words(&self.view.session, delta).into_iter().collect()
        });
        acts.extend(words.iter().cloned().map(Act::Send));
    }

    fn on_caught_up(&mut self, followed: Followed, _now: Timestamp) -> Vec<Act> {
        let drafts = self.drafts(&followed.drafts);
        drafts.into_iter().map(Act::Send).collect()
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Act> {
        match self.stage {
            Stage::Refused { words, code, until } if until <= now => {
                vec![Act::Close { code, reason: words }]
            }
            Stage::Refused { .. } | Stage::Joining(_) | Stage::Following => vec![],
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Refused { until, .. } => Some(until),
            Stage::Joining(_) | Stage::Following => None,
        }
    }
}
