//! Launches in progress, and results held for the clients that asked.

use super::*;
use crate::fleet::launches::LAUNCHES_MAX;

const TIMEOUT_MS: u64 = 30_000;
const HELD_MS: u64 = 300_000;

// spec: native/launch_session.6
#[test]
fn a_launch_is_recorded_with_its_wish_and_owed_to_its_machine() {
    let mut story = Story::with_attic();
    let wish = LaunchWish {
        workspace_path: Some("/kite".to_owned()),
        window_title: Some("Kite".to_owned()),
        has_worktree: true,
        earlier: Some(Earlier { id: "thread".to_owned(), fork: true }),
        ..wish("l1")
    };
    assert_eq!(story.launch(&ada(), wish).unwrap(), ["launch l1 on attic"]);
    let owed = story.fleet.owed(&via("socket-1", Some("j")));
    assert!(owed[0].has_worktree);
    assert_eq!(owed[0].earlier, Some(Earlier { id: "thread".to_owned(), fork: true }));
    assert_eq!(owed[0].workspace_path.as_deref(), Some("/kite"));
    assert_eq!(owed[0].window_title.as_deref(), Some("Kite"));
}

// spec: native/launch_session.8
#[test]
fn only_an_owner_gives_an_agent_arguments() {
    let mut story = Story::with_attic();
    let arguments = vec!["--verbose".to_owned()];
    let wish = LaunchWish { arguments: arguments.clone(), ..wish("l1") };
    assert_eq!(story.launch(&ada(), wish.clone()), Err(Refusal::OwnerOnly));
    assert_eq!(story.launch(&bob(), wish).unwrap(), ["launch l1 on attic"]);
    assert_eq!(story.fleet.owed(&via("socket-1", Some("j")))[0].arguments, arguments);
}

// spec: native/session_launch_ack.1
#[test]
fn an_ack_settles_the_launch_and_gives_the_session_to_its_machine() {
    let mut story = launching();
    let told = story.launched("socket-1", "l1", "s-1").unwrap();
    assert_eq!(told, ["l1: s-1", "s-1 is on attic"]);
    assert_eq!(story.owed("socket-1", Some("j")), [""; 0]);
    assert_eq!(story.launched("socket-1", "l1", "s-1"), Ok(vec![]), "a repeat");
    assert_eq!(story.failed("socket-1", "l1", "agent_not_open"), Ok(vec![]), "too late");
}

#[test]
fn a_session_that_was_named_before_its_ack_is_not_registered_anew() {
    let mut story = launching();
    story.name("socket-1", vec![named(Some("s-1"), Some("sig"))]);
    assert_eq!(story.launched("socket-1", "l1", "s-1").unwrap(), ["l1: s-1"]);
}

// spec: native/session_launch_failed.1
#[test]
fn a_failure_settles_the_launch_with_the_proxys_code() {
    let mut story = launching();
    let told = story.failed("socket-1", "l1", "agent_not_open").unwrap();
    assert_eq!(told, ["l1: agent_not_open"]);
    assert_eq!(story.held(&ada()), ["l1: agent_not_open"]);
}

// spec: native/launch_session.3, native/session_launch_failed.2
#[test]
fn a_launch_without_an_answer_fails_at_its_time_also_over_a_restart() {
    let mut story = launching();
    let stored = serde_json::to_string(&story.fleet).unwrap();
    story.fleet = serde_json::from_str(&stored).unwrap();
    let deadline = story.fleet.deadline(Policy::default());
    assert_eq!(deadline, Some(START.plus_ms(TIMEOUT_MS)));
    assert_eq!(story.wait_ms(TIMEOUT_MS - 1), [""; 0]);
    assert_eq!(story.wait_ms(1), ["l1: launch_timeout"]);
    assert_eq!(story.owed("socket-1", Some("j")), [""; 0]);
}

// spec: native/session_launch_ack.6
#[test]
fn an_ack_after_the_time_was_up_is_still_believed() {
    let mut story = launching();
    story.wait_ms(TIMEOUT_MS);
    let late = story.launched("socket-1", "l1", "s-1").unwrap();
    assert_eq!(late, ["l1: s-1", "s-1 is on attic"]);
    assert_eq!(story.held(&ada()), ["l1: s-1"]);
}

#[test]
fn an_ack_that_comes_just_before_the_clock_is_looked_at_wins() {
    let mut story = launching();
    story.now = story.now.plus_ms(TIMEOUT_MS + 5);
    let late = story.launched("socket-1", "l1", "s-1").unwrap();
    assert_eq!(late, ["l1: s-1", "s-1 is on attic"]);
    assert_eq!(story.held(&ada()), ["l1: s-1"]);
}

#[test]
fn a_failure_after_the_time_was_up_tells_nothing_new() {
    let mut story = launching();
    story.wait_ms(TIMEOUT_MS);
    assert_eq!(story.failed("socket-1", "l1", "agent_not_open"), Ok(vec![]));
    assert_eq!(story.held(&ada()), ["l1: launch_timeout"]);
}

// spec: native/session_launch_ack.4
#[test]
fn a_result_is_held_for_who_asked_and_then_forgotten() {
    let mut story = launching();
    story.launched("socket-1", "l1", "s-1").unwrap();
    assert_eq!(story.wait_ms(TIMEOUT_MS + HELD_MS - 1), [""; 0]);
    assert_eq!(story.held(&ada()), ["l1: s-1"]);
    assert_eq!(story.held(&bob()), [""; 0]);
    assert_eq!(story.wait_ms(1), ["l1 is forgotten"]);
    assert_eq!(story.held(&ada()), [""; 0]);
    assert_eq!(story.fleet.deadline(Policy::default()), None);
}

#[test]
fn a_relay_that_slept_through_it_all_still_tells_the_failure_before_it_forgets() {
    let mut story = launching();
    let told = story.wait_ms(TIMEOUT_MS + HELD_MS);
    assert_eq!(told, ["l1: launch_timeout", "l1 is forgotten"]);
}

// spec: native/connection_hello.6
#[test]
fn what_is_held_for_a_client_is_not_for_its_credential() {
    let mut story = Story::with_attic();
    let phone = Principal { client: Some("phone".into()), ..ada() };
    story.launch(&phone, wish("l1")).unwrap();
    assert_eq!(story.held(&phone), ["l1: pending"]);
    assert_eq!(story.held(&ada()), [""; 0]);
}

// spec: native/session_launching.2, native/connection_ack.4
#[test]
fn a_pending_launch_is_found_with_its_times() {
    let story = launching();
    let launch = story.fleet.launches().of(&ada().key()).next().unwrap().clone();
    assert_eq!(launch.outcome, None);
    assert_eq!(launch.launched_at, START);
    assert_eq!(launch.timeout_at, START.plus_ms(TIMEOUT_MS));
}

// spec: native/envelope.3
#[test]
fn the_same_client_asking_again_is_told_how_its_launch_stands() {
    let mut story = launching();
    let again = story.launch(&ada(), wish("l1"));
    assert!(matches!(again, Err(Refusal::LaunchRepeated(launch)) if launch.outcome.is_none()));
    story.launched("socket-1", "l1", "s-1").unwrap();
    story.disconnect("socket-1");
    let again = story.launch(&ada(), wish("l1"));
    assert!(matches!(again, Err(Refusal::LaunchRepeated(launch)) if launch.outcome.is_some()));
}

// spec: native/envelope.4
#[test]
fn an_id_that_another_client_has_in_flight_is_refused() {
    let mut story = launching();
    assert_eq!(story.launch(&bob(), wish("l1")), Err(Refusal::RequestInUse("l1".into())));
}

#[test]
fn an_id_whose_launch_is_settled_is_free_for_another_client() {
    let mut story = launching();
    story.launched("socket-1", "l1", "s-1").unwrap();
    story.now = story.now.plus_ms(10);
    assert_eq!(story.launch(&bob(), wish("l1")).unwrap(), ["launch l1 on attic"]);
    assert_eq!(story.held(&ada()), ["l1: s-1"], "and its result is still held");
    let again = story.launch(&ada(), wish("l1"));
    assert!(matches!(again, Err(Refusal::LaunchRepeated(_))), "and repeated");
    let told = story.launched("socket-1", "l1", "s-2").unwrap();
    assert_eq!(told, ["l1: s-2", "s-2 is on attic"]);
    assert_eq!(story.held(&bob()), ["l1: s-2"]);
    assert_eq!(story.held(&ada()), ["l1: s-1"]);
    story.wait_ms(TIMEOUT_MS + HELD_MS - 10);
    assert_eq!((story.held(&ada()), story.held(&bob())), (vec![], vec!["l1: s-2".to_owned()]));
    story.wait_ms(10);
    assert_eq!(story.held(&bob()), [""; 0]);
}

#[test]
fn an_id_whose_time_was_up_is_not_free_because_its_ack_may_still_come() {
    let mut story = launching();
    story.wait_ms(TIMEOUT_MS);
    assert_eq!(story.launch(&bob(), wish("l1")), Err(Refusal::RequestInUse("l1".into())));
    story.launched("socket-1", "l1", "s-1").unwrap();
    assert_eq!(story.held(&ada()), ["l1: s-1"]);
    assert_eq!(story.launch(&bob(), wish("l1")).unwrap(), ["launch l1 on attic"]);
}

// spec: native/launch_session.1
#[test]
fn a_viewer_launches_nothing() {
    let mut story = Story::with_attic();
    let eve = person("eve", Role::Viewer);
    assert_eq!(story.launch(&eve, wish("l1")), Err(Refusal::Unauthorized));
}

#[test]
fn a_result_from_another_machine_or_an_old_connection_is_not_believed() {
    let mut story = launching();
    story.connect("cellar", "socket-2", None, Offer::default());
    assert_eq!(story.launched("socket-2", "l1", "s-9"), Ok(vec![]));
    assert_eq!(story.failed("socket-2", "l1", "agent_not_open"), Ok(vec![]));
    story.disconnect("socket-1");
    assert_eq!(story.launched("socket-1", "l1", "s-1"), Err(Refusal::NotThisProxy));
    assert_eq!(story.held(&ada()), ["l1: pending"]);
}

#[test]
fn a_returning_proxy_is_owed_its_launches_when_its_journal_is_the_same() {
    let mut story = launching();
    story.connect("attic", "socket-2", Some("j"), Offer::default());
    assert_eq!(story.owed("socket-2", Some("j")), ["l1"]);
    assert_eq!(story.owed("socket-3", Some("other")), [""; 0]);
    assert_eq!(story.owed("socket-3", None), [""; 0]);
    let told = story.launched("socket-2", "l1", "s-1").unwrap();
    assert_eq!(told, ["l1: s-1", "s-1 is on attic"]);
}

#[test]
fn a_plain_proxy_that_returns_is_not_told_a_launch_twice() {
    let mut story = Story::new();
    story.connect("attic", "socket-1", None, Offer::default());
    story.launch(&ada(), wish("l1")).unwrap();
    assert_eq!(story.owed("socket-1", None), ["l1"]);
    story.connect("attic", "socket-2", None, Offer::default());
    assert_eq!(story.owed("socket-2", None), [""; 0]);
}

#[test]
fn more_launches_than_the_bound_are_refused() {
    let mut story = Story::with_attic();
    for n in 0..LAUNCHES_MAX {
        story.launch(&ada(), wish(&format!("l{n}"))).unwrap();
    }
    let refused = story.launch(&ada(), wish("late"));
    assert_eq!(refused, Err(Refusal::TooManyRequests { limit: LAUNCHES_MAX }));
}

/// Ada launched `l1` on the attic.
fn launching() -> Story {
    let mut story = Story::with_attic();
    story.launch(&ada(), wish("l1")).unwrap();
    story
}
