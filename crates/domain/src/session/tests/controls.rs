//! Each request takes effect at most once and has one answer.

use super::super::controls::{
    ANSWERS_REMEMBERED_MAX, CONTROL_TIMEOUT_MS, Kind, Outcome as Answer, REQUESTS_PENDING_MAX,
};
use super::super::status::CloseReason;
use super::*;

// spec: native/agent_config_request.1, native/agent_config_request.3
#[test]
fn a_request_is_owed_until_it_is_answered() {
    let mut story = Story::linked();
    assert_eq!(story.control(&ada(), "a1", Control::ReadConfig).unwrap(), ["requested a1"]);
    assert_eq!(story.owed(), ["a1: ReadConfig"]);
    assert_eq!(story.result("a1", Some("config_read_failed")), ["settled a1: config_read_failed"]);
    assert_eq!(story.owed(), nothing());
    assert_eq!(story.result("a1", None), nothing(), "a second answer changes nothing");
}

// spec: native/envelope.3
#[test]
fn the_same_client_asking_again_gets_the_same_answer_and_no_second_effect() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::ReadConfig).unwrap();
    let again = story.control(&ada(), "a1", Control::ReadConfig);
    assert_eq!(again, Err(Refusal::RequestRepeated(None)));
    story.result("a1", Some("config_read_failed"));
    let answer = Answer {
        request: "a1".into(),
        kind: Kind::ReadConfig,
        failure: Some(Failure::new("config_read_failed", "words")),
        at: START,
    };
    story.now = story.now.plus_ms(9);
    let again = story.control(&ada(), "a1", Control::ReadConfig);
    assert_eq!(again, Err(Refusal::RequestRepeated(Some(answer))));
}

#[test]
fn a_repeat_is_answered_also_while_the_machine_is_away() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::ReadConfig).unwrap();
    story.down();
    let again = story.control(&ada(), "a1", Control::ReadConfig);
    assert_eq!(again, Err(Refusal::RequestRepeated(None)));
}

// spec: native/envelope.4
#[test]
fn an_id_that_another_client_has_in_flight_is_refused() {
    let mut story = Story::linked();
    story.control(&ada(), "r1", Control::ReadConfig).unwrap();
    let taken = story.control(&bob(), "r1", Control::Close);
    assert_eq!(taken, Err(Refusal::RequestInUse("r1".into())));
    let elsewhere = Principal { client: Some("ada's laptop".into()), ..ada() };
    let taken = story.control(&elsewhere, "r1", Control::Close);
    assert_eq!(taken, Err(Refusal::RequestInUse("r1".into())));
    story.result("r1", None);
    assert_eq!(story.control(&bob(), "r1", Control::ReadConfig).unwrap(), ["requested r1"]);
}

// spec: native/relay_routing_rules.2, native/close_session.3
#[test]
fn while_the_machine_is_away_a_control_command_is_refused() {
    let mut story = Story::linked();
    story.down();
    for control in [
        Control::Interrupt { run: None },
        Control::SetModel("small".into()),
        Control::ReadConfig,
        Control::Close,
    ] {
        let refused = story.control(&ada(), "r1", control.clone());
        assert_eq!(refused, Err(Refusal::NoProxyConnected), "{control:?}");
    }
    assert_eq!(story.owed(), nothing());
}

// spec: native/relay_routing_rules.1, native/close_session.1, native/credentials.4
#[test]
fn a_viewer_controls_nothing() {
    let mut story = Story::linked();
    let eve = person("eve", Role::Viewer);
    for control in [Control::Interrupt { run: None }, Control::Close] {
        assert_eq!(story.control(&eve, "r1", control), Err(Refusal::Unauthorized));
    }
    assert_eq!(story.wish(&eve, Wish::Rename("mine".to_owned())), Err(Refusal::Unauthorized));
    assert_eq!(story.head(), Sequence(1));
}

#[test]
fn a_newer_setting_replaces_the_older_one_of_its_kind() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::SetModel("small".into())).unwrap();
    story.control(&ada(), "a2", Control::SetMode("plan".to_owned())).unwrap();
    let newer = story.control(&bob(), "b1", Control::SetModel("large".into())).unwrap();
    assert_eq!(newer, ["settled a1: send_rejected", "requested b1"]);
    assert_eq!(story.owed(), ["a2: SetMode", "b1: SetModel"]);
}

#[test]
fn two_questions_about_the_configuration_stand_side_by_side() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::ReadConfig).unwrap();
    assert_eq!(story.control(&bob(), "b1", Control::ReadConfig).unwrap(), ["requested b1"]);
    assert_eq!(story.owed(), ["a1: ReadConfig", "b1: ReadConfig"]);
}

#[test]
fn a_setting_that_nobody_answers_fails_in_time() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::SetModel("small".into())).unwrap();
    story.down();
    assert_eq!(story.deadline(), Some(START.plus_ms(CONTROL_TIMEOUT_MS)));
    assert_eq!(story.wait_ms(CONTROL_TIMEOUT_MS - 1), nothing());
    assert_eq!(story.wait_ms(1), ["settled a1: control_timeout"]);
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.owed(), nothing());
}

#[test]
fn a_close_waits_for_its_machine_and_is_answered_by_the_end_of_the_session() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::Close).unwrap();
    assert_eq!(story.deadline(), None);
    let (reason, request) = (CloseReason::UserRequested, Some("a1".into()));
    let closed = story.report(Report::Closed { reason, request }).unwrap();
    assert_eq!(closed, ["settled a1: ok", "closed: UserRequested"]);
}

#[test]
fn closing_answers_everything_that_is_pending_once() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.asked(prompt("p1", None)).unwrap();
    story.asked(prompt("p2", None)).unwrap();
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    story.interrupt("a2").unwrap();
    story.control(&ada(), "a3", Control::SetModel("small".into())).unwrap();
    story.control(&ada(), "a4", Control::ReadConfig).unwrap();
    let reason = CloseReason::TargetClosed;
    let closed = story.report(Report::Closed { reason, request: None }).unwrap();
    let expected = [
        "p1: confirmed",
        "p2: withdrawn",
        "r1 interrupted",
        "settled a2: ok",
        "settled a3: session_not_connected",
        "settled a4: session_not_connected",
        "settled a1: session_not_connected",
        "closed: TargetClosed",
    ];
    assert_eq!(closed, expected);
    assert_eq!(story.owed(), nothing());
    assert_eq!(story.deadline(), None);
    let refused = story.control(&ada(), "a5", Control::ReadConfig);
    assert_eq!(refused, Err(Refusal::SessionClosed));
}

// spec: native/limits.8
#[test]
fn more_than_the_bound_cannot_be_in_flight() {
    let mut story = Story::linked();
    for n in 0..REQUESTS_PENDING_MAX {
        story.control(&ada(), &format!("a{n}"), Control::ReadConfig).unwrap();
    }
    let limit = REQUESTS_PENDING_MAX;
    let refused = story.control(&ada(), "late", Control::ReadConfig);
    assert_eq!(refused, Err(Refusal::TooManyRequests { limit }));
    story.result("a0", None);
    assert!(story.control(&ada(), "late", Control::ReadConfig).is_ok());
}

#[test]
fn answers_older_than_the_bound_are_forgotten() {
    let mut story = Story::linked();
    for n in 0..=ANSWERS_REMEMBERED_MAX {
        let request = format!("a{n}");
        story.control(&ada(), &request, Control::ReadConfig).unwrap();
        story.result(&request, None);
    }
    let kept = story.control(&ada(), "a1", Control::ReadConfig);
    assert!(matches!(kept, Err(Refusal::RequestRepeated(Some(_)))));
    assert_eq!(story.control(&ada(), "a0", Control::ReadConfig).unwrap(), ["requested a0"]);
}
