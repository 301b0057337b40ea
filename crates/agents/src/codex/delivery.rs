//! Messages on their way into Codex.
//!
//! Each carries an id from Farhelm, which Codex keeps with the message in its own record. By this
//! id the message is recognised when it is shown, and found again after a crash.
//!
//! Invariant: a second turn is never started while one runs. A message is reported as delivered or
//! as failed, once.
//!
//! Not here: searching the record (`history`), what a run is (`turns`).

use domain::content::Failure;
use domain::session::delivery::{DELIVERY_UNKNOWN, Mode, Send};
use domain::session::runs::Outcome;
use domain::{MessageId, Sequence, Timestamp};
use serde_json::{Value, json};

use super::frames::{OfTurn, read};
use super::notes::Note;
use super::turns::Turn;
use super::{Codex, WAITING_MAX, Why};

use crate::rpc::RpcError;
use crate::{File, run_id, uuid_of, words_with_files};

/// A message that was or will be written to Codex.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) id: MessageId,
    pub(super) attempt: Sequence,
    /// Our id for it in Codex's record.
    pub(super) client: String,
    input: Vec<Value>,
    is_steering: bool,
}

impl Codex {
    pub(super) fn deliver(&mut self, send: &Send, attempt: Sequence, files: &[File]) {
        let Some(words) = self.scribe.words_of(send, attempt) else { return };
        let message = Sent {
            id: send.id.clone(),
            attempt,
            client: uuid_of(&self.setup.session, &send.id, attempt),
            input: input(&words, files),
            is_steering: send.mode == Some(Mode::Steer),
        };
        if self.held.len() >= WAITING_MAX {
            let words = "Too many messages are already queued for Codex. Try again in a moment";
            self.scribe.not_delivered(&message.id, attempt, Failure::new("send_rejected", words));
            return;
        }
        self.held.push_back(message);
        self.deliver_held();
    }

    /// Gives Codex what it can take now.
    pub(super) fn deliver_held(&mut self) {
        match &self.turn {
            None => {
                if let Some(sent) = self.held.pop_front() {
                    self.start_turn(sent);
                }
            }
            Some(turn) => {
                // Until the turn has a name it cannot be steered.
                let Some(id) = turn.steerable_id() else { return };
                let held = std::mem::take(&mut self.held);
                for sent in held {
                    if sent.is_steering {
                        self.steer(sent, &id);
                    } else {
                        self.held.push_back(sent);
                    }
                }
            }
        }
    }

    fn start_turn(&mut self, sent: Sent) {
        self.turn = Some(Turn::ours(run_id(&sent.id, sent.attempt)));
        let params = json!({
            "threadId": self.thread,
            "clientUserMessageId": sent.client,
            "input": sent.input,
        });
        self.watch.sent(&sent.client);
        self.ask(Why::Start(sent), "turn/start", params);
    }

    fn steer(&mut self, sent: Sent, turn: &str) {
        let params = json!({
            "threadId": self.thread,
            "clientUserMessageId": sent.client,
            "input": sent.input,
            "expectedTurnId": turn,
        });
        self.watch.sent(&sent.client);
        self.ask(Why::Steer(sent), "turn/steer", params);
    }

    pub(super) fn start_answered(
        &mut self,
        sent: Sent,
        result: Result<Value, RpcError>,
        now: Timestamp,
    ) {
        match result {
            // Codex has it, but would forget it if it were killed now.
            Ok(result) => {
                if let Some(turn) = &mut self.turn {
                    turn.taken(sent);
                }
                if let Some(OfTurn { turn }) = read(&result) {
                    self.turn_named(&turn.id);
                }
            }
            Err(error) => {
                let words = format!("Codex rejected the message: {error}");
                let failure = Failure::new("send_rejected", words);
                self.scribe.not_delivered(&sent.id, sent.attempt, failure);
                self.turn_refused(now);
                self.deliver_held();
            }
        }
    }

    /// Codex shows a message, if it is one of ours: by then it is in its record.
    pub(super) fn message_shown(&mut self, client: &str, now: Timestamp) {
        let Some(turn) = &mut self.turn else { return };
        match turn.take_steering(client) {
            Some(sent) => self.confirm(&sent),
            None => self.turn_shown(now),
        }
    }

    /// Codex forgets what it took to steer a turn that ends before it was used.
    pub(super) fn not_steered(&mut self, messages: Vec<Sent>, outcome: &Outcome) {
        for mut sent in messages.into_iter().rev() {
            match outcome {
                Outcome::Completed | Outcome::Failed(_) => {
                    sent.is_steering = false;
                    self.held.push_front(sent);
                }
                Outcome::Interrupted | Outcome::Cut(_) => {
                    let words = "The run was stopped before Codex used the message. Send it again";
                    let failure = Failure::new("send_rejected", words);
                    self.scribe.not_delivered(&sent.id, sent.attempt, failure);
                }
            }
        }
    }

    /// Codex works on what it took.
    pub(super) fn turn_shown(&mut self, now: Timestamp) {
        let Some(turn) = &mut self.turn else { return };
        let Some(sent) = turn.take_unshown() else { return };
        let run = turn.run.clone();
        self.confirm(&sent);
        self.scribe.begin_run(run, Some(sent.id), now);
    }

    pub(super) fn steer_answered(&mut self, mut sent: Sent, is_taken: bool) {
        if let Some(turn) = self.turn.as_mut().filter(|_| is_taken) {
            turn.taken_to_steer(sent);
            return;
        }
        // The run ended in between, or is of a sort that cannot be steered: after it, then.
        sent.is_steering = false;
        self.held.push_front(sent);
        self.deliver_held();
    }

    /// Codex has the message.
    fn confirm(&mut self, sent: &Sent) {
        if !self.notes.is_reached {
            self.remember(Note::Reached);
        }
        let run = self.turn.as_ref().map(|turn| turn.run.clone());
        self.scribe.delivered(&sent.id, sent.attempt, run);
    }

    /// Whether it arrived cannot be known.
    pub(super) fn doubt_remains(&mut self, id: &MessageId, attempt: Sequence) {
        let words = "Codex stopped while the message was being delivered. It may have arrived";
        self.scribe.not_delivered(id, attempt, Failure::new(DELIVERY_UNKNOWN, words));
    }
}

/// Words and pictures as Codex takes them.
fn input(words: &str, files: &[File]) -> Vec<Value> {
    let named = files.iter().filter(|file| file.image.is_none());
    let text = words_with_files(words, named);
    let pictures = files.iter().filter_map(|file| file.image.as_ref()).map(|image| {
        let url = format!("data:{};base64,{}", image.media_type, image.base64);
        json!({ "type": "image", "url": url })
    });
    let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    text.into_iter().chain(pictures).collect()
}
