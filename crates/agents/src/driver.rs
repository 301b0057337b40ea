//! The one face that every agent shows to the proxy.
//!
//! Not here: whether an order may be given twice (`proxy`, which gives each one once).

use std::path::PathBuf;

use domain::passing::Delta;
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::prompts::AnswerDetail;
use domain::{ChoiceId, Content, MessageId, PromptId, RequestId, Sequence, Timestamp};

/// An attachment on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As the sender called it. Not a path: it may say anything.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// How large it is.
    pub size_bytes: u64,
}

/// What the proxy asks of an agent. Each is asked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Give this to the agent. Answered by [`Report::SendDelivered`] on evidence, or by
    /// [`Report::SendFailed`] when the agent certainly does not have it.
    Deliver {
        /// What.
        send: Send,
        /// Which attempt at it.
        attempt: Sequence,
        /// Its attachments, in their order.
        files: Vec<File>,
    },
    /// Did the agent get this before the proxy was cut off? Answered by [`Output::LookedUp`].
    LookUp {
        /// Which send.
        id: MessageId,
        /// Which attempt at it.
        attempt: Sequence,
    },
    /// Press this button. Answered by [`Report::ControlResult`].
    Answer {
        /// Names the order.
        request: RequestId,
        /// Which prompt.
        prompt: PromptId,
        /// Which button; `None`: the prompt is over, press nothing.
        choice: Option<ChoiceId>,
        /// What else the answer carries.
        detail: Option<Content<AnswerDetail>>,
    },
    /// Carry out a control command. Answered by [`Report::ControlResult`], or for
    /// [`Control::Close`] by [`Report::Closed`].
    Control {
        /// Names the order.
        request: RequestId,
        /// What to do.
        control: Control,
    },
}

/// What an agent's own record says of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The agent has it.
    Found,
    /// The agent provably does not have it.
    Absent,
    /// Nobody can tell.
    Unknown,
}

/// What a driver observed or needs, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "passed on at once, never stored in numbers")]
pub enum Output {
    /// A line for the agent's own record. It is on disk before what follows counts.
    Remember(String),
    /// An answer to [`Order::LookUp`].
    LookedUp {
        /// Which send.
        id: MessageId,
        /// Which attempt at it.
        attempt: Sequence,
        /// What the record says.
        found: Lookup,
    },
    /// Something for the relay's ledger.
    Report(Report),
    /// Words of a message in the making.
    Passing(Delta),
}

/// One agent session, seen by what is known of its program. Pure: time is an argument.
pub trait Driver: std::fmt::Debug + std::marker::Send {
    /// The session begins, or begins again after the proxy was away: its configuration and state.
    fn start(&mut self, now: Timestamp) -> Vec<Output>;
    /// The proxy asks something.
    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output>;
    /// The time of [`Driver::deadline`] has come (or passed, or not quite: look again).
    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output>;
    /// When to call [`Driver::on_deadline`] next.
    fn deadline(&self) -> Option<Timestamp>;
}
