//! What the server needs from the relay behind it, and nothing more.
//!
//! Not here: the relay itself (`relay`), sockets (`socket`).

use std::net::IpAddr;
use std::pin::Pin;

use bytes::Bytes;
use domain::session::{Command, Recorded};
use domain::{ClientKey, Principal, Sequence, SessionId, ToolCallId};
use relay::EventPage;
use wire::native::Denied;

use crate::socket::Socket;

/// Something that takes time.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The relay, as the door sees it.
pub trait Inside: Send + Sync + 'static {
    /// Speaks with a socket until it is over.
    fn attend(&self, socket: Socket, opening: Opening) -> Work<'static, ()>;
    /// Every session as one JSON object of the native dialect, full form.
    fn sessions(&self) -> Vec<Bytes>;
    /// A stretch of a session's history.
    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        after: Sequence,
        limit: usize,
    ) -> Work<'a, Result<EventPage, Denied>>;
    /// One event in the native dialect, full form; `None` for what that dialect does not tell.
    fn encode(&self, session: &SessionId, recorded: &Recorded) -> Option<Bytes>;
    /// The same with tools' outputs whole, however long.
    fn encode_whole(&self, session: &SessionId, recorded: &Recorded) -> Option<Bytes>;
    /// What a tool printed, whole.
    fn tool_output<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a ToolCallId,
    ) -> Work<'a, Result<String, Denied>>;
    /// Says something to a session and waits until it is committed.
    fn command<'a>(
        &'a self,
        session: &'a SessionId,
        command: Command,
    ) -> Work<'a, Result<Vec<Recorded>, Denied>>;
    /// Erases a session and its history.
    fn erase<'a>(&'a self, session: &'a SessionId) -> Work<'a, Result<(), Denied>>;
    /// Counts one send of this client; false when it sends too much.
    fn may_send(&self, client: &ClientKey) -> bool;
    /// What is counted.
    fn figures(&self) -> Figures;
    /// Whether the ledger can be read, in words when it cannot.
    fn ready(&self) -> Work<'_, Result<(), String>>;
}

/// What a socket was opened for, and by whom.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Which path.
    pub entrance: Entrance,
    /// Who opened it; `None` without a credential.
    pub principal: Option<Principal>,
    /// What the address said behind the question mark.
    pub query: String,
    /// From where.
    pub address: IpAddr,
}

/// Which path a socket was opened at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// `/ws`: the first frame tells the dialect.
    Any,
    /// `/ws/native`.
    Native,
    /// `/ws/proxy`.
    Proxy,
    /// `/ws/blob`.
    Blob,
    /// `/ws/pi`.
    Pi,
    /// `/ws/control`.
    Control,
    /// `/ws/webchannel`.
    Webchannel,
}

impl Entrance {
    /// Whether nobody gets in here without a credential.
    pub(crate) fn needs_credential(self) -> bool {
        matches!(self, Self::Proxy | Self::Pi | Self::Control)
    }

    /// Whether frames may carry pictures.
    pub(crate) fn takes_pictures(self) -> bool {
        matches!(self, Self::Pi | Self::Control)
    }
}

/// What is counted inside.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Open client sockets.
    pub clients: i64,
    /// Open proxy sockets.
    pub proxies: i64,
    /// Known sessions.
    pub sessions: usize,
    /// Sessions whose machine is connected.
    pub sessions_connected: usize,
    /// Session owners at work.
    pub owners: i64,
    /// Sends that were accepted, delivered, and failed.
    pub sends: [u64; 3],
    /// Times that a watcher fell behind.
    pub lagged: u64,
    /// Passing events that were shown.
    pub passing: u64,
    /// Appends that wait for their commit.
    pub appends_waiting: i64,
    /// Events that were recorded.
    pub events: u64,
    /// Commits that failed.
    pub commit_failures: u64,
    /// Each bound in microseconds, with how many commits took at most that long.
    pub commit_buckets_us: Vec<(u64, u64)>,
    /// All commits.
    pub commits: u64,
    /// Their time together, in microseconds.
    pub commits_us: u64,
}
