//! Converts Codex's questions to prompts, and people's answers to the form that Codex expects.
//!
//! Invariant: every question is answered once or withdrawn. An unknown question is refused at once,
//! so that Codex never waits for an answer that nobody can give.
//!
//! Not here: who may answer (`domain`), the text of each question (`questions`).

mod questions;

use std::collections::BTreeMap;

use domain::content::Failure;
use domain::session::prompts::{AnswerDetail, Choice, Prompt};
use domain::{ChoiceId, Content, PromptId, RequestId, Timestamp};
use serde_json::{Value, json};

use super::{Codex, Why};
use crate::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, TheirId};
use questions::{Blank, Question};

/// Questions that wait at once. Beyond that they are refused: the agent is looping.
const OPEN_MAX: usize = 32;

/// The questions that wait.
#[derive(Debug, Default)]
pub(super) struct Prompts(BTreeMap<PromptId, Open>);

#[derive(Debug)]
struct Open {
    request: TheirId,
    question: Question,
}

impl Prompts {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The run is over: nothing waits any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Codex {
    pub(super) fn asked(&mut self, id: TheirId, method: &str, params: &Value, now: Timestamp) {
        let question = match method {
            "item/commandExecution/requestApproval" => questions::command(params),
            "item/fileChange/requestApproval" => {
                let item = params.get("itemId").and_then(Value::as_str).unwrap_or_default();
                let diffs = self.watch.changes_of(&super::items::call_id(item));
                questions::file_change(params, diffs, &self.setup.workspace)
            }
            "item/permissions/requestApproval" => questions::permissions(params),
            "item/tool/requestUserInput" => questions::user_input(params),
            "mcpServer/elicitation/request" => questions::elicitation(params),
            _ => {
                let line = self.rpc.refusal(&id, METHOD_NOT_FOUND, "not supported by this client");
                self.write(line);
                self.strange(method, &format!("{method} {params}"));
                return;
            }
        };
        let Some(question) = question.filter(|_| self.prompts.0.len() < OPEN_MAX) else {
            let line = self.rpc.refusal(
                &id,
                INVALID_PARAMS,
                "Farhelm cannot show this request to a person",
            );
            self.write(line);
            return;
        };
        self.turn_shown(now);
        // Codex numbers its questions anew in each program: the time tells them apart.
        let prompt = PromptId::from(format!("codex-{}-{id}", now.0).as_str());
        let choices = question.choices.iter().map(|answer| Choice {
            id: answer.id.into(),
            label: answer.label.clone(),
            is_default: false,
            effect: answer.effect,
            wants_answers: false,
        });
        self.scribe.ask(
            Prompt {
                id: prompt.clone(),
                text: Content::Open(question.text.clone()),
                choices: choices.collect(),
                expiry: None,
                detected_at: now,
                run: self.scribe.run().cloned(),
                detail: Some(Content::Open(question.detail.clone())),
            },
            now,
        );
        self.prompts.0.insert(prompt, Open { request: id, question });
    }

    pub(super) fn answer(
        &mut self,
        request: &RequestId,
        prompt: &PromptId,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
        now: Timestamp,
    ) {
        let Some(open) = self.prompts.0.get(prompt) else {
            let words = "The question is no longer open";
            self.scribe.answered(request, Some(Failure::new("prompt_not_found", words)));
            return;
        };
        let result = match open.question.result(choice.map(ChoiceId::as_str), detail) {
            Ok(result) => result,
            Err(words) => {
                self.scribe.answered(request, Some(Failure::new("invalid_choice", words)));
                return;
            }
        };
        let is_no = open.question.is_rejection(choice.map(ChoiceId::as_str));
        let line = self.rpc.answer(&open.request, result);
        self.prompts.0.remove(prompt);
        self.write(line);
        self.scribe.prompt_answered(prompt, now);
        self.scribe.answered(request, None);
        let words = detail.message.as_deref();
        if let Some(words) = words.filter(|words| is_no && !detail.stop && !words.trim().is_empty())
        {
            self.say_why(words);
        }
    }

    /// Codex's "no" carries no words: they are said beside it.
    fn say_why(&mut self, words: &str) {
        let turn = self.turn.as_ref().and_then(super::Turn::steerable_id);
        let Some(turn) = turn else { return };
        let params = json!({
            "threadId": self.thread,
            "expectedTurnId": turn,
            "input": [{ "type": "text", "text": words }],
        });
        self.ask(Why::Ignored, "turn/steer", params);
    }

    /// Codex no longer waits for an answer.
    pub(super) fn request_resolved(&mut self, params: &Value, now: Timestamp) {
        let Some(request) = params.get("requestId").and_then(TheirId::of) else { return };
        let open = self.prompts.0.iter().find(|(_, open)| open.request == request);
        if let Some(prompt) = open.map(|(prompt, _)| prompt.clone()) {
            self.prompts.0.remove(&prompt);
            self.scribe.prompt_gone(&prompt, now);
        }
    }
}

impl Question {
    /// What Codex hears.
    fn result(&self, choice: Option<&str>, detail: &AnswerDetail) -> Result<Value, String> {
        let Some(choice) = choice else { return Ok(self.over.clone()) };
        let found = self.choices.iter().find(|answer| answer.id == choice);
        let answer = found.ok_or_else(|| format!("The question has no choice {choice}"))?;
        if answer.is_no()
            && let Some(stop) = self.stop.as_ref()
            && detail.stop
        {
            return Ok(stop.clone());
        }
        let mut result = answer.result.clone();
        let filled = detail.answers.as_deref();
        match (&self.blank, filled) {
            (Blank::Answers(questions), Some(filled)) if !answer.is_no() => {
                let filled = parsed(filled)?;
                result = json!({ "answers": questions::answers(questions, &filled) });
            }
            (Blank::Content, Some(filled)) if !answer.is_no() => {
                result["content"] = parsed(filled)?;
            }
            (Blank::Nothing | Blank::Answers(_) | Blank::Content, _) => {}
        }
        Ok(result)
    }

    fn is_rejection(&self, choice: Option<&str>) -> bool {
        self.choices.iter().any(|answer| Some(answer.id) == choice && answer.is_no())
    }
}

fn parsed(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("The answers are not JSON: {error}"))
}
