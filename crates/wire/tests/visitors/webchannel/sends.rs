//! What a client says, and what becomes of it.

use domain::content::Failure;
use domain::session::{Order, Report};
use domain::{Role, Timestamp};
use serde_json::{Value, json};

use super::relay::{Relay, kinds};

fn sealed(relay: &mut Relay, e2e: Value) {
    let mut payload = json!({});
    payload["e2e"] = e2e;
    relay.envelope("a", "user_message", "r1", payload);
}

// spec: webchannel/sealing.4
#[test]
fn openly_from_a_client_with_a_key_and_sealed_from_one_without_are_refused() {
    let mut relay = Relay::paired();
    relay.envelope("a", "user_message", "r1", json!({ "content": "openly" }));
    assert_eq!(relay.errors("a"), ["e2e_required"]);
    let e2e = relay.client("a").seal(&json!({ "content": "x" }));
    relay.opened("o", "token=fh_owner&plain=1");
    relay.envelope("o", "user_message", "r1", json!({ "e2e": e2e }));
    assert_eq!(relay.errors("o"), ["e2e_not_initialized"]);
    relay.obey(None);
    assert_eq!(relay.heard("a").len(), 0, "nothing was sent");
}

// spec: webchannel/sealing.3
#[test]
fn a_forged_message_is_refused_and_spends_nothing() {
    let mut relay = Relay::paired();
    relay.pair("b", Role::Operator);
    let matter = json!({ "content": "x", "sender_id": "ui-1" });
    let others = relay.client("b").seal(&matter);
    sealed(&mut relay, others);
    assert_eq!(relay.errors("a"), ["e2e_decrypt_failed"]);
    let good = relay.client("a").seal_under([9; 12], &matter);
    let mut forged = good.clone();
    forged["ciphertext"] = json!(format!("A{}", &good["ciphertext"].as_str().unwrap()[1..]));
    sealed(&mut relay, forged);
    assert_eq!(relay.errors("a"), ["e2e_decrypt_failed"]);
    sealed(&mut relay, good);
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), ["user_message"]);
}

// spec: webchannel/sealing.5
#[test]
fn a_replay_is_refused_on_this_and_on_any_other_connection() {
    let mut relay = Relay::paired();
    let e2e = relay.client("a").seal(&json!({ "content": "pay", "sender_id": "ui-1" }));
    sealed(&mut relay, e2e.clone());
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), ["user_message"]);
    sealed(&mut relay, e2e.clone());
    assert_eq!(relay.errors("a"), ["e2e_replay"]);
    relay.reopen("a", "");
    sealed(&mut relay, e2e);
    assert_eq!(relay.errors("a"), ["e2e_replay"]);
    assert!(relay.room().session.owed().is_empty());
}

// spec: webchannel/sealing.7
#[test]
fn what_the_relay_sealed_cannot_be_thrown_back_at_it() {
    let mut relay = Relay::paired();
    relay.says_text("m1", "rm -rf /");
    let heard = relay.heard("a");
    sealed(&mut relay, heard[0]["payload"]["e2e"].clone());
    assert_eq!(relay.errors("a"), ["e2e_replay"]);
    relay.user("a", "r2", "ls");
    relay.obey(None);
    let heard = relay.heard("a");
    sealed(&mut relay, heard[0]["payload"]["e2e"].clone());
    assert_eq!(relay.errors("a"), ["e2e_replay"]);
    assert!(relay.room().session.owed().is_empty());
}

// spec: webchannel/user.3
#[test]
fn what_says_nothing_or_too_much_is_refused() {
    let mut relay = Relay::paired();
    for (text, code) in [
        (String::new(), "invalid_payload"),
        ("x".repeat(70_001), "message_too_large"),
        ("x".repeat(65_537), "message_too_large"),
    ] {
        relay.user("a", "r1", &text);
        assert_eq!(relay.errors("a"), [code]);
    }
    for matter in [json!(7), json!({}), json!({ "content": 7 })] {
        let e2e = relay.client("a").seal(&matter);
        sealed(&mut relay, e2e);
        assert_eq!(relay.errors("a"), ["invalid_payload"], "{matter}");
    }
    relay.opened("o", "token=fh_owner&plain=1");
    relay.user("o", "r1", &"x".repeat(70_001));
    relay.envelope("o", "user_message", "r1", json!({}));
    assert_eq!(relay.errors("o"), ["message_too_large", "invalid_payload"]);
}

// spec: webchannel/user.4
#[test]
fn a_message_that_fails_is_told_to_its_sender_alone_under_its_own_id() {
    let mut relay = Relay::paired();
    relay.opened("o", "token=fh_owner&plain=1");
    relay.user("a", "r7", "hello");
    let Some(Order::Deliver { send, attempt }) = relay.room().session.owed().pop() else {
        panic!("nothing is owed");
    };
    let failure = Failure::new("session_not_connected", "the window is gone");
    relay.report(Report::SendFailed { id: send.id, attempt: Some(attempt), failure });
    let heard = relay.heard("a");
    assert_eq!((kinds(&heard), &heard[0]["request_id"]), (vec!["error"], &json!("r7")));
    assert_eq!(heard[0]["payload"]["code"], "session_not_connected");
    assert_eq!(relay.heard("o").len(), 0);
}

// spec: webchannel/errors.3
#[test]
fn what_the_agent_was_not_allowed_does_not_cost_the_client_its_token() {
    let mut relay = Relay::paired();
    relay.user("a", "r7", "hello");
    let Some(Order::Deliver { send, attempt }) = relay.room().session.owed().pop() else {
        panic!("nothing is owed");
    };
    let failure = Failure::new("unauthorized", "the agent is not logged in");
    relay.report(Report::SendFailed { id: send.id, attempt: Some(attempt), failure });
    assert_eq!(relay.errors("a"), ["agent_error"]);
}

// spec: webchannel/credentials.1
#[test]
fn a_viewer_sees_everything_and_is_not_asked_to_pair_again_for_trying() {
    let mut relay = Relay::new();
    relay.pair("v", Role::Viewer);
    relay.asks("p1");
    relay.says_text("m1", "words");
    assert_eq!(kinds(&relay.heard("v")), ["approval_request", "assistant_final"]);
    relay.user("v", "r1", "hello");
    relay.envelope("v", "approval_response", "p1", json!({ "approved": true }));
    assert_eq!(relay.errors("v"), ["forbidden", "forbidden"]);
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1);
}

// spec: webchannel/user.5
#[test]
fn messages_reach_the_session_in_the_order_in_which_they_were_said() {
    let mut relay = Relay::paired();
    relay.reopen("a", "");
    relay.is_slow = true;
    for number in 0..5 {
        relay.user("a", "r", &number.to_string());
    }
    while relay.room().session.glance().waiting.len() + relay.room().session.owed().len() < 5 {
        relay.catch_up();
    }
    let first: Vec<_> = relay.room().session.owed();
    assert!(matches!(&first[0], Order::Deliver { send, .. } if send.text.open().unwrap() == "0"));
    let waiting = relay.room().session.glance().waiting;
    let words: Vec<_> = waiting.iter().map(|send| send.text.open().unwrap().as_str()).collect();
    assert!(words.is_sorted(), "{words:?}");
}

// spec: webchannel/limits.1
#[test]
fn too_many_frames_or_sends_are_answered_so() {
    let mut relay = Relay::paired();
    relay.client("a").gauge.sends_left = Some(0);
    relay.user("a", "r1", "x");
    relay.client("a").gauge.frames_left = Some(0);
    relay.envelope("a", "approval_response", "p1", json!({ "approved": true }));
    assert_eq!(relay.errors("a"), ["rate_limited", "rate_limited"]);
    relay.now = Timestamp(relay.now.0 + 60_000);
    relay.client("a").gauge = <_>::default();
    relay.user("a", "r1", "x");
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), ["user_message"]);
}

// spec: webchannel/limits.1
#[test]
fn what_was_said_before_the_token_was_looked_at_counts_too() {
    for in_address in [false, true] {
        let mut relay = Relay::paired();
        let token = relay.client("a").token.clone();
        let query = if in_address { format!("token={token}") } else { String::new() };
        relay.is_slow = true;
        relay.reopen("a", &query);
        relay.client("a").gauge.sends_left = Some(1);
        for request in ["r1", "r2", "r3"] {
            relay.user("a", request, "x");
        }
        relay.is_slow = false;
        relay.catch_up();
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard), ["error", "error"], "{query}");
        for (frame, request) in heard.iter().zip(["r2", "r3"]) {
            assert_eq!(
                (&frame["payload"]["code"], &frame["request_id"]),
                (&json!("rate_limited"), &json!(request))
            );
        }
        relay.obey(None);
        assert_eq!(relay.heard("a")[0]["request_id"], "r1");
    }
}
