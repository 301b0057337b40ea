//! A client's answers to permission requests. The first answer wins. A program waits for the
//! result of its answer, so a request whose answer was not accepted is sent again.
//!
//! Not here: what an answer means and how a request looks (`prompts`).

use std::collections::{BTreeMap, BTreeSet};

use domain::session::prompts;
use domain::session::{Event, Recorded, Wish, status};
use domain::{Content, PromptId, Refusal, RequestId};

use super::frames::Response;
use super::messages::encode;
use super::prompts as permission;
use super::{Asked, Connection, join};
use crate::port::Denied;
use crate::visitor::Act;

/// How often one client is sent the same request again. More is a program that cannot answer it.
const ASKED_AGAIN_MAX: usize = 8;

/// Between this connection's name and its own numbers in the names of answers.
const MARK: &str = ":answer:";

/// The requests that were sent to one client again.
#[derive(Debug, Default)]
pub(super) struct AskedAgain {
    times: BTreeMap<PromptId, usize>,
    /// Those whose machine was away: they are sent again when it is back.
    waiting: BTreeSet<PromptId>,
}

impl Connection {
    pub(super) fn on_response(&mut self, response: &Response) -> Vec<Act> {
        let id = PromptId::from(response.request_id.as_str());
        // One that is not open: answered elsewhere, or never asked. Its end was told.
        let Some(prompt) = self.view.prompts.get(&id) else { return vec![] };
        if response.subtype != "success" {
            // A client that cannot ask its person leaves the question to the others.
            let words = response.error.as_deref().unwrap_or("no reason given");
            return self.note(&format!("The question is still open: {words}"));
        }
        let Some(answer) = &response.answer else {
            return self.ask_again(&id, "the answer is empty");
        };
        let (choice, detail) = match permission::verdict(prompt, answer) {
            Ok(verdict) => verdict,
            Err(words) => return self.ask_again(&id, &words),
        };
        let prompt = id;
        let ticket = self.ticket(Asked::Answer(prompt.clone()));
        let request = RequestId::from(format!("{}{MARK}{ticket}", self.own_name));
        let detail = detail.map(Content::Open);
        let wish = Wish::Answer { request: Some(request), prompt, choice, detail };
        vec![Act::Wish { session: self.view.session.clone(), wish: Box::new(wish), ticket }]
    }

    /// Whether this connection gave the answer that settled a prompt.
    pub(super) fn answered(&self, request: &RequestId) -> bool {
        let name = request.as_str().strip_prefix(self.own_name.as_str());
        name.is_some_and(|rest| rest.starts_with(MARK))
    }

    pub(super) fn on_answered(
        &mut self,
        prompt: &PromptId,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let denied = match done {
            Ok(_) | Err(Denied::Refused(Refusal::PromptNotOpen(_))) => return vec![],
            Err(denied) => denied,
        };
        // Settled meanwhile: its end was told, and nothing would forget it again.
        if !self.view.prompts.contains_key(prompt) {
            return vec![];
        }
        let words = super::requests::words(&denied);
        match denied {
            // Asking once more would not help: the client may not answer, or the session is damaged.
            Denied::Refused(Refusal::Unauthorized | Refusal::OwnerOnly) | Denied::Code(..) => {
                self.note(&format!("The question is still open: {words}"))
            }
            Denied::Refused(Refusal::NoProxyConnected) => {
                self.asked_again.waiting.insert(prompt.clone());
                self.note(&format!("The question is still open: {words}"))
            }
            Denied::Refused(_) | Denied::Failed(_) => self.ask_again(prompt, &words),
        }
    }

    /// What an event changes about requests that were or will be sent again.
    pub(super) fn ask_after(&mut self, event: &Event) -> Vec<Act> {
        match event {
            Event::Prompt(prompts::Event::Settled { prompt, .. }) => {
                self.asked_again.times.remove(prompt);
                self.asked_again.waiting.remove(prompt);
                vec![]
            }
            Event::Status(status::Event::Up { .. }) => {
                let waiting = std::mem::take(&mut self.asked_again.waiting);
                waiting.iter().filter_map(|prompt| self.ask(prompt)).collect()
            }
            Event::Prompt(_)
            | Event::Status(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Run(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Transcript(_) => vec![],
        }
    }

    /// Tells this client why its answer changed nothing, and asks it again under the same id.
    fn ask_again(&mut self, prompt: &PromptId, words: &str) -> Vec<Act> {
        let mut acts = self.note(&format!("The question is still open: {words}"));
        let times = self.asked_again.times.entry(prompt.clone()).or_default();
        *times += 1;
        if *times <= ASKED_AGAIN_MAX {
            acts.extend(self.ask(prompt));
        }
        acts
    }

    fn ask(&self, prompt: &PromptId) -> Option<Act> {
        let prompt = self.view.prompts.get(prompt)?;
        Some(Act::Send(encode(&permission::request(prompt))))
    }

    fn note(&self, words: &str) -> Vec<Act> {
        vec![Act::Send(join::note(&self.view.session, words))]
    }
}
