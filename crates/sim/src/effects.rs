//! What really happened in a world: every fault that took effect, and every rare path that it led
//! the product through, counted where it happens.
//!
//! **Invariant**: a fault that was planned and met nothing is not counted.
//!
//! Not here: which faults are planned (`world`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Declares the effects together with the list of all of them, so that none can be forgotten.
macro_rules! effects {
    ($($(#[$doc:meta])* $name:ident = $words:literal,)*) => {
        /// Something that happened in a world.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Effect {
            $($(#[$doc])* $name,)*
        }

        impl Effect {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// In words, for reports.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

effects! {
    /// A running relay was killed.
    RelayCrashed = "relay crashed",
    /// The relay had something to do while its process was stopped.
    RelayPaused = "relay paused",
    /// A running proxy was killed, or is to be in the middle of a write.
    ProxyCrashed = "proxy crashed",
    /// A proxy died in the middle of a write.
    ProxyDied = "proxy died while writing",
    /// A proxy's process was stopped.
    ProxyPaused = "proxy paused",
    /// A machine's network was away.
    ProxyAway = "proxy away",
    /// A plain version 1 proxy was restarted.
    PlainProxyCrashed = "plain proxy crashed",
    /// A live connection was cut.
    ConnectionCut = "connection cut",
    /// A live connection went silent.
    ConnectionSilent = "connection silent",
    /// A frame arrived twice.
    FrameRepeated = "frame repeated",
    /// The wall clock was set forward.
    ClockForward = "clock forward",
    /// The wall clock was set back.
    ClockBack = "clock back",
    /// A commit failed and recorded nothing.
    CommitFailed = "commit failed",
    /// A commit was reported as failed and recorded everything.
    CommitUnknown = "commit unknown",
    /// A commit found no room.
    CommitFull = "commit without room",
    /// A stream could not be taken over.
    AcquireFailed = "acquire failed",
    /// A stream could not be erased, or nobody was told that it was.
    EraseFailed = "erase failed",
    /// The ledger's upkeep failed.
    MaintainFailed = "upkeep failed",
    /// The ledger could not be reopened at the first try.
    ReopenFailed = "reopen failed",
    /// A read failed.
    ReadFailed = "read failed",
    /// The power failed in the middle of a commit or of a checkpoint.
    PowerLost = "power lost",
    /// Some of what that commit had written was lost.
    SectorsTorn = "sectors torn",
    /// Some of what that checkpoint had written was lost.
    CheckpointTorn = "checkpoint torn",
    /// A bit of the database flipped.
    BitFlipped = "bit flipped",
    /// A credential was revoked.
    CredentialRevoked = "credential revoked",
    /// A session refuses because its history is damaged.
    DamageFound = "damage found",
    /// A watcher fell behind the ring and read the ledger again.
    WatcherLagged = "watcher lagged",
    /// A client of another dialect was shown what it had missed.
    CaughtUp = "visitor caught up",
    /// Retention forgot events.
    Forgotten = "events forgotten",
    /// A client's history began again because the relay no longer had what it had missed.
    StartedOver = "history started over",
    /// A client was told events again that it had been shown.
    ReadAgain = "history read again",
    /// A send was refused.
    SendRefused = "send refused",
    /// A launch led to a session.
    Launched = "session launched",
    /// A launch failed.
    LaunchFailed = "launch failed",
    /// A session was erased.
    Erased = "session erased",
    /// A plain proxy told its history again.
    Retold = "history told again",
    /// An agent received a file that a person sent.
    FileReceived = "file received",
    /// A native client's message was accepted.
    NativeSend = "native send",
    /// The same of a blob client.
    BlobSend = "blob send",
    /// The same of a pi client.
    PiSend = "pi send",
    /// The same of a control client.
    ControlSend = "control send",
    /// The same of a webchannel client.
    WebchannelSend = "webchannel send",
    /// A native client decided a prompt.
    NativeDecision = "native decision",
    /// The same of a blob client.
    BlobDecision = "blob decision",
    /// The same of a pi client.
    PiDecision = "pi decision",
    /// The same of a control client.
    ControlDecision = "control decision",
    /// The same of a webchannel client.
    WebchannelDecision = "webchannel decision",
}

impl Effect {
    /// Whether it was done to the system, and not by it.
    pub fn is_fault(self) -> bool {
        match self {
            Self::RelayCrashed
            | Self::RelayPaused
            | Self::ProxyCrashed
            | Self::ProxyDied
            | Self::ProxyPaused
            | Self::ProxyAway
            | Self::PlainProxyCrashed
            | Self::ConnectionCut
            | Self::ConnectionSilent
            | Self::FrameRepeated
            | Self::ClockForward
            | Self::ClockBack
            | Self::CommitFailed
            | Self::CommitUnknown
            | Self::CommitFull
            | Self::AcquireFailed
            | Self::EraseFailed
            | Self::MaintainFailed
            | Self::ReopenFailed
            | Self::ReadFailed
            | Self::PowerLost
            | Self::SectorsTorn
            | Self::CheckpointTorn
            | Self::BitFlipped
            | Self::CredentialRevoked => true,
            Self::DamageFound
            | Self::WatcherLagged
            | Self::CaughtUp
            | Self::Forgotten
            | Self::StartedOver
            | Self::ReadAgain
            | Self::SendRefused
            | Self::Launched
            | Self::LaunchFailed
            | Self::Erased
            | Self::Retold
            | Self::FileReceived
            | Self::NativeSend
            | Self::BlobSend
            | Self::PiSend
            | Self::ControlSend
            | Self::WebchannelSend
            | Self::NativeDecision
            | Self::BlobDecision
            | Self::PiDecision
            | Self::ControlDecision
            | Self::WebchannelDecision => false,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// How often each effect happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Met(BTreeMap<Effect, u64>);

impl Met {
    /// How often this happened.
    pub fn times(&self, effect: Effect) -> u64 {
        self.0.get(&effect).copied().unwrap_or_default()
    }

    /// How many faults took effect.
    pub fn faults(&self) -> u64 {
        self.0.iter().filter(|(effect, _)| effect.is_fault()).map(|(_, times)| times).sum()
    }

    /// Adds what happened in another world.
    pub fn add(&mut self, other: &Self) {
        for (effect, times) in &other.0 {
            *self.0.entry(*effect).or_default() += times;
        }
    }
}

/// Every effect, including those that did not happen.
impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, effect) in Effect::ALL.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{effect} {}", self.times(*effect))?;
        }
        Ok(())
    }
}

/// Where a world counts. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Met>>);

impl Effects {
    /// It happened.
    pub(crate) fn count(&self, effect: Effect) {
        self.count_times(effect, 1);
    }

    /// It happened so many times.
    pub(crate) fn count_times(&self, effect: Effect, times: u64) {
        if times > 0 {
            let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *met.0.entry(effect).or_default() += times;
        }
    }

    /// What happened so far.
    pub(crate) fn met(&self) -> Met {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
