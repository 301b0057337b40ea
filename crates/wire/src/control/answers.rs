//! A client's answers to permission requests. The first one wins.
//!
//! Not here: what an answer means (`prompts`), how a request looks (`prompts`).

use domain::session::prompts::Prompt;
use domain::session::{Recorded, Wish};
use domain::{Content, PromptId, Refusal, RequestId};

use super::frames::Response;
use super::{Asked, Connection, join, prompts};
use crate::port::Denied;
use crate::visitor::Act;

/// Between this connection's name and its own numbers in the names of answers.
const MARK: &str = ":answer:";

impl Connection {
    pub(super) fn on_response(&mut self, response: &Response) -> Vec<Act> {
        let id = PromptId::from(response.request_id.as_str());
        // One that is not open: answered elsewhere, or never asked. Its end was told.
        let Some(prompt) = self.view.prompts.get(&id) else { return vec![] };
        if response.subtype != "success" {
            // A client that cannot ask its person leaves the question to the others.
            let words = response.error.as_deref().unwrap_or("no reason given");
            return self.note(&format!("The question stays open: {words}"));
        }
        let Some(answer) = &response.answer else {
            return self.note("The question stays open: the answer says nothing");
        };
        let (choice, detail) = match prompts::verdict(prompt, answer) {
            Ok(verdict) => verdict,
            Err(words) => return self.note(&format!("The question stays open: {words}")),
        };
        let prompt = Prompt::clone(prompt).id;
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
        _prompt: &PromptId,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        match done {
            Ok(_) | Err(Denied::Refused(Refusal::PromptNotOpen(_))) => vec![],
            Err(denied) => {
                let words = super::requests::words(&denied);
                self.note(&format!("The question stays open: {words}"))
            }
        }
    }

    fn note(&self, words: &str) -> Vec<Act> {
        vec![Act::Send(join::note(&self.view.session, words))]
    }
}
