//! The inputs of a client's connection, and what it asks of its shell.

use bytes::Bytes;
use domain::fleet::{Launch, LaunchWish};
use domain::session::Wish;
use domain::session::controls::Kind;
use domain::{AgentType, MessageId, RequestId, Sequence, SessionId};
use serde::Serialize;

use crate::native::frames::{
    Catalog, ResumableListRequest, ResumableSessions, ToolOutput, ToolOutputRequest,
};
use crate::native::shapes::Session;
use crate::port::Listing;

/// What a connection asks of its shell.
#[derive(Debug)]
pub enum Output {
    /// Send this text frame.
    Send(Bytes),
    /// Say this to a session, in the principal's name. A refusal comes back by `on_denied`; what
    /// it leads to is heard as events.
    Session {
        /// Which session.
        session: SessionId,
        /// What.
        wish: Wish,
        /// Comes back with a refusal.
        asked: Asked,
    },
    /// Say this to the fleet, likewise.
    Launch {
        /// What.
        wish: LaunchWish,
        /// Comes back with a refusal.
        asked: Asked,
    },
    /// Find this out, then answer with `on_answer`.
    Ask {
        /// What.
        question: Question,
        /// Comes back with the answer.
        request: Option<RequestId>,
    },
    /// Watch all live events from here on, then answer with `on_welcome`. Asked for again when
    /// live events were missed.
    Join,
    /// Read the ledger, then answer with `on_page` or `on_read_failed`.
    Read(ReadJob),
    /// Answer with `on_drafts`.
    Drafts(SessionId),
    /// Answer with `on_card`, if there is such a session.
    Card {
        /// Which session.
        session: SessionId,
        /// Comes back with the card.
        request: Option<RequestId>,
    },
    /// Send what was to be sent, then close.
    Close {
        /// The WebSocket close code.
        code: u16,
        /// A few words for the other end's log.
        reason: &'static str,
    },
}

/// Something that a client wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// All machines and what they have.
    Catalog,
    /// Conversations that a machine's agents keep themselves.
    Resumable(ResumableListRequest),
    /// What a tool printed.
    ToolOutput {
        /// In which session.
        session: SessionId,
        /// What of it.
        asked: ToolOutputRequest,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Catalog`].
    Catalog(Catalog),
    /// To [`Question::Resumable`].
    Resumable(ResumableSessions),
    /// To [`Question::ToolOutput`].
    ToolOutput(ToolOutput),
}

/// A page of the ledger to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadJob {
    /// Which session.
    pub session: SessionId,
    /// After this event.
    pub after: Sequence,
    /// Up to this event, or to the end.
    pub upto: Option<Sequence>,
    /// At most so many.
    pub limit: usize,
    /// What for.
    pub purpose: Purpose,
    /// Tells the answers apart.
    pub ticket: u64,
}

/// What a page is read for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Live events were missed: they are told one by one.
    CatchUp,
    /// The client asked for what came after an event.
    Delta(Option<RequestId>),
    /// The client asked for everything; this is the first page.
    Snapshot(Option<RequestId>),
}

/// What there is to see when a client arrives.
#[derive(Debug)]
pub struct Welcome {
    /// Every session that the client may see, closed ones included.
    pub sessions: Vec<Listing>,
    /// This client's launches, on their way and held.
    pub launches: Vec<Launch>,
}

/// A session as `GET /v1/sessions` shows it: with its title, also when nobody gave it one.
#[derive(Debug, Serialize)]
pub struct ListedSession {
    #[serde(flatten)]
    session: Session,
    title: Option<String>,
}

/// A session as `GET /v1/sessions` shows it.
pub fn session_json(listing: &Listing) -> ListedSession {
    let described = Session::of_card(&listing.id, &listing.card);
    let mut session = described.with_extensions(&listing.card, listing.head);
    let title = session.title.take();
    ListedSession { session, title }
}

/// What was asked, so that a refusal finds its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A send.
    Send {
        /// To which session.
        session: SessionId,
        /// Which.
        id: MessageId,
    },
    /// A control command.
    Control {
        /// Of which session.
        session: SessionId,
        /// Its id.
        request: RequestId,
        /// What.
        kind: Kind,
    },
    /// A launch.
    Launch {
        /// Its id.
        request: RequestId,
        /// Of which agent.
        agent: AgentType,
    },
    /// Anything else.
    Other {
        /// Of which session.
        session: SessionId,
        /// Its id.
        request: Option<RequestId>,
        /// The send that it was about.
        send: Option<MessageId>,
    },
}
