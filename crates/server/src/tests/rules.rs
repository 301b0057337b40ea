//! Rules of the native dialect that involve a client, the relay and a machine together.

use std::collections::BTreeSet;

use domain::fleet;
use relay::Policies;
use serde_json::{Value, json};
use store::Failure;
use wire::native::Limits;

use super::whole::{Peer, Whole, hello};

const SPEC: &str = include_str!("../../../../docs/spec/native.md");

/// A client, greeted, and the machine of `sess_1`.
async fn met(whole: &Whole) -> (Peer, Peer) {
    let mut client = whole.open("/ws", Some(&whole.operator)).await;
    client.say(hello()).await;
    client.hear("session_snapshot").await;
    let proxy = whole.proxy("/ws/proxy").await;
    client.hear("session_up").await;
    (client, proxy)
}

/// A frame about the session.
fn about(kind: &str, more: Value) -> Value {
    let mut frame = json!({"type": kind, "protocol_version": 1, "session_id": "sess_1"});
    let Value::Object(more) = more else { panic!("{more}") };
    for (name, value) in more {
        frame[name] = value;
    }
    frame
}

fn send(id: &str) -> Value {
    about(
        "send_message",
        json!({"client_message_id": id, "content": "hi", "created_at": "2026-03-19T10:16:30.000Z"}),
    )
}

fn prompt(id: &str, timeout_ms: Option<u64>) -> Value {
    let choice = |id: &str| json!({"choice_id": id, "label": id, "is_default": id == "no"});
    let mut frame = about(
        "permission_prompt",
        json!({"prompt_id": id, "prompt_text": "?", "choices": [choice("yes"), choice("no")]}),
    );
    if let Some(timeout_ms) = timeout_ms {
        frame["timeout_ms"] = json!(timeout_ms);
        frame["default_choice"] = json!("no");
    }
    frame
}

// spec: native/delivery_state.1
#[tokio::test]
async fn what_is_not_on_disk_is_neither_accepted_nor_forwarded() {
    let whole = Whole::new(Limits::default()).await;
    let (mut client, mut proxy) = met(&whole).await;

    whole.disk.fail_next(Failure::BeforeCommit);
    client.say(send("lost")).await;
    let told = client.next().await;
    assert_eq!((&told["code"], &told["client_message_id"]), (&json!("internal"), &json!("lost")));

    client.say(send("kept")).await;
    let accepted = client.hear_any(&["message_accepted", "message_failed"]).await;
    assert_eq!(accepted["client_message_id"], "kept", "{accepted}");
    let order = proxy.hear("send_message").await;
    assert_eq!(order["client_message_id"], "kept", "the other was never forwarded");
    // Who is told that it is accepted finds it in the ledger.
    let sequence = accepted["sequence"].as_u64().unwrap();
    let path = format!("/v1/sessions/sess_1/history?after={}&limit=1", sequence - 1);
    let history = whole.ask("GET", &path, &whole.operator).send().await.json();
    assert_eq!(history["events"][0]["event_id"], accepted["event_id"]);
    assert_eq!(history["events"][0]["type"], "message_accepted");
}

// spec: native/agent_set_model.1
#[tokio::test]
async fn a_model_is_set_by_the_machine_that_has_the_session() {
    let whole = Whole::new(Limits::default()).await;
    let (mut client, mut proxy) = met(&whole).await;
    let whole_frame = about("agent_set_model", json!({"request_id": "r1", "model_id": "large"}));
    for missing in ["session_id", "model_id"] {
        let mut frame = whole_frame.clone();
        frame.as_object_mut().unwrap().remove(missing);
        client.say(frame).await;
        let told = client.next().await;
        assert_eq!((&told["code"], &told["request_id"]), (&json!("invalid_message"), &json!("r1")));
    }
    client.say(whole_frame.clone()).await;
    let order = proxy.hear("agent_set_model").await;
    for field in ["session_id", "model_id", "request_id"] {
        assert_eq!(order[field], whole_frame[field], "{field}");
    }
    proxy.say(about("agent_config", json!({"model_id": "large"}))).await;
    assert_eq!(client.hear("agent_config").await["model_id"], "large");
}

// spec: native/connection_roles.2
#[tokio::test]
async fn nothing_passes_between_client_and_machine_but_what_the_relay_says() {
    let whole = Whole::new(Limits::default()).await;
    let (mut client, mut proxy) = met(&whole).await;

    // What only the other side may say goes nowhere.
    client.say(about("proxy_status", json!({"status": "degraded"}))).await;
    assert_eq!(client.next().await["code"], "invalid_message");
    proxy.say(send("forged")).await;
    assert_eq!(proxy.next().await["code"], "invalid_message");
    // What may be said is said anew: in the relay's words, with its time.
    let mut smuggled = send("m1");
    smuggled["secret"] = json!("for the machine alone");
    client.say(smuggled).await;
    let order = proxy.next().await;
    assert_eq!((&order["type"], order.get("secret")), (&json!("send_message"), None));
    assert!(order["server_ts"].is_string());
    assert_eq!(client.next().await["type"], "message_accepted");
    let said = json!({"message_id": "a1", "role": "assistant", "content": "hi",
        "created_at": "2026-03-19T10:16:30.000Z", "secret": "for the client alone"});
    proxy.say(about("proxy_message", json!({"message": said, "secret": 1}))).await;
    let told = client.next().await;
    assert_eq!((&told["type"], told.get("secret")), (&json!("message_event"), None));
    assert!(told["message"].get("secret").is_none() && told["sequence"].is_u64(), "{told}");
}

// spec: native/session_identifiers.2
#[tokio::test]
async fn a_target_is_passed_on_and_nothing_is_addressed_by_it() {
    let whole = Whole::new(Limits::default()).await;
    let (mut client, mut proxy) = met(&whole).await;
    let named = |target: &str| {
        json!({"type": "proxy_session_snapshot", "protocol_version": 1, "sessions": [{
            "session_id": "sess_1", "agent_type": "codex", "status": "healthy", "target_id": target}]})
    };
    let shown = async |target: &str| loop {
        let mut late = whole.open("/ws", Some(&whole.operator)).await;
        late.say(hello()).await;
        let snapshot = late.hear("session_snapshot").await;
        assert_eq!(snapshot["sessions"].as_array().unwrap().len(), 1, "{snapshot}");
        if snapshot["sessions"][0]["target_id"] == target {
            return;
        }
    };
    for target in ["target_7", "target_8"] {
        proxy.say(named(target)).await;
        let shown = tokio::time::timeout(super::whole::SOON, shown(target)).await;
        shown.expect("the session has another target now, and is the same");
        let mut astray = send("m1");
        astray["session_id"] = json!(target);
        client.say(astray).await;
        let failed = client.hear("message_failed").await;
        assert_eq!(failed["error"]["code"], "session_unknown", "{failed}");
    }
    client.say(send("m2")).await;
    assert_eq!(proxy.hear("send_message").await["client_message_id"], "m2");
}

// spec: native/heartbeat.3
#[tokio::test]
async fn a_sessions_health_is_not_that_of_any_socket_but_its_machines() {
    let whole = Whole::new(Limits::default()).await;
    let (mut client, mut proxy) = met(&whole).await;
    proxy.say(about("proxy_status", json!({"status": "degraded"}))).await;
    assert_eq!(client.hear("session_status").await["status"], "degraded");

    let beat = json!({"type": "heartbeat", "protocol_version": 1, "request_id": "h"});
    proxy.say(beat.clone()).await;
    proxy.hear("heartbeat_ack").await;
    let (mut dying, mut watching) = (
        whole.open("/ws", Some(&whole.operator)).await,
        whole.open("/ws", Some(&whole.owner)).await,
    );
    for peer in [&mut dying, &mut watching] {
        peer.say(hello()).await;
        let snapshot = peer.hear("session_snapshot").await;
        assert_eq!(snapshot["sessions"][0]["status"], "degraded", "a live socket heals nothing");
    }
    drop(dying);
    client.say(send("m1")).await;
    assert_eq!(watching.next().await["type"], "message_accepted", "a dead client changes nothing");
    drop(proxy);
    let down = watching.next().await;
    assert_eq!(
        (&down["type"], &down["reason"]),
        (&json!("session_down"), &json!("proxy_disconnected"))
    );
}

// spec: native/permission_prompt_expired.2
#[tokio::test]
async fn when_a_prompt_is_told_as_expired_its_choice_is_recorded_and_on_its_way() {
    let whole = Whole::new(Limits::default()).await;
    let (mut client, mut proxy) = met(&whole).await;
    proxy.say(prompt("p1", Some(50))).await;
    let expired = client.hear("permission_prompt_expired").await;
    assert_eq!(expired["applied_choice"], "no");

    let after = expired["sequence"].as_u64().unwrap() - 1;
    let path = format!("/v1/sessions/sess_1/history?after={after}&limit=1");
    let history = whole.ask("GET", &path, &whole.operator).send().await.json();
    assert_eq!(history["events"][0]["event_id"], expired["event_id"], "{history}");
    client
        .say(about(
            "permission_response",
            json!({"request_id": "r", "prompt_id": "p1", "choice_id": "yes"}),
        ))
        .await;
    let late = client.hear("agent_control_result").await;
    assert_eq!(late["error_code"], "prompt_not_found", "nobody can choose any more");
    let order = proxy.hear("permission_response").await;
    assert_eq!((&order["choice_id"], &order["auto_applied"]), (&json!("no"), &json!(true)));
}

/// The codes of the page.
fn table() -> BTreeSet<String> {
    let rows = SPEC.split("## error_codes").nth(1).unwrap().split("\n- **").next().unwrap();
    let cells = rows.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.map(str::to_owned).collect()
}

fn code(frame: &Value) -> String {
    let places = [&frame["code"], &frame["error_code"], &frame["error"]["code"]];
    places.iter().find_map(|code| code.as_str()).unwrap_or_else(|| panic!("{frame}")).to_owned()
}

/// Answers that carry a code.
const ANSWERS: [&str; 4] =
    ["connection_error", "agent_control_result", "message_failed", "session_launch_failed"];
/// Codes that only machines give.
const OF_MACHINES: [&str; 13] = [
    "send_rejected",
    "send_injection_failed",
    "selector_failure",
    "delivery_unknown",
    "agent_not_active",
    "model_not_available",
    "control_not_supported",
    "config_read_failed",
    "agent_not_open",
    "launch_not_supported",
    "path_not_allowed",
    "conversation_unknown",
    "too_many_agents",
];

fn launch(id: &str) -> Value {
    json!({"type": "launch_session", "protocol_version": 1, "request_id": id, "agent_type": "codex"})
}

fn control(kind: &str, more: Value) -> Value {
    let mut frame = about(kind, more);
    frame["request_id"] = json!(format!("r-{kind}"));
    frame
}

async fn asked(client: &mut Peer, frame: Value) -> String {
    client.say(frame).await;
    code(&client.hear_any(&ANSWERS).await)
}

/// What is said to whom has not come far.
async fn codes_at_the_door(whole: &Whole) -> BTreeSet<String> {
    let mut newer = whole.open("/ws", Some(&whole.operator)).await;
    let mut greeting = hello();
    greeting["protocol_version"] = json!(2);
    let version = asked(&mut newer, greeting).await;
    assert_eq!(version, "protocol_version_unsupported");
    let mut stranger = whole.open("/ws", None).await;
    stranger.say(hello()).await;
    let stranger = asked(&mut stranger, launch("l0")).await;
    assert_eq!(stranger, "unauthorized");
    [version, stranger].into()
}

/// What the relay answers by itself, each to its command.
async fn codes_of_commands(client: &mut Peer) -> BTreeSet<String> {
    let mut unknown = send("m0");
    unknown["session_id"] = json!("nobody");
    let mut large = send("m1");
    large["content"] = json!("x".repeat(100 * 1024 + 1));
    let mut attached = send("m2");
    attached["attachments"] = json!([{"attachment_id": "att_0", "name": "a.txt"}]);
    let answer = |prompt: &str, choice: &str| {
        control("permission_response", json!({"prompt_id": prompt, "choice_id": choice}))
    };
    let mut seen = BTreeSet::new();
    for (frame, expected) in [
        (json!({"type": "no_such", "protocol_version": 1}), "invalid_message"),
        (unknown, "session_unknown"),
        (large, "message_too_large"),
        (attached, "attachment_unknown"),
        (control("history_request", json!({"after_sequence": 1_000_000})), "resume_cursor_invalid"),
        (answer("p0", "yes"), "prompt_not_found"),
        (answer("p1", "maybe"), "invalid_choice"),
        (answer("p2", "yes"), "answers_missing"),
        (control("queue_discard", json!({"client_message_id": "m9"})), "message_not_queued"),
        (launch("l2"), "launch_timeout"),
        (control("tool_output_request", json!({"tool_call_id": "t0"})), "tool_output_unknown"),
        (control("resumable_list", json!({})), "machine_silent"),
    ] {
        assert_eq!(asked(client, frame.clone()).await, expected, "{frame}");
        seen.insert(expected.to_owned());
    }
    seen
}

/// What happens while the machine is away and the disk fails.
async fn codes_of_trouble(whole: &Whole, client: &mut Peer) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    whole.disk.fail_next(Failure::BeforeCommit);
    seen.insert(asked(client, send("lost")).await);
    assert!(seen.contains("internal"), "{seen:?}");
    seen.insert(asked(client, control("agent_interrupt", json!({}))).await);
    assert!(seen.contains("no_proxy_connected"), "{seen:?}");
    client.say(send("waiting")).await;
    client.hear("message_accepted").await;
    let discard = control("queue_discard", json!({"client_message_id": "waiting"}));
    seen.insert(asked(client, discard).await);
    assert!(seen.contains("discarded"), "{seen:?}");
    seen.insert(asked(client, send("late")).await);
    assert!(seen.contains("session_not_connected"), "{seen:?}");
    whole.disk.damage(&"sess_1".into());
    seen.insert(asked(client, control("history_request", json!({"after_sequence": 0}))).await);
    assert!(seen.contains("history_not_available"), "{seen:?}");
    seen.insert(asked(client, send("hurt")).await);
    assert!(seen.contains("session_damaged"), "{seen:?}");
    for number in 0..31 {
        client.say(send(&format!("x{number}"))).await;
    }
    seen.insert(code(&client.until(|it| it["code"] == "rate_limited").await));
    seen
}

// spec: native/error_codes.1, native/error_codes.3
#[tokio::test]
async fn every_code_of_the_table_occurs_when_it_says() {
    let fleet = fleet::Policy { launch_timeout_ms: 50, ..fleet::Policy::default() };
    let session = domain::session::Policy { send_grace_ms: 2_000, ..<_>::default() };
    let whole = Whole::with(Limits::default(), Policies { session, fleet }).await;
    let mut seen = codes_at_the_door(&whole).await;
    let mut client = whole.open("/ws", Some(&whole.operator)).await;
    let mut greeting = hello();
    greeting["features"] = json!(["queue", "resume", "tool_output"]);
    client.say(greeting).await;
    client.hear("session_snapshot").await;
    assert_eq!(asked(&mut client, launch("l1")).await, "no_proxy_connected");
    let mut proxy = whole.proxy("/ws/proxy").await;
    client.hear("session_up").await;
    proxy.say(prompt("p1", None)).await;
    client.hear("permission_prompt").await;
    let mut form = prompt("p2", None);
    form["questions"] =
        json!([{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]);
    form["choices"][0]["effect"] = json!("allow_once");
    proxy.say(form).await;
    client.hear("permission_prompt").await;
    seen.extend(codes_of_commands(&mut client).await);

    // A machine's code reaches the client as it is, also one that nobody knows.
    for (number, word) in OF_MACHINES.iter().chain(&["of_my_own"]).enumerate() {
        let id = format!("f{number}");
        client.say(send(&id)).await;
        let error = json!({"code": word, "message": "so"});
        proxy.hear("send_message").await;
        let failed = json!({"client_message_id": id, "result": "failed", "error": error});
        proxy.say(about("proxy_send_result", failed)).await;
        assert_eq!(code(&client.hear("message_failed").await), *word);
    }
    drop(proxy);
    client.hear("session_down").await;
    seen.extend(codes_of_trouble(&whole, &mut client).await);

    seen.extend(OF_MACHINES.map(str::to_owned));
    // It takes half a minute, and is shown where time is an argument: `domain`'s controls.
    seen.insert("control_timeout".to_owned());
    assert_eq!(seen, table());
}
