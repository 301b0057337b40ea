//! `accepted → handed over → delivered / failed`, each once.

use super::super::delivery::{
    DELIVERY_UNKNOWN, SESSION_NOT_CONNECTED, SETTLED_REMEMBERED_MAX, Send, State, Told,
};
use super::super::status::CloseReason;
use super::*;
use crate::content::Attachment;

// spec: native/delivery_state.2, native/message_delivered.1, native/proxy_send_result.1
#[test]
fn a_send_is_accepted_handed_over_and_delivered() {
    let mut story = Story::linked();
    assert_eq!(story.send("m1").unwrap(), ["accepted m1", "handed over m1"]);
    assert_eq!(story.owed(), ["deliver m1"]);
    assert_eq!(story.delivered("m1"), ["delivered m1", "message m1"]);
    assert_eq!(story.owed(), nothing());
}

#[test]
fn the_hand_over_is_recorded_before_the_order_is_owed() {
    let mut story = Story::linked();
    let command = Command::Person(ada(), Wish::Send { send: send("m1"), earlier: None });
    let decided =
        story.session.decide(&command, &story.cursor, Policy::default(), story.now).unwrap();
    assert_eq!(decided.iter().map(brief).collect::<Vec<_>>(), ["accepted m1"]);
    assert_eq!(story.owed(), nothing());
    let recorded = story.perform(&command).unwrap();
    assert_eq!(recorded, ["accepted m1", "handed over m1"]);
    assert_eq!(story.owed(), ["deliver m1"]);
}

#[test]
fn the_hand_over_names_the_journal_that_will_know_the_send() {
    use super::super::delivery::Event as Delivery;
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let last = story.history.last().unwrap();
    let (id, link) = ("m1".into(), Some(JOURNAL.into()));
    assert_eq!(last.event, Event::Delivery(Delivery::HandedOver { id, link }));
}

// spec: native/delivery_state.6
#[test]
fn a_send_to_a_machine_that_is_away_waits_and_then_fails() {
    let mut story = Story::linked();
    story.down();
    assert_eq!(story.send("m1").unwrap(), ["accepted m1"]);
    assert_eq!(story.deadline(), Some(START.plus_ms(30_000)));
    assert_eq!(story.wait_ms(29_999), nothing());
    assert_eq!(story.wait_ms(1), ["failed m1: session_not_connected"]);
    assert_eq!(story.deadline(), None);
    assert_eq!(story.up("socket-2", Some(JOURNAL)), ["up through socket-2"]);
    assert_eq!(story.owed(), nothing());
}

#[test]
fn the_grace_time_begins_when_the_machine_goes_for_what_waited_before() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    story.send("m2").unwrap();
    story.now = story.now.plus_ms(60_000);
    story.down();
    assert_eq!(story.deadline(), Some(START.plus_ms(90_000)));
    assert_eq!(story.wait_ms(30_000), ["failed m2: session_not_connected"]);
}

#[test]
fn the_grace_time_begins_with_the_send_when_the_machine_was_away_before() {
    let mut story = Story::linked();
    story.down();
    story.now = story.now.plus_ms(10_000);
    story.send("m1").unwrap();
    assert_eq!(story.deadline(), Some(START.plus_ms(40_000)));
    let mut unseen = Story::unseen();
    unseen.send("m1").unwrap();
    assert_eq!(unseen.deadline(), Some(START.plus_ms(30_000)));
}

// spec: native/delivery_state.6
#[test]
fn a_machine_that_returns_too_late_does_not_get_what_waited() {
    let mut story = Story::linked();
    story.down();
    story.send("m1").unwrap();
    // Nobody woke the session in between: the relay itself was away.
    story.now = story.now.plus_ms(30_000);
    let back = story.up("socket-2", Some(JOURNAL));
    assert_eq!(back, ["failed m1: session_not_connected", "up through socket-2"]);
    assert_eq!(story.owed(), nothing());
}

#[test]
fn the_card_of_a_session_that_is_away_says_when_time_changes_it() {
    let policy = Policy { send_grace_ms: 7_000, ..Policy::default() };
    let next = |story: &Story| story.session.card().deadlines.unwrap().next(policy);
    let mut story = Story::linked();
    story.asked(prompt("p1", Some((60_000, None)))).unwrap();
    story.down();
    assert_eq!(next(&story), Some(START.plus_ms(60_000)));
    story.send("m1").unwrap();
    assert_eq!(next(&story), Some(START.plus_ms(7_000)));
    assert_eq!(story.session.deadline(policy), next(&story));
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(next(&story), Some(START.plus_ms(60_000)));
}

#[test]
fn a_machine_that_returns_in_time_gets_what_waited() {
    let mut story = Story::linked();
    story.down();
    story.send("m1").unwrap();
    story.now = story.now.plus_ms(29_999);
    let back = story.up("socket-2", Some(JOURNAL));
    assert_eq!(back, ["up through socket-2", "handed over m1"]);
}

// spec: native/delivery_state.7
#[test]
fn what_was_handed_over_never_fails_by_time() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    story.down();
    assert_eq!(story.deadline(), None);
    assert_eq!(story.wait_ms(u64::MAX / 2), nothing());
    assert_eq!(story.up("socket-2", Some(JOURNAL)), ["up through socket-2"]);
    assert_eq!(story.owed(), ["deliver m1"]);
}

// spec: native/forwarding.2, native/delivery_state.8
#[test]
fn a_returning_proxy_is_offered_the_same_attempt_again() {
    for link in [None, Some(JOURNAL)] {
        let mut story = Story::unseen();
        story.up("socket-1", link);
        story.send("m1").unwrap();
        let before = story.session.owed();
        story.down();
        story.up("socket-2", link);
        assert_eq!(story.session.owed(), before, "{link:?}");
        assert_eq!(before.len(), 1);
    }
}

// spec: native/delivery_state.4
#[test]
fn another_journal_leaves_it_unknown_what_became_of_a_send() {
    for (first, second) in
        [(Some(JOURNAL), Some("journal-2")), (Some(JOURNAL), None), (None, Some(JOURNAL))]
    {
        let mut story = Story::unseen();
        story.up("socket-1", first);
        story.send("m1").unwrap();
        story.down();
        let back = story.up("socket-2", second);
        let expected = ["failed m1: delivery_unknown", "up through socket-2"];
        assert_eq!(back, expected, "{first:?} then {second:?}");
        assert_eq!(story.owed(), nothing());
    }
}

#[test]
fn another_journal_gets_what_was_never_handed_over() {
    let mut story = Story::linked();
    story.down();
    story.send("m1").unwrap();
    let back = story.up("socket-2", Some("journal-2"));
    assert_eq!(back, ["up through socket-2", "handed over m1"]);
}

// spec: native/send_message.3, native/message_identifiers.5
#[test]
fn a_repeat_is_told_the_state_with_the_event_that_told_it() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let accepted = told("m1", State::Accepted, Sequence(2));
    assert_eq!(story.send("m1"), Err(Refusal::SendRepeated(Box::new(accepted))));
    story.now = story.now.plus_ms(5);
    story.delivered("m1");
    let mut delivered = told("m1", State::Delivered, Sequence(4));
    delivered.at = story.now;
    story.now = story.now.plus_ms(5);
    assert_eq!(story.send("m1"), Err(Refusal::SendRepeated(Box::new(delivered))));
    assert_eq!(story.head(), Sequence(5), "the repeats recorded nothing");
}

// spec: native/send_message.5
#[test]
fn a_failed_send_is_tried_again_as_another_attempt() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let first = story.session.owed()[0].key();
    assert_eq!(story.failed("m1", "send_injection_failed"), ["failed m1: send_injection_failed"]);
    assert_eq!(story.send("m1").unwrap(), ["accepted m1", "handed over m1"]);
    let second = story.session.owed()[0].key();
    assert_ne!(first, second, "the proxy must not take it for the first one");
    assert_eq!(story.delivered("m1"), ["delivered m1", "message m1"]);
}

#[test]
fn a_result_of_an_earlier_attempt_changes_nothing() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let attempt = Some(Sequence(2));
    story.failed("m1", "send_injection_failed");
    story.send("m1").unwrap();
    let (id, run) = ("m1".into(), None);
    let late = story.report(Report::SendDelivered { id, attempt, run });
    assert_eq!(late, Ok(vec![]));
    let failure = Failure::new("send_rejected", "words");
    let late = story.report(Report::SendFailed { id: "m1".into(), attempt, failure });
    assert_eq!(late, Ok(vec![]));
    let (id, attempt, run) = ("m1".into(), Some(Sequence(5)), None);
    let current = story.report(Report::SendDelivered { id, attempt, run });
    assert_eq!(current.unwrap(), ["delivered m1", "message m1"]);
}

// spec: native/send_message.5
#[test]
fn what_ended_as_unknown_is_never_tried_again_under_its_id() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    story.failed("m1", DELIVERY_UNKNOWN);
    let failed = State::Failed(Failure::new(DELIVERY_UNKNOWN, "words"));
    let told = told("m1", failed, Sequence(4));
    assert_eq!(story.send("m1"), Err(Refusal::SendRepeated(Box::new(told))));
    assert_eq!(story.owed(), nothing());
}

// spec: native/proxy_send_result.2
#[test]
fn a_result_for_what_is_settled_or_was_never_forwarded_changes_nothing() {
    let mut story = Story::linked();
    assert_eq!(story.delivered("never"), nothing());
    story.send("m1").unwrap();
    story.send("m2").unwrap();
    assert_eq!(story.delivered("m2"), nothing(), "m2 still waits behind m1");
    story.delivered("m1");
    assert_eq!(story.delivered("m1"), nothing());
    assert_eq!(story.failed("m1", "send_rejected"), nothing());
}

// spec: native/message_failed.1, native/error_codes.3
#[test]
fn a_proxys_code_is_passed_on_as_it_is() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    assert_eq!(story.failed("m1", "tea_break"), ["failed m1: tea_break"]);
    let failure = Failure::new("tea_break", "words");
    assert_eq!(story.session.told(&"m1".into()).unwrap().state, State::Failed(failure));
}

// spec: native/send_message.6
#[test]
fn a_closed_session_takes_no_send_and_records_none() {
    let mut story = closed(&[]);
    let head = story.head();
    assert_eq!(story.send("m1"), Err(Refusal::SessionClosed));
    assert_eq!(story.head(), head);
}

#[test]
fn a_repeat_is_told_its_state_even_when_the_session_is_closed() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    story.delivered("m1");
    close(&mut story);
    let repeated = story.send("m1");
    assert!(matches!(repeated, Err(Refusal::SendRepeated(told)) if told.state == State::Delivered));
}

#[test]
fn closing_fails_what_waits_and_leaves_what_was_handed_over_unknown() {
    let story = closed(&["m1", "m2"]);
    let state = |id: &str| story.session.told(&id.into()).unwrap().state;
    let code = |id: &str| match state(id) {
        State::Failed(failure) => failure.code.as_str().to_owned(),
        State::Accepted | State::Delivered => panic!("{id} did not fail"),
    };
    assert_eq!(code("m1"), DELIVERY_UNKNOWN);
    assert_eq!(code("m2"), SESSION_NOT_CONNECTED);
    assert_eq!(story.owed(), nothing());
    assert_eq!(story.deadline(), None);
}

// spec: native/credentials.4
#[test]
fn a_viewer_sends_nothing() {
    let mut story = Story::linked();
    for role in [Role::Viewer, Role::Proxy] {
        let wish = Wish::Send { send: send("m1"), earlier: None };
        assert_eq!(story.wish(&person("eve", role), wish), Err(Refusal::Unauthorized));
    }
}

// spec: native/message_identifiers.3, native/message_event.2
#[test]
fn a_delivered_send_becomes_a_message_of_the_person_with_its_files() {
    use super::super::transcript::Event as Transcript;
    let file = |id: &str, media_type: &str| Attachment {
        id: id.into(),
        name: id.to_owned(),
        kind: "uploaded_file".to_owned(),
        media_type: Some(media_type.to_owned()),
    };
    let attachments = vec![file("photo", "image/png"), file("log", "text/plain")];
    let mut story = Story::linked();
    let send = Send { attachments: attachments.clone(), ..send("m1") };
    story.wish(&ada(), Wish::Send { send, earlier: None }).unwrap();
    assert_eq!(story.session.owed()[0].attachments(), attachments);
    story.now = story.now.plus_ms(7);
    story.delivered("m1");
    let Event::Transcript(Transcript::Message(message)) = &story.history.last().unwrap().event
    else {
        panic!("no message was recorded");
    };
    assert_eq!((message.id.as_str(), message.author), ("m1", Author::User));
    assert_eq!(message.created_at, story.now);
    let parts = vec![
        Part::Text("words of m1".to_owned()),
        Part::Image(attachments[0].clone()),
        Part::File(attachments[1].clone()),
    ];
    assert_eq!(message.parts, Content::Open(parts));
}

#[test]
fn a_sealed_send_is_decided_like_an_open_one() {
    use super::super::transcript::Event as Transcript;
    use crate::content::Sealed;
    let seal =
        |body: &str| Sealed { key: "k".to_owned(), nonce: "n".to_owned(), body: body.to_owned() };
    let mut story = Story::linked();
    let send = Send { text: Content::Sealed(seal("secret")), ..send("m1") };
    let accepted = story.wish(&ada(), Wish::Send { send, earlier: None });
    assert_eq!(accepted.unwrap(), ["accepted m1", "handed over m1"]);
    story.delivered("m1");
    let Event::Transcript(Transcript::Message(message)) = &story.history.last().unwrap().event
    else {
        panic!("no message was recorded");
    };
    assert_eq!(message.parts, Content::Sealed(seal("secret")));
}

#[test]
fn a_send_with_a_run_starts_that_run() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let (id, run) = ("m1".into(), Some("r1".into()));
    let told = story.report(Report::SendDelivered { id, attempt: None, run }).unwrap();
    assert_eq!(told, ["delivered m1", "message m1", "r1 started"]);
}

#[test]
fn what_was_settled_long_ago_is_asked_of_the_ledger() {
    let mut story = Story::linked();
    for n in 0..=SETTLED_REMEMBERED_MAX {
        let id = format!("m{n}");
        story.send(&id).unwrap();
        assert!(!story.session.may_have_forgotten(&"m0".into()), "{n}");
        story.delivered(&id);
    }
    assert!(story.session.may_have_forgotten(&"m0".into()));
    assert!(!story.session.may_have_forgotten(&"m1".into()));
    assert_eq!(story.session.told(&"m0".into()), None);
    for state in [State::Accepted, State::Delivered] {
        let earlier = told("m0", state, Sequence(2));
        let wish = Wish::Send { send: send("m0"), earlier: Some(earlier.clone()) };
        let repeated = story.wish(&ada(), wish);
        assert_eq!(repeated, Err(Refusal::SendRepeated(Box::new(earlier))));
    }
    let failed = State::Failed(Failure::new(SESSION_NOT_CONNECTED, "words"));
    let earlier = Some(told("m0", failed, Sequence(2)));
    let again = story.wish(&ada(), Wish::Send { send: send("m0"), earlier });
    assert_eq!(again.unwrap(), ["accepted m0", "handed over m0"]);
}

#[test]
fn a_send_that_is_tried_again_and_again_pushes_no_other_out_of_memory() {
    let mut story = Story::linked();
    story.send("other").unwrap();
    story.delivered("other");
    for _ in 0..=SETTLED_REMEMBERED_MAX {
        story.send("m1").unwrap();
        story.failed("m1", "send_rejected");
    }
    assert_eq!(story.session.told(&"other".into()).unwrap().state, State::Delivered);
    assert!(!story.session.may_have_forgotten(&"new".into()));
}

#[test]
fn an_order_that_was_told_is_still_owed_but_not_new() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let (keys, new) = story.session.owed_beyond(&std::collections::BTreeSet::new());
    assert_eq!(new.len(), 1);
    let (still, new) = story.session.owed_beyond(&keys);
    assert_eq!((still, new), (keys, vec![]));
}

fn told(id: &str, state: State, sequence: Sequence) -> Told {
    Told { id: id.into(), state, sequence, at: START }
}

fn close(story: &mut Story) {
    let reason = CloseReason::TargetClosed;
    story.report(Report::Closed { reason, request: None }).unwrap();
}

fn closed(sends: &[&str]) -> Story {
    let mut story = Story::linked();
    for id in sends {
        story.send(id).unwrap();
    }
    close(&mut story);
    story
}
