//! From a request to an open socket.
//!
//! Not here: what an open socket does (`socket`).

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use domain::Role;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol;

use super::{Socket, socket_config};
use crate::api::Problem;
use crate::door::{Accepted, Visitor};
use crate::house::{Guest, House};
use crate::inside::{Entrance, Opening};
use crate::stream::Stream;

/// Frames of dialects that carry pictures.
const PICTURE_FRAME_BYTES_MAX: usize = 32 * 1024 * 1024;
const WEBSOCKET_VERSION: &str = "13";

type Knock = (State<House>, Extension<Visitor>);

/// `/ws`
pub(crate) async fn any(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    answer(open(Entrance::Any, (state, visitor), request))
}

/// `/ws/native`
pub(crate) async fn native(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    answer(open(Entrance::Native, (state, visitor), request))
}

/// `/ws/proxy`
pub(crate) async fn proxy(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    if let Err(problem) = visitor.with_role(&[Role::Proxy]) {
        return problem.into_response();
    }
    answer(open(Entrance::Proxy, (state, visitor), request))
}

/// `/ws/blob`
pub(crate) async fn blob(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    answer(open(Entrance::Blob, (state, visitor), request))
}

/// `/ws/pi`
pub(crate) async fn pi(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    answer(open(Entrance::Pi, (state, visitor), request))
}

/// `/ws/control`
pub(crate) async fn control(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    answer(open(Entrance::Control, (state, visitor), request))
}

/// `/ws/webchannel`
pub(crate) async fn webchannel(
    state: State<House>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Response {
    answer(open(Entrance::Webchannel, (state, visitor), request))
}

fn answer(opened: Result<Response, Problem>) -> Response {
    opened.unwrap_or_else(axum::response::IntoResponse::into_response)
}

fn open(
    entrance: Entrance,
    (State(house), Extension(visitor)): Knock,
    mut request: Request,
) -> Result<Response, Problem> {
    if entrance.needs_credential() && visitor.principal.is_none() {
        return Err(Problem::credential_missing());
    }
    let accept = handshake(request.method(), request.headers())?;
    let silent = wait_for_hello(&house, &visitor)?;
    let upgrade = hyper::upgrade::on(&mut request);
    let query = request.uri().query().unwrap_or_default().to_owned();
    let (principal, address) = (visitor.principal, visitor.address);
    let opening = Opening { entrance, principal, query, address };
    let guest = request.extensions().get::<Accepted>().map(|accepted| accepted.guest.clone());
    let guest = guest.ok_or_else(Problem::defect)?;
    tokio::spawn(attend(house, upgrade, opening, Held { silent, guest }));

    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// What the peer wants to hear back, if this is a WebSocket handshake.
fn handshake(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, Problem> {
    let says = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let mut words = values.flat_map(|value| value.split(','));
        words.any(|found| found.trim().eq_ignore_ascii_case(word))
    };
    let asked = *method == Method::GET
        && says(header::CONNECTION, "upgrade")
        && says(header::UPGRADE, "websocket");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| asked);
    let key = key.ok_or_else(Problem::upgrade_required)?;
    if !says(header::SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION) {
        return Err(Problem::upgrade_required());
    }
    let accept = derive_accept_key(key.as_bytes());
    HeaderValue::from_str(&accept).map_err(|error| Problem::internal(&error))
}

/// Friends have their own places, so that strangers cannot take them.
fn wait_for_hello(house: &House, visitor: &Visitor) -> Result<OwnedSemaphorePermit, Problem> {
    let places = match visitor.principal {
        Some(_) => &house.silent_friends,
        None => &house.silent_strangers,
    };
    places
        .clone()
        .try_acquire_owned()
        .map_err(|_| Problem::busy("Too many sockets are waiting for a hello"))
}

/// The places that a socket takes.
struct Held {
    silent: OwnedSemaphorePermit,
    guest: Arc<Guest>,
}

async fn attend(house: House, upgrade: OnUpgrade, opening: Opening, held: Held) {
    let Held { silent, guest } = held;
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => {
            tracing::debug!(%error, "a socket closed before it was open");
            return;
        }
    };
    let Some((stream, early)) = unwrap(upgraded) else { return };
    let mut max_frame_bytes = house.limits.max_frame_bytes;
    if opening.entrance.takes_pictures() {
        max_frame_bytes = max_frame_bytes.max(PICTURE_FRAME_BYTES_MAX);
    }
    let config = Some(socket_config(max_frame_bytes));
    let role = protocol::Role::Server;
    let frames = WebSocketStream::from_partially_read(stream, early, role, config).await;
    let leash = opening.principal.as_ref().map(|who| house.auth.leash(&who.credential));
    let closing = house.closing.clone();
    let socket =
        Socket { frames, leash, closing, silent: Some(silent), ending: None, _guest: guest };
    let inside = house.inside.clone();
    drop(house);
    inside.attend(socket, opening).await;
}

/// The connection itself, and what the peer said before we listened.
fn unwrap(upgraded: Upgraded) -> Option<(Stream, Vec<u8>)> {
    let parts = upgraded.downcast::<TokioIo<Stream>>();
    if parts.is_err() {
        tracing::error!("a socket came from another listener; this is a bug");
    }
    parts.ok().map(|parts| (parts.io.into_inner(), parts.read_buf.to_vec()))
}
