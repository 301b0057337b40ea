//! Refusals: normal negative answers. They go to the client that asked and are never logged as
//! errors.
//!
//! Not here: the code of each refusal in a dialect (`wire`, one exhaustive match per dialect).

use crate::fleet::Launch;
use crate::session::controls::Outcome;
use crate::session::delivery::Told;
use crate::{ChoiceId, MessageId, PromptId, RequestId};

/// Why a command changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The principal's role does not allow it.
    #[error("this credential is view-only")]
    Unauthorized,
    /// The principal steers, but this is the owner's.
    #[error("only the owner can do that")]
    OwnerOnly,
    /// Nobody ever heard of that session.
    #[error("no session has this id")]
    SessionUnknown,
    /// The session was closed; its history remains.
    #[error("the session is closed")]
    SessionClosed,
    /// The session's machine is away.
    #[error("the session's machine is not connected")]
    NoProxyConnected,
    /// Unknown, already answered, or expired: the asker cannot tell which, and need not.
    #[error("prompt {0} is not open")]
    PromptNotOpen(PromptId),
    /// The answer is not one of the buttons.
    #[error("prompt {prompt} has no choice {choice}")]
    NoSuchChoice {
        /// The prompt that is open.
        prompt: PromptId,
        /// The button it does not have.
        choice: ChoiceId,
    },
    /// The button needs answers to the agent's questions, and none came.
    #[error("prompt {0} asks questions; the answers are missing")]
    AnswersMissing(PromptId),
    /// The agent asks faster than people answer.
    #[error("a session can have at most {limit} open prompts")]
    TooManyPrompts {
        /// The bound that was met.
        limit: usize,
    },
    /// More waits for the agent than anybody could mean.
    #[error("at most {limit} messages can wait for one agent")]
    QueueFull {
        /// The bound that was met.
        limit: usize,
    },
    /// It was meant for an agent that rests.
    #[error("the agent is already running")]
    AgentAtWork,
    /// It is not waiting (any more).
    #[error("message {0} is not in the queue")]
    NotQueued(MessageId),
    /// The same send again: nothing new happened, this is how it stands.
    #[error("message {} was already sent", .0.id)]
    SendRepeated(Box<Told>),
    /// The same request again: nothing new happened, this is its answer if there is one yet.
    #[error("this request was already made")]
    RequestRepeated(Option<Outcome>),
    /// The same launch again: nothing new happened, this is how it stands.
    #[error("this launch was already requested")]
    LaunchRepeated(Box<Launch>),
    /// Another client's request has that id.
    #[error("request_id in use: {0}")]
    RequestInUse(RequestId),
    /// More requests are in flight than anybody could mean.
    #[error("at most {limit} requests can be in flight")]
    TooManyRequests {
        /// The bound that was met.
        limit: usize,
    },
    /// The agent has no such ability.
    #[error("this agent does not support that")]
    NotSupported,
    /// A proxy speaks about a session that is not (or no longer) its own.
    #[error("the session belongs to another connection")]
    NotThisProxy,
    /// Another machine owns that session.
    #[error("the session belongs to another machine")]
    OtherMachine,
}
