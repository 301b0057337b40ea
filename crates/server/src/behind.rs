//! The relay behind the door.
//!
//! Not here: sockets (`socket`), gates (`relay::gate`), what frames mean (`wire`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use domain::session::{Command, Recorded};
use domain::{
    AttachmentId, ClientKey, ConnectionId, Principal, Role, Sequence, SessionId, Timestamp,
    ToolCallId,
};
use relay::books::EventsAsked;
use relay::gate::{self, ClientGate, Incoming, ProxyGate, Throttles, Transport as _};
use relay::metrics::COMMIT_BUCKETS_US;
use relay::ports::{Clock, Ids, Uploads};
use relay::routes::Kick;
use relay::{EventPage, Relay};
use wire::native::{self, Denied, Form, Limits, ProxyLimits, Throttle as _};

use crate::auth::{self, NoRandomness};
use crate::inside::{Entrance, Figures, Inside, Opening, Work};
use crate::shelf::Shelf;
use crate::socket::Socket;

/// A ledger that does not answer by then is not ready.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// The close code of a socket that said nothing.
const NO_HELLO: u16 = 4001;

/// The relay, its rate limits and its times.
#[derive(Clone)]
pub struct Behind {
    relay: Relay,
    throttles: Throttles,
    limits: Limits,
}

impl Behind {
    /// The sockets of one server share the throttles.
    pub fn new(relay: Relay, throttles: Throttles, limits: Limits) -> Self {
        Self { relay, throttles, limits }
    }

    async fn serve(self, mut socket: Socket, opening: Opening) {
        let Opening { entrance, principal } = opening;
        match entrance {
            Entrance::Native => self.client(socket, principal, None).await,
            Entrance::Proxy => self.proxy(socket, principal, None).await,
            Entrance::Any => {
                let hello_within = Duration::from_millis(self.limits.hello_timeout_ms);
                let first = tokio::time::timeout(hello_within, socket.receive()).await;
                let (code, reason) = match first {
                    Ok(Incoming::Text(first)) => {
                        let text = std::str::from_utf8(&first).unwrap_or_default();
                        return match wire::sniff(text) {
                            wire::Opening::NativeProxy => {
                                self.proxy(socket, principal, Some(first)).await;
                            }
                            wire::Opening::NativeClient | wire::Opening::Unknown => {
                                self.client(socket, principal, Some(first)).await;
                            }
                        };
                    }
                    Ok(Incoming::Binary) => (gate::close::BINARY, "frames are JSON text"),
                    Ok(Incoming::TooLarge) => (gate::close::TOO_LARGE, "the frame is too large"),
                    Ok(Incoming::Closed) => return,
                    Err(_) => (NO_HELLO, "no hello"),
                };
                socket.close(code, reason).await;
            }
        }
    }

    async fn client(self, socket: Socket, principal: Option<Principal>, first: Option<Bytes>) {
        if principal.as_ref().is_some_and(|who| who.role == Role::Proxy) {
            let reason = "this token is a machine's, not a person's";
            return socket.close(gate::close::FORBIDDEN, reason).await;
        }
        let Self { relay, throttles, limits } = self;
        let kick = Arc::new(Kick::default());
        let gate = ClientGate { relay, throttles, limits, kick };
        // Boxed, so that a socket that still waits for its first frame costs little.
        Box::pin(gate::serve_client(gate, socket, principal, first)).await;
    }

    async fn proxy(self, socket: Socket, principal: Option<Principal>, first: Option<Bytes>) {
        let Some(principal) = principal.filter(|who| who.role == Role::Proxy) else {
            let reason = "a proxy needs a token of role proxy";
            return socket.close(gate::close::FORBIDDEN, reason).await;
        };
        let Self { relay, limits, .. } = self;
        let limits = ProxyLimits {
            heartbeat_interval_ms: limits.heartbeat_interval_ms,
            heartbeat_timeout_ms: limits.heartbeat_timeout_ms,
            hello_timeout_ms: limits.hello_timeout_ms,
        };
        let gate = ProxyGate { relay, limits, kick: Arc::new(Kick::default()) };
        Box::pin(gate::serve_proxy(gate, socket, principal, first)).await;
    }
}

impl Inside for Behind {
    fn attend(&self, socket: Socket, opening: Opening) -> Work<'static, ()> {
        Box::pin(self.clone().serve(socket, opening))
    }

    fn sessions(&self) -> Vec<Bytes> {
        let listings = self.relay.listings();
        let json =
            listings.iter().map(|listing| serde_json::to_vec(&native::session_json(listing)));
        // Plain structs without maps of other keys than text: encoding cannot fail.
        json.filter_map(Result::ok).map(Bytes::from).collect()
    }

    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        after: Sequence,
        limit: usize,
    ) -> Work<'a, Result<EventPage, Denied>> {
        Box::pin(self.relay.history(session, after, None, limit))
    }

    fn encode(&self, session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
        native::encode_event(session, recorded, Form::Full)
    }

    fn encode_whole(&self, session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
        native::encode_whole(session, recorded)
    }

    fn tool_output<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a ToolCallId,
    ) -> Work<'a, Result<String, Denied>> {
        Box::pin(self.relay.tool_output(session, call, None))
    }

    fn command<'a>(
        &'a self,
        session: &'a SessionId,
        command: Command,
    ) -> Work<'a, Result<Vec<Recorded>, Denied>> {
        Box::pin(async move {
            let published = self.relay.command(session, command).await?;
            Ok(published.iter().map(|event| event.recorded.clone()).collect())
        })
    }

    fn erase<'a>(&'a self, session: &'a SessionId) -> Work<'a, Result<(), Denied>> {
        Box::pin(self.relay.erase(session))
    }

    fn may_send(&self, client: &ClientKey) -> bool {
        self.throttles.of(client.clone()).send(self.relay.ports().clock.now())
    }

    fn figures(&self) -> Figures {
        let (metrics, commits) = (self.relay.metrics(), self.relay.metrics().commit_latency());
        let listings = self.relay.listings();
        let connected = listings.iter().filter(|it| it.card.status.via().is_some()).count();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            clients: metrics.clients.load(Ordering::Relaxed),
            proxies: metrics.proxies.load(Ordering::Relaxed),
            sessions: listings.len(),
            sessions_connected: connected,
            owners: metrics.owners.load(Ordering::Relaxed),
            sends: [&metrics.sends_accepted, &metrics.sends_delivered, &metrics.sends_failed]
                .map(count),
            lagged: count(&metrics.lagged),
            passing: count(&metrics.passing),
            appends_waiting: metrics.appends_waiting.load(Ordering::Relaxed),
            events: commits.events,
            commit_failures: commits.failures,
            commit_buckets_us: COMMIT_BUCKETS_US.into_iter().zip(commits.buckets).collect(),
            commits: commits.count,
            commits_us: commits.us_sum,
        }
    }

    fn ready(&self) -> Work<'_, Result<(), String>> {
        Box::pin(async {
            let (stream, after) = (domain::fleet::FLEET_STREAM.into(), Sequence(0));
            let ask = EventsAsked { stream, after, upto: None, limit: 1 };
            match tokio::time::timeout(READY_WITHIN, self.relay.books().raw(ask)).await {
                Ok(read) => read.map(drop).map_err(|fault| fault.to_string()),
                Err(_) => Err("the ledger does not answer".to_owned()),
            }
        })
    }
}

/// The computer's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        crate::clock::now()
    }
}

/// Names that no other process made or makes.
#[derive(Debug)]
pub struct RandomIds {
    prefix: String,
    made: AtomicU64,
}

impl RandomIds {
    /// Draws this process's part of every name.
    pub fn new() -> Result<Self, NoRandomness> {
        Ok(Self { prefix: auth::id("conn")?, made: AtomicU64::new(0) })
    }
}

impl Ids for RandomIds {
    fn connection(&self) -> ConnectionId {
        format!("{}_{}", self.prefix, self.made.fetch_add(1, Ordering::Relaxed)).into()
    }
}

impl Uploads for Shelf {
    fn media_type(&self, id: &AttachmentId) -> Option<String> {
        self.find(id).map(|item| item.media_type.clone())
    }
}
