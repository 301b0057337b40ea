//! How a connection joins its session: which session, from which point, and what it is shown
//! first.
//!
//! **Invariant**: events before the join are sent before events after it. Frames that a client
//! sends during the join wait and are handled in order.

use bytes::Bytes;
use domain::content::{Author, Part};
use domain::passing::Delta;
use domain::session::{Event, runs, transcript};
use domain::{Sequence, SessionId, Timestamp};
use serde_json::{Value, json};

use super::frames::Frame;
use super::messages::{encode, informational};
use super::view::{Run, View};
use super::{Asked, Connection, Stage, events, names, prompts, sends, stream, system};
use crate::port::{Denied, PageOf};
use crate::visitor::{Act, Followed};

/// The close code of a connection without a credential, or with one that does not allow this.
const FORBIDDEN: u16 = 4003;
/// The close code of a connection to a session that is not there.
const NO_SESSION: u16 = 4004;
/// How long a client that is not let in may take to say its first frame, which is answered.
const REFUSED_WAIT_MS: u64 = 2_000;
/// The close code of a client that says too much before it was let in.
const TOO_MUCH: u16 = 1008;
/// The close code of a client that is to come again.
const TRY_AGAIN: u16 = 1013;
/// Events that are read at once.
const PAGE_EVENTS: usize = 500;
/// Frames of a client that wait for the join, and their bytes; more close the socket.
const EARLY_MAX: usize = 64;
const EARLY_BYTES_MAX: usize = 8 << 20;
/// Frames for a client that wait until the past is told; more close the socket.
const LATE_MAX: usize = 4_096;

/// What the address asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) session: Option<SessionId>,
    /// Whether words are shown in the making.
    pub(super) partial: bool,
    /// Everything that was said after this event.
    pub(super) after: Option<Sequence>,
}

impl Wanted {
    /// Reads what stands behind the question mark. What is unknown is ignored.
    pub(super) fn read(query: &str) -> Self {
        let mut wanted = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "session" => wanted.session = SessionId::parse(value),
                "partial" => wanted.partial = matches!(value, "1" | "true"),
                "from_sequence_num" => wanted.after = value.parse().ok().map(Sequence),
                _ => {}
            }
        }
        wanted
    }
}

/// The way to the session.
#[derive(Debug, Default)]
pub(super) struct Joining {
    early: Vec<Frame>,
    early_bytes: usize,
    /// What is known of the past, while it is told.
    past: Option<View>,
    /// How far it is told.
    told: Sequence,
    /// What the shell said of the session.
    followed: Option<Box<Followed>>,
    late: Vec<Bytes>,
}

impl Connection {
    pub(super) fn open(&mut self, now: Timestamp) -> Vec<Act> {
        if self.principal.is_none() {
            return self.refuse("This connection has no credential", FORBIDDEN, now);
        }
        let Some(session) = self.wanted.session.clone() else {
            return self.refuse("Name a session: /ws/control?session=ID", NO_SESSION, now);
        };
        match self.wanted.after {
            Some(after) => vec![self.read(session, after, None)],
            None => vec![self.follow(session)],
        }
    }

    /// A frame came before the session was reached.
    pub(super) fn hold(&mut self, frame: Frame, bytes: usize) -> Vec<Act> {
        let Stage::Joining(joining) = &mut self.stage else { return vec![] };
        joining.early_bytes += bytes;
        if joining.early.len() >= EARLY_MAX || joining.early_bytes > EARLY_BYTES_MAX {
            let reason = "too many frames before the session was joined";
            return vec![Act::Close { code: TOO_MUCH, reason }];
        }
        joining.early.push(frame);
        vec![]
    }

    /// Frames for a client that still hears of the past.
    pub(super) fn hold_late(&mut self, acts: &mut Vec<Act>) {
        let Stage::Joining(joining) = &mut self.stage else { return };
        for act in std::mem::take(acts) {
            match act {
                Act::Send(frame) => joining.late.push(frame),
                other @ (Act::Close { .. }
                | Act::List { .. }
                | Act::Follow { .. }
                | Act::Glance { .. }
                | Act::Figures { .. }
                | Act::Wish { .. }
                | Act::Launch { .. }
                | Act::Read { .. }
                | Act::Store { .. }
                | Act::Load { .. }
                | Act::Pair { .. }
                | Act::Recognise { .. }
                | Act::Spend { .. }
                | Act::Identify { .. }) => acts.push(other),
            }
        }
        if joining.late.len() > LATE_MAX {
            let reason = "too much happened meanwhile; connect again";
            acts.push(Act::Close { code: TRY_AGAIN, reason });
        }
    }

    pub(super) fn on_page(&mut self, page: Result<PageOf, Denied>, now: Timestamp) -> Vec<Act> {
        let (Stage::Joining(joining), Some(session)) =
            (&mut self.stage, self.wanted.session.clone())
        else {
            return vec![];
        };
        let Ok(page) = page else {
            return self.refuse("No session has this id", NO_SESSION, now);
        };
        let mut acts = vec![];
        let after = joining.told.max(self.wanted.after.unwrap_or_default());
        if page.first_kept > after.next() && joining.past.is_none() {
            let words = "Earlier messages are no longer stored";
            acts.push(Act::Send(note(&session, words)));
        }
        let past = joining.past.get_or_insert_with(|| {
            // It may begin in the middle of a run.
            View { run: Some(Run::default()), ..View::new(session.clone()) }
        });
        joining.told = after;
        for recorded in &page.events {
            let frames = events::past(past, recorded);
            remember_words(past, &recorded.event, &frames);
            past.apply(recorded);
            acts.extend(frames.into_iter().map(Act::Send));
            joining.told = recorded.sequence;
        }
        let told = joining.told;
        let upto = joining.followed.as_ref().map(|followed| followed.head);
        let is_empty = page.events.is_empty();
        match upto {
            Some(head) if told >= head || is_empty => acts.extend(self.arrive(now)),
            None if !page.has_more || is_empty => acts.push(self.follow(session)),
            Some(_) | None => acts.push(self.read(session, told, upto)),
        }
        acts
    }

    pub(super) fn on_followed(
        &mut self,
        followed: Option<Box<Followed>>,
        now: Timestamp,
    ) -> Vec<Act> {
        let Stage::Joining(joining) = &mut self.stage else { return vec![] };
        let Some(followed) = followed else {
            return self.refuse("No session has this id", NO_SESSION, now);
        };
        let (session, head) = (followed.session.clone(), followed.head);
        self.view = View::of(session.clone(), followed.glance.clone());
        let (told, has_past) = (joining.told, joining.past.is_some());
        joining.followed = Some(followed);
        if has_past && told < head {
            return vec![self.read(session, told, Some(head))];
        }
        self.arrive(now)
    }

    /// Everything before is told: from here on it is live.
    fn arrive(&mut self, now: Timestamp) -> Vec<Act> {
        let Stage::Joining(joining) = std::mem::replace(&mut self.stage, Stage::Following) else {
            return vec![];
        };
        let mut acts: Vec<Act> = vec![];
        if let Some(followed) = joining.followed {
            acts.extend(self.greet(&followed).into_iter().map(Act::Send));
        }
        acts.extend(joining.late.into_iter().map(Act::Send));
        for frame in joining.early {
            acts.extend(self.take(frame, now));
        }
        acts
    }

    /// How things stand: a run that goes on, questions that wait, words in the making.
    fn greet(&mut self, followed: &Followed) -> Vec<Bytes> {
        let mut told = vec![];
        let place = format!("join {}", followed.head);
        let mut push = |mut frame: Value| {
            let at = told.len().to_string();
            frame["uuid"] = json!(names::of(&[followed.session.as_str(), &place, &at]));
            frame["session_id"] = json!(followed.session);
            told.push(encode(&frame));
        };
        let then = View::of(followed.session.clone(), followed.glance.clone());
        if then.run.is_some() {
            push(system::init(&then));
        }
        if then.state() != "idle" {
            push(system::state(then.state()));
        }
        told.extend(then.prompts.values().map(|prompt| encode(&prompts::request(prompt))));
        // With the past told, these may be over already; then their end is told next.
        told.extend(self.drafts(&followed.drafts));
        told
    }

    /// Words in the making, from their start.
    pub(super) fn drafts(&mut self, drafts: &[Delta]) -> Vec<Bytes> {
        if !self.wanted.partial {
            return vec![];
        }
        self.streaming.restart();
        let mut told = vec![];
        for delta in drafts {
            let Some(before) = self.streaming.before(&self.view, delta) else { continue };
            told.extend(before);
            told.extend(stream::words(&self.view.session, delta));
        }
        told
    }

    fn follow(&mut self, session: SessionId) -> Act {
        Act::Follow { session, ticket: self.ticket(Asked::Follow) }
    }

    fn read(&mut self, session: SessionId, after: Sequence, upto: Option<Sequence>) -> Act {
        let ticket = self.ticket(Asked::Page);
        Act::Read { session, after, upto, limit: PAGE_EVENTS, ticket }
    }

    /// Answers what was said so far, and closes. A client that said nothing yet gets an error
    /// `result`, and its first frame may still come.
    fn refuse(&mut self, words: &'static str, code: u16, now: Timestamp) -> Vec<Act> {
        let until = now.plus_ms(REFUSED_WAIT_MS);
        let refused = Stage::Refused { words, code, until };
        let early = match std::mem::replace(&mut self.stage, refused) {
            Stage::Joining(joining) => joining.early,
            Stage::Refused { .. } | Stage::Following => vec![],
        };
        // Without a credential the first frame is what told the dialect: it comes for certain.
        if early.is_empty() && code == FORBIDDEN {
            return vec![];
        }
        if early.is_empty() {
            return vec![Act::Send(sends::failed(&self.view, None, words))];
        }
        let mut acts: Vec<Act> =
            early.iter().flat_map(|frame| Self::turn_away(frame, words)).collect();
        acts.push(Act::Close { code, reason: words });
        acts
    }
}

/// Keeps the frame with the agent's last words of a run, for its result.
pub(super) fn remember_words(view: &mut View, event: &Event, frames: &[Bytes]) {
    let Some(run) = &mut view.run else { return };
    match event {
        Event::Transcript(transcript::Event::Message(message))
            if message.author == Author::Assistant =>
        {
            run.messages += 1;
            let mut parts = message.parts.open().into_iter().flatten().rev();
            let last = parts.find(|part| !matches!(part, Part::ToolCall(_)));
            let has_words = matches!(last, Some(Part::Text(_)));
            // A subagent's words are not the answer.
            if has_words && message.parent.is_none() {
                run.last_words = frames.last().cloned();
            }
        }
        Event::Run(runs::Event::Started { .. } | runs::Event::Ended { .. })
        | Event::Transcript(_)
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_) => {}
    }
}

/// Something to know, about no event.
pub(super) fn note(session: &SessionId, words: &str) -> Bytes {
    let mut frame = informational(words, "warning");
    frame["session_id"] = json!(session);
    frame["uuid"] = json!(names::of(&[session.as_str(), words]));
    encode(&frame)
}
