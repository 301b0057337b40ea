//! Permission prompts as `approval_request`s, and what an answer to one means.
//!
//! **Invariant**: an approval never becomes more than "this once", and a refusal never becomes an
//! approval. The first answer wins; a later answer gets an error.

use domain::session::prompts::{AnswerDetail, Choice, Detail, Effect, Prompt, Settled};
use domain::session::{Recorded, Wish};
use domain::{ChoiceId, Content, PromptId, Refusal, RequestId};
use serde_json::{Value, json};

use super::envelope::{Writer, cut};
use super::{Asked, Connection, sends};
use crate::port::Denied;
use crate::questions::is_more_than_yes;
use crate::visitor::Act;

/// Bytes of the agent's input that a question shows.
const INPUT_SHOWN_BYTES_MAX: usize = 4_096;
/// Between this connection's name and its own numbers in the names of answers.
const MARK: &str = ":answer:";

/// A prompt as a client is asked.
pub(super) fn request(writer: &Writer, prompt: &Prompt) -> bytes::Bytes {
    let text = prompt.text.open().map_or("The question is sealed", String::as_str);
    let mut payload = json!({ "action": text });
    let detail = prompt.detail.as_ref().and_then(Content::open);
    if let Some(reason) = detail.and_then(about) {
        payload["reason"] = reason.into();
    }
    let payload = payload.to_string();
    writer.write("approval_request", Some(prompt.id.as_str()), payload.as_bytes())
}

/// The tool and what it would be given.
fn about(detail: &Detail) -> Option<String> {
    let tool = detail.tool.as_deref()?;
    let mut about = tool.to_owned();
    if let Some(input) = &detail.input {
        about.push(' ');
        about.push_str(&cut(input, INPUT_SHOWN_BYTES_MAX));
    }
    Some(about)
}

/// The end of a prompt, as those hear of it who did not answer it.
pub(super) fn settled(
    writer: &Writer,
    prompt: &PromptId,
    asked: Option<&Prompt>,
    choice: Option<&ChoiceId>,
    settled: &Settled,
) -> bytes::Bytes {
    let chosen = asked.and_then(|asked| asked.choices.iter().find(|it| Some(&it.id) == choice));
    let approved = chosen.and_then(effect).is_some_and(|effect| effect != Effect::Reject);
    let reason = match settled {
        Settled::ByPerson { name } if name.is_empty() => "answered elsewhere".to_owned(),
        Settled::ByPerson { name } => format!("answered by {name}"),
        Settled::ByExpiry => "expired".to_owned(),
        Settled::Withdrawn => "withdrawn".to_owned(),
    };
    let payload = json!({ "approved": approved, "reason": reason });
    writer.write("approval_response", Some(prompt.as_str()), payload.to_string().as_bytes())
}

/// The button that an answer presses, or why it presses none.
fn verdict(prompt: &Prompt, approved: bool) -> Result<&ChoiceId, &'static str> {
    let find = |wanted| prompt.choices.iter().find(|it| effect(it) == Some(wanted));
    if approved {
        let once = find(Effect::AllowOnce).filter(|_| !is_more_than_yes(prompt));
        let words = "This question needs more than allow or deny; answer it in another client";
        return once.map(|choice| &choice.id).ok_or(words);
    }
    let plain = || prompt.choices.iter().find(|it| it.is_default && effect(it).is_none());
    let words = "This question has no deny option";
    find(Effect::Reject).or_else(plain).map(|choice| &choice.id).ok_or(words)
}

/// What a button does, as its agent says; else as its own words say, where they are plain.
fn effect(choice: &Choice) -> Option<Effect> {
    let plain = |word: &str| match word.to_lowercase().as_str() {
        "yes" | "allow" | "approve" | "accept" | "ok" => Some(Effect::AllowOnce),
        "no" | "deny" | "reject" | "decline" | "cancel" => Some(Effect::Reject),
        "always" => Some(Effect::AllowAlways),
        _ => None,
    };
    let by_words = || plain(choice.id.as_str()).or_else(|| plain(&choice.label));
    choice.effect.or_else(by_words)
}

impl Connection {
    /// A client decides. It is known and with its session.
    pub(super) fn on_approval(
        &mut self,
        request: Option<&str>,
        approved: Option<bool>,
        reason: Option<String>,
        is_sealed: bool,
    ) -> Vec<Act> {
        let invalid = |words: &str| {
            let error = self.writer.error(request, "invalid_payload", words);
            vec![Act::Send(error)]
        };
        if is_sealed {
            return invalid("Send a decision unsealed: approved, and optionally a reason");
        }
        let Some(approved) = approved else {
            return invalid("approved must be true or false");
        };
        let Some(id) = request else {
            return invalid("A decision needs the question's request_id");
        };
        let Some(prompt) = self.prompts.get(&PromptId::from(id)) else {
            return vec![self.closed(id)];
        };
        let choice = match verdict(prompt, approved) {
            Ok(choice) => choice.clone(),
            Err(words) => {
                let error = self.writer.error(Some(id), "approval_unsupported", words);
                return vec![Act::Send(error)];
            }
        };
        let prompt = prompt.id.clone();
        if self.is_full() {
            return vec![self.too_much(Some(id))];
        }
        let message = reason.filter(|words| !approved && !words.is_empty());
        let detail = message.map(|words| {
            Content::Open(AnswerDetail { message: Some(words), ..AnswerDetail::default() })
        });
        let ticket = self.ticket(Asked::Answer(id.to_owned()));
        let request = Some(RequestId::from(format!("{}{MARK}{ticket}", self.own_name)));
        self.wish(Wish::Answer { request, prompt, choice, detail }, ticket)
    }

    /// Whether this connection gave the answer that settled a prompt.
    pub(super) fn answered(&self, request: &RequestId) -> bool {
        let name = request.as_str().strip_prefix(self.own_name.as_str());
        name.is_some_and(|rest| rest.starts_with(MARK))
    }

    pub(super) fn on_answered(
        &mut self,
        id: &str,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        match done {
            Ok(_) => vec![],
            Err(Denied::Refused(Refusal::PromptNotOpen(_))) => vec![self.closed(id)],
            Err(denied) => {
                let (code, words) = sends::denial(&denied);
                vec![Act::Send(self.writer.error(Some(id), &code, &words))]
            }
        }
    }

    fn closed(&self, id: &str) -> Act {
        let words = "The question is not open: it was answered elsewhere, expired or was withdrawn";
        Act::Send(self.writer.error(Some(id), "approval_closed", words))
    }
}

/// What a tool is given, as an object.
pub(super) fn arguments(input: Option<&str>) -> Value {
    let Some(input) = input else { return json!({}) };
    match serde_json::from_str::<Value>(input) {
        Ok(value @ Value::Object(_)) => value,
        Ok(other) => json!({ "input": other }),
        Err(_) => json!({ "input": input }),
    }
}
