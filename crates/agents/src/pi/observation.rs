//! Passes pi's output on to the scribe.
//!
//! Not here: sends (`delivery`), questions (`dialogs`), the configuration (`life`).

use std::collections::BTreeSet;

use domain::content::{Author, Message, Part, ToolDetail, ToolStatus, ToolUpdate, Usage};
use domain::passing::Voice;
use domain::session::runs::Outcome;
use domain::{Content, MessageId, RunId, Timestamp};
use serde_json::{Value, json};

use super::frames::{
    self, Block, Compaction, Event, Frame, Response, Retry, Said, State, Tokens, Tool, Words,
};
use super::life::Life;
use super::notes::Line;
use super::transport::Asked;
use super::{Pi, tools};

/// Messages that were not understood and are told; of more a person learns nothing.
const UNKNOWN_TOLD_MAX: u32 = 5;
const DOLLAR_MICRO: f64 = 1_000_000.0;

/// What is known of the run that goes on.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The message in the making, and how many there were.
    message: Option<MessageId>,
    messages: u64,
    usage: Option<Usage>,
    /// Why the model's last answer failed.
    error: Option<String>,
    was_aborted: bool,
    is_retrying: bool,
    /// Whether this version says when it has settled.
    tells_settled: bool,
    /// Tool calls that a person did not allow.
    pub(super) denied: BTreeSet<String>,
    unknown: u32,
}

impl Watch {
    /// Forgets everything about the run.
    pub(super) fn run_is_over(&mut self) {
        self.message = None;
        self.error = None;
        self.was_aborted = false;
        self.is_retrying = false;
        self.denied.clear();
    }

    pub(super) fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    fn add(&mut self, tokens: &Tokens) {
        let usage = self.usage.get_or_insert_default();
        let add = |sum: &mut Option<u64>, more: u64| {
            *sum = Some(sum.unwrap_or_default().saturating_add(more));
        };
        // pi counts what came from a cache apart.
        let input = tokens.input.saturating_add(tokens.cache_read);
        add(&mut usage.input_tokens, input.saturating_add(tokens.cache_write));
        add(&mut usage.output_tokens, tokens.output);
        add(&mut usage.cached_tokens, tokens.cache_read);
        add(&mut usage.cost_micro_usd, micro(tokens.cost.total));
    }
}

/// Dollars in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates, and that is what is wanted"
)]
fn micro(dollars: f64) -> u64 {
    (dollars * DOLLAR_MICRO).round() as u64
}

impl Pi {
    /// A line of pi's.
    pub(super) fn hear(&mut self, line: &str, now: Timestamp) {
        if self.life == Life::Asleep || line.trim().is_empty() {
            return;
        }
        match frames::read(line) {
            Frame::MessageGrew(growth) => self.grew(growth.event, now),
            Frame::Response(response) => self.answered(response, now),
            Frame::RunBegan => self.run_began(now),
            Frame::RunEnded => self.ask_whether_over(),
            Frame::Settled => {
                self.watch.tells_settled = true;
                self.run_over(now);
            }
            Frame::MessageBegan(said) => self.message_began(&said, now),
            Frame::MessageEnded(said) => self.message_ended(&said, now),
            Frame::ToolBegan(tool) => {
                let call = tools::call(&tool.call, &tool.name, &tool.args, ToolStatus::Running);
                self.scribe.tool(call, now);
            }
            Frame::ToolGrew(tool) => {
                let output = tool.result.map(|result| result.content.text()).unwrap_or_default();
                if !output.is_empty() {
                    self.scribe.tool_output(&tool.call.as_str().into(), &output, now);
                }
            }
            Frame::ToolEnded(tool) => self.tool_ended(tool, now),
            Frame::Queue(queue) => self.queue_changed(&queue),
            Frame::Asked(request) => self.asked(request, now),
            Frame::Retrying(retry) => self.retrying(&retry, now),
            Frame::RetryOver(retry) => {
                self.watch.is_retrying = false;
                if !retry.success {
                    let words = retry.final_error.unwrap_or_default();
                    self.scribe.notice("retry", format!("pi stopped retrying: {words}"));
                    self.ask_whether_over();
                }
            }
            Frame::Compacting(compaction) => {
                let why = compaction.reason.unwrap_or_default();
                self.scribe
                    .notice("compaction", format!("pi is compacting the conversation ({why})"));
                self.scribe.activity("compacting", "Compacting the conversation", now);
            }
            Frame::Compacted(compaction) => self.compacted(compaction, now),
            Frame::EffortChanged(effort) => {
                if self.known.effort.as_ref() != Some(&effort.level) && self.life == Life::Up {
                    self.known.effort = Some(effort.level);
                    self.remember_config();
                    self.tell_config(now);
                }
            }
            Frame::ExtensionFailed(failed) => {
                let words = format!("{}: {}", failed.extension_path, failed.error);
                self.scribe.notice("extension_error", words);
            }
            Frame::Nothing => {}
            Frame::Unknown(what) => {
                self.watch.unknown += 1;
                if self.watch.unknown <= UNKNOWN_TOLD_MAX {
                    self.scribe.notice("unknown_message", what);
                }
            }
        }
    }

    fn answered(&mut self, response: Response, now: Timestamp) {
        let Some(asked) = self.requests.answered(&response) else { return };
        match &asked {
            Asked::State | Asked::Models | Asked::Efforts | Asked::Commands => {
                self.learn(&asked, response, now);
            }
            Asked::Stats => {
                let usage = response.data.get("contextUsage");
                let number = |name| usage.and_then(|usage| usage.get(name)).and_then(Value::as_u64);
                // An extension may have gone to another session.
                let file = response.data.get("sessionFile").and_then(Value::as_str).map(Into::into);
                if file.is_some() && file != self.known.file {
                    self.known.file = file;
                    self.remember_config();
                    self.tell_config(now);
                }
                if let (Some(used), Some(window)) = (number("tokens"), number("contextWindow")) {
                    self.scribe.context(used, window);
                }
            }
            Asked::Leaf => self.has_leaf(&response, now),
            Asked::Prompt => self.was_taken(response, now),
            Asked::SetModel(request) | Asked::SetEffort(request) => {
                self.was_set(request, response);
            }
            Asked::ClearQueue => self.was_cleared(&response, now),
            Asked::Abort => {
                if self.interrupt.is_some() {
                    self.run_over(now);
                }
            }
            Asked::IsShown => {
                let is_busy = self.is_busy(response);
                self.is_shown(is_busy, now);
            }
            Asked::IsOver(run) => {
                if !self.is_busy(response) && self.scribe.run() == Some(run) {
                    self.run_over(now);
                }
            }
        }
    }

    /// What pi says of its state.
    fn is_busy(&self, response: Response) -> bool {
        let state = serde_json::from_value::<State>(response.data).unwrap_or_default();
        state.is_streaming || state.is_compacting || self.watch.is_retrying
    }

    fn run_began(&mut self, now: Timestamp) {
        self.watch.is_retrying = false;
        // What pi was given begins its run when pi shows it; this one an extension began.
        if self.scribe.run().is_none() && !self.deliveries.is_taken() {
            let run = RunId::from(format!("run-pi-{}", now.0));
            self.scribe.begin_run(run, None, now);
        }
    }

    /// Versions that do not say when they have settled are asked.
    fn ask_whether_over(&mut self) {
        if self.watch.tells_settled {
            return;
        }
        if let Some(run) = self.scribe.run().cloned() {
            self.ask(Asked::IsOver(run), json!({}));
        }
    }

    /// pi does nothing any more.
    fn run_over(&mut self, now: Timestamp) {
        self.begin_with_taken(now);
        let interrupt = self.interrupt.take();
        if self.scribe.run().is_some() {
            let outcome = match (&interrupt, self.watch.was_aborted, self.watch.error.take()) {
                (Some(_), ..) | (None, true, _) => Outcome::Interrupted,
                (None, false, Some(error)) => Outcome::Failed(error),
                (None, false, None) => Outcome::Completed,
            };
            self.deliveries.was_interrupted = interrupt.is_some();
            let usage = self.watch.take_usage();
            self.dialogs.clear();
            self.scribe.end_run(outcome, usage, now);
            self.watch.run_is_over();
            self.clear_queue();
            self.ask(Asked::Stats, json!({}));
        }
        for request in interrupt.into_iter().flat_map(|interrupt| interrupt.requests) {
            self.scribe.answered(&request, None);
        }
        self.deliver_next(now);
    }

    fn next_message(&mut self, now: Timestamp) -> MessageId {
        self.watch.messages += 1;
        let number = self.watch.messages;
        match self.scribe.run() {
            Some(run) => format!("{run}-{number}").into(),
            None => format!("pi-{}-{number}", now.0).into(),
        }
    }

    fn message_began(&mut self, said: &Said, now: Timestamp) {
        if said.role == "assistant" {
            self.begin_with_taken(now);
            let id = self.next_message(now);
            self.watch.message = Some(id);
        }
    }

    fn grew(&mut self, event: Event, now: Timestamp) {
        let id = self.watch.message.take().unwrap_or_else(|| self.next_message(now));
        self.watch.message = Some(id.clone());
        let (at, delta, content) = (event.content_index, event.delta, event.content);
        match (event.kind.as_str(), delta, content, event.tool_call) {
            ("text_delta", Some(words), _, _) => self.scribe.words(&id, at, Voice::Text, &words),
            ("thinking_delta", Some(words), _, _) => {
                self.scribe.words(&id, at, Voice::Thinking, &words);
            }
            ("text_end", _, Some(whole), _) => {
                self.scribe.whole_words(&id, at, Voice::Text, &whole);
            }
            ("thinking_end", _, Some(whole), _) => {
                self.scribe.whole_words(&id, at, Voice::Thinking, &whole);
            }
            ("toolcall_end", _, _, Some(block)) => self.tool_announced(&id, at, &block, now),
            _ => {}
        }
    }

    fn tool_announced(&mut self, message: &MessageId, at: u32, block: &Block, now: Timestamp) {
        let Some(call) = &block.id else { return };
        self.scribe.place_tool(message, at, call.as_str().into());
        if !self.scribe.has_open_tool(&call.as_str().into()) {
            let tool = block.name.as_deref().unwrap_or("tool");
            let call = tools::call(call, tool, &block.arguments, ToolStatus::Pending);
            self.scribe.tool(call, now);
        }
    }

    fn message_ended(&mut self, said: &Said, now: Timestamp) {
        match said.role.as_str() {
            "assistant" => self.answer_ended(said, now),
            "user" => {
                let text = said.content.text();
                if !self.was_shown(&text, now) {
                    self.other_message(Author::User, text, said, now);
                }
            }
            "custom" if said.display => {
                self.other_message(Author::System, said.content.text(), said, now);
            }
            // Results of tools are told by the tools themselves; the rest is for the model alone.
            _ => {}
        }
    }

    /// The whole message, as pi keeps it.
    fn answer_ended(&mut self, said: &Said, now: Timestamp) {
        let id = self.watch.message.take().unwrap_or_else(|| self.next_message(now));
        for (at, block) in (0..).zip(said.content.blocks()) {
            match (block.kind.as_str(), &block.text, &block.thinking) {
                ("text", Some(text), _) => self.scribe.whole_words(&id, at, Voice::Text, text),
                ("thinking", _, Some(text)) => {
                    self.scribe.whole_words(&id, at, Voice::Thinking, text);
                }
                ("toolCall", ..) => self.tool_announced(&id, at, block, now),
                _ => {}
            }
        }
        self.scribe.finish_message(&id, now);
        if let Some(tokens) = &said.usage {
            self.watch.add(tokens);
        }
        let stop = said.stop_reason.as_deref();
        self.watch.was_aborted = stop == Some("aborted");
        let unnamed = || "The model provider failed".to_owned();
        self.watch.error =
            (stop == Some("error")).then(|| said.error_message.clone().unwrap_or_else(unnamed));
        if !self.notes.has_answered {
            let line = self.notes.take(Line::Answered);
            self.scribe.push(line);
        }
    }

    /// Something that did not come from us.
    fn other_message(&mut self, author: Author, text: String, said: &Said, now: Timestamp) {
        if text.is_empty() {
            return;
        }
        let id = self.next_message(now);
        let created_at = said.timestamp.map_or(now, Timestamp);
        self.scribe.message(Message {
            id,
            author,
            parts: Content::Open(vec![Part::Text(text)]),
            created_at,
            run: self.scribe.run().cloned(),
            parent: None,
            digest: None,
        });
    }

    fn tool_ended(&mut self, tool: Tool, now: Timestamp) {
        let was_cut = self.interrupt.is_some() || self.watch.denied.remove(&tool.call);
        let status = match (tool.is_error, was_cut) {
            (false, _) => ToolStatus::Completed,
            (true, true) => ToolStatus::Cancelled,
            (true, false) => ToolStatus::Failed,
        };
        let content = tool.result.map(|result| result.content);
        let output = content.as_ref().map(Words::text);
        let detail = Content::Open(ToolDetail { output, ..ToolDetail::default() });
        let id = tool.call.as_str().into();
        self.scribe.tool_update(ToolUpdate { id, status, detail }, now);
        for drawing in content.map(|content| content.drawings(&tool.name)).unwrap_or_default() {
            let bytes = (drawing.media_type.as_str(), drawing.base64.as_str());
            self.scribe.picture(&drawing.what, bytes, None, now);
        }
    }

    fn retrying(&mut self, retry: &Retry, now: Timestamp) {
        self.watch.is_retrying = true;
        let Retry { attempt, max_attempts, delay_ms, error_message, .. } = retry;
        let words = format!(
            "The model provider failed: {error_message}. pi will retry in {delay_ms} ms \
             ({attempt} of {max_attempts})"
        );
        self.scribe.notice("retry", words);
        self.scribe.activity("retrying", "Waiting to retry", now);
    }

    fn compacted(&mut self, compaction: Compaction, now: Timestamp) {
        let words = match (compaction.result, compaction.error_message) {
            (Some(result), _) => {
                let before = result.tokens_before.unwrap_or_default();
                format!("pi compacted the conversation: {before} tokens before")
            }
            (None, Some(error)) => format!("pi could not compact the conversation: {error}"),
            (None, None) if compaction.aborted => {
                "pi stopped compacting the conversation".to_owned()
            }
            (None, None) => return,
        };
        self.scribe.notice("compaction", words);
        let (kind, label) = match self.scribe.run() {
            Some(_) => ("generating", "Generating"),
            None => ("idle", "Idle"),
        };
        self.scribe.activity(kind, label, now);
    }
}
