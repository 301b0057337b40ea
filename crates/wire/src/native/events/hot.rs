//! The most frequent frames, written directly from the ledger's content.
//!
//! They have the same content as the structs of `frames` (a test compares them), but nothing is
//! cloned or flattened.

use bytes::Bytes;
use domain::content::{Author, Message, Part};
use domain::passing::Delta;
use domain::session::Recorded;
use domain::session::delivery::Send;
use domain::{Content, MessageId, RunId, Sequence, SessionId};
use serde::{Serialize, Serializer};

use super::Form;
use crate::native::frames::{ModeWord, StatusWord};
use crate::native::shapes::{self, Attachment, Sealed, Time, VERSION, VoiceWord, text_of};

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

/// `message_event`, at the end of what is there. A plain reader has no use for an agent's message
/// without any text: then nothing is written, and it says so.
pub(super) fn message_into(
    buffer: &mut Vec<u8>,
    session: &SessionId,
    recorded: &Recorded,
    message: &Message,
    form: Form,
) -> bool {
    let content = text_of(&message.parts);
    if form == Form::Plain && content.is_empty() && message.author == Author::Assistant {
        return false;
    }
    buffer.reserve(FRAME_BYTES + content.len() + content.len() / 16);
    buffer.extend_from_slice(br#"{"type":"message_event","protocol_version":1,"event_id":"#);
    event_id(buffer, session, recorded.sequence);
    field(buffer, "sequence", &recorded.sequence);
    buffer.extend_from_slice(br#","session_id":"#);
    string(buffer, session.as_str());
    time(buffer, "server_ts", recorded.at.into());
    buffer.extend_from_slice(br#","message":{"message_id":"#);
    string(buffer, message.id.as_str());
    field(buffer, "role", &shapes::AuthorWord::from(message.author));
    buffer.extend_from_slice(br#","content":"#);
    string(buffer, &content);
    time(buffer, "created_at", message.created_at.into());
    if form == Form::Full {
        extensions(buffer, message);
    }
    buffer.extend_from_slice(b"}}");
    true
}

/// `message_event` by itself.
pub(super) fn message(
    session: &SessionId,
    recorded: &Recorded,
    message: &Message,
    form: Form,
) -> Option<Bytes> {
    let mut buffer = vec![];
    message_into(&mut buffer, session, recorded, message, form).then(|| buffer.into())
}

/// What only the full form of a message has, in the words of its shape.
fn extensions(buffer: &mut Vec<u8>, message: &Message) {
    let is_all_said = matches!(
        &message.parts,
        Content::Open(parts) if matches!(parts.as_slice(), [Part::Text(_)])
    );
    if !is_all_said {
        let shapes::Message { parts, sealed, .. } = shapes::Message::full(message);
        if let Some(parts) = &parts {
            field(buffer, "parts", parts);
        }
        if let Some(sealed) = &sealed {
            field(buffer, "sealed", sealed);
        }
    }
    if let Some(run) = &message.run {
        field(buffer, "run_id", run);
    }
    if let Some(parent) = &message.parent {
        field(buffer, "parent_tool_call_id", parent);
    }
}

/// See [`super::event_id`].
fn event_id(buffer: &mut Vec<u8>, session: &SessionId, sequence: Sequence) {
    buffer.extend_from_slice(b"\"evt_");
    let begin = buffer.len();
    string(buffer, session.as_str());
    // Its own quotes go: it stands inside of others.
    buffer.remove(begin);
    buffer.pop();
    buffer.push(b'_');
    put(buffer, &sequence);
    buffer.push(b'"');
}

fn field<T: Serialize>(buffer: &mut Vec<u8>, name: &'static str, value: &T) {
    buffer.extend_from_slice(b",\"");
    buffer.extend_from_slice(name.as_bytes());
    buffer.extend_from_slice(b"\":");
    put(buffer, value);
}

fn time(buffer: &mut Vec<u8>, name: &'static str, at: Time) {
    buffer.extend_from_slice(b",\"");
    buffer.extend_from_slice(name.as_bytes());
    buffer.extend_from_slice(b"\":\"");
    buffer.extend_from_slice(&at.to_bytes());
    buffer.push(b'"');
}

/// A string of which most need no escape.
fn string(buffer: &mut Vec<u8>, value: &str) {
    // Counted without an early end, so that it is done many bytes at a time.
    let is_special = |byte: &u8| matches!(byte, 0..b' ' | b'"' | b'\\');
    if value.as_bytes().iter().filter(|byte| is_special(byte)).count() > 0 {
        return put(buffer, &value);
    }
    buffer.push(b'"');
    buffer.extend_from_slice(value.as_bytes());
    buffer.push(b'"');
}

fn put<T: Serialize>(buffer: &mut Vec<u8>, value: &T) {
    // Cannot fail: a vector takes everything and no value refuses to be written.
    let _ = serde_json::to_writer(buffer, value);
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
