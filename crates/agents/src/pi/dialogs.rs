//! Questions: the gate's about tools, and those of other extensions.
//!
//! Invariant: the gate opens only by a person, by a mode or by an earlier "always".
//!
//! Not here: the gate itself (`gate.ts`).

use std::collections::BTreeMap;

use domain::content::Failure;
use domain::session::prompts::{AnswerDetail, Choice, Detail, Effect, Expiry, Prompt};
use domain::{ChoiceId, Content, PromptId, RequestId, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::frames::Request;
use super::life::Life;
use super::notes::Line;
use super::{MODE_YOLO, Pi, tools};
use crate::Output;

/// Before the gate's questions, and the key of its report. The extension has the same.
const GATE_MARK: &str = "farhelm-gate";
/// Questions that are open at once. One more is cancelled.
const DIALOGS_MAX: usize = domain::session::prompts::PROMPTS_OPEN_MAX;
/// Options of a question; of more a person sees the first.
const OPTIONS_MAX: usize = 50;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const DENY: &str = "deny";
const YES: &str = "yes";
const NO: &str = "no";
const SUBMIT: &str = "submit";
const CANCEL: &str = "cancel";

/// Questions that are open, by their ids in pi.
pub(super) type Dialogs = BTreeMap<PromptId, Dialog>;

#[derive(Debug)]
pub(super) enum Dialog {
    /// Whether a tool may run.
    Gate(Gate),
    Select(Vec<String>),
    Confirm,
    Words,
}

/// A tool call that waits.
#[derive(Debug, Deserialize)]
pub(super) struct Gate {
    tool: String,
    call: String,
    #[serde(default)]
    input: Value,
}

impl Pi {
    /// An extension wants something of the person, or tells something.
    pub(super) fn asked(&mut self, request: Request, now: Timestamp) {
        match request.method.as_str() {
            "setStatus" if request.status_key.as_deref() == Some(GATE_MARK) => self.has_gate(),
            "input" | "select" | "confirm" | "editor" => self.asked_person(request, now),
            "notify" => {
                self.scribe.notice("notify", request.message.unwrap_or_default());
            }
            // The rest furnishes a terminal that is not there.
            _ => {}
        }
    }

    fn asked_person(&mut self, request: Request, now: Timestamp) {
        let question = request.title.strip_prefix(GATE_MARK);
        let gate = question.and_then(|json| serde_json::from_str::<Gate>(json).ok());
        let is_decided =
            |gate: &Gate| self.mode() == MODE_YOLO || self.notes.always.contains(&gate.tool);
        if gate.as_ref().is_some_and(is_decided) {
            self.reply(&request.id.as_str().into(), allow(None));
            return;
        }
        // Before the session is there, nobody can be asked; pi would wait for ever.
        if self.life != Life::Up || self.dialogs.len() >= DIALOGS_MAX {
            self.scribe
                .notice("extension", format!("Could not show a question of pi: {}", request.title));
            self.reply(&request.id.as_str().into(), json!({"cancelled": true}));
            return;
        }
        if let Some(gate) = gate {
            let prompt = self.gate_prompt(&request.id, &gate, now);
            self.dialogs.insert(prompt.id.clone(), Dialog::Gate(gate));
            self.scribe.ask(prompt, now);
            return;
        }
        let (dialog, prompt) = self.dialog(request, now);
        self.dialogs.insert(prompt.id.clone(), dialog);
        self.scribe.ask(prompt, now);
    }

    fn gate_prompt(&self, id: &str, gate: &Gate, now: Timestamp) -> Prompt {
        let title = tools::title(&gate.tool, &gate.input);
        let text = match gate.tool.as_str() {
            "bash" | "powershell" => {
                let command = gate.input.get("command").and_then(Value::as_str);
                format!("pi wants to run:\n{}", command.unwrap_or(&title))
            }
            _ => format!("pi wants to use {title}"),
        };
        let always = format!("Always allow {} in this session", gate.tool);
        let detail = Detail {
            tool: Some(gate.tool.clone()),
            tool_call: Some(gate.call.as_str().into()),
            input: Some(gate.input.to_string()),
            diffs: tools::diffs(&gate.tool, &gate.input),
            ..Detail::default()
        };
        Prompt {
            id: id.into(),
            text: Content::Open(text),
            choices: vec![
                choice(ALLOW, "Allow", Some(Effect::AllowOnce)),
                choice(ALWAYS, &always, Some(Effect::AllowAlways)),
                choice(DENY, "Deny", Some(Effect::Reject)),
            ],
            expiry: None,
            detected_at: now,
            run: self.scribe.run().cloned(),
            detail: Some(Content::Open(detail)),
        }
    }

    /// A question of another extension.
    fn dialog(&self, request: Request, now: Timestamp) -> (Dialog, Prompt) {
        let mut text = request.title.clone();
        if let Some(message) = request.message.filter(|message| !message.is_empty()) {
            text = format!("{text}\n{message}");
        }
        let mut detail = None;
        let (dialog, choices) = match request.method.as_str() {
            "confirm" => (
                Dialog::Confirm,
                vec![
                    choice(YES, "Yes", Some(Effect::AllowOnce)),
                    choice(NO, "No", Some(Effect::Reject)),
                ],
            ),
            "select" => {
                let options: Vec<_> = request.options.into_iter().take(OPTIONS_MAX).collect();
                let mut choices: Vec<_> = (0..)
                    .zip(&options)
                    .map(|(at, option)| choice(&option_id(at), option, None))
                    .collect();
                choices.push(choice(CANCEL, "Cancel", Some(Effect::Reject)));
                (Dialog::Select(options), choices)
            }
            _ => {
                let question = json!([{
                    "question": request.title,
                    "placeholder": request.placeholder,
                    "prefill": request.prefill,
                    "multiline": request.method == "editor",
                }]);
                let questions = Some(question.to_string());
                detail = Some(Content::Open(Detail { questions, ..Detail::default() }));
                let choices = vec![
                    choice(SUBMIT, "Answer", Some(Effect::AllowOnce)),
                    choice(CANCEL, "Cancel", Some(Effect::Reject)),
                ];
                (Dialog::Words, choices)
            }
        };
        let expiry = request
            .timeout
            .filter(|timeout_ms| *timeout_ms > 0)
            .map(|timeout_ms| Expiry { at: now.plus_ms(timeout_ms), timeout_ms, choice: None });
        let prompt = Prompt {
            id: request.id.as_str().into(),
            text: Content::Open(text),
            choices,
            expiry,
            detected_at: now,
            run: self.scribe.run().cloned(),
            detail,
        };
        (dialog, prompt)
    }

    /// A person answered.
    pub(super) fn answer(
        &mut self,
        request: &RequestId,
        prompt: &PromptId,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
        now: Timestamp,
    ) {
        let Some(dialog) = self.dialogs.remove(prompt) else {
            let failure = Failure::new("prompt_not_found", "The question is no longer open");
            self.scribe.answered(request, Some(failure));
            return;
        };
        match self.reply_of(&dialog, choice.map(ChoiceId::as_str), detail) {
            Ok(reply) => {
                self.reply(prompt, reply);
                self.scribe.prompt_answered(prompt, now);
                self.scribe.answered(request, None);
                if detail.stop {
                    self.interrupt(None, None, now);
                }
            }
            Err(words) => {
                self.dialogs.insert(prompt.clone(), dialog);
                self.scribe.answered(request, Some(Failure::new("invalid_choice", words)));
            }
        }
    }

    /// What pi is told, without the id.
    fn reply_of(
        &mut self,
        dialog: &Dialog,
        choice: Option<&str>,
        detail: &AnswerDetail,
    ) -> Result<Value, &'static str> {
        let cancelled = || json!({"cancelled": true});
        match (dialog, choice) {
            (Dialog::Gate(gate), Some(ALLOW | ALWAYS)) => {
                let input = detail.updated_input.as_deref().map(serde_json::from_str::<Value>);
                let Ok(input) = input.transpose() else {
                    return Err("The edited input is not JSON");
                };
                if choice == Some(ALWAYS) {
                    let line = self.notes.take(Line::Always(gate.tool.clone()));
                    self.scribe.push(line);
                }
                Ok(allow(input))
            }
            (Dialog::Gate(gate), Some(DENY) | None) => {
                self.watch.denied.insert(gate.call.clone());
                let said = detail.message.as_deref().filter(|words| !words.trim().is_empty());
                let reason = said.map_or_else(
                    || "The person did not allow this.".to_owned(),
                    |words| format!("The person did not allow this: {words}"),
                );
                Ok(json!({"value": json!({"decision": "deny", "reason": reason}).to_string()}))
            }
            (Dialog::Confirm, Some(YES)) => Ok(json!({"confirmed": true})),
            (Dialog::Confirm, Some(NO)) => Ok(json!({"confirmed": false})),
            // A prefill is a proposal: only a person makes it an answer.
            (Dialog::Words, Some(SUBMIT)) => {
                let words = words_of(detail).ok_or("The question wants an answer in words")?;
                Ok(json!({ "value": words }))
            }
            (Dialog::Select(options), Some(chosen)) if chosen != CANCEL => {
                let at = (0..).zip(options).find(|(at, _)| option_id(*at) == chosen);
                at.map(|(_, option)| json!({"value": option})).ok_or("Unknown choice")
            }
            (Dialog::Select(_) | Dialog::Words, Some(CANCEL))
            | (Dialog::Select(_) | Dialog::Words | Dialog::Confirm, None) => Ok(cancelled()),
            (Dialog::Gate(_) | Dialog::Confirm | Dialog::Words | Dialog::Select(_), Some(_)) => {
                Err("Unknown choice")
            }
        }
    }

    /// The run stops: nobody is asked any more.
    pub(super) fn cancel_dialogs(&mut self, now: Timestamp) {
        for (prompt, _) in std::mem::take(&mut self.dialogs) {
            self.reply(&prompt, json!({"cancelled": true}));
            self.scribe.prompt_gone(&prompt, now);
        }
    }

    fn reply(&mut self, prompt: &PromptId, mut reply: Value) {
        reply["type"] = json!("extension_ui_response");
        reply["id"] = json!(prompt.as_str());
        self.scribe.push(Output::Write(reply.to_string()));
    }
}

fn allow(input: Option<Value>) -> Value {
    let mut decision = json!({"decision": "allow"});
    if let Some(input) = input {
        decision["input"] = input;
    }
    json!({"value": decision.to_string()})
}

/// The words of an answer: a message, or the first of the answers to questions.
fn words_of(detail: &AnswerDetail) -> Option<String> {
    if let Some(message) = &detail.message {
        return Some(message.clone());
    }
    let answers = detail.answers.as_deref()?;
    match serde_json::from_str::<Value>(answers).ok()? {
        Value::String(words) => Some(words),
        Value::Array(answers) => answers.first()?.as_str().map(str::to_owned),
        Value::Object(answers) => answers.values().next()?.as_str().map(str::to_owned),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn option_id(at: usize) -> String {
    format!("option-{at}")
}

fn choice(id: &str, label: &str, effect: Option<Effect>) -> Choice {
    let label = label.to_owned();
    Choice { id: id.into(), label, is_default: false, effect, wants_answers: false }
}
