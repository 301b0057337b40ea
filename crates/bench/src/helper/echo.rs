//! WebSocket echo through axum alone: the floor of a hop.

use std::io::Write as _;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use crate::trouble::Outcome;

/// As the relay's own sockets have them.
const READ_BUFFER_BYTES: usize = 4 * 1024;
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

pub(crate) async fn run() -> Outcome<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // Without it the echo would wait for company.
        let _ = stream.set_nodelay(true);
    });
    let router: Router = Router::new().route("/", any(upgrade));
    Ok(axum::serve(listener, router).await?)
}

async fn upgrade(upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .on_upgrade(echo)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let Message::Text(_) = message else { continue };
        if socket.send(message).await.is_err() {
            return;
        }
    }
}
