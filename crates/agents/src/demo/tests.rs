//! Each behaviour, with the time as an argument.

use domain::content::{Message, Part, ToolCall, ToolStatus, ToolUpdate};
use domain::session::prompts::Prompt;

use super::*;
use crate::driver::sealed_answer;

/// Everything of one kind among what was told.
macro_rules! pick {
    ($told:expr, $pattern:pat => $value:expr) => {{
        let pick = |output: &Output| {
            let $pattern = output else { return None };
            Some($value)
        };
        $told.iter().filter_map(pick).collect::<Vec<_>>()
    }};
}

#[test]
fn say_streams_word_by_word_twenty_milliseconds_apart() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "say: one  two three", 1_000);
    assert_eq!(deltas(&told), [(0, "one ".to_owned())]);
    assert_eq!(demo.deadline(), Some(Timestamp(1_020)));
    assert_eq!(demo.on_deadline(Timestamp(1_019)), []);
    told.extend(play(&mut demo));
    let words: Vec<_> = deltas(&told).into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["one ", " ", "two ", "three"]);
    assert_eq!(said(&told), ["one  two three"]);
    assert_eq!(outcome(&told), Some(Outcome::Completed));
    assert_eq!(last_activity(&told), "idle");
}

#[test]
fn deltas_are_placed_by_utf16_units() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "say: 😀 b", 0);
    told.extend(play(&mut demo));
    let offsets: Vec<_> = deltas(&told).into_iter().map(|(offset, _)| offset).collect();
    assert_eq!(offsets, [0, 3]);
}

#[test]
fn slow_streams_that_many_words_a_tenth_of_a_second_apart() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "slow: 5", 0);
    assert_eq!(demo.deadline(), Some(Timestamp(100)));
    told.extend(play(&mut demo));
    assert_eq!(deltas(&told).len(), 5);
    assert_eq!(said(&told), ["word1 word2 word3 word4 word5"]);
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_it() {
    let mut demo = Demo::new("", None);
    deliver(&mut demo, "m1", "slow: 5", 1_000_000);
    assert_eq!(demo.on_deadline(Timestamp(5_000)), []);
    assert_eq!(demo.deadline(), Some(Timestamp(5_100)));
}

#[test]
fn ask_shows_the_call_and_waits_for_an_answer() {
    let mut demo = Demo::new("", None);
    let told = deliver(&mut demo, "m1", "ask: rm -rf target", 5_000);
    let calls = tool_calls(&told);
    assert_eq!((calls[0].tool.as_str(), calls[0].status), ("Bash", ToolStatus::Pending));
    let detail = calls[0].detail.open().unwrap();
    assert_eq!(detail.input.as_deref(), Some(r#"{"command":"rm -rf target"}"#));
    let prompt = prompt(&told);
    let choices: Vec<_> = prompt.choices.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(choices, ["yes", "no", "always"]);
    let expiry = prompt.expiry.unwrap();
    assert_eq!((expiry.timeout_ms, expiry.choice), (30_000, Some("no".into())));
    assert_eq!(last_activity(&told), "waiting_for_user");
    assert_eq!(demo.deadline(), None);
}

#[test]
fn yes_and_always_run_it_and_no_and_silence_deny_it() {
    for (choice, expected) in
        [(Some("yes"), "ran: ls"), (Some("always"), "ran: ls"), (Some("no"), "denied: ls")]
            .into_iter()
            .chain([(None, "denied: ls")])
    {
        let mut demo = Demo::new("", None);
        let asked = deliver(&mut demo, "m1", "ask: ls", 0);
        let told = answer(&mut demo, &prompt(&asked).id, choice, 700);
        assert_eq!(result(&told), None, "{choice:?}");
        assert_eq!(said(&told), [expected]);
        let ended =
            if expected.starts_with("ran") { ToolStatus::Completed } else { ToolStatus::Cancelled };
        assert_eq!(updates(&told).last().unwrap().status, ended);
        assert_eq!(outcome(&told), Some(Outcome::Completed));
    }
}

#[test]
fn a_form_asks_several_questions_and_says_what_was_answered() {
    for (choice, answers, expected) in [
        (
            Some("answer"),
            Some(r#"{"Which kite first?":"The small one","What is it called?":"Ada"}"#),
            "answered: What is it called? Ada; Which kite first? The small one",
        ),
        (Some("answer"), None, "answered: nothing"),
        (Some("answer"), Some("no JSON"), "answered: nothing"),
        (Some("no"), Some("{}"), "not answered"),
        (None, None, "not answered"),
    ] {
        let mut demo = Demo::new("", None);
        let told = deliver(&mut demo, "m1", "form: kite", 0);
        let prompt = prompt(&told);
        let detail = prompt.detail.as_ref().and_then(Content::open).unwrap();
        let questions: serde_json::Value =
            serde_json::from_str(detail.questions.as_deref().unwrap()).unwrap();
        assert_eq!(questions[0]["question"], "Which kite first?");
        assert_eq!(
            (&questions[1]["multiSelect"], questions[2].get("options")),
            (&true.into(), None)
        );
        let detail =
            AnswerDetail { answers: answers.map(str::to_owned), ..AnswerDetail::default() };
        let (choice, detail) = (choice.map(ChoiceId::from), Some(Content::Open(detail)));
        let order = Order::Answer { request: "r1".into(), prompt: prompt.id, choice, detail };
        assert_eq!(said(&demo.on_order(&order, Timestamp(9))), [expected], "{answers:?}");
    }
}

#[test]
fn the_second_answer_finds_no_question() {
    let mut demo = Demo::new("", None);
    let asked = deliver(&mut demo, "m1", "ask: ls", 0);
    let id = prompt(&asked).id;
    answer(&mut demo, &id, Some("yes"), 1);
    let told = answer(&mut demo, &id, Some("no"), 2);
    assert_eq!(result(&told).unwrap().code, "prompt_not_found".into());
    assert_eq!(told.len(), 1);
}

#[test]
fn tool_shows_input_progress_and_output() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "tool: grep", 0);
    told.extend(play(&mut demo));
    let call = &tool_calls(&told)[0];
    assert_eq!(call.tool, "grep");
    assert!(call.detail.open().unwrap().input.is_some());
    let seen: Vec<_> = updates(&told)
        .iter()
        .map(|u| (u.status, u.detail.open().unwrap().output.clone().unwrap()))
        .collect();
    let expected = [
        (ToolStatus::Running, "halfway".to_owned()),
        (ToolStatus::Completed, "grep: done".to_owned()),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn think_thinks_and_then_says() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "think: a b", 0);
    told.extend(play(&mut demo));
    let parts = messages(&told)[0].parts.open().unwrap().clone();
    assert_eq!(parts, [Part::Thinking("a b".to_owned()), Part::Text("a b".to_owned())]);
    let offsets: Vec<_> = deltas(&told).into_iter().map(|(offset, _)| offset).collect();
    assert_eq!(offsets, [0, 2, 0, 2]);
}

#[test]
fn fail_fails_the_delivery_and_leaves_no_record() {
    let mut demo = Demo::new("", None);
    let told = deliver(&mut demo, "m1", "fail: send_rejected", 0);
    let [Output::Report(Report::SendFailed { failure, attempt, .. })] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(failure.code, "send_rejected".into());
    assert_eq!(*attempt, Some(Sequence(1)));
    assert_eq!(look_up(&mut demo, "m1", 1), Lookup::Absent);
}

#[test]
fn crash_closes_the_session_and_nothing_is_heard_after() {
    let mut demo = Demo::new("", None);
    let told = deliver(&mut demo, "m1", "crash", 0);
    let closed = Report::Closed { reason: CloseReason::TargetClosed, request: None };
    assert_eq!(told.last(), Some(&Output::Report(closed)));
    assert_eq!(deliver(&mut demo, "m2", "hello", 1), []);
}

#[test]
fn degrade_and_recover_change_the_health_beyond_the_run() {
    let mut demo = Demo::new("", None);
    let healths = |told: &[Output]| -> Vec<Health> {
        pick!(told, Output::Report(Report::Status { health, .. }) => *health)
    };
    let told = deliver(&mut demo, "m1", "degrade", 0);
    assert_eq!(healths(&told), [Health::Degraded, Health::Degraded]);
    let told = deliver(&mut demo, "m2", "say: still", 1);
    assert!(healths(&told).iter().all(|health| *health == Health::Degraded));
    let told = deliver(&mut demo, "m3", "recover", 2);
    assert_eq!(healths(&told).last(), Some(&Health::Healthy));
}

#[test]
fn anything_else_is_echoed_with_the_names_and_sizes_of_its_files() {
    let mut demo = Demo::new("", None);
    assert_eq!(said(&deliver(&mut demo, "m1", "note: this", 0)), ["echo: note: this"]);
    let file = |name: &str, size_bytes| File {
        name: name.to_owned(),
        path: "/somewhere".into(),
        size_bytes,
        image: None,
    };
    let (send, files) = (send("m2", "see"), vec![file("cat.png", 3), file("dog.txt", 4)]);
    let told = demo.on_order(&Order::Deliver { send, attempt: Sequence(2), files }, Timestamp(0));
    assert_eq!(said(&told), ["echo: see [cat.png, 3 bytes; dog.txt, 4 bytes]"]);
}

#[test]
fn what_it_takes_is_in_its_record_before_it_is_delivered() {
    let mut demo = Demo::new("", None);
    let told = deliver(&mut demo, "m1", "hello", 0);
    let Output::Remember(line) = &told[0] else { panic!("{told:?}") };
    let read: Line = serde_json::from_str(line).unwrap();
    assert_eq!((read.id, read.attempt, read.text.as_str()), ("m1".into(), Sequence(1), "hello"));
    assert!(matches!(&told[1], Output::Report(Report::SendDelivered { .. })));
}

#[test]
fn the_record_of_an_earlier_life_is_looked_up() {
    let mut demo = Demo::new("", None);
    let told = deliver(&mut demo, "m1", "hello", 0);
    let Output::Remember(line) = &told[0] else { panic!("{told:?}") };
    // The last line was cut off while it was written.
    let mut reborn = Demo::new(&format!("{line}\n{{\"id\":\"m2\",\"att"), None);
    assert_eq!(look_up(&mut reborn, "m1", 1), Lookup::Found);
    assert_eq!(look_up(&mut reborn, "m1", 9), Lookup::Absent);
    assert_eq!(look_up(&mut reborn, "m2", 1), Lookup::Absent);
}

// spec: native/agent_interrupt.2
#[test]
fn an_interrupt_ends_the_run_and_keeps_what_was_said() {
    let mut demo = Demo::new("", None);
    deliver(&mut demo, "m1", "slow: 9", 0);
    demo.on_deadline(Timestamp(100));
    let run = Some(domain::RunId::from("run-m1-1"));
    let told = control(&mut demo, Control::Interrupt { run }, 150);
    assert_eq!(result(&told), None);
    assert_eq!(said(&told), ["word1 word2 "]);
    assert_eq!(outcome(&told), Some(Outcome::Interrupted));
    assert_eq!(last_activity(&told), "idle");
    assert_eq!(demo.deadline(), None);
}

#[test]
fn an_interrupt_takes_the_open_question_back() {
    let mut demo = Demo::new("", None);
    let asked = deliver(&mut demo, "m1", "ask: ls", 0);
    let told = control(&mut demo, Control::Interrupt { run: None }, 1);
    let gone = Output::Report(Report::PromptGone(prompt(&asked).id));
    assert!(told.contains(&gone), "{told:?}");
    assert_eq!(updates(&told)[0].status, ToolStatus::Cancelled);
}

// spec: native/agent_interrupt.3
// spec: native/agent_interrupt.5
#[test]
fn an_interrupt_of_another_run_or_of_none_is_refused() {
    let mut demo = Demo::new("", None);
    let told = control(&mut demo, Control::Interrupt { run: None }, 0);
    assert_eq!(result(&told).unwrap().code, "agent_not_active".into());
    deliver(&mut demo, "m1", "slow: 9", 0);
    let old = Control::Interrupt { run: Some("run-m0-1".into()) };
    assert_eq!(result(&control(&mut demo, old, 1)).unwrap().code, "agent_not_active".into());
    assert!(demo.deadline().is_some());
}

#[test]
fn a_steered_message_is_answered_within_the_run() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "say: a b", 0);
    let steered = deliver(&mut demo, "m2", "and this", 5);
    let delivered = Report::SendDelivered {
        id: "m2".into(),
        attempt: Some(Sequence(1)),
        run: Some("run-m1-1".into()),
    };
    assert!(steered.contains(&Output::Report(delivered)), "{steered:?}");
    told.extend(steered);
    told.extend(play(&mut demo));
    assert_eq!(said(&told), ["a ", "b", "echo: and this"]);
    let ends = told.iter().filter(|o| matches!(o, Output::Report(Report::RunEnded { .. })));
    assert_eq!(ends.count(), 1);
}

// spec: native/events.4
#[test]
fn what_the_agent_said_before_it_was_steered_is_told_before_the_message_that_steers() {
    let mut demo = Demo::new("", None);
    let mut told = deliver(&mut demo, "m1", "slow: 3", 0);
    told.extend(demo.on_deadline(Timestamp(150)));
    told.extend(deliver(&mut demo, "m2", "say: hi", 160));
    told.extend(play(&mut demo));
    let order: Vec<String> = told
        .iter()
        .filter_map(|output| {
            if let Output::Report(Report::SendDelivered { id, .. }) = output {
                return Some(id.to_string());
            }
            said(std::slice::from_ref(output)).pop()
        })
        .collect();
    assert_eq!(order, ["m1", "word1 word2 ", "m2", "word3", "hi"]);
}

// spec: native/agent_set_model.2
// spec: native/agent_config.2
#[test]
fn a_model_it_has_can_be_chosen_and_is_told() {
    let mut demo = Demo::new("", None);
    let told = control(&mut demo, Control::SetModel("demo-large".into()), 0);
    assert_eq!(result(&told), None);
    let Some(Output::Report(Report::Config(config))) = told.last() else { panic!("{told:?}") };
    assert_eq!(config.model, "demo-large".into());
    assert_eq!(config.can("steer"), Some(true));
    let told = control(&mut demo, Control::SetModel("gpt".into()), 0);
    assert_eq!(result(&told).unwrap().code, "model_not_available".into());
}

// spec: native/agent_config_request.1
#[test]
fn its_configuration_is_told_when_asked_for() {
    let mut demo = Demo::new("", None);
    let told = control(&mut demo, Control::ReadConfig, 5);
    assert_eq!(result(&told), None);
    let configs = pick!(told, Output::Report(Report::Config(config)) => config.clone());
    assert_eq!((configs.len(), configs[0].read_at), (1, Timestamp(5)));
}

// spec: native/session_metadata.3
#[test]
fn it_does_only_what_the_document_has_words_for() {
    const WORDS: [&str; 7] = [
        "thinking",
        "generating",
        "reading_files",
        "running_command",
        "applying_patch",
        "waiting_for_user",
        "idle",
    ];
    for text in
        ["say: a", "slow: 1", "ask: ls", "form: x", "tool: x", "think: y", "degrade", "hello"]
    {
        let mut demo = Demo::new("", None);
        let mut told = demo.start(Timestamp(0));
        told.extend(deliver(&mut demo, "m1", text, 0));
        told.extend(play(&mut demo));
        let kinds =
            pick!(told, Output::Report(Report::Status { activity, .. }) => activity.clone());
        for activity in kinds.into_iter().flatten() {
            assert!(WORDS.contains(&activity.kind.as_str()), "{text}: {}", activity.kind);
        }
    }
}

// spec: native/agent_set_model.3
#[test]
fn settings_it_does_not_have_are_refused() {
    let mut demo = Demo::new("", None);
    for setting in [Control::SetMode("plan".to_owned()), Control::SetEffort("high".to_owned())] {
        let told = control(&mut demo, setting, 0);
        assert_eq!(result(&told).unwrap().code, "control_not_supported".into());
    }
}

#[test]
fn closing_ends_the_run_first() {
    let mut demo = Demo::new("", None);
    deliver(&mut demo, "m1", "slow: 9", 0);
    let told = control(&mut demo, Control::Close, 1);
    assert_eq!(outcome(&told), Some(Outcome::Interrupted));
    let reason = CloseReason::UserRequested;
    let closed = Report::Closed { reason, request: Some("r".into()) };
    assert_eq!(told.last(), Some(&Output::Report(closed)));
}

fn send(id: &str, text: &str) -> Send {
    Send {
        id: id.into(),
        text: Content::Open(text.to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(0),
        digest: None,
    }
}

fn deliver(demo: &mut Demo, id: &str, text: &str, now: u64) -> Vec<Output> {
    let (send, files) = (send(id, text), vec![]);
    let order = Order::Deliver { send, attempt: Sequence(1), files };
    demo.on_order(&order, Timestamp(now))
}

fn answer(demo: &mut Demo, prompt: &PromptId, choice: Option<&str>, now: u64) -> Vec<Output> {
    let (request, prompt) = ("r".into(), prompt.clone());
    let choice = choice.map(Into::into);
    demo.on_order(&Order::Answer { request, prompt, choice, detail: None }, Timestamp(now))
}

fn control(demo: &mut Demo, control: Control, now: u64) -> Vec<Output> {
    demo.on_order(&Order::Control { request: "r".into(), control }, Timestamp(now))
}

fn look_up(demo: &mut Demo, id: &str, attempt: u64) -> Lookup {
    let order = Order::LookUp { id: id.into(), attempt: Sequence(attempt) };
    match &demo.on_order(&order, Timestamp(0))[..] {
        [Output::LookedUp { found, .. }] => *found,
        other => panic!("{other:?}"),
    }
}

/// Lets time pass until nothing more happens.
fn play(demo: &mut Demo) -> Vec<Output> {
    let mut told = vec![];
    while let Some(due) = demo.deadline() {
        told.extend(demo.on_deadline(due));
    }
    told
}

fn deltas(told: &[Output]) -> Vec<(u64, String)> {
    pick!(told, Output::Passing(delta, _) => (delta.offset, delta.words.open().unwrap().clone()))
}

fn messages(told: &[Output]) -> Vec<Message> {
    pick!(told, Output::Report(Report::Message { message, .. }) => message.clone())
}

fn said(told: &[Output]) -> Vec<String> {
    let text = |part: &Part| if let Part::Text(text) = part { text.clone() } else { String::new() };
    let whole = |m: Message| m.parts.open().unwrap().iter().map(text).collect();
    messages(told).into_iter().map(whole).collect()
}

fn tool_calls(told: &[Output]) -> Vec<ToolCall> {
    pick!(told, Output::Report(Report::ToolCall(call)) => call.clone())
}

fn updates(told: &[Output]) -> Vec<ToolUpdate> {
    pick!(told, Output::Report(Report::ToolUpdate(update)) => update.clone())
}

fn prompt(told: &[Output]) -> Prompt {
    pick!(told, Output::Report(Report::Asked(prompt)) => prompt.clone()).remove(0)
}

fn result(told: &[Output]) -> Option<Failure> {
    let results = pick!(
        told, Output::Report(Report::ControlResult { failure, .. }) => failure.clone()
    );
    results.into_iter().next().expect("a control result")
}

fn outcome(told: &[Output]) -> Option<Outcome> {
    pick!(told, Output::Report(Report::RunEnded { outcome, .. }) => outcome.clone()).pop()
}

fn last_activity(told: &[Output]) -> String {
    let statuses = pick!(told, Output::Report(Report::Status { activity, .. }) => activity.clone());
    statuses.into_iter().flatten().last().unwrap().kind
}

#[test]
fn in_mode_yolo_it_does_not_ask() {
    let mut demo = Demo::new("", None);
    let told = control(&mut demo, Control::SetMode("yolo".to_owned()), 0);
    assert_eq!(result(&told), None);
    let config = pick!(told, Output::Report(Report::Config(config)) => config.clone());
    assert_eq!(config[0].permission_mode.as_deref(), Some("yolo"));
    let mut told = deliver(&mut demo, "m1", "ask: ls", 0);
    told.extend(play(&mut demo));
    assert_eq!(pick!(told, Output::Report(Report::Asked(prompt)) => prompt.clone()), []);
    assert_eq!(outcome(&told), Some(Outcome::Completed));
    assert!(format!("{told:?}").contains("ran: ls"));
}

#[test]
fn an_answer_may_change_the_command_or_stop_the_run() {
    for (stop, said) in [(false, "ran: pwd"), (true, "Interrupted")] {
        let mut demo = Demo::new("", None);
        let told = deliver(&mut demo, "m1", "ask: ls", 0);
        let asked = pick!(told, Output::Report(Report::Asked(prompt)) => prompt.clone());
        let updated_input = Some(r#"{"command":"pwd"}"#.to_owned());
        let detail = AnswerDetail { updated_input, stop, ..AnswerDetail::default() };
        let order = Order::Answer {
            request: "r".into(),
            prompt: asked[0].id.clone(),
            choice: Some(if stop { "no" } else { "yes" }.into()),
            detail: Some(Content::Open(detail)),
        };
        let mut told = demo.on_order(&order, Timestamp(1));
        told.extend(play(&mut demo));
        assert!(format!("{told:?}").contains(said), "{said}: {told:?}");
    }
}

#[test]
fn a_sealed_answer_is_refused_and_the_question_stays_open() {
    let mut demo = Demo::new("", None);
    let prompt = prompt(&deliver(&mut demo, "m1", "ask: ls", 0));
    let told = demo.on_order(&sealed_answer(&prompt.id, "yes"), Timestamp(1));
    assert_eq!(told.len(), 1);
    assert_eq!(result(&told).unwrap().code.as_str(), "control_not_supported");
    let mut told = answer(&mut demo, &prompt.id, Some("no"), 2);
    assert_eq!(result(&told), None);
    told.extend(play(&mut demo));
    assert!(!format!("{told:?}").contains("ran: ls"));
}
