//! Messages, runs, and what remains when the program dies.

use domain::session::Report;
use domain::session::controls::Control;
use domain::session::delivery::Mode;
use domain::session::runs::Outcome;
use domain::session::status::Health;
use domain::{RunId, Sequence};
use serde_json::json;

use super::bench::{
    Bench, THREAD, TURN, completed, delivered, failed, of_item, opened, request, setup,
};
use crate::{Driver, Lookup, Order, Output, run_id, uuid_of};

fn outcome(reports: &[Report]) -> Option<Outcome> {
    reports.iter().find_map(|report| match report {
        Report::RunEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    })
}

fn interrupt(name: &str) -> Order {
    Order::Control { request: request(name), control: Control::Interrupt { run: None } }
}

fn done(name: &str) -> Report {
    Report::ControlResult { request: request(name), failure: None }
}

#[test]
fn a_message_is_delivered_when_codex_shows_it_under_an_id_that_it_keeps() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    let asked = bench.answer("turn/start", json!({ "turn": { "id": TURN } }));
    let client = uuid_of(&"s1".into(), &"m1".into(), Sequence(7));
    assert_eq!(asked["clientUserMessageId"], client);
    assert_eq!(asked["input"], json!([{ "type": "text", "text": "hello" }]));
    assert_eq!(delivered(&bench.reports()), [], "Codex would forget it if it were killed now");
    bench.show("m1");
    let reports = bench.reports();
    let run = run_id(&"m1".into(), Sequence(7));
    let started = Report::RunStarted { run, cause: Some("m1".into()) };
    assert_eq!(delivered(&reports), ["m1".into()]);
    assert!(reports.contains(&started));
    let is_message = |report: &Report| matches!(report, Report::Message { .. });
    assert!(!reports.iter().any(is_message), "what came from here is not told back");
}

#[test]
fn a_turn_that_ends_before_it_shows_anything_had_the_message_nevertheless() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.answer("turn/start", json!({ "turn": { "id": TURN } }));
    bench.notify("turn/completed", completed("failed"));
    let reports = bench.reports();
    assert_eq!(delivered(&reports), ["m1".into()]);
    assert!(matches!(outcome(&reports), Some(Outcome::Failed(_))));
}

#[test]
fn a_message_that_codex_took_and_did_not_show_before_it_died_is_looked_up() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.answer("turn/start", json!({ "turn": { "id": TURN } }));
    bench.told();
    bench.die();
    let reports = bench.reports();
    assert_eq!((delivered(&reports).len(), failed(&reports).len()), (0, 0), "nobody knows yet");
    bench.greet();
    bench.refuse("thread/resume", -32_600, "no rollout found for thread id t1");
    bench.answer("thread/start", opened("t2"));
    assert_eq!(failed(&bench.reports()), [("m1".into(), "agent_not_open".to_owned())]);
}

#[test]
fn a_record_that_codex_had_only_begun_is_none() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.answer("turn/start", json!({ "turn": { "id": TURN } }));
    bench.told();
    bench.die();
    bench.greet();
    bench.refuse("thread/resume", -32_603, "failed to read thread: rollout at /r.jsonl is empty");
    assert!(bench.asked("thread/start").is_some(), "a new one is begun");
}

#[test]
fn a_message_that_codex_refuses_failed_and_the_next_one_goes() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.refuse("turn/start", -32_600, "no");
    assert_eq!(failed(&bench.reports()), [("m1".into(), "send_rejected".to_owned())]);
    bench.deliver("m2", "hello", None);
    assert!(bench.asked("turn/start").is_some());
}

#[test]
fn a_steering_message_joins_the_run_and_any_other_waits_for_its_end() {
    let mut bench = Bench::running();
    bench.deliver("m2", "later", Some(Mode::FollowUp));
    bench.deliver("m3", "now", Some(Mode::Steer));
    assert!(bench.asked("turn/start").is_none(), "never a second turn beside the first");
    bench.told();
    let asked = bench.answer("turn/steer", json!({ "turnId": TURN }));
    assert_eq!(asked["expectedTurnId"], TURN);
    assert_eq!(delivered(&bench.reports()), [], "Codex may still drop it");
    bench.show("m3");
    let steered = Report::SendDelivered {
        id: "m3".into(),
        attempt: Some(Sequence(7)),
        run: Some(run_id(&"m1".into(), Sequence(7))),
    };
    assert!(bench.reports().contains(&steered));
    bench.notify("turn/completed", completed("completed"));
    let asked = bench.answer("turn/start", json!({ "turn": { "id": "turn2" } }));
    bench.show("m2");
    assert_eq!(asked["input"][0]["text"], "later");
    assert_eq!(delivered(&bench.reports()), ["m2".into()]);
}

#[test]
fn steering_that_codex_drops_failed_after_an_interrupt_and_begins_a_run_otherwise() {
    let steered = || {
        let mut bench = Bench::running();
        bench.deliver("m2", "now", Some(Mode::Steer));
        bench.answer("turn/steer", json!({ "turnId": TURN }));
        bench.told();
        bench
    };
    let mut bench = steered();
    bench.notify("turn/completed", completed("interrupted"));
    assert_eq!(failed(&bench.reports()), [("m2".into(), "send_rejected".to_owned())]);
    assert!(bench.asked("turn/start").is_none());
    let mut bench = steered();
    bench.notify("turn/completed", completed("failed"));
    assert_eq!(failed(&bench.reports()), []);
    assert_eq!(bench.asked("turn/start").unwrap()["params"]["input"][0]["text"], "now");
    let mut bench = steered();
    bench.die();
    bench.greet();
    bench.answer("thread/resume", opened(THREAD));
    assert!(bench.asked("thread/items/list").is_some(), "it is looked up");
}

#[test]
fn steering_that_comes_too_late_begins_a_run_of_its_own() {
    let mut bench = Bench::running();
    bench.deliver("m2", "now", Some(Mode::Steer));
    bench.notify("turn/completed", completed("completed"));
    bench.told();
    bench.refuse("turn/steer", -32_600, "no active turn to steer");
    assert_eq!(failed(&bench.reports()), []);
    assert_eq!(bench.asked("turn/start").unwrap()["params"]["input"][0]["text"], "now");
}

#[test]
fn an_interrupt_is_done_when_the_turn_has_ended() {
    let mut bench = Bench::running();
    bench.told();
    bench.order(&interrupt("r1"));
    let asked = bench.answer("turn/interrupt", json!({}));
    assert_eq!(asked, json!({ "threadId": THREAD, "turnId": TURN }));
    assert!(!bench.reports().contains(&done("r1")));
    bench.notify("turn/completed", completed("interrupted"));
    let reports = bench.reports();
    assert!(reports.contains(&done("r1")));
    assert_eq!(outcome(&reports), Some(Outcome::Interrupted));
}

#[test]
fn an_interrupt_before_the_turn_has_a_name_is_passed_on_with_it() {
    let mut bench = Bench::ready();
    bench.deliver("m1", "hello", None);
    bench.order(&interrupt("r1"));
    assert!(bench.asked("turn/interrupt").is_none());
    bench.answer("turn/start", json!({ "turn": { "id": TURN } }));
    assert!(bench.asked("turn/interrupt").is_some());
}

#[test]
fn a_turn_that_does_not_stop_is_ended_with_the_program() {
    let mut bench = Bench::running();
    bench.order(&interrupt("r1"));
    bench.told();
    bench.later(9_999);
    assert_eq!(bench.told(), []);
    bench.later(1);
    assert!(bench.told().contains(&Output::End));
    bench.die();
    let reports = bench.reports();
    assert!(reports.contains(&done("r1")));
    assert_eq!(outcome(&reports), Some(Outcome::Interrupted));
}

#[test]
fn a_command_that_outlives_its_interrupted_run_is_stopped_and_others_are_not() {
    let mut bench = Bench::running();
    bench.notify("item/started", of_item(json!({
        "type": "commandExecution", "id": "call1", "command": "sleep 99", "status": "inProgress",
    })));
    bench.order(&interrupt("r1"));
    bench.notify("turn/completed", completed("interrupted"));
    bench.answer(
        "thread/backgroundTerminals/list",
        json!({ "data": [
        { "itemId": "call0", "processId": "1" },
        { "itemId": "call1", "processId": "2" },
    ] }),
    );
    let asked = bench.asked("thread/backgroundTerminals/terminate").unwrap();
    assert_eq!(asked["params"]["processId"], "2");
    assert!(bench.asked("thread/backgroundTerminals/terminate").is_none());
}

#[test]
fn nothing_is_interrupted_where_nothing_runs() {
    let mut bench = Bench::ready();
    bench.order(&interrupt("r1"));
    let reports = bench.reports();
    let [Report::ControlResult { failure: Some(failure), .. }] = reports.as_slice() else {
        panic!("{reports:?}");
    };
    assert_eq!(failure.code.as_str(), "agent_not_active");
}

#[test]
fn a_turn_that_codex_begins_itself_is_a_run_without_a_cause() {
    let mut bench = Bench::ready();
    bench.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": "own" } }));
    let started = Report::RunStarted { run: RunId::from("run-own"), cause: None };
    assert!(bench.reports().contains(&started));
}

#[test]
fn a_run_says_what_it_took_and_a_failed_one_why() {
    let mut bench = Bench::running();
    let tokens = |total: u64, last: u64| {
        json!({ "threadId": THREAD, "turnId": TURN, "tokenUsage": {
            "total": { "totalTokens": total, "inputTokens": total, "outputTokens": 0 },
            "last": { "totalTokens": last, "inputTokens": last, "outputTokens": 0 },
            "modelContextWindow": 1_000,
        } })
    };
    bench.notify("thread/tokenUsage/updated", tokens(110, 10));
    bench.notify("thread/tokenUsage/updated", tokens(110, 10));
    bench.notify("thread/tokenUsage/updated", tokens(130, 20));
    let error = r#"{"error": {"message": "scripted failure"}}"#;
    bench.notify(
        "turn/completed",
        json!({ "threadId": THREAD, "turn": {
        "id": TURN, "status": "failed", "error": { "message": error },
    } }),
    );
    let reports = bench.reports();
    let ended = reports.iter().find_map(|report| match report {
        Report::RunEnded { outcome, usage, .. } => Some((outcome, usage.as_ref()?.input_tokens)),
        _ => None,
    });
    assert_eq!(ended, Some((&Outcome::Failed("scripted failure".to_owned()), Some(30))));
}

#[test]
fn a_crash_ends_the_run_and_the_next_message_starts_codex_again() {
    let mut bench = Bench::running();
    bench.deliver("m2", "later", Some(Mode::FollowUp));
    bench.told();
    bench.die();
    let reports = bench.reports();
    assert!(matches!(outcome(&reports), Some(Outcome::Failed(_))));
    let degraded = reports.iter().find_map(|report| match report {
        Report::Status { health: Health::Degraded, reason, .. } => reason.clone(),
        _ => None,
    });
    assert!(degraded.unwrap().contains("Send a message to start it again"));
    assert_eq!(failed(&reports), [("m2".into(), "agent_not_open".to_owned())]);
    bench.deliver("m3", "again", None);
    bench.greet();
    bench.answer("thread/resume", opened(THREAD));
    bench.answer("turn/start", json!({ "turn": { "id": "turn2" } }));
    bench.show("m3");
    let reports = bench.reports();
    assert_eq!(delivered(&reports), ["m3".into()]);
    let is_healthy =
        |report: &Report| matches!(report, Report::Status { health: Health::Healthy, .. });
    assert!(reports.iter().any(is_healthy));
}

/// The program died with `m2` unanswered, and was started again to look it up.
fn doubting() -> Bench {
    let mut bench = Bench::running();
    bench.notify("turn/completed", completed("completed"));
    bench.deliver("m2", "hello", None);
    bench.die();
    assert_eq!(failed(&bench.reports()), [], "nobody knows yet");
    bench.greet();
    bench.answer("thread/resume", opened(THREAD));
    bench.told();
    bench
}

#[test]
fn a_message_that_died_unanswered_is_looked_up() {
    let mut bench = doubting();
    let client = uuid_of(&"s1".into(), &"m2".into(), Sequence(7));
    bench.answer(
        "thread/items/list",
        json!({ "nextCursor": null, "data": [
        { "item": { "type": "userMessage", "id": "u2", "clientId": client } },
    ] }),
    );
    assert_eq!(delivered(&bench.reports()), ["m2".into()]);
    let mut bench = doubting();
    bench.answer("thread/items/list", json!({ "nextCursor": null, "data": [] }));
    assert_eq!(failed(&bench.reports()), [("m2".into(), "agent_not_open".to_owned())]);
    let mut bench = doubting();
    bench.die();
    assert_eq!(failed(&bench.reports()), [("m2".into(), "delivery_unknown".to_owned())]);
    assert!(bench.asked("initialize").is_none(), "it is not tried for ever");
}

fn looked_up(bench: &mut Bench) -> Option<Lookup> {
    bench.told().into_iter().find_map(|output| match output {
        Output::LookedUp { found, .. } => Some(found),
        _ => None,
    })
}

#[test]
fn a_look_up_pages_through_the_record_until_it_knows() {
    let notes = Bench::running().notes;
    let order = Order::LookUp { id: "m1".into(), attempt: Sequence(7) };
    let mut bench = Bench::new(setup(&notes));
    bench.order(&order);
    bench.greet();
    bench.answer("thread/resume", opened(THREAD));
    bench.answer(
        "thread/items/list",
        json!({ "nextCursor": "c1", "data": [
        { "item": { "type": "userMessage", "id": "u9", "clientId": "another" } },
    ] }),
    );
    assert_eq!(looked_up(&mut bench), None);
    let asked = bench.answer("thread/items/list", json!({ "nextCursor": null, "data": [] }));
    assert_eq!(asked["cursor"], "c1");
    assert_eq!(looked_up(&mut bench), Some(Lookup::Absent));
    bench.order(&order);
    bench.refuse("thread/items/list", -32_601, "thread/items/list is not supported yet");
    let client = uuid_of(&"s1".into(), &"m1".into(), Sequence(7));
    bench.answer(
        "thread/read",
        json!({ "thread": { "id": THREAD, "turns": [
        { "id": TURN, "items": [{ "type": "userMessage", "id": "u1", "clientId": client }] },
    ] } }),
    );
    assert_eq!(looked_up(&mut bench), Some(Lookup::Found));
    bench.order(&order);
    bench.refuse("thread/items/list", -32_000, "the disk is full");
    assert_eq!(looked_up(&mut bench), Some(Lookup::Unknown));
}

#[test]
fn what_was_never_said_to_a_thread_without_a_record_is_absent() {
    let notes = Bench::ready().notes;
    let mut bench = Bench::new(setup(&notes));
    bench.order(&Order::LookUp { id: "m1".into(), attempt: Sequence(7) });
    bench.greet();
    bench.refuse("thread/resume", -32_600, "no rollout found for thread id t1");
    bench.answer("thread/start", opened("t2"));
    assert_eq!(looked_up(&mut bench), Some(Lookup::Absent));
}

#[test]
fn what_was_said_to_a_thread_whose_record_is_lost_is_unknown() {
    let notes = Bench::running().notes;
    let mut bench = Bench::new(setup(&notes));
    bench.order(&Order::LookUp { id: "m2".into(), attempt: Sequence(7) });
    bench.greet();
    bench.refuse("thread/resume", -32_600, "no rollout found for thread id t1");
    bench.answer("thread/start", opened("t2"));
    assert_eq!(looked_up(&mut bench), Some(Lookup::Unknown));
}

#[test]
fn a_look_up_without_a_program_is_unknown() {
    let notes = Bench::running().notes;
    let mut bench = Bench::new(setup(&notes));
    bench.order(&Order::LookUp { id: "m1".into(), attempt: Sequence(7) });
    bench.die();
    assert_eq!(looked_up(&mut bench), Some(Lookup::Unknown));
    assert!(!bench.codex.is_at_rest());
}
