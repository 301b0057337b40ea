//! Input that means no good.

use proptest::prelude::*;
use serde_json::json;

use super::relay::{Relay, SESSION, kinds};

// spec: pi/transport.2
#[test]
fn text_that_is_not_json_is_answered_and_the_socket_stays() {
    let mut relay = Relay::watched();
    for text in ["", "x", "{", "\u{0}", "[]"] {
        relay.text("a", text);
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard), ["response/parse"], "{text:?}");
        assert_eq!(heard[0]["success"], false);
    }
    assert_eq!(relay.client("a").closed, None);
}

// spec: pi/credentials.2
#[test]
fn without_a_credential_a_command_is_refused_and_the_socket_closed() {
    let mut relay = Relay::new();
    relay.open("n", &format!("session={SESSION}"));
    relay.json("n", &json!({ "id": "r", "type": "get_state" }));
    let heard = relay.heard("n");
    assert_eq!(heard[0]["error"], "This connection has no credential");
    assert_eq!(relay.client("n").closed, Some(4003));
}

// spec: pi/limits.1
#[test]
fn too_many_frames_are_answered_in_their_own_words() {
    let mut relay = Relay::watched();
    relay.asks("p1", &[("yes", None), ("no", None)]);
    relay.heard("a");
    relay.client("a").gauge.frames_left = Some(0);
    relay.text("a", "{");
    relay.json("a", &json!({ "id": "r", "type": "get_state" }));
    relay.json("a", &json!({ "type": "extension_ui_response", "id": "p1", "confirmed": true }));
    let heard = relay.heard("a");
    assert_eq!(
        kinds(&heard),
        ["response/parse", "response/get_state", "extension_ui_request/notify"]
    );
    assert_eq!(heard[1]["error"], "Too many commands; try again in a moment");
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1, "the question stays open");
    relay.client("a").gauge.frames_left = None;
    relay.client("a").gauge.sends_left = Some(0);
    for command in ["prompt", "steer", "follow_up"] {
        let answer = relay.ask("a", json!({ "type": command, "message": "x" }));
        assert_eq!(answer["error"], "Too many commands; try again in a moment");
    }
}

// spec: pi/limits.2
#[test]
fn who_says_too_much_before_the_join_is_closed() {
    let mut relay = Relay::new();
    relay.is_slow = true;
    relay.open("a", &format!("session={SESSION}"));
    for _ in 0..64 {
        relay.json("a", &json!({ "type": "get_state" }));
    }
    assert_eq!(relay.client("a").closed, None);
    relay.json("a", &json!({ "type": "get_state" }));
    assert_eq!(relay.client("a").closed, Some(1008));
}

// spec: pi/limits.2
#[test]
fn one_large_prompt_may_wait_for_the_join_and_a_second_may_not() {
    let mut relay = Relay::new();
    relay.is_slow = true;
    relay.open("a", &format!("session={SESSION}"));
    let large = json!({ "type": "prompt", "message": "x".repeat(9 << 20) });
    relay.json("a", &large);
    assert_eq!(relay.client("a").closed, None);
    relay.json("a", &json!({ "type": "get_state" }));
    assert_eq!(relay.client("a").closed, Some(1008));
}

// spec: pi/limits.3
#[test]
fn ten_thousand_requests_are_each_answered_and_nothing_piles_up() {
    let mut relay = Relay::watched();
    relay.configures("fake/one", "low");
    relay.is_slow = true;
    for id in 0..10_000 {
        relay.json("a", &json!({ "id": id, "type": "get_messages" }));
    }
    let refused = relay.heard("a");
    assert_eq!(refused.len(), 10_000 - 64);
    assert!(refused.iter().all(|it| it["error"] == "Too many requests in flight"));
    relay.catch_up();
    assert_eq!(relay.heard("a").len(), 64);
    for id in 0..10_000 {
        relay.json(
            "a",
            &json!({ "id": id, "type": "set_model", "provider": "fake", "modelId": "two" }),
        );
    }
    relay.obey(None);
    assert_eq!(relay.heard("a").len(), 10_000);
    assert_eq!(relay.room().session.owed().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_survived(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
        let mut relay = Relay::watched();
        relay.text("a", &text);
        prop_assert_eq!(relay.client("a").closed, None);
    }

    #[test]
    fn any_answer_leaves_the_question_open_or_answers_it_once(
        confirmed in 0..4_usize, value in 0..5_usize, cancelled in 0..4_usize, many in any::<bool>(),
    ) {
        let flags = ["null", "true", "false", "7"];
        let values = ["null", "\"YES\"", "\"\"", "[]", "\"NO\""];
        let mut relay = Relay::watched();
        let choices = [("yes", None), ("no", None), ("maybe", None)];
        relay.asks("p1", if many { &choices } else { &choices[..2] });
        relay.text("a", &format!(
            r#"{{"type":"extension_ui_response","id":"p1","confirmed":{},"value":{},
            "cancelled":{}}}"#,
            flags[confirmed], values[value], flags[cancelled],
        ));
        let open = relay.room().session.glance().card.prompts.len();
        let owed = relay.room().session.owed().len();
        prop_assert_eq!(open + owed, 1);
    }
}
