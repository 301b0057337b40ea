//! `prompt`, `steer` and `follow_up`: text and images for the agent.
//!
//! **Invariant**: messages reach the relay in the order in which the client sent them, even while
//! the images of one of them are still being stored. Each is answered when it is on disk.
//!
//! Not here: the message as it comes back (`messages`), the queue (`queue`).

use std::collections::{BTreeMap, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::content::{Attachment, Failure};
use domain::session::delivery::{Mode, Send};
use domain::session::{Recorded, Wish};
use domain::{Content, MessageId, Refusal, SessionId, Timestamp};

use super::frames::{Body, Image};
use super::{Asked, Connection, responses};
use crate::echo::echo_digest;
use crate::port::Denied;
use crate::visitor::Act;

/// Pictures of one message.
const IMAGES_MAX: usize = 16;
/// pi's own words for a prompt that comes while the agent works.
const BUSY: &str = "Agent is already processing. Specify streamingBehavior ('steer' or \
    'followUp') to queue the message.";

/// Messages on their way to the relay, next first. There are no more than commands in flight.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    waiting: VecDeque<Outbound>,
    is_storing: bool,
    /// Those that the relay has not answered yet, and for which session.
    unanswered: BTreeMap<u64, SessionId>,
}

#[derive(Debug)]
struct Outbound {
    flight: u64,
    send: Send,
    while_at_work: WhileAtWork,
    files: VecDeque<File>,
}

/// What becomes of a message that finds the agent at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhileAtWork {
    /// It waits, or steers.
    Waits,
    /// It is refused: its client did not say which.
    IsRefused,
}

#[derive(Debug)]
struct File {
    name: String,
    media_type: String,
    bytes: Bytes,
}

impl Connection {
    /// `prompt`: now, or as its streaming behavior says.
    pub(super) fn prompt(&mut self, flight: u64, body: Body, now: Timestamp) -> Vec<Act> {
        // What this client said just now begins a run, although no event tells of it yet.
        let mut unanswered = self.outgoing.unanswered.values();
        let is_busy =
            self.view.is_streaming() || unanswered.any(|session| *session == self.view.session);
        let (mode, while_at_work) = match (body.streaming_behavior.as_deref(), is_busy) {
            (Some("steer"), true) => (Some(Mode::Steer), WhileAtWork::Waits),
            (Some("followUp"), true) => (Some(Mode::FollowUp), WhileAtWork::Waits),
            (None, true) => return self.refuse_send(flight, BUSY),
            (Some("steer" | "followUp"), false) => (None, WhileAtWork::Waits),
            // Another client may have said something that this one has not heard of yet: the
            // session itself decides.
            (None, false) => (None, WhileAtWork::IsRefused),
            (Some(_), _) => {
                let words = "streamingBehavior must be 'steer' or 'followUp'";
                return self.refuse_send(flight, words);
            }
        };
        self.send(flight, body, (mode, while_at_work), now)
    }

    pub(super) fn send(
        &mut self,
        flight: u64,
        body: Body,
        (mode, while_at_work): (Option<Mode>, WhileAtWork),
        now: Timestamp,
    ) -> Vec<Act> {
        match self.outbound(flight, body, mode, now) {
            Ok((send, files)) => {
                let outbound = Outbound { flight, send, while_at_work, files };
                self.outgoing.waiting.push_back(outbound);
                self.outgoing.unanswered.insert(flight, self.view.session.clone());
                self.go_on()
            }
            Err(words) => self.refuse_send(flight, &words),
        }
    }

    /// A picture was put away, or could not be.
    pub(super) fn on_stored(&mut self, stored: Result<Attachment, Failure>) -> Vec<Act> {
        self.outgoing.is_storing = false;
        let mut acts = vec![];
        match (stored, self.outgoing.waiting.front_mut()) {
            (Ok(attachment), Some(next)) => next.send.attachments.push(attachment),
            (Err(failure), Some(_)) => {
                if let Some(given_up) = self.outgoing.waiting.pop_front() {
                    self.outgoing.unanswered.remove(&given_up.flight);
                    acts.extend(self.flights.fail(given_up.flight, &failure.message));
                }
            }
            (Ok(_) | Err(_), None) => {}
        }
        acts.extend(self.go_on());
        acts
    }

    /// The relay took a send, or did not.
    pub(super) fn on_sent(
        &mut self,
        flight: u64,
        done: &Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        self.outgoing.unanswered.remove(&flight);
        let answer = match done {
            Ok(_) => self.flights.succeed(flight, None),
            Err(Denied::Refused(Refusal::AgentAtWork)) => self.flights.fail(flight, BUSY),
            Err(denied) => self.flights.fail(flight, &responses::words(denied)),
        };
        answer.into_iter().collect()
    }

    fn refuse_send(&mut self, flight: u64, words: &str) -> Vec<Act> {
        self.flights.fail(flight, words).into_iter().collect()
    }

    fn go_on(&mut self) -> Vec<Act> {
        let mut acts = vec![];
        while !self.outgoing.is_storing {
            let Some(next) = self.outgoing.waiting.front_mut() else { break };
            if let Some(file) = next.files.pop_front() {
                self.outgoing.is_storing = true;
                let File { name, media_type, bytes } = file;
                let ticket = self.ticket(Asked::Store);
                acts.push(Act::Store { name, media_type, bytes, ticket });
                break;
            }
            let Some(outbound) = self.outgoing.waiting.pop_front() else { break };
            let Outbound { flight, send, while_at_work, .. } = outbound;
            if !self.flights.is_open(flight) {
                // Its client was told that it took too long; it is not sent behind its back.
                self.outgoing.unanswered.remove(&flight);
                continue;
            }
            let ticket = self.ticket(Asked::Send(flight));
            let wish = Box::new(match while_at_work {
                WhileAtWork::Waits => Wish::Send { send, earlier: None },
                WhileAtWork::IsRefused => Wish::SendAtRest(send),
            });
            acts.push(Act::Wish { session: self.view.session.clone(), wish, ticket });
        }
        acts
    }

    fn outbound(
        &self,
        flight: u64,
        body: Body,
        mode: Option<Mode>,
        now: Timestamp,
    ) -> Result<(Send, VecDeque<File>), String> {
        let text = body.message.ok_or("message is missing")?;
        let files = files(body.images.unwrap_or_default())?;
        if text.is_empty() && files.is_empty() {
            return Err("The message is empty".to_owned());
        }
        let most = self.limits.max_content_bytes;
        if text.len() > most {
            return Err(format!("The message is too large: at most {most} bytes"));
        }
        let by = self.principal.as_ref().map_or("", |principal| principal.name.as_str());
        let digest = (!text.is_empty()).then(|| echo_digest(&text));
        // pi's request ids begin anew with every page, so they cannot name a send.
        let id = MessageId::from(format!("{}:{flight}", self.own_name));
        let send = Send {
            id,
            text: Content::Open(text),
            attachments: vec![],
            mode,
            by: by.to_owned(),
            created_at: now,
            digest,
        };
        Ok((send, files))
    }
}

fn files(images: Vec<Image>) -> Result<VecDeque<File>, String> {
    if images.len() > IMAGES_MAX {
        return Err(format!("A message can have at most {IMAGES_MAX} images"));
    }
    let file = |(at, image): (usize, Image)| {
        let media_type = image.mime_type;
        let ending = media_type.strip_prefix("image/").filter(|ending| !ending.is_empty());
        let ending = ending.ok_or("An image's mimeType must begin with image/")?;
        let bytes = STANDARD.decode(image.data).map_err(|_| "An image is not valid base64")?;
        let name = format!("image-{}.{ending}", at + 1);
        Ok(File { name, media_type, bytes: bytes.into() })
    };
    images.into_iter().enumerate().map(file).collect()
}
