//! The script: from what the person said to what the model does.
//!
//! Invariant: pure, and the same for every API. A word that cannot be understood is echoed,
//! never an error.
//!
//! Not here: how an API asks and answers (`api`), which tool fits (`tools`), what agents wrap
//! around a person's words (`wrappings`).

mod tools;
mod wrappings;

pub(crate) use tools::{Input, Offer, Tools};
pub(crate) use wrappings::{INTERRUPTED, Unwrapped, without_wrappings};

use crate::pace::Pause;

/// Words of a long result that are repeated, and of a long text that are echoed.
const RESULT_CHARACTERS_MAX: usize = 80;
const ECHO_CHARACTERS_MAX: usize = 300;
/// More words than anybody waits for.
const SLOW_WORDS_MAX: usize = 10_000;

const COMMANDS: [&str; 9] =
    ["run", "write", "tool", "plan", "big", "slow", "think", "fail", "limit"];

/// What a request asks, freed from its API.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    /// What the person said since the model last spoke, the last piece last.
    pub(crate) texts: Vec<String>,
    /// The result of the tool that the model called last.
    pub(crate) tool_result: Option<String>,
    pub(crate) tools: Tools,
}

/// What the model does.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Say { thinking: Option<String>, words: Vec<String>, pause: Pause },
    Call { name: String, input: Input },
}

/// The model's service fails, with this HTTP status.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
}

/// The text that a reply says, in one piece.
pub(crate) fn joined(words: &[String]) -> String {
    words.join(" ")
}

/// Words as they are streamed: all but the first begin with a space.
pub(crate) fn spaced(words: &[String]) -> impl Iterator<Item = String> + '_ {
    words.iter().enumerate().map(
        |(index, word)| {
            if index == 0 { word.clone() } else { format!(" {word}") }
        },
    )
}

/// Decides what the model does.
pub(crate) fn reply(asked: &Asked) -> Result<Reply, Failure> {
    let cleaned: Vec<String> =
        asked.texts.iter().map(|text| without_wrappings(text)).filter(|t| !t.is_empty()).collect();
    // A result that precedes an interrupted turn belongs to that turn; what follows is new.
    let interrupted = cleaned.iter().any(|text| text.contains(INTERRUPTED));
    let tool_result = asked.tool_result.as_deref().filter(|_| !interrupted);
    let Some(result) = tool_result else {
        let last = cleaned.last().map(|text| wrappings::without_interruption(text));
        return obey(&last.unwrap_or_default(), asked);
    };
    let Unwrapped { text: result, also } = wrappings::unwrap_result(result);
    let with_it: Vec<String> = also.into_iter().chain(cleaned).collect();
    let with_it = with_it.join("\n");
    if command(&with_it).is_some() {
        return obey(&with_it, asked);
    }
    let flat = result.split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = flat.chars().take(RESULT_CHARACTERS_MAX).collect();
    let also = if with_it.is_empty() { String::new() } else { format!(" also: {with_it}") };
    Ok(say(&format!("done: {start}{also}")))
}

/// How much of its allowance the person is told to have used with this answer, in percent.
pub(crate) fn limit_percent(asked: &Asked) -> Option<usize> {
    let last = asked.texts.iter().map(|text| without_wrappings(text)).rfind(|it| !it.is_empty())?;
    let (word, rest) = command(&last)?;
    leading_number(rest).filter(|_| word == "limit" && asked.tool_result.is_none())
}

/// The first line that is a command, split into its word and the rest.
fn command(text: &str) -> Option<(&'static str, &str)> {
    text.lines().find_map(|line| {
        let line = line.trim();
        // `opencode run` puts what the person said into quotes.
        let quoted = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
        let line = quoted.unwrap_or(line);
        let (word, rest) = line.split_once(':')?;
        let known = COMMANDS.into_iter().find(|command| *command == word)?;
        let rest = rest.trim();
        (!rest.is_empty()).then_some((known, rest))
    })
}

fn obey(text: &str, asked: &Asked) -> Result<Reply, Failure> {
    let echo = || {
        let skipped = text.chars().count().saturating_sub(ECHO_CHARACTERS_MAX);
        let end: String = text.chars().skip(skipped).collect();
        say(&format!("echo({}): {end}", asked.model))
    };
    let Some((word, rest)) = command(text) else { return Ok(echo()) };
    let number = leading_number(rest);
    let call = match (word, number) {
        ("run", _) => tools::shell(rest, &asked.tools),
        ("write", _) => tools::write(rest, &asked.tools),
        ("tool", _) => tools::named(rest, &asked.tools),
        ("plan", _) => tools::plan(rest, &asked.tools),
        ("big", Some(kibibytes)) => tools::shell(&printing(kibibytes), &asked.tools),
        ("slow", Some(count)) => {
            let count = count.clamp(1, SLOW_WORDS_MAX);
            let words = (0..count).map(|index| format!("w{index}")).collect();
            return Ok(Reply::Say { thinking: None, words, pause: Pause::SlowWord });
        }
        ("think", _) => {
            let thinking = Some(format!("let me think about {rest}"));
            let words = split(&format!("thought: {rest}"));
            return Ok(Reply::Say { thinking, words, pause: Pause::Word });
        }
        // The answer's headers say it too.
        ("limit", Some(percent)) => return Ok(say(&format!("limit at {percent}"))),
        ("fail", Some(status)) => return fail(status).map_or_else(|| Ok(echo()), Err),
        _ => return Ok(echo()),
    };
    Ok(match call {
        Some((name, input)) => Reply::Call { name, input },
        None => say("no tool for this"),
    })
}

fn fail(status: usize) -> Option<Failure> {
    let status = u16::try_from(status).ok().filter(|status| (400..600).contains(status))?;
    Some(Failure { status })
}

/// A command that prints this much, in short lines.
fn printing(kibibytes: usize) -> String {
    format!("yes 0123456789abcde 2>/dev/null | head -c {}", kibibytes.saturating_mul(1024))
}

fn leading_number(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

fn say(text: &str) -> Reply {
    Reply::Say { thinking: None, words: split(text), pause: Pause::Word }
}

fn split(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(text: &str) -> Asked {
        let bash = Offer::Function(json!({"properties": {"command": {"type": "string"}}}));
        Asked {
            model: "m".into(),
            texts: vec![text.into()],
            tool_result: None,
            tools: [("bash".to_owned(), bash)].into(),
        }
    }

    fn said(asked: &Asked) -> String {
        match reply(asked) {
            Ok(Reply::Say { words, .. }) => joined(&words),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn plain_words_are_echoed_with_the_model() {
        assert_eq!(said(&asked("hello there")), "echo(m): hello there");
        assert_eq!(said(&asked("slow: down")), "echo(m): slow: down");
        assert_eq!(said(&asked("fail: 7")), "echo(m): fail: 7");
        assert_eq!(said(&asked("run:")), "echo(m): run:");
    }

    #[test]
    fn an_allowance_is_said_and_stands_beside_the_answer() {
        let asked = asked("limit: 85");
        assert_eq!(said(&asked), "limit at 85");
        assert_eq!(limit_percent(&asked), Some(85));
        assert_eq!(limit_percent(&super::tests::asked("run: 85")), None);
    }

    #[test]
    fn only_the_last_text_counts() {
        let mut asked = asked("run: ls");
        asked.texts.push("hello".into());
        assert_eq!(said(&asked), "echo(m): hello");
    }

    #[test]
    fn a_command_may_stand_on_any_line() {
        let input = Input::Json(json!({"command": "ls -l"}));
        let expected = Reply::Call { name: "bash".into(), input };
        assert_eq!(reply(&asked("please\n  run: ls -l \nthanks")), Ok(expected));
        assert_eq!(reply(&asked("\"fail: 500\"")), Err(Failure { status: 500 }));
    }

    #[test]
    fn big_prints_so_many_kibibytes() {
        let Ok(Reply::Call { input: Input::Json(input), .. }) = reply(&asked("big: 100")) else {
            panic!("no call");
        };
        assert!(input["command"].as_str().unwrap().ends_with("head -c 102400"), "{input}");
    }

    #[test]
    fn slow_words_are_counted_and_bounded() {
        let Ok(Reply::Say { words, pause, .. }) = reply(&asked("slow: 3")) else {
            panic!("no words");
        };
        assert_eq!((words.len(), pause), (3, Pause::SlowWord));
        let Ok(Reply::Say { words, .. }) = reply(&asked("slow: 99999999")) else {
            panic!("no words");
        };
        assert_eq!(words.len(), SLOW_WORDS_MAX);
    }

    #[test]
    fn thinking_comes_with_its_thought() {
        let thinking = Some("let me think about it".to_owned());
        let words = vec!["thought:".into(), "it".into()];
        let expected = Reply::Say { thinking, words, pause: Pause::Word };
        assert_eq!(reply(&asked("think: it")), Ok(expected));
    }

    #[test]
    fn failures_are_http_errors() {
        assert_eq!(reply(&asked("fail: 529 now")), Err(Failure { status: 529 }));
    }

    #[test]
    fn a_result_is_answered_with_its_start() {
        let mut asked = asked("");
        asked.tool_result = Some(format!("made\n  it {}", "x".repeat(200)));
        let said = said(&asked);
        assert!(said.starts_with("done: made it xxx"), "{said}");
        assert_eq!(said.len(), "done: ".len() + RESULT_CHARACTERS_MAX);
    }

    #[test]
    fn words_beside_a_result_are_told_too_and_commands_are_obeyed() {
        let mut asked = asked("and more");
        asked.tool_result = Some("ok".into());
        assert_eq!(said(&asked), "done: ok also: and more");
        asked.texts = vec!["fail: 500".into()];
        assert_eq!(reply(&asked), Err(Failure { status: 500 }));
    }

    #[test]
    fn a_result_of_an_interrupted_turn_is_no_longer_answered() {
        let mut asked = asked("[Request interrupted by user for tool use]");
        asked.texts.push("next".into());
        asked.tool_result = Some("rejected".into());
        assert_eq!(said(&asked), "echo(m): next");
    }

    #[test]
    fn without_a_fitting_tool_the_model_says_so() {
        assert_eq!(said(&asked("write: f.txt")), "no tool for this");
    }
}
