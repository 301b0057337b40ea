//! The JSON shapes that several frames share, each with its conversion to and from the domain.
//!
//! A frame is an [`Envelope`] and a body, both read from the same text. The envelope says what the
//! frame is and what it concerns; the body has the fields of this frame type.
//!
//! Not here: the frames themselves, and what follows from one.

mod catalog;
mod config;
mod delta;
mod digest;
mod envelope;
mod error;
pub mod id;
mod json;
mod message;
mod prompt;
mod runs;
mod session;
mod tools;
mod words;

pub use crate::echo::echo_digest;
pub use crate::time::Time;
pub use catalog::{AgentEntry, Conversation, Conversations, LimitsEntry, ResumableList};
pub use config::AgentConfig;
pub use delta::{MessageDelta, VoiceWord};
pub use digest::message_digest;
pub use envelope::{Envelope, Malformed, VERSION, encode, read_body};
pub use error::{ErrorBody, failure_of};
pub use json::Json;
pub(crate) use message::text_of;
pub use message::{Attachment, AuthorWord, Message, Part, Sealed};
pub use prompt::{AnswerDetail, Choice, EffectWord, Prompt};
pub use runs::{
    ContextUsage, Notice, OutcomeWord, Plan, PlanEntry, PlanStatusWord, RunEnded, RunStarted, Usage,
};
pub use session::{Activity, CloseReasonWord, DownReasonWord, HealthWord, Session};
pub use tools::{
    Diff, Location, OUTPUT_SHOWN_BYTES_MAX, ToolCall, ToolKindWord, ToolStatusWord, ToolUpdate,
    character_before,
};
pub(crate) use words::words;
