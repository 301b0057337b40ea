//! An interrupt applies only to the run it was meant for.

use super::super::controls::CONTROL_TIMEOUT_MS;
use super::*;

// spec: native/agent_interrupt.1
#[test]
fn an_interrupt_names_the_run_that_is_going_on() {
    let mut story = Story::linked();
    story.run_starts("r1");
    let wrong = Control::Interrupt { run: Some("r0".into()) };
    story.control(&ada(), "stop", wrong).unwrap();
    let control = Control::Interrupt { run: Some("r1".into()) };
    let request = "stop".into();
    assert_eq!(story.session.owed(), [Order::Control { request, control }]);
}

// spec: native/agent_interrupt.5
#[test]
fn an_interrupt_is_void_when_its_run_ends() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.interrupt("stop").unwrap();
    let ended = story.run_ends("r1", Outcome::Completed);
    assert_eq!(ended, ["r1 completed", "settled stop: agent_not_active"]);
    story.run_starts("r2");
    assert_eq!(story.owed(), nothing());
}

#[test]
fn an_interrupt_is_void_when_another_run_begins() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.interrupt("stop").unwrap();
    let next = story.run_starts("r2");
    assert_eq!(next, ["r1 interrupted", "settled stop: ok", "r2 started"]);
    assert_eq!(story.owed(), nothing());
}

#[test]
fn an_interrupt_is_void_when_a_send_began_another_run() {
    let mut story = Story::plain();
    story.run_starts("r1");
    story.send("m1").unwrap();
    story.interrupt("stop").unwrap();
    let (id, run) = ("m1".into(), Some("r2".into()));
    let told = story.report(Report::SendDelivered { id, attempt: None, run }).unwrap();
    let expected =
        ["r1 interrupted", "settled stop: ok", "delivered m1", "message m1", "r2 started"];
    assert_eq!(told, expected);
}

// spec: native/agent_interrupt.4
#[test]
fn an_interrupt_is_answered_once_whichever_word_comes_first() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.interrupt("stop").unwrap();
    assert_eq!(story.result("stop", None), ["settled stop: ok"]);
    assert_eq!(story.run_ends("r1", Outcome::Interrupted), ["r1 interrupted"]);

    story.run_starts("r2");
    story.interrupt("stop again").unwrap();
    let ended = story.run_ends("r2", Outcome::Interrupted);
    assert_eq!(ended, ["r2 interrupted", "settled stop again: ok"]);
    assert_eq!(story.result("stop again", None), nothing());
}

// spec: native/agent_interrupt.3
#[test]
fn an_agent_that_is_not_working_is_the_proxys_to_tell() {
    let mut story = Story::linked();
    story.interrupt("stop").unwrap();
    let told = story.result("stop", Some("agent_not_active"));
    assert_eq!(told, ["settled stop: agent_not_active"]);
}

#[test]
fn an_interrupt_bound_to_a_run_waits_for_it_and_one_without_gives_up() {
    let mut story = Story::linked();
    story.interrupt("unbound").unwrap();
    assert_eq!(story.deadline(), Some(START.plus_ms(CONTROL_TIMEOUT_MS)));
    story.run_starts("r1");
    story.interrupt("bound").unwrap();
    let given_up = story.wait_ms(CONTROL_TIMEOUT_MS);
    assert_eq!(given_up, ["settled unbound: control_timeout"]);
    assert_eq!(story.deadline(), None);
    assert_eq!(story.owed(), ["bound: Interrupt"]);
}

#[test]
fn an_interrupt_is_settled_when_a_returning_proxy_no_longer_has_the_run() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.interrupt("stop").unwrap();
    story.down();
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.owed(), ["stop: Interrupt"]);
    assert_eq!(story.resumed(&[], None), ["r1 interrupted", "settled stop: ok"]);
}
