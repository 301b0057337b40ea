//! A message that arrives twice is shown once; a message that was said twice is shown twice.

use super::super::transcript::{ContextUse, ECHOES_AWAITED_MAX, MESSAGES_REMEMBERED_MAX};
use super::*;

const DONE: u64 = 77;

// spec: native/proxy_message.1, native/message_event.3
#[test]
fn what_the_proxy_observed_is_recorded() {
    let mut story = Story::plain();
    assert_eq!(named(&mut story, "a1", Author::Assistant), ["message a1"]);
    assert_eq!(named(&mut story, "u1", Author::User), ["message u1"]);
}

#[test]
fn messages_of_people_and_of_the_agent_are_counted_for_lists() {
    let mut story = Story::plain();
    named(&mut story, "a1", Author::Assistant);
    named(&mut story, "u1", Author::User);
    named(&mut story, "u1", Author::User);
    named(&mut story, "s1", Author::System);
    assert_eq!(story.session.card().messages, 2);
}

// spec: native/proxy_message.2
#[test]
fn a_message_with_an_id_is_shown_once_over_any_number_of_reconnects() {
    let mut story = Story::plain();
    named(&mut story, "a1", Author::Assistant);
    let head = story.head();
    assert_eq!(named(&mut story, "a1", Author::Assistant), nothing());
    assert_eq!(story.head(), head);
    story.up("socket-2", None);
    assert_eq!(named(&mut story, "a1", Author::Assistant), nothing());
    assert_eq!(named(&mut story, "a2", Author::Assistant), ["message a2"]);
}

#[test]
fn an_agent_that_says_done_twice_is_heard_twice() {
    let mut story = Story::plain();
    assert_eq!(unnamed(&mut story, "x1", DONE), ["message x1"]);
    assert_eq!(unnamed(&mut story, "x2", DONE), ["message x2"]);
}

#[test]
fn history_told_again_matches_in_order_and_what_is_new_is_new() {
    let mut story = Story::plain();
    for (id, digest) in [("x1", 1), ("x2", DONE), ("x3", 3), ("x4", DONE)] {
        unnamed(&mut story, id, digest);
    }
    story.up("socket-2", None);
    for (id, digest) in [("y1", 1), ("y2", DONE), ("y3", 3), ("y4", DONE)] {
        assert_eq!(unnamed(&mut story, id, digest), nothing(), "{id}");
    }
    assert_eq!(unnamed(&mut story, "y5", DONE), ["message y5"], "said a third time");
}

#[test]
fn a_snapshot_on_the_same_connection_does_not_make_old_words_of_new_ones() {
    let mut story = Story::plain();
    unnamed(&mut story, "x1", DONE);
    let meta = Meta { window_title: Some("kite".to_owned()), ..Meta::of_agent("demo".into()) };
    let via = Via { connection: "socket-1".into(), link: None };
    let (meta, health, activity) = (Box::new(meta), Health::Healthy, Some(activity("idle", 1)));
    assert_eq!(story.change(Change::Up { via, meta, health, activity }), ["up through socket-1"]);
    assert_eq!(unnamed(&mut story, "x2", DONE), ["message x2"]);
}

#[test]
fn a_numbered_word_that_was_heard_does_not_use_up_a_match() {
    let mut story = Story::linked();
    let say = |story: &mut Story, number, id: &str| {
        let message = message(id, Author::Assistant, Some(DONE));
        let report = Report::Message { message, has_own_id: false, echo: None };
        story.report_at(Some(number), report).unwrap()
    };
    assert_eq!(say(&mut story, 1, "x1"), ["message x1"]);
    assert_eq!(say(&mut story, 2, "x2"), ["message x2"]);
    story.up("socket-2", Some(JOURNAL));
    // Both come again because their acknowledgement was lost; the edge invents new ids.
    assert_eq!(say(&mut story, 1, "z1"), nothing());
    assert_eq!(say(&mut story, 2, "z2"), nothing());
    // The agent's window is read anew: two old ones, and one that is not.
    assert_eq!(say(&mut story, 3, "y1"), nothing());
    assert_eq!(say(&mut story, 4, "y2"), nothing());
    assert_eq!(say(&mut story, 5, "y3"), ["message y3"]);
}

// spec: native/delivery_state.5
#[test]
fn an_echo_neither_completes_a_delivery_nor_shows_the_message_twice() {
    let mut story = with_digest(&[("m1", 5)]);
    assert_eq!(echo(&mut story, "x1", None, 5), ["echoed"]);
    assert_eq!(story.owed(), ["deliver m1"], "only the proxy's result tells");
    assert_eq!(story.delivered("m1"), ["delivered m1", "message m1"]);
    assert_eq!(echo(&mut story, "x2", None, 5), ["message x2"], "typed at the machine");
}

#[test]
fn an_echo_after_the_delivery_is_awaited_once() {
    let mut story = with_digest(&[("m1", 5)]);
    story.delivered("m1");
    assert_eq!(echo(&mut story, "x1", None, 5), ["echoed"]);
    assert_eq!(echo(&mut story, "x2", None, 5), ["message x2"], "typed at the machine");
}

#[test]
fn as_many_echoes_as_sends_of_the_same_words_are_recognised() {
    let mut story = with_digest(&[("m1", 5), ("m2", 5)]);
    assert_eq!(echo(&mut story, "x1", None, 5), ["echoed"]);
    story.delivered("m1");
    assert_eq!(echo(&mut story, "x2", None, 5), ["echoed"]);
    assert_eq!(echo(&mut story, "x3", None, 5), ["message x3"]);
    story.delivered("m2");
    assert_eq!(echo(&mut story, "x4", None, 5), ["message x4"]);
}

#[test]
fn an_early_echo_of_a_send_that_failed_does_not_count_for_the_next() {
    let mut story = with_digest(&[("m1", 5)]);
    assert_eq!(echo(&mut story, "x1", None, 5), ["echoed"]);
    story.failed("m1", "send_rejected");
    story.wish(&ada(), digested("m1", 5)).unwrap();
    assert_eq!(echo(&mut story, "x2", None, 5), ["echoed"]);
}

#[test]
fn words_that_wait_in_the_queue_have_no_echo_yet() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.wish(&ada(), digested("m1", 5)).unwrap();
    assert_eq!(echo(&mut story, "x1", None, 5), ["message x1"]);
}

#[test]
fn an_echo_under_an_id_of_its_own_is_an_echo_all_the_same() {
    let mut story = with_digest(&[("m1", 5)]);
    story.delivered("m1");
    let message = message("scraped-1", Author::User, None);
    let report = Report::Message { message, has_own_id: true, echo: Some(Digest(5)) };
    assert_eq!(story.report(report).unwrap(), ["echoed"]);
}

#[test]
fn a_proxy_with_a_journal_reports_no_echo_so_what_it_names_is_new() {
    let mut story = Story::linked();
    story.wish(&ada(), digested("m1", 5)).unwrap();
    story.delivered("m1");
    let message = message("typed-1", Author::User, None);
    let report = Report::Message { message, has_own_id: true, echo: Some(Digest(5)) };
    assert_eq!(story.report(report).unwrap(), ["message typed-1"]);
}

#[test]
fn the_agents_words_are_no_echo_of_a_person() {
    let mut story = with_digest(&[("m1", 5)]);
    story.delivered("m1");
    let message = message("x1", Author::Assistant, None);
    let report = Report::Message { message, has_own_id: false, echo: Some(Digest(5)) };
    assert_eq!(story.report(report).unwrap(), ["message x1"]);
}

#[test]
fn a_delivered_send_that_is_told_again_with_the_history_is_not_shown_twice() {
    let mut story = with_digest(&[("m1", 5), ("m2", 6)]);
    story.delivered("m1");
    assert_eq!(echo(&mut story, "x1", Some(51), 5), ["echoed"]);
    assert_eq!(unnamed(&mut story, "x2", DONE), ["message x2"]);
    story.delivered("m2");
    assert_eq!(echo(&mut story, "x3", Some(61), 6), ["echoed"]);
    for socket in ["socket-2", "socket-3"] {
        story.up(socket, None);
        assert_eq!(echo(&mut story, "y1", Some(51), 5), nothing(), "{socket}");
        assert_eq!(unnamed(&mut story, "y2", DONE), nothing(), "{socket}");
        assert_eq!(echo(&mut story, "y3", Some(61), 6), nothing(), "{socket}");
    }
    assert_eq!(unnamed(&mut story, "y4", DONE), ["message y4"]);
}

// spec: native/message_event.1
#[test]
fn a_send_that_the_proxy_already_told_as_a_message_is_not_told_again_at_delivery() {
    let mut story = Story::plain();
    story.send("m1").unwrap();
    assert_eq!(named(&mut story, "m1", Author::User), ["message m1"]);
    assert_eq!(story.delivered("m1"), ["delivered m1"]);
    assert_eq!(named(&mut story, "m1", Author::User), nothing());
}

#[test]
fn more_echoes_than_the_bound_are_not_awaited() {
    let mut story = Story::plain();
    for n in 0..=ECHOES_AWAITED_MAX as u64 {
        let id = format!("m{n}");
        story.wish(&ada(), digested(&id, 1_000 + n)).unwrap();
        story.delivered(&id);
    }
    assert_eq!(echo(&mut story, "x0", None, 1_000), ["message x0"]);
    assert_eq!(echo(&mut story, "x1", None, 1_001), ["echoed"]);
}

#[test]
fn more_messages_than_the_bound_are_not_remembered() {
    let mut story = Story::plain();
    for n in 0..=MESSAGES_REMEMBERED_MAX {
        named(&mut story, &format!("a{n}"), Author::Assistant);
    }
    assert_eq!(named(&mut story, "a1", Author::Assistant), nothing());
    assert_eq!(named(&mut story, "a0", Author::Assistant), ["message a0"]);
}

fn named(story: &mut Story, id: &str, author: Author) -> Vec<String> {
    let message = message(id, author, None);
    story.report(Report::Message { message, has_own_id: true, echo: None }).unwrap()
}

/// The agent says something; the edge had to invent the id.
fn unnamed(story: &mut Story, id: &str, digest: u64) -> Vec<String> {
    let message = message(id, Author::Assistant, Some(digest));
    story.report(Report::Message { message, has_own_id: false, echo: None }).unwrap()
}

/// The agent's window shows a person's words.
fn echo(story: &mut Story, id: &str, digest: Option<u64>, echo: u64) -> Vec<String> {
    let message = message(id, Author::User, digest);
    let echo = Some(Digest(echo));
    story.report(Report::Message { message, has_own_id: false, echo }).unwrap()
}

fn digested(id: &str, digest: u64) -> Wish {
    Wish::Send { send: Send { digest: Some(Digest(digest)), ..send(id) }, earlier: None }
}

/// Sent through a plain proxy, and not yet delivered.
fn with_digest(sends: &[(&str, u64)]) -> Story {
    let mut story = Story::plain();
    for (id, digest) in sends {
        story.wish(&ada(), digested(id, *digest)).unwrap();
    }
    story
}

#[test]
fn how_full_the_context_is_is_told_to_who_comes_later() {
    let mut story = Story::plain();
    assert_eq!(story.session.glance().context, None);
    for used_tokens in [10, 20] {
        let context = ContextUse { used_tokens, window_tokens: 100 };
        story.report(Report::Context(context)).unwrap();
        assert_eq!(story.session.glance().context, Some(context));
    }
}
