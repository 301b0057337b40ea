//! A visitor: one client's connection in a dialect that shows one session at a time.
//!
//! Every dialect except the native one is of this kind. Its shell (`relay::gate`) keeps the
//! position in the session. It shows the visitor each recorded event of its session once and in
//! order, even after the visitor fell behind, and passing events in between.
//!
//! Not here: any dialect's frames.

use std::sync::OnceLock;

use bytes::Bytes;
use domain::content::{Attachment, Failure};
use domain::fleet::LaunchWish;
use domain::passing::{Delta, Passing};
use domain::session::{Glance, Recorded, Wish};
use domain::{CredentialId, Principal, Sequence, SessionId, Timestamp};

use crate::port::{Denied, Listing, PageOf, Throttle};

/// The dialects that keep their encodings with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Agent Blob.
    Blob,
    /// pi's web frontend.
    Pi,
    /// Claude Code's remote control.
    Control,
    /// The same with partial messages.
    ControlPartial,
    /// Webchannel: what its envelopes hold, before any client's key is laid over it.
    Webchannel,
}

const SLOTS: usize = 5;

/// An event's encodings, each made once by whoever needs it first. Nothing is kept for a dialect
/// that nobody speaks.
#[derive(Debug, Default)]
pub struct Encoded(OnceLock<Box<[Frames; SLOTS]>>);

/// The frames of an event in one dialect, once somebody needed them.
type Frames = OnceLock<Box<[Bytes]>>;

impl Encoded {
    /// The frames of an event in a dialect. `encode` must give the same for every connection.
    pub fn frames(&self, slot: Slot, encode: impl FnOnce() -> Vec<Bytes>) -> &[Bytes] {
        let slots = self.0.get_or_init(Box::default);
        let place = match slot {
            Slot::Blob => 0,
            Slot::Pi => 1,
            Slot::Control => 2,
            Slot::ControlPartial => 3,
            Slot::Webchannel => 4,
        };
        slots[place].get_or_init(|| encode().into())
    }
}

/// Where a visitor begins in a session.
#[derive(Debug)]
pub struct Followed {
    /// Which session.
    pub session: SessionId,
    /// The last event; what comes later is shown by [`Visitor::on_event`].
    pub head: Sequence,
    /// What is open.
    pub glance: Glance,
    /// Messages in the making, from their beginnings.
    pub drafts: Vec<Delta>,
}

/// The relay in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Since it was started.
    pub uptime_ms: u64,
    /// Open sockets of clients.
    pub clients: u64,
    /// Sessions that can be reached.
    pub sessions: u64,
}

/// What a visitor asks of its shell. What is answered is answered once, under its ticket.
#[derive(Debug)]
pub enum Act {
    /// Send this text frame.
    Send(Bytes),
    /// Close the socket, after the frames.
    Close {
        /// The WebSocket close code.
        code: u16,
        /// In words.
        reason: &'static str,
    },
    /// [`Answer::Listed`] follows.
    List {
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Follow this session and no other. [`Answer::Followed`] comes before its next event.
    Follow {
        /// Which.
        session: SessionId,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Look at a session without following it. [`Answer::Glanced`] follows.
    Glance {
        /// Which.
        session: SessionId,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// [`Answer::Figures`] follows.
    Figures {
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Say this to a session in the principal's name. [`Answer::Done`] follows the commit; the
    /// events that it led to are shown before it to whoever follows the session.
    Wish {
        /// Which session.
        session: SessionId,
        /// What.
        wish: Box<Wish>,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Start a session. [`Answer::Launched`] follows when it is ready, or is not to be.
    Launch {
        /// What.
        wish: Box<LaunchWish>,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Read the ledger. [`Answer::Page`] follows.
    Read {
        /// Of which session.
        session: SessionId,
        /// After this event.
        after: Sequence,
        /// Up to this event, or to the end.
        upto: Option<Sequence>,
        /// At most so many.
        limit: usize,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Keep a file, as if it had been uploaded. [`Answer::Stored`] follows.
    Store {
        /// As the person calls it.
        name: String,
        /// What it is.
        media_type: String,
        /// The file.
        bytes: Bytes,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Read a file that was kept. [`Answer::Loaded`] follows.
    Load {
        /// Which.
        attachment: Attachment,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Exchange a pairing code for a credential. [`Answer::Paired`] follows.
    Pair {
        /// The code.
        code: String,
        /// What the client calls itself.
        name: String,
        /// What it and the relay seal with; kept until the credential ends.
        key: Option<[u8; 32]>,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Look at a credential that came within a frame, and at what goes with it.
    /// [`Answer::Recognised`] follows.
    Recognise {
        /// The token.
        token: String,
        /// Tells the answers apart.
        ticket: u64,
    },
    /// A sealed frame is taken, once: its nonce is noted for good. [`Answer::Spent`] follows.
    Spend {
        /// Under whose key.
        credential: CredentialId,
        /// Which.
        nonce: [u8; 12],
        /// Tells the answers apart.
        ticket: u64,
    },
    /// Look at a credential that came within a frame. [`Answer::Known`] follows.
    Identify {
        /// The token.
        token: String,
        /// Tells the answers apart.
        ticket: u64,
    },
}

/// What comes back.
#[derive(Debug)]
pub enum Answer {
    /// Every session.
    Listed(Vec<Listing>),
    /// Where the visitor begins; `None` when there is no such session.
    Followed(Option<Box<Followed>>),
    /// How things stand in it; `None` when there is no such session.
    Glanced(Option<Box<Followed>>),
    /// The relay in numbers.
    Figures(Figures),
    /// The events that a wish led to, or why nothing came of it.
    Done(Result<Vec<Recorded>, Denied>),
    /// The session that a launch brought.
    Launched(Result<SessionId, Failure>),
    /// A page of the ledger.
    Page(Result<PageOf, Denied>),
    /// What names the file in a send.
    Stored(Result<Attachment, Failure>),
    /// The file.
    Loaded(Result<Bytes, Failure>),
    /// Who the code made, and the token that shows it.
    Paired(Result<(Principal, String), Failure>),
    /// Who it is.
    Known(Option<Principal>),
    /// Who it is, with what was kept at its pairing; `None` for nobody (any more).
    Recognised(Option<Box<Recognised>>),
    /// Whether the nonce was new. `false` is also what a disk that fails says.
    Spent(bool),
}

/// Somebody whose token came within a frame.
#[derive(Debug, Clone)]
pub struct Recognised {
    /// Who.
    pub principal: Principal,
    /// What they and the relay seal with.
    pub key: Option<[u8; 32]>,
    /// Until when the token is good; `None` for as long as nobody revokes it.
    pub expires_at: Option<Timestamp>,
}

/// The close code of a socket whose credential was revoked.
const REVOKED: u16 = 4003;

/// One client's connection in a dialect that looks at one session at a time.
pub trait Visitor: Send {
    /// Who speaks.
    fn principal(&self) -> Option<&Principal>;
    /// The socket is open.
    fn on_open(&mut self, now: Timestamp) -> Vec<Act>;
    /// A text frame arrived.
    fn on_text(&mut self, text: &str, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act>;
    /// Something that was asked for comes back.
    fn on_answer(&mut self, ticket: u64, answer: Answer, now: Timestamp) -> Vec<Act>;
    /// The last answer told who speaks: what was said before counts for them now.
    fn on_known(&mut self, _throttle: &mut dyn Throttle, _now: Timestamp) -> Vec<Act> {
        vec![]
    }
    /// The next recorded event of the session that is followed.
    fn on_event(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>);
    /// A passing event of the session that is followed.
    fn on_passing(&mut self, passing: &Passing, encoded: &Encoded, acts: &mut Vec<Act>);
    /// Events were missed and have been shown since; passing ones may be lost. This is how things
    /// stand.
    fn on_caught_up(&mut self, followed: Followed, now: Timestamp) -> Vec<Act>;
    /// The credential of [`Visitor::principal`] was revoked.
    fn on_revoked(&mut self) -> Vec<Act> {
        vec![Act::Close { code: REVOKED, reason: "the token was revoked" }]
    }
    /// Time passed.
    fn on_tick(&mut self, now: Timestamp) -> Vec<Act>;
    /// When [`Visitor::on_tick`] has something to do.
    fn deadline(&self) -> Option<Timestamp>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_encoded_once_per_dialect() {
        let encoded = Encoded::default();
        let mut times = 0;
        for _ in 0..3 {
            let frames = encoded.frames(Slot::Pi, || {
                times += 1;
                vec![Bytes::from_static(b"{}")]
            });
            assert_eq!(frames, [Bytes::from_static(b"{}")]);
        }
        assert_eq!(encoded.frames(Slot::Blob, Vec::new), [] as [Bytes; 0]);
        assert_eq!(times, 1);
    }
}
