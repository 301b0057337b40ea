//! A question is settled once, and its answer is owed until the agent receives it.

use super::super::prompts::PROMPTS_OPEN_MAX;
use super::*;

#[test]
fn an_answer_after_the_time_of_its_question_is_refused_although_nobody_had_woken_the_session() {
    let mut story = asked(Some((60_000, Some("no"))));
    story.now = story.now.plus_ms(60_000);
    let late = story.answer(&ada(), Some("a1"), "yes");
    assert_eq!(late, Err(Refusal::PromptNotOpen("p1".into())));
    assert_eq!(brief(&story.history.last().unwrap().event), "p1: no, says the clock");
    assert_eq!(story.owed(), ["answer p1: no, says the clock"]);
}

// spec: native/permission_prompt_relay_behavior.1
#[test]
fn a_question_is_recorded_and_open() {
    let mut story = Story::linked();
    assert_eq!(story.asked(prompt("p1", None)).unwrap(), ["asked p1"]);
    assert_eq!(open(&story), ["p1"]);
}

// spec: native/permission_prompt.1
#[test]
fn a_question_that_is_asked_again_changes_nothing_while_open_or_while_its_answer_is_owed() {
    let mut story = asked(None);
    assert_eq!(story.asked(prompt("p1", None)), Ok(vec![]));
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    assert_eq!(story.asked(prompt("p1", None)), Ok(vec![]));
    assert_eq!(open(&story), nothing());
}

// spec: native/permission_prompt_relay_behavior.3, native/permission_response.2
#[test]
fn an_answer_names_who_gave_it_and_is_owed_until_the_proxy_confirms() {
    let mut story = asked(None);
    let answered = story.answer(&ada(), Some("a1"), "yes").unwrap();
    assert_eq!(answered, ["requested a1", "p1: yes, says ada"]);
    assert_eq!(open(&story), nothing());
    for reconnect in ["socket-2", "socket-3"] {
        assert_eq!(story.owed(), ["answer p1: yes, says a person"]);
        story.down();
        story.up(reconnect, Some(JOURNAL));
    }
    assert_eq!(story.result("a1", None), ["p1: confirmed", "settled a1: ok"]);
    assert_eq!(story.owed(), nothing());
}

// spec: native/permission_response.1, native/permission_response.3
#[test]
fn the_first_answer_wins() {
    let mut story = asked(None);
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    let second = story.answer(&bob(), Some("b1"), "no");
    assert_eq!(second, Err(Refusal::PromptNotOpen("p1".into())));
    assert_eq!(story.owed(), ["answer p1: yes, says a person"]);
    let unknown =
        Wish::Answer { request: None, prompt: "p9".into(), choice: "yes".into(), detail: None };
    assert_eq!(story.wish(&bob(), unknown), Err(Refusal::PromptNotOpen("p9".into())));
}

// spec: native/permission_response.5
#[test]
fn a_choice_that_the_question_does_not_have_leaves_it_open() {
    let mut story = asked(None);
    let refused = story.answer(&ada(), Some("a1"), "maybe");
    let (prompt, choice) = ("p1".into(), "maybe".into());
    assert_eq!(refused, Err(Refusal::NoSuchChoice { prompt, choice }));
    assert_eq!(open(&story), ["p1"]);
    let corrected = story.answer(&ada(), Some("a1"), "no").unwrap();
    assert_eq!(corrected, ["requested a1", "p1: no, says ada"]);
}

// spec: native/permission_response.7
#[test]
fn a_choice_that_wants_answers_is_refused_without_them_and_the_question_stays_open() {
    use super::super::prompts::AnswerDetail;
    use crate::content::Sealed;
    let answer = |choice: &str, detail: Option<Content<AnswerDetail>>| Wish::Answer {
        request: None,
        prompt: "p1".into(),
        choice: choice.into(),
        detail,
    };
    let open = |detail: AnswerDetail| Some(Content::Open(detail));
    let words = AnswerDetail { message: Some("yes".to_owned()), ..AnswerDetail::default() };
    let answers = AnswerDetail { answers: Some("{}".to_owned()), ..AnswerDetail::default() };
    let sealed =
        Content::Sealed(Sealed { key: "k".to_owned(), nonce: String::new(), body: String::new() });
    let ask = || {
        let mut story = Story::linked();
        let mut asked = prompt("p1", None);
        asked.choices[0].wants_answers = true;
        story.asked(asked).unwrap();
        story
    };
    for detail in [None, open(words)] {
        let mut story = ask();
        let refused = story.wish(&ada(), answer("yes", detail));
        assert_eq!(refused, Err(Refusal::AnswersMissing("p1".into())));
        assert_eq!(self::open(&story), ["p1"]);
        assert!(story.wish(&ada(), answer("no", None)).is_ok(), "a no wants none");
    }
    assert!(ask().wish(&ada(), answer("yes", open(answers))).is_ok());
    let blind = ask().wish(&ada(), answer("yes", Some(sealed)));
    assert!(blind.is_ok(), "the machine judges what the relay cannot read");
}

// spec: native/envelope.3
#[test]
fn a_repeated_answer_is_told_how_the_first_stands() {
    let mut story = asked(None);
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    assert_eq!(story.answer(&ada(), Some("a1"), "yes"), Err(Refusal::RequestRepeated(None)));
    story.result("a1", None);
    let repeated = story.answer(&ada(), Some("a1"), "yes");
    assert!(
        matches!(repeated, Err(Refusal::RequestRepeated(Some(outcome))) if outcome.failure.is_none())
    );
}

#[test]
fn an_answer_needs_no_request_id() {
    let mut story = asked(None);
    assert_eq!(story.answer(&ada(), None, "yes").unwrap()[1], "p1: yes, says ada");
    assert_eq!(story.answer(&ada(), None, "yes"), Err(Refusal::PromptNotOpen("p1".into())));
}

// spec: native/permission_prompt_relay_behavior.4
#[test]
fn at_its_time_the_default_choice_is_made_and_owed() {
    let mut story = asked(Some((500, Some("no"))));
    assert_eq!(story.deadline(), Some(START.plus_ms(500)));
    assert_eq!(story.wait_ms(499), nothing());
    assert_eq!(story.wait_ms(1), ["p1: no, says the clock"]);
    assert_eq!(story.owed(), ["answer p1: no, says the clock"]);
    assert_eq!(story.deadline(), None);
    assert_eq!(story.answer(&ada(), None, "yes"), Err(Refusal::PromptNotOpen("p1".into())));
}

// spec: native/permission_prompt_relay_behavior.6
#[test]
fn at_its_time_without_a_default_nothing_is_pressed_and_the_proxy_is_told() {
    let mut story = asked(Some((500, None)));
    assert_eq!(story.wait_ms(500), ["p1: nothing, says the clock"]);
    assert_eq!(story.owed(), ["answer p1: nothing, says the clock"]);
    assert_eq!(story.result("expire:p1", None), ["p1: confirmed"]);
    assert_eq!(story.owed(), nothing());
}

// spec: native/permission_prompt_relay_behavior.5
#[test]
fn without_a_timeout_a_question_waits_however_long_also_over_a_restart() {
    let mut story = asked(None);
    assert_eq!(story.deadline(), None);
    assert_eq!(story.wait_ms(u64::MAX / 2), nothing());
    let mut timed = asked(Some((500, Some("no"))));
    let stored = serde_json::to_string(&timed.session).unwrap();
    timed.session = serde_json::from_str(&stored).unwrap();
    assert_eq!(timed.deadline(), Some(START.plus_ms(500)));
    assert_eq!(timed.wait_ms(500), ["p1: no, says the clock"]);
}

#[test]
fn a_question_expires_while_its_machine_is_away_and_the_choice_waits_for_it() {
    let mut story = asked(Some((500, Some("no"))));
    story.down();
    assert_eq!(story.wait_ms(500), ["p1: no, says the clock"]);
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.resumed(&["p1"], None), nothing());
    assert_eq!(story.owed(), ["answer p1: no, says the clock"]);
}

// spec: native/permission_prompt_relay_behavior.7
#[test]
fn while_the_machine_is_away_an_answer_is_refused_and_the_question_stays() {
    let mut story = asked(None);
    story.down();
    assert_eq!(open(&story), ["p1"]);
    assert_eq!(story.answer(&ada(), Some("a1"), "yes"), Err(Refusal::NoProxyConnected));
    assert_eq!(open(&story), ["p1"]);
    story.up("socket-2", Some(JOURNAL));
    assert!(story.answer(&ada(), Some("a1"), "yes").is_ok(), "the refusal used up no id");
}

// spec: native/permission_prompt_relay_behavior.8
#[test]
fn what_a_returning_proxy_no_longer_has_is_withdrawn() {
    let mut story = asked(None);
    story.asked(prompt("p2", Some((500, Some("no"))))).unwrap();
    story.down();
    assert_eq!(story.up("socket-2", Some(JOURNAL)), ["up through socket-2"], "nobody said yet");
    assert_eq!(story.resumed(&["p1"], None), ["p2: withdrawn"]);
    assert_eq!(open(&story), ["p1"]);
    assert_eq!(story.owed(), nothing());
    assert_eq!(story.deadline(), None);
}

#[test]
fn an_answer_outlives_a_return_that_no_longer_names_its_question() {
    let mut story = asked(None);
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    story.down();
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.resumed(&[], None), nothing());
    assert_eq!(story.owed(), ["answer p1: yes, says a person"]);
    let gone = story.result("a1", Some("prompt_not_found"));
    assert_eq!(gone, ["p1: confirmed", "settled a1: prompt_not_found"]);
    assert_eq!(open(&story), nothing());
}

// spec: native/permission_prompt_relay_behavior.9
#[test]
fn an_answer_that_could_not_be_applied_opens_the_question_again_without_its_clock() {
    let mut story = asked(Some((500, Some("no"))));
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    let failed = story.result("a1", Some("selector_failure"));
    assert_eq!(failed, ["p1: reopened, selector_failure", "settled a1: selector_failure"]);
    assert_eq!(open(&story), ["p1"]);
    assert_eq!(story.deadline(), None);
    assert_eq!(story.wait_ms(500), nothing());
    let again = story.answer(&bob(), Some("b1"), "no").unwrap();
    assert_eq!(again, ["requested b1", "p1: no, says bob"]);
}

#[test]
fn a_dialog_that_vanished_is_withdrawn_once() {
    let mut story = asked(None);
    let gone = || Report::PromptGone("p1".into());
    assert_eq!(story.report(gone()).unwrap(), ["p1: withdrawn"]);
    assert_eq!(story.report(gone()), Ok(vec![]));
}

#[test]
fn a_dialog_that_vanished_after_its_answer_confirms_the_answer() {
    let mut story = asked(None);
    story.answer(&ada(), Some("a1"), "yes").unwrap();
    let gone = story.report(Report::PromptGone("p1".into())).unwrap();
    assert_eq!(gone, ["p1: confirmed", "settled a1: ok"]);
    assert_eq!(story.result("a1", None), nothing(), "the proxy's own answer comes too late");
}

#[test]
fn a_dialog_that_comes_back_after_it_was_settled_is_another_question() {
    let mut story = asked(Some((500, Some("no"))));
    story.wait_ms(500);
    story.result("expire:p1", None);
    assert_eq!(story.asked(prompt("p1", None)).unwrap(), ["asked p1"]);
}

// spec: native/limits.6
#[test]
fn one_question_more_than_the_bound_is_refused() {
    let mut story = Story::linked();
    for n in 0..PROMPTS_OPEN_MAX {
        story.asked(prompt(&format!("p{n}"), None)).unwrap();
    }
    let limit = PROMPTS_OPEN_MAX;
    assert_eq!(story.asked(prompt("late", None)), Err(Refusal::TooManyPrompts { limit }));
    assert_eq!(story.asked(prompt("p1", None)), Ok(vec![]), "a repeat needs no room");
    story.answer(&ada(), None, "yes").unwrap();
    assert_eq!(story.asked(prompt("late", None)).unwrap(), ["asked late"]);
}

#[test]
fn what_comes_with_an_answer_reaches_the_proxy() {
    use super::super::prompts::AnswerDetail;
    let detail = AnswerDetail { message: Some("use trash".to_owned()), ..AnswerDetail::default() };
    let detail = Some(Content::Open(detail));
    let mut story = asked(None);
    let wish = Wish::Answer {
        request: None,
        prompt: "p1".into(),
        choice: "no".into(),
        detail: detail.clone(),
    };
    story.wish(&ada(), wish).unwrap();
    let Order::Answer { detail: owed, .. } = story.session.owed().remove(0) else {
        panic!("no answer is owed")
    };
    assert_eq!(owed, detail);
}

/// `p1` is open: after how long it expires, and with which choice.
fn asked(expiry: Option<(u64, Option<&str>)>) -> Story {
    let mut story = Story::linked();
    story.asked(prompt("p1", expiry)).unwrap();
    story
}

// spec: native/permission_prompt_expired.1
#[test]
fn a_settled_question_is_not_on_the_card() {
    let mut story = asked(Some((500, None)));
    assert_eq!(open(&story), ["p1"]);
    story.wait_ms(500);
    assert_eq!(open(&story), nothing());
}

fn open(story: &Story) -> Vec<String> {
    story.session.card().prompts.iter().map(|prompt| prompt.id.to_string()).collect()
}
