//! Permission prompts and other questions as `extension_ui_request`s, and what an answer means.
//!
//! **Invariant**: a cancelled dialog never becomes an allow, and an answer never becomes more than
//! it says. The first answer wins; all clients are notified when a dialog ends. A client whose
//! answer does not fit is asked again.
//!
//! Not here: asking the agent (`domain` decides, the proxy acts), the questions of a form
//! (`forms`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::session::prompts::{self, AnswerDetail, Choice, Detail, Effect, Prompt};
use domain::session::{Recorded, Wish};
use domain::{ChoiceId, Content, PromptId, Refusal, RequestId};
use serde_json::{Value, json};

use super::frames::DialogAnswer;
use super::messages::{encode, notify};
use super::{Asked, Connection, forms, responses};
use crate::port::Denied;
use crate::questions::{self, Question};
use crate::visitor::Act;

/// How often one client is asked the same again. More is a program that cannot answer it.
const ASKED_AGAIN_MAX: usize = 16;
/// Dialogs for one prompt that one client is shown. More is a program that answers and never
/// comes to an end.
const DIALOGS_MAX: usize = 256;
/// Words of buttons that let something happen. A button with one of them is never pressed for
/// somebody who cancelled.
const ALLOWING: [&str; 12] = [
    "allow", "always", "yes", "approve", "accept", "ok", "okay", "trust", "proceed", "continue",
    "run", "grant",
];

/// How a prompt is asked.
#[derive(Debug, PartialEq)]
enum Shape<'a> {
    /// Yes and no.
    Confirm { yes: &'a Choice, no: &'a Choice },
    /// One of several buttons.
    Select,
    /// The agent's questions, one dialog after the other, and the button that sends the answers.
    Form { send: &'a Choice, questions: Vec<Question> },
}

/// What one connection was asked besides the prompts themselves, and what it answered so far.
#[derive(Debug, Default)]
pub(super) struct Dialogs {
    /// Ids under which this client alone was asked, again or the next question of a form.
    asked: BTreeMap<String, Asking>,
    /// The answers to the first questions of a form.
    filled: BTreeMap<PromptId, Vec<Option<Value>>>,
}

/// What a dialog asks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asking {
    prompt: PromptId,
    /// Which question of a form, from 0.
    step: usize,
}

impl Dialogs {
    pub(super) fn clear(&mut self) {
        self.asked.clear();
        self.filled.clear();
    }
}

/// What an answer comes to.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// This button, and what goes with it.
    Press(ChoiceId, Option<AnswerDetail>),
    /// The answer to one question of a form; `None` leaves it open.
    Fill(Option<Value>),
}

/// A prompt as the dialog that a client answers. Its id is the prompt's. Of a form, it asks the
/// first question.
pub(super) fn request(prompt: &Prompt) -> Value {
    question(prompt, 0)
}

fn question(prompt: &Prompt, step: usize) -> Value {
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
            let how = "Answer with a number or a name:";
            request["title"] = json!(format!("{how}\n{}\n\n{text}", rows(&options)));
            request["options"] = json!(options);
        }
        Shape::Form { questions, .. } => forms::ask(&mut request, text, &questions, step),
    }
    if let Some(expiry) = &prompt.expiry {
        request["timeout"] = json!(expiry.timeout_ms);
    }
    request
}

/// Options as lines of a title. Pages show the title alone, and browsers cut it. The options come
/// first, so that no long question hides them and none that looks like options comes before them.
pub(super) fn rows(options: &[String]) -> String {
    let row = |(at, option): (usize, &String)| {
        let words: Vec<_> = option.split_whitespace().collect();
        format!("{}. {}", at + 1, words.join(" "))
    };
    options.iter().enumerate().map(row).collect::<Vec<_>>().join("\n")
}

/// A dialog is over, whoever ended it.
pub(super) fn resolved(prompt: &PromptId) -> Value {
    json!({ "type": "extension_ui_resolved", "id": prompt })
}

impl Connection {
    pub(super) fn on_dialog(&mut self, answer: &DialogAnswer) -> Vec<Act> {
        let plain = || Asking { prompt: PromptId::from(answer.id.as_str()), step: 0 };
        let asking = self.dialogs.asked.get(&answer.id).cloned().unwrap_or_else(plain);
        // One that is not open: answered elsewhere, or never asked. Its end was told.
        let Some(prompt) = self.view.prompts.get(&asking.prompt) else { return vec![] };
        let (choice, detail) = match verdict(prompt, answer, asking.step) {
            Ok(Verdict::Press(choice, detail)) => (choice, detail),
            Ok(Verdict::Fill(value)) => match self.fill(&asking, value) {
                Ok(pressed) => pressed,
                Err(acts) => return acts,
            },
            Err(words) => return self.ask_again(&asking, &words),
        };
        self.dialogs.filled.remove(&asking.prompt);
        let id = asking.prompt;
        let ticket = self.ticket(Asked::Answer(id.clone()));
        let request = RequestId::from(format!("{}:answer:{ticket}", self.own_name));
        let detail = detail.map(Content::Open);
        let wish = Wish::Answer { request: Some(request), prompt: id, choice, detail };
        vec![Act::Wish { session: self.view.session.clone(), wish: Box::new(wish), ticket }]
    }

    /// Takes the answer to one question of a form: asks the next one, or sends all answers. An
    /// answer under an older id replaces that answer and those after it.
    fn fill(
        &mut self,
        asking: &Asking,
        value: Option<Value>,
    ) -> Result<(ChoiceId, Option<AnswerDetail>), Vec<Act>> {
        let prompt = self.view.prompts.get(&asking.prompt);
        let Some(Shape::Form { send, questions }) = prompt.map(shape) else { return Err(vec![]) };
        let send = send.id.clone();
        let filled = self.dialogs.filled.entry(asking.prompt.clone()).or_default();
        filled.truncate(asking.step);
        // It may have opened again meanwhile: then its questions begin anew.
        if filled.len() == asking.step {
            filled.push(value);
        }
        let step = filled.len();
        if step < questions.len() {
            return Err(self.ask(&Asking { step, ..asking.clone() }));
        }
        Ok((send, Some(forms::answers(&questions, filled))))
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
        // Settled meanwhile: its end was told.
        if !self.view.prompts.contains_key(id) {
            return vec![];
        }
        let words = format!("The question is still open: {}", responses::words(denied));
        match denied {
            // Asking once more would not help: the client may not answer, or the session is damaged.
            Denied::Refused(Refusal::Unauthorized | Refusal::OwnerOnly) | Denied::Code(..) => {
                vec![self.note(&words, "warning")]
            }
            Denied::Refused(_) | Denied::Failed(_) => {
                self.ask_again(&Asking { prompt: id.clone(), step: 0 }, &words)
            }
        }
    }

    /// Tells this client why its answer changed nothing, and asks it again: its page closed the
    /// dialog with the answer, and may not show the same id twice.
    fn ask_again(&mut self, asking: &Asking, words: &str) -> Vec<Act> {
        let asked = self.dialogs.asked.values().filter(|asked| *asked == asking).count();
        if asked >= ASKED_AGAIN_MAX {
            let words = format!("{words}. The question is still open; answer it in another client");
            return vec![self.note(&words, "warning")];
        }
        let mut acts = vec![self.note(words, "warning")];
        acts.extend(self.ask(asking));
        acts
    }

    /// Asks this client alone, under an id of its own.
    fn ask(&mut self, asking: &Asking) -> Vec<Act> {
        let asked = self.dialogs.asked.values().filter(|asked| asked.prompt == asking.prompt);
        let prompt = self.view.prompts.get(&asking.prompt);
        let Some(prompt) = prompt.filter(|_| asked.count() < DIALOGS_MAX) else { return vec![] };
        let mut request = question(prompt, asking.step);
        self.count += 1;
        let name = format!("again-{}-{}", self.own_name, self.count);
        request["id"] = json!(name);
        self.dialogs.asked.insert(name, asking.clone());
        vec![Act::Send(encode(&request))]
    }

    /// The ids under which this client alone was asked are over with their prompt.
    pub(super) fn resolved_again(&mut self, event: &prompts::Event) -> Vec<Bytes> {
        let prompts::Event::Settled { prompt, .. } = event else { return vec![] };
        self.dialogs.filled.remove(prompt);
        let over = self.dialogs.asked.iter().filter(|(_, asked)| asked.prompt == *prompt);
        let over: Vec<_> = over.map(|(name, _)| name.clone()).collect();
        for name in &over {
            self.dialogs.asked.remove(name);
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

/// What an answer comes to; or why it comes to nothing.
fn verdict(prompt: &Prompt, answer: &DialogAnswer, step: usize) -> Result<Verdict, String> {
    let press = |choice: &Choice| Verdict::Press(choice.id.clone(), None);
    if answer.cancelled == Some(true) {
        let choice = refusing(prompt);
        let choice =
            choice.ok_or("This question cannot be cancelled; choose one of its answers")?;
        return Ok(press(choice));
    }
    match shape(prompt) {
        Shape::Confirm { yes, no } => match answer.confirmed {
            Some(true) => Ok(press(yes)),
            Some(false) => Ok(press(no)),
            None => Err("Answer this question with confirmed: true or false".to_owned()),
        },
        Shape::Select => {
            let value = answer.value.as_deref().unwrap_or_default();
            let options = options(prompt);
            let choice = meant(&options, value).and_then(|at| prompt.choices.get(at));
            Ok(press(choice.ok_or_else(|| not_an_option(value, &options))?))
        }
        Shape::Form { questions, .. } => {
            let question = questions.get(step).ok_or("This question is no longer open")?;
            let value = answer.value.as_deref().ok_or("Answer this question with a value")?;
            forms::read(question, value).map(Verdict::Fill)
        }
    }
}

pub(super) fn not_an_option(value: &str, options: &[String]) -> String {
    format!("{value:?} is not one of the options: {}", options.join(", "))
}

/// The only option that a person can have meant: by its text, its number, or its beginning.
pub(super) fn meant(options: &[String], value: &str) -> Option<usize> {
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
    if let Some((send, questions)) = form(prompt) {
        return Shape::Form { send, questions };
    }
    let of = |wanted| prompt.choices.iter().find(|it| effect(it) == Some(wanted));
    match (of(Effect::AllowOnce), of(Effect::Reject)) {
        (Some(yes), Some(no)) if prompt.choices.len() == 2 => Shape::Confirm { yes, no },
        _ => Shape::Select,
    }
}

/// Questions whose answers one button sends. Where the buttons themselves are the answers, they
/// are chosen from.
fn form(prompt: &Prompt) -> Option<(&Choice, Vec<Question>)> {
    let questions = questions::of(prompt);
    let mut sends = prompt.choices.iter().filter(|it| effect(it) != Some(Effect::Reject));
    match (sends.next(), sends.next(), questions.is_empty()) {
        (Some(send), None, false) => Some((send, questions)),
        (Some(_) | None, _, _) => None,
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
