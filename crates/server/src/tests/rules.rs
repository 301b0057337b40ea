//! Rules of the native dialect that show only where a client, the relay and a machine meet.

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

// spec: native/error_codes.1, native/error_codes.3
#[tokio::test]
async fn every_code_of_the_table_occurs_when_it_says() {
    let fleet = fleet::Policy { launch_timeout_ms: 50, ..fleet::Policy::default() };
    let session = domain::session::Policy { send_grace_ms: 50 };
    let whole = Whole::with(Limits::default(), Policies { session, fleet }).await;
    let mut seen = BTreeSet::new();
    let answers =
        ["connection_error", "agent_control_result", "message_failed", "session_launch_failed"];

    // Before anybody is there.
    let mut client = whole.open("/ws", Some(&whole.operator)).await;
    client.say(json!({"type": "connection_hello", "protocol_version": 2, "peer_role": "browser", "client_name": "t"})).await;
    seen.insert(code(&client.next().await));
    let launch = |id: &str| json!({"type": "launch_session", "protocol_version": 1, "request_id": id, "agent_type": "codex"});
    let mut stranger = whole.open("/ws", None).await;
    stranger.say(hello()).await;
    stranger.say(launch("l0")).await;
    let told = stranger.hear("session_launch_failed").await;
    assert_eq!(code(&told), "unauthorized");
    seen.insert(code(&told));
    let mut client = whole.open("/ws", Some(&whole.operator)).await;
    let mut greeting = hello();
    greeting["features"] = json!(["queue", "runs"]);
    client.say(greeting).await;
    client.hear("session_snapshot").await;
    client.say(launch("l1")).await;
    assert_eq!(code(&client.hear("session_launch_failed").await), "no_proxy_connected");

    let mut proxy = whole.proxy("/ws/proxy").await;
    client.hear("session_up").await;
    // Commands that the relay answers by itself.
    let control = |kind: &str, more: Value| {
        let mut frame = about(kind, more);
        frame["request_id"] = json!(format!("r-{kind}"));
        frame
    };
    let mut unknown = send("m0");
    unknown["session_id"] = json!("nobody");
    let mut large = send("m1");
    large["content"] = json!("x".repeat(100 * 1024 + 1));
    let mut attached = send("m2");
    attached["attachments"] = json!([{"attachment_id": "att_0", "name": "a.txt"}]);
    proxy.say(prompt("p1", None)).await;
    client.hear("permission_prompt").await;
    for (frame, expected) in [
        (json!({"type": "no_such", "protocol_version": 1}), "invalid_message"),
        (unknown, "session_unknown"),
        (large, "message_too_large"),
        (attached, "attachment_unknown"),
        (control("history_request", json!({"after_sequence": 1_000_000})), "resume_cursor_invalid"),
        (
            control("permission_response", json!({"prompt_id": "p0", "choice_id": "yes"})),
            "prompt_not_found",
        ),
        (
            control("permission_response", json!({"prompt_id": "p1", "choice_id": "maybe"})),
            "invalid_choice",
        ),
        (control("queue_discard", json!({"client_message_id": "m9"})), "message_not_queued"),
        (launch("l2"), "launch_timeout"),
    ] {
        client.say(frame.clone()).await;
        let told = client.hear_any(&answers).await;
        assert_eq!(code(&told), expected, "{frame}: {told}");
        seen.insert(expected.to_owned());
    }
    // A person takes a waiting message back.
    proxy.say(about("run_started", json!({"run_id": "u1"}))).await;
    client.hear("run_started").await;
    client.say(send("waiting")).await;
    client.hear("message_accepted").await;
    client.say(control("queue_discard", json!({"client_message_id": "waiting"}))).await;
    let told = client.hear_any(&answers).await;
    assert_eq!(code(&told), "discarded", "{told}");
    seen.insert(code(&told));
    proxy.say(about("run_ended", json!({"run_id": "u1", "outcome": "completed"}))).await;
    client.hear("run_ended").await;
    // Codes of machines reach the client as they are, also those that nobody knows.
    let from_machines = [
        "send_rejected",
        "send_injection_failed",
        "selector_failure",
        "delivery_unknown",
        "session_not_connected",
        "agent_not_active",
        "model_not_available",
        "control_not_supported",
        "config_read_failed",
        "agent_not_open",
        "launch_not_supported",
        "path_not_allowed",
        "of_my_own",
    ];
    for (number, word) in from_machines.iter().enumerate() {
        let id = format!("f{number}");
        client.say(send(&id)).await;
        client.hear("message_accepted").await;
        proxy
            .say(about(
                "proxy_send_result",
                json!({"client_message_id": id, "result": "failed",
            "error": {"code": word, "message": "so"}}),
            ))
            .await;
        let told = client
            .until(|it| it["type"] == "message_failed" && it["client_message_id"] == id.as_str())
            .await;
        assert_eq!(code(&told), *word);
        seen.insert((*word).to_owned());
    }
    // The disk fails.
    whole.disk.fail_next(Failure::BeforeCommit);
    client.say(send("lost")).await;
    let told = client.hear_any(&answers).await;
    assert_eq!(code(&told), "internal");
    seen.insert("internal".to_owned());
    // The machine leaves.
    drop(proxy);
    client.hear("session_down").await;
    client.say(control("agent_interrupt", json!({}))).await;
    let told = client.hear_any(&answers).await;
    assert_eq!(code(&told), "no_proxy_connected");
    seen.insert(code(&told));
    client.say(send("late")).await;
    let told = client
        .until(|it| it["type"] == "message_failed" && it["client_message_id"] == "late")
        .await;
    assert_eq!(code(&told), "session_not_connected");
    // The store cannot read the session.
    whole.disk.damage(&"sess_1".into());
    client.say(control("history_request", json!({"after_sequence": 0}))).await;
    let told = client.hear_any(&answers).await;
    assert_eq!(code(&told), "history_not_available");
    seen.insert(code(&told));
    // And the client says too much.
    for number in 0..31 {
        client.say(send(&format!("x{number}"))).await;
    }
    let told = client.until(|it| it["code"] == "rate_limited").await;
    seen.insert(code(&told));

    seen.remove("of_my_own");
    // It takes half a minute, and is shown where time is an argument: `domain`'s controls.
    seen.insert("control_timeout".to_owned());
    assert_eq!(seen, table());
}
