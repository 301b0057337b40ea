//! One fact of the journal.

use bytes::Bytes;
use domain::content::Failure;
use domain::passing::Delta;
use domain::session::delivery::Send;
use domain::{
    AgentType, LinkId, MessageId, ModelId, RequestId, RunId, Sequence, SessionId, Timestamp,
    ToolCallId,
};
use serde::{Deserialize, Serialize};

/// One attempt at one send: it reaches the agent at most once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    /// In which session.
    pub session: SessionId,
    /// Which attempt; a retry after a failure is another one. Rises within a session.
    pub number: Sequence,
    /// At which send.
    pub id: MessageId,
}

/// What else is true as soon as a frame is in the outbox. In one record with the frame, because a
/// crash must not come between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// The attempt is over: delivered, or failed like this.
    Settled(Attempt, Option<Failure>),
    /// The session is over.
    Closed(SessionId),
}

/// A session as it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The agent in it.
    pub agent: AgentType,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The folder it was asked to work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// The title it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_title: Option<String>,
    /// The model it was asked to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// The permission mode it was asked to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The agent's earlier conversation that it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// The working tree that was made for it, to be removed with it if nothing is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// For its program, besides its driver's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The launch that it answers; `None` for the session that is there from the start, and
    /// for one whose panel was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<RequestId>,
    /// Recognises its panel after a restart, where it lives in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// An earlier conversation of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// As the agent names it.
    pub id: String,
    /// Its file, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether to go on in a copy.
    #[serde(default)]
    pub fork: bool,
}

/// One fact of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// Whose numbering this is.
    Link(LinkId),
    /// A frame in the outbox. Written by hand, because it is JSON already.
    #[serde(skip)]
    Frame {
        /// Its number.
        number: u64,
        /// As it is sent, with its number inside.
        frame: Bytes,
        /// What is true with it.
        means: Option<Means>,
    },
    /// The relay has everything up to here.
    Acked(u64),
    /// A send was received.
    Received {
        /// Where, and which attempt.
        session: SessionId,
        /// Which attempt.
        attempt: Sequence,
        /// What.
        send: Send,
    },
    /// It is about to be given to the agent.
    Attempting(Attempt),
    /// It is over, and the relay knows: kept so that a late repeat is recognised.
    Settled(Attempt, Option<Failure>),
    /// A session was opened.
    Opened(SessionId, Opened),
    /// A launch of an earlier time: its session is over, its request is still recognised.
    Launched(RequestId, SessionId),
    /// A session is over, but the relay may not know yet.
    Closing(SessionId, Opened),
    /// The run that goes on in a session, or that none does any more. Its beginning is written
    /// before the relay is told of it, its end after: whatever a crash cuts off in between is
    /// told again, which the relay recognises.
    Running(SessionId, Option<Going>),
    /// The proxy was alive, while a run went on.
    Seen(Timestamp),
    /// More words of a message in the making, as they are shown; with a message's first ones, the
    /// call of the subagent that says them. Earlier releases wrote none.
    Piece(
        SessionId,
        Delta,
        #[serde(default, skip_serializing_if = "Option::is_none")] Option<ToolCallId>,
    ),
    /// A message is whole: its pieces are in it.
    Whole(SessionId, MessageId),
}

/// A run that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Going {
    /// Which.
    pub run: RunId,
    /// Since when.
    pub since: Timestamp,
}

impl Record {
    /// Whether what follows may leave before this is on disk. Losing an acknowledgement, or that
    /// a message was whole, costs a repeat that the relay recognises. Pieces survive the proxy's
    /// own crash all the same; with the machine's power the last of them may go.
    pub fn may_wait(&self) -> bool {
        match self {
            Self::Acked(_) | Self::Seen(_) | Self::Piece(..) | Self::Whole(..) => true,
            Self::Link(_)
            | Self::Frame { .. }
            | Self::Received { .. }
            | Self::Attempting(_)
            | Self::Settled(..)
            | Self::Opened(..)
            | Self::Launched(..)
            | Self::Closing(..)
            | Self::Running(..) => false,
        }
    }
}
