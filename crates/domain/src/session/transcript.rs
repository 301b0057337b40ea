//! The conversation, and how repeated messages are recognised.
//!
//! A proxy may report its history again after a reconnect. A message is recognised by its id. A
//! message without an id is recognised by its digest: each old message at most once per connection
//! and in order, so that an agent that says "Done." twice is shown twice. A delivered send is
//! already in the transcript; the copy that an agent's window shows is its echo, whenever it
//! arrives.
//!
//! Not here: computing digests (`wire`), token deltas (`passing`).

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::content::{
    Author, Digest, Message, PlanEntry, ToolCall, ToolDetail, ToolStatus, ToolUpdate,
};
use crate::{Content, MessageId, ToolCallId};

/// Messages that are remembered for recognising repeats.
pub const MESSAGES_REMEMBERED_MAX: usize = 1_024;
/// Delivered sends whose echo a scraping proxy may still report.
pub const ECHOES_AWAITED_MAX: usize = 64;

/// Tool calls at work that are remembered. The end of an older one is not told when its run is cut
/// off.
pub const TOOLS_OPEN_MAX: usize = 256;

/// Facts about the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Somebody said something.
    Message(Message),
    /// The agent uses a tool.
    ToolCall(ToolCall),
    /// A tool call went on.
    ToolUpdate(ToolUpdate),
    /// The agent's todo list, whole.
    Plan(Content<Vec<PlanEntry>>),
    /// Something to know that nobody said: a rate limit, a compaction.
    Notice(Notice),
    /// How full the agent's context is.
    Context(ContextUse),
    /// The agent UI showed a delivered send; it is in the transcript already.
    Echoed(Digest),
}

/// How much an event adds to what a session counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Messages of people and of the agent.
    pub messages: u64,
    /// Tool calls that came to their end.
    pub results: u64,
}

impl Event {
    /// What this event adds to the counts of its session.
    pub fn counts(&self) -> Counts {
        let (messages, results) = match self {
            Self::Message(message) => (message.author != Author::System, false),
            Self::ToolCall(call) => (false, call.status.is_over()),
            Self::ToolUpdate(update) => (false, update.status.is_over()),
            Self::Plan(_) | Self::Notice(_) | Self::Context(_) | Self::Echoed(_) => (false, false),
        };
        Counts { messages: messages.into(), results: results.into() }
    }
}

/// Something to know that nobody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// A stable word: `rate_limit`, `compaction`, `error`, …
    pub kind: String,
    /// For a person.
    pub text: String,
}

/// How full the agent's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUse {
    /// Tokens in it.
    pub used_tokens: u64,
    /// Tokens that fit.
    pub window_tokens: u64,
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    ids: BTreeSet<MessageId>,
    order: VecDeque<Known>,
    /// How many were dropped from the front of `order`: the rest keep their places.
    #[serde(default, skip_serializing_if = "is_zero")]
    dropped: u64,
    echoes: VecDeque<Digest>,
    /// Echoes that were seen before the delivery was reported.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    early: VecDeque<Digest>,
    /// Tool calls of which nothing says yet that they are over, the oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    tools: VecDeque<ToolCallId>,
    /// How full the context was when the agent last said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<ContextUse>,
    /// Messages of people and of the agent, ever.
    #[serde(default)]
    messages: u64,
    /// Ends of tool calls, ever.
    #[serde(default)]
    results: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    id: MessageId,
    digest: Option<Digest>,
}

/// How far a connection has come in re-sending messages that carry no id of their own.
///
/// It belongs to the connection, not to the session: nothing of it is recorded. Whoever performs
/// commands keeps it for as long as the process lives, also when it reads the ledger again after
/// a failed commit: the proxy goes on from where it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayCursor {
    /// The place, counted from the session's first message, from which the next one is matched.
    pub(super) place: u64,
}

/// What a message is, seen against what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// Nobody heard it before.
    New,
    /// It was told before.
    Repeat,
    /// The agent UI's copy of a delivered send.
    Echo,
}

impl Transcript {
    /// Whether a message is news. `has_own_id` is false where the edge had to invent the id.
    pub fn sight(
        &self,
        message: &Message,
        has_own_id: bool,
        echo: Option<Digest>,
        cursor: &ReplayCursor,
    ) -> Sighting {
        if self.ids.contains(&message.id) {
            return Sighting::Repeat;
        }
        let echoed = echo.is_some_and(|digest| self.echoes.contains(&digest));
        if message.author == Author::User && echoed {
            return Sighting::Echo;
        }
        // An id that is not known is news, unless it is the window's own name for a send.
        let by_digest = !has_own_id || echo.is_some();
        match self.place(message, echo, cursor).filter(|_| by_digest) {
            Some(_) => Sighting::Repeat,
            None => Sighting::New,
        }
    }

    /// Whether a message of this id is remembered.
    pub fn knows(&self, id: &MessageId) -> bool {
        self.ids.contains(id)
    }

    /// What becomes of the tool calls at work when the agent that made them is gone.
    pub fn cancel_tools(&self) -> impl Iterator<Item = Event> {
        self.tools.iter().map(|id| {
            let (id, status) = (id.clone(), ToolStatus::Cancelled);
            Event::ToolUpdate(ToolUpdate {
                id,
                status,
                detail: Content::Open(ToolDetail::default()),
            })
        })
    }

    /// How full the agent's context is, where it said so.
    pub fn context(&self) -> Option<ContextUse> {
        self.context
    }

    /// How many messages people and the agent said, ever.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// How many tool calls came to their end, ever.
    pub fn results(&self) -> u64 {
        self.results
    }

    /// Where among those not matched yet a message like this one is.
    pub fn place(
        &self,
        message: &Message,
        echo: Option<Digest>,
        cursor: &ReplayCursor,
    ) -> Option<u64> {
        let echo = echo.filter(|_| message.author == Author::User);
        let alike = |known: &Known| {
            known.digest.is_some() && (known.digest == message.digest || known.digest == echo)
        };
        let matched = usize::try_from(cursor.place.saturating_sub(self.dropped)).ok()?;
        let mut later = (self.dropped..).zip(&self.order).skip(matched);
        later.find(|(_, known)| alike(known)).map(|(place, _)| place)
    }

    /// The place behind the last message.
    pub fn end(&self) -> u64 {
        self.dropped + self.order.len() as u64
    }

    /// A delivered send may come back from the agent's UI, unless it did already.
    pub fn await_echo(&mut self, digest: Digest) {
        if !self.forget_early(digest) {
            push_bounded(&mut self.echoes, digest);
        }
    }

    /// How many echoes of this digest were seen before their delivery was reported.
    pub fn early(&self, digest: Digest) -> usize {
        self.early.iter().filter(|seen| **seen == digest).count()
    }

    /// The delivery that an early echo was waiting for is settled. Whether there was one.
    pub fn forget_early(&mut self, digest: Digest) -> bool {
        let place = self.early.iter().position(|seen| *seen == digest);
        place.and_then(|place| self.early.remove(place)).is_some()
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event) {
        let counts = event.counts();
        self.messages += counts.messages;
        self.results += counts.results;
        match event {
            Event::Message(message) => {
                self.ids.insert(message.id.clone());
                self.order.push_back(Known { id: message.id.clone(), digest: message.digest });
                if self.order.len() > MESSAGES_REMEMBERED_MAX {
                    if let Some(oldest) = self.order.pop_front() {
                        self.ids.remove(&oldest.id);
                    }
                    self.dropped += 1;
                }
            }
            // The next one like it is a message of its own.
            Event::Echoed(digest) => {
                match self.echoes.iter().position(|awaited| awaited == digest) {
                    Some(place) => drop(self.echoes.remove(place)),
                    None => push_bounded(&mut self.early, *digest),
                }
            }
            Event::ToolCall(ToolCall { id, status, .. })
            | Event::ToolUpdate(ToolUpdate { id, status, .. }) => self.follow_tool(id, *status),
            Event::Plan(_) | Event::Notice(_) => {}
            Event::Context(context) => self.context = Some(*context),
        }
    }

    fn follow_tool(&mut self, id: &ToolCallId, status: ToolStatus) {
        self.tools.retain(|open| open != id);
        if !status.is_over() {
            self.tools.push_back(id.clone());
            if self.tools.len() > TOOLS_OPEN_MAX {
                self.tools.pop_front();
            }
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn push_bounded(digests: &mut VecDeque<Digest>, digest: Digest) {
    digests.push_back(digest);
    if digests.len() > ECHOES_AWAITED_MAX {
        digests.pop_front();
    }
}
