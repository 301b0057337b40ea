//! One run of the demo agent: a script, played step by step.
//!
//! A step is due relative to when the previous step was due, not to when it was played, so that a
//! machine that was asleep for a moment does not fall behind.
//!
//! Not here: the steps of each message (`script`), how a run begins and ends (`demo`).

use std::collections::VecDeque;

use domain::content::{
    Author, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate, Usage,
};
use domain::passing::{Delta, Voice};
use domain::session::Report;
use domain::session::prompts::{Choice, Detail, Effect, Expiry, Prompt};
use domain::session::status::Health;
use domain::{Content, MessageId, PromptId, RunId, Timestamp, ToolCallId};

use super::{PROMPT_TIMEOUT_MS, form, script};
use crate::Output;

/// What a message leads to.
#[derive(Debug)]
pub(super) enum Turn {
    /// The delivery fails with this code.
    Fail(String),
    /// The agent plays this.
    Play(VecDeque<Step>),
}

/// One step of a script.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) after_ms: u64,
    pub(super) kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Activity(&'static str, &'static str),
    Word(Voice, String),
    EndMessage,
    ToolBegins { name: String },
    ToolGoesOn { output: &'static str },
    ToolEnds { output: String },
    ToolDenied,
    Ask { command: String },
    AskForm { matter: String },
    Health(Health),
    Crash,
}

/// What came of a step.
#[derive(Debug)]
pub(super) enum Played {
    Outputs(Vec<Output>),
    Activity(&'static str, &'static str),
    Health(Health),
    Crash,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    steps: VecDeque<Step>,
    /// When the last step was due.
    at: Timestamp,
    /// Names what this run makes: messages, tool calls, prompts.
    made: u32,
    message: Option<Making>,
    tool: Option<ToolCallId>,
    question: Option<(PromptId, Question)>,
    words: u64,
}

/// What waits for a person.
#[derive(Debug)]
enum Question {
    /// Whether this may run.
    Command(String),
    /// Several questions with options.
    Form,
}

/// What a person said besides the choice.
#[derive(Debug, Default)]
pub(super) struct Given<'a> {
    /// The command that they wrote in place of the agent's.
    pub(super) edited: Option<&'a str>,
    /// The answers to a form, as JSON.
    pub(super) answers: Option<&'a str>,
}

/// A message in the making.
#[derive(Debug)]
struct Making {
    id: MessageId,
    parts: Vec<Part>,
    /// The length of the last part in UTF-16 units.
    units: u64,
}

impl Run {
    pub(super) fn new(id: RunId, turn: Turn, now: Timestamp) -> Self {
        let mut run = Self {
            id,
            steps: VecDeque::new(),
            at: now,
            made: 0,
            message: None,
            tool: None,
            question: None,
            words: 0,
        };
        run.steer(turn);
        run
    }

    /// More to do within this run.
    pub(super) fn steer(&mut self, turn: Turn) {
        match turn {
            Turn::Play(steps) => self.steps.extend(steps),
            Turn::Fail(_) => {}
        }
    }

    /// The time of the next step; `None` while a question is open.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        if self.question.is_some() {
            return None;
        }
        self.steps.front().map(|step| self.at.plus_ms(step.after_ms))
    }

    pub(super) fn is_over(&self) -> bool {
        self.steps.is_empty() && self.question.is_none()
    }

    /// Plays the next step, if it is due. A clock that was set back does not stop the play.
    /// With `asks` unset it takes every permission as given.
    pub(super) fn play_next(&mut self, asks: bool, now: Timestamp) -> Option<Played> {
        self.at = self.at.min(now);
        let due = self.next_at().filter(|due| *due <= now)?;
        let step = self.steps.pop_front()?;
        self.at = due;
        Some(match step.kind {
            StepKind::Activity(kind, label) => Played::Activity(kind, label),
            StepKind::Health(health) => Played::Health(health),
            StepKind::Crash => Played::Crash,
            StepKind::Word(voice, word) => Played::Outputs(vec![self.word(voice, word)]),
            StepKind::EndMessage => Played::Outputs(self.end_message(now)),
            StepKind::ToolBegins { name } => {
                let input = serde_json::json!({ "name": name }).to_string();
                let call = self.tool_call(&name, ToolKind::Other, ToolStatus::Running, input);
                Played::Outputs(vec![call])
            }
            StepKind::ToolGoesOn { output } => {
                Played::Outputs(self.tool_update(ToolStatus::Running, Some(output)))
            }
            StepKind::ToolEnds { output } => {
                Played::Outputs(self.tool_update(ToolStatus::Completed, Some(&output)))
            }
            StepKind::ToolDenied => Played::Outputs(self.tool_update(ToolStatus::Cancelled, None)),
            StepKind::AskForm { matter } => Played::Outputs(vec![self.ask_form(&matter, now)]),
            StepKind::Ask { command } if asks => Played::Outputs(self.ask(command, now)),
            StepKind::Ask { command } => {
                let input = serde_json::json!({ "command": command }).to_string();
                let call = self.tool_call("Bash", ToolKind::Execute, ToolStatus::Running, input);
                self.answered(&command, true);
                Played::Outputs(vec![call])
            }
        })
    }

    /// Somebody answered. False if that question is not open.
    pub(super) fn answer(
        &mut self,
        prompt: &PromptId,
        choice: Option<&str>,
        given: &Given<'_>,
        now: Timestamp,
    ) -> bool {
        let Some((_, question)) = self.question.take_if(|(open, _)| open == prompt) else {
            return false;
        };
        match question {
            Question::Command(command) => {
                let allowed = matches!(choice, Some("yes" | "always"));
                self.answered(given.edited.unwrap_or(&command), allowed);
            }
            Question::Form => {
                let is_answered = choice == Some(form::ANSWER);
                let said =
                    if is_answered { form::said(given.answers) } else { "not answered".to_owned() };
                self.go_on_with(script::word(said));
            }
        }
        self.at = now;
        true
    }

    fn answered(&mut self, command: &str, allowed: bool) {
        self.go_on_with(script::after_answer(command, allowed));
    }

    fn go_on_with(&mut self, steps: VecDeque<Step>) {
        for step in steps.into_iter().rev() {
            self.steps.push_front(step);
        }
    }

    /// The run ends, done or not: nothing stays open behind it.
    pub(super) fn wind_up(&mut self, now: Timestamp) -> Vec<Output> {
        let mut outputs = self.end_message(now);
        if let Some((prompt, _)) = self.question.take() {
            outputs.push(Output::Report(Report::PromptGone(prompt)));
        }
        outputs.extend(self.tool_update(ToolStatus::Cancelled, None));
        outputs
    }

    pub(super) fn usage(&self) -> Usage {
        let output_tokens = Some(self.words);
        Usage { input_tokens: Some(1), output_tokens, cached_tokens: None, cost_micro_usd: Some(0) }
    }

    fn name(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{}-{kind}{}", self.id, self.made)
    }

    fn word(&mut self, voice: Voice, word: String) -> Output {
        self.words += 1;
        let mut making = match self.message.take() {
            Some(making) => making,
            None => Making { id: self.name("m").into(), parts: vec![], units: 0 },
        };
        let same_voice = match voice {
            Voice::Text => matches!(making.parts.last(), Some(Part::Text(_))),
            Voice::Thinking => matches!(making.parts.last(), Some(Part::Thinking(_))),
        };
        if !same_voice {
            making.units = 0;
            making.parts.push(match voice {
                Voice::Text => Part::Text(String::new()),
                Voice::Thinking => Part::Thinking(String::new()),
            });
        }
        if let Some(Part::Text(text) | Part::Thinking(text)) = making.parts.last_mut() {
            text.push_str(&word);
        }
        let part = u32::try_from(making.parts.len() - 1).unwrap_or(u32::MAX);
        let (message, offset) = (making.id.clone(), making.units);
        making.units += word.encode_utf16().count() as u64;
        self.message = Some(making);
        let words = Content::Open(word);
        Output::Passing(Delta { message, part, voice, offset, words }, None)
    }

    pub(super) fn end_message(&mut self, now: Timestamp) -> Vec<Output> {
        let Some(Making { id, parts, .. }) = self.message.take() else { return vec![] };
        let message = Message {
            id,
            author: Author::Assistant,
            parts: Content::Open(parts),
            created_at: now,
            run: Some(self.id.clone()),
            parent: None,
            digest: None,
        };
        vec![Output::Report(Report::Message { message, has_own_id: true, echo: None })]
    }

    fn tool_call(
        &mut self,
        tool: &str,
        kind: ToolKind,
        status: ToolStatus,
        input: String,
    ) -> Output {
        let id: ToolCallId = self.name("t").into();
        self.tool = Some(id.clone());
        let detail =
            ToolDetail { title: Some(tool.to_owned()), input: Some(input), ..Default::default() };
        Output::Report(Report::ToolCall(ToolCall {
            id,
            tool: tool.to_owned(),
            kind,
            status,
            detail: Content::Open(detail),
            run: Some(self.id.clone()),
            parent: None,
        }))
    }

    fn tool_update(&mut self, status: ToolStatus, output: Option<&str>) -> Vec<Output> {
        let Some(id) = self.tool.clone() else { return vec![] };
        if matches!(status, ToolStatus::Completed | ToolStatus::Cancelled | ToolStatus::Failed) {
            self.tool = None;
        }
        let output = output.filter(|output| !output.is_empty()).map(str::to_owned);
        let detail = Content::Open(ToolDetail { output, ..Default::default() });
        vec![Output::Report(Report::ToolUpdate(ToolUpdate { id, status, detail }))]
    }

    fn ask(&mut self, command: String, now: Timestamp) -> Vec<Output> {
        let input = serde_json::json!({ "command": command }).to_string();
        let call = self.tool_call("Bash", ToolKind::Execute, ToolStatus::Pending, input.clone());
        let id: PromptId = self.name("p").into();
        let choice = |id: &str, label: &str, effect| Choice {
            id: id.into(),
            label: label.to_owned(),
            is_default: id == "no",
            effect: Some(effect),
            wants_answers: false,
        };
        let prompt = Prompt {
            id: id.clone(),
            text: Content::Open(format!("Run this command? {command}")),
            choices: vec![
                choice("yes", "Yes", Effect::AllowOnce),
                choice("no", "No", Effect::Reject),
                choice("always", "Always", Effect::AllowAlways),
            ],
            expiry: Some(Expiry {
                at: now.plus_ms(PROMPT_TIMEOUT_MS),
                timeout_ms: PROMPT_TIMEOUT_MS,
                choice: Some("no".into()),
            }),
            detected_at: now,
            run: Some(self.id.clone()),
            detail: Some(Content::Open(Detail {
                tool: Some("Bash".to_owned()),
                tool_call: self.tool.clone(),
                input: Some(input),
                ..Default::default()
            })),
        };
        self.question = Some((id, Question::Command(command)));
        vec![call, Output::Report(Report::Asked(prompt))]
    }

    fn ask_form(&mut self, matter: &str, now: Timestamp) -> Output {
        let id: PromptId = self.name("p").into();
        self.question = Some((id.clone(), Question::Form));
        Output::Report(Report::Asked(form::prompt(id, matter, self.id.clone(), now)))
    }
}
