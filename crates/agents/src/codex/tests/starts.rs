//! Starting, waking, idling, and earlier conversations.

use domain::content::{Author, Part};
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::status::Health;
use serde_json::json;

use super::bench::{Bench, THREAD, completed, delivered, failed, opened, request, setup};
use crate::{Driver, Earlier, Ended, Input, Order, Output, Setup};

#[test]
fn a_new_session_is_started_greeted_and_opened_in_its_workspace() {
    let mut bench = Bench::new(Setup {
        model: Some("fake-b".into()),
        mode: Some("read-only".to_owned()),
        ..setup("")
    });
    let told = bench.told();
    let Output::Spawn(program) = &told[0] else { panic!("{told:?}") };
    assert_eq!(
        (program.command.as_str(), program.args.as_slice()),
        ("codex", &["app-server".to_owned()][..])
    );
    bench.greet();
    let asked = bench.answer("thread/start", opened(THREAD));
    let expected = json!({
        "cwd": "/w", "model": "fake-b", "approvalPolicy": "on-request", "sandbox": "read-only",
    });
    assert_eq!(asked, expected);
    let told = bench.told();
    assert_eq!(told.last(), Some(&Output::Ready));
    let is_config = |output: &Output| matches!(output, Output::Report(Report::Config(_)));
    let is_status = |output: &Output| matches!(output, Output::Report(Report::Status { .. }));
    assert!(told.iter().any(is_config) && told.iter().any(is_status));
    assert!(bench.codex.is_at_rest());
}

#[test]
fn one_that_is_not_logged_in_says_how_to() {
    let mut bench = Bench::new(setup(""));
    bench.answer("initialize", json!({}));
    bench.answer("account/read", json!({ "account": null, "requiresOpenaiAuth": true }));
    let told = bench.told();
    let Some(Output::Unusable(failure)) = told.last() else { panic!("{told:?}") };
    assert!(failure.message.contains("codex login"), "{failure:?}");
    assert!(told.contains(&Output::End));
}

#[test]
fn one_that_ends_at_once_says_what_it_complained_about() {
    let mut bench = Bench::new(setup(""));
    bench.input(Input::Complaint("\u{1b}[31merror\u{1b}[0m: bad config".to_owned()));
    bench.input(Input::Ended(Ended::Exited(1)));
    let told = bench.told();
    let Some(Output::Unusable(failure)) = told.last() else { panic!("{told:?}") };
    assert_eq!(failure.code.as_str(), "agent_not_open");
    assert!(failure.message.contains("exit code 1\nerror: bad config"), "{failure:?}");
}

#[test]
fn one_that_never_answers_is_given_up_in_time() {
    let mut bench = Bench::new(setup(""));
    assert_eq!(bench.codex.deadline(), Some(bench.now.plus_ms(25_000)));
    bench.later(25_000);
    let told = bench.told();
    let Some(Output::Unusable(failure)) = told.last() else { panic!("{told:?}") };
    assert_eq!(failure.code.as_str(), "launch_timeout");
}

#[test]
fn a_mode_that_codex_does_not_have_is_refused_before_anything_starts() {
    let mut bench = Bench::new(Setup { mode: Some("yolo".to_owned()), ..setup("") });
    let told = bench.told();
    assert!(matches!(told.as_slice(), [Output::Unusable(_)]), "{told:?}");
}

#[test]
fn after_a_restart_nothing_is_started_until_it_is_needed() {
    let notes = Bench::running().notes;
    let mut bench = Bench::new(setup(&notes));
    let told = bench.told();
    assert!(
        matches!(
            told.as_slice(),
            [Output::Report(Report::Config(_)), Output::Report(Report::Status { .. })]
        ),
        "{told:?}"
    );
    bench.deliver("m2", "go on", None);
    assert!(matches!(bench.told()[0], Output::Spawn(_)));
    bench.greet();
    let asked = bench.answer("thread/resume", opened(THREAD));
    assert_eq!((&asked["threadId"], &asked["model"]), (&json!(THREAD), &json!("fake-a")));
    assert!(!bench.told().contains(&Output::Ready), "a launch is answered once");
    bench.answer("turn/start", json!({ "turn": { "id": "turn2" } }));
    bench.show("m2");
    assert_eq!(delivered(&bench.reports()), ["m2".into()]);
}

#[test]
fn a_thread_in_which_nothing_was_said_has_no_record_and_is_begun_again() {
    let notes = Bench::ready().notes;
    let mut bench = Bench::new(setup(&notes));
    bench.deliver("m1", "hello", None);
    bench.greet();
    bench.refuse("thread/resume", -32_600, "no rollout found for thread id t1");
    bench.answer("thread/start", opened("t2"));
    let asked = bench.answer("turn/start", json!({ "turn": { "id": "turn1" } }));
    assert_eq!(asked["threadId"], "t2");
    let item = json!({ "type": "agentMessage", "id": "a1" });
    bench.notify("item/started", json!({ "threadId": "t2", "turnId": "turn1", "item": item }));
    assert_eq!(delivered(&bench.reports()), ["m1".into()]);
    let mut bench = Bench::new(setup(&bench.notes));
    bench.deliver("m2", "hello", None);
    bench.greet();
    assert_eq!(bench.asked("thread/resume").unwrap()["params"]["threadId"], "t2");
}

#[test]
fn a_conversation_that_codex_lost_is_not_begun_again_in_silence() {
    let notes = Bench::running().notes;
    let mut bench = Bench::new(setup(&notes));
    bench.deliver("m2", "hello", None);
    bench.greet();
    bench.told();
    bench.refuse("thread/resume", -32_600, "no rollout found for thread id t1");
    let reports = bench.reports();
    let [Report::Notice(notice)] = reports.as_slice() else { panic!("{reports:?}") };
    assert!(notice.text.contains("no record"), "{notice:?}");
    bench.answer("thread/start", opened("t2"));
    assert!(bench.asked("turn/start").is_some());
}

#[test]
fn a_thread_that_cannot_be_opened_leaves_the_session_and_says_why() {
    let notes = Bench::running().notes;
    let mut bench = Bench::new(setup(&notes));
    bench.deliver("m2", "hello", None);
    bench.greet();
    bench.refuse("thread/resume", -32_000, "the disk is full");
    let reports = bench.reports();
    assert_eq!(failed(&reports), [("m2".into(), "agent_not_open".to_owned())]);
    let is_degraded = |report: &Report| {
        matches!(report, Report::Status { health: Health::Degraded, reason: Some(_), .. })
    };
    assert!(reports.iter().any(is_degraded));
}

#[test]
fn at_rest_the_program_ends_and_the_next_order_goes_on() {
    let mut bench = Bench::running();
    assert!(!bench.codex.is_at_rest());
    bench.notify("turn/completed", completed("completed"));
    assert!(bench.codex.is_at_rest());
    bench.told();
    bench.order(&Order::Rest);
    assert_eq!(bench.told(), [Output::End]);
    bench.input(Input::Ended(Ended::Exited(0)));
    assert_eq!(bench.told(), [], "an end that was wished for is not told");
    bench.order(&Order::Control {
        request: request("r1"),
        control: Control::SetModel("fake-b".into()),
    });
    bench.greet();
    bench.answer("thread/resume", opened(THREAD));
    let asked = bench.answer("thread/settings/update", json!({}));
    assert_eq!((&asked["threadId"], &asked["model"]), (&json!(THREAD), &json!("fake-b")));
    let done = Report::ControlResult { request: request("r1"), failure: None };
    assert!(bench.reports().contains(&done));
}

#[test]
fn settings_are_told_and_kept_for_the_next_start() {
    let mut bench = Bench::ready();
    let control = Control::SetMode("full-access".to_owned());
    bench.order(&Order::Control { request: request("r1"), control });
    let asked = bench.answer("thread/settings/update", json!({}));
    assert_eq!(asked["approvalPolicy"], "never");
    assert_eq!(asked["sandboxPolicy"], json!({ "type": "dangerFullAccess" }));
    bench.notify(
        "thread/settings/updated",
        json!({ "threadId": THREAD, "threadSettings": {
            "model": "fake-a", "modelProvider": "fake", "effort": "high",
            "approvalPolicy": "never", "sandboxPolicy": { "type": "dangerFullAccess" },
        } }),
    );
    let reports = bench.reports();
    let config = reports.iter().find_map(|report| match report {
        Report::Config(config) => Some(config),
        _ => None,
    });
    let config = config.unwrap();
    assert_eq!(config.permission_mode.as_deref(), Some("full-access"));
    assert_eq!(config.effort.as_deref(), Some("high"));
    let mut next = Bench::new(setup(&bench.notes));
    next.deliver("m1", "hello", None);
    next.greet();
    let asked = next.asked("thread/resume").unwrap()["params"].clone();
    assert_eq!(
        (&asked["approvalPolicy"], &asked["sandbox"]),
        (&json!("never"), &json!("danger-full-access"))
    );
    assert_eq!(asked["config"]["model_reasoning_effort"], "high");
}

#[test]
fn an_earlier_conversation_is_told_once_in_its_order_before_the_launch_is_answered() {
    let earlier = Earlier { id: "old".to_owned(), file: None, fork: true };
    let mut bench = Bench::new(Setup { earlier: Some(earlier.clone()), ..setup("") });
    bench.greet();
    let asked = bench.answer("thread/fork", opened("t9"));
    assert_eq!((&asked["threadId"], &asked["excludeTurns"]), (&json!("old"), &json!(true)));
    let item = |item| json!({ "turnId": "x", "item": item });
    let asked = bench.answer(
        "thread/items/list",
        json!({ "nextCursor": "c1", "data": [
            item(json!({ "type": "agentMessage", "id": "a1", "text": "done" })),
            item(json!({ "type": "commandExecution", "id": "call1", "command": "ls", "status": "completed" })),
        ] }),
    );
    assert_eq!((&asked["threadId"], &asked["sortDirection"]), (&json!("t9"), &json!("desc")));
    assert!(!bench.told().contains(&Output::Ready));
    let asked = bench.answer(
        "thread/items/list",
        json!({ "nextCursor": null, "data": [
            item(json!({ "type": "userMessage", "id": "u1", "startedAtMs": 5,
                "content": [{ "type": "text", "text": "list" }] })),
        ] }),
    );
    assert_eq!(asked["cursor"], "c1");
    let told = bench.told();
    assert_eq!(told.last(), Some(&Output::Ready));
    let seen: Vec<_> = told
        .iter()
        .filter_map(|output| match output {
            Output::Report(Report::Message { message, has_own_id: true, .. }) => {
                Some(message.id.as_str())
            }
            Output::Report(Report::ToolCall(call)) => Some(call.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(seen, ["u1", "call1", "a1"]);
    let first = told.iter().find_map(|output| match output {
        Output::Report(Report::Message { message, .. }) => Some(message),
        _ => None,
    });
    let first = first.unwrap();
    assert_eq!((first.author, first.created_at.0), (Author::User, 5));
    assert_eq!(first.parts.open(), Some(&vec![Part::Text("list".to_owned())]));
    let mut next = Bench::new(Setup { earlier: Some(earlier), ..setup(&bench.notes) });
    next.deliver("m1", "go on", None);
    next.greet();
    next.answer("thread/resume", opened("t9"));
    assert!(next.asked("thread/items/list").is_none(), "told once");
    assert!(next.asked("turn/start").is_some());
}

#[test]
fn pictures_of_an_earlier_conversation_are_kept_before_the_launch_is_answered() {
    let earlier = Earlier { id: "old".to_owned(), file: None, fork: false };
    let mut bench = Bench::new(Setup { earlier: Some(earlier), ..setup("") });
    bench.greet();
    bench.answer("thread/resume", opened("old"));
    let url = "data:image/png;base64,AAAA";
    bench.answer(
        "thread/items/list",
        json!({ "nextCursor": null, "data": [
            { "item": { "type": "imageGeneration", "id": "g1", "status": "completed", "result": "BBBB" } },
            { "item": { "type": "userMessage", "id": "u1", "content": [
                { "type": "text", "text": "see" }, { "type": "image", "url": url }] } },
        ] }),
    );
    let kept = |told: &[Output]| match told {
        [.., Output::Keep(picture)] => picture.message.clone(),
        _ => panic!("{told:?}"),
    };
    let first = kept(&bench.told());
    assert_eq!(first, "u1-picture-1".into());
    bench.input(Input::Kept { message: first, outcome: Ok("upl_1".into()) });
    let told = bench.told();
    assert!(format!("{:?}", told[0]).contains("Image(Attachment"), "{told:?}");
    let second = kept(&told);
    assert_eq!(second, "g1-pictures-picture-1".into());
    bench.input(Input::Kept { message: second, outcome: Ok("upl_2".into()) });
    assert_eq!(bench.told().last(), Some(&Output::Ready));
}

#[test]
fn a_server_without_pages_tells_the_conversation_whole() {
    let earlier = Earlier { id: "old".to_owned(), file: None, fork: false };
    let mut bench = Bench::new(Setup { earlier: Some(earlier), ..setup("") });
    bench.greet();
    bench.answer("thread/resume", opened("old"));
    bench.refuse("thread/items/list", -32_601, "thread/items/list is not supported yet");
    bench.answer(
        "thread/read",
        json!({ "thread": { "id": "old", "turns": [
        { "id": "x", "items": [{ "type": "agentMessage", "id": "a1", "text": "hi" }] },
    ] } }),
    );
    let told = bench.told();
    assert!(told.iter().any(|output| matches!(output, Output::Report(Report::Message { .. }))));
    assert_eq!(told.last(), Some(&Output::Ready));
}

#[test]
fn closing_ends_the_program_and_whatever_waited() {
    let mut bench = Bench::running();
    bench.deliver("m2", "later", None);
    bench.told();
    bench.order(&Order::Control { request: request("r1"), control: Control::Close });
    let told = bench.told();
    assert!(told.contains(&Output::End));
    assert!(matches!(told.last(), Some(Output::Report(Report::Closed { request: Some(_), .. }))));
    let reports: Vec<_> = told
        .into_iter()
        .filter_map(|output| match output {
            Output::Report(report) => Some(report),
            _ => None,
        })
        .collect();
    assert_eq!(failed(&reports), [("m2".into(), "session_closed".to_owned())]);
    bench.deliver("m3", "too late", None);
    assert_eq!(bench.told(), []);
}
