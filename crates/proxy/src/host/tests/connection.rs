//! The relay connects, disconnects and acknowledges, while time and the journal advance.

use super::*;

#[test]
fn what_was_not_acknowledged_is_sent_again_in_order_after_the_sessions() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "hello", 5)).unwrap();
    let sent: Vec<_> = world.heard.values().map(|frame| frame["type"].clone()).collect();
    world.handle([Input::Disconnected]).unwrap();
    let again = world.connect();
    assert_eq!(again[0]["type"], "proxy_session_snapshot");
    let numbered: Vec<_> = again.iter().filter(|f| f.get("link_number").is_some()).collect();
    let types: Vec<_> = numbered.iter().map(|frame| frame["type"].clone()).collect();
    assert_eq!(types, sent);
    assert_eq!(again.last().unwrap()["type"], "proxy_resumed");
}

#[test]
fn acknowledged_frames_are_not_sent_again() {
    let mut world = World::new();
    world.connect();
    world.ack_everything();
    assert!(world.host().book().outbox.is_empty());
    world.handle([Input::Disconnected]).unwrap();
    let again = world.connect();
    assert!(again.iter().all(|frame| frame.get("link_number").is_none()), "{again:?}");
}

#[test]
fn a_draft_is_told_from_its_start_when_the_relay_comes_back() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "slow: 5", 5)).unwrap();
    world.pass(100);
    world.handle([Input::Disconnected]).unwrap();
    world.pass(100);
    let again = world.connect();
    let deltas: Vec<_> = again.iter().filter(|f| f["type"] == "message_delta").collect();
    assert_eq!(deltas.len(), 1);
    assert_eq!(
        (&deltas[0]["offset"], &deltas[0]["content"]),
        (&0.into(), &"word1 word2 word3 ".into())
    );
    assert!(deltas[0].get("link_number").is_none());
    let resumed = again.last().unwrap();
    assert_eq!(resumed["active_run"], "run-m1-5");
    // Nothing passing is in the outbox.
    let frames = world.host().book().outbox.unacked();
    assert!(frames.into_iter().all(|n| !n.frame.frame.windows(13).any(|w| w == b"message_delta")));
}

// spec: native/permission_prompt_relay_behavior.8
// spec: native/permission_prompt.4
#[test]
fn a_returning_proxy_names_the_prompts_it_still_has() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "ask: ls", 5)).unwrap();
    let prompt = world.of("permission_prompt")[0]["prompt_id"].clone();
    world.handle([Input::Disconnected]).unwrap();
    assert_eq!(world.connect().pop().unwrap()["open_prompts"], Value::Array(vec![prompt]));
    world.crash(Crash::KeepsAll);
    assert_eq!(world.connect().pop().unwrap()["open_prompts"], Value::Array(vec![]));
}

// spec: native/heartbeat.1
#[test]
fn heartbeats_follow_the_relays_interval_and_its_silence_ends_the_connection() {
    let mut world = World::new();
    world.connect();
    let turn = world.pass(10_000);
    assert!(turn.frames.iter().any(|frame| frame.starts_with(br#"{"type":"heartbeat""#)));
    assert_eq!(turn.disconnect, None);
    let turn = world.pass(20_000);
    assert_eq!(turn.disconnect, Some("the relay stopped responding"));
}

#[test]
fn a_clock_that_is_set_back_stops_neither_agents_nor_heartbeats() {
    let mut world = World::new();
    world.now = 10_000_000;
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "slow: 3", 5)).unwrap();
    world.now = 1_000;
    world.handle([]).unwrap();
    let beat = world.pass(10_000);
    assert!(beat.frames.iter().any(|frame| frame.starts_with(br#"{"type":"heartbeat""#)));
    world.idle().unwrap();
    assert!(world.now < 20_000);
    assert_eq!(world.of("run_ended").len(), 1);
}

#[test]
fn a_relay_that_never_greets_is_left() {
    let mut world = World::new();
    world.handle([Input::Connected]).unwrap();
    assert_eq!(world.host().deadline(), Some(Timestamp(world.now + 10_000)));
    assert_eq!(
        world.pass(10_000).disconnect,
        Some("the relay did not complete the handshake in time")
    );
}

#[test]
fn text_that_makes_no_sense_does_no_harm() {
    let mut world = World::new();
    world.connect();
    let turn = world.handle([Input::Text(r#"{"type":"send_message"}"#.to_owned())]).unwrap();
    assert_eq!(turn.complaints[0].code, "invalid_message".into());
    let turn = world.handle([Input::Text(r#"{"type":"news"}"#.to_owned())]).unwrap();
    assert_eq!(turn, Turn::default());
    let turn = world.handle([Input::Text("not json".to_owned())]).unwrap();
    assert_eq!(turn.disconnect, Some("the relay sent a message that is not JSON"));
}

#[test]
fn the_journal_is_shortened_when_it_has_grown() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    let text = "x".repeat(60_000);
    for n in 1..=40 {
        world.offer(&deliver(&demo, &format!("m{n}"), &text, n)).unwrap();
        world.ack_everything();
    }
    world.pass(1);
    assert!(world.disk.len() < 2 << 20, "{} bytes", world.disk.len());
    let before = world.host().book().outbox.next_number();
    world.crash(Crash::KeepsNone);
    assert!(world.host().book().outbox.next_number() >= before);
}

#[test]
fn a_number_that_the_relay_has_heard_is_not_given_again() {
    let mut world = World::new();
    world.received = 500;
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "hello", 5)).unwrap();
    assert!(world.heard.keys().any(|number| *number == 501), "{:?}", world.heard.keys());
}
