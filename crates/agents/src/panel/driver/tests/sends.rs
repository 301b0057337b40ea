//! Sends, their echoes, and runs.

use domain::session::runs::Outcome as RunOutcome;

use super::*;
use crate::Lookup;

fn failure_of(bench: &Bench, id: &str) -> Option<String> {
    bench.reports().into_iter().find_map(|report| match report {
        Report::SendFailed { id: of, failure, .. } if of.as_str() == id => {
            Some(failure.code.as_str().to_owned())
        }
        _ => None,
    })
}

fn is_delivered(bench: &Bench, id: &str) -> bool {
    let is_it = |report: &&Report| match report {
        Report::SendDelivered { id: of, run, .. } => of.as_str() == id && run.is_some(),
        _ => false,
    };
    bench.reports().iter().any(is_it)
}

fn runs(bench: &Bench) -> (usize, usize) {
    let reports = bench.reports();
    let count = |is_it: fn(&&&Report) -> bool| reports.iter().filter(is_it).count();
    (
        count(|report| matches!(report, Report::RunStarted { .. })),
        count(|report| matches!(report, Report::RunEnded { .. })),
    )
}

#[test]
fn a_send_is_noted_typed_and_delivered_and_its_row_is_no_second_message() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "mend **it**");
    let noted = bench.told.iter().position(|output| matches!(output, Output::Remember(_)));
    let asked = bench.told.iter().position(|output| matches!(output, Output::Panel(_)));
    assert!(noted.unwrap() < asked.unwrap());
    let text = "mend **it**".to_owned();
    assert_eq!(bench.tasks(), [&Task::Send { text, images: vec![] }]);
    assert!(!is_delivered(&bench, "m1"));
    bench.sent();
    assert!(is_delivered(&bench, "m1"));
    bench.show_busy(&[("user", "mend it")]);
    bench.show(&[("user", "mend it"), ("assistant", "Mended.")]);
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["agent: Mended."]);
    assert_eq!(runs(&bench), (1, 1));
}

#[test]
fn a_row_that_begins_with_the_panels_own_habit_is_still_the_sends() {
    for rows_first in [false, true] {
        let mut bench = Bench::attached_as("vscode-chat");
        bench.deliver("m1", "hi");
        if rows_first {
            bench.show_busy(&[("user", "@script hi")]);
        }
        bench.sent();
        bench.show(&[("user", "@script hi"), ("assistant", "Hello.")]);
        bench.pass(2_000);
        assert_eq!(bench.messages(), ["agent: Hello."], "row first: {rows_first}");
    }
}

#[test]
fn an_answer_that_is_quicker_than_the_word_of_delivery_is_told_after_it() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "hi");
    bench.show_busy(&[("user", "hi")]);
    bench.show(&[("user", "hi"), ("assistant", "Hello.")]);
    bench.pass(2_000);
    assert_eq!(bench.messages(), Vec::<String>::new());
    bench.sent();
    bench.pass(2_000);
    let reports = bench.reports();
    let delivered = reports.iter().position(|it| matches!(it, Report::SendDelivered { .. }));
    let message = reports.iter().position(|it| matches!(it, Report::Message { .. }));
    assert!(delivered.unwrap() < message.unwrap(), "{reports:?}");
    assert_eq!(bench.messages(), ["agent: Hello."]);
    assert_eq!(runs(&bench), (1, 1));
}

#[test]
fn a_row_is_no_evidence_of_delivery_and_a_failed_sends_row_is_told_as_what_it_is() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "hi there");
    bench.show(&[("user", "hi there")]);
    bench.pass(1_000);
    assert!(!is_delivered(&bench, "m1"));
    let failure = Failure::new("delivery_unknown", "nobody can tell");
    bench.done(|task| matches!(task, Task::Send { .. }), Err(failure));
    assert_eq!(failure_of(&bench, "m1").as_deref(), Some("delivery_unknown"));
    assert_eq!(bench.messages(), ["user: hi there"]);
}

#[test]
fn a_second_send_waits_until_the_run_is_over() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "one");
    bench.deliver("m2", "two");
    bench.sent();
    bench.show_busy(&[("user", "one")]);
    bench.pass(5_000);
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    bench.show(&[("user", "one"), ("assistant", "1")]);
    bench.pass(2_000);
    assert_eq!(bench.tasks().len(), 1);
}

#[test]
fn a_send_waits_for_a_run_that_somebody_began_in_the_panel() {
    let mut bench = Bench::attached();
    bench.show_busy(&[("user", "typed there")]);
    bench.deliver("m1", "one");
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    bench.push(json!({}));
    bench.pass(2_000);
    assert_eq!(bench.tasks().len(), 1);
    assert_eq!(bench.messages(), ["user: typed there"]);
}

#[test]
fn an_agent_that_shows_no_sign_of_work_ends_its_run_after_a_while() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "one");
    bench.sent();
    bench.pass(5_000);
    assert_eq!(runs(&bench), (1, 0));
    bench.pass(6_000);
    assert_eq!(runs(&bench), (1, 1));
}

#[test]
fn nothing_is_typed_into_a_panel_that_looks_otherwise() {
    let mut bench = Bench::attached();
    let without = json!({"composer": null, "landmarks": {"scope": 0, "send": 0, "model": 0}});
    bench.push(without.clone());
    bench.deliver("m1", "one");
    assert_eq!(bench.tasks(), Vec::<&Task>::new(), "it waits for what it turns out to be");
    for _ in 0..3 {
        bench.pass(4_000);
        bench.push(without.clone());
    }
    assert_eq!(bench.last_health().unwrap().0, Health::AgentUiChanged);
    assert_eq!(failure_of(&bench, "m1").as_deref(), Some("selector_failure"));
    bench.deliver("m2", "two");
    assert_eq!(failure_of(&bench, "m2").as_deref(), Some("selector_failure"));
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    bench.push(json!({}));
    bench.deliver("m3", "three");
    assert_eq!(bench.tasks().len(), 1, "it is as it was");
}

#[test]
fn a_send_waits_a_little_for_the_model_of_a_panel_that_just_appeared() {
    let mut bench = Bench::attached();
    bench.push(json!({"model": null, "landmarks": {"scope": 0, "composer": 0, "send": 0}}));
    bench.deliver("m1", "one");
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    bench.push(json!({}));
    assert_eq!(bench.tasks().len(), 1, "it is there");
    let mut bench = Bench::attached();
    bench.push(json!({"model": null, "landmarks": {"scope": 0, "composer": 0, "send": 0}}));
    bench.deliver("m1", "one");
    bench.pass(9_000);
    assert_eq!(bench.tasks().len(), 1, "there may be none to read");
}

#[test]
fn a_send_waits_longer_for_the_model_where_nothing_is_taken_without() {
    let without = json!({"model": null, "landmarks": {"scope": 0, "composer": 0, "send": 0}});
    let mut bench = Bench::attached_as("opencode-web");
    bench.push(without);
    bench.deliver("m1", "one");
    bench.pass(50_000);
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    bench.pass(11_000);
    assert_eq!(bench.tasks().len(), 1, "its name may stand elsewhere by now");
}

#[test]
fn where_nothing_is_taken_without_a_model_it_has_to_be_there_for_a_while() {
    let without = json!({"model": null, "landmarks": {"scope": 0, "composer": 0, "send": 0}});
    let mut bench = Bench::attached_as("opencode-web");
    bench.push(without.clone());
    bench.deliver("m1", "one");
    bench.push(json!({}));
    bench.pass(2_000);
    assert_eq!(bench.tasks(), Vec::<&Task>::new(), "its page is still being put together");
    bench.pass(1_500);
    assert_eq!(bench.tasks().len(), 1);
    // Long after it appeared, its model comes and goes with its questions.
    let mut bench = Bench::attached_as("opencode-web");
    bench.pass(60_000);
    bench.push(without);
    bench.push(json!({}));
    bench.deliver("m1", "one");
    assert_eq!(bench.tasks().len(), 1);
}

#[test]
fn a_send_to_a_login_page_fails_with_what_to_do() {
    let mut bench = Bench::attached();
    bench.push(json!({"waiting": "Log in to Claude", "composer": null, "landmarks": {"scope": 0}}));
    bench.deliver("m1", "one");
    assert_eq!(failure_of(&bench, "m1").as_deref(), Some("agent_not_active"));
}

#[test]
fn a_send_waits_a_little_for_a_panel_that_is_being_loaded_again() {
    let mut bench = Bench::attached();
    bench.news(News::Gone { reason: "reloaded".to_owned(), is_closed: false });
    bench.deliver("m1", "one");
    bench.pass(5_000);
    bench.epoch += 1;
    bench.n = 0;
    bench.attach();
    bench.push(json!({}));
    assert_eq!(bench.tasks().len(), 1);
    bench.sent();
    bench.show(&[("user", "one"), ("assistant", "1")]);
    bench.pass(12_000);
    bench.news(News::Gone { reason: "gone".to_owned(), is_closed: false });
    bench.deliver("m2", "two");
    bench.pass(20_000);
    assert_eq!(failure_of(&bench, "m2").as_deref(), Some("agent_not_open"));
}

#[test]
fn a_typing_that_nobody_answers_for_is_unknown() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "one");
    bench.pass(130_000);
    assert_eq!(failure_of(&bench, "m1").as_deref(), Some("delivery_unknown"));
}

#[test]
fn after_a_crash_what_was_noted_is_unknown_and_the_rest_was_never_typed() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "one");
    let mut again = bench.restart();
    again.take();
    for id in ["m1", "m2"] {
        again.order(Order::LookUp { id: id.into(), attempt: Sequence(1) });
    }
    let found: Vec<_> = again
        .told
        .iter()
        .filter_map(|output| match output {
            Output::LookedUp { found, .. } => Some(*found),
            _ => None,
        })
        .collect();
    assert_eq!(found, [Lookup::Unknown, Lookup::Absent]);
}

#[test]
fn the_echo_of_a_send_is_recognised_after_a_restart() {
    let mut bench = Bench::attached();
    bench.deliver("m1", "mend it");
    bench.sent();
    let mut again = bench.restart();
    again.show(&[("user", "mend it"), ("assistant", "Mended.")]);
    again.pass(2_000);
    assert_eq!(again.messages(), ["agent: Mended."]);
    // The same words again are somebody's at the machine.
    again.show(&[("user", "mend it"), ("assistant", "Mended."), ("user", "mend it")]);
    assert_eq!(again.messages(), ["agent: Mended.", "user: mend it"]);
}

#[test]
fn a_run_is_stopped_by_its_button_and_ends_as_interrupted() {
    let mut bench = Bench::attached();
    bench.control("r0", Control::Interrupt { run: None });
    bench.show_busy(&[("user", "go"), ("assistant", "On")]);
    bench.control("r1", Control::Interrupt { run: None });
    bench.done(|task| *task == Task::Stop, Ok(Done::Plainly));
    bench.push(json!({}));
    bench.pass(2_000);
    let results: Vec<_> = bench
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::ControlResult { request, failure } => Some((
                request.as_str().to_owned(),
                failure.as_ref().map(|failure| failure.code.as_str().to_owned()),
            )),
            _ => None,
        })
        .collect();
    let not_active = Some("agent_not_active".to_owned());
    assert_eq!(results, [("r0".to_owned(), not_active), ("r1".to_owned(), None)]);
    let interrupted = |report: &&Report| {
        matches!(report, Report::RunEnded { outcome: RunOutcome::Interrupted, .. })
    };
    assert!(bench.reports().iter().any(interrupted));
    assert_eq!(bench.messages(), ["user: go", "agent: On"]);
}
