//! Sessions over HTTP, with the same content as on the sockets.
//!
//! Not here: what commands lead to (`domain`), the JSON of events (`wire`).

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{BufMut as _, Bytes, BytesMut};
use domain::content::Attachment;
use domain::session::delivery::{self, Mode};
use domain::session::{Command, Event, Recorded, Wish};
use domain::{Content, MessageId, Principal, Refusal, Sequence, SessionId};
use serde::Deserialize;
use serde_json::json as object;
use wire::native::Denied;
use wire::native::client_connection::ATTACHMENTS_MAX;
use wire::native::shapes::echo_digest;

use super::problem::{Problem, sent_before};
use super::{json, told};
use crate::auth;
use crate::clock;
use crate::door::{Visitor, parameter};
use crate::house::House;

/// Events in one answer, at most and by default.
pub(super) const PAGE_EVENTS_MAX: usize = 500;
/// Characters of a title; more is refused.
const TITLE_MAX: usize = 200;
/// Characters of an id that a client gives; more is refused.
const MESSAGE_ID_MAX: usize = 256;

#[derive(Deserialize)]
pub(super) struct Message {
    content: String,
    #[serde(default)]
    client_message_id: Option<String>,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    attachments: Vec<Named>,
}

/// An attachment by id alone, or as the native dialect names one.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Named {
    Id(String),
    Full {
        attachment_id: String,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        kind: Option<String>,
    },
}

#[derive(Deserialize)]
pub(super) struct Changes {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    archived: Option<bool>,
}

/// `GET /v1/sessions`
pub(super) async fn list(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, Problem> {
    visitor.watcher()?;
    let mut body = BytesMut::from(&br#"{"sessions":["#[..]);
    append_list(&mut body, house.inside.sessions());
    body.put_slice(b"]}");
    Ok(raw_json(body.freeze()))
}

/// `GET /v1/sessions/{id}/history?after=N&limit=M`
pub(super) async fn history(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    visitor.watcher()?;
    let session = session(&id)?;
    let after = number(query.as_deref(), "after")?.unwrap_or(0);
    let limit = number(query.as_deref(), "limit")?.unwrap_or(PAGE_EVENTS_MAX as u64);
    let limit = usize::try_from(limit).unwrap_or(PAGE_EVENTS_MAX).clamp(1, PAGE_EVENTS_MAX);
    let page = house.inside.history(&session, Sequence(after), limit).await?;
    // A page of events that the dialect does not tell still moves the reader on.
    let last = page.events.last().map_or(page.head, |event| event.sequence);
    let last = if page.has_more { last } else { page.head };
    let start = object!({
        "session_id": session, "from_sequence": after, "last_sequence": last.0,
        "has_more": page.has_more,
    });
    let mut body = BytesMut::from(start.to_string().trim_end_matches('}'));
    body.put_slice(br#","events":["#);
    let events = page.events.iter().filter_map(|event| house.inside.encode(&session, event));
    append_list(&mut body, events);
    body.put_slice(b"]}");
    Ok(raw_json(body.freeze()))
}

/// `GET /v1/sessions/{id}/tools/{tool_call_id}/output`: what a tool printed, whole.
pub(super) async fn tool_output(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path((id, call)): Path<(String, String)>,
) -> Result<Response, Problem> {
    visitor.watcher()?;
    let session = session(&id)?;
    match house.inside.tool_output(&session, &call.as_str().into()).await {
        Ok(output) => {
            Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], output).into_response())
        }
        Err(Denied::Code(code, words)) => {
            Err(Problem::new(StatusCode::NOT_FOUND, code.to_string(), words))
        }
        Err(denied) => Err(denied.into()),
    }
}

/// `POST /v1/sessions/{id}/messages`: answered when the send is on disk.
pub(super) async fn send(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let principal = visitor.operator()?.clone();
    let session = session(&id)?;
    let message: Message = json(request).await?;
    if !house.inside.may_send(&principal.key()) {
        return Err(Problem::too_many("Too many messages; slow down", 1_000));
    }
    let send = wanted(&house, &principal, message)?;
    let id = send.id.clone();
    let wish = Wish::Send { send, earlier: None };
    let (status, sequence) =
        match house.inside.command(&session, Command::Person(principal, wish)).await {
            Ok(recorded) => ("accepted", accepted(&recorded, &id).ok_or_else(Problem::defect)?),
            Err(Denied::Refused(Refusal::SendRepeated(told))) => {
                (sent_before(&told)?, told.sequence)
            }
            Err(denied) => return Err(denied.into()),
        };
    let body = object!({
        "message_id": id, "client_message_id": id, "status": status, "sequence": sequence.0,
    });
    Ok(told(StatusCode::ACCEPTED, &body))
}

/// `PATCH /v1/sessions/{id}`
pub(super) async fn change(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let principal = visitor.operator()?.clone();
    let session = session(&id)?;
    let Changes { title, archived } = json(request).await?;
    if title.as_ref().is_some_and(|title| title.chars().count() > TITLE_MAX) {
        return Err(Problem::invalid(format!("A title can have at most {TITLE_MAX} characters")));
    }
    let wishes = [title.clone().map(Wish::Rename), archived.map(Wish::Archive)];
    let wishes: Vec<_> = wishes.into_iter().flatten().collect();
    if wishes.is_empty() {
        return Err(Problem::invalid("Set title, archived, or both"));
    }
    for wish in wishes {
        house.inside.command(&session, Command::Person(principal.clone(), wish)).await?;
    }
    let body = object!({ "session_id": session, "title": title, "archived": archived });
    Ok(told(StatusCode::OK, &body))
}

/// `DELETE /v1/sessions/{id}`
pub(super) async fn erase(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let owner = visitor.owner()?;
    let session = session(&id)?;
    house.inside.erase(&session).await?;
    let (by, credential) = (&owner.name, &owner.credential);
    tracing::info!(target: "audit", %session, by, %credential, "session and history erased");
    Ok(told(StatusCode::OK, &object!({ "session_id": session, "erased": true })))
}

pub(super) fn session(raw: &str) -> Result<SessionId, Problem> {
    SessionId::parse(raw).ok_or_else(Problem::session_unknown)
}

fn number(query: Option<&str>, name: &'static str) -> Result<Option<u64>, Problem> {
    let given = parameter(query, name);
    let parse = |text: String| {
        text.parse().map_err(|_| Problem::invalid(format!("{name} must be a whole number")))
    };
    given.map(parse).transpose()
}

fn wanted(
    house: &House,
    principal: &Principal,
    message: Message,
) -> Result<delivery::Send, Problem> {
    let limit = house.limits.max_content_bytes;
    if message.content.len() > limit {
        let words = format!("A message can have at most {limit} bytes; attach a file instead");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "message_too_large", words));
    }
    if message.content.trim().is_empty() && message.attachments.is_empty() {
        return Err(Problem::invalid("content must not be empty"));
    }
    if message.attachments.len() > ATTACHMENTS_MAX {
        return Err(Problem::invalid(format!(
            "A message can have at most {ATTACHMENTS_MAX} attachments"
        )));
    }
    let fits = |id: &str| !id.is_empty() && id.chars().count() <= MESSAGE_ID_MAX;
    let id = match message.client_message_id {
        Some(id) if fits(&id) => id,
        Some(_) => return Err(Problem::invalid("client_message_id must have 1 to 256 characters")),
        None => auth::id("msg").map_err(|error| Problem::internal(&error))?,
    };
    let attachments: Result<_, _> =
        message.attachments.into_iter().map(|named| attached(house, named)).collect();
    // As a socket's sends have it: recognises the agent's echo.
    let digest = (!message.content.is_empty()).then(|| echo_digest(&message.content));
    Ok(delivery::Send {
        id: id.into(),
        text: Content::Open(message.content),
        attachments: attachments?,
        mode: message.mode,
        by: principal.name.clone(),
        created_at: clock::now(),
        digest,
    })
}

fn attached(house: &House, named: Named) -> Result<Attachment, Problem> {
    let (id, name, kind) = match named {
        Named::Id(id) => (id, None, None),
        Named::Full { attachment_id, name, kind } => (attachment_id, name, kind),
    };
    let item = house.shelf.find(&id.as_str().into()).ok_or_else(|| {
        let words = format!("No upload has the id {id}; upload the file first");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "attachment_unknown", words)
    })?;
    Ok(Attachment {
        id: id.into(),
        name: name.unwrap_or_else(|| item.name.clone()),
        kind: kind.unwrap_or_else(|| "uploaded_file".to_owned()),
        media_type: Some(item.media_type.clone()),
    })
}

fn accepted(recorded: &[Recorded], id: &MessageId) -> Option<Sequence> {
    let mut accepted = recorded.iter().filter(|it| match &it.event {
        Event::Delivery(delivery::Event::Accepted(send)) => send.id == *id,
        Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Run(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_)
        | Event::Transcript(_) => false,
    });
    accepted.next().map(|it| it.sequence)
}

fn append_list(body: &mut BytesMut, items: impl IntoIterator<Item = Bytes>) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put(item);
    }
}

fn raw_json(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}
