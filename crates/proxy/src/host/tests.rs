//! The host against a small model of a relay, with crashes at every step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::content::Attachment;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::{Order, Report};
use domain::{Content, RequestId, Sequence};
use serde_json::Value;
use wire::native::proxy_frames;

use super::*;
use crate::disk::{Crash, MemoryDisk};
use crate::records::{Failing, MemoryRecords};

const CRASHES: [Crash; 3] = [Crash::KeepsNone, Crash::KeepsHalf, Crash::KeepsAll];
/// No scenario here takes as many turns.
const TURNS_MAX: usize = 10_000;

// spec: native/forwarding.2
// spec: native/delivery_state.3
#[test]
fn wherever_it_crashes_a_send_reaches_the_agent_once_and_is_told_delivered() {
    for crash in CRASHES {
        let crashed = crash_everywhere(crash, "say: a b", |world, step| {
            assert_eq!(world.received("m1"), 1, "{crash:?} at {step}");
            let told = world.results("m1");
            assert!(!told.is_empty(), "{crash:?} at {step}: never told");
            assert!(told.iter().all(|r| r == "delivered"), "{crash:?} at {step}: {told:?}");
        });
        assert!(crashed >= 4, "only {crashed} steps could crash");
    }
}

#[test]
fn wherever_it_crashes_a_failed_send_is_told_failed_and_never_reaches_the_agent() {
    for crash in CRASHES {
        crash_everywhere(crash, "fail: send_rejected", |world, step| {
            assert_eq!(world.received("m1"), 0, "{crash:?} at {step}");
            let told = world.results("m1");
            assert!(!told.is_empty(), "{crash:?} at {step}: never told");
            assert!(told.iter().all(|r| r == "failed"), "{crash:?} at {step}: {told:?}");
        });
    }
}

#[test]
fn a_crash_around_the_agents_own_record_neither_loses_nor_doubles() {
    for failing in [Failing::Before, Failing::After] {
        let mut world = World::new();
        world.connect();
        world.records.fail_next(failing);
        let order = deliver(&world.demo(), "m1", "hello", 5);
        assert!(world.offer(&order).is_err());
        world.crash(Crash::KeepsAll);
        world.connect();
        world.offer(&order).unwrap();
        world.idle().unwrap();
        assert_eq!(world.received("m1"), 1, "{failing:?}");
        assert_eq!(world.results("m1"), ["delivered"], "{failing:?}");
    }
}

#[test]
fn an_attempt_that_is_offered_again_reaches_the_agent_once() {
    let mut world = World::new();
    world.connect();
    let order = deliver(&world.demo(), "m1", "hello", 5);
    world.offer(&order).unwrap();
    world.offer(&order).unwrap();
    // The result is acknowledged, and still the order comes once more.
    world.ack_everything();
    world.offer(&order).unwrap();
    assert_eq!(world.received("m1"), 1);
    assert_eq!(world.results("m1"), ["delivered", "delivered"]);
    // Another life remembers it too.
    world.ack_everything();
    world.crash(Crash::KeepsAll);
    world.connect();
    world.offer(&order).unwrap();
    assert_eq!(world.received("m1"), 1);
}

#[test]
fn a_retry_is_another_attempt() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    world.offer(&deliver(&demo, "m1", "fail: send_rejected", 5)).unwrap();
    world.offer(&deliver(&demo, "m1", "hello", 9)).unwrap();
    assert_eq!(world.results("m1"), ["failed", "delivered"]);
    assert_eq!(world.received("m1"), 1);
}

// spec: native/proxy_launch_behavior.1
#[test]
fn wherever_it_crashes_a_launch_brings_one_session() {
    for crash in CRASHES {
        for step in 0..20 {
            let mut world = World::new();
            world.connect();
            world.disk.fail_at(step);
            let crashed = world.say(LAUNCH).and_then(|()| world.idle()).is_err();
            if crashed {
                world.crash(crash);
                world.connect();
                world.say(LAUNCH).unwrap();
            }
            assert_eq!(world.host().sessions().len(), 2, "{crash:?} at {step}");
            let acks = world.of("session_launch_ack");
            let session = acks[0]["session_id"].as_str().unwrap();
            assert!(acks.iter().all(|ack| ack["session_id"] == session));
            assert!(world.host().sessions().contains(&SessionId::from(session)));
            if !crashed {
                break;
            }
        }
    }
}

// spec: native/proxy_launch_behavior.2
#[test]
fn an_agent_without_a_driver_cannot_be_launched() {
    let mut world = World::new();
    world.connect();
    world.say(&LAUNCH.replace("demo", "claude")).unwrap();
    let failed = &world.of("session_launch_failed")[0];
    assert_eq!(failed["error_code"], "launch_not_supported");
    assert_eq!(failed["request_id"], "l1");
}

// spec: native/session_closed.5
#[test]
fn the_demo_session_is_the_same_after_a_restart_and_nobody_is_told_that_it_closed() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    world.crash(Crash::KeepsNone);
    assert_eq!(world.demo(), demo);
    world.connect();
    assert!(world.of("session_closed").is_empty());
}

// spec: native/proxy_launch_behavior.3
#[test]
fn a_launch_outside_of_the_allowed_folders_fails() {
    let mut world = World { roots: vec!["/home/ada".to_owned()], ..World::new() };
    world.crash(Crash::KeepsAll);
    world.connect();
    world.say(LAUNCH).unwrap();
    assert_eq!(world.of("session_launch_failed")[0]["error_code"], "path_not_allowed");
    world.say(&LAUNCH.replace("/tmp", "/home/ada").replace("l1", "l2")).unwrap();
    assert_eq!(world.of("session_launch_ack")[0]["request_id"], "l2");
}

#[test]
fn after_a_crash_of_the_demo_agent_there_is_a_new_session_at_once() {
    let mut world = World::new();
    world.connect();
    let old = world.demo();
    let (session, order) = deliver(&old, "m1", "crash", 5);
    let order = proxy_frames::encode_order(&session, &order, false, Timestamp(world.now));
    let turn = world.handle([text(&order)]).unwrap();
    assert_eq!(world.of("session_closed")[0]["reason"], "target_closed");
    let new = world.demo();
    assert_ne!(new, old);
    let told: Vec<Value> =
        turn.frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect();
    let closed_at = told.iter().position(|frame| frame["type"] == "session_closed").unwrap();
    let named = &told[closed_at + 1];
    assert_eq!(named["type"], "proxy_session_snapshot");
    assert_eq!(named_in(named), [new.to_string()]);
    world.offer(&deliver(&new, "m2", "hello", 1)).unwrap();
    assert_eq!(world.results("m2"), ["delivered"]);
    world.crash(Crash::KeepsAll);
    assert_eq!(world.demo(), new);
    // The relay may not know yet that the old one is over: it is named until it does.
    let first = world.connect();
    assert_eq!(named_in(&first[0]).len(), 2);
    world.ack_everything();
    world.handle([Input::Disconnected]).unwrap();
    let second = world.connect();
    assert_eq!(named_in(&second[0]), [world.demo().to_string()]);
}

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

#[test]
fn a_run_cut_by_a_crash_is_not_gone_on_with() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "slow: 50", 5)).unwrap();
    world.crash(Crash::KeepsAll);
    let resumed = world.connect().pop().unwrap();
    assert_eq!(resumed["type"], "proxy_resumed");
    assert!(resumed.get("active_run").is_none());
    world.idle().unwrap();
    assert_eq!(world.of("run_ended").len(), 0);
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

// spec: native/permission_response.2
#[test]
fn an_answer_that_is_offered_twice_is_applied_once_and_confirmed_again() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    world.offer(&deliver(&demo, "m1", "ask: ls", 5)).unwrap();
    let prompt = world.of("permission_prompt")[0]["prompt_id"].as_str().unwrap().into();
    let answer = Order::Answer {
        request: "a1".into(),
        prompt,
        choice: Some("yes".into()),
        by_person: true,
        detail: None,
    };
    world.offer(&(demo.clone(), answer.clone())).unwrap();
    world.offer(&(demo, answer)).unwrap();
    let results = world.of("agent_control_result");
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|r| r["result"] == "ok" && r["command"] == "permission_response"));
    let said = world.of("proxy_message");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["message"]["content"], "ran: ls");
}

#[test]
fn a_request_answered_before_a_crash_has_no_second_effect() {
    let mut world = World::new();
    world.connect();
    let order = control(&world.demo(), "c1", Control::SetModel("no-such".into()));
    world.offer(&order).unwrap();
    world.crash(Crash::KeepsAll);
    world.connect();
    world.offer(&order).unwrap();
    let results = world.of("agent_control_result");
    assert!(results.iter().all(|r| r["error"]["code"] == "model_not_available"), "{results:?}");
    assert_eq!(results.len(), 2);
}

#[test]
fn a_closed_session_is_told_closed_with_its_request() {
    let mut world = World::new();
    world.connect();
    world.offer(&control(&world.demo(), "c1", Control::Close)).unwrap();
    let closed = &world.of("session_closed")[0];
    assert_eq!(
        (&closed["reason"], &closed["request_id"]),
        (&"user_requested".into(), &"c1".into())
    );
    assert!(world.host().sessions().is_empty());
}

// spec: native/agent_config.1
#[test]
fn a_session_tells_its_configuration_without_being_asked() {
    let mut world = World::new();
    world.connect();
    let config = &world.of("agent_config")[0];
    assert_eq!(config["model_id"], "demo-small");
    assert_eq!(config["available_models"], serde_json::json!(["demo-small", "demo-large"]));
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
    assert_eq!(turn.disconnect, Some("the relay went silent"));
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
    assert_eq!(world.pass(10_000).disconnect, Some("the relay did not greet"));
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
    assert_eq!(turn.disconnect, Some("not JSON"));
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

const LAUNCH: &str = r#"{"type":"launch_session","protocol_version":1,"request_id":"l1","agent_type":"demo","workspace_path":"/tmp/kite"}"#;

#[test]
fn a_send_waits_for_its_attachments_and_those_behind_it_wait_with_it() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    let turn = world.offered(&with_file(&demo, "m1", "see", 5));
    let [Fetch { attempt, files }] = &turn.fetches[..] else { panic!("{turn:?}") };
    assert_eq!(files[0].name, "cat.png");
    world.offer(&deliver(&demo, "m2", "say: later", 6)).unwrap();
    assert_eq!((world.received("m1"), world.received("m2")), (0, 0));

    let fetched = Input::Fetched(attempt.clone(), Ok(vec![file()]));
    world.handle([fetched.clone()]).unwrap();
    assert_eq!(
        (world.results("m1"), world.results("m2")),
        (vec!["delivered".to_owned()], vec!["delivered".to_owned()])
    );
    assert_eq!(world.of("proxy_message")[0]["message"]["content"], "echo: see [cat.png, 3 bytes]");
    // Told twice, given once.
    world.handle([fetched]).unwrap();
    assert_eq!(world.received("m1"), 1);
}

#[test]
fn attachments_that_cannot_be_had_now_are_asked_for_again_and_again() {
    let mut world = World::new();
    world.connect();
    let turn = world.offered(&with_file(&world.demo(), "m1", "see", 5));
    let attempt = turn.fetches[0].attempt.clone();
    let mut waits_ms = vec![];
    for _ in 0..9 {
        world.handle([Input::Fetched(attempt.clone(), Err(FetchFault::Away))]).unwrap();
        let begun_ms = world.now;
        while world.pass(100).fetches.is_empty() {
            assert!(world.now - begun_ms < 60_000, "never asked again");
            world.say(r#"{"type":"heartbeat_ack","protocol_version":1}"#).unwrap();
        }
        waits_ms.push(world.now - begun_ms);
    }
    assert_eq!(waits_ms, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    assert_eq!(world.received("m1"), 0);
    world.handle([Input::Fetched(attempt, Ok(vec![file()]))]).unwrap();
    assert_eq!(world.results("m1"), ["delivered"]);
}

#[test]
fn a_send_whose_attachment_is_unknown_fails_and_lets_the_next_one_by() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    let turn = world.offered(&with_file(&demo, "m1", "see", 5));
    world.offer(&deliver(&demo, "m2", "say: later", 6)).unwrap();
    let failure = Failure::new("attachment_unknown", "gone");
    let attempt = turn.fetches[0].attempt.clone();
    world.handle([Input::Fetched(attempt, Err(FetchFault::Failed(failure)))]).unwrap();
    assert_eq!(world.results("m1"), ["failed"]);
    assert_eq!(world.of("proxy_send_result")[0]["error"]["code"], "attachment_unknown");
    assert_eq!((world.received("m1"), world.received("m2")), (0, 1));
}

#[test]
fn wherever_it_crashes_a_send_with_attachments_reaches_the_agent_once() {
    for crash in CRASHES {
        for step in 0..20 {
            let mut world = World::new();
            world.connect();
            let order = with_file(&world.demo(), "m1", "see", 5);
            world.disk.fail_at(step);
            let crashed = world.deliver_with_files(&order).is_err();
            if crashed {
                world.crash(crash);
                world.connect();
                world.deliver_with_files(&order).unwrap();
            }
            assert_eq!(world.received("m1"), 1, "{crash:?} at {step}");
            assert!(world.results("m1").iter().all(|r| r == "delivered"), "{crash:?} at {step}");
            if !crashed {
                assert!(step >= 3, "only {step} steps could crash");
                break;
            }
        }
    }
}

/// Sends one message and crashes at the step `k` for every `k`, then checks what came of it.
fn crash_everywhere(crash: Crash, text: &str, check: impl Fn(&World, u64)) -> u64 {
    for step in 0..100 {
        let mut world = World::new();
        world.connect();
        world.disk.fail_at(step);
        let order = deliver(&world.demo(), "m1", text, 5);
        let crashed = world.offer(&order).and_then(|()| world.idle()).is_err();
        if crashed {
            world.crash(crash);
            world.connect();
            if world.results("m1").is_empty() {
                world.offer(&order).unwrap();
            }
            world.idle().unwrap();
        }
        check(&world, step);
        if !crashed {
            return step;
        }
    }
    panic!("the scenario never ended");
}

type Addressed = (SessionId, Order);

fn deliver(session: &SessionId, id: &str, text: &str, attempt: u64) -> Addressed {
    let send = Send {
        id: id.into(),
        text: Content::Open(text.to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(0),
        digest: None,
    };
    (session.clone(), Order::Deliver { send, attempt: Sequence(attempt) })
}

fn with_file(session: &SessionId, id: &str, text: &str, attempt: u64) -> Addressed {
    let (session, order) = deliver(session, id, text, attempt);
    let Order::Deliver { mut send, attempt } = order else { panic!("a delivery") };
    send.attachments.push(Attachment {
        id: "upl_1".into(),
        name: "cat.png".to_owned(),
        kind: "uploaded_file".to_owned(),
        media_type: None,
    });
    (session, Order::Deliver { send, attempt })
}

fn file() -> File {
    File { name: "cat.png".to_owned(), path: "/attic/upl_1".into(), size_bytes: 3, image: None }
}

fn control(session: &SessionId, request: &str, control: Control) -> Addressed {
    (session.clone(), Order::Control { request: RequestId::from(request), control })
}

fn named_in(snapshot: &Value) -> Vec<String> {
    let sessions = snapshot["sessions"].as_array().unwrap();
    sessions.iter().map(|s| s["session_id"].as_str().unwrap().to_owned()).collect()
}

/// A proxy on its machine, and a relay that hears each number once.
struct World {
    disk: MemoryDisk,
    records: MemoryRecords,
    ids: Arc<AtomicU64>,
    host: Option<Host<MemoryDisk, MemoryRecords>>,
    now: u64,
    received: u64,
    roots: Vec<String>,
    heard: BTreeMap<u64, Value>,
    /// Files that were asked for in this life.
    wanted: Vec<Fetch>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            disk: MemoryDisk::default(),
            records: MemoryRecords::default(),
            ids: Arc::default(),
            host: None,
            now: 1_000,
            received: 0,
            roots: vec![],
            heard: BTreeMap::new(),
            wanted: vec![],
        };
        world.open();
        world
    }

    fn open(&mut self) {
        let settings = Settings {
            machine: "attic".into(),
            version: "test".to_owned(),
            agents: vec!["demo".into()],
            missing: BTreeMap::new(),
            details: vec![],
            workspaces: vec![],
            allowed_roots: self.roots.clone(),
            has_demo: true,
            guards: crate::config::Guards::default(),
        };
        let ids = Arc::clone(&self.ids);
        let ids = Box::new(move || format!("id-{}", ids.fetch_add(1, Ordering::Relaxed)));
        let (disk, records) = (self.disk.clone(), self.records.clone());
        let drivers = Arc::new(crate::catalog::Catalog::default()).drivers();
        let host = Host::open(settings, disk, records, drivers, ids, Timestamp(self.now));
        self.host = Some(host.unwrap());
    }

    fn crash(&mut self, crash: Crash) {
        self.host = None;
        self.disk.crash(crash);
        self.wanted.clear();
        self.now += 1_000;
        self.open();
    }

    fn host(&self) -> &Host<MemoryDisk, MemoryRecords> {
        self.host.as_ref().unwrap()
    }

    fn demo(&self) -> SessionId {
        self.host().sessions().into_iter().next().unwrap()
    }

    fn handle<const N: usize>(&mut self, inputs: [Input; N]) -> Result<Turn, Fault> {
        let now = Timestamp(self.now);
        let turn = self.host.as_mut().unwrap().handle(inputs, now)?;
        self.wanted.extend(turn.fetches.iter().cloned());
        for frame in &turn.frames {
            let frame: Value = serde_json::from_slice(frame).unwrap();
            if let Some(number) = frame.get("link_number") {
                self.heard.entry(number.as_u64().unwrap()).or_insert(frame);
            }
        }
        Ok(turn)
    }

    /// Greets the proxy; gives everything it says about where it stands.
    fn connect(&mut self) -> Vec<Value> {
        let hello = self.handle([Input::Connected]).unwrap();
        assert!(hello.frames[0].starts_with(br#"{"type":"connection_hello""#));
        let ack = proxy_frames::Ack {
            connection: "c1".into(),
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            features: vec!["link".to_owned()],
            received: (self.received > 0).then_some(self.received),
        };
        let ack = proxy_frames::ack(&ack, Timestamp(self.now));
        let turn = self.handle([text(&ack)]).unwrap();
        turn.frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
    }

    fn say(&mut self, said: &str) -> Result<(), Fault> {
        self.handle([Input::Text(said.to_owned())]).map(drop)
    }

    fn offer(&mut self, (session, order): &Addressed) -> Result<(), Fault> {
        let frame = proxy_frames::encode_order(session, order, false, Timestamp(self.now));
        self.handle([text(&frame)]).map(drop)
    }

    fn offered(&mut self, (session, order): &Addressed) -> Turn {
        let frame = proxy_frames::encode_order(session, order, false, Timestamp(self.now));
        self.handle([text(&frame)]).unwrap()
    }

    /// Offers, and gets every file that was asked for.
    fn deliver_with_files(&mut self, addressed: &Addressed) -> Result<(), Fault> {
        self.offer(addressed)?;
        for fetch in std::mem::take(&mut self.wanted) {
            self.handle([Input::Fetched(fetch.attempt, Ok(vec![file()]))])?;
        }
        self.idle()
    }

    fn ack_everything(&mut self) {
        let last = self.heard.keys().last().copied().unwrap_or(0);
        self.handle([text(&proxy_frames::link_ack(last, Timestamp(self.now)))]).unwrap();
    }

    /// Time passes.
    fn pass(&mut self, ms: u64) -> Turn {
        self.now += ms;
        self.handle([]).unwrap()
    }

    /// Time passes until the agents have nothing to do but wait for people.
    fn idle(&mut self) -> Result<(), Fault> {
        for _ in 0..TURNS_MAX {
            let drivers = self.host().drivers.values().filter_map(|driver| driver.deadline());
            let Some(due) = drivers.min() else { return Ok(()) };
            self.now = self.now.max(due.0);
            self.handle([])?;
        }
        panic!("the agents never rest");
    }

    fn received(&self, id: &str) -> usize {
        let mut count = 0;
        for session in self.host().sessions() {
            let lines = self.records.lines(&session);
            count += lines.iter().filter(|l| l.contains(&format!("\"id\":\"{id}\""))).count();
        }
        count
    }

    fn of(&self, kind: &str) -> Vec<&Value> {
        self.heard.values().filter(|frame| frame["type"] == kind).collect()
    }

    fn results(&self, id: &str) -> Vec<String> {
        let results = self.of("proxy_send_result").into_iter();
        let mine = results.filter(|frame| frame["client_message_id"] == id);
        mine.map(|frame| frame["result"].as_str().unwrap().to_owned()).collect()
    }
}

fn text(frame: &[u8]) -> Input {
    Input::Text(String::from_utf8(frame.to_vec()).unwrap())
}

#[test]
fn an_attempt_whose_fate_nobody_knows_is_told_so() {
    let mut book = Book::default();
    let attempt = journal::Attempt { session: "s-1".into(), number: Sequence(4), id: "m1".into() };
    let (session, order) = deliver(&"s-1".into(), "m1", "hi", 4);
    let Order::Deliver { send, .. } = order else { panic!("a delivery") };
    let opened = Opened {
        agent: "other".into(),
        display_name: None,
        workspace_path: None,
        window_title: None,
        model: None,
        mode: None,
        earlier: None,
        worktree: None,
        arguments: vec![],
        launch: Some("l".into()),
        signature: None,
    };
    for record in [
        journal::Record::Opened(session.clone(), opened),
        journal::Record::Received { session: session.clone(), attempt: Sequence(4), send },
        journal::Record::Attempting(attempt),
    ] {
        book.apply(record);
    }
    let settings = Settings {
        machine: "attic".into(),
        version: String::new(),
        agents: vec![],
        missing: BTreeMap::new(),
        details: vec![],
        workspaces: vec![],
        allowed_roots: vec![],
        has_demo: false,
        guards: crate::config::Guards::default(),
    };
    let mut engine = Engine::new(settings, book, Box::new(|| "link".to_owned()));
    let effects = engine.start(Timestamp(0));
    let look_up = AgentOrder::LookUp { id: "m1".into(), attempt: Sequence(4) };
    assert!(effects.contains(&Effect::Order(session.clone(), look_up)), "{effects:?}");

    let found = agents::Lookup::Unknown;
    let looked_up = Output::LookedUp { id: "m1".into(), attempt: Sequence(4), found };
    let effects = engine.on_outputs(&session, vec![looked_up], Timestamp(0));
    let [Effect::Persist(journal::Record::Frame { frame, .. })] = &effects[..] else {
        panic!("{effects:?}")
    };
    let text = std::str::from_utf8(frame).unwrap();
    let envelope = wire::native::shapes::Envelope::read(text).unwrap();
    let read = proxy_frames::read_report(&envelope, text, || "".into(), Timestamp(0)).unwrap();
    let Some((_, Report::SendFailed { failure, .. })) = read else { panic!("{read:?}") };
    assert_eq!(failure.code, "delivery_unknown".into());
}
