//! What each message makes the demo agent do.
//!
//! Not here: playing it (`run`).

use std::collections::VecDeque;

use domain::passing::Voice;
use domain::session::status::Health;

use super::run::{Step, StepKind, Turn};
use crate::File;

/// Between two words of `say`.
pub const WORD_PAUSE_MS: u64 = 20;
/// Between two words of `slow`.
const SLOW_PAUSE_MS: u64 = 100;
/// Between two signs of life of a tool.
const TOOL_PAUSE_MS: u64 = 100;
/// More words are not streamed: it is a demo.
pub const SLOW_WORDS_MAX: u64 = 10_000;

/// What this message leads to.
pub(super) fn turn(text: &str, files: &[File]) -> Turn {
    let trimmed = text.trim();
    match trimmed {
        "crash" => return Turn::Play(steps([now(StepKind::Crash)])),
        "degrade" => return health(Health::Degraded, "degraded"),
        "recover" => return health(Health::Healthy, "recovered"),
        _ => {}
    }
    let Some((verb, rest)) = trimmed.split_once(':') else { return echo(text, files) };
    let rest = rest.trim();
    match verb {
        "say" => Turn::Play(say(rest, WORD_PAUSE_MS)),
        "slow" => match rest.parse::<u64>() {
            Ok(many) => Turn::Play(say(&count(many), SLOW_PAUSE_MS)),
            Err(_) => echo(text, files),
        },
        "ask" => Turn::Play(steps([
            now(StepKind::Activity("waiting_for_user", "Waiting for you")),
            now(StepKind::Ask { command: rest.to_owned() }),
        ])),
        "form" => Turn::Play(steps([
            now(StepKind::Activity("waiting_for_user", "Waiting for you")),
            now(StepKind::AskForm { matter: rest.to_owned() }),
        ])),
        "tool" => Turn::Play(steps([
            now(StepKind::Activity("running_command", "Using a tool")),
            now(StepKind::ToolBegins { name: rest.to_owned() }),
            after(TOOL_PAUSE_MS, StepKind::ToolGoesOn { output: "halfway" }),
            after(TOOL_PAUSE_MS, StepKind::ToolEnds { output: format!("{rest}: done") }),
            now(StepKind::Word(Voice::Text, format!("used {rest}"))),
            now(StepKind::EndMessage),
        ])),
        "think" => {
            let mut steps = steps([now(StepKind::Activity("thinking", "Thinking"))]);
            steps.extend(words(Voice::Thinking, rest, WORD_PAUSE_MS));
            steps.extend(say(rest, WORD_PAUSE_MS));
            Turn::Play(steps)
        }
        "fail" => Turn::Fail(if rest.is_empty() { "send_injection_failed" } else { rest }.into()),
        _ => echo(text, files),
    }
}

/// After the question was answered.
pub(super) fn after_answer(command: &str, allowed: bool) -> VecDeque<Step> {
    let said = if allowed { format!("ran: {command}") } else { format!("denied: {command}") };
    let mut steps = VecDeque::new();
    if allowed {
        steps.push_back(now(StepKind::Activity("running_command", "Running a command")));
        steps.push_back(now(StepKind::ToolGoesOn { output: "" }));
        steps.push_back(now(StepKind::ToolEnds { output: format!("$ {command}\n") }));
    } else {
        steps.push_back(now(StepKind::ToolDenied));
    }
    steps.push_back(now(StepKind::Word(Voice::Text, said)));
    steps.push_back(now(StepKind::EndMessage));
    steps
}

/// Says this at once.
pub(super) fn word(said: String) -> VecDeque<Step> {
    steps([now(StepKind::Word(Voice::Text, said)), now(StepKind::EndMessage)])
}

fn echo(text: &str, files: &[File]) -> Turn {
    let file = |file: &File| format!("{}, {} bytes", file.name, file.size_bytes);
    let files: Vec<_> = files.iter().map(file).collect();
    let said = if files.is_empty() {
        format!("echo: {text}")
    } else {
        format!("echo: {text} [{}]", files.join("; "))
    };
    Turn::Play(steps([now(StepKind::Word(Voice::Text, said)), now(StepKind::EndMessage)]))
}

fn health(health: Health, said: &str) -> Turn {
    Turn::Play(steps([
        now(StepKind::Health(health)),
        now(StepKind::Word(Voice::Text, said.to_owned())),
        now(StepKind::EndMessage),
    ]))
}

fn say(text: &str, pause_ms: u64) -> VecDeque<Step> {
    let mut steps = steps([now(StepKind::Activity("generating", "Generating"))]);
    steps.extend(words(Voice::Text, text, pause_ms));
    steps.push_back(now(StepKind::EndMessage));
    steps
}

/// The first word comes at once; joined together they are the text, unchanged.
fn words(voice: Voice, text: &str, pause_ms: u64) -> impl Iterator<Item = Step> {
    text.split_inclusive(char::is_whitespace).enumerate().map(move |(place, word)| Step {
        after_ms: if place == 0 { 0 } else { pause_ms },
        kind: StepKind::Word(voice, word.to_owned()),
    })
}

fn count(many: u64) -> String {
    let numbers: Vec<_> = (1..=many.min(SLOW_WORDS_MAX)).map(|n| format!("word{n}")).collect();
    numbers.join(" ")
}

fn steps<const N: usize>(steps: [Step; N]) -> VecDeque<Step> {
    VecDeque::from(steps)
}

fn now(kind: StepKind) -> Step {
    after(0, kind)
}

fn after(after_ms: u64, kind: StepKind) -> Step {
    Step { after_ms, kind }
}
