//! The frames that there are most of, written straight from what the ledger holds.
//!
//! They say exactly what the structs of `frames` say (a test compares them); here nothing is
//! cloned and nothing is flattened.

use bytes::Bytes;
use domain::content::{Author, Message};
use domain::passing::Delta;
use domain::session::Recorded;
use domain::session::delivery::Send;
use domain::{Content, MessageId, RunId, Sequence, SessionId};
use serde::{Serialize, Serializer};

use super::Form;
use crate::native::frames::{ModeWord, StatusWord};
use crate::native::shapes::{self, Attachment, Sealed, Time, VERSION, VoiceWord};

/// Bytes of a frame besides its content, roughly: room that is reserved at once.
const FRAME_BYTES: usize = 384;

#[derive(Serialize)]
struct Head<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    protocol_version: u64,
    event_id: EventId<'a>,
    sequence: Sequence,
    session_id: &'a SessionId,
    server_ts: Time,
    #[serde(flatten)]
    body: T,
}

struct EventId<'a>(&'a SessionId, Sequence);

impl Serialize for EventId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("evt_{}_{}", self.0, self.1))
    }
}

fn head<'a, T>(
    session: &'a SessionId,
    recorded: &Recorded,
    kind: &'static str,
    body: T,
) -> Head<'a, T> {
    Head {
        kind,
        protocol_version: VERSION,
        event_id: EventId(session, recorded.sequence),
        sequence: recorded.sequence,
        session_id: session,
        server_ts: recorded.at.into(),
        body,
    }
}

fn write<T: Serialize>(frame: &T, content_bytes: usize) -> Bytes {
    let mut buffer = Vec::with_capacity(FRAME_BYTES + content_bytes + content_bytes / 16);
    // Cannot fail: a vector takes everything and no value refuses to be written.
    if serde_json::to_writer(&mut buffer, frame).is_err() {
        buffer.clear();
    }
    buffer.into()
}

#[derive(Serialize)]
struct AcceptedBody<'a> {
    message_id: &'a MessageId,
    client_message_id: &'a MessageId,
    status: StatusWord,
    accepted_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<ModeWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
}

/// `message_accepted`.
pub(super) fn accepted(session: &SessionId, recorded: &Recorded, send: &Send, form: Form) -> Bytes {
    let mut body = AcceptedBody {
        message_id: &send.id,
        client_message_id: &send.id,
        status: StatusWord::Accepted,
        accepted_at: recorded.at.into(),
        content: None,
        attachments: vec![],
        mode: None,
        sent_by: None,
        sealed: None,
    };
    if form == Form::Full {
        body.attachments = send.attachments.iter().map(Into::into).collect();
        body.mode = send.mode.map(Into::into);
        body.sent_by = Some(&send.by);
        match &send.text {
            Content::Open(text) => body.content = Some(text),
            Content::Sealed(sealed) => body.sealed = Some(sealed.into()),
        }
    }
    let content_bytes = body.content.map_or(0, str::len);
    write(&head(session, recorded, "message_accepted", body), content_bytes)
}

#[derive(Serialize)]
struct DeliveredBody<'a> {
    message_id: &'a MessageId,
    client_message_id: &'a MessageId,
    status: StatusWord,
    delivered_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a RunId>,
}

/// `message_delivered`.
pub(super) fn delivered(
    session: &SessionId,
    recorded: &Recorded,
    id: &MessageId,
    run: Option<&RunId>,
    form: Form,
) -> Bytes {
    let body = DeliveredBody {
        message_id: id,
        client_message_id: id,
        status: StatusWord::Delivered,
        delivered_at: recorded.at.into(),
        run_id: run.filter(|_| form == Form::Full),
    };
    write(&head(session, recorded, "message_delivered", body), 0)
}

#[derive(Serialize)]
struct Said<'a> {
    message: shapes::Message<'a>,
}

/// `message_event`. A plain reader has no use for an agent's message without any text.
pub(super) fn message(
    session: &SessionId,
    recorded: &Recorded,
    message: &Message,
    form: Form,
) -> Option<Bytes> {
    let message = match form {
        Form::Full => shapes::Message::full(message),
        Form::Plain => shapes::Message::plain(message),
    };
    let mute = message.content.is_empty() && Author::from(message.role) == Author::Assistant;
    if form == Form::Plain && mute {
        return None;
    }
    let content_bytes = message.content.len();
    Some(write(&head(session, recorded, "message_event", Said { message }), content_bytes))
}

#[derive(Serialize)]
struct DeltaFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    protocol_version: u64,
    session_id: &'a SessionId,
    message_id: &'a MessageId,
    part: u32,
    #[serde(rename = "kind")]
    voice: VoiceWord,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
    after_sequence: Sequence,
}

/// `message_delta`, as the relay tells it.
pub fn encode_delta(session: &SessionId, after: Sequence, delta: &Delta) -> Bytes {
    let (content, sealed) = match &delta.words {
        Content::Open(words) => (Some(words.as_str()), None),
        Content::Sealed(sealed) => (None, Some(sealed.into())),
    };
    let frame = DeltaFrame {
        kind: "message_delta",
        protocol_version: VERSION,
        session_id: session,
        message_id: &delta.message,
        part: delta.part,
        voice: delta.voice.into(),
        offset: delta.offset,
        content,
        sealed,
        after_sequence: after,
    };
    write(&frame, content.map_or(0, str::len))
}
