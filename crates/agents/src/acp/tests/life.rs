//! Launch, settings, interrupt, crash, rest, close.

use super::*;
use domain::session::status::Health;

#[test]
fn a_new_session_is_ready_after_the_handshake_and_tells_what_it_can() {
    let mut bench = Bench::new("gemini");
    assert!(matches!(&bench.told[0], Output::Spawn(program) if program.command == "gemini"));
    bench.shake();
    bench.answer("session/new", opened("gemini"));
    let config = bench.reports().find_map(|report| match report {
        Report::Config(config) => Some(config.clone()),
        _ => None,
    });
    let config = config.unwrap();
    assert_eq!(config.model.as_str(), "auto");
    assert_eq!(config.available_modes, Some(vec!["default".to_owned(), "plan".to_owned()]));
    assert_eq!(config.can("set_model"), Some(true));
    assert_eq!(config.can("steer"), Some(false));
    assert_eq!(config.can("images"), Some(true));
    assert_eq!(config.can("set_effort"), Some(false));
    assert_eq!(bench.told.last(), Some(&Output::Ready));
}

#[test]
fn an_agent_nobody_is_logged_in_to_says_how_to_log_in() {
    let mut bench = Bench::new("gemini");
    bench.shake();
    bench.refuse("session/new", -32_000, "Authentication required");
    let failure = bench.unusable().unwrap();
    assert_eq!(failure.code.as_str(), "agent_not_open");
    assert!(failure.message.contains("log in"), "{}", failure.message);
}

#[test]
fn a_program_that_ends_before_it_is_ready_is_unusable_with_its_last_words() {
    let mut bench = Bench::new("opencode");
    let _ = bench.acp.on_input(Input::Complaint("no such module".into()), bench.now);
    bench.ended(Ended::Exited(1));
    let failure = bench.unusable().unwrap();
    assert!(failure.message.contains("exit code 1"), "{}", failure.message);
    assert!(failure.message.contains("no such module"), "{}", failure.message);
}

#[test]
fn a_program_that_never_answers_is_given_up() {
    let mut bench = Bench::new("opencode");
    bench.pass(25_000);
    assert_eq!(bench.unusable().unwrap().code.as_str(), "launch_timeout");
}

#[test]
fn the_model_that_was_asked_for_is_chosen_before_the_session_is_ready() {
    let mut bench = Bench::with("opencode", String::new(), Some("b"), None);
    bench.shake();
    bench.answer("session/new", opened("opencode"));
    assert!(!bench.told.contains(&Output::Ready));
    bench.answer("session/set_config_option", json!({"configOptions": options("b", "build")}));
    assert!(bench.told.contains(&Output::Ready));
    assert_eq!(bench.acp.settings.current(Setting::Model), Some("b"));
}

#[test]
fn a_model_that_is_not_there_makes_no_session() {
    let mut bench = Bench::with("opencode", String::new(), Some("z"), None);
    bench.shake();
    bench.answer("session/new", opened("opencode"));
    let failure = bench.unusable().unwrap();
    assert_eq!(failure.code.as_str(), "model_not_available");
    assert!(failure.message.contains("a, b"), "{}", failure.message);
}

#[test]
fn models_and_modes_are_switched_by_the_method_or_by_the_option() {
    let mut bench = Bench::up("gemini");
    bench.control(Control::SetModel("flash".into()));
    let asked = bench.written.last().unwrap();
    assert_eq!(asked["method"], "session/set_model");
    assert_eq!(asked["params"], json!({"sessionId": "c1", "modelId": "flash"}));
    assert_eq!(bench.results(), []);
    bench.answer("session/set_model", json!({}));
    assert_eq!(bench.results(), [None]);
    bench.control(Control::SetMode("plan".into()));
    bench.says("[MODE_UPDATE] plan");
    bench.answer("session/set_mode", json!({}));
    assert_eq!(bench.acp.settings.current(Setting::Mode), Some("plan"));
    assert_eq!(bench.texts(), Vec::<String>::new());

    let mut bench = Bench::up("opencode");
    bench.control(Control::SetMode("plan".into()));
    let asked = bench.written.last().unwrap();
    assert_eq!(asked["params"], json!({"sessionId": "c1", "configId": "mode", "value": "plan"}));
    bench.refuse("session/set_config_option", -32_603, "no");
    assert_eq!(bench.results(), [Some("control_not_supported".to_owned())]);
    assert_eq!(bench.acp.settings.current(Setting::Mode), Some("build"));
}

#[test]
fn a_model_that_the_agent_does_not_have_is_refused_unasked() {
    let mut bench = Bench::up("gemini");
    bench.control(Control::SetModel("gpt".into()));
    assert_eq!(bench.results(), [Some("model_not_available".to_owned())]);
    assert_eq!(bench.count("session/set_model"), 0);
}

#[test]
fn an_interrupt_cancels_in_the_agent_and_is_done_when_the_agent_says_so() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "slow");
    bench.says("w0");
    bench.control(Control::Interrupt { run: None });
    assert_eq!(bench.count("session/cancel"), 1);
    assert_eq!(bench.results(), []);
    bench.answer("session/prompt", json!({"stopReason": "cancelled"}));
    assert_eq!(bench.results(), [None]);
    assert_eq!(bench.outcomes(), [Outcome::Interrupted]);
    assert_eq!(bench.texts(), ["w0"]);
}

#[test]
fn an_agent_that_does_not_stop_is_ended() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "slow");
    bench.says("w0");
    bench.control(Control::Interrupt { run: None });
    bench.pass(10_000);
    assert!(bench.told.contains(&Output::End));
    bench.ended(Ended::Killed(15));
    assert_eq!(bench.results(), [None]);
    assert_eq!(bench.outcomes(), [Outcome::Interrupted]);
}

#[test]
fn an_interrupt_of_another_run_is_too_late() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "slow");
    bench.control(Control::Interrupt { run: Some("run-other-1".into()) });
    assert_eq!(bench.results(), [Some("agent_not_active".to_owned())]);
    assert_eq!(bench.count("session/cancel"), 0);
}

#[test]
fn a_crash_ends_the_run_with_the_reason_and_offers_to_go_on() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "hello");
    bench.says("he");
    let _ = bench.acp.on_input(Input::Complaint("out of memory".into()), bench.now);
    bench.ended(Ended::Killed(9));
    let outcomes = bench.outcomes();
    let [Outcome::Failed(reason)] = &outcomes[..] else { panic!("one failure") };
    assert!(reason.contains("out of memory"), "{reason}");
    let degraded = bench.reports().any(|report| {
        matches!(report, Report::Status { health: Health::Degraded, reason: Some(words), .. }
            if words.contains("Send a message"))
    });
    assert!(degraded);
    // It had evidence: nothing is looked up, nothing is started.
    assert!(!bench.told.iter().any(|output| matches!(output, Output::Spawn(_))));
    assert_eq!(bench.failed(), Vec::<String>::new());
}

#[test]
fn silence_is_told_and_the_next_word_ends_it() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "hello");
    bench.pass(59_999);
    assert!(!bench.reports().any(is_degraded));
    bench.pass(1);
    assert!(bench.reports().any(is_degraded));
    bench.take();
    bench.says("late");
    let healthy =
        |report: &Report| matches!(report, Report::Status { health: Health::Healthy, .. });
    assert!(bench.reports().any(healthy));
}

#[test]
fn a_tool_at_work_may_be_silent() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "hello");
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "bash",
        "kind": "execute", "status": "in_progress"}));
    bench.pass(120_000);
    assert!(!bench.reports().any(is_degraded));
}

fn is_degraded(report: &Report) -> bool {
    matches!(report, Report::Status { health: Health::Degraded, .. })
}

#[test]
fn an_agent_at_rest_is_ended_quietly_and_the_next_message_loads_its_conversation() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "hello");
    assert!(!bench.acp.is_at_rest());
    bench.says("hi");
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    assert!(bench.acp.is_at_rest());
    bench.take();
    bench.order(&Order::Rest);
    bench.ended(Ended::Exited(0));
    assert_eq!(bench.take(), [Output::End]);
    bench.deliver("m2", 2, "again");
    bench.shake();
    assert_eq!(bench.written.last().unwrap()["params"]["sessionId"], "c1");
    bench.answer("session/load", json!({"configOptions": options("a", "build")}));
    assert_eq!(bench.count("session/prompt"), 2);
    assert!(!bench.told.contains(&Output::Ready));
}

#[test]
fn closing_ends_the_program_and_the_session() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "slow");
    bench.take();
    bench.control(Control::Close);
    assert!(bench.told.contains(&Output::End));
    assert!(matches!(bench.told.last(), Some(Output::Report(Report::Closed { .. }))));
    assert_eq!(bench.outcomes(), [Outcome::Interrupted]);
}
