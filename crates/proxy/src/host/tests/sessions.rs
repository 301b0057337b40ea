//! Sessions from launch to end, and the requests to them.

use super::*;

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
fn a_run_cut_by_a_crash_is_not_gone_on_with() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "slow: 50", 5)).unwrap();
    world.crash(Crash::KeepsAll);
    let resumed = world.connect().pop().unwrap();
    assert_eq!(resumed["type"], "proxy_resumed");
    assert!(resumed.get("active_run").is_none());
    world.idle().unwrap();
    let ended = world.of("run_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["outcome"], "interrupted");
    assert!(ended[0]["reason"].as_str().unwrap().contains("stopped on this machine"));
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

pub(super) const LAUNCH: &str = r#"{"type":"launch_session","protocol_version":1,"request_id":"l1","agent_type":"demo","workspace_path":"/tmp/kite"}"#;

fn named_in(snapshot: &Value) -> Vec<String> {
    let sessions = snapshot["sessions"].as_array().unwrap();
    sessions.iter().map(|s| s["session_id"].as_str().unwrap().to_owned()).collect()
}
