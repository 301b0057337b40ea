//! The server with the real relay behind it: a plain v1 proxy, a plain v1 client, and HTTP.

use std::sync::Arc;
use std::time::Duration;

use domain::{Role, Timestamp};
use futures_util::{SinkExt as _, StreamExt as _};
use relay::gate::{Rates, Throttles, close};
use relay::metrics::Metrics;
use relay::ports::{Clock, Ports};
use relay::{Books, Policies, Relay};
use serde_json::{Value, json};
use store::{CredentialKind, Ledger as _, MemoryDisk, Retention};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use wire::native::Limits;

use super::client::Ask;
use crate::{Auth, Behind, Config, Issued, RandomIds, Running, Shelf, SystemClock};

pub(super) const SOON: Duration = Duration::from_secs(5);

pub(super) struct Whole {
    pub(super) running: Running,
    pub(super) disk: MemoryDisk,
    pub(super) operator: Issued,
    pub(super) owner: Issued,
    pub(super) proxy: Issued,
    _folder: tempfile::TempDir,
}

pub(super) struct Peer(pub(super) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Whole {
    pub(super) async fn new(limits: Limits) -> Self {
        Self::with(limits, Policies::default()).await
    }

    pub(super) async fn with(limits: Limits, policies: Policies) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = MemoryDisk::new();
        let ledger = disk.open().unwrap();
        let auth = Auth::open(ledger.vault().unwrap()).unwrap();
        let shelf = Shelf::open(&folder.path().join("uploads"), &auth).await.unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let metrics = Arc::new(Metrics::default());
        let books = Books::on_threads(
            Box::new(ledger),
            "test",
            Retention::default(),
            clock.clone(),
            metrics.clone(),
        );
        let ports = Ports {
            clock,
            ids: Arc::new(RandomIds::new().unwrap()),
            uploads: Arc::new(shelf.clone()),
            tasks: <_>::default(),
        };
        let relay = Relay::start(books.unwrap(), ports, policies, metrics).await;
        let throttles = Throttles::new(Rates::default());
        let inside = Behind::new(relay.unwrap(), throttles, limits, auth.clone());
        let listen = "127.0.0.1:0".parse().unwrap();
        let bound = crate::bind(Config { listen, ..Config::default() }).await.unwrap();
        let running = bound.serve(auth.clone(), shelf, Arc::new(inside));
        let make =
            async |role| auth.create(CredentialKind::Token, role, "x", Timestamp(1)).await.unwrap();
        let (operator, owner) = (make(Role::Operator).await, make(Role::Owner).await);
        Self { running, disk, operator, owner, proxy: make(Role::Proxy).await, _folder: folder }
    }

    pub(super) async fn open(&self, path: &str, who: Option<&Issued>) -> Peer {
        let token = who.map(|who| format!("?token={}", who.token)).unwrap_or_default();
        let address = format!("ws://{}{path}{token}", self.running.address());
        Peer(connect_async(address).await.unwrap().0)
    }

    pub(super) async fn proxy(&self, path: &str) -> Peer {
        let mut proxy = self.open(path, Some(&self.proxy)).await;
        proxy
            .say(json!({
                "type": "connection_hello", "protocol_version": 1, "peer_role": "proxy",
                "client_name": "agent-proxy", "machine_label": "attic",
                "features": ["resume"],
            }))
            .await;
        proxy.hear("connection_ack").await;
        proxy
            .say(json!({
                "type": "proxy_session_snapshot", "protocol_version": 1,
                "sessions": [{ "session_id": "sess_1", "agent_type": "codex", "status": "healthy" }],
            }))
            .await;
        proxy
    }

    pub(super) fn ask(&self, method: &str, path: &str, who: &Issued) -> Ask {
        Ask::new(self.running.address(), method, path).bearer(&who.token)
    }
}

impl Peer {
    pub(super) async fn say(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame, whatever it is.
    pub(super) async fn next(&mut self) -> Value {
        loop {
            let heard = tokio::time::timeout(SOON, self.0.next()).await;
            let heard = heard.expect("nothing is said").unwrap().unwrap();
            if let Message::Text(text) = heard {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// The next frame that fits; others are passed over.
    pub(super) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await;
            if fits(&frame) {
                return frame;
            }
        }
    }

    /// The next frame of this type.
    pub(super) async fn hear(&mut self, kind: &str) -> Value {
        let heard = tokio::time::timeout(SOON, self.until(|frame| frame["type"] == kind)).await;
        heard.unwrap_or_else(|_| panic!("never heard {kind}"))
    }

    /// The next frame of one of these types.
    pub(super) async fn hear_any(&mut self, kinds: &[&str]) -> Value {
        self.until(|frame| frame["type"].as_str().is_some_and(|kind| kinds.contains(&kind))).await
    }

    pub(super) async fn close_code(&mut self) -> u16 {
        loop {
            match tokio::time::timeout(SOON, self.0.next()).await.expect("not closed") {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("ended without a reason: {other:?}"),
            }
        }
    }
}

pub(super) fn hello() -> Value {
    json!({
        "type": "connection_hello", "protocol_version": 1, "peer_role": "browser", "client_name": "t",
    })
}

// spec: native/http.1
// spec: native/http.2
// spec: native/http.3
#[tokio::test]
async fn a_send_over_http_reaches_the_proxy_and_every_client_hears_of_it() {
    let whole = Whole::new(Limits::default()).await;
    let mut client = whole.open("/ws", Some(&whole.operator)).await;
    client.say(hello()).await;
    client.hear("connection_ack").await;
    let mut proxy = whole.proxy("/ws").await;
    client.hear("session_up").await;

    let messages = "/v1/sessions/sess_1/messages";
    let body = json!({ "content": "hi", "client_message_id": "c1" }).to_string();
    let sent = whole.ask("POST", messages, &whole.operator).body(&body).send().await;
    assert_eq!((sent.status, &sent.json()["status"]), (202, &json!("accepted")), "{}", sent.text());

    let order = proxy.hear("send_message").await;
    assert_eq!((&order["client_message_id"], &order["content"]), (&json!("c1"), &json!("hi")));
    let accepted = client.hear("message_accepted").await;
    assert_eq!(accepted["sequence"], sent.json()["sequence"]);
    proxy
        .say(json!({
            "type": "proxy_send_result", "protocol_version": 1, "session_id": "sess_1",
            "client_message_id": "c1", "result": "delivered",
        }))
        .await;
    client.hear("message_delivered").await;

    let again = whole.ask("POST", messages, &whole.operator).body(&body).send().await;
    assert_eq!((again.status, &again.json()["status"]), (202, &json!("delivered")));
    let history = whole.ask("GET", "/v1/sessions/sess_1/history", &whole.operator).send().await;
    let history = history.json();
    let events = history["events"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(
        kinds.contains(&"message_accepted") && kinds.contains(&"message_delivered"),
        "{kinds:?}"
    );
    let text = whole.ask("GET", "/v1/sessions/sess_1/export", &whole.operator).send().await.text();
    assert!(text.contains("## User") && text.contains("\nhi\n"), "{text}");
    let listed = whole.ask("GET", "/v1/sessions", &whole.operator).send().await.json();
    let session = &listed["sessions"][0];
    assert_eq!(session["session_id"], "sess_1");
    assert_eq!(session["last_sequence"], history["last_sequence"]);
    assert_eq!(session["archived"], false);
    let figures = whole.ask("GET", "/metrics", &whole.operator).send().await.text();
    for line in [
        "farhelm_connections{kind=\"client\"} 1",
        "farhelm_connections{kind=\"proxy\"} 1",
        "farhelm_sessions{state=\"connected\"} 1",
        "farhelm_sends_total{state=\"delivered\"} 1",
    ] {
        assert!(figures.lines().any(|found| found == line), "{line} in\n{figures}");
    }
    assert_eq!(whole.ask("GET", "/readyz", &whole.operator).send().await.status, 200);
}

// spec: native/http.1
#[tokio::test]
async fn a_session_that_nobody_named_is_listed_with_the_title_null() {
    let whole = Whole::new(Limits::default()).await;
    let mut client = whole.open("/ws/native", Some(&whole.operator)).await;
    client.say(hello()).await;
    client.hear("connection_ack").await;
    let _proxy = whole.proxy("/ws/proxy").await;
    client.hear("session_up").await;
    let listed = whole.ask("GET", "/v1/sessions", &whole.operator).send().await.json();
    assert_eq!(listed["sessions"][0].get("title"), Some(&Value::Null), "{listed}");
}

// spec: native/session_closed.6
#[tokio::test]
async fn a_session_is_renamed_and_when_its_machine_is_away_erased() {
    let whole = Whole::new(Limits::default()).await;
    let mut client = whole.open("/ws/native", Some(&whole.operator)).await;
    client.say(hello()).await;
    client.hear("connection_ack").await;
    let proxy = whole.proxy("/ws/proxy").await;
    client.hear("session_up").await;
    let path = "/v1/sessions/sess_1";

    let change = json!({ "title": "Attic", "archived": true }).to_string();
    let changed = whole.ask("PATCH", path, &whole.operator).body(change).send().await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let listed = whole.ask("GET", "/v1/sessions", &whole.operator).send().await.json();
    assert_eq!(listed["sessions"][0]["title"], "Attic");
    assert_eq!(listed["sessions"][0]["archived"], true);

    let early = whole.ask("DELETE", path, &whole.owner).send().await;
    assert_eq!(early.error().0, 409);
    drop(proxy);
    client.hear("session_down").await;
    assert_eq!(whole.ask("DELETE", path, &whole.owner).send().await.status, 200);
    // Whoever shows it is told, though no machine is there to close it.
    let told = client.hear("session_closed").await;
    assert_eq!(
        (&told["session_id"], &told["reason"]),
        (&"sess_1".into(), &"user_requested".into())
    );
    let gone = whole.ask("GET", "/v1/sessions/sess_1/history", &whole.owner).send().await;
    assert_eq!(gone.error(), (404, "session_unknown".to_owned()));
}

// spec: native/connection_roles.3
// spec: native/credentials.2
// spec: native/transport.1
#[tokio::test]
async fn a_socket_is_what_its_first_frame_says_if_its_credential_allows() {
    let whole = Whole::new(Limits::default()).await;
    let as_proxy = || {
        json!({
            "type": "connection_hello", "protocol_version": 1, "peer_role": "proxy",
            "client_name": "p",
        })
    };

    for who in [None, Some(&whole.operator)] {
        let mut pretender = whole.open("/ws", who).await;
        pretender.say(as_proxy()).await;
        assert_eq!(pretender.close_code().await, close::FORBIDDEN);
    }
    let mut machine = whole.open("/ws", Some(&whole.proxy)).await;
    machine.say(hello()).await;
    assert_eq!(machine.close_code().await, close::FORBIDDEN);
    let mut stranger = whole.open("/ws", None).await;
    stranger.say(hello()).await;
    assert_eq!(stranger.hear("session_snapshot").await["sessions"], json!([]));
    let mut babbler = whole.open("/ws", None).await;
    babbler.0.send(Message::text("not json")).await.unwrap();
    assert_eq!(babbler.close_code().await, close::NOT_JSON);
}

// spec: native/close_codes.1
#[tokio::test]
async fn a_socket_without_a_hello_is_closed_in_time() {
    let limits = Limits { hello_timeout_ms: 50, ..Limits::default() };
    let whole = Whole::new(limits).await;

    for path in ["/ws", "/ws/native"] {
        let mut silent = whole.open(path, Some(&whole.operator)).await;
        assert_eq!(silent.close_code().await, 4001, "{path}");
    }
    let mut proxy = whole.open("/ws/proxy", Some(&whole.proxy)).await;
    assert_eq!(proxy.close_code().await, 4001);
}

// spec: native/close_codes.1
// spec: native/credentials.6
#[tokio::test]
async fn revoking_and_stopping_reach_sockets_behind_their_gates() {
    let whole = Whole::new(Limits::default()).await;
    let mut client = whole.open("/ws", Some(&whole.operator)).await;
    client.say(hello()).await;
    client.hear("connection_ack").await;
    let mut proxy = whole.proxy("/ws").await;

    let path = format!("/v1/tokens/{}", whole.operator.id);
    assert_eq!(whole.ask("DELETE", &path, &whole.owner).send().await.status, 200);
    assert_eq!(client.close_code().await, close::FORBIDDEN);
    let stopping = tokio::spawn(whole.running.stop());
    assert_eq!(proxy.close_code().await, close::GOING_DOWN);
    drop(proxy);
    assert!(tokio::time::timeout(SOON, stopping).await.unwrap().unwrap());
}
