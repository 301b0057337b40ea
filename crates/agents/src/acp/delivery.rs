//! Sends on their way to the agent, and the outcome of those that a crash interrupted.
//!
//! Evidence that a send arrived is the agent's first response to it. After a crash, the agent's own
//! record, as replayed by `session/load`, shows whether it contains the text more often than it
//! could without that send.

use domain::content::Failure;
use domain::session::delivery::Send;
use domain::{MessageId, Sequence, Timestamp};
use serde_json::{Value, json};

use super::turn::Turn;
use super::{Acp, Ask, HELD_MAX, Held, Unsure};
use crate::files::words_with_files;
use crate::{File, Lookup, Order, Output, run_id};

/// The code of a failure that may be none.
const DELIVERY_UNKNOWN: &str = "delivery_unknown";

impl Acp {
    /// Keeps an order until the program can take it; the caller lets it go on.
    pub(super) fn hold(&mut self, order: &Order, now: Timestamp) {
        let held = Held::Order(Box::new(order.clone()));
        if self.held.len() >= HELD_MAX {
            let words = "Too many messages are already queued for this agent. Try again in a \
                         moment";
            return self.fail(held, &Failure::new("send_rejected", words), now);
        }
        self.held.push_back(held);
    }

    /// Does what waits, in order, until a prompt runs.
    pub(super) fn serve_held(&mut self, now: Timestamp) {
        let mut later = std::collections::VecDeque::new();
        while let Some(held) = self.held.pop_front() {
            match held {
                Held::Order(order) => match *order {
                    // One prompt at a time; settings need not wait for it.
                    Order::Deliver { .. } if self.turn.is_some() => {
                        later.push_back(Held::Order(order));
                    }
                    Order::Deliver { send, attempt, files } => {
                        self.prompt(&send, attempt, &files, now);
                    }
                    Order::LookUp { id, attempt } => {
                        let found = self.look_up(&id, attempt);
                        self.looked_up(&id, attempt, found);
                    }
                    Order::Control { request, control } => self.control(&request, &control, now),
                    Order::Answer { .. } | Order::Rest => {}
                },
                Held::Check(unsure) => {
                    let found = self.look_up(&unsure.id, unsure.attempt);
                    self.checked(unsure, found, now);
                }
            }
        }
        self.held = later;
    }

    fn prompt(&mut self, send: &Send, attempt: Sequence, files: &[File], now: Timestamp) {
        let Some(words) = self.scribe.words_of(send, attempt) else { return };
        let takes_images = self.abilities.takes_images;
        let is_shown = |file: &&File| takes_images && file.image.is_some();
        let words = words_with_files(&words, files.iter().filter(|file| !is_shown(file)));
        let mut blocks: Vec<Value> = vec![];
        if !words.is_empty() {
            blocks.push(json!({ "type": "text", "text": words }));
        }
        for image in files.iter().filter(is_shown).filter_map(|file| file.image.as_ref()) {
            let (media_type, data) = (&image.media_type, &image.base64);
            blocks.push(json!({ "type": "image", "mimeType": media_type, "data": data }));
        }
        let line = self.notes.note_writing(&send.id, attempt, &words);
        self.remember(line);
        let run = run_id(&send.id, attempt);
        self.observation.begin_run(&mut self.scribe, now);
        self.scribe.begin_run(run.clone(), Some(send.id.clone()), now);
        self.turn = Some(Turn::new(send.id.clone(), attempt, run, now));
        let conversation = self.notes.conversation.clone().unwrap_or_default();
        let params = json!({ "sessionId": conversation, "prompt": blocks });
        self.ask(Ask::Prompt, "session/prompt", params);
    }

    /// Whether it can be told without the program: what was never noted was never written.
    pub(super) fn look_up_at_once(&self, id: &MessageId, attempt: Sequence) -> Option<Lookup> {
        if self.notes.digest(id, attempt).is_none() {
            return Some(Lookup::Absent);
        }
        if self.notes.is_of_another_conversation(id, attempt) || !self.abilities.can_load {
            return Some(Lookup::Unknown);
        }
        None
    }

    /// What the agent's record says, as it was when the program was started.
    fn look_up(&self, id: &MessageId, attempt: Sequence) -> Lookup {
        if let Some(found) = self.look_up_at_once(id, attempt) {
            return found;
        }
        let digest = self.notes.digest(id, attempt).unwrap_or_default();
        let Some(replayed) = &self.replayed else { return Lookup::Unknown };
        let times = replayed.get(digest).copied().unwrap_or(0);
        let others = self.notes.others(id, attempt);
        if times > others.at_most {
            Lookup::Found
        } else if times <= others.at_least && self.quirks.records_all {
            Lookup::Absent
        } else {
            Lookup::Unknown
        }
    }

    pub(super) fn looked_up(&mut self, id: &MessageId, attempt: Sequence, found: Lookup) {
        if found == Lookup::Found {
            let line = self.notes.note_delivered(id, attempt);
            self.remember(line);
        }
        self.scribe.push(Output::LookedUp { id: id.clone(), attempt, found });
    }

    /// What became of a send under which the program died. Its run ends after that is told.
    fn checked(&mut self, unsure: Unsure, found: Lookup, now: Timestamp) {
        let Unsure { id, attempt, outcome } = unsure;
        match found {
            Lookup::Found => {
                let line = self.notes.note_delivered(&id, attempt);
                self.remember(line);
                let run = run_id(&id, attempt);
                self.scribe.delivered(&id, attempt, Some(run));
            }
            Lookup::Absent => {
                let words = "The agent stopped before it received the message. Send it again";
                self.scribe.not_delivered(&id, attempt, Failure::new("agent_not_open", words));
            }
            Lookup::Unknown => {
                let words = "The agent stopped while the message was being delivered. It may \
                             have arrived";
                self.scribe.not_delivered(&id, attempt, Failure::new(DELIVERY_UNKNOWN, words));
            }
        }
        self.scribe.end_run(outcome, None, now);
    }

    /// The send whose run waits until it is known whether it arrived.
    pub(super) fn unsure(&mut self) -> Option<&mut Unsure> {
        self.held.iter_mut().find_map(|held| match held {
            Held::Check(unsure) => Some(unsure),
            Held::Order(_) => None,
        })
    }

    /// The record cannot be read: nobody can tell.
    pub(super) fn fail_lookups(&mut self, now: Timestamp) {
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Check(unsure) => self.checked(unsure, Lookup::Unknown, now),
                Held::Order(order) => match *order {
                    Order::LookUp { id, attempt } => {
                        self.looked_up(&id, attempt, Lookup::Unknown);
                    }
                    Order::Deliver { .. }
                    | Order::Answer { .. }
                    | Order::Control { .. }
                    | Order::Rest => self.held.push_back(Held::Order(order)),
                },
            }
        }
    }

    /// The program cannot be started: what waits for it is answered.
    pub(super) fn fail_held(&mut self, failure: &Failure, now: Timestamp) {
        for held in std::mem::take(&mut self.held) {
            self.fail(held, failure, now);
        }
    }

    fn fail(&mut self, held: Held, failure: &Failure, now: Timestamp) {
        match held {
            Held::Check(unsure) => self.checked(unsure, Lookup::Unknown, now),
            Held::Order(order) => match *order {
                // It was never written.
                Order::Deliver { send, attempt, .. } => {
                    self.scribe.not_delivered(&send.id, attempt, failure.clone());
                }
                Order::LookUp { id, attempt } => self.looked_up(&id, attempt, Lookup::Unknown),
                Order::Answer { request, .. } | Order::Control { request, .. } => {
                    self.scribe.answered(&request, Some(failure.clone()));
                }
                Order::Rest => {}
            },
        }
    }
}
