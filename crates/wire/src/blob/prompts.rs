//! Permission prompts. The dialect has no frame for them, so they are shown as system messages,
//! and `/approve` and `/deny` answer them.
//!
//! **Invariant**: an approval allows once, never more; a denial never becomes an approval.
//!
//! Not here: parsing the commands (`commands`).

use bytes::Bytes;
use domain::content::Failure;
use domain::session::prompts::{Choice, Effect, Prompt, Settled};
use domain::session::{Event, Recorded, Wish};
use domain::{ChoiceId, MessageId, PromptId, RunId, Sequence, Timestamp};
use serde_json::json;

use super::events::{Role, SEALED, error, said};
use super::frames::event;
use super::{Asked, Connection};
use crate::port::Denied;
use crate::questions::is_more_than_yes;
use crate::visitor::Act;

/// After so long, who sent something and waits for its run is told that the run waits for an
/// answer. Agent Blob's command line reads nothing until its run is over or an `error` comes.
const FREED_AFTER_MS: u64 = 10_000;

/// A question, asked for the first time or again because an answer could not be applied.
pub(super) fn asked(
    prompt: &Prompt,
    failure: Option<&Failure>,
    at: Timestamp,
    sequence: Option<Sequence>,
) -> Bytes {
    let question = prompt.text.open().map_or(SEALED, String::as_str);
    let again =
        failure.map(|failure| format!("The answer could not be applied ({}). ", failure.message));
    let is_permission = pressed(prompt, Effect::AllowOnce).is_some();
    let what = if is_permission { "Permission needed" } else { "The agent asks" };
    let how = how_to_answer(prompt);
    let words = format!("{}{what}: {question}\n{how}", again.unwrap_or_default());
    let words = without_markup(&words);
    let mut payload = said(Role::System, &words, prompt.id.as_str(), at);
    payload["prompt"] = json!({ "id": prompt.id, "state": "open", "text": question });
    event("message", &payload, sequence)
}

/// Words of the agent as Agent Blob's command line shows them whole: it takes square brackets for
/// markup and leaves out what is in them, so that a person would approve what they cannot read.
fn without_markup(words: &str) -> String {
    words.replace('[', "\u{ff3b}").replace(']', "\u{ff3d}")
}

/// Which commands answer a question here: only those that would be taken.
fn how_to_answer(prompt: &Prompt) -> String {
    let id = &prompt.id;
    let is_taken = |wanted| pressed(prompt, wanted).is_some();
    match (is_taken(Effect::AllowOnce), is_taken(Effect::Reject)) {
        (true, true) => format!("Answer with /approve {id} or /deny {id}"),
        (true, false) => format!("Answer with /approve {id}, or in another client"),
        (false, true) => format!("Answer in another client, or deny with /deny {id}"),
        (false, false) => "Answer in another client".to_owned(),
    }
}

/// The button that a command presses, if it may.
fn pressed(prompt: &Prompt, wanted: Effect) -> Option<&Choice> {
    let is_too_little = wanted != Effect::Reject && is_more_than_yes(prompt);
    prompt.choices.iter().find(|it| effect(it) == Some(wanted)).filter(|_| !is_too_little)
}

/// The only question of this id, or whose id is shown like this.
fn named<'a>(prompts: &'a [Prompt], name: &str) -> Option<&'a Prompt> {
    let is_named = |it: &&Prompt| it.id.as_str() == name || without_markup(it.id.as_str()) == name;
    let mut found = prompts.iter().filter(is_named);
    found.next().filter(|_| found.next().is_none())
}

/// A question is over.
pub(super) fn settled(
    id: &PromptId,
    prompt: Option<&Prompt>,
    choice: Option<&ChoiceId>,
    settled: &Settled,
    (sequence, at): (Sequence, Timestamp),
) -> Bytes {
    let chosen = choice.and_then(|choice| {
        let known = prompt.into_iter().flat_map(|prompt| &prompt.choices);
        known.into_iter().find(|known| known.id == *choice).map(|known| known.label.as_str())
    });
    let chosen = chosen.or(choice.map(ChoiceId::as_str)).unwrap_or("nothing");
    let words = match settled {
        Settled::ByPerson { name } => format!("Permission answered by {name}: {chosen}"),
        Settled::ByExpiry => format!("Permission request expired: {chosen}"),
        Settled::Withdrawn => "The question was withdrawn".to_owned(),
    };
    let words = without_markup(&words);
    let mut payload = said(Role::System, &words, &format!("evt_{sequence}"), at);
    payload["prompt"] = json!({ "id": id, "state": "closed", "choice": choice });
    event("message", &payload, Some(sequence))
}

impl Connection {
    /// Answers a question: the named one, else the oldest.
    pub(super) fn decide(&mut self, name: Option<&str>, wanted: Effect) -> Vec<Act> {
        let Some(view) = &self.view else { return self.tell("No session selected") };
        let oldest = view.prompts.first();
        let Some(prompt) = name.map_or(oldest, |name| named(&view.prompts, name)) else {
            return self.tell("No matching permission request is open");
        };
        let Some(choice) = pressed(prompt, wanted) else {
            let words = match wanted {
                Effect::Reject => "This question cannot be denied here",
                Effect::AllowOnce | Effect::AllowAlways => {
                    "This question needs more than allow or deny"
                }
            };
            let words = without_markup(&format!("{words}. {}", how_to_answer(prompt)));
            return self.tell(&words);
        };
        let wish = Wish::Answer {
            request: None,
            prompt: prompt.id.clone(),
            choice: choice.id.clone(),
            detail: None,
        };
        let session = view.session.clone();
        let ticket = self.ticket(Asked::Decision);
        vec![Act::Wish { session, wish: Box::new(wish), ticket }]
    }

    /// Takes note of whether a run of this connection waits for an answer, after an event.
    pub(super) fn note_blocked(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Prompt(_) | Event::Run(_) => {}
            Event::Delivery(_)
            | Event::Queue(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_)
            | Event::Transcript(_) => return,
        }
        let Some((run, _)) = self.blocked() else {
            self.frees_at = None;
            return;
        };
        if self.freed.as_ref() != Some(run) {
            self.frees_at.get_or_insert(recorded.at.plus_ms(FREED_AFTER_MS));
        }
    }

    /// Tells a client that has waited long enough that nothing comes until somebody answers.
    pub(super) fn free(&mut self, now: Timestamp) -> Vec<Act> {
        if self.frees_at.take_if(|at| *at <= now).is_none() || self.switch.is_some() {
            return vec![];
        }
        let Some((run, send)) = self.blocked() else { return vec![] };
        let (run, prompts) = (run.clone(), self.view.as_ref().map(|view| view.prompts.as_slice()));
        let Some([oldest, ..]) = prompts else { return vec![] };
        let how = how_to_answer(oldest);
        let words = format!("The agent is waiting for an answer. {how}; then the run continues");
        let words = without_markup(&words);
        let told = error(Some(send.as_str()), &words, false, "TOOL_EXECUTION_FAILED", None);
        self.freed = Some(run);
        vec![Act::Send(told)]
    }

    /// The run that waits for an answer and that a send of this connection is in.
    fn blocked(&self) -> Option<(&RunId, &MessageId)> {
        let view = self.view.as_ref().filter(|view| !view.prompts.is_empty())?;
        let run = view.run.as_ref()?;
        let is_own = |send: &&MessageId| self.said.iter().any(|(said, _)| said == *send);
        Some((&run.id, run.sends.iter().find(is_own)?))
    }

    /// The answer was taken, which its event tells, or not.
    pub(super) fn on_decided(&mut self, denied: Option<&Denied>) -> Vec<Act> {
        denied.map_or(vec![], |denied| self.tell(&super::words(denied, None)))
    }
}

/// What a button does, as its agent says; else as its own words say, where they are plain.
fn effect(choice: &Choice) -> Option<Effect> {
    choice.effect.or_else(|| {
        let plain = |word: &str| match word.to_lowercase().as_str() {
            "yes" | "allow" | "approve" | "accept" | "ok" => Some(Effect::AllowOnce),
            "no" | "deny" | "reject" | "decline" | "cancel" => Some(Effect::Reject),
            _ => None,
        };
        plain(choice.id.as_str()).or_else(|| plain(&choice.label))
    })
}
