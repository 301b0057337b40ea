//! A browser: calls, events, and whether it is still connected.
//!
//! **Invariant:** every call ends: with an answer, a refusal, the end of the connection, or a
//! timeout.
//!
//! Not here: the socket's tasks (`connection`), scripts in frames (`place`).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::address::Address;
use crate::connection::{self, Command, Events, Handle};
use crate::contexts::Context;
use crate::{Fault, SessionId};

/// How long a call may take that names no time of its own.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long opening the socket may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// A panel with a very long conversation tells it at once.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A connection to a browser. Clones share it; it is closed with the last one, or by the browser.
#[derive(Clone)]
pub struct Browser {
    address: String,
    handle: Handle,
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Browser({})", self.address)
    }
}

impl Browser {
    /// Connects to the debug port at `127.0.0.1:PORT`, `[::1]:PORT` or `localhost:PORT`. Anything
    /// else is refused.
    pub async fn connect(host_port: &str) -> Result<Self, Fault> {
        let address = Address::parse(host_port)?;
        let path = address.socket_path().await?;
        let stream = address.open().await?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let url = format!("ws://{}{path}", address.authority());
        let opening = client_async_with_config(url, stream, Some(limits));
        let (socket, _) = timeout(OPEN_TIMEOUT, opening)
            .await
            .map_err(|_| address.unreachable(&"opening its WebSocket took too long"))?
            .map_err(|error| address.strange(&error.to_string()))?;
        Ok(Self { address: address.authority(), handle: connection::start(socket) })
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Calls a method of a session, or of the browser itself; waits up to [`CALL_TIMEOUT`].
    pub async fn call(
        &self,
        session: Option<&SessionId>,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        self.call_within(CALL_TIMEOUT, session, method, params).await
    }

    /// The same, with a time of its own. A call that is late may still be done by the browser.
    pub async fn call_within(
        &self,
        within: Duration,
        session: Option<&SessionId>,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let (answer, answered) = oneshot::channel();
        let command =
            Command::Call { session: session.cloned(), method: method.to_owned(), params, answer };
        let exchange = async {
            self.handle.commands.send(command).await.map_err(|_| Fault::Closed)?;
            answered.await.map_err(|_| Fault::Closed)?
        };
        let late = || Fault::Late { method: method.to_owned(), within };
        timeout(within, exchange).await.map_err(|_| late())?
    }

    /// Everything that the browser tells from now on. A listener that is too far behind is told
    /// how much it missed.
    pub async fn events(&self) -> Result<Events, Fault> {
        let (answer, answered) = oneshot::channel();
        let asked = self.handle.commands.send(Command::Listen { answer }).await;
        asked.map_err(|_| Fault::Closed)?;
        answered.await.map_err(|_| Fault::Closed)
    }

    /// Comes back when the connection is gone.
    pub async fn closed(&self) {
        let mut is_open = self.handle.is_open.clone();
        // The sender goes away only with the tasks, which is the same news.
        let _ = is_open.wait_for(|is_open| !is_open).await;
    }

    /// Whether the connection is there, as far as is known.
    pub fn is_open(&self) -> bool {
        *self.handle.is_open.borrow()
    }

    /// Attaches to a target as a flat session of this connection. The target goes on as it was:
    /// nothing is paused, and no domain is turned on.
    pub async fn attach(&self, target_id: &str) -> Result<SessionId, Fault> {
        let method = "Target.attachToTarget";
        let params = json!({"targetId": target_id, "flatten": true});
        let answer = self.call(None, method, params).await?;
        let session = answer["sessionId"].as_str();
        let missing = || Fault::Incomplete { method: method.to_owned(), missing: "a session" };
        session.map(|id| SessionId(id.to_owned())).ok_or_else(missing)
    }

    /// Lets go of a target.
    pub async fn detach(&self, session: &SessionId) -> Result<(), Fault> {
        let params = json!({"sessionId": session});
        self.call(None, "Target.detachFromTarget", params).await.map(drop)
    }

    pub(crate) async fn contexts(&self, session: &SessionId) -> Result<Vec<Context>, Fault> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Contexts { session: session.clone(), answer };
        self.handle.commands.send(command).await.map_err(|_| Fault::Closed)?;
        answered.await.map_err(|_| Fault::Closed)
    }
}
