//! Sends on their way into pi, one at a time.
//!
//! Before a message is written, the last entry of pi's record is requested and noted, so that the
//! message can be found there after a crash. A message that starts a run is delivered when pi has
//! accepted it and shows it as part of the conversation: from then on it is in pi's record. A
//! message that steers first waits in pi's own queue. It is delivered when pi takes it out, and
//! withdrawn when the run ends without it.
//!
//! Not here: their outcome when pi dies (`lookup`).

use std::collections::VecDeque;

use domain::content::Failure;
use domain::session::delivery::{Mode, Send};
use domain::{MessageId, Sequence, Timestamp};
use serde_json::{Value, json};

use super::Pi;
use super::frames::{Queue, Response};
use super::notes::{Attempt, Line};
use super::transport::Asked;
use crate::files::{images, with_files};
use crate::{File, run_id};

/// How long pi may take to tell its last entry. Then the time stands in for it.
const LEAF_WITHIN_MS: u64 = 5_000;
/// After pi accepted a message and shows nothing of it, it is asked whether it works on it.
const SHOWN_WITHIN_MS: u64 = 2_000;
/// Sends that wait for their turn. Beyond, they fail.
const HELD_MAX: usize = 64;
/// Words of people that pi will repeat to us.
const ECHOES_MAX: usize = 64;

/// The last entry of pi's record.
#[derive(Debug, Default)]
pub(super) enum Leaf {
    #[default]
    Unknown,
    /// At least this; pi tells what came after.
    At(String),
    /// pi cannot tell.
    Untold,
}

/// A send and which attempt at it.
type Name = (MessageId, Sequence);

/// A send, ready to be written.
#[derive(Debug)]
pub(super) struct Parcel {
    id: MessageId,
    attempt: Sequence,
    text: String,
    images: Vec<Value>,
    is_steer: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// pi is asked for its last entry.
    Noting {
        until: Timestamp,
    },
    Written,
    /// pi accepted it; it will show it, unless an extension made something else of it.
    Taken {
        until: Timestamp,
    },
}

#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// The one that is on its way.
    current: Option<(Parcel, Stage)>,
    /// In pi's queue, in its order.
    steering: VecDeque<Parcel>,
    held: VecDeque<Parcel>,
    /// Whether a person stopped the last run.
    pub(super) was_interrupted: bool,
    /// What pi got from us and will show as a person's message.
    echoes: VecDeque<String>,
}

impl Deliveries {
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.steering.is_empty() && self.held.is_empty()
    }

    /// Whether pi has accepted a message that it did not show yet.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.current, Some((_, Stage::Taken { .. })))
    }

    /// Whether a person's message in pi is one that steered it.
    fn is_echo(&mut self, text: &str) -> bool {
        // Templates and skills are repeated in other words.
        let is_it = |sent: &String| text.starts_with(sent.as_str()) || sent.starts_with('/');
        let at = self.echoes.iter().position(is_it);
        at.and_then(|at| self.echoes.remove(at)).is_some()
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self.current.as_ref()? {
            (_, Stage::Noting { until } | Stage::Taken { until }) => Some(*until),
            (_, Stage::Written) => None,
        }
    }

    /// Everything that is on its way: what was written to pi, and what was not.
    pub(super) fn take_all(&mut self) -> (Vec<Name>, Vec<Name>) {
        self.echoes.clear();
        let name = |parcel: Parcel| (parcel.id, parcel.attempt);
        let mut written: Vec<_> = self.steering.drain(..).map(name).collect();
        let mut unwritten = vec![];
        match self.current.take() {
            Some((parcel, Stage::Written | Stage::Taken { .. })) => written.push(name(parcel)),
            Some((parcel, Stage::Noting { .. })) => unwritten.push(name(parcel)),
            None => {}
        }
        unwritten.extend(self.held.drain(..).map(name));
        (written, unwritten)
    }

    fn expect_echo(&mut self, text: String) {
        self.echoes.push_back(text);
        if self.echoes.len() > ECHOES_MAX {
            self.echoes.pop_front();
        }
    }
}

impl Pi {
    pub(super) fn deliver(
        &mut self,
        send: &Send,
        attempt: Sequence,
        files: &[File],
        now: Timestamp,
    ) {
        let Some(words) = self.scribe.words_of(send, attempt) else { return };
        if self.deliveries.held.len() >= HELD_MAX {
            let failure = Failure::new(
                "send_rejected",
                "Too many messages are already queued for pi. Try again in a moment",
            );
            self.scribe.not_delivered(&send.id, attempt, failure);
            return;
        }
        let takes_images = self.known.takes_images;
        let image = |image: &crate::Image| json!({"type": "image", "data": image.base64, "mimeType": image.media_type});
        self.deliveries.held.push_back(Parcel {
            id: send.id.clone(),
            attempt,
            text: with_files(&words, files, takes_images),
            images: images(files, takes_images).map(image).collect(),
            is_steer: send.mode == Some(Mode::Steer),
        });
        self.deliver_next(now);
    }

    /// Begins with the next that may go: during a run only a steer.
    pub(super) fn deliver_next(&mut self, now: Timestamp) {
        let is_busy = self.deliveries.current.is_some() || self.interrupt.is_some();
        if is_busy || self.requests.is_asked(&Asked::ClearQueue) {
            return;
        }
        let is_running = self.scribe.run().is_some();
        let held = &mut self.deliveries.held;
        let Some(at) = held.iter().position(|parcel| parcel.is_steer || !is_running) else {
            return;
        };
        let Some(parcel) = held.remove(at) else { return };
        let until = now.plus_ms(LEAF_WITHIN_MS);
        self.deliveries.current = Some((parcel, Stage::Noting { until }));
        match self.leaf {
            Leaf::Untold => self.write(None, now),
            Leaf::Unknown => self.ask(Asked::Leaf, json!({})),
            Leaf::At(ref leaf) => {
                let since = json!({"since": leaf});
                self.ask(Asked::Leaf, since);
            }
        }
    }

    /// pi told its last entry, or cannot.
    pub(super) fn has_leaf(&mut self, response: &Response, now: Timestamp) {
        let leaf = response.data.get("leafId").and_then(Value::as_str).map(str::to_owned);
        let was = std::mem::take(&mut self.leaf);
        match (response.success, was) {
            // What was the last is not known any more: asked again, from the start.
            (false, Leaf::At(_)) => {
                self.ask(Asked::Leaf, json!({}));
                return;
            }
            // Older versions have no such command.
            (false, Leaf::Unknown | Leaf::Untold) => self.leaf = Leaf::Untold,
            (true, _) => self.leaf = leaf.clone().map_or(Leaf::Unknown, Leaf::At),
        }
        self.write(leaf, now);
    }

    /// Neither a record that is too long to be told nor a message that is not shown holds the
    /// next one up.
    pub(super) fn deliver_overdue(&mut self, now: Timestamp) {
        if self.deliveries.deadline().is_none_or(|until| until > now) {
            return;
        }
        match &mut self.deliveries.current {
            Some((_, Stage::Noting { .. })) => self.write(None, now),
            Some((_, Stage::Taken { until })) => {
                *until = now.plus_ms(SHOWN_WITHIN_MS);
                self.ask(Asked::IsShown, json!({}));
            }
            Some((_, Stage::Written)) | None => {}
        }
    }

    fn write(&mut self, leaf: Option<String>, now: Timestamp) {
        let Some((parcel, stage @ Stage::Noting { .. })) = &mut self.deliveries.current else {
            return;
        };
        *stage = Stage::Written;
        let (id, attempt) = (parcel.id.clone(), parcel.attempt);
        let before = Attempt::new(&parcel.text, leaf, now.0);
        // Without a run, pi begins one with it whatever it is.
        let mut command = json!({"message": parcel.text, "streamingBehavior": "steer"});
        if !parcel.images.is_empty() {
            command["images"] = json!(parcel.images);
        }
        let line = self.notes.take(Line::Attempt { id, attempt, before });
        self.scribe.push(line);
        self.ask(Asked::Prompt, command);
    }

    /// pi took a message, or refused it.
    pub(super) fn was_taken(&mut self, response: Response, now: Timestamp) {
        let Some((parcel, _)) = self.deliveries.current.take() else { return };
        if !response.success {
            let words = response.error.unwrap_or_else(|| "pi rejected the message".to_owned());
            let failure = Failure::new("send_rejected", words);
            self.scribe.not_delivered(&parcel.id, parcel.attempt, failure);
        } else if self.scribe.run().is_some() {
            self.deliveries.steering.push_back(parcel);
        } else {
            // A command of an extension may be carried out already, without a run.
            if parcel.text.starts_with('/') {
                self.ask(Asked::IsShown, json!({}));
            }
            let until = now.plus_ms(SHOWN_WITHIN_MS);
            self.deliveries.current = Some((parcel, Stage::Taken { until }));
        }
        self.deliver_next(now);
    }

    /// pi shows a message of a person. Whether it is one that we gave it.
    pub(super) fn was_shown(&mut self, text: &str, now: Timestamp) -> bool {
        let is_awaited = self.deliveries.is_taken();
        if is_awaited {
            self.begin_with_taken(now);
        }
        is_awaited || self.deliveries.is_echo(text)
    }

    /// pi works on what it accepted.
    pub(super) fn begin_with_taken(&mut self, now: Timestamp) {
        if !self.deliveries.is_taken() || self.scribe.run().is_some() {
            return;
        }
        let Some((parcel, _)) = self.deliveries.current.take() else { return };
        let run = run_id(&parcel.id, parcel.attempt);
        self.deliveries.was_interrupted = false;
        self.scribe.delivered(&parcel.id, parcel.attempt, Some(run.clone()));
        self.scribe.begin_run(run, Some(parcel.id), now);
        self.deliver_next(now);
    }

    /// Whether pi works was asked, because it shows nothing of a message.
    pub(super) fn is_shown(&mut self, is_busy: bool, now: Timestamp) {
        if is_busy || !self.deliveries.is_taken() {
            return;
        }
        // It was carried out without a run.
        if let Some((parcel, _)) = self.deliveries.current.take() {
            self.scribe.delivered(&parcel.id, parcel.attempt, None);
            self.deliver_next(now);
        }
    }

    /// What is in pi's queue now: what is no longer was heard.
    pub(super) fn queue_changed(&mut self, queue: &Queue) {
        if !self.requests.is_asked(&Asked::ClearQueue) {
            self.heard_all_but(queue.steering.len());
        }
        let ours = self.deliveries.steering.len() + usize::from(self.deliveries.current.is_some());
        let theirs = queue.steering.len().saturating_sub(ours) + queue.follow_up.len();
        if theirs > 0 {
            let mut words = format!("{theirs} of pi's own messages are queued:");
            for text in queue.steering.iter().skip(ours).chain(&queue.follow_up) {
                words.push_str("\n- ");
                words.push_str(text);
            }
            self.scribe.notice("queue", words);
        }
    }

    fn heard_all_but(&mut self, left: usize) {
        while self.deliveries.steering.len() > left {
            let Some(parcel) = self.deliveries.steering.pop_front() else { return };
            let run = self.scribe.run().cloned();
            self.scribe.delivered(&parcel.id, parcel.attempt, run);
            self.deliveries.expect_echo(parcel.text);
        }
    }

    /// Takes back what waits in pi's queue.
    pub(super) fn clear_queue(&mut self) {
        if !self.deliveries.steering.is_empty() && !self.requests.is_asked(&Asked::ClearQueue) {
            self.ask(Asked::ClearQueue, json!({}));
        }
    }

    /// The queue was taken back: what was in it was not heard.
    pub(super) fn was_cleared(&mut self, response: &Response, now: Timestamp) {
        let steering = response.data.get("steering").and_then(Value::as_array);
        // A version that cannot clear its queue hears what is in it with the next run.
        self.heard_all_but(steering.map_or(0, Vec::len));
        let was_stopped = self.interrupt.is_some() || self.deliveries.was_interrupted;
        while let Some(mut parcel) = self.deliveries.steering.pop_back() {
            if was_stopped {
                let words = "The run was interrupted before pi received this message. Send it \
                             again";
                let failure = Failure::new("send_rejected", words);
                self.scribe.not_delivered(&parcel.id, parcel.attempt, failure);
            } else {
                parcel.is_steer = false;
                self.deliveries.held.push_front(parcel);
            }
        }
        self.deliver_next(now);
    }
}
