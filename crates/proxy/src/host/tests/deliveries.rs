//! Sends and their attempts, with a crash at every step.

use agents::{Driver, Lookup, run_id};
use domain::passing::{Delta, Voice};
use domain::session::runs::Outcome;

use super::*;

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
fn wherever_it_crashes_a_delivered_send_has_a_run_and_that_run_ends() {
    for crash in CRASHES {
        let crashed = crash_everywhere(crash, "say: a b", |world, step| {
            assert_has_one_run_that_ends(world, "m1", &format!("{crash:?} at {step}"));
        });
        assert!(crashed >= 6, "only {crashed} steps could crash");
    }
}

// The agent has the message, and the proxy dies before it can write that down.
#[test]
fn a_send_that_the_agent_had_at_a_crash_has_a_run_that_is_told_as_interrupted() {
    let mut world = World::new();
    world.connect();
    world.records.fail_next(Failing::After);
    assert!(world.offer(&deliver(&world.demo(), "m1", "say: a b", 5)).is_err());
    world.crash(Crash::KeepsAll);
    world.connect();
    assert_eq!(world.results("m1"), ["delivered"]);
    assert_has_one_run_that_ends(&world, "m1", "after the crash");
    let ended = world.of("run_ended");
    assert_eq!(ended[0]["outcome"], "interrupted");
}

#[test]
fn a_run_that_a_crash_cut_off_is_told_as_interrupted_once() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "slow: 50", 5)).unwrap();
    world.pass(1_000);
    for _ in 0..2 {
        world.crash(Crash::KeepsAll);
        world.connect();
        world.idle().unwrap();
    }
    let ended = world.of("run_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["outcome"], "interrupted");
    assert_has_one_run_that_ends(&world, "m1", "after two crashes");
}

#[test]
fn what_was_shown_before_a_crash_is_told_as_a_message_and_the_run_lasted_until_then() {
    let mut world = World::new();
    world.connect();
    let mut frames = world.offered(&deliver(&world.demo(), "m1", "slow: 50", 5)).frames;
    for _ in 0..30 {
        frames.extend(world.pass(100).frames);
    }
    let mut shown = String::new();
    for frame in frames {
        let frame: Value = serde_json::from_slice(&frame).unwrap();
        if frame["type"] == "message_delta" {
            shown.push_str(frame["content"].as_str().unwrap());
        }
    }
    assert!(shown.split_whitespace().count() > 20, "{shown}");
    world.crash(Crash::KeepsAll);
    world.pass(3_600_000);
    world.connect();
    let messages = world.of("proxy_message");
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["message"]["content"], shown);
    let ended = world.of("run_ended")[0];
    let lasted_ms = ended["lasted_ms"].as_u64().unwrap();
    assert!((2_000..=3_000).contains(&lasted_ms), "{ended}");
    // Told once: nothing is left of it.
    world.ack_everything();
    world.crash(Crash::KeepsAll);
    world.connect();
    assert_eq!(world.of("proxy_message").len(), 1);
}

/// Begins a run with a send and confirms it later, as some agents do.
#[derive(Debug)]
struct Early(Lookup);

impl Driver for Early {
    fn start(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_order(&mut self, order: &AgentOrder, _: Timestamp) -> Vec<Output> {
        match order {
            AgentOrder::Deliver { send, attempt, .. } => {
                let (run, cause) = (run_id(&send.id, *attempt), Some(send.id.clone()));
                vec![Output::Report(Report::RunStarted { run, cause })]
            }
            AgentOrder::LookUp { id, attempt } => {
                vec![Output::LookedUp { id: id.clone(), attempt: *attempt, found: self.0 }]
            }
            AgentOrder::Answer { .. } | AgentOrder::Control { .. } | AgentOrder::Rest => vec![],
        }
    }

    fn on_input(&mut self, _: AgentInput, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_deadline(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

#[test]
fn a_run_that_began_before_its_send_was_confirmed_ends_unless_the_send_is_given_again() {
    let found = || World::driven_by(|| Box::new(|_, _, _| Box::new(Early(Lookup::Found))));
    let unknown = || World::driven_by(|| Box::new(|_, _, _| Box::new(Early(Lookup::Unknown))));
    let absent = || World::driven_by(|| Box::new(|_, _, _| Box::new(Early(Lookup::Absent))));
    for (mut world, results, ends) in
        [(found(), vec!["delivered"], 1), (unknown(), vec!["failed"], 1), (absent(), vec![], 0)]
    {
        world.connect();
        world.offer(&deliver(&world.demo(), "m1", "hello", 5)).unwrap();
        world.crash(Crash::KeepsAll);
        let resumed = world.connect().pop().unwrap();
        assert_eq!(world.results("m1"), results);
        assert_eq!(world.of("run_ended").len(), ends, "{results:?}");
        let goes_on = resumed.get("active_run").and_then(Value::as_str);
        let run = run_id(&"m1".into(), Sequence(5));
        assert_eq!(goes_on, (ends == 0).then_some(run.as_str()), "{results:?}");
    }
}

/// Delegates to a subagent, which goes on in the background when the run ends.
#[derive(Debug)]
struct Delegating;

impl Driver for Delegating {
    fn start(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_order(&mut self, order: &AgentOrder, _: Timestamp) -> Vec<Output> {
        let AgentOrder::Deliver { send, attempt, .. } = order else { return vec![] };
        let said = |message: &str, part, offset, words: &str, parent: Option<&str>| {
            let (message, words) = (message.into(), Content::Open(words.to_owned()));
            let delta = Delta { message, part, voice: Voice::Text, offset, words };
            Output::Passing(delta, parent.map(Into::into))
        };
        let (run, id) = (run_id(&send.id, *attempt), send.id.clone());
        let delivered =
            Report::SendDelivered { id, attempt: Some(*attempt), run: Some(run.clone()) };
        vec![
            Output::Report(delivered),
            Output::Report(Report::RunStarted { run: run.clone(), cause: None }),
            said("mine", 0, 0, "never finished", None),
            said("its", 0, 0, "looked ", Some("t1")),
            said("its", 0, 7, "into ", Some("t1")),
            Output::Report(Report::RunEnded { run, outcome: Outcome::Completed, usage: None }),
            said("its", 0, 12, "it", Some("t1")),
            said("its", 1, 0, "and done", Some("t1")),
        ]
    }

    fn on_input(&mut self, _: AgentInput, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_deadline(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

#[test]
fn what_a_subagent_said_in_the_background_before_a_crash_is_told_below_its_call() {
    let mut world = World::driven_by(|| Box::new(|_, _, _| Box::new(Delegating)));
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "go", 5)).unwrap();
    let resumed = world.connect();
    let shown = resumed.iter().filter(|frame| frame["type"] == "message_delta");
    let shown: Vec<_> = shown.map(|frame| frame["content"].as_str().unwrap()).collect();
    assert_eq!(shown, ["looked into it", "and done"], "a relay that comes back is shown it");
    // The journal is written anew at the first start, and read again at the second.
    for _ in 0..2 {
        world.crash(Crash::KeepsAll);
    }
    world.connect();
    let [told] = world.of("proxy_message")[..] else { panic!("{:?}", world.heard) };
    assert_eq!(told["message"]["message_id"], "its");
    assert_eq!(told["message"]["parent_tool_call_id"], "t1");
    assert_eq!(told["message"]["content"], "looked into it\n\nand done");
}

#[test]
fn a_message_that_was_whole_before_a_crash_is_not_told_again() {
    let mut world = World::new();
    world.connect();
    world.offer(&deliver(&world.demo(), "m1", "say: a b", 5)).unwrap();
    world.idle().unwrap();
    assert_eq!(world.of("proxy_message").len(), 1);
    world.ack_everything();
    world.crash(Crash::KeepsAll);
    world.connect();
    assert_eq!(world.of("proxy_message").len(), 1);
    assert!(world.host().book().drafts.is_empty());
}

/// The relay was told of a run that this delivered send is in, and of its end, in this order.
fn assert_has_one_run_that_ends(world: &World, id: &str, when: &str) {
    let mut run = None;
    let mut ended = vec![];
    for frame in world.heard.values() {
        match frame["type"].as_str().unwrap() {
            "proxy_send_result" if frame["client_message_id"] == id => {
                run = frame["run_id"].as_str().map(str::to_owned);
                assert!(run.is_some(), "{when}: delivered without a run: {frame}");
            }
            "run_ended" if run.is_some() => {
                ended.push(frame["run_id"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    assert_eq!(ended, Vec::from_iter(run), "{when}");
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

    let found = Lookup::Unknown;
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
