//! What a client hears of the sessions that it does not look at.

use domain::session::Change;
use domain::session::status::DownReason;
use serde_json::{Value, json};

use crate::native::relay::Relay;
use crate::native::script::said;

fn greeted() -> Relay {
    let mut relay = Relay::new();
    relay.session_up("sess_1", "demo");
    relay.session_up("sess_2", "demo");
    let hello = json!({"type": "connection_hello", "protocol_version": 1,
        "peer_role": "browser", "client_name": "t", "features": ["watch", "paging", "queue"]});
    relay.text("a", &hello.to_string());
    heard(&mut relay);
    relay
}

fn heard(relay: &mut Relay) -> Vec<Value> {
    std::mem::take(&mut relay.clients.get_mut("a").unwrap().heard)
}

fn watch(relay: &mut Relay, sessions: &[&str], others: &str) -> Vec<Value> {
    let frame = json!({"type": "watch", "protocol_version": 1, "sessions": sessions,
        "others": others});
    relay.text("a", &frame.to_string());
    heard(relay)
}

fn ask(relay: &mut Relay, session: &str, after: u64) -> Vec<Value> {
    let frame = json!({"type": "history_request", "protocol_version": 1, "session_id": session,
        "after_sequence": after});
    relay.text("a", &frame.to_string());
    heard(relay)
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

fn sequences(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().unwrap().iter();
    events.map(|event| event["sequence"].as_u64().unwrap()).collect()
}

// spec: native/extensions.10
#[test]
fn of_other_sessions_a_client_hears_what_a_list_shows() {
    let mut relay = greeted();
    assert!(watch(&mut relay, &["sess_1"], "cards").is_empty());
    relay.report("sess_1", said("x1"));
    relay.report("sess_2", said("x2"));
    assert_eq!(kinds(&heard(&mut relay)), ["message_event"]);
    let down = || Change::Down { connection: None, reason: DownReason::TargetGone };
    relay.change("sess_2", down());
    let told = heard(&mut relay);
    assert_eq!(kinds(&told), ["session_down"]);
    assert_eq!((&told[0]["session_id"], &told[0]["sequence"]), (&json!("sess_2"), &json!(3)));
    relay.session_up("sess_3", "demo");
    relay.report("sess_3", said("x3"));
    assert_eq!(kinds(&heard(&mut relay)), ["session_up"], "a new session is another one too");
}

// spec: native/extensions.10
#[test]
fn others_are_all_unless_a_client_says_otherwise() {
    let mut relay = greeted();
    relay.text("a", r#"{"type":"watch","protocol_version":1,"sessions":["sess_1"]}"#);
    relay.report("sess_2", said("x"));
    assert_eq!(kinds(&heard(&mut relay)), ["message_event"]);
    let odd = watch(&mut relay, &[], "some");
    assert_eq!(odd[0]["code"], "invalid_message");
}

// spec: native/extensions.11
#[test]
fn who_looks_again_is_told_what_it_missed_and_then_hears_everything() {
    let mut relay = greeted();
    watch(&mut relay, &["sess_1"], "cards");
    for n in 0..3 {
        relay.report("sess_2", said(&format!("x{n}")));
    }
    assert!(heard(&mut relay).is_empty());
    let told = watch(&mut relay, &["sess_2"], "cards");
    assert_eq!(kinds(&told), ["history_delta"], "{told:#?}");
    assert_eq!((&told[0]["from_sequence"], sequences(&told[0])), (&json!(1), vec![2, 3, 4]));
    relay.report("sess_2", said("y"));
    relay.report("sess_1", said("z"));
    let told = heard(&mut relay);
    assert_eq!(kinds(&told), ["message_event"]);
    assert_eq!(told[0]["sequence"], 5);
    assert!(watch(&mut relay, &["sess_2"], "cards").is_empty(), "nothing was missed");
    let told = watch(&mut relay, &[], "all");
    assert_eq!(kinds(&told), ["history_delta"]);
    assert_eq!((&told[0]["session_id"], sequences(&told[0])), (&json!("sess_1"), vec![2]));
}

// spec: native/extensions.11
#[test]
fn who_lagged_meanwhile_misses_nothing_either() {
    let mut relay = greeted();
    watch(&mut relay, &["sess_1"], "cards");
    relay.report_unheard("sess_2", said("x1"), "a");
    relay.report("sess_2", said("x2"));
    relay.lag("a");
    assert!(heard(&mut relay).is_empty());
    let told = watch(&mut relay, &["sess_2"], "cards");
    assert_eq!(sequences(&told[0]), [2, 3]);
}

// spec: native/extensions.11
#[test]
fn what_is_recorded_while_the_missed_is_read_comes_after_it() {
    let mut relay = greeted();
    watch(&mut relay, &[], "cards");
    relay.report("sess_2", said("x1"));
    relay.slow_reads = true;
    watch(&mut relay, &["sess_2"], "cards");
    relay.report("sess_2", said("x2"));
    assert!(watch(&mut relay, &[], "cards").is_empty(), "it looks away before the page is there");
    relay.read_now();
    let told = heard(&mut relay);
    let all: Vec<_> = told.iter().flat_map(sequences).collect();
    assert_eq!(all, [2, 3], "{told:#?}");
    relay.report("sess_2", said("x3"));
    let told = watch(&mut relay, &["sess_2"], "cards");
    assert_eq!(sequences(&told[0]), [4], "what it was told is not told again");
}

// spec: native/extensions.12
#[test]
fn whoever_sends_to_a_session_looks_at_it() {
    let mut relay = greeted();
    watch(&mut relay, &[], "cards");
    relay.report("sess_2", said("x1"));
    let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_2",
        "client_message_id": "m1", "content": "hello",
        "created_at": "2026-03-19T10:15:30.000Z"});
    relay.text("a", &send.to_string());
    let told = heard(&mut relay);
    assert_eq!(kinds(&told)[..2], ["history_delta", "message_accepted"], "{told:#?}");
    relay.report("sess_2", said("x2"));
    assert!(kinds(&heard(&mut relay)).contains(&"message_event"));
    relay.report("sess_1", said("x3"));
    assert!(heard(&mut relay).is_empty());
}

// spec: native/extensions.12
#[test]
fn whoever_asks_for_history_looks_at_the_session_from_there() {
    let mut relay = greeted();
    watch(&mut relay, &[], "cards");
    relay.report("sess_2", said("x1"));
    let told = ask(&mut relay, "sess_2", 0);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(sequences(&told[0]), [1, 2]);
    relay.report("sess_2", said("x2"));
    assert_eq!(kinds(&heard(&mut relay)), ["message_event"]);
}
