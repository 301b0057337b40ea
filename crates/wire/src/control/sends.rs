//! User messages: text and images for the agent.
//!
//! **Invariant**: messages reach the relay in the order in which the client sent them, even while
//! the images of one of them are still being stored.
//!
//! Not here: the message as it comes back (`messages`).

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::content::{Attachment, Failure, Part};
use domain::session::delivery::{Mode, Send, State};
use domain::session::{Recorded, Wish};
use domain::{Content, MessageId, Refusal, Timestamp};
use serde_json::json;

use super::frames::{Block, Spoke, User};
use super::messages::{encode, user as framed};
use super::view::View;
use super::{Asked, Connection, names, requests, system};
use crate::echo::echo_digest;
use crate::port::Denied;
use crate::visitor::Act;

/// Messages that may wait while a picture is put away. More are refused.
const WAITING_MAX: usize = 64;
/// Pictures and documents of one message.
const FILES_MAX: usize = 16;
/// The failure of a send that was taken out of the queue.
const DISCARDED: &str = "discarded";

/// Messages on their way to the relay, next first.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    waiting: VecDeque<Outbound>,
    is_storing: bool,
}

#[derive(Debug)]
struct Outbound {
    send: Send,
    files: VecDeque<File>,
}

#[derive(Debug)]
struct File {
    name: String,
    media_type: String,
    bytes: Bytes,
}

impl Connection {
    pub(super) fn on_user(&mut self, user: User, now: Timestamp) -> Vec<Act> {
        let id = user.uuid.clone().map_or_else(|| self.new_id(), MessageId::from);
        match self.outbound(user, id.clone(), now) {
            Ok(outbound) => {
                self.outgoing.waiting.push_back(outbound);
                self.go_on()
            }
            Err(words) => vec![self.send_failed(Some(&id), &words)],
        }
    }

    /// A file was put away, or could not be.
    pub(super) fn on_stored(
        &mut self,
        stored: Result<Attachment, Failure>,
        _now: Timestamp,
    ) -> Vec<Act> {
        self.outgoing.is_storing = false;
        let mut acts = vec![];
        match (stored, self.outgoing.waiting.front_mut()) {
            (Ok(attachment), Some(next)) => next.send.attachments.push(attachment),
            (Err(failure), Some(_)) => {
                if let Some(given_up) = self.outgoing.waiting.pop_front() {
                    acts.push(self.send_failed(Some(&given_up.send.id), &failure.message));
                }
            }
            (Ok(_) | Err(_), None) => {}
        }
        acts.extend(self.go_on());
        acts
    }

    /// The relay took a send, or did not.
    pub(super) fn on_sent(&mut self, send: &Send, done: Result<Vec<Recorded>, Denied>) -> Vec<Act> {
        let Err(denied) = done else { return vec![] };
        match &denied {
            Denied::Refused(Refusal::SendRepeated(told)) => match &told.state {
                // It comes back when it is delivered.
                State::Accepted => vec![],
                State::Delivered => {
                    self.own_sends.retain(|own| *own != send.id);
                    vec![Act::Send(self.told_again(send))]
                }
                State::Failed(failure) => {
                    self.own_sends.retain(|own| *own != send.id);
                    vec![self.send_failed(Some(&send.id), &failure.message)]
                }
            },
            Denied::Refused(_) | Denied::Failed(_) | Denied::Code(..) => {
                self.own_sends.retain(|own| *own != send.id);
                vec![self.send_failed(Some(&send.id), &requests::words(&denied))]
            }
        }
    }

    /// A send of this connection did not reach the agent.
    pub(super) fn on_send_failed(&mut self, id: &MessageId, failure: &Failure) -> Option<Bytes> {
        let own = self.own_sends.iter().position(|own| own == id)?;
        self.own_sends.remove(own);
        let words = match failure.code.as_str() {
            DISCARDED => failure.message.clone(),
            code => format!("{} ({code})", failure.message),
        };
        Some(failed(&self.view, Some(id), &words))
    }

    pub(super) fn send_failed(&self, id: Option<&MessageId>, words: &str) -> Act {
        Act::Send(failed(&self.view, id, words))
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
            let Some(Outbound { send, .. }) = self.outgoing.waiting.pop_front() else { break };
            self.own(&send.id);
            let ticket = self.ticket(Asked::Send(Box::new(send.clone())));
            let wish = Box::new(Wish::Send { send, earlier: None });
            acts.push(Act::Wish { session: self.view.session.clone(), wish, ticket });
        }
        acts
    }

    fn outbound(&self, user: User, id: MessageId, now: Timestamp) -> Result<Outbound, String> {
        if user.should_query == Some(false) {
            return Err("Messages with shouldQuery: false are not supported".to_owned());
        }
        if self.outgoing.waiting.len() >= WAITING_MAX {
            return Err("Too many messages are waiting for their images to be stored".to_owned());
        }
        let (text, files) = match user.message.content {
            Spoke::Words(words) => (words, VecDeque::new()),
            Spoke::Blocks(blocks) => taken_apart(blocks)?,
        };
        if text.is_empty() && files.is_empty() {
            return Err("The message is empty".to_owned());
        }
        let most = self.limits.max_content_bytes;
        if text.len() > most {
            return Err(format!("The message is too large: at most {most} bytes"));
        }
        let mode = match user.priority.as_deref() {
            Some("now" | "next") => Some(Mode::Steer),
            Some("later") => Some(Mode::FollowUp),
            Some(_) | None => None,
        };
        let by = self.principal.as_ref().map_or("", |principal| principal.name.as_str());
        let digest = (!text.is_empty()).then(|| echo_digest(&text));
        let send = Send {
            id,
            text: Content::Open(text),
            attachments: vec![],
            mode,
            by: by.to_owned(),
            created_at: now,
            digest,
        };
        Ok(Outbound { send, files })
    }

    /// A message without an id gets one that no other connection makes.
    fn new_id(&mut self) -> MessageId {
        self.count += 1;
        names::of(&[self.own_name.as_str(), "message", &self.count.to_string()]).into()
    }

    fn told_again(&self, send: &Send) -> Bytes {
        let text = send.text.open().cloned().unwrap_or_default();
        let parts = Content::Open(vec![Part::Text(text)]);
        let mut frame = framed(&parts, None);
        frame["uuid"] = json!(send.id);
        frame["session_id"] = json!(self.view.session);
        frame["isReplay"] = json!(true);
        encode(&frame)
    }
}

/// A send that led to nothing, as its sender hears it.
pub(super) fn failed(view: &View, id: Option<&MessageId>, words: &str) -> Bytes {
    let mut frame = system::send_failed(view, id, words);
    let about = id.map_or("", MessageId::as_str);
    frame["uuid"] = json!(names::of(&[view.session.as_str(), "failed", about, words]));
    frame["session_id"] = json!(view.session);
    encode(&frame)
}

fn taken_apart(blocks: Vec<Block>) -> Result<(String, VecDeque<File>), String> {
    let (mut texts, mut files) = (vec![], VecDeque::new());
    for block in blocks {
        let kind = match block.kind.as_str() {
            "text" => {
                texts.push(block.text.unwrap_or_default());
                continue;
            }
            "image" => "image",
            "document" => "file",
            other => return Err(format!("Unsupported block type: {other}")),
        };
        if files.len() >= FILES_MAX {
            return Err(format!("A message can have at most {FILES_MAX} images and documents"));
        }
        let source = block.source.filter(|source| source.kind == "base64");
        let source = source.ok_or("Images and documents must be base64")?;
        let data = source.data.unwrap_or_default();
        let bytes =
            STANDARD.decode(data).map_err(|_| "An image or document is not valid base64")?;
        let media_type = source.media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
        let ending = media_type.split_once('/').map_or("bin", |(_, ending)| ending);
        let name = format!("{kind}-{}.{ending}", files.len() + 1);
        let name = block.title.filter(|title| !title.is_empty()).unwrap_or(name);
        files.push_back(File { name, media_type, bytes: bytes.into() });
    }
    Ok((texts.join("\n\n"), files))
}
