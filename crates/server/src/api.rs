//! The HTTP API.
//!
//! **Invariant**: every error is `{"error":{"code","message"}}` with a fitting status, and its
//! message says what to do.
//!
//! Not here: who may connect at all (`door`), sockets (`socket`).

mod export;
mod health;
mod me;
pub(crate) mod page;
mod pair;
mod problem;
mod sessions;
mod tokens;
mod uploads;

use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, delete, get, patch, post};
use serde::de::DeserializeOwned;

pub(crate) use problem::Problem;

use crate::house::House;
use crate::{door, metrics, socket};

/// The body of a JSON request; more is refused 413. A send's words are bounded on their own.
const JSON_BODY_BYTES_MAX: usize = 1024 * 1024;
/// It must be whole by then.
const JSON_BODY_WITHIN: Duration = Duration::from_secs(30);

/// Every path.
pub(crate) fn router(house: House) -> Router {
    let session = patch(sessions::change).delete(sessions::erase);
    let upload = post(uploads::put).layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/ws", any(socket::any))
        .route("/ws/native", any(socket::native))
        .route("/ws/proxy", any(socket::proxy))
        .route("/ws/blob", any(socket::blob))
        .route("/ws/pi", any(socket::pi))
        .route("/ws/control", any(socket::control))
        .route("/ws/webchannel", any(socket::webchannel))
        .route("/v1/me", get(me::show).post(me::enter).delete(me::leave))
        .route("/v1/pair", post(pair::redeem))
        .route("/v1/pair/codes", post(pair::offer))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{id}", delete(tokens::revoke))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{id}", session)
        .route("/v1/sessions/{id}/history", get(sessions::history))
        .route("/v1/sessions/{id}/messages", post(sessions::send))
        .route("/v1/sessions/{id}/tools/{call}/output", get(sessions::tool_output))
        .route("/v1/sessions/{id}/export", get(export::export))
        .route("/v1/uploads", upload)
        .route("/v1/uploads/{id}", get(uploads::get))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_that_way)
        .layer(from_fn_with_state(house.clone(), door::door))
        .with_state(house)
}

/// Reads a JSON body. An empty one is `{}`.
async fn json<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let read = axum::body::to_bytes(request.into_body(), JSON_BODY_BYTES_MAX);
    let body = tokio::time::timeout(JSON_BODY_WITHIN, read).await;
    let body = body.map_err(|_| Problem::too_slow())?;
    let body = body.map_err(|_| Problem::body_too_large(JSON_BODY_BYTES_MAX as u64))?;
    let body = if body.is_empty() { &b"{}"[..] } else { &body[..] };
    serde_json::from_slice(body)
        .map_err(|error| Problem::invalid(format!("Invalid request body: {error}")))
}

/// What no other path took: the page and its files, or nothing.
async fn nowhere(request: Request) -> Result<Response, Problem> {
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    let file = reads.then(|| page::file(request.uri(), request.headers())).flatten();
    file.ok_or_else(|| {
        let words = "Not found";
        Problem::new(StatusCode::NOT_FOUND, "not_found", words)
    })
}

async fn not_that_way() -> Problem {
    let words = "Method not allowed";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", words)
}

/// A JSON answer.
fn told(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, axum::Json(body)).into_response()
}
