//! Passes what the agent says and does on to the scribe.
//!
//! Messages come twice: while they are written (stream events, only of the agent itself) and
//! finished, block by block. The finished version counts.
//!
//! Not here: frames that change what the driver does next (`hearing`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::content::{ToolDetail, ToolStatus, ToolUpdate, Usage};
use domain::passing::Voice;
use domain::{Content as Open, MessageId, Timestamp};
use serde_json::Value;

use super::frames::{
    Assistant, Block, Content, Delta, Event, RateLimit, System, TurnResult, User, pictures,
    returned,
};
use super::plans::Plan;
use super::tools;
use super::transport::own_run;
use crate::{Outlives, Scribe};

/// Messages whose end is remembered, so that a late block does not begin them anew.
const FINISHED_MAX: usize = 64;
/// Tool calls whose input is remembered until they end. At the bound the oldest by name goes.
const CALLS_MAX: usize = 512;
/// Threads (the agent and its subagents) at once. At the bound the oldest by name goes.
const THREADS_MAX: usize = 64;
/// Unknown messages that are shown, for each life of the program.
const UNKNOWN_TOLD_MAX: u32 = 3;

/// How long after a call a question may follow. Until then nobody is told that it is at work.
const ASKS_WITHIN_MS: u64 = 300;
/// What the program says of itself that nobody needs.
const PASSED_OVER: [&str; 17] = [
    "init",
    "status",
    "hook_started",
    "hook_progress",
    "hook_response",
    "task_progress",
    "task_updated",
    "session_state_changed",
    "commands_changed",
    "thinking_tokens",
    "memory_recall",
    "files_persisted",
    "plugin_install",
    "control_request_progress",
    "elicitation_complete",
    "post_turn_summary",
    "turn_duration",
];
/// How the words begin that the model is told of a call that was cut off.
const REJECTION: &str = "The user doesn't want to proceed with this tool use";

/// What is known of the agent's work.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// By the call whose subagent it is; the agent's own has no name.
    threads: BTreeMap<String, Thread>,
    finished: VecDeque<MessageId>,
    calls: BTreeMap<String, Call>,
    denied: BTreeSet<String>,
    /// Calls that wait for a person.
    asking: BTreeSet<String>,
    /// Calls that are at work unless they ask first, and until when they may.
    soon: Vec<String>,
    soon_until: Option<Timestamp>,
    plan: Plan,
    /// Money spent so far, as last told.
    cost_usd: Option<f64>,
    /// Tasks that go on without a run.
    pub(super) background: usize,
    unknown_told: u32,
    limit: Option<String>,
}

/// A message in the making.
#[derive(Debug)]
struct Thread {
    message: MessageId,
    /// The block that is being made.
    block: u32,
    is_streamed: bool,
}

#[derive(Debug)]
struct Call {
    name: String,
    input: Value,
}

impl Watch {
    /// A piece of a message.
    pub(super) fn event(
        &mut self,
        event: Event,
        parent: Option<&str>,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        match event {
            Event::MessageStart { message } => {
                let id = MessageId::from(message.id.as_str());
                self.enter(parent, &id, true, scribe, now);
            }
            Event::ContentBlockStart { index, content_block } => {
                let Some(thread) = self.threads.get_mut(parent.unwrap_or_default()) else { return };
                thread.block = index;
                if let Block::ToolUse { id, name, .. } = content_block {
                    scribe.place_tool(&thread.message, index, id.as_str().into());
                    scribe.activity("generating", &format!("Preparing {name}"), now);
                }
            }
            Event::ContentBlockDelta { index, delta } => {
                let Some(thread) = self.threads.get(parent.unwrap_or_default()) else { return };
                match delta {
                    Delta::Text { text } => {
                        scribe.words(&thread.message, index, Voice::Text, &text);
                    }
                    Delta::Thinking { thinking } => {
                        scribe.words(&thread.message, index, Voice::Thinking, &thinking);
                    }
                    Delta::Unknown => {}
                }
            }
            Event::MessageStop {} => self.leave(parent.unwrap_or_default(), scribe, now),
            Event::Unknown => {}
        }
    }

    /// A finished block.
    pub(super) fn assistant(&mut self, frame: Assistant, scribe: &mut Scribe, now: Timestamp) {
        let Assistant { message, parent_tool_use_id: parent, is_api_error_message, uuid } = frame;
        let parent = parent.as_deref();
        let Some(id) = message.id.or(uuid).map(MessageId::from) else { return };
        // How the run ended says the same.
        if is_api_error_message || self.finished.contains(&id) {
            return;
        }
        self.enter(parent, &id, false, scribe, now);
        let blocks = match message.content {
            Content::Words(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        for block in blocks {
            let Some(thread) = self.threads.get_mut(parent.unwrap_or_default()) else { return };
            let key = thread.block;
            thread.block += 1;
            match block {
                Block::Text { text } => scribe.whole_words(&id, key, Voice::Text, &text),
                Block::Thinking { thinking } => {
                    scribe.whole_words(&id, key, Voice::Thinking, &thinking);
                }
                Block::ToolUse { id: tool, name, input } => {
                    scribe.place_tool(&id, key, tool.as_str().into());
                    scribe.tool(tools::call(&tool, &name, &input, parent), now);
                    if self.soon.len() < CALLS_MAX {
                        self.soon.push(tool.clone());
                        self.soon_until = Some(now.plus_ms(ASKS_WITHIN_MS));
                    }
                    if self.calls.len() >= CALLS_MAX {
                        self.calls.pop_first();
                    }
                    self.calls.insert(tool, Call { name, input });
                }
                Block::ToolResult { tool_use_id, content, is_error } => {
                    self.tool_ended(&tool_use_id, &content, is_error, &Value::Null, scribe, now);
                }
                Block::Unknown => {}
            }
        }
    }

    /// What tools returned.
    pub(super) fn user(&mut self, frame: &User, scribe: &mut Scribe, now: Timestamp) {
        let Content::Blocks(blocks) = &frame.message.content else { return };
        for block in blocks {
            let Block::ToolResult { tool_use_id, content, is_error } = block else { continue };
            // A subagent is not streamed: that it was answered is what ends its message.
            let thread = frame.parent_tool_use_id.as_deref().unwrap_or_default();
            self.leave_unstreamed(thread, scribe, now);
            self.leave(tool_use_id, scribe, now);
            let result = &frame.tool_use_result;
            self.tool_ended(tool_use_id, content, *is_error, result, scribe, now);
        }
    }

    /// Begins or goes on with a message of a thread.
    fn enter(
        &mut self,
        parent: Option<&str>,
        id: &MessageId,
        is_streamed: bool,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        if scribe.run().is_none() && parent.is_none() {
            scribe.begin_run(own_run(id.as_str()), None, now);
        }
        if self.threads.get(parent.unwrap_or_default()).is_some_and(|thread| thread.message == *id)
        {
            return;
        }
        self.leave(parent.unwrap_or_default(), scribe, now);
        if self.threads.len() >= THREADS_MAX {
            self.threads.pop_last();
        }
        if let Some(parent) = parent {
            scribe.belongs_to(id, Some(parent.into()));
        }
        let thread = Thread { message: id.clone(), block: 0, is_streamed };
        self.threads.insert(parent.unwrap_or_default().to_owned(), thread);
    }

    /// A thread's message is finished.
    fn leave(&mut self, parent: &str, scribe: &mut Scribe, now: Timestamp) {
        let Some(thread) = self.threads.remove(parent) else { return };
        scribe.finish_message(&thread.message, now);
        self.finished.push_back(thread.message);
        if self.finished.len() > FINISHED_MAX {
            self.finished.pop_front();
        }
    }

    fn leave_unstreamed(&mut self, parent: &str, scribe: &mut Scribe, now: Timestamp) {
        if self.threads.get(parent).is_some_and(|thread| !thread.is_streamed) {
            self.leave(parent, scribe, now);
        }
    }

    /// Calls that did not ask are at work.
    pub(super) fn on_deadline(&mut self, scribe: &mut Scribe, now: Timestamp) {
        if self.soon_until.take_if(|until| *until <= now).is_none() {
            return;
        }
        for call in std::mem::take(&mut self.soon) {
            if !self.asking.contains(&call) {
                call_is(&call, ToolStatus::Running, scribe, now);
            }
        }
    }

    /// When [`Watch::on_deadline`] has something to say.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.soon_until
    }

    /// A call waits for a person.
    pub(super) fn call_asks(&mut self, call: &str, scribe: &mut Scribe, now: Timestamp) {
        if self.asking.len() < CALLS_MAX {
            self.asking.insert(call.to_owned());
        }
        call_is(call, ToolStatus::Pending, scribe, now);
    }

    /// A call waits no longer.
    pub(super) fn call_was_answered(&mut self, call: &str) {
        self.asking.remove(call);
    }

    /// A person changed a call's input.
    pub(super) fn call_changed(
        &mut self,
        call: &str,
        name: &str,
        input: &Value,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        let detail = Open::Open(tools::detail(name, input));
        let status = ToolStatus::Running;
        scribe.tool_update(ToolUpdate { id: call.into(), status, detail }, now);
        if let Some(call) = self.calls.get_mut(call) {
            call.input = input.clone();
        }
    }

    /// A person said no.
    pub(super) fn call_denied(&mut self, call: &str) {
        if self.denied.len() < CALLS_MAX {
            self.denied.insert(call.to_owned());
        }
    }

    fn tool_ended(
        &mut self,
        id: &str,
        content: &Value,
        is_error: Option<bool>,
        result: &Value,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        let is_error = is_error == Some(true);
        let status = match (self.denied.remove(id), is_error) {
            (true, _) => ToolStatus::Cancelled,
            (false, true) => ToolStatus::Failed,
            (false, false) => ToolStatus::Completed,
        };
        self.asking.remove(id);
        let output = Some(output(content, result))
            .filter(|text| !text.is_empty() && !text.starts_with(REJECTION));
        let diffs = if is_error { vec![] } else { tools::outcome(result) };
        let detail = Open::Open(ToolDetail { output, diffs, ..ToolDetail::default() });
        scribe.tool_update(ToolUpdate { id: id.into(), status, detail }, now);
        let Some(call) = self.calls.remove(id) else { return };
        for picture in pictures(content) {
            scribe.picture(&call.name, picture, None, now);
        }
        if !is_error && let Some(entries) = self.plan.heard(&call.name, &call.input, result) {
            scribe.plan(entries);
        }
    }

    /// Whatever is at work is being stopped: what ends now was cut off.
    pub(super) fn stopping(&mut self) {
        let calls: Vec<String> = self.calls.keys().cloned().collect();
        for call in calls {
            self.call_denied(&call);
        }
    }

    /// A subagent in the background works on when a run ends.
    fn outlives(&self) -> Outlives {
        if self.background > 0 { Outlives::Background } else { Outlives::Nothing }
    }

    /// A turn is over.
    pub(super) fn turn_ended(&mut self, scribe: &mut Scribe, now: Timestamp) {
        self.leave("", scribe, now);
        scribe.outlives(self.outlives());
        if self.background == 0 {
            let threads: Vec<_> = self.threads.keys().cloned().collect();
            for thread in threads {
                self.leave(&thread, scribe, now);
            }
            self.calls.clear();
        }
        self.denied.clear();
        self.asking.clear();
        self.soon.clear();
        self.soon_until = None;
    }

    /// What a turn took. The agent counts its money over a whole conversation.
    pub(super) fn usage(&mut self, result: &TurnResult) -> Option<Usage> {
        let before = self.cost_usd;
        self.cost_usd = result.total_cost_usd.or(before);
        let recent = result.model_usage_since_last_result.as_ref();
        let recent = recent.map(|models| models.values().map(|model| model.cost_usd).sum());
        let cost_usd: Option<f64> = recent.or_else(|| Some(result.total_cost_usd? - before?));
        let usage = result.usage.as_ref()?;
        let read = usage.input + usage.cache_creation + usage.cache_read;
        Some(Usage {
            input_tokens: Some(read),
            output_tokens: Some(usage.output),
            cached_tokens: Some(usage.cache_read),
            cost_micro_usd: cost_usd.map(micro),
        })
    }

    /// Things to know, from the program itself. False for what is not known.
    pub(super) fn system(&mut self, frame: &System, scribe: &mut Scribe, now: Timestamp) -> bool {
        match frame.subtype.as_str() {
            "compact_boundary" => scribe.notice("compaction", compaction(frame)),
            "api_retry" => scribe.notice("retry", retry(frame)),
            "background_tasks_changed" => {
                self.background = frame.tasks.as_ref().map_or(0, Vec::len);
                if self.background == 0 && scribe.run().is_none() {
                    // Nothing of it ends any more.
                    scribe.outlives(Outlives::Nothing);
                    scribe.close_all(now);
                }
            }
            "task_started" => {
                if let Some(call) = &frame.tool_use_id {
                    call_is(call, ToolStatus::Running, scribe, now);
                }
            }
            "task_notification" => {
                let thread = frame.tool_use_id.as_deref().unwrap_or_default();
                self.leave_unstreamed(thread, scribe, now);
            }
            "status" if frame.status.as_deref() == Some("compacting") => {
                scribe.activity("generating", "Compacting the conversation", now);
            }
            "informational"
            | "notification"
            | "local_command_output"
            | "mirror_error"
            | "model_refusal_fallback" => {
                let text = returned(&frame.content);
                let is_trifle = frame.level.as_deref() == Some("suggestion");
                if !text.trim().is_empty() && !is_trifle {
                    scribe.notice("agent", text);
                }
            }
            "permission_denied" => {
                self.call_denied(frame.tool_use_id.as_deref().unwrap_or_default());
            }
            other => return PASSED_OVER.contains(&other),
        }
        true
    }

    /// Allowances. The same again is not told again.
    pub(super) fn limit(&mut self, limit: &RateLimit, scribe: &mut Scribe, now: Timestamp) {
        let kind = limit.kind.as_deref().unwrap_or("usage").replace('_', " ");
        let words = match limit.status.as_str() {
            "allowed" => {
                self.limit = None;
                return;
            }
            "allowed_warning" => format!("Close to the {kind} limit"),
            _ => format!("Reached the {kind} limit"),
        };
        if self.limit.as_ref() == Some(&words) {
            return;
        }
        let wait_ms =
            limit.resets_at.map(|at_s| Timestamp(at_s.saturating_mul(1_000)).ms_since(now));
        let told = match wait_ms {
            Some(wait_ms) => format!("{words}; it resets in {} minutes", wait_ms.div_ceil(60_000)),
            None => words.clone(),
        };
        scribe.notice("rate_limit", told);
        self.limit = Some(words);
    }

    /// The conversation began anew.
    pub(super) fn reset(&mut self, scribe: &mut Scribe) {
        self.plan.clear();
        self.cost_usd = None;
        scribe.notice("conversation", "The agent started a new conversation");
    }

    /// Something that nobody here knows.
    pub(super) fn unknown(&mut self, line: &str, scribe: &mut Scribe) {
        if self.unknown_told < UNKNOWN_TOLD_MAX {
            self.unknown_told += 1;
            scribe.notice("unknown_message", line);
        }
    }

    /// The program is no more.
    pub(super) fn program_ended(&mut self) {
        let plan = std::mem::take(&mut self.plan);
        *self = Self { plan, ..Self::default() };
    }
}

/// A call waits for a person, or goes on.
pub(super) fn call_is(call: &str, status: ToolStatus, scribe: &mut Scribe, now: Timestamp) {
    let detail = Open::Open(ToolDetail::default());
    scribe.tool_update(ToolUpdate { id: call.into(), status, detail }, now);
}

/// All of what a tool printed: the model may have been shown less.
fn output(content: &Value, result: &Value) -> String {
    let shown = returned(content);
    let Some(printed) = result["stdout"].as_str() else { return shown };
    let printed = match result["stderr"].as_str().filter(|text| !text.is_empty()) {
        Some(errors) if printed.is_empty() => errors.to_owned(),
        Some(errors) => format!("{printed}\n{errors}"),
        None => printed.to_owned(),
    };
    if printed.len() > shown.len() { printed } else { shown }
}

fn compaction(frame: &System) -> String {
    let Some(about) = &frame.compact_metadata else {
        return "The conversation was compacted".to_owned();
    };
    let by = match about.trigger.as_deref() {
        Some("auto") => "The conversation was compacted because the context was nearly full",
        _ => "The conversation was compacted",
    };
    match (about.pre_tokens, about.post_tokens) {
        (Some(before), Some(after)) => format!("{by}: {before} tokens before, {after} after"),
        (Some(before), None) => format!("{by}: {before} tokens before"),
        (None, _) => by.to_owned(),
    }
}

fn retry(frame: &System) -> String {
    let (attempt, most) =
        (frame.attempt.unwrap_or_default(), frame.max_retries.unwrap_or_default());
    match frame.error_status {
        Some(status) => format!("The model provider returned {status}; retry {attempt} of {most}"),
        None => format!("The model provider did not respond; retry {attempt} of {most}"),
    }
}

fn micro(dollars: f64) -> u64 {
    let micro = (dollars * 1e6).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "held between bounds that fit; a fraction was rounded away"
    )]
    let whole = micro.clamp(0.0, 1e15) as u64;
    whole
}
