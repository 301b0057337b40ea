//! What happens in a session, as this dialect's clients see it.
//!
//! The payload of an envelope is encoded once for all clients. The envelope itself, and its
//! sealing, are made for each client.
//!
//! Not here: prompts (`approvals`), streamed text (`stream`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::content::{Author, Message, Part, ToolCall, ToolDetail, ToolStatus};
use domain::passing::Delta;
use domain::session::prompts::Prompt;
use domain::session::{Event, Recorded, delivery, prompts, runs, status, transcript};
use domain::{Content, PromptId};
use serde_json::{Value, json};

use super::envelope::{Seal, cut};
use super::sends::AGENT_ERROR;
use super::stream::News;
use super::{Connection, approvals};
use crate::visitor::{Act, Encoded, Followed, Slot};

/// Bytes of a tool's output that are shown.
const OUTPUT_SHOWN_BYTES_MAX: usize = 65_536;
/// What is told of words that the relay cannot read.
const SEALED_WORDS: &str = "[sealed]";

/// Whose words a sealed envelope holds. No client says so itself: see `sends`.
#[derive(Debug, Clone, Copy)]
enum Voice {
    Agent,
    Person,
}

impl Connection {
    /// The end of a message without text. A page whose connection was cut while a message
    /// streamed takes no input until one ends; the relay cannot see which page does.
    pub(super) fn unblock(&self) -> Act {
        Act::Send(self.writer.write("assistant_final", None, &content("")))
    }

    /// How things stand for a client that joins: open questions that it was not `asked` yet, words
    /// in the making.
    pub(super) fn greet(
        &mut self,
        followed: &Followed,
        asked: &BTreeMap<PromptId, Prompt>,
    ) -> Vec<Act> {
        let open = followed.glance.card.prompts.iter();
        let open = open.filter(|prompt| !asked.contains_key(&prompt.id));
        let mut acts: Vec<Act> =
            open.map(|prompt| Act::Send(approvals::request(&self.writer, prompt))).collect();
        if self.may_speak {
            acts.extend(self.drafts(&followed.drafts));
        }
        acts
    }

    /// Words in the making that were not told yet.
    pub(super) fn drafts(&mut self, drafts: &[Delta]) -> Vec<Act> {
        let mut acts = vec![];
        for delta in drafts {
            self.chunk(delta, &Encoded::default(), &mut acts);
        }
        acts
    }

    /// More words in the making.
    pub(super) fn chunk(&mut self, delta: &Delta, encoded: &Encoded, acts: &mut Vec<Act>) {
        let apart;
        let payload = match self.streaming.take(delta) {
            News::Nothing => return,
            News::Whole(words) => shared(encoded, || vec![content(words)]).first(),
            News::Rest(words) => {
                apart = Bytes::from(content(words));
                Some(&apart)
            }
        };
        if let Some(payload) = payload {
            acts.push(self.speak("assistant_chunk", None, payload, Voice::Agent));
        }
    }

    /// A recorded event.
    pub(super) fn show(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        if !self.may_speak {
            // Questions are never sealed. The rest is told, or was over, when it speaks.
            if let Event::Prompt(event) = &recorded.event {
                acts.extend(self.prompt(event));
            }
            return;
        }
        match &recorded.event {
            Event::Transcript(transcript::Event::Message(message)) => {
                acts.extend(self.message(message, encoded));
            }
            Event::Transcript(transcript::Event::ToolCall(call)) => {
                let payloads = shared(encoded, || {
                    let result = result(call.status, &call.detail);
                    [Some(tool_call(call)), result].into_iter().flatten().collect()
                });
                let kinds = ["tool_call", "tool_result"];
                for (kind, payload) in kinds.into_iter().zip(payloads) {
                    let frame = self.writer.write(kind, Some(call.id.as_str()), payload);
                    acts.push(Act::Send(frame));
                }
            }
            Event::Transcript(transcript::Event::ToolUpdate(update)) => {
                let end = || result(update.status, &update.detail).into_iter().collect();
                if let Some(payload) = shared(encoded, end).first() {
                    let id = Some(update.id.as_str());
                    acts.push(Act::Send(self.writer.write("tool_result", id, payload)));
                }
            }
            Event::Prompt(event) => acts.extend(self.prompt(event)),
            Event::Run(runs::Event::Ended { outcome, .. }) => {
                if self.streaming.cut() {
                    // What was told stays as it is; the client no longer waits for more.
                    let nothing = content("");
                    acts.push(self.speak("assistant_final", None, &nothing, Voice::Agent));
                }
                if let runs::Outcome::Failed(words)
                | runs::Outcome::Cut(runs::Cut { why: words, .. }) = outcome
                {
                    acts.push(Act::Send(self.writer.error(None, AGENT_ERROR, words)));
                }
            }
            Event::Delivery(delivery::Event::Failed { id, failure }) => {
                acts.extend(self.on_send_failed(id, failure));
            }
            Event::Status(status::Event::Down { .. }) => {
                let words = "The agent's machine is offline; messages are queued until it is back";
                acts.push(Act::Send(self.writer.error(None, "session_not_connected", words)));
            }
            Event::Status(status::Event::Closed { .. }) => {
                let words = "The session was closed";
                acts.push(Act::Send(self.writer.error(None, "session_closed", words)));
            }
            Event::Transcript(
                transcript::Event::Plan(_)
                | transcript::Event::Notice(_)
                | transcript::Event::Context(_)
                | transcript::Event::Echoed(_),
            )
            | Event::Run(runs::Event::Started { .. })
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }

    fn message(&mut self, message: &Message, encoded: &Encoded) -> Option<Act> {
        let (kind, voice) = match message.author {
            Author::Assistant => ("assistant_final", Voice::Agent),
            Author::User => ("user_message", Voice::Person),
            Author::System => return None,
        };
        let request = match voice {
            Voice::Agent => None,
            Voice::Person => self.disown(&message.id).and_then(|own| own.request),
        };
        self.streaming.finish(&message.id);
        let whole = || words(message).map(|words| content(&words)).into_iter().collect();
        let payload = shared(encoded, whole).first()?;
        Some(self.speak(kind, request.as_deref(), payload, voice))
    }

    fn prompt(&mut self, event: &prompts::Event) -> Option<Act> {
        match event {
            prompts::Event::Asked(prompt) => {
                self.prompts.insert(prompt.id.clone(), prompt.clone());
                Some(Act::Send(approvals::request(&self.writer, prompt)))
            }
            prompts::Event::Reopened { prompt, .. } => {
                self.prompts.insert(prompt.id.clone(), (**prompt).clone());
                Some(Act::Send(approvals::request(&self.writer, prompt)))
            }
            prompts::Event::Settled { prompt, choice, settled, request, .. } => {
                let asked = self.prompts.remove(prompt);
                if self.answered(request) {
                    return None;
                }
                let (asked, choice) = (asked.as_ref(), choice.as_ref());
                let frame = approvals::settled(&self.writer, prompt, asked, choice, settled);
                Some(Act::Send(frame))
            }
            prompts::Event::Confirmed(_) => None,
        }
    }

    /// Somebody's words, sealed for a client that has a key.
    fn speak(&mut self, kind: &str, request: Option<&str>, payload: &[u8], voice: Voice) -> Act {
        let Self { writer, known, chance, .. } = self;
        let key = known.as_ref().and_then(|known| known.key.as_ref());
        Act::Send(match key {
            None => writer.write(kind, request, payload),
            Some(key) => {
                let mark = match voice {
                    Voice::Agent => ",\"role\":\"assistant\"}",
                    Voice::Person => ",\"role\":\"user\"}",
                };
                let sealed = Seal { key, nonce: chance.nonce(), mark };
                writer.write_sealed(kind, request, payload, &sealed)
            }
        })
    }
}

fn shared(encoded: &Encoded, encode: impl FnOnce() -> Vec<Vec<u8>>) -> &[Bytes] {
    encoded.frames(Slot::Webchannel, || encode().into_iter().map(Bytes::from).collect())
}

fn content(words: &str) -> Vec<u8> {
    let mut payload = Vec::with_capacity(words.len() + 16);
    payload.extend_from_slice(b"{\"content\":");
    // Text is always JSON, and a buffer in memory takes it.
    let _ = serde_json::to_writer(&mut payload, words);
    payload.push(b'}');
    payload
}

/// What a message says, if anything.
fn words(message: &Message) -> Option<String> {
    let Some(parts) = message.parts.open() else { return Some(SEALED_WORDS.to_owned()) };
    let mut texts = vec![];
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.clone()),
            Part::Image(image) => texts.push(format!("[image: {}]", image.name)),
            Part::File(file) => texts.push(format!("[file: {}]", file.name)),
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    let whole = texts.join("\n\n");
    (!whole.is_empty()).then_some(whole)
}

fn tool_call(call: &ToolCall) -> Vec<u8> {
    let input = call.detail.open().and_then(|detail| detail.input.as_deref());
    let payload = json!({ "name": call.tool, "arguments": approvals::arguments(input) });
    payload.to_string().into_bytes()
}

/// The end of a tool call, if it is one.
fn result(status: ToolStatus, detail: &Content<ToolDetail>) -> Option<Vec<u8>> {
    let output = detail
        .open()
        .and_then(|detail| detail.output.as_deref())
        .map(|output| cut(output, OUTPUT_SHOWN_BYTES_MAX).into_owned());
    let failed = |otherwise: &str| {
        let words = output.clone().filter(|words| !words.is_empty());
        json!({ "ok": false, "error": words.unwrap_or_else(|| otherwise.to_owned()) })
    };
    let payload: Value = match status {
        ToolStatus::Pending | ToolStatus::Running => return None,
        ToolStatus::Completed => json!({ "ok": true, "result": output }),
        ToolStatus::Failed => failed("the tool call failed"),
        ToolStatus::Cancelled => failed("the tool call was cancelled"),
    };
    Some(payload.to_string().into_bytes())
}
