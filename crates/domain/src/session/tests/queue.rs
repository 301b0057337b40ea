//! Which messages are queued, in which order, and when they may go.

use super::super::queue::{HANDED_MAX, WAITING_MAX};
use super::*;
use crate::MessageId;

#[test]
fn a_proxy_with_a_journal_gets_one_send_at_a_time() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    assert_eq!(story.send("m2").unwrap(), ["accepted m2"]);
    assert_eq!(story.send("m3").unwrap(), ["accepted m3"]);
    assert_eq!(story.owed(), ["deliver m1"]);
    assert_eq!(story.delivered("m1"), ["delivered m1", "message m1", "handed over m2"]);
    let failed = story.failed("m2", "send_rejected");
    assert_eq!(failed, ["failed m2: send_rejected", "handed over m3"]);
}

// spec: native/send_message.7
#[test]
fn a_send_during_a_run_waits_for_its_end() {
    let mut story = Story::linked();
    story.run_starts("r1");
    assert_eq!(story.send("m1").unwrap(), ["accepted m1"]);
    assert_eq!(story.owed(), nothing());
    let ended = story.run_ends("r1", Outcome::Completed);
    assert_eq!(ended, ["r1 completed", "handed over m1"]);
}

#[test]
fn a_send_for_an_agent_that_rests_is_refused_while_it_works_or_is_about_to() {
    let at_rest = |id: &str| Wish::SendAtRest(send(id));
    let mut story = Story::linked();
    assert_eq!(
        story.wish(&ada(), at_rest("m1")),
        Ok(vec!["accepted m1".to_owned(), "handed over m1".to_owned()])
    );
    assert_eq!(story.wish(&ada(), at_rest("m2")), Err(Refusal::AgentAtWork));
    story.delivered("m1");
    story.run_starts("r1");
    assert_eq!(story.wish(&ada(), at_rest("m2")), Err(Refusal::AgentAtWork));
    story.run_ends("r1", Outcome::Completed);
    assert!(story.wish(&ada(), at_rest("m2")).is_ok());
}

#[test]
fn a_waiting_send_does_not_fail_while_its_machine_is_there() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.send("m1").unwrap();
    assert_eq!(story.deadline(), None);
    assert_eq!(story.wait_ms(3_600_000), nothing());
}

#[test]
fn a_plain_proxy_gets_sends_up_to_the_bound() {
    let mut story = Story::plain();
    for n in 0..HANDED_MAX {
        let id = format!("m{n}");
        let told = story.send(&id).unwrap();
        assert_eq!(told, [format!("accepted {id}"), format!("handed over {id}")]);
    }
    assert_eq!(story.send("late").unwrap(), ["accepted late"]);
    assert_eq!(story.owed().len(), HANDED_MAX);
    assert_eq!(story.delivered("m7"), ["delivered m7", "message m7", "handed over late"]);
}

#[test]
fn orders_are_told_in_the_order_of_their_hand_over() {
    let mut story = Story::plain();
    for id in ["z", "a", "m"] {
        story.send(id).unwrap();
    }
    assert_eq!(story.owed(), ["deliver z", "deliver a", "deliver m"]);
}

#[test]
fn a_steer_leaves_at_once_where_the_agent_can() {
    let mut story = Story::linked();
    can_steer(&mut story, true);
    story.run_starts("r1");
    story.send("m1").unwrap();
    assert_eq!(story.steer("m2").unwrap(), ["accepted m2", "handed over m2"]);
    assert_eq!(story.owed(), ["deliver m2"]);
}

#[test]
fn a_steer_waits_like_any_other_where_the_agent_cannot() {
    for ability in [None, Some(false)] {
        let mut story = Story::linked();
        if let Some(ability) = ability {
            can_steer(&mut story, ability);
        }
        story.run_starts("r1");
        assert_eq!(story.steer("m1").unwrap(), ["accepted m1"], "{ability:?}");
    }
}

#[test]
fn steers_that_nobody_confirms_are_bounded_too() {
    let mut story = Story::linked();
    can_steer(&mut story, true);
    story.run_starts("r1");
    for n in 0..HANDED_MAX {
        assert_eq!(story.steer(&format!("m{n}")).unwrap().len(), 2);
    }
    assert_eq!(story.steer("late").unwrap(), ["accepted late"]);
    assert_eq!(story.delivered("m0"), ["delivered m0", "message m0", "handed over late"]);
}

// spec: native/send_message.8
#[test]
fn an_interrupt_holds_what_waits_until_the_next_send() {
    let mut story = interrupted();
    assert_eq!(story.owed(), nothing());
    let next = story.send("m2").unwrap();
    assert_eq!(next, ["accepted m2", "resumed", "handed over m1"]);
}

#[test]
fn a_held_queue_goes_on_when_a_person_says_so() {
    let mut story = interrupted();
    assert_eq!(story.wish(&bob(), Wish::ResumeQueue).unwrap(), ["resumed", "handed over m1"]);
    assert_eq!(story.wish(&bob(), Wish::ResumeQueue), Ok(vec![]));
}

#[test]
fn a_held_queue_stays_held_over_a_reconnect() {
    let mut story = interrupted();
    story.down();
    assert_eq!(story.up("socket-2", Some(JOURNAL)), ["up through socket-2"]);
}

#[test]
fn an_interrupt_with_nothing_waiting_holds_nothing() {
    let mut story = Story::linked();
    story.run_starts("r1");
    assert_eq!(story.interrupt("stop").unwrap(), ["requested stop"]);
    story.send("m1").unwrap();
    let ended = story.run_ends("r1", Outcome::Interrupted);
    assert_eq!(ended, ["r1 interrupted", "settled stop: ok", "handed over m1"]);
}

#[test]
fn an_interrupt_that_the_proxy_could_not_carry_out_holds_no_longer() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.send("m1").unwrap();
    assert_eq!(story.interrupt("stop").unwrap(), ["requested stop", "held"]);
    let failed = story.result("stop", Some("control_not_supported"));
    assert_eq!(failed, ["settled stop: control_not_supported", "resumed"]);
}

#[test]
fn a_held_queue_keeps_steers_too() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.steer("m1").unwrap();
    story.interrupt("stop").unwrap();
    assert_eq!(can_steer(&mut story, true), ["config large"]);
    assert_eq!(story.owed(), ["stop: Interrupt"]);
}

#[test]
fn a_waiting_send_can_be_edited_and_leaves_with_its_new_words() {
    let mut story = waiting(&["m1"]);
    let text = Content::Open("other words".to_owned());
    let edit = Wish::EditQueued { id: "m1".into(), text: text.clone() };
    assert_eq!(story.wish(&bob(), edit).unwrap(), ["edited m1"]);
    story.run_ends("r1", Outcome::Completed);
    let Order::Deliver { send, .. } = &story.session.owed()[0] else { panic!("no send") };
    assert_eq!(send.text, text);
}

#[test]
fn a_waiting_send_can_be_moved() {
    let mut story = waiting(&["m1", "m2", "m3"]);
    let shift = |id: &str, to| Wish::MoveQueued { id: id.into(), to };
    assert_eq!(story.wish(&ada(), shift("m3", 0)).unwrap(), ["moved m3 to 0"]);
    assert_eq!(story.wish(&ada(), shift("m1", 99)).unwrap(), ["moved m1 to 2"]);
    let ended = story.run_ends("r1", Outcome::Completed);
    assert_eq!(ended, ["r1 completed", "handed over m3"]);
    assert_eq!(story.delivered("m3").last().unwrap(), "handed over m2");
    assert_eq!(story.delivered("m2").last().unwrap(), "handed over m1");
}

#[test]
fn a_discarded_send_fails_and_never_leaves() {
    let mut story = waiting(&["m1", "m2"]);
    let discard = Wish::DiscardQueued { id: "m1".into() };
    assert_eq!(story.wish(&bob(), discard).unwrap(), ["failed m1: discarded"]);
    let ended = story.run_ends("r1", Outcome::Completed);
    assert_eq!(ended, ["r1 completed", "handed over m2"]);
}

#[test]
fn what_has_left_can_no_longer_be_edited_moved_or_discarded() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let id = || MessageId::from("m1");
    let text = Content::Open("too late".to_owned());
    for wish in [
        Wish::EditQueued { id: id(), text },
        Wish::MoveQueued { id: id(), to: 0 },
        Wish::DiscardQueued { id: id() },
    ] {
        assert_eq!(story.wish(&ada(), wish), Err(Refusal::NotQueued(id())));
    }
    assert_eq!(story.owed(), ["deliver m1"]);
}

// spec: native/limits.8
#[test]
fn more_than_the_bound_cannot_wait() {
    let mut story = Story::linked();
    story.run_starts("r1");
    for n in 0..WAITING_MAX {
        story.send(&format!("m{n}")).unwrap();
    }
    assert_eq!(story.send("late"), Err(Refusal::QueueFull { limit: WAITING_MAX }));
    let repeated = story.send("m0");
    assert!(matches!(repeated, Err(Refusal::SendRepeated(_))), "a repeat needs no room");
}

/// A run is going on and these wait for its end.
fn waiting(sends: &[&str]) -> Story {
    let mut story = Story::linked();
    story.run_starts("r1");
    for id in sends {
        story.send(id).unwrap();
    }
    story
}

/// `m1` waits, and a person stopped the run before it.
fn interrupted() -> Story {
    let mut story = waiting(&["m1"]);
    assert_eq!(story.interrupt("stop").unwrap(), ["requested stop", "held"]);
    let ended = story.run_ends("r1", Outcome::Interrupted);
    assert_eq!(ended, ["r1 interrupted", "settled stop: ok"]);
    story
}

fn can_steer(story: &mut Story, ability: bool) -> Vec<String> {
    let capabilities = [("steer".to_owned(), ability)].into();
    let config = super::config::config("large", 1);
    let config = super::super::config::AgentConfig { capabilities, ..config };
    story.report(Report::Config(config)).unwrap()
}

#[test]
fn a_glance_tells_what_waits_what_is_on_its_way_and_how_much_was_said() {
    let mut story = Story::linked();
    for id in ["m1", "m2"] {
        story.send(id).unwrap();
    }
    let glance = story.session.glance();
    assert_eq!(glance.handed.iter().map(|send| send.id.as_str()).collect::<Vec<_>>(), ["m1"]);
    assert_eq!(glance.waiting.len(), 1);
    assert_eq!(glance.card.messages, 0);
    story.delivered("m1");
    let glance = story.session.glance();
    assert_eq!((glance.handed[0].id.as_str(), glance.card.messages), ("m2", 1));
}
