//! Ids, time and principals: the types that every crate shares.
//!
//! Not here: what a principal may do to a session (`session`), how a credential is checked
//! (`server::auth`), how an id looks on the wire (`wire`).

use std::fmt;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(IdText).map(Self)
            }
        }

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(raw: &str) -> Self {
                Self(raw.into())
            }
        }

        impl From<String> for $name {
            fn from(raw: String) -> Self {
                Self(raw.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

/// Reads an id with one allocation; ids are most of what is read back from a ledger.
struct IdText;

impl Visitor<'_> for IdText {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}

id! {
    /// One durable conversation with one agent.
    SessionId;
    /// One message of a transcript. A person's send keeps the id that its client gave it.
    MessageId;
    /// One dialog instance in the agent; stable while that dialog stays open.
    PromptId;
    /// One button of a prompt.
    ChoiceId;
    /// One stretch of agent work.
    RunId;
    /// One tool call of an agent, as the agent names it.
    ToolCallId;
    /// What a client calls its own request, to recognise the answer.
    RequestId;
    /// A client's own lasting name for itself; survives reconnects.
    ClientId;
    /// A stored credential (never the secret itself).
    CredentialId;
    /// One open socket; gone when it closes.
    ConnectionId;
    /// Where a proxy runs, as people call it.
    MachineLabel;
    /// One proxy journal: the numbering of its frames belongs to it.
    LinkId;
    /// A proxy's fingerprint of a discovered target.
    TargetSignature;
    /// An uploaded file.
    AttachmentId;
    /// An agent program: claude, codex, demo, …
    AgentType;
    /// A model as the agent names it.
    ModelId;
    /// A stable machine-readable failure code that crosses the relay unread.
    FailureCode;
}

/// Session ids that the fleet's own stream and other internal streams use begin with this. No
/// session can: [`SessionId::parse`] refuses it.
pub const INTERNAL_STREAM_PREFIX: char = '$';

impl SessionId {
    /// Accepts 3 to 64 characters of `[A-Za-z0-9_-]`, the only ids that peers may bring.
    pub fn parse(raw: &str) -> Option<Self> {
        let fits = (3..=64).contains(&raw.len());
        let plain = raw.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        (fits && plain).then(|| raw.into())
    }
}

/// Wall-clock milliseconds since the epoch. Wall clock, because deadlines outlive the process.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Saturates: a peer may send an absurd timeout.
    #[must_use]
    pub fn plus_ms(self, duration_ms: u64) -> Self {
        Self(self.0.saturating_add(duration_ms))
    }

    /// Zero when `earlier` is in fact later: wall clocks jump.
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The number of a recorded event in its session: dense, from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The number after this one. Saturates: a peer may send an absurd cursor.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a credential allows. Ordered from least to most, proxies apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Watches, and changes nothing.
    Viewer,
    /// Sends, answers, steers, launches, closes.
    Operator,
    /// Also deletes, and manages credentials.
    Owner,
    /// A machine, not a person.
    Proxy,
}

/// Who speaks. Made by the shell from a checked credential; what it may do is decided here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The credential that was shown.
    pub credential: CredentialId,
    /// What that credential allows.
    pub role: Role,
    /// The client's lasting id, if it gave one.
    pub client: Option<ClientId>,
    /// The credential's name, for "answered by".
    pub name: String,
}

impl Principal {
    /// Whether this principal may change anything in a session.
    pub fn may_steer(&self) -> bool {
        matches!(self.role, Role::Operator | Role::Owner)
    }

    /// Whether this principal may erase a session or manage credentials.
    pub fn may_own(&self) -> bool {
        self.role == Role::Owner
    }

    /// The identity that results are held for across reconnects.
    pub fn key(&self) -> ClientKey {
        ClientKey { credential: self.credential.clone(), client: self.client.clone() }
    }
}

/// A client across reconnects: its own id, bound to its credential; without one, the credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientKey {
    /// The credential that was shown.
    pub credential: CredentialId,
    /// The client's lasting id, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
}

/// Where in a proxy's numbered frames a word came from, so that a repeat changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPosition {
    /// Whose numbering.
    pub link: LinkId,
    /// The frame's number, from 1.
    pub number: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: native/session_identifiers.3
    #[test]
    fn a_session_id_is_three_to_sixty_four_plain_characters() {
        assert!(SessionId::parse("abc").is_some());
        assert!(SessionId::parse(&"x".repeat(64)).is_some());
        for refused in ["ab", &"x".repeat(65), "a b c", "$fleet", "sess/1", "sé_1"] {
            assert_eq!(SessionId::parse(refused), None, "{refused}");
        }
    }
}
