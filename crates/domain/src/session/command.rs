//! The commands that people and the proxy send to a session.
//!
//! Not here: what follows from a command (`session`), how a dialect encodes it.

use super::config::AgentConfig;
use super::controls::Control;
use super::delivery::{Send, Told};
use super::prompts::{AnswerDetail, Prompt};
use super::runs::Outcome;
use super::status::{Activity, CloseReason, DownReason, Health, Meta, Via};
use super::transcript::{ContextUse, Notice};
use crate::content::{Digest, Failure, Message, PlanEntry, ToolCall, ToolUpdate, Usage};
use crate::{
    ChoiceId, ConnectionId, Content, LinkPosition, MessageId, Principal, PromptId, RequestId,
    RunId, Sequence, Timestamp,
};

/// Something said to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A person speaks.
    Person(Principal, Wish),
    /// The session's proxy speaks.
    Proxy(Word),
    /// The relay itself speaks.
    Relay(Change),
}

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Say something to the agent.
    Send {
        /// What.
        send: Send,
        /// What the ledger knows of this id, when the session's memory does not reach back.
        earlier: Option<Told>,
    },
    /// Say something to an agent that rests; while it works, this is refused.
    SendAtRest(Send),
    /// Answer a prompt.
    Answer {
        /// The client's id for this request, if it gave one.
        request: Option<RequestId>,
        /// Which prompt.
        prompt: PromptId,
        /// Which button.
        choice: ChoiceId,
        /// What else.
        detail: Option<Content<AnswerDetail>>,
    },
    /// Any other control command. An interrupt's run is filled in here.
    Control {
        /// The client's id for this request.
        request: RequestId,
        /// What.
        control: Control,
    },
    /// Change the words of a waiting message.
    EditQueued {
        /// Which message.
        id: MessageId,
        /// Its new words.
        text: Content<String>,
    },
    /// Take a waiting message out.
    DiscardQueued {
        /// Which message.
        id: MessageId,
    },
    /// Give a waiting message another place.
    MoveQueued {
        /// Which message.
        id: MessageId,
        /// From 0.
        to: usize,
    },
    /// Let what waits go on after an interrupt.
    ResumeQueue,
    /// Name the session.
    Rename(String),
    /// Put the session away, or take it out again.
    Archive(bool),
}

/// What a proxy says, through which connection, at which place of its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The socket it came through.
    pub connection: ConnectionId,
    /// Its number, for a proxy that numbers.
    pub position: Option<LinkPosition>,
    /// What it says.
    pub report: Report,
}

/// What a proxy says about one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Health or activity changed.
    Status {
        /// As the proxy finds it.
        health: Health,
        /// What the agent is doing.
        activity: Option<Activity>,
        /// Why, in words for a person.
        reason: Option<String>,
    },
    /// A message of the transcript.
    Message {
        /// The message.
        message: Message,
        /// Whether the proxy gave it an id.
        has_own_id: bool,
        /// Recognises a delivered send in it.
        echo: Option<Digest>,
    },
    /// A tool call begins.
    ToolCall(ToolCall),
    /// A tool call goes on.
    ToolUpdate(ToolUpdate),
    /// The todo list, whole.
    Plan(Content<Vec<PlanEntry>>),
    /// Something to know.
    Notice(Notice),
    /// How full the context is.
    Context(ContextUse),
    /// A run begins.
    RunStarted {
        /// Which.
        run: RunId,
        /// The send that started it.
        cause: Option<MessageId>,
    },
    /// A run ends.
    RunEnded {
        /// Which.
        run: RunId,
        /// How.
        outcome: Outcome,
        /// What it took.
        usage: Option<Usage>,
    },
    /// A send reached the agent.
    SendDelivered {
        /// Which.
        id: MessageId,
        /// Which attempt at it, if the proxy can say.
        attempt: Option<Sequence>,
        /// The run that it started.
        run: Option<RunId>,
    },
    /// A send did not reach the agent.
    SendFailed {
        /// Which.
        id: MessageId,
        /// Which attempt at it, if the proxy can say.
        attempt: Option<Sequence>,
        /// Why.
        failure: Failure,
    },
    /// The agent waits for a person.
    Asked(Prompt),
    /// The agent no longer waits.
    PromptGone(PromptId),
    /// A control command was tried.
    ControlResult {
        /// Which.
        request: RequestId,
        /// `None` when it was done.
        failure: Option<Failure>,
    },
    /// The configuration was read.
    Config(AgentConfig),
    /// A proxy that came back says what it still has: prompts and a run it does not name are over.
    Resumed {
        /// The prompts that still wait.
        prompts: Vec<PromptId>,
        /// The run that still goes on.
        run: Option<RunId>,
    },
    /// The session ended on its machine.
    Closed {
        /// Why.
        reason: CloseReason,
        /// The client's request, if one closed it.
        request: Option<RequestId>,
    },
}

/// What the relay itself brings about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A proxy names this session as its own.
    Up {
        /// Through which connection.
        via: Via,
        /// As the proxy describes it.
        meta: Box<Meta>,
        /// As the proxy finds it.
        health: Health,
        /// What its agent is doing.
        activity: Option<Activity>,
    },
    /// The connection that carried this session is gone, or no longer names it.
    Down {
        /// Only if it is still reached through this connection; `None` whatever the connection.
        connection: Option<ConnectionId>,
        /// Why.
        reason: DownReason,
    },
    /// The relay starts again after it ended without a word: nothing is connected any more.
    Restarted {
        /// The latest time at which the relay is known to have lived before that.
        alive_at: Timestamp,
    },
    /// It is about to be erased: whoever shows it is told that it is over. One that is reached
    /// stays as it is.
    Over,
    /// Time passed.
    Tick,
}
