//! What a session knows after the proxy or the program restarted.

use super::*;
use crate::Lookup;

fn user(bench: &mut Bench, id: Option<&str>, text: &str) {
    bench.update(json!({"sessionUpdate": "user_message_chunk", "messageId": id,
        "content": {"type": "text", "text": text}}));
}

fn looked_up(bench: &Bench) -> Vec<Lookup> {
    let found = |output: &Output| match output {
        Output::LookedUp { found, .. } => Some(*found),
        _ => None,
    };
    bench.told.iter().filter_map(found).collect()
}

fn look_up(bench: &mut Bench, id: &str, attempt: u64) {
    bench.order(&Order::LookUp { id: id.into(), attempt: Sequence(attempt) });
}

#[test]
fn a_session_that_was_ready_starts_nothing_and_tells_its_last_configuration() {
    let bench = Bench::up("gemini").restart();
    assert_eq!(bench.written, Vec::<Value>::new());
    let models = bench.reports().find_map(|report| match report {
        Report::Config(config) => config.available_models.clone(),
        _ => None,
    });
    assert_eq!(models.unwrap().len(), 2);
    assert!(!bench.told.contains(&Output::Ready));
}

#[test]
fn a_conversation_that_never_began_is_opened_anew() {
    let mut bench = Bench::up("gemini").restart();
    bench.deliver("m1", 1, "hello");
    bench.shake();
    assert_eq!(bench.count("session/load"), 0);
    bench.answer("session/new", opened("gemini"));
    assert_eq!(bench.count("session/prompt"), 1);
    assert_eq!(bench.notices(), Vec::<&str>::new());
}

#[test]
fn settings_that_were_chosen_are_chosen_again() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "hello");
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    bench.control(Control::SetModel("flash".into()));
    bench.answer("session/set_model", json!({}));
    let mut bench = bench.restart();
    bench.deliver("m2", 2, "again");
    bench.shake();
    bench.pass(60_000);
    bench.answer("session/load", opened("gemini"));
    bench.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []}));
    bench.answer("session/set_model", json!({}));
    assert_eq!(bench.count("session/prompt"), 1);
}

/// Written, then the proxy died.
fn written(agent: &'static str, text: &str) -> Bench {
    let mut bench = Bench::up(agent);
    bench.deliver("m1", 1, text);
    bench.restart()
}

#[test]
fn a_send_that_was_never_noted_is_absent_and_nothing_is_started_for_it() {
    let mut bench = Bench::up("opencode").restart();
    look_up(&mut bench, "m1", 1);
    assert_eq!(looked_up(&bench), [Lookup::Absent]);
    assert_eq!(bench.written, Vec::<Value>::new());
}

#[test]
fn a_send_is_found_in_the_replay() {
    let mut bench = written("opencode", "hello");
    look_up(&mut bench, "m1", 1);
    bench.shake();
    user(&mut bench, Some("u1"), "hello");
    bench.answer("session/load", json!({}));
    assert_eq!(looked_up(&bench), [Lookup::Found]);
    // What is replayed is no news.
    assert_eq!(bench.messages().len(), 0);
}

#[test]
fn a_send_that_the_replay_lacks_is_absent_only_where_the_agent_records_all() {
    let mut bench = written("opencode", "hello");
    look_up(&mut bench, "m1", 1);
    bench.shake();
    bench.answer("session/load", json!({}));
    assert_eq!(looked_up(&bench), [Lookup::Absent]);
    bench.deliver("m1", 1, "hello");
    assert_eq!(bench.count("session/prompt"), 1);

    let mut bench = written("gemini", "hello");
    look_up(&mut bench, "m1", 1);
    bench.shake();
    bench.pass(60_000);
    bench.answer("session/load", json!({}));
    bench.pass(1_500);
    assert_eq!(looked_up(&bench), [Lookup::Unknown]);
}

/// What is told of a send and of its run, in order.
fn fate(bench: &Bench) -> Vec<&'static str> {
    let step = |report: &Report| match report {
        Report::RunStarted { .. } => Some("run started"),
        Report::RunEnded { outcome: Outcome::Interrupted, .. } => Some("run interrupted"),
        Report::RunEnded { .. } => Some("run ended"),
        Report::SendDelivered { .. } => Some("delivered"),
        Report::SendFailed { .. } => Some("failed"),
        _ => None,
    };
    bench.reports().filter_map(step).collect()
}

/// The program took the prompt and died before its first word.
fn died_silently(agent: &'static str) -> Bench {
    let mut bench = Bench::up(agent);
    bench.deliver("m1", 1, "hello");
    bench.ended(Ended::Killed(9));
    bench
}

#[test]
fn a_run_ends_after_its_send_was_found_in_the_record() {
    let mut bench = died_silently("opencode");
    assert_eq!(fate(&bench), ["run started"]);
    bench.shake();
    user(&mut bench, Some("u1"), "hello");
    bench.answer("session/load", json!({}));
    assert_eq!(fate(&bench), ["run started", "delivered", "run ended"]);
    let outcomes = bench.outcomes();
    let [Outcome::Failed(reason)] = &outcomes[..] else { panic!("one failure") };
    assert!(reason.contains("stopped"), "{reason}");
    // The next message is a run of its own.
    bench.take();
    bench.deliver("m2", 2, "again");
    bench.says("hi");
    assert_eq!(fate(&bench), ["run started", "delivered"]);
}

#[test]
fn a_run_whose_send_is_not_in_the_record_ends_after_the_send_failed() {
    let mut bench = died_silently("opencode");
    bench.shake();
    bench.answer("session/load", json!({}));
    assert_eq!(fate(&bench), ["run started", "failed", "run ended"]);
    assert_eq!(bench.failed(), ["agent_not_open"]);
}

#[test]
fn a_run_ends_even_if_the_record_cannot_be_read() {
    let mut bench = died_silently("opencode");
    bench.ended(Ended::Killed(9));
    assert_eq!(fate(&bench), ["run started", "failed", "run ended"]);
    assert_eq!(bench.failed(), ["delivery_unknown"]);
}

#[test]
fn a_run_can_be_interrupted_while_its_send_is_looked_for() {
    let mut bench = died_silently("opencode");
    bench.control(Control::Interrupt { run: None });
    assert_eq!(bench.results(), [None]);
    assert_eq!(bench.count("session/cancel"), 0);
    bench.shake();
    user(&mut bench, Some("u1"), "hello");
    bench.answer("session/load", json!({}));
    assert_eq!(fate(&bench), ["run started", "delivered", "run interrupted"]);
}

#[test]
fn a_session_can_be_closed_while_a_send_is_looked_for() {
    let mut bench = died_silently("opencode");
    bench.control(Control::Close);
    bench.ended(Ended::Killed(15));
    assert_eq!(fate(&bench), ["run started", "run interrupted"]);
    assert!(bench.reports().any(|report| matches!(report, Report::Closed { .. })));
}

#[test]
fn the_same_words_said_before_are_not_taken_for_the_send() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m0", 1, "go on");
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    bench.deliver("m1", 2, "go on");
    let mut bench = bench.restart();
    look_up(&mut bench, "m1", 2);
    bench.shake();
    user(&mut bench, Some("u1"), "go on");
    bench.answer("session/load", json!({}));
    assert_eq!(looked_up(&bench), [Lookup::Absent]);
}

#[test]
fn a_conversation_that_cannot_be_loaded_leaves_a_send_unknown_and_goes_on_without() {
    let mut bench = written("opencode", "hello");
    look_up(&mut bench, "m1", 1);
    bench.deliver("m2", 2, "next");
    bench.shake();
    bench.refuse("session/load", -32_603, "gone");
    assert_eq!(looked_up(&bench), [Lookup::Unknown]);
    assert_eq!(bench.notices(), ["context_lost"]);
    bench.answer("session/new", json!({"sessionId": "c2"}));
    let prompt = bench.written.last().unwrap();
    assert_eq!(prompt["params"]["sessionId"], "c2");
    assert_eq!(bench.count("session/prompt"), 1);
}

#[test]
fn a_record_named_by_the_minute_is_not_loaded_within_it() {
    let mut bench = written("gemini", "hello");
    bench.deliver("m2", 2, "next");
    bench.shake();
    assert_eq!(bench.count("session/load"), 0);
    // The session was opened 40 s into a minute.
    bench.pass(20_499);
    assert_eq!(bench.count("session/load"), 0);
    bench.pass(1);
    assert_eq!(bench.count("session/load"), 1);
    bench.answer("session/load", opened("gemini"));
    // Its replay goes on after the answer.
    user(&mut bench, None, "hello");
    assert_eq!(bench.count("session/prompt"), 0);
    bench.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []}));
    assert_eq!(bench.count("session/prompt"), 1);
    bench.says("new words");
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(bench.texts(), ["new words"]);
}

#[test]
fn a_program_that_dies_before_it_gave_evidence_is_asked_again_what_it_has() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "hello");
    bench.take();
    bench.ended(Ended::Killed(9));
    assert!(bench.told.iter().any(|output| matches!(output, Output::Spawn(_))));
    bench.shake();
    user(&mut bench, Some("u1"), "hello");
    bench.answer("session/load", json!({}));
    assert_eq!(bench.was_delivered(), 1);
    assert_eq!(bench.failed(), Vec::<String>::new());

    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "hello");
    bench.ended(Ended::Killed(9));
    bench.ended(Ended::Exited(1));
    assert_eq!(bench.failed(), ["delivery_unknown"]);
}

#[test]
fn a_program_that_cannot_be_started_again_fails_what_waits() {
    let mut bench = Bench::up("opencode").restart();
    bench.deliver("m1", 1, "hello");
    bench.ended(Ended::NotStarted(Failure::new("agent_not_open", "not installed")));
    assert_eq!(bench.failed(), ["agent_not_open"]);
    assert_eq!(bench.unusable(), None);
    // And the next message tries again.
    bench.deliver("m2", 2, "hello");
    assert!(matches!(bench.acp.phase, Phase::Starting(_)));
}

fn earlier(fork: bool) -> Earlier {
    Earlier { id: "old".into(), file: None, fork }
}

fn replay_old(bench: &mut Bench) {
    user(bench, Some("u1"), "make a kite");
    bench.update(json!({"sessionUpdate": "agent_thought_chunk", "messageId": "p1",
        "content": {"type": "text", "text": "hm"}}));
    bench.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "a1",
        "content": {"type": "text", "text": "I will"}}));
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "mkdir kite",
        "kind": "execute", "status": "pending", "rawInput": {"command": "mkdir kite"}}));
    bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "status": "completed", "rawOutput": {"output": "made"}}));
    bench.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "a2",
        "content": {"type": "text", "text": "done"}}));
    bench.answer("session/load", json!({"configOptions": options("a", "build")}));
}

#[test]
fn an_earlier_conversation_is_imported_once_in_its_order() {
    let mut bench = Bench::with("opencode", String::new(), None, Some(earlier(false)));
    bench.shake();
    assert_eq!(bench.written.last().unwrap()["params"]["sessionId"], "old");
    replay_old(&mut bench);
    assert!(bench.told.contains(&Output::Ready));
    assert_eq!(bench.texts(), ["make a kite", "(hm)I will", "done"]);
    assert_eq!(bench.messages()[2].id.as_str(), "a2");
    let call = bench.tools()[0];
    assert_eq!(call.status, domain::content::ToolStatus::Completed);
    assert_eq!(call.detail.open().unwrap().output.as_deref(), Some("made"));

    let mut again = bench.restart();
    again.deliver("m1", 1, "more");
    again.shake();
    assert_eq!(again.written.last().unwrap()["params"]["sessionId"], "old");
    replay_old(&mut again);
    assert_eq!(again.texts(), Vec::<String>::new());
    assert_eq!(again.count("session/prompt"), 1);
}

#[test]
fn pictures_of_an_earlier_conversation_are_kept_before_the_launch_is_answered() {
    let mut bench = Bench::with("opencode", String::new(), None, Some(earlier(false)));
    bench.shake();
    user(&mut bench, Some("u1"), "look");
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
    bench.update(json!({"sessionUpdate": "user_message_chunk", "messageId": "u1",
        "content": image}));
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "shot",
        "status": "completed", "content": [{"type": "content", "content": image}]}));
    bench.answer("session/load", json!({"configOptions": options("a", "build")}));
    for message in ["u1-picture-1", "t1-pictures-picture-1"] {
        assert!(!bench.told.contains(&Output::Ready));
        bench.input(Input::Kept { message: message.into(), outcome: Ok("upl_1".into()) });
    }
    assert!(bench.told.contains(&Output::Ready));
    let parts: Vec<_> = bench.messages().iter().map(|it| it.parts.open().unwrap()).collect();
    assert!(matches!(parts[0].as_slice(), [Part::Text(_), Part::Image(_)]), "{parts:?}");
    assert!(matches!(parts[1].as_slice(), [Part::Image(_)]), "{parts:?}");
}

#[test]
fn a_copy_of_an_earlier_conversation_goes_on_under_its_own_name() {
    let mut bench = Bench::with("opencode", String::new(), None, Some(earlier(true)));
    bench.shake();
    replay_old(&mut bench);
    assert_eq!(bench.written.last().unwrap()["method"], "session/fork");
    bench.answer("session/fork", json!({"sessionId": "copy"}));
    assert!(bench.told.contains(&Output::Ready));
    let mut again = bench.restart();
    again.deliver("m1", 1, "more");
    again.shake();
    assert_eq!(again.written.last().unwrap()["params"]["sessionId"], "copy");
}

#[test]
fn an_agent_that_cannot_load_says_so_at_the_launch() {
    let mut bench = Bench::with("other", String::new(), None, Some(earlier(false)));
    bench.shake();
    assert_eq!(bench.unusable().unwrap().code.as_str(), "launch_not_supported");
}
