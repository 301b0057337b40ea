//! Whether the relay is alive, and whether it can serve.
//!
//! Not here: metrics (`metrics`).

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::told;
use crate::clock;
use crate::house::House;

/// `GET /healthz`: the process answers.
pub(super) async fn alive(State(house): State<House>) -> Response {
    let figures = house.inside.figures();
    let body = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": house.started.elapsed().as_secs(),
        "ts": clock::now().0,
        "connections": { "clients": figures.clients, "proxies": figures.proxies },
    });
    told(StatusCode::OK, &body)
}

/// `GET /readyz`: the ledger can be read and nobody asked the relay to stop.
pub(super) async fn ready(State(house): State<House>) -> Response {
    let closing = *house.closing.borrow();
    let ledger = house.inside.ready().await;
    let proxies = house.inside.figures().proxies;
    let ready = ledger.is_ok() && !closing;
    let body = json!({
        "status": if ready { "ready" } else { "not_ready" },
        "ledger": ledger.err().unwrap_or_else(|| "ok".to_owned()),
        "proxies": proxies,
    });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    told(status, &body)
}
