//! A session that was erased and begins again under the same id, before clients that knew the old.

use domain::passing::{Delta, Voice};
use domain::{Content, Sequence};
use serde_json::{Value, json};
use wire::native::Output;

use crate::native::relay::Relay;
use crate::native::script::said;

fn greeted() -> Relay {
    let mut relay = Relay::new();
    relay.session_up("sess_1", "demo");
    let hello = json!({"type": "connection_hello", "protocol_version": 1,
        "peer_role": "browser", "client_name": "t", "features": ["paging", "deltas"]});
    relay.text("a", &hello.to_string());
    for n in 0..5 {
        relay.report("sess_1", said(&format!("x{n}")));
    }
    heard(&mut relay);
    relay
}

fn heard(relay: &mut Relay) -> Vec<Value> {
    std::mem::take(&mut relay.clients.get_mut("a").unwrap().heard)
}

fn ask(relay: &mut Relay, after: u64) -> Vec<Value> {
    let frame = json!({"type": "history_request", "protocol_version": 1, "request_id": "h",
        "session_id": "sess_1", "after_sequence": after});
    relay.text("a", &frame.to_string());
    heard(relay)
}

#[test]
fn its_new_history_is_read_once_although_more_was_known_of_the_old() {
    let mut relay = greeted();
    relay.erase("sess_1");
    relay.session_up("sess_1", "demo");
    let pages = ask(&mut relay, 0);
    assert_eq!(pages.len(), 1, "{pages:#?}");
    assert_eq!((&pages[0]["last_sequence"], &pages[0]["has_more"]), (&json!(1), &json!(false)));
}

#[test]
fn a_cursor_of_the_old_one_begins_anew_and_live_events_follow() {
    let mut relay = greeted();
    relay.erase("sess_1");
    relay.session_up("sess_1", "demo");
    let told = ask(&mut relay, 6);
    let kinds: Vec<_> = told.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["connection_error", "history_snapshot"], "{told:#?}");
    assert_eq!(told[0]["code"], "resume_cursor_invalid");
    assert_eq!((&told[1]["last_sequence"], &told[1]["has_more"]), (&json!(1), &json!(false)));
    relay.report("sess_1", said("y"));
    let told = heard(&mut relay);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["sequence"], 2);
}

#[test]
fn what_is_recorded_while_a_page_is_read_is_told_after_it() {
    let mut relay = greeted();
    relay.slow_reads = true;
    assert!(ask(&mut relay, 6).is_empty());
    relay.report("sess_1", said("y"));
    relay.read_now();
    let told = heard(&mut relay);
    let last = told.last().unwrap();
    assert_eq!(
        (&last["last_sequence"], &last["has_more"]),
        (&json!(7), &json!(false)),
        "{told:#?}"
    );
    assert_eq!(last["events"][0]["sequence"], 7);
}

fn assert_begins_anew(told: &[Value]) {
    let kinds: Vec<_> = told.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["connection_error", "history_snapshot"], "{told:#?}");
    assert_eq!(told[1]["last_sequence"], 1);
}

/// Asked again at once, it would be asked for ever: no answer is as new as the old session.
#[test]
fn its_words_in_the_making_are_told_after_the_history_that_begins_anew() {
    let mut relay = greeted();
    relay.erase("sess_1");
    relay.session_up("sess_1", "demo");
    let drafts = || {
        let words = Content::Open("hel".to_owned());
        vec![Delta { message: "d1".into(), part: 0, voice: Voice::Text, offset: 0, words }]
    };
    let machine = &mut relay.clients.get_mut("a").unwrap().machine;
    let outputs = machine.on_drafts(&"sess_1".into(), Sequence(1), drafts());
    assert!(matches!(outputs.as_slice(), [Output::Read(_)]), "{outputs:?}");
    relay.carry_out("a", outputs);
    assert_begins_anew(&heard(&mut relay));
    let machine = &mut relay.clients.get_mut("a").unwrap().machine;
    let outputs = machine.on_drafts(&"sess_1".into(), Sequence(1), drafts());
    relay.carry_out("a", outputs);
    assert_eq!(heard(&mut relay)[0]["type"], "message_delta");
}

#[test]
fn a_client_that_lagged_begins_anew() {
    let mut relay = greeted();
    relay.erase("sess_1");
    relay.session_up("sess_1", "demo");
    relay.lag("a");
    assert_begins_anew(&heard(&mut relay));
}
