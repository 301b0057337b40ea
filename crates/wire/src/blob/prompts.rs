//! Permission prompts, which this dialect has no word for: they are shown as messages of the
//! system, and `/approve` and `/deny` answer them.
//!
//! **Invariant**: an approval allows once, never more; a denial never becomes an approval.
//!
//! Not here: the commands' words (`commands`).

use bytes::Bytes;
use domain::content::Failure;
use domain::session::Wish;
use domain::session::prompts::{Choice, Effect, Prompt, Settled};
use domain::{ChoiceId, PromptId, Sequence, Timestamp};
use serde_json::json;

use super::events::{Role, SEALED, said};
use super::frames::event;
use super::{Asked, Connection};
use crate::port::Denied;
use crate::visitor::Act;

/// A question, asked for the first time or again because an answer could not be applied.
pub(super) fn asked(
    prompt: &Prompt,
    failure: Option<&Failure>,
    at: Timestamp,
    sequence: Option<Sequence>,
) -> Bytes {
    let question = prompt.text.open().map_or(SEALED, String::as_str);
    let again =
        failure.map(|failure| format!("The answer did not get through ({}). ", failure.message));
    let words = format!(
        "{}Permission needed: {question}\nAnswer with /approve {id} or /deny {id}",
        again.unwrap_or_default(),
        id = prompt.id,
    );
    let mut payload = said(Role::System, &words, prompt.id.as_str(), at);
    payload["prompt"] = json!({ "id": prompt.id, "state": "open", "text": question });
    event("message", &payload, sequence)
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
        Settled::ByExpiry => format!("Permission answered by time: {chosen}"),
        Settled::Withdrawn => "The question went away".to_owned(),
    };
    let mut payload = said(Role::System, &words, &format!("evt_{sequence}"), at);
    payload["prompt"] = json!({ "id": id, "state": "closed", "choice": choice });
    event("message", &payload, Some(sequence))
}

impl Connection {
    /// Answers a question: the named one, else the oldest.
    pub(super) fn decide(&mut self, named: Option<&str>, wanted: Effect) -> Vec<Act> {
        let Some(view) = &self.view else { return self.tell("No session is chosen") };
        let is_named = |prompt: &&Prompt| named.is_none_or(|id| prompt.id.as_str() == id);
        let Some(prompt) = view.prompts.iter().find(is_named) else {
            return self.tell("No such permission question is open");
        };
        let Some(choice) = prompt.choices.iter().find(|it| effect(it) == Some(wanted)) else {
            return self.tell("This question has no such answer; use another client for it");
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
