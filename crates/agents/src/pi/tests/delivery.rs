//! Sends, steers and their outcomes.

use domain::Sequence;
use domain::session::controls::Control;
use domain::session::delivery::Mode;
use serde_json::json;

use super::bench::{Bench, FILE, pick};
use crate::{Driver, Ended, File, Image, Input, Lookup, Order, Output};

#[test]
fn a_send_is_delivered_when_pi_took_it_and_noted_before_it_is_written() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    assert!(bench.written("prompt").is_none());
    bench.answer("get_entries", &json!({"entries": [], "leafId": "e7"}));
    let noted = bench.told.iter().position(
        |output| matches!(output, Output::Remember(line) if line.contains(r#""leaf":"e7""#)),
    );
    let written = bench
        .told
        .iter()
        .position(|output| matches!(output, Output::Write(line) if line.contains("hello")));
    assert!(noted.unwrap() < written.unwrap());
    assert_eq!(bench.delivered(), [""; 0]);
    bench.answer("prompt", &json!(null));
    bench.hear(&json!({"type": "agent_start"}));
    assert_eq!(bench.delivered(), [""; 0]);
    bench.user("hello");
    assert_eq!(bench.delivered(), ["m1"]);
    assert_eq!(bench.messages().len(), 0);
}

#[test]
fn a_send_that_pi_refuses_failed_and_the_next_goes() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.deliver("m2", "there", None);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    bench.refuse("prompt", "No API key found for fake");
    assert_eq!(bench.failed(), [("m1", "send_rejected")]);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    assert_eq!(bench.written("prompt").unwrap()["message"], "there");
}

#[test]
fn a_steer_is_delivered_when_pi_takes_it_out_of_its_queue() {
    let mut bench = Bench::ready();
    bench.begin("m1", "slow: 12");
    bench.deliver("m2", "and this", Some(Mode::Steer));
    assert_eq!(bench.written("get_entries").unwrap()["since"], "e1");
    bench.answer("get_entries", &json!({"leafId": "e3"}));
    assert_eq!(bench.written("prompt").unwrap()["streamingBehavior"], "steer");
    bench.hear(&json!({"type": "queue_update", "steering": ["and this"], "followUp": []}));
    bench.answer("prompt", &json!(null));
    assert_eq!(bench.delivered(), ["m1"]);
    bench.hear(&json!({"type": "queue_update", "steering": [], "followUp": []}));
    bench.user("and this");
    assert_eq!(bench.delivered(), ["m1", "m2"]);
    assert_eq!(bench.messages().len(), 0);
    assert!(!bench.notices().contains(&"queue"));
}

#[test]
fn a_steer_that_the_run_ended_without_begins_the_next() {
    let mut bench = Bench::ready();
    bench.begin("m1", "slow: 12");
    steer(&mut bench, "m2", "and this");
    bench.settles();
    bench.answer("clear_queue", &json!({"steering": ["and this"], "followUp": []}));
    assert_eq!(bench.delivered(), ["m1"]);
    bench.answer("get_entries", &json!({"leafId": "e4"}));
    bench.answer("prompt", &json!(null));
    bench.user("and this");
    assert_eq!(bench.delivered(), ["m1", "m2"]);
    assert_eq!(bench.pi.scribe.run().unwrap().as_str(), "run-m2-1");
}

#[test]
fn a_steer_that_was_not_heard_before_an_interrupt_failed() {
    let mut bench = Bench::ready();
    bench.begin("m1", "slow: 12");
    steer(&mut bench, "m2", "and this");
    bench.control(Control::Interrupt { run: None });
    bench.answer("clear_queue", &json!({"steering": ["and this"], "followUp": []}));
    assert_eq!(bench.failed(), [("m2", "send_rejected")]);
    bench.settles();
    bench.answer("abort", &json!(null));
    assert_eq!(bench.results(), [None]);
}

#[test]
fn a_follow_up_that_comes_during_a_run_waits_for_its_end() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    bench.told.clear();
    bench.deliver("m2", "next", None);
    assert_eq!(bench.told, []);
    bench.settles();
    bench.answer("get_entries", &json!({"leafId": "e4"}));
    assert_eq!(bench.written("prompt").unwrap()["message"], "next");
}

#[test]
fn what_was_written_when_pi_died_is_looked_for_and_the_rest_failed() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.deliver("m2", "never written", None);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    bench.end(Ended::Killed(9));
    assert_eq!(bench.failed(), [("m2", "agent_not_open")]);
    let file = |text: &str| Input::Read { path: FILE.into(), text: Some(text.to_owned()) };
    let text = r#"{"type":"x","id":"e1"}
{"type":"message","id":"e2","parentId":"e1","message":{"role":"user","content":"hello"}}"#;
    bench.input(file(text));
    assert_eq!(bench.delivered(), ["m1"]);
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    bench.end(Ended::Killed(9));
    bench.input(file(r#"{"type":"x","id":"other"}"#));
    assert_eq!(bench.failed(), [("m1", "delivery_unknown")]);
}

#[test]
fn after_a_crash_of_the_proxy_pi_s_own_file_says_what_it_has() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    bench.says("hi");
    bench.settles();
    let mut again = bench.again();
    let found = |again: &mut Bench, id: &str, text: Option<&str>| {
        again.told.clear();
        again.order(&Order::LookUp { id: id.into(), attempt: Sequence(1) });
        if again.told.contains(&Output::Read(FILE.into())) {
            let text = text.map(str::to_owned);
            again.input(Input::Read { path: FILE.into(), text });
        }
        pick!(again.told.iter(), Output::LookedUp { found, .. } => *found).pop()
    };
    let text = r#"{"type":"x","id":"e1"}
{"type":"message","id":"e2","parentId":"e1","message":{"role":"user","content":"hello"}}"#;
    assert_eq!(found(&mut again, "m1", Some(text)), Some(Lookup::Found));
    assert_eq!(found(&mut again, "m1", Some(r#"{"type":"x","id":"e1"}"#)), Some(Lookup::Absent));
    assert_eq!(found(&mut again, "m1", None), Some(Lookup::Unknown));
    assert_eq!(found(&mut again, "m9", None), Some(Lookup::Absent));
    assert_eq!(again.spawned(), None);
}

#[test]
fn an_older_pi_cannot_tell_its_last_entry_and_gets_the_message_all_the_same() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.hear(&json!({"type": "response", "command": "get_entries", "success": false,
        "error": "Unknown command: get_entries"}));
    assert_eq!(bench.written("prompt").unwrap()["message"], "hello");
    bench.answer("prompt", &json!(null));
    bench.user("hello");
    assert_eq!(bench.delivered(), ["m1"]);
    bench.settles();
    bench.told.clear();
    bench.deliver("m2", "more", None);
    assert!(bench.written("get_entries").is_none());
    assert!(bench.written("prompt").is_some());
}

#[test]
fn a_record_that_is_too_long_to_be_told_holds_nothing_up() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.wait_ms(4_999);
    assert!(bench.written("prompt").is_none());
    assert!(bench.pi.deadline().is_some());
    bench.wait_ms(1);
    assert!(bench.written("prompt").is_some());
}

#[test]
fn a_command_of_an_extension_that_does_nothing_leaves_no_run_behind() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "/name kite", None);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    bench.answer("prompt", &json!(null));
    bench.answer("get_state", &json!({"isStreaming": false}));
    assert_eq!(bench.delivered(), ["m1"]);
    assert_eq!(bench.outcome(), None);
    assert!(bench.pi.is_at_rest());
}

#[test]
fn a_message_that_an_extension_swallowed_holds_nothing_up() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    bench.answer("prompt", &json!(null));
    bench.told.clear();
    bench.wait_ms(2_000);
    bench.answer("get_state", &json!({"isStreaming": true}));
    assert_eq!(bench.delivered(), [""; 0]);
    bench.wait_ms(2_000);
    bench.answer("get_state", &json!({"isStreaming": false}));
    assert_eq!(bench.delivered(), ["m1"]);
}

#[test]
fn a_run_that_fails_before_it_shows_its_message_is_still_that_message_s_run() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    bench.answer("prompt", &json!(null));
    bench.settles();
    assert_eq!(bench.delivered(), ["m1"]);
    assert!(bench.outcome().is_some());
}

#[test]
fn a_picture_goes_along_and_another_file_is_named() {
    let mut bench = Bench::ready();
    let file = |name: &str, image| File {
        name: name.to_owned(),
        path: format!("/data/{name}").into(),
        size_bytes: 4,
        image,
    };
    let image = Image { media_type: "image/png".to_owned(), base64: "AAAA".to_owned() };
    let files = vec![file("a.png", Some(image)), file("b.csv", None)];
    bench.deliver_with("m1", "look", None, files);
    bench.answer("get_entries", &json!({"leafId": "e1"}));
    let prompt = bench.written("prompt").unwrap();
    assert_eq!(prompt["images"][0]["mimeType"], "image/png");
    assert_eq!(prompt["images"].as_array().unwrap().len(), 1);
    let words = prompt["message"].as_str().unwrap();
    assert!(words.starts_with("look") && words.contains("/data/b.csv"), "{words}");
    assert!(!words.contains("a.png"));
}

fn steer(bench: &mut Bench, id: &str, text: &str) {
    bench.deliver(id, text, Some(Mode::Steer));
    bench.answer("get_entries", &json!({"leafId": "e3"}));
    bench.hear(&json!({"type": "queue_update", "steering": [text], "followUp": []}));
    bench.answer("prompt", &json!(null));
}
