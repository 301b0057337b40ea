//! The interface of every agent to the proxy.
//!
//! A driver is pure: it receives the program's output, the proxy's orders and the current time, and
//! returns what to do. It writes everything that it must know after a crash into its notes before
//! it acts.
//!
//! Not here: whether an order may be given twice (`proxy`, which gives each one once), processes
//! and files themselves (`proxy`).

use std::path::PathBuf;

use domain::content::Failure;
use domain::passing::Delta;
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::prompts::AnswerDetail;
use domain::{ChoiceId, Content, MessageId, PromptId, RequestId, Sequence, Timestamp, ToolCallId};

use crate::panel;
use crate::{FileFault, FileJob, Kept, Picture, Program, TerminalId, TerminalJob, TerminalNews};

/// An attachment on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As the sender called it. Not a path: it may say anything.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// How large it is.
    pub size_bytes: u64,
    /// The picture itself, where it is one and small enough to be handed over as such.
    pub image: Option<Image>,
}

/// A picture, ready to be handed to an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// `image/png`, …
    pub media_type: String,
    /// Its bytes.
    pub base64: String,
}

/// Without the picture: it is long.
impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} characters)", self.media_type, self.base64.len())
    }
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
    /// Nothing was asked for long: end the program, keep the session. Only given to a driver
    /// that [`Driver::is_at_rest`]. Not answered.
    Rest,
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

/// What happened to the agent's program, or came of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A line of its standard output, without its end.
    Line(String),
    /// A line of its standard error.
    Complaint(String),
    /// The program is no more, or never was.
    Ended(Ended),
    /// What came of [`Output::Read`].
    Read {
        /// As it was asked for.
        path: PathBuf,
        /// Its text (where it is very long, the end of it); `None` where there is no such file.
        text: Option<String>,
    },
    /// What came of [`Output::File`]: the text that was asked for, or nothing to tell.
    Filed {
        /// Which job.
        number: u64,
        /// What came of it.
        outcome: Result<Option<String>, FileFault>,
    },
    /// Something happened to a terminal of [`Output::Terminal`].
    Terminal(TerminalId, TerminalNews),
    /// What came of [`Output::Keep`].
    Kept {
        /// Which picture.
        message: MessageId,
        /// Its name at the relay, or why there is none.
        outcome: Kept,
    },
    /// Something happened to the session's panel.
    Panel(panel::News),
    /// A picture that a proxy before this one was to keep, and did not: [`Output::Keep`] anew.
    Held(Picture),
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It could not be started.
    NotStarted(Failure),
    /// With this code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// The proxy ended it: it took more than it may.
    Guarded(Failure),
}

impl Ended {
    /// In words for a person.
    pub fn words(&self) -> String {
        match self {
            Self::NotStarted(failure) | Self::Guarded(failure) => failure.message.clone(),
            Self::Exited(code) => format!("exit code {code}"),
            Self::Killed(signal) => format!("killed by signal {signal}"),
        }
    }
}

/// What a driver observed or needs, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A line for the session's notes. It is on disk before what follows counts.
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
    /// Words of a message in the making, and the call of the subagent that says them.
    Passing(Delta, Option<ToolCallId>),
    /// The session can be used: this answers its launch. Told once; after a restart not again.
    Ready,
    /// The session cannot be used: this answers its launch, and there is no session.
    Unusable(Failure),
    /// Start the program. One that still runs is ended first, and nothing is heard of it.
    Spawn(Program),
    /// A line for the program's standard input. The end of the line is added.
    Write(String),
    /// End the program and all that it started. [`Input::Ended`] follows.
    End,
    /// Read a file of the agent's own. [`Input::Read`] follows.
    Read(PathBuf),
    /// Read or write a file of the workspace for the agent. [`Input::Filed`] follows.
    File(FileJob),
    /// Run a command for the agent, or end one. [`Input::Terminal`] follows.
    Terminal(TerminalJob),
    /// Keep a picture where clients can get it. [`Input::Kept`] follows, perhaps much later; where
    /// the proxy dies before, [`Input::Held`] comes to the driver after it.
    Keep(Picture),
    /// Do something in the session's panel.
    Panel(panel::Job),
}

/// One agent session, seen by what is known of its program. Pure: time is an argument.
pub trait Driver: std::fmt::Debug + std::marker::Send {
    /// The session is launched: it is [`Output::Ready`] by this time, or says why it is not. Told
    /// before [`Driver::start`].
    fn ready_by(&mut self, at: Timestamp) {
        let _ = at;
    }
    /// The session begins, or begins again after the proxy was away: its configuration and state.
    fn start(&mut self, now: Timestamp) -> Vec<Output>;
    /// The proxy asks something.
    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output>;
    /// Something happened to the program.
    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output>;
    /// The time of [`Driver::deadline`] has come (or passed, or not quite: look again).
    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output>;
    /// When to call [`Driver::on_deadline`] next.
    fn deadline(&self) -> Option<Timestamp>;
    /// As the agent names this conversation, once that is known; by it a conversation that is
    /// open already is recognised when somebody wants to go on with it.
    fn conversation(&self) -> Option<&str> {
        None
    }
    /// The session's notes without the lines that newer ones replace, for a driver that takes
    /// many: reading what is left gives the same. `None`: all of them count.
    fn shorten_notes(&self, notes: &str) -> Option<String> {
        let _ = notes;
        None
    }
    /// Whether a program runs, has nothing to do, and can be started again without loss.
    fn is_at_rest(&self) -> bool;
}

/// An answer whose detail this machine cannot decrypt.
#[cfg(test)]
pub(crate) fn sealed_answer(prompt: &PromptId, choice: &str) -> Order {
    let sealed = domain::content::Sealed {
        key: "k".to_owned(),
        nonce: "bm9uY2U=".to_owned(),
        body: "Ym9keQ==".to_owned(),
    };
    Order::Answer {
        request: "sealed".into(),
        prompt: prompt.clone(),
        choice: Some(choice.into()),
        detail: Some(Content::Sealed(sealed)),
    }
}

/// What an answer carries besides its choice. A sealed detail cannot be read here: the whole
/// answer is refused, because its choice alone may not be what the person meant.
pub(crate) fn open_answer(detail: Option<&Content<AnswerDetail>>) -> Result<AnswerDetail, Failure> {
    match detail {
        None => Ok(AnswerDetail::default()),
        Some(Content::Open(detail)) => Ok(detail.clone()),
        Some(Content::Sealed(_)) => {
            let words = "This machine cannot decrypt the answer, so it was not given to the \
                         agent. Answer again without encryption";
            Err(Failure::new("control_not_supported", words))
        }
    }
}
