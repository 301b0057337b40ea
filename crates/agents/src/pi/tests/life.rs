//! Starting, idling, dying and restarting.

use domain::content::Part;
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::runs::Outcome;
use domain::session::status::Health;
use serde_json::json;

use super::bench::{Bench, FILE, earlier, setup};
use crate::{Driver, Ended, Input, Order, Output, Setup};

#[test]
fn a_new_session_is_ready_when_pi_has_told_what_it_is() {
    let mut bench = Bench::of(Setup { model: Some("fake/fake-b".into()), ..setup("") });
    let program = bench.spawned().unwrap();
    assert_eq!(program.args[..3], ["--mode", "rpc", "--extension"]);
    assert!(program.args.ends_with(&["--model".to_owned(), "fake/fake-b".to_owned()]));
    assert_eq!(program.args[3], crate::Program::argument_of(&program.files[0].0));
    assert!(!bench.told.contains(&Output::Ready));
    bench.greet();
    assert!(bench.told.contains(&Output::Ready));
    let config = bench.config().unwrap();
    assert_eq!(config.model, "fake/fake-a".into());
    assert_eq!(config.available_models.as_ref().unwrap().len(), 2);
    assert_eq!(config.session_file.as_deref(), Some(super::bench::FILE));
    assert_eq!(config.permission_mode.as_deref(), Some("ask"));
    assert_eq!(config.can("images"), Some(true));
    assert!(bench.pi.is_at_rest());
}

#[test]
fn pi_without_the_gate_or_without_a_model_is_not_used() {
    let mut bench = Bench::of(setup(""));
    bench.tell_config("fake-a", "off");
    assert!(bench.unusable().unwrap().contains("permission"));
    assert!(bench.told.contains(&Output::End));
    let mut bench = Bench::of(setup(""));
    bench.hear(&json!({"type": "extension_ui_request", "id": "u", "method": "setStatus",
        "statusKey": "farhelm-gate"}));
    let none = json!({"id": "unknown", "provider": "unknown", "input": []});
    bench.answer("get_state", &json!({"sessionId": "s1", "model": none}));
    bench.answer("get_available_models", &json!({"models": []}));
    bench.refuse("get_available_thinking_levels", "Unknown command");
    bench.answer("get_commands", &json!({"commands": []}));
    assert!(bench.unusable().unwrap().contains("/login"));
}

#[test]
fn a_start_that_comes_to_nothing_is_told_with_what_pi_said() {
    let mut bench = Bench::of(setup(""));
    bench.input(Input::Complaint("node: bad option".to_owned()));
    bench.end(Ended::Exited(9));
    let words = bench.unusable().unwrap();
    assert!(words.contains("exit code 9") && words.contains("bad option"), "{words}");
    let mut bench = Bench::of(setup(""));
    bench.wait_ms(25_000);
    assert!(bench.unusable().is_some());
    let bench = Bench::of(Setup { mode: Some("plan".to_owned()), ..setup("") });
    assert!(bench.unusable().unwrap().contains("ask and yolo"));
    assert_eq!(bench.spawned(), None);
}

#[test]
fn a_session_that_was_ready_starts_pi_only_when_it_is_needed() {
    let bench = Bench::ready();
    let mut again = bench.again();
    assert_eq!(again.spawned(), None);
    assert!(matches!(again.reports()[..], [Report::Config(_), Report::Status { .. }]));
    again.deliver("m1", "hello", None);
    let args = &again.spawned().unwrap().args;
    let session = args.iter().position(|arg| arg == "--session").unwrap();
    assert_eq!(args[session + 1], FILE);
    assert!(again.written("prompt").is_none());
    again.greet();
    again.answer("get_entries", &json!({"entries": [], "leafId": "e1"}));
    assert_eq!(again.written("prompt").unwrap()["message"], "hello");
    assert!(!again.told.contains(&Output::Ready));
}

#[test]
fn a_session_rests_without_a_word_and_goes_on() {
    let mut bench = Bench::ready();
    bench.order(&Order::Rest);
    bench.end(Ended::Exited(0));
    assert_eq!(bench.told, [Output::End]);
    assert!(!bench.pi.is_at_rest());
    bench.deliver("m1", "hello", None);
    assert!(bench.spawned().is_some());
}

#[test]
fn an_agent_that_dies_ends_its_run_and_offers_to_go_on() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    bench.input(Input::Complaint("out of memory".to_owned()));
    bench.end(Ended::Killed(9));
    let Some(Outcome::Failed(reason)) = bench.outcome() else { panic!("no failure") };
    assert!(reason.contains("signal 9") && reason.contains("out of memory"), "{reason}");
    let degraded = bench.reports().into_iter().any(|report| {
        matches!(report, Report::Status { health: Health::Degraded, reason: Some(words), .. }
            if words.contains("Send a message to start it again"))
    });
    assert!(degraded);
    bench.told.clear();
    bench.deliver("m2", "again", None);
    assert!(bench.spawned().is_some());
    bench.greet();
    let is_well =
        |report: &&Report| matches!(report, Report::Status { health: Health::Healthy, .. });
    assert!(bench.reports().iter().any(is_well));
}

#[test]
fn a_resume_that_fails_fails_what_waited_for_it() {
    let mut again = Bench::ready().again();
    again.deliver("m1", "hello", None);
    again.end(Ended::Exited(1));
    assert_eq!(again.failed(), [("m1", "agent_not_open")]);
    assert!(again.unusable().is_none());
}

#[test]
fn an_earlier_conversation_is_imported_once() {
    let mut bench = Bench::of(earlier(false));
    assert!(bench.spawned().unwrap().args.contains(&"--session".to_owned()));
    bench.greet();
    assert!(bench.told.contains(&Output::Read(FILE.into())));
    assert!(!bench.told.contains(&Output::Ready));
    let text =
        r#"{"type":"message","id":"e1","parentId":null,"message":{"role":"user","content":"hi"}}"#;
    bench.input(Input::Read { path: FILE.into(), text: Some(text.to_owned()) });
    assert_eq!(bench.said(), ["hi"]);
    assert!(bench.told.contains(&Output::Ready));
    let mut again = Bench::of(Setup { notes: bench.notes.clone(), ..earlier(false) });
    again.deliver("m1", "hello", None);
    again.greet();
    assert!(!again.told.contains(&Output::Read(FILE.into())));
    let fork = Bench::of(earlier(true));
    assert!(fork.spawned().unwrap().args.contains(&"--fork".to_owned()));
}

#[test]
fn pictures_of_an_earlier_conversation_are_kept_before_the_launch_is_answered() {
    let mut bench = Bench::of(earlier(false));
    bench.greet();
    let text = json!({"type": "message", "id": "e1", "message": {"role": "user", "content": [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}});
    bench.input(Input::Read { path: FILE.into(), text: Some(text.to_string()) });
    assert!(!bench.told.contains(&Output::Ready));
    let message = "pi-e1-picture-1".into();
    bench.input(Input::Kept { message, outcome: Ok("upl_1".into()) });
    let shown = bench.reports().into_iter().any(|report| {
        matches!(report, Report::Message { message, .. }
            if matches!(message.parts.open().unwrap().as_slice(), [Part::Image(_)]))
    });
    assert!(shown && bench.told.contains(&Output::Ready));
}

#[test]
fn a_closed_session_ends_its_program_and_says_nothing_more() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    bench.control(Control::Close);
    assert_eq!(bench.outcome(), Some(Outcome::Interrupted));
    assert!(bench.told.contains(&Output::End));
    assert!(bench.reports().iter().any(|report| matches!(report, Report::Closed { .. })));
    bench.told.clear();
    bench.says("too late");
    bench.end(Ended::Exited(0));
    assert_eq!(bench.told, []);
}

#[test]
fn model_effort_and_mode_are_switched_and_remembered() {
    let mut bench = Bench::ready();
    bench.control(Control::SetModel("fake-b".into()));
    assert_eq!(bench.written("set_model").unwrap()["provider"], "fake");
    bench.answer("set_model", &json!({"id": "fake-b", "provider": "fake"}));
    bench.tell_config("fake-b", "off");
    bench.control(Control::SetEffort("high".to_owned()));
    bench.answer("set_thinking_level", &json!(null));
    bench.tell_config("fake-b", "high");
    bench.control(Control::SetMode("yolo".to_owned()));
    assert_eq!(bench.results(), [None, None, None]);
    let mut again = bench.again();
    let config = again.config().unwrap();
    assert_eq!(config.model, "fake/fake-b".into());
    assert_eq!(config.effort.as_deref(), Some("high"));
    assert_eq!(config.permission_mode.as_deref(), Some("yolo"));
    again.deliver("m1", "hello", None);
    let args = again.spawned().unwrap().args.join(" ");
    assert!(args.ends_with("--model fake/fake-b --thinking high"), "{args}");
}

#[test]
fn a_setting_that_pi_does_not_have_is_refused() {
    let mut bench = Bench::ready();
    bench.control(Control::SetModel("gpt-9".into()));
    bench.control(Control::SetMode("plan".to_owned()));
    bench.control(Control::SetEffort("max".to_owned()));
    let codes = ["model_not_available", "control_not_supported", "control_not_supported"];
    assert_eq!(bench.results(), codes.map(Some));
}
