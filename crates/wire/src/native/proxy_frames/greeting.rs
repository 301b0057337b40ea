//! Hello, ack, heartbeats and errors between a proxy and its relay.

use std::borrow::Cow;

use bytes::Bytes;
use domain::fleet::Offer;
use domain::{ConnectionId, LinkId, MachineLabel, RequestId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::shapes::{Envelope, ErrorBody, Malformed, Time, encode, id, read_body};
use super::catalog::OfferBody;

/// How a proxy introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The program.
    pub client_name: String,
    /// Its version.
    pub client_version: Option<String>,
    /// Its machine.
    pub machine: Option<MachineLabel>,
    /// What it wants beyond the document.
    pub features: Vec<String>,
    /// Its journal.
    pub link: Option<LinkId>,
    /// What it has to offer.
    pub offer: Offer,
}

/// The relay's greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// Names this socket.
    pub connection: ConnectionId,
    /// How often to say that one is alive.
    pub heartbeat_interval_ms: u64,
    /// How long silence is borne.
    pub heartbeat_timeout_ms: u64,
    /// The features that both speak.
    pub features: Vec<String>,
    /// How far the relay ever heard this journal, where it knows.
    pub received: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct HelloBody {
    peer_role: Cow<'static, str>,
    #[serde(deserialize_with = "id::required")]
    client_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    machine_label: Option<MachineLabel>,
    /// Extension: what else it speaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    features: Vec<String>,
    /// Extension: its journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<LinkBody>,
    /// Extension: what the machine has to offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    catalog: Option<OfferBody>,
}

#[derive(Serialize, Deserialize)]
struct LinkBody {
    #[serde(deserialize_with = "id::required")]
    id: LinkId,
}

#[derive(Serialize, Deserialize)]
struct AckBody {
    #[serde(default = "interval")]
    heartbeat_interval_ms: u64,
    #[serde(default = "timeout")]
    heartbeat_timeout_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    features: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Received>,
}

#[derive(Serialize, Deserialize)]
struct Received {
    #[serde(default)]
    received: u64,
}

fn interval() -> u64 {
    10_000
}

fn timeout() -> u64 {
    30_000
}

/// Writes a proxy's hello.
pub fn hello(hello: &Hello) -> Bytes {
    let body = HelloBody {
        peer_role: Cow::Borrowed("proxy"),
        client_name: hello.client_name.clone(),
        client_version: hello.client_version.clone(),
        machine_label: hello.machine.clone(),
        features: hello.features.clone(),
        link: hello.link.clone().map(|id| LinkBody { id }),
        catalog: Some((&hello.offer).into()),
    };
    encode(&Envelope::new("connection_hello"), &body)
}

impl Hello {
    /// Reads a proxy's hello; one of another role breaks a rule.
    pub fn read(text: &str) -> Result<Self, Malformed> {
        let body: HelloBody = read_body(text)?;
        if body.peer_role != "proxy" {
            return Err(Malformed::rule(text, "peer_role must be proxy here"));
        }
        let offer = body.catalog.map(Offer::from).unwrap_or_default();
        Ok(Self {
            client_name: body.client_name,
            client_version: body.client_version,
            machine: body.machine_label,
            features: body.features,
            link: body.link.map(|link| link.id),
            offer,
        })
    }
}

/// Writes the relay's ack.
pub fn ack(ack: &Ack, now: Timestamp) -> Bytes {
    let envelope = Envelope {
        connection_id: Some(ack.connection.clone()),
        ..from_relay("connection_ack", now)
    };
    let body = AckBody {
        heartbeat_interval_ms: ack.heartbeat_interval_ms,
        heartbeat_timeout_ms: ack.heartbeat_timeout_ms,
        features: ack.features.clone(),
        link: ack.received.map(|received| Received { received }),
    };
    encode(&envelope, &body)
}

impl Ack {
    /// Reads the relay's ack.
    pub(super) fn read(envelope: &Envelope, text: &str) -> Result<Self, Malformed> {
        let body: AckBody = read_body(text)?;
        let missing = || Malformed::rule(text, "connection_ack needs connection_id");
        Ok(Self {
            connection: envelope.connection_id.clone().ok_or_else(missing)?,
            heartbeat_interval_ms: body.heartbeat_interval_ms,
            heartbeat_timeout_ms: body.heartbeat_timeout_ms,
            features: body.features,
            received: body.link.map(|link| link.received),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Beat {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_ts: Option<Time>,
}

/// Writes a heartbeat.
pub fn heartbeat(request: RequestId, connection: &ConnectionId, now: Timestamp) -> Bytes {
    let envelope = Envelope {
        request_id: Some(request),
        connection_id: Some(connection.clone()),
        ..Envelope::new("heartbeat")
    };
    encode(&envelope, &Beat { client_ts: Some(now.into()) })
}

/// Answers a heartbeat.
pub fn heartbeat_ack(
    request: Option<RequestId>,
    connection: &ConnectionId,
    now: Timestamp,
) -> Bytes {
    let envelope = Envelope {
        request_id: request,
        connection_id: Some(connection.clone()),
        ..from_relay("heartbeat_ack", now)
    };
    encode(&envelope, &Beat { client_ts: None })
}

#[derive(Serialize, Deserialize)]
struct Through {
    through: u64,
}

/// Writes how far everything is on the relay's disk.
pub fn link_ack(through: u64, now: Timestamp) -> Bytes {
    encode(&from_relay("link_ack", now), &Through { through })
}

pub(super) fn read_link_ack(text: &str) -> Result<u64, Malformed> {
    Ok(read_body::<Through>(text)?.through)
}

/// What was refused, for an error that names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// The request.
    pub request: Option<RequestId>,
    /// The session.
    pub session: Option<SessionId>,
}

/// Writes a `connection_error`.
pub fn error(code: &str, message: &str, refused: Refused, now: Timestamp) -> Bytes {
    let envelope = Envelope {
        request_id: refused.request,
        session_id: refused.session,
        ..from_relay("connection_error", now)
    };
    encode(&envelope, &ErrorBody { code: code.to_owned(), message: message.to_owned() })
}

pub(super) fn from_relay(kind: &'static str, now: Timestamp) -> Envelope {
    Envelope { server_ts: Some(now.into()), ..Envelope::new(kind) }
}
