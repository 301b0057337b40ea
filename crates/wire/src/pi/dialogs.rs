//! Permission prompts and other questions as `extension_ui_request`s, and what an answer means.
//!
//! **Invariant**: a cancelled dialog never becomes an allow, and an answer never more than it
//! says. The first answer wins; the end of a dialog is told to everybody. Who answers something
//! that fits nothing is asked again.
//!
//! Not here: asking the agent (`domain` decides, the proxy does).

use bytes::Bytes;
use domain::session::prompts::{self, AnswerDetail, Choice, Detail, Effect, Prompt};
use domain::session::{Recorded, Wish};
use domain::{ChoiceId, Content, PromptId, Refusal, RequestId};
use serde_json::{Value, json};

use super::frames::DialogAnswer;
use super::messages::{encode, notify};
use super::{Asked, Connection, responses};
use crate::port::Denied;
use crate::visitor::Act;

/// How often one client is asked the same again. More is a program that cannot answer it.
const ASKED_AGAIN_MAX: usize = 16;
/// Words of buttons that let something happen. A button with one of them is never pressed for
/// somebody who cancelled.
const ALLOWING: [&str; 12] = [
    "allow", "always", "yes", "approve", "accept", "ok", "okay", "trust", "proceed", "continue",
    "run", "grant",
];

/// How a prompt is asked.
#[derive(Debug, PartialEq, Eq)]
enum Shape<'a> {
    /// Yes and no.
    Confirm { yes: &'a Choice, no: &'a Choice },
    /// One of several.
    Select,
    /// Words of the person's own.
    Words { send: &'a Choice, question: Value },
}

/// A prompt as the dialog that a client answers. Its id is the prompt's.
pub(super) fn request(prompt: &Prompt) -> Value {
    let sealed = "The question is sealed".to_owned();
    let text = prompt.text.open().unwrap_or(&sealed);
    let mut request = json!({ "type": "extension_ui_request", "id": prompt.id });
    match shape(prompt) {
        Shape::Confirm { .. } => {
            request["method"] = json!("confirm");
            request["title"] = json!(title(prompt));
            request["message"] = json!(text);
        }
        Shape::Select => {
            request["method"] = json!("select");
            let options = options(prompt);
            // Pages show the title alone, and browsers cut it. The options come first, so that no
            // long question hides them and none that looks like options comes before them.
            let row = |(at, option): (usize, &String)| {
                let words: Vec<_> = option.split_whitespace().collect();
                format!("{}. {}", at + 1, words.join(" "))
            };
            let rows: Vec<_> = options.iter().enumerate().map(row).collect();
            let how = "Answer with a number or a name:";
            request["title"] = json!(format!("{how}\n{}\n\n{text}", rows.join("\n")));
            request["options"] = json!(options);
        }
        Shape::Words { question, .. } => {
            let is_long = question["multiline"] == true;
            request["method"] = json!(if is_long { "editor" } else { "input" });
            request["title"] = json!(text);
            let hint = if is_long { "prefill" } else { "placeholder" };
            if !question[hint].is_null() {
                request[hint] = question[hint].clone();
            }
        }
    }
    if let Some(expiry) = &prompt.expiry {
        request["timeout"] = json!(expiry.timeout_ms);
    }
    request
}

/// A dialog is over, whoever ended it.
pub(super) fn resolved(prompt: &PromptId) -> Value {
    json!({ "type": "extension_ui_resolved", "id": prompt })
}

impl Connection {
    pub(super) fn on_dialog(&mut self, answer: &DialogAnswer) -> Vec<Act> {
        let again = self.asked_again.get(&answer.id).cloned();
        let id = again.unwrap_or_else(|| PromptId::from(answer.id.as_str()));
        // One that is not open: answered elsewhere, or never asked. Its end was told.
        let Some(prompt) = self.view.prompts.get(&id) else { return vec![] };
        let (choice, message) = match verdict(prompt, answer) {
            Ok(verdict) => verdict,
            Err(words) => return self.ask_again(&id, &words),
        };
        let detail = message.map(|message| {
            Content::Open(AnswerDetail { message: Some(message), ..AnswerDetail::default() })
        });
        let ticket = self.ticket(Asked::Answer(id.clone()));
        let request = RequestId::from(format!("{}:answer:{ticket}", self.own_name));
        let wish = Wish::Answer { request: Some(request), prompt: id, choice, detail };
        vec![Act::Wish { session: self.view.session.clone(), wish: Box::new(wish), ticket }]
    }

    pub(super) fn on_answered(
        &mut self,
        id: &PromptId,
        done: &Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let denied = match done {
            Ok(_) | Err(Denied::Refused(Refusal::PromptNotOpen(_))) => return vec![],
            Err(denied) => denied,
        };
        let words = format!("The question stays open: {}", responses::words(denied));
        match denied {
            // Asking once more would not help.
            Denied::Refused(Refusal::Unauthorized | Refusal::OwnerOnly) => {
                vec![self.note(&words, "warning")]
            }
            Denied::Refused(_) | Denied::Failed(_) | Denied::Code(..) => self.ask_again(id, &words),
        }
    }

    /// Tells this client why its answer changed nothing, and asks it again: its page closed the
    /// dialog with the answer, and may not show the same id twice.
    fn ask_again(&mut self, id: &PromptId, words: &str) -> Vec<Act> {
        let asked = self.asked_again.values().filter(|asked| *asked == id).count();
        if asked >= ASKED_AGAIN_MAX {
            let words = format!("{words}. The question stays open; answer it in another client");
            return vec![self.note(&words, "warning")];
        }
        let mut acts = vec![self.note(words, "warning")];
        if let Some(mut request) = self.view.prompts.get(id).map(request) {
            self.count += 1;
            let name = format!("again-{}-{}", self.own_name, self.count);
            request["id"] = json!(name);
            self.asked_again.insert(name, id.clone());
            acts.push(Act::Send(encode(&request)));
        }
        acts
    }

    /// The ids under which this client alone was asked are over with their prompt.
    pub(super) fn resolved_again(&mut self, event: &prompts::Event) -> Vec<Bytes> {
        let prompts::Event::Settled { prompt, .. } = event else { return vec![] };
        let over = self.asked_again.iter().filter(|(_, asked)| *asked == prompt);
        let over: Vec<_> = over.map(|(name, _)| name.clone()).collect();
        for name in &over {
            self.asked_again.remove(name);
        }
        over.into_iter().map(|name| encode(&resolved(&PromptId::from(name)))).collect()
    }

    /// Something for this client alone.
    pub(super) fn note(&mut self, words: &str, kind: &str) -> Act {
        self.count += 1;
        let id = format!("note-{}-{}", self.own_name, self.count);
        Act::Send(encode(&notify(&id, words, kind)))
    }
}

/// The button that an answer presses, and the words that go with it; or why it presses none.
fn verdict(prompt: &Prompt, answer: &DialogAnswer) -> Result<(ChoiceId, Option<String>), String> {
    if answer.cancelled == Some(true) {
        let choice = refusing(prompt);
        let choice =
            choice.ok_or("This question cannot be cancelled; choose one of its answers")?;
        return Ok((choice.id.clone(), None));
    }
    match shape(prompt) {
        Shape::Confirm { yes, no } => match answer.confirmed {
            Some(true) => Ok((yes.id.clone(), None)),
            Some(false) => Ok((no.id.clone(), None)),
            None => Err("This question is answered by confirmed: true or false".to_owned()),
        },
        Shape::Select => {
            let value = answer.value.as_deref().unwrap_or_default();
            let options = options(prompt);
            let choice = meant(&options, value).and_then(|at| prompt.choices.get(at));
            let choice = choice.ok_or_else(|| {
                format!("{value:?} is not one of the options: {}", options.join(", "))
            })?;
            Ok((choice.id.clone(), None))
        }
        Shape::Words { send, .. } => match &answer.value {
            Some(words) => Ok((send.id.clone(), Some(words.clone()))),
            None => Err("This question is answered by a value".to_owned()),
        },
    }
}

/// The only option that a person can have meant: by its text, its number, or its beginning.
fn meant(options: &[String], value: &str) -> Option<usize> {
    let value = value.trim();
    let lower = value.to_lowercase();
    if lower.is_empty() {
        return None;
    }
    let only = |fits: &dyn Fn(&str) -> bool| {
        let mut found = options.iter().enumerate().filter(|(_, option)| fits(option));
        match (found.next(), found.next()) {
            (Some((at, _)), None) => Some(at),
            (Some(_), Some(_)) | (None, _) => None,
        }
    };
    let text = only(&|option| option == value);
    let text = text.or_else(|| only(&|option| option.trim().to_lowercase() == lower));
    text.or_else(|| {
        let number = value.trim_end_matches(['.', ')']).parse::<usize>().ok();
        let number = number.and_then(|number| number.checked_sub(1));
        let number = number.filter(|at| *at < options.len());
        let begun = only(&|option| option.to_lowercase().starts_with(&lower));
        match (number, begun) {
            (Some(number), Some(begun)) => (number == begun).then_some(number),
            (number, begun) => number.or(begun),
        }
    })
}

fn shape(prompt: &Prompt) -> Shape<'_> {
    if let Some((send, question)) = words(prompt) {
        return Shape::Words { send, question };
    }
    let of = |wanted| prompt.choices.iter().find(|it| effect(it) == Some(wanted));
    match (of(Effect::AllowOnce), of(Effect::Reject)) {
        (Some(yes), Some(no)) if prompt.choices.len() == 2 => Shape::Confirm { yes, no },
        _ => Shape::Select,
    }
}

/// A question for words: it names one question without options, and one button that sends them.
fn words(prompt: &Prompt) -> Option<(&Choice, Value)> {
    let detail = prompt.detail.as_ref().and_then(Content::open)?;
    let questions = serde_json::from_str::<Vec<Value>>(detail.questions.as_deref()?).ok()?;
    let [question] = questions.as_slice() else { return None };
    let has_options = question["options"].as_array().is_some_and(|options| !options.is_empty());
    let mut sends = prompt.choices.iter().filter(|it| effect(it) != Some(Effect::Reject));
    match (sends.next(), sends.next()) {
        (Some(send), None) if !has_options => Some((send, question.clone())),
        _ => None,
    }
}

/// What is chosen from, in the order of the choices. Labels that are there twice carry their ids.
fn options(prompt: &Prompt) -> Vec<String> {
    let is_double = |label: &str| prompt.choices.iter().filter(|it| it.label == label).count() > 1;
    let option = |choice: &Choice| {
        if is_double(&choice.label) {
            format!("{} ({})", choice.label, choice.id)
        } else {
            choice.label.clone()
        }
    };
    prompt.choices.iter().map(option).collect()
}

fn title(prompt: &Prompt) -> String {
    let unknown = Detail::default();
    let detail = prompt.detail.as_ref().and_then(Content::open).unwrap_or(&unknown);
    detail.tool.clone().unwrap_or_else(|| "Permission".to_owned())
}

/// The button that says no; else the agent's own default, unless that says yes.
fn refusing(prompt: &Prompt) -> Option<&Choice> {
    let rejects = prompt.choices.iter().find(|it| effect(it) == Some(Effect::Reject));
    let is_safe = |it: &&Choice| it.is_default && effect(it).is_none() && !reads_like_allow(it);
    rejects.or_else(|| prompt.choices.iter().find(is_safe))
}

/// Whether a button of which nobody says what it does has a word that lets something happen.
fn reads_like_allow(choice: &Choice) -> bool {
    let texts = [choice.id.as_str(), &choice.label].map(str::to_lowercase);
    let mut words = texts.iter().flat_map(|text| text.split(|it: char| !it.is_alphanumeric()));
    words.any(|word| ALLOWING.contains(&word))
}

/// What a button does, as its agent says; else as its own words say, where they are plain.
fn effect(choice: &Choice) -> Option<Effect> {
    choice.effect.or_else(|| {
        let plain = |word: &str| match word.to_lowercase().as_str() {
            "yes" | "allow" | "approve" | "accept" | "ok" => Some(Effect::AllowOnce),
            "no" | "deny" | "reject" | "decline" | "cancel" => Some(Effect::Reject),
            "always" => Some(Effect::AllowAlways),
            _ => None,
        };
        plain(choice.id.as_str()).or_else(|| plain(&choice.label))
    })
}

#[cfg(test)]
mod tests;
