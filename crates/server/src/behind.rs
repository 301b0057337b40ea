//! Connects the server to the relay behind it.
//!
//! Not here: sockets (`socket`), gates (`relay::gate`), what frames mean (`wire`).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use domain::content::{Attachment, Failure};
use domain::session::{Command, Recorded};
use domain::{
    AttachmentId, ClientKey, ConnectionId, CredentialId, Principal, Role, Sequence, SessionId,
    Timestamp, ToolCallId,
};
use relay::books::EventsAsked;
use relay::gate::{self, ClientGate, Incoming, ProxyGate, Throttles, Transport as _, VisitorGate};
use relay::metrics::COMMIT_BUCKETS_US;
use relay::ports::{self, Clock, Door, Ids, NewFile, Uploads};
use relay::routes::Kick;
use relay::{EventPage, Relay};
use tokio::io::AsyncReadExt as _;
use wire::native::{self, Denied, Form, Limits, ProxyLimits, Throttle as _};
use wire::visitor::Recognised;
use wire::{blob, control, pi, webchannel};

use crate::auth::{self, Auth, NoRandomness, PairRefused};
use crate::inside::{Entrance, Figures, Inside, Opening, Work};
use crate::shelf::{Shelf, ShelfFault};
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
    auth: Auth,
}

/// The dialects that look at one session at a time.
#[derive(Debug, Clone, Copy)]
enum Dialect {
    Blob,
    Pi,
    Control,
    Webchannel,
}

/// Who opened a socket, and how.
struct Visit {
    principal: Option<Principal>,
    query: String,
    address: IpAddr,
}

impl Behind {
    /// The sockets of one server share the throttles.
    pub fn new(relay: Relay, throttles: Throttles, limits: Limits, auth: Auth) -> Self {
        Self { relay, throttles, limits, auth }
    }

    async fn serve(self, mut socket: Socket, opening: Opening) {
        let Opening { entrance, principal, query, address } = opening;
        let visit = Visit { principal: principal.clone(), query, address };
        match entrance {
            Entrance::Native => self.client(socket, principal, None).await,
            Entrance::Proxy => self.proxy(socket, principal, None).await,
            Entrance::Blob => self.visit(Dialect::Blob, socket, visit, None).await,
            Entrance::Pi => self.visit(Dialect::Pi, socket, visit, None).await,
            Entrance::Control => self.visit(Dialect::Control, socket, visit, None).await,
            Entrance::Webchannel => self.visit(Dialect::Webchannel, socket, visit, None).await,
            // One that was paired need say nothing to be known again.
            Entrance::Any if principal.as_ref().is_some_and(webchannel::is_paired) => {
                self.visit(Dialect::Webchannel, socket, visit, None).await;
            }
            Entrance::Any => {
                let hello_within = Duration::from_millis(self.limits.hello_timeout_ms);
                let first = tokio::time::timeout(hello_within, socket.receive()).await;
                let (code, reason) = match first {
                    Ok(Incoming::Text(first)) => {
                        let text = std::str::from_utf8(&first).unwrap_or_default();
                        let first = Some(first.clone());
                        return match wire::sniff(text) {
                            wire::Opening::Blob => {
                                self.visit(Dialect::Blob, socket, visit, first).await;
                            }
                            wire::Opening::Pi => {
                                self.visit(Dialect::Pi, socket, visit, first).await;
                            }
                            wire::Opening::Control => {
                                self.visit(Dialect::Control, socket, visit, first).await;
                            }
                            wire::Opening::Webchannel => {
                                self.visit(Dialect::Webchannel, socket, visit, first).await;
                            }
                            wire::Opening::NativeProxy => {
                                self.proxy(socket, principal, first).await;
                            }
                            wire::Opening::NativeClient | wire::Opening::Unknown => {
                                self.client(socket, principal, first).await;
                            }
                        };
                    }
                    Ok(Incoming::Binary) => (gate::close::BINARY, "frames must be JSON text"),
                    Ok(Incoming::TooLarge) => (gate::close::TOO_LARGE, "the frame is too large"),
                    Ok(Incoming::Closed) => return,
                    Err(_) => (NO_HELLO, "no hello in time"),
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
        let Self { relay, throttles, limits, .. } = self;
        let kick = Arc::new(Kick::default());
        let gate = ClientGate { relay, throttles, limits, kick };
        // Boxed, so that a socket that still waits for its first frame costs little.
        Box::pin(gate::serve_client(gate, socket, principal, first)).await;
    }

    /// A client in a dialect that looks at one session at a time.
    async fn visit(self, dialect: Dialect, socket: Socket, visit: Visit, first: Option<Bytes>) {
        let Visit { principal, query, address } = visit;
        if principal.as_ref().is_some_and(|who| who.role == Role::Proxy) {
            let reason = "this token is a machine's, not a person's";
            return socket.close(gate::close::FORBIDDEN, reason).await;
        }
        let Self { relay, throttles, limits, auth } = self;
        let door = Arc::new(Lobby { auth, address });
        let (connection, now) = (relay.ports().ids.connection(), relay.ports().clock.now());
        let gate = VisitorGate { relay, throttles, door, kick: Arc::new(Kick::default()) };
        match dialect {
            Dialect::Blob => {
                let visitor = blob::Connection::new(connection, principal, &query, limits, now);
                Box::pin(gate::serve_visitor(gate, visitor, socket, first)).await;
            }
            Dialect::Pi => {
                let visitor = pi::Connection::new(connection, principal, &query, limits, now);
                Box::pin(gate::serve_visitor(gate, visitor, socket, first)).await;
            }
            Dialect::Control => {
                let visitor = control::Connection::new(connection, principal, &query, limits, now);
                Box::pin(gate::serve_visitor(gate, visitor, socket, first)).await;
            }
            Dialect::Webchannel => {
                let Ok(seed) = auth::seed() else {
                    return socket.close(gate::close::INTERNAL, "no random bytes available").await;
                };
                let visitor =
                    webchannel::Connection::new(connection, principal, &query, limits, seed, now);
                // It says goodbye in its own words; the gate tells it when.
                let socket = socket.unleashed();
                Box::pin(gate::serve_visitor(gate, visitor, socket, first)).await;
            }
        }
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
                Err(_) => Err("the ledger is not responding".to_owned()),
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

    fn store(&self, file: NewFile) -> ports::Work<Result<Attachment, Failure>> {
        let uploads = self.clone();
        Box::pin(async move { uploads.keep(file).await.map_err(|fault| unkept(&fault)) })
    }

    fn load(&self, id: &AttachmentId) -> ports::Work<Result<Bytes, Failure>> {
        let (uploads, id) = (self.clone(), id.clone());
        Box::pin(async move {
            let unknown = || Failure::new("attachment_unknown", "File not found");
            uploads.find(&id).ok_or_else(unknown)?;
            let failed = |error: std::io::Error| Failure::new("internal", error.to_string());
            let mut file = uploads.read(&id).await.map_err(failed)?;
            let mut bytes = vec![];
            file.read_to_end(&mut bytes).await.map_err(failed)?;
            Ok(bytes.into())
        })
    }
}

fn unkept(fault: &ShelfFault) -> Failure {
    let code = match fault {
        ShelfFault::Full => "disk_full",
        ShelfFault::TooLarge { .. } => "message_too_large",
        ShelfFault::Io(_) | ShelfFault::Records(_) => "internal",
    };
    Failure::new(code, fault.to_string())
}

/// Where people come in by a word within a frame.
struct Lobby {
    auth: Auth,
    address: IpAddr,
}

impl Door for Lobby {
    fn pair(
        &self,
        code: String,
        name: String,
        key: Option<[u8; 32]>,
    ) -> ports::Work<Result<(Principal, String), Failure>> {
        let (auth, address) = (self.auth.clone(), self.address);
        Box::pin(async move {
            let now = crate::clock::now();
            let redeemed = auth.redeem_channel(&code, &name, key, address, now).await;
            let redeemed = redeemed.map_err(|fault| Failure::new("internal", fault.to_string()))?;
            let issued = redeemed.map_err(|refused| match refused {
                PairRefused::WrongCode => {
                    tracing::warn!(from = %address, "wrong pairing code");
                    let words =
                        "The code is wrong, used or expired; get a new one with farhelm pair";
                    Failure::new("pairing_code_invalid", words)
                }
                PairRefused::LockedOut { .. } => {
                    Failure::new("rate_limited", "Too many wrong codes; try again later")
                }
            })?;
            let unknown = || Failure::new("internal", "the new credential was already revoked");
            let principal = auth.check(&issued.token, now).ok_or_else(unknown)?;
            tracing::info!(target: "audit", id = %issued.id, name = issued.name, from = %address, "webchannel client paired");
            Ok((principal, issued.token))
        })
    }

    fn recognise(&self, token: String) -> ports::Work<Option<Recognised>> {
        let auth = self.auth.clone();
        Box::pin(async move {
            let known = auth.recognise(token, crate::clock::now()).await;
            // A machine's token is nobody's here, as at the door.
            known.filter(|known| known.principal.role != Role::Proxy)
        })
    }

    fn spend(&self, credential: CredentialId, nonce: [u8; 12]) -> ports::Work<bool> {
        let auth = self.auth.clone();
        Box::pin(async move { auth.spend(&credential, nonce).await })
    }

    fn revoked(&self, credential: &CredentialId) -> ports::Work<()> {
        let mut leash = self.auth.leash(credential);
        Box::pin(async move { leash.broken().await })
    }

    fn identify(&self, token: String) -> ports::Work<Option<Principal>> {
        let auth = self.auth.clone();
        Box::pin(async move {
            let principal = auth.check(&token, crate::clock::now());
            principal.filter(|who| !webchannel::is_paired(who) && who.role != Role::Proxy)
        })
    }
}
