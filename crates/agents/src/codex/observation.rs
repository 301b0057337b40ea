//! Converts what Codex reports without being asked to reports for all clients.
//!
//! Invariant: a message that is not understood is reported a few times as a notice and otherwise
//! ignored. An item that is cut off never completes: the next item of its thread, or the end of the
//! turn, closes it.
//!
//! Not here: questions (`prompts`), the beginning and end of turns (`turns`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::content::{Diff, ToolCall, ToolDetail, ToolUpdate};
use domain::passing::Voice;
use domain::{Content, MessageId, Timestamp, ToolCallId};
use serde_json::Value;

use super::frames::{Item, OfItem, OfTurn, PatchUpdated, SettingsUpdated, Words, read};
use super::news::News;
use super::{Codex, items, patches};
use crate::{Drawing, Piece};

/// Messages of ours that are recognised when Codex shows them.
const SENT_MAX: usize = 128;
/// Subagents that are told apart.
const CHILDREN_MAX: usize = 64;
/// Bytes of a running command's output that are kept; its end tells it whole.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Commands whose output is kept.
const OUTPUTS_MAX: usize = 32;
/// Raw thoughts are parts after all summaries.
const RAW_THOUGHTS_FROM: u32 = 1_000;

/// Told, and of no concern to a person who watches the conversation.
const PASSED_OVER: &[&str] = &[
    "account/updated",
    "app/list/updated",
    "deprecationNotice",
    "fs/changed",
    "hook/completed",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/mcpToolCall/progress",
    "item/reasoning/summaryPartAdded",
    "model/safetyBuffering/updated",
    "model/verification",
    "project/changed",
    "rawResponse/completed",
    "rawResponseItem/completed",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/archived",
    "thread/attachment/updated",
    "thread/closed",
    "thread/compacted",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/started",
    "thread/status/changed",
    "thread/unarchived",
    "turn/diff/updated",
    "turn/moderationMetadata",
];

/// What is kept of what was told.
#[derive(Debug, Default)]
pub(super) struct Watch {
    sent: VecDeque<String>,
    /// The message in the making of each thread.
    writing: BTreeMap<String, MessageId>,
    /// The changes of patches that are open, for the questions about them.
    changes: BTreeMap<ToolCallId, Vec<Diff>>,
    outputs: BTreeMap<ToolCallId, String>,
    commands: BTreeSet<String>,
    /// Threads of subagents, and the call that began each.
    children: BTreeMap<String, ToolCallId>,
    pub(super) news: News,
    /// An earlier conversation on its way here, the newest first.
    pub(super) history: Vec<Value>,
}

impl Watch {
    /// A message of ours goes out under this id.
    pub(super) fn sent(&mut self, client: &str) {
        if self.sent.len() >= SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(client.to_owned());
    }

    /// The commands that have not ended.
    pub(super) fn running_commands(&self) -> Vec<String> {
        self.commands.iter().cloned().collect()
    }

    /// What an open patch would change.
    pub(super) fn changes_of(&self, call: &ToolCallId) -> Vec<Diff> {
        self.changes.get(call).cloned().unwrap_or_default()
    }

    pub(super) fn turn_ended(&mut self) {
        self.writing.clear();
        self.changes.clear();
        self.outputs.clear();
        self.commands.clear();
    }
}

/// Whose words they are.
enum Whose {
    Ours,
    Child(ToolCallId),
    Foreign,
}

impl Codex {
    fn whose(&self, params: &Value) -> Whose {
        match params.get("threadId").and_then(Value::as_str) {
            None => Whose::Ours,
            Some(thread) if thread == self.thread => Whose::Ours,
            Some(thread) => match self.watch.children.get(thread) {
                Some(call) => Whose::Child(call.clone()),
                None => Whose::Foreign,
            },
        }
    }

    pub(super) fn told(&mut self, method: &str, params: &Value, now: Timestamp) {
        let parent = match self.whose(params) {
            Whose::Ours => None,
            Whose::Child(call) => Some(call),
            Whose::Foreign => return,
        };
        let is_understood = match (method, &parent) {
            ("turn/started", None) => {
                read(params).map(|OfTurn { turn }| self.turn_started(&turn, now))
            }
            ("turn/completed", None) => {
                read(params).map(|OfTurn { turn }| self.turn_completed(&turn, now))
            }
            ("turn/completed", Some(_)) => {
                self.finish_writing(params, now);
                Some(())
            }
            ("thread/tokenUsage/updated", None) => read(params).map(|used| self.tokens_used(&used)),
            ("thread/settings/updated", None) => read(params)
                .map(|told: SettingsUpdated| self.settings_updated(&told.thread_settings, now)),
            ("turn/plan/updated", None) => read(params).map(|plan| self.plan_updated(plan)),
            ("error", None) => read(params).map(|failed| self.failed(&failed)),
            ("model/rerouted", None) => {
                self.rerouted(params, now);
                Some(())
            }
            (
                "turn/started"
                | "turn/plan/updated"
                | "thread/tokenUsage/updated"
                | "thread/settings/updated"
                | "error"
                | "model/rerouted",
                Some(_),
            ) => Some(()),
            _ => self.told_item(method, params, parent, now),
        };
        if is_understood.is_none() {
            self.strange(method, &format!("{method} {params}"));
        }
    }

    fn told_item(
        &mut self,
        method: &str,
        params: &Value,
        parent: Option<ToolCallId>,
        now: Timestamp,
    ) -> Option<()> {
        match method {
            "item/started" => {
                let OfItem { item } = read(params)?;
                // A message that begins is not written down yet.
                if parent.is_none() && !matches!(item, Item::UserMessage { .. }) {
                    self.turn_shown(now);
                }
                self.item_started(&item, params, parent, now);
            }
            "item/completed" => {
                let OfItem { item } = read(params)?;
                self.item_completed(&item, params, parent, now);
            }
            "item/agentMessage/delta" | "item/plan/delta" => {
                let words: Words = read(params)?;
                self.scribe.words(&words.item_id.as_str().into(), 0, Voice::Text, &words.delta);
            }
            "item/reasoning/summaryTextDelta" => {
                let words: Words = read(params)?;
                let id = words.item_id.as_str().into();
                self.scribe.words(&id, words.summary_index, Voice::Thinking, &words.delta);
            }
            "item/reasoning/textDelta" => {
                let words: Words = read(params)?;
                let key = RAW_THOUGHTS_FROM + words.content_index;
                let id = words.item_id.as_str().into();
                self.scribe.words(&id, key, Voice::Thinking, &words.delta);
            }
            "item/commandExecution/outputDelta" => {
                let words: Words = read(params)?;
                self.command_printed(&words, now);
            }
            "item/fileChange/patchUpdated" => {
                let patch: PatchUpdated = read(params)?;
                self.watch
                    .changes
                    .insert(items::call_id(&patch.item_id), patches::diffs(&patch.changes));
            }
            "serverRequest/resolved" => self.request_resolved(params, now),
            "account/rateLimits/updated" => self.rate_limits(&read(params)?),
            "mcpServer/startupStatus/updated" => self.tool_server(params),
            "warning" | "guardianWarning" => self.warn("warning", params.get("message")?),
            "configWarning" => self.warn("warning", params.get("summary")?),
            known if PASSED_OVER.contains(&known) => {}
            known if known.starts_with("thread/realtime/") => {}
            known if known.starts_with("windows") => {}
            _ => return None,
        }
        Some(())
    }

    fn item_started(
        &mut self,
        item: &Item,
        params: &Value,
        parent: Option<ToolCallId>,
        now: Timestamp,
    ) {
        self.finish_writing(params, now);
        match item {
            Item::AgentMessage { id, .. } | Item::Plan { id, .. } | Item::Reasoning { id, .. } => {
                let id = MessageId::from(id.as_str());
                if parent.is_some() {
                    self.scribe.belongs_to(&id, parent);
                }
                self.watch.writing.insert(thread_of(params), id);
            }
            Item::CommandExecution { id, .. } => {
                self.watch.commands.insert(id.clone());
                self.tool_started(item, parent, now);
            }
            Item::FileChange { id, changes, .. } => {
                let diffs = patches::diffs(changes);
                self.watch.changes.insert(items::call_id(id), diffs);
                self.tool_started(item, parent, now);
            }
            Item::CollabAgentToolCall { id, receiver_thread_ids, .. } => {
                self.adopt(id, receiver_thread_ids);
                self.tool_started(item, parent, now);
            }
            Item::SubAgentActivity { id, agent_thread_id } => {
                self.adopt(id, std::slice::from_ref(agent_thread_id));
            }
            Item::McpToolCall { .. } | Item::DynamicToolCall { .. } => {
                self.tool_started(item, parent, now);
            }
            // Told when they are done: until then they say nothing.
            Item::WebSearch { .. }
            | Item::ImageView { .. }
            | Item::ImageGeneration { .. }
            | Item::UserMessage { .. }
            | Item::EnteredReviewMode { .. }
            | Item::ExitedReviewMode { .. }
            | Item::ContextCompaction {}
            | Item::Other => {}
        }
    }

    fn item_completed(
        &mut self,
        item: &Item,
        params: &Value,
        parent: Option<ToolCallId>,
        now: Timestamp,
    ) {
        match item {
            Item::AgentMessage { id, text, .. } | Item::Plan { id, text, .. } => {
                let id = MessageId::from(id.as_str());
                self.scribe.whole_words(&id, 0, Voice::Text, text);
                self.finish(&id, parent, params, now);
            }
            Item::Reasoning { id, summary, content, .. } => {
                let id = MessageId::from(id.as_str());
                for (key, text) in (0..).zip(summary) {
                    self.scribe.whole_words(&id, key, Voice::Thinking, text);
                }
                for (key, text) in (RAW_THOUGHTS_FROM..).zip(content) {
                    self.scribe.whole_words(&id, key, Voice::Thinking, text);
                }
                self.finish(&id, parent, params, now);
            }
            Item::UserMessage { client_id, .. } => {
                let is_ours = client_id.as_ref().is_some_and(|id| self.watch.sent.contains(id));
                if let Some(client) = client_id.as_ref().filter(|_| is_ours) {
                    self.message_shown(client, now);
                }
                if !is_ours
                    && parent.is_none()
                    && let Some(message) = items::message(item, now)
                {
                    let drawings = items::drawings(item);
                    self.scribe.retell(vec![Piece::Message(message, drawings)], now);
                }
            }
            Item::CollabAgentToolCall { id, receiver_thread_ids, .. } => {
                self.adopt(id, receiver_thread_ids);
                self.tool_completed(item, parent, now);
            }
            Item::SubAgentActivity { id, agent_thread_id } => {
                self.adopt(id, std::slice::from_ref(agent_thread_id));
            }
            Item::EnteredReviewMode { review } => {
                self.scribe.notice("review", format!("Codex is reviewing: {review}"));
            }
            Item::ExitedReviewMode { review } => self.scribe.notice("review", review.clone()),
            Item::ContextCompaction {} => {
                self.scribe
                    .notice("compaction", "Codex compacted the conversation to free up context");
            }
            Item::CommandExecution { .. }
            | Item::FileChange { .. }
            | Item::McpToolCall { .. }
            | Item::DynamicToolCall { .. }
            | Item::WebSearch { .. }
            | Item::ImageView { .. }
            | Item::ImageGeneration { .. } => self.tool_completed(item, parent, now),
            Item::Other => {}
        }
    }

    fn finish(
        &mut self,
        id: &MessageId,
        parent: Option<ToolCallId>,
        params: &Value,
        now: Timestamp,
    ) {
        if parent.is_some() {
            self.scribe.belongs_to(id, parent);
        }
        self.scribe.finish_message(id, now);
        self.watch.writing.remove(&thread_of(params));
    }

    /// A message that was cut off is as long as it came.
    fn finish_writing(&mut self, params: &Value, now: Timestamp) {
        if let Some(id) = self.watch.writing.remove(&thread_of(params)) {
            self.scribe.finish_message(&id, now);
        }
    }

    fn tool_of(&self, item: &Item, parent: Option<ToolCallId>) -> Option<ToolCall> {
        let call = items::tool_call(item, &self.setup.workspace)?;
        Some(ToolCall { parent, ..call })
    }

    fn tool_started(&mut self, item: &Item, parent: Option<ToolCallId>, now: Timestamp) {
        if let Some(call) = self.tool_of(item, parent) {
            self.scribe.tool(call, now);
        }
    }

    fn tool_completed(&mut self, item: &Item, parent: Option<ToolCallId>, now: Timestamp) {
        let Some(call) = self.tool_of(item, parent) else { return };
        self.watch.commands.remove(call.id.as_str());
        self.watch.outputs.remove(&call.id);
        let told = self.watch.changes.remove(&call.id);
        for Drawing { what, media_type, base64 } in items::drawings(item) {
            self.scribe.picture(&what, (&media_type, &base64), call.parent.clone(), now);
        }
        if !self.scribe.has_open_tool(&call.id) {
            // One of a run that is over was closed with it.
            if self.turn.is_some() {
                self.scribe.tool(call, now);
            }
            return;
        }
        let Content::Open(detail) = call.detail else { return };
        let diffs = if told.as_ref() == Some(&detail.diffs) { vec![] } else { detail.diffs };
        // What was said at the beginning still holds.
        let news = ToolDetail { output: detail.output, diffs, ..ToolDetail::default() };
        let update = ToolUpdate { id: call.id, status: call.status, detail: Content::Open(news) };
        self.scribe.tool_update(update, now);
    }

    fn command_printed(&mut self, words: &Words, now: Timestamp) {
        let id = items::call_id(&words.item_id);
        let outputs = &mut self.watch.outputs;
        if !outputs.contains_key(&id) && outputs.len() >= OUTPUTS_MAX {
            return;
        }
        let output = outputs.entry(id.clone()).or_default();
        if output.len() + words.delta.len() <= OUTPUT_BYTES_MAX {
            output.push_str(&words.delta);
            self.scribe.tool_output(&id, output, now);
        }
    }

    /// Threads that a call began are its subagents.
    fn adopt(&mut self, call: &str, threads: &[String]) {
        for thread in threads.iter().filter(|thread| **thread != self.thread) {
            if self.watch.children.len() < CHILDREN_MAX {
                let call = items::call_id(call);
                self.watch.children.entry(thread.clone()).or_insert(call);
            }
        }
    }
}

fn thread_of(params: &Value) -> String {
    params.get("threadId").and_then(Value::as_str).unwrap_or_default().to_owned()
}
