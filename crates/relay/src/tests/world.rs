//! A relay and the far ends of its connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::content::{Author, Failure, Message, Part};
use domain::session::delivery::Send;
use domain::session::status::{Health, Meta, Via};
use domain::session::{Change, Command, Event, Recorded, Report, Wish, Word, transcript};
use domain::{
    ConnectionId, Content, CredentialId, Principal, Role, Sequence, SessionId, Timestamp,
};
use serde_json::{Value, json};
use store::{MemoryDisk, Retention};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use wire::native::{Denied, Limits, ProxyLimits};
use wire::visitor::{Recognised, Visitor};

use crate::gate::{
    ClientGate, Incoming, ProxyGate, Rates, Throttles, Transport, VisitorGate, serve_client,
    serve_proxy, serve_visitor,
};
use crate::metrics::Metrics;
use crate::owner::Reply;
use crate::ports::{Clock, Door, Ids, NoUploads, Ports, Work};
use crate::routes::Kick;
use crate::{Books, Policies, Relay, Tasks};

/// When this world begins.
const BEGINNING_MS: u64 = 1_790_000_000_000;
/// How long anything is waited for, on paused time.
const PATIENCE: Duration = Duration::from_secs(120);
/// The session that is there once its machine is.
pub(super) const SESSION: &str = "sess_1";

/// A wall clock that can be set.
#[derive(Debug, Clone)]
pub(super) struct TestClock {
    begun: Instant,
    jumped_ms: Arc<AtomicI64>,
}

impl TestClock {
    pub(super) fn jump(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        let now = BEGINNING_MS + elapsed_ms;
        Timestamp(now.saturating_add_signed(self.jumped_ms.load(Ordering::Relaxed)))
    }
}

#[derive(Debug, Clone, Default)]
struct TestIds(Arc<AtomicU64>);

impl Ids for TestIds {
    fn connection(&self) -> ConnectionId {
        format!("conn_{}", self.0.fetch_add(1, Ordering::Relaxed)).into()
    }
}

/// Credentials that tests hand out and revoke. A token is its owner's name.
#[derive(Debug, Clone, Default)]
pub(super) struct Credentials(Arc<Mutex<BTreeMap<CredentialId, watch::Sender<bool>>>>);

impl Credentials {
    fn of(&self, credential: &CredentialId) -> watch::Receiver<bool> {
        let mut all = self.0.lock().unwrap();
        all.entry(credential.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe()
    }

    pub(super) fn revoke(&self, name: &str) {
        let mut revoked = self.of(&name.into());
        self.0.lock().unwrap()[&CredentialId::from(name)].send_replace(true);
        assert!(*revoked.borrow_and_update());
    }
}

impl Door for Credentials {
    fn pair(
        &self,
        _code: String,
        _name: String,
        _key: Option<[u8; 32]>,
    ) -> Work<Result<(Principal, String), Failure>> {
        Box::pin(async { Err(Failure::new("pairing_failed", "not in these tests")) })
    }

    fn recognise(&self, token: String) -> Work<Option<Recognised>> {
        let principal = person(&token);
        Box::pin(async { Some(Recognised { principal, key: None, expires_at: None }) })
    }

    fn spend(&self, _credential: CredentialId, _nonce: [u8; 12]) -> Work<bool> {
        Box::pin(async { false })
    }

    fn revoked(&self, credential: &CredentialId) -> Work<()> {
        let mut revoked = self.of(credential);
        Box::pin(async move {
            let _ = revoked.wait_for(|revoked| *revoked).await;
        })
    }

    fn identify(&self, token: String) -> Work<Option<Principal>> {
        let principal = person(&token);
        Box::pin(async { Some(principal) })
    }
}

pub(super) fn person(name: &str) -> Principal {
    Principal { credential: name.into(), role: Role::Operator, client: None, name: name.to_owned() }
}

/// A relay whose disk, clock and commits are the test's.
pub(super) struct World {
    pub(super) relay: Relay,
    pub(super) disk: MemoryDisk,
    pub(super) clock: TestClock,
    pub(super) door: Credentials,
    ids: TestIds,
    /// Whether commits happen.
    commits: watch::Sender<bool>,
    tasks: Tasks,
}

impl World {
    pub(super) async fn new() -> Self {
        let clock = TestClock { begun: Instant::now(), jumped_ms: Arc::default() };
        Self::on(MemoryDisk::new(), clock, TestIds::default()).await
    }

    async fn on(disk: MemoryDisk, clock: TestClock, ids: TestIds) -> Self {
        let (tasks, metrics) = (Tasks::default(), Arc::new(Metrics::default()));
        let commits = watch::Sender::new(true);
        let goes = commits.subscribe();
        let turn = move || {
            let mut goes = goes.clone();
            async move {
                let _ = goes.wait_for(|goes| *goes).await;
            }
        };
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let ledger = Box::new(disk.open().unwrap());
        let books = Books::as_tasks(
            ledger,
            "test",
            Retention::default(),
            shared.clone(),
            metrics.clone(),
            &tasks,
            turn,
        );
        let ports = Ports {
            clock: shared,
            ids: Arc::new(ids.clone()),
            uploads: Arc::new(NoUploads),
            tasks: tasks.clone(),
        };
        let policies = Policies::default();
        let relay = Relay::start(books.unwrap(), ports, policies, metrics).await.unwrap();
        let door = Credentials::default();
        Self { relay, disk, clock, door, ids, commits, tasks }
    }

    /// Nothing is committed until [`World::commit_again`].
    pub(super) fn hold_commits(&self) {
        self.commits.send_replace(false);
    }

    pub(super) fn commit_again(&self) {
        self.commits.send_replace(true);
    }

    pub(super) fn rates() -> Throttles {
        Throttles::new(Rates { sends_per_10s: u32::MAX, frames_per_minute: u32::MAX })
    }

    /// A native client that was greeted.
    pub(super) async fn client(&self, name: &str) -> Peer {
        let mut client = self.stranger(name);
        client.say(&hello(&["runs", "tools", "deltas"])).await;
        client.hear("session_snapshot").await;
        client
    }

    /// A native client that has said nothing yet.
    pub(super) fn stranger(&self, name: &str) -> Peer {
        let (near, far) = connect();
        let kick = far.kick.clone();
        let gate = ClientGate {
            relay: self.relay.clone(),
            throttles: Self::rates(),
            limits: Limits::default(),
            kick,
        };
        self.tasks.spawn("client", serve_client(gate, near, Some(person(name)), None));
        far
    }

    /// A client in a dialect that looks at one session at a time.
    pub(super) fn visitor(&self, visitor: impl Visitor + 'static) -> Peer {
        let (near, far) = connect();
        let kick = far.kick.clone();
        let gate = VisitorGate {
            relay: self.relay.clone(),
            throttles: Self::rates(),
            door: Arc::new(self.door.clone()),
            kick,
        };
        self.tasks.spawn("visitor", serve_visitor(gate, visitor, near, None));
        far
    }

    pub(super) fn ids(&self) -> ConnectionId {
        self.ids.connection()
    }

    /// A proxy that was greeted; with a journal if it names one.
    pub(super) async fn proxy(&self, link: Option<&str>) -> Peer {
        let (near, mut far) = connect();
        let kick = far.kick.clone();
        let gate = ProxyGate { relay: self.relay.clone(), limits: ProxyLimits::default(), kick };
        let machine = Principal { role: Role::Proxy, ..person("attic") };
        self.tasks.spawn("proxy", serve_proxy(gate, near, machine, None));
        let mut greeting = json!({
            "type": "connection_hello", "protocol_version": 1, "peer_role": "proxy",
            "client_name": "agent-proxy", "machine_label": "attic",
            "features": ["deltas", "tools", "runs"],
        });
        if let Some(link) = link {
            greeting["features"] = json!(["link", "deltas", "tools", "runs"]);
            greeting["link"] = json!({ "id": link });
        }
        far.say(&greeting).await;
        far.hear("connection_ack").await;
        far
    }

    /// A proxy with a journal that has brought up the session.
    pub(super) async fn machine(&self) -> Peer {
        self.machine_with(&[SESSION]).await
    }

    pub(super) async fn machine_with(&self, sessions: &[&str]) -> Peer {
        let mut proxy = self.proxy(Some("link_1")).await;
        proxy.name(sessions).await;
        for session in sessions {
            self.reached(session).await;
        }
        proxy
    }

    /// Waits until a session is reached through a proxy.
    async fn reached(&self, session: &str) {
        let mut live = self.relay.watch();
        let is_up = || {
            let listing = self.relay.directory().get(&session.into());
            listing.is_some_and(|it| it.card.status.via().is_some())
        };
        while !is_up() {
            let _ = tokio::time::timeout(PATIENCE, live.recv()).await.expect("it never came up");
        }
    }

    /// Everything of a session that the ledger has.
    pub(super) async fn ledger(&self, session: &str) -> Vec<Recorded> {
        let (mut all, mut after) = (vec![], Sequence(0));
        loop {
            let page = self.relay.history(&session.into(), after, None, 1_000).await.unwrap();
            let Some(last) = page.events.last() else { return all };
            after = last.sequence;
            all.extend(page.events);
        }
    }

    /// The texts of the messages that the ledger has of a session, in their order.
    pub(super) async fn recorded_texts(&self, session: &str) -> Vec<String> {
        let events = self.ledger(session).await;
        events.iter().filter_map(|recorded| text_of(&recorded.event)).collect()
    }

    pub(super) fn head(&self) -> u64 {
        self.relay.directory().head(&SESSION.into()).unwrap_or_default().0
    }

    pub(super) fn lagged(&self) -> u64 {
        self.relay.metrics().lagged.load(Ordering::Relaxed)
    }

    /// Fills the ring with what is recorded in another session: whoever is not reading now, lags.
    pub(super) async fn flood(&self) {
        let whole = crate::hub::RING_BYTES_MAX / 3;
        let text = "x".repeat(1 << 20);
        let session = SessionId::from("noise");
        let meta = Box::new(Meta::of_agent("demo".into()));
        let via = Via { connection: "noise".into(), link: None };
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.relay.tell(&session, Command::Relay(up), Reply::Nobody).await;
        self.relay.settle(&session).await;
        for number in 0..=whole / text.len() + 1 {
            let said = said(&format!("noise_{number}"), &text);
            self.relay.command(&session, said).await.unwrap();
        }
    }

    /// Lets everything happen that can happen by itself.
    pub(super) async fn rest(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    pub(super) async fn pass_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

/// What an agent said, as the owner of its session takes it from the machine named `noise`.
fn said(id: &str, text: &str) -> Command {
    let message = Message {
        id: id.into(),
        author: Author::Assistant,
        parts: Content::Open(vec![Part::Text(text.to_owned())]),
        created_at: Timestamp(BEGINNING_MS),
        run: None,
        parent: None,
        digest: None,
    };
    let report = Report::Message { message, has_own_id: true, echo: None };
    Command::Proxy(Word { connection: "noise".into(), position: None, report })
}

/// The text of a recorded message.
fn text_of(event: &Event) -> Option<String> {
    let Event::Transcript(transcript::Event::Message(message)) = event else { return None };
    let Content::Open(parts) = &message.parts else { return None };
    let [Part::Text(text)] = parts.as_slice() else { return None };
    Some(text.clone())
}

/// The test's end of a connection.
pub(super) struct Peer {
    to: mpsc::UnboundedSender<Incoming>,
    from: mpsc::UnboundedReceiver<Vec<Bytes>>,
    closed: oneshot::Receiver<(u16, String)>,
    reads: watch::Sender<bool>,
    taken_bytes: Arc<AtomicUsize>,
    unread: VecDeque<Value>,
    /// Ends the connection from the relay's side.
    pub(super) kick: Arc<Kick>,
    /// Times that the connection has written.
    pub(super) writes: usize,
}

/// The relay's end.
struct Near {
    from: mpsc::UnboundedReceiver<Incoming>,
    to: mpsc::UnboundedSender<Vec<Bytes>>,
    closed: oneshot::Sender<(u16, String)>,
    reads: watch::Receiver<bool>,
    taken_bytes: Arc<AtomicUsize>,
}

fn connect() -> (Near, Peer) {
    let (inward, from_peer) = mpsc::unbounded_channel();
    let (outward, from_relay) = mpsc::unbounded_channel();
    let (closing, closed) = oneshot::channel();
    let (reads, is_read) = watch::channel(true);
    let taken_bytes = Arc::new(AtomicUsize::new(0));
    let near = Near {
        from: from_peer,
        to: outward,
        closed: closing,
        reads: is_read,
        taken_bytes: taken_bytes.clone(),
    };
    let far = Peer {
        to: inward,
        from: from_relay,
        closed,
        reads,
        taken_bytes,
        unread: VecDeque::new(),
        kick: Arc::default(),
        writes: 0,
    };
    (near, far)
}

impl Transport for Near {
    async fn receive(&mut self) -> Incoming {
        let Some(incoming) = self.from.recv().await else { return Incoming::Closed };
        if let Incoming::Text(text) = &incoming {
            self.taken_bytes.fetch_add(text.len(), Ordering::Relaxed);
        }
        incoming
    }

    async fn send_all(&mut self, frames: &mut Vec<Bytes>) -> Result<(), ()> {
        let _ = self.reads.wait_for(|reads| *reads).await.map_err(drop)?;
        self.to.send(std::mem::take(frames)).map_err(drop)
    }

    async fn close(self, code: u16, reason: &str) {
        let _ = self.closed.send((code, reason.to_owned()));
    }
}

impl Peer {
    pub(super) async fn say(&mut self, frame: &Value) {
        self.bring(Incoming::Text(Bytes::from(frame.to_string()))).await;
    }

    #[expect(clippy::unused_async, reason = "saying is a step of a conversation like the others")]
    pub(super) async fn bring(&mut self, incoming: Incoming) {
        let _ = self.to.send(incoming);
    }

    /// What the connection writes waits until [`Peer::read_again`].
    pub(super) fn stop_reading(&self) {
        self.reads.send_replace(false);
    }

    pub(super) fn read_again(&self) {
        self.reads.send_replace(true);
    }

    /// The bytes that the connection took from its socket.
    pub(super) fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Ordering::Relaxed)
    }

    fn take_in(&mut self, frames: &[Bytes]) {
        self.writes += 1;
        self.unread.extend(frames.iter().map(|frame| {
            let frame: Value = serde_json::from_slice(frame).expect("every frame is JSON");
            frame
        }));
    }

    /// The next frame.
    pub(super) async fn next(&mut self) -> Value {
        loop {
            if let Some(frame) = self.unread.pop_front() {
                return frame;
            }
            let written = tokio::time::timeout(PATIENCE, self.from.recv()).await;
            let written = written.expect("nothing is said").expect("the connection is gone");
            self.take_in(&written);
        }
    }

    /// The next frame that fits; what came before it is passed over.
    pub(super) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut passed_over = vec![];
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let frame = self.next().await;
                if fits(&frame) {
                    return frame;
                }
                passed_over.push(frame.to_string().chars().take(300).collect::<String>());
            }
        });
        match found.await {
            Ok(frame) => frame,
            Err(late) => panic!("it never came ({late}); what came: {passed_over:#?}"),
        }
    }

    /// The next frame of this type.
    pub(super) async fn hear(&mut self, kind: &str) -> Value {
        self.until(|frame| frame["type"] == kind).await
    }

    /// Everything that is said without anything more happening.
    pub(super) async fn rest(&mut self) -> Vec<Value> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        while let Ok(written) = self.from.try_recv() {
            self.take_in(&written);
        }
        self.unread.drain(..).collect()
    }

    /// How the connection was closed.
    pub(super) async fn close_code(&mut self) -> u16 {
        let closed = tokio::time::timeout(PATIENCE, &mut self.closed).await;
        closed.expect("it was not closed").expect("it ended without a word").0
    }

    pub(super) fn is_open(&mut self) -> bool {
        matches!(self.closed.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// Says that it is alive, for so long.
    pub(super) async fn lives_on_ms(&mut self, ms: u64) {
        let mut left_ms = ms;
        while left_ms > 0 {
            let step_ms = left_ms.min(10_000);
            tokio::time::sleep(Duration::from_millis(step_ms)).await;
            self.say(&json!({ "type": "heartbeat", "protocol_version": 1 })).await;
            left_ms -= step_ms;
        }
    }

    /// A proxy names its sessions.
    pub(super) async fn name(&mut self, sessions: &[&str]) {
        let named = |session: &&str| json!({ "session_id": session, "agent_type": "demo", "status": "healthy" });
        let sessions: Vec<_> = sessions.iter().map(named).collect();
        let kind = "proxy_session_snapshot";
        self.say(&json!({ "type": kind, "protocol_version": 1, "sessions": sessions })).await;
    }

    /// A proxy reports what an agent said.
    pub(super) async fn reports(&mut self, number: u64, text: &str) {
        self.say(&report(number, text)).await;
    }
}

pub(super) fn hello(features: &[&str]) -> Value {
    json!({
        "type": "connection_hello", "protocol_version": 1, "peer_role": "browser",
        "client_name": "t", "features": features,
    })
}

/// A person's message.
pub(super) fn send(id: &str, text: &str) -> Value {
    json!({
        "type": "send_message", "protocol_version": 1, "session_id": SESSION,
        "client_message_id": id, "content": text, "created_at": "2026-10-01T00:00:00.000Z",
    })
}

/// An agent's message, with its number in the proxy's journal.
pub(super) fn report(number: u64, text: &str) -> Value {
    json!({
        "type": "proxy_message", "protocol_version": 1, "session_id": SESSION,
        "link_number": number,
        "message": {
            "message_id": format!("a{number}"), "role": "assistant", "content": text,
            "created_at": "2026-10-01T00:00:00.000Z",
        },
    })
}

/// A send as the handle of the relay takes it.
pub(super) fn wish(id: &str) -> Command {
    let send = Send {
        id: id.into(),
        text: Content::Open(format!("the text of {id}")),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(BEGINNING_MS),
        digest: None,
    };
    Command::Person(person("ada"), Wish::Send { send, earlier: None })
}

/// Whether the relay gave up what was said because it could not be recorded.
pub(super) fn is_failed<T>(answer: &Result<T, Denied>) -> bool {
    matches!(answer, Err(Denied::Failed(_)))
}
