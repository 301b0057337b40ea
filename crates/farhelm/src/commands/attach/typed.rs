//! Parses what a person typed.

/// What can be typed.
pub(super) const HELP: &str = "\
Type a message and press Enter. If a question is open, type the number of a choice to answer it.
  /steer TEXT    send a message to the agent during its run
  /stop          stop the run (or press Ctrl-C)
  /model NAME    switch the model
  /mode NAME     switch the permission mode
  /effort NAME   set the reasoning effort
  /go            resume the queue after a stop
  /close         close the session
  /leave         leave; the session continues (or press Ctrl-D)";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    Say(String),
    Steer(String),
    /// The place of a choice, from 0, and words for the agent.
    Answer(usize, Option<String>),
    Stop,
    Model(String),
    Mode(String),
    Effort(String),
    GoOn,
    Close,
    Leave,
    Help,
    /// Not understood, in words.
    Unclear(String),
}

/// Understands a line. `choices` is how many choices the open question has, 0 without one.
pub(super) fn read(line: &str, choices: usize) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::Nothing;
    }
    if let Some(answer) = answer(line, choices) {
        return answer;
    }
    let Some(command) = line.strip_prefix('/') else { return Typed::Say(line.to_owned()) };
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim().to_owned();
    match (word, rest.is_empty()) {
        ("steer", false) => Typed::Steer(rest),
        ("model", false) => Typed::Model(rest),
        ("mode", false) => Typed::Mode(rest),
        ("effort", false) => Typed::Effort(rest),
        ("steer" | "model" | "mode" | "effort", true) => {
            Typed::Unclear(format!("/{word} needs a value after it"))
        }
        ("stop", true) => Typed::Stop,
        ("go", true) => Typed::GoOn,
        ("close", true) => Typed::Close,
        ("leave" | "quit" | "exit", true) => Typed::Leave,
        ("help", true) => Typed::Help,
        // The agent has slash commands of its own.
        _ => Typed::Say(line.to_owned()),
    }
}

/// `2` or `2 because …`.
fn answer(line: &str, choices: usize) -> Option<Typed> {
    let (number, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let number: usize = number.parse().ok()?;
    let words = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
    (1..=choices).contains(&number).then(|| Typed::Answer(number - 1, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_answers_only_while_a_question_with_that_choice_is_open() {
        assert_eq!(read("2", 3), Typed::Answer(1, None));
        assert_eq!(read(" 3 not now ", 3), Typed::Answer(2, Some("not now".to_owned())));
        assert_eq!(read("4", 3), Typed::Say("4".to_owned()));
        assert_eq!(read("2", 0), Typed::Say("2".to_owned()));
        assert_eq!(read("0", 3), Typed::Say("0".to_owned()));
    }

    #[test]
    fn our_commands_are_ours_and_the_agents_are_passed_on() {
        assert_eq!(read("/stop", 0), Typed::Stop);
        assert_eq!(read("/model opus", 0), Typed::Model("opus".to_owned()));
        assert_eq!(read("/compact", 0), Typed::Say("/compact".to_owned()));
        assert_eq!(read("/stop now", 0), Typed::Say("/stop now".to_owned()));
        assert!(matches!(read("/steer", 0), Typed::Unclear(_)));
        assert_eq!(read("   ", 0), Typed::Nothing);
    }
}
