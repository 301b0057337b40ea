//! How each recorded event is shown to a client of this dialect.
//!
//! Not here: answers to a client's own commands (`responses`), which only that client receives.

use std::borrow::Cow;

use bytes::Bytes;
use domain::content::{Author, Message, Part, Usage};
use domain::session::{
    Event, Recorded, config, controls, delivery, prompts, runs, status, transcript,
};
use serde_json::{Value, json};

use super::messages::{self, encode, framed, inside, joined, notify, trouble};
use super::{Connection, dialogs, stream};
use crate::visitor::{Act, Encoded, Slot};

/// Results of one turn that its end repeats; of more, the first.
const TURN_RESULTS_MAX: usize = 256;
/// The failure of a send that was taken out of the queue.
const DISCARDED: &str = "discarded";

/// The turn that goes on: one message of the agent, and what its tools gave.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Whether its beginning was told.
    has_begun: bool,
    message: Option<Bytes>,
    results: Vec<Bytes>,
}

impl Turn {
    /// What one of its tools gave.
    pub(super) fn keep(&mut self, result: Bytes) {
        if self.results.len() < TURN_RESULTS_MAX {
            self.results.push(result);
        }
    }

    fn end(&mut self) -> Option<Bytes> {
        let Self { has_begun, message, results } = std::mem::take(self);
        let message = message.filter(|_| has_begun)?;
        let mut pieces: Vec<&[u8]> =
            vec![b"{\"type\":\"turn_end\",\"message\":", &message, b",\"toolResults\":["];
        list(&mut pieces, results.iter());
        pieces.push(b"]}");
        Some(joined(&pieces))
    }
}

impl Connection {
    /// The frames of an event, for this connection.
    pub(super) fn show(&mut self, recorded: &Recorded, encoded: &Encoded) -> Vec<Bytes> {
        let mut frames = vec![];
        if goes_on(&recorded.event)
            && !matches!(recorded.event, Event::Run(runs::Event::Ended { .. }))
        {
            frames.extend(self.settle_last());
        }
        let held = std::mem::take(&mut self.held);
        let begins = matches!(recorded.event, Event::Run(runs::Event::Started { .. }));
        if begins {
            self.turn = Turn { has_begun: true, ..Turn::default() };
            self.first = held.last().map(|frame| inside(frame, "message_end"));
            frames.push(plain("agent_start"));
            frames.push(plain("turn_start"));
        }
        frames.extend(held);
        frames.extend(self.view.queue.apply(&recorded.event));
        match &recorded.event {
            Event::Transcript(event) => frames.extend(self.said(recorded, event, encoded)),
            Event::Prompt(_) | Event::Status(_) | Event::Config(_) | Event::Delivery(_) => {
                let shared = encoded.frames(Slot::Pi, || self.shared(recorded));
                frames.extend_from_slice(shared);
                if let Event::Prompt(event) = &recorded.event {
                    frames.extend(self.resolved_again(event));
                }
            }
            Event::Run(runs::Event::Ended { outcome, usage, .. }) => {
                frames.extend(self.end_message(recorded, outcome));
                frames.extend(self.end_run(usage.as_ref(), encoded));
            }
            Event::Control(controls::Event::Settled { request, failure, .. }) => {
                frames.extend(self.settle(request, failure.as_ref()));
            }
            Event::Run(runs::Event::Started { .. }) | Event::Control(_) | Event::Queue(_) => {}
        }
        frames
    }

    fn said(
        &mut self,
        recorded: &Recorded,
        event: &transcript::Event,
        encoded: &Encoded,
    ) -> Vec<Bytes> {
        match event {
            transcript::Event::Message(message) => match message.author {
                Author::User => self.person(message, encoded),
                Author::Assistant => self.agent(message, encoded),
                Author::System => {
                    let words = || {
                        let parts = message.parts.open().into_iter().flatten();
                        let text = parts.filter_map(|part| match part {
                            Part::Text(words) => Some(words.as_str()),
                            Part::Thinking(_)
                            | Part::Image(_)
                            | Part::File(_)
                            | Part::ToolCall(_) => None,
                        });
                        let text = text.collect::<Vec<_>>().join("\n");
                        vec![noted(recorded, &text, "info")]
                    };
                    encoded.frames(Slot::Pi, words).to_vec()
                }
            },
            transcript::Event::ToolCall(call) => self.tool_call(recorded, call, encoded),
            transcript::Event::ToolUpdate(update) => self.tool_update(recorded, update, encoded),
            transcript::Event::Notice(notice) => {
                let frame = || match notice.kind.as_str() {
                    "extension_error" => vec![encode(&trouble("extension", &notice.text))],
                    "error" => vec![noted(recorded, &notice.text, "error")],
                    _ => vec![noted(recorded, &notice.text, "info")],
                };
                encoded.frames(Slot::Pi, frame).to_vec()
            }
            transcript::Event::Plan(_)
            | transcript::Event::Context(_)
            | transcript::Event::Echoed(_) => vec![],
        }
    }

    /// A person's words. Those that begin a run are told after its beginning, which is the next
    /// event.
    fn person(&mut self, message: &Message, encoded: &Encoded) -> Vec<Bytes> {
        let frames = encoded.frames(Slot::Pi, || {
            let body = encode(&messages::user(message, &std::collections::BTreeMap::new()));
            vec![framed("message_start", &body), framed("message_end", &body)]
        });
        let frames = frames.to_vec();
        let begins = message.run.as_ref().is_some_and(|run| {
            let active = self.view.run.as_ref().map(|run| &run.id);
            active != Some(run) && self.view.last_ended.as_ref() != Some(run)
        });
        if begins {
            self.held = frames;
            return vec![];
        }
        let mut told = self.break_off();
        if let (Some(run), Some(end)) = (&mut self.view.run, frames.last()) {
            run.keep(inside(end, "message_end"));
        }
        told.extend(frames);
        told
    }

    /// Something of a person's comes within a message of the agent. The message ends with what it
    /// said so far; what it says after this is told as another one.
    fn break_off(&mut self) -> Vec<Bytes> {
        let Some((mut frames, message)) = self.streaming.break_off() else { return vec![] };
        let body = encode(&message);
        let reason = message["stopReason"].as_str().unwrap_or("stop");
        frames.push(stream::over(reason, &body));
        frames.push(framed("message_end", &body));
        self.keep_said(body);
        frames
    }

    /// The agent's words, finished.
    fn agent(&mut self, message: &Message, encoded: &Encoded) -> Vec<Bytes> {
        let rest = self.streaming.rest(message);
        let is_broken_off = rest.is_some();
        let rest = rest.unwrap_or(Cow::Borrowed(message));
        let message = rest.as_ref();
        if is_broken_off && !messages::says_anything(message) {
            return self.streaming.finish(&message.id);
        }
        let parts = message.parts.open().map_or(&[] as &[Part], Vec::as_slice);
        let calls: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(id) => Some(id),
                Part::Text(_) | Part::Thinking(_) | Part::Image(_) | Part::File(_) => None,
            })
            .collect();
        let told = |id: &&domain::ToolCallId| {
            self.view.tools.get(id).is_some_and(|tool| tool.is_told_alone)
        };
        if !parts.is_empty() && calls.len() == parts.len() && calls.iter().all(told) {
            // Nothing but calls that were told as messages of their own.
            return self.streaming.finish(&message.id);
        }
        let encode_end = || {
            let call = |id: &domain::ToolCallId| self.view.call(id);
            let body = encode(&messages::assistant(self.view.model(), message, call));
            vec![framed("message_end", &body)]
        };
        // Who came after it was broken off is told it whole.
        let is_known = !is_broken_off && calls.iter().all(|id| self.view.tools.get(id).is_some());
        let end =
            if is_known { encoded.frames(Slot::Pi, encode_end).to_vec() } else { encode_end() };
        let Some(end) = end.into_iter().next() else { return vec![] };
        let body = inside(&end, "message_end");
        let mut frames = if self.streaming.is_open(&message.id) {
            self.streaming.finish(&message.id)
        } else {
            self.streaming.finish(&message.id);
            let mut frames = self.begin_message();
            let Self { view, streaming, .. } = self;
            frames.extend(streaming.whole(view, message, |id| view.call(id)));
            frames
        };
        if calls.is_empty() && self.view.is_stopping() {
            // A person wants the run to stop: with this message it may have.
            self.maybe_last = Some(end);
            return frames;
        }
        let reason = if calls.is_empty() { "stop" } else { "toolUse" };
        frames.push(stream::over(reason, &body));
        frames.push(end);
        self.keep_said(body);
        frames
    }

    /// The run goes on after a message that might have been its last.
    pub(super) fn settle_last(&mut self) -> Vec<Bytes> {
        let Some(end) = self.maybe_last.take() else { return vec![] };
        let body = inside(&end, "message_end");
        let frames = vec![stream::over("stop", &body), end];
        self.keep_said(body);
        frames
    }

    /// The run stopped with the message that was its last.
    fn stop_last(&mut self, outcome: &runs::Outcome) -> Option<Vec<Bytes>> {
        let end = self.maybe_last.take()?;
        let mut message = serde_json::from_slice(&inside(&end, "message_end")).ok()?;
        let reason = messages::end_with(&mut message, outcome);
        let body = encode(&message);
        let frames = vec![stream::over(reason, &body), framed("message_end", &body)];
        self.keep_said(body);
        Some(frames)
    }

    /// A message of the agent begins: with it, another turn.
    pub(super) fn begin_message(&mut self) -> Vec<Bytes> {
        if self.view.run.is_none() || self.turn.message.is_none() {
            return vec![];
        }
        let mut frames: Vec<_> = self.turn.end().into_iter().collect();
        self.turn.has_begun = true;
        frames.push(plain("turn_start"));
        frames
    }

    /// A message of the agent was told.
    pub(super) fn keep_said(&mut self, message: Bytes) {
        if let Some(run) = &mut self.view.run {
            run.keep(message.clone());
            self.turn.message = Some(message);
        }
    }

    /// A run ends: with it, the message that was in the making or had just been told; a run that
    /// was stopped or failed has one that says so.
    fn end_message(&mut self, recorded: &Recorded, outcome: &runs::Outcome) -> Vec<Bytes> {
        if let Some(frames) = self.stop_last(outcome) {
            return frames;
        }
        let cut = self.streaming.cut();
        let was_open = cut.is_some();
        let (mut frames, content) = cut.unwrap_or_default();
        let message = messages::ending(self.view.model(), outcome, &content, recorded.at);
        // A message that nobody finished has an end all the same.
        let message = message.or_else(|| {
            let id = domain::MessageId::from("");
            was_open.then(|| messages::begun(self.view.model(), &id, &content, recorded.at))
        });
        let Some(message) = message else { return frames };
        let body = encode(&message);
        if !was_open {
            frames.extend(self.begin_message());
            frames.push(framed("message_start", &body));
        }
        frames.push(stream::over(message["stopReason"].as_str().unwrap_or("stop"), &body));
        frames.push(framed("message_end", &body));
        self.keep_said(body);
        frames
    }

    /// The ends of the turn and of the run. What the run took is known only now: its last message
    /// is told with it.
    fn end_run(&mut self, usage: Option<&Usage>, encoded: &Encoded) -> Vec<Bytes> {
        let last = self.turn.message.as_mut();
        if let (Some(run), Some(last), Some(usage)) = (&mut self.view.run, last, usage) {
            run.account(last, usage);
        }
        let mut frames: Vec<_> = self.turn.end().into_iter().collect();
        let run = self.view.run.as_ref();
        let encode_end = || {
            let mut pieces: Vec<&[u8]> = vec![b"{\"type\":\"agent_end\",\"messages\":["];
            list(&mut pieces, run.into_iter().flat_map(super::view::Run::said));
            pieces.push(b"]}");
            vec![joined(&pieces)]
        };
        let is_whole = run.is_some_and(|run| run.is_whole);
        frames.extend(if is_whole {
            encoded.frames(Slot::Pi, encode_end).to_vec()
        } else {
            encode_end()
        });
        frames
    }

    /// The frames of an event that are the same for everybody, made before the view takes it in.
    fn shared(&self, recorded: &Recorded) -> Vec<Bytes> {
        let frames: Vec<Value> = match &recorded.event {
            Event::Prompt(prompts::Event::Asked(prompt)) => vec![dialogs::request(prompt)],
            Event::Prompt(prompts::Event::Reopened { prompt, failure }) => {
                let words = format!("The answer could not be applied: {}", failure.message);
                let note = notify(&note_id(recorded), &words, "warning");
                vec![note, dialogs::request(prompt)]
            }
            Event::Prompt(prompts::Event::Settled { prompt, .. }) => {
                vec![dialogs::resolved(prompt)]
            }
            Event::Config(config) => self.configured(config).into_iter().collect(),
            Event::Status(status::Event::Renamed(name)) => {
                vec![json!({ "type": "session_info_changed", "name": name })]
            }
            Event::Status(event) => {
                let told = status(event);
                told.map(|(words, kind)| notify(&note_id(recorded), &words, kind))
                    .into_iter()
                    .collect()
            }
            Event::Delivery(delivery::Event::Failed { failure, .. })
                if failure.code.as_str() != DISCARDED =>
            {
                let words = format!("{} ({})", failure.message, failure.code);
                vec![trouble("prompt", &words)]
            }
            Event::Prompt(prompts::Event::Confirmed(_))
            | Event::Delivery(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Control(_)
            | Event::Queue(_) => vec![],
        };
        frames.iter().map(encode).collect()
    }

    fn configured(&self, config: &config::AgentConfig) -> Option<Value> {
        let level = config.effort.as_deref()?;
        let is_new = self.view.config.is_some() && self.view.effort() != level;
        is_new.then(|| json!({ "type": "thinking_level_changed", "level": level }))
    }

    /// What was held for the beginning of a run goes before anything else.
    pub(super) fn flush_held(&mut self, acts: &mut Vec<Act>) {
        acts.extend(std::mem::take(&mut self.held).into_iter().map(Act::Send));
    }
}

/// A frame that says only that something happened.
pub(super) fn plain(kind: &str) -> Bytes {
    encode(&json!({ "type": kind }))
}

/// Whether after this event a message was not the last of its run, unless the run ends with it.
pub(super) fn goes_on(event: &Event) -> bool {
    match event {
        Event::Run(_)
        | Event::Prompt(prompts::Event::Asked(_))
        | Event::Transcript(
            transcript::Event::Message(_)
            | transcript::Event::ToolCall(_)
            | transcript::Event::ToolUpdate(_),
        ) => true,
        Event::Control(controls::Event::Settled { failure, .. }) => failure.is_some(),
        Event::Prompt(_)
        | Event::Transcript(_)
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_) => false,
    }
}

fn note_id(recorded: &Recorded) -> String {
    format!("note-{}", recorded.sequence)
}

fn noted(recorded: &Recorded, words: &str, kind: &str) -> Bytes {
    encode(&notify(&note_id(recorded), words, kind))
}

fn list<'a>(pieces: &mut Vec<&'a [u8]>, messages: impl Iterator<Item = &'a Bytes>) {
    for (at, message) in messages.enumerate() {
        if at > 0 {
            pieces.push(b",");
        }
        pieces.push(message);
    }
}

fn status(event: &status::Event) -> Option<(String, &'static str)> {
    match event {
        status::Event::Up { .. } => Some(("The session's machine is connected".to_owned(), "info")),
        status::Event::Down { .. } => {
            Some(("The session's machine is offline".to_owned(), "warning"))
        }
        status::Event::Changed { reason, .. } => reason.clone().map(|words| (words, "info")),
        status::Event::Closed { .. } => Some(("The session was closed".to_owned(), "warning")),
        status::Event::Renamed(_) | status::Event::Archived(_) => None,
    }
}
