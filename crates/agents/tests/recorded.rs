//! Plays the recordings of real agents to their drivers again: whatever a driver does with its
//! program, what people see of the same conversation stays the same.
//!
//! What is seen is in a text file beside each recording. `cargo xtask record` makes both anew;
//! read what changed before you keep it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use agents::recording::{Entry, Head};
use agents::{Driver, Input, Launcher, Order, Output, Setup, driver_of};
use domain::content::Part;
use domain::session::Report;
use domain::{Content, PromptId, Timestamp};

/// Set by `cargo xtask record`: write what is seen instead of comparing it.
const WRITE_VARIABLE: &str = "FARHELM_WRITE_SNAPSHOTS";

#[test]
fn every_recording_is_seen_as_it_was() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
    let files = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let recordings: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    assert!(!recordings.is_empty(), "no recordings: run `cargo xtask record`");
    for recording in recordings {
        let seen = play(&std::fs::read_to_string(&recording).unwrap());
        let beside = recording.with_extension("txt");
        if std::env::var_os(WRITE_VARIABLE).is_some() {
            std::fs::write(&beside, &seen).unwrap();
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        let name = recording.display();
        assert_eq!(
            seen, expected,
            "{name} is seen differently: if that is meant, run `cargo xtask record --again`"
        );
    }
}

#[test]
fn every_recording_can_be_cut_anywhere() {
    // A program may die after any line, and its driver then tells an end for every run it told.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        if entry.path().extension().is_none_or(|end| end != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let lines = text.lines().count();
        for cut in (1..lines).step_by(7) {
            let mut part: Vec<&str> = text.lines().take(cut).collect();
            // The second ends a program that was started to find out what became of a message.
            part.extend(["-- {\"killed\":9}"; 2]);
            let seen = play(&part.join("\n"));
            let count = |word: &str| seen.lines().filter(|line| line.starts_with(word)).count();
            assert_eq!(count("run started"), count("run ended"), "cut after {cut}: {seen}");
        }
    }
}

/// What people would see.
fn play(recording: &str) -> String {
    let mut entries = recording.lines().map(|line| {
        Entry::read(line).unwrap_or_else(|| panic!("not a line of a recording: {line}"))
    });
    let Some(Entry::Head(head)) = entries.next() else { panic!("no head") };
    let mut driver = driver_of(&head.agent, setup(&head));
    let mut now = Timestamp(1_000_000);
    let mut seen = String::new();
    let mut asked = None;
    see(driver.start(now), &mut seen);
    for entry in entries {
        now = now.plus_ms(1);
        let outputs = match entry {
            Entry::Head(_) | Entry::Wrote(_) => continue,
            Entry::Order(order) => driver.on_order(&about(order, asked.as_ref()), now),
            Entry::Said(line) => driver.on_input(Input::Line(line), now),
            Entry::Complained(line) => driver.on_input(Input::Complaint(line), now),
            Entry::Ended(ended) => driver.on_input(Input::Ended(ended), now),
        };
        asked = outputs.iter().find_map(prompt_of).or(asked);
        answer_reads(driver.as_mut(), &outputs, now, &mut seen);
        see(outputs, &mut seen);
    }
    seen
}

fn prompt_of(output: &Output) -> Option<PromptId> {
    let Output::Report(Report::Asked(prompt)) = output else { return None };
    Some(prompt.id.clone())
}

/// The same order, about the question that is open now: some are named by when they were asked.
fn about(order: Order, asked: Option<&PromptId>) -> Order {
    match (order, asked) {
        (Order::Answer { request, choice, detail, .. }, Some(asked)) => {
            Order::Answer { request, prompt: asked.clone(), choice, detail }
        }
        (order, _) => order,
    }
}

/// The agent's own files are not recorded.
fn answer_reads(driver: &mut dyn Driver, outputs: &[Output], now: Timestamp, seen: &mut String) {
    for output in outputs {
        if let Output::Read(path) = output {
            see(driver.on_input(Input::Read { path: path.clone(), text: None }, now), seen);
        }
    }
}

fn setup(head: &Head) -> Setup {
    Setup {
        session: head.session.clone(),
        notes: String::new(),
        launcher: Launcher { command: head.agent.clone(), ..Launcher::default() },
        workspace: head.workspace.clone().into(),
        model: None,
        mode: None,
        earlier: None,
        ready_by: None,
        variables: BTreeMap::from([("HOME".to_owned(), "<HOME>".to_owned())]),
    }
}

fn see(outputs: Vec<Output>, seen: &mut String) {
    for output in outputs {
        let line = match output {
            Output::Report(report) => told(&report),
            Output::Ready => Some("ready".to_owned()),
            Output::Unusable(failure) => Some(format!("unusable: {}", failure.message)),
            Output::Remember(_)
            | Output::LookedUp { .. }
            | Output::Passing(..)
            | Output::Spawn(_)
            | Output::Write(_)
            | Output::End
            | Output::Read(_)
            | Output::File(_)
            | Output::Terminal(_)
            | Output::Keep(_)
            | Output::Panel(_) => None,
        };
        if let Some(line) = line {
            let _ = writeln!(seen, "{}", line.replace('\n', "\\n"));
        }
    }
}

/// What a person would notice, without ids that the model's service makes up.
fn told(report: &Report) -> Option<String> {
    Some(match report {
        Report::Status { health, reason, .. } => match reason {
            Some(reason) => format!("status {health:?}: {reason}"),
            // Activity is passing, and there is much of it.
            None => return None,
        },
        Report::Message { message, .. } => {
            format!("message {:?}: {}", message.author, shown(&message.parts))
        }
        Report::ToolCall(call) => {
            format!("tool {} {:?} {:?} {:?}", call.tool, call.kind, call.status, call.detail)
        }
        Report::ToolUpdate(update) => format!("tool goes on {:?}", update.status),
        Report::Plan(plan) => format!("plan {plan:?}"),
        Report::Notice(notice) => format!("notice {notice:?}"),
        Report::Context(_) => return None,
        Report::RunStarted { cause, .. } => format!("run started by {cause:?}"),
        Report::RunEnded { outcome, usage, .. } => format!("run ended {outcome:?} {usage:?}"),
        Report::SendDelivered { id, .. } => format!("delivered {id}"),
        Report::SendFailed { id, failure, .. } => format!("failed {id}: {}", failure.code),
        Report::Asked(prompt) => {
            let choices: Vec<_> =
                prompt.choices.iter().map(|c| (c.id.as_str(), c.effect)).collect();
            match &prompt.text {
                Content::Open(text) => format!("asked: {text} {choices:?}"),
                Content::Sealed(_) => format!("asked, sealed {choices:?}"),
            }
        }
        Report::PromptGone(_) => "question gone".to_owned(),
        Report::ControlResult { failure, .. } => format!("control {failure:?}"),
        Report::Config(config) => {
            let names = config.commands.iter().flatten().map(|it| format!(" /{}", it.name));
            let names: String = names.collect();
            format!("config {} {:?}{names}", config.model, config.permission_mode)
        }
        Report::Closed { reason, .. } => format!("closed {reason:?}"),
        Report::Resumed { .. } => "resumed".to_owned(),
    })
}

/// The pieces of a message. Ids of tools are the agent's own.
fn shown(parts: &Content<Vec<Part>>) -> String {
    let Content::Open(parts) = parts else { return "sealed".to_owned() };
    let piece = |part: &Part| match part {
        Part::ToolCall(_) => "(tool)".to_owned(),
        Part::Text(text) => format!("{text:?}"),
        Part::Thinking(text) => format!("thinking {text:?}"),
        Part::Image(_) | Part::File(_) => "(file)".to_owned(),
    };
    parts.iter().map(piece).collect::<Vec<_>>().join(" ")
}
