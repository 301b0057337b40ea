//! Converts what the agent reports during its work to calls of the scribe.
//!
//! A message ends where a tool call begins, where another message begins, and with the run, so that
//! the ledger keeps the order of events.
//!
//! Not here: delivery and settings (`acp`), replayed conversations (`replay`).

use domain::content::{PlanEntry, PlanStatus};
use domain::passing::Voice;
use domain::{MessageId, Timestamp, ToolCallId};

use super::frames::{Chunk, PlanLine, Tool, UsageUpdate};
use super::quirks::Quirks;
use super::tools::{News, Tools};
use crate::Scribe;

/// Unknown messages that are told per program. What is unknown once is unknown often.
const STRANGE_TOLD_MAX: u32 = 5;
/// How long words outside of a run wait for more of them.
const LOOSE_MS: u64 = 1_000;

/// A message in the making.
#[derive(Debug)]
struct Making {
    id: MessageId,
    /// The agent's own names of it.
    names: Vec<String>,
    voice: Voice,
    key: u32,
}

/// What is seen of one program.
#[derive(Debug, Default)]
pub(super) struct Observation {
    making: Option<Making>,
    /// The agent's name of the last message, and how often it was used.
    last_name: Option<(String, u32)>,
    count: u32,
    tools: Tools,
    strange: u32,
    /// The call whose todo list was told last.
    planned: Option<String>,
    /// When words that belong to no run are taken to be whole.
    loose_until: Option<Timestamp>,
    /// Millionths of a US dollar since the conversation began.
    cost_micro_usd: Option<u64>,
    cost_before_micro_usd: Option<u64>,
}

impl Observation {
    /// A run begins.
    pub(super) fn begin_run(&mut self, scribe: &mut Scribe, now: Timestamp) {
        self.finish_message(scribe, now);
        self.count = 0;
        self.tools.clear();
        self.cost_before_micro_usd = self.cost_micro_usd;
    }

    /// The run is over.
    pub(super) fn end_run(&mut self) {
        self.making = None;
        self.loose_until = None;
        self.tools.clear();
    }

    /// What the run cost, where the agent tells it.
    pub(super) fn cost_micro_usd(&self) -> Option<u64> {
        let spent = self.cost_micro_usd?.checked_sub(self.cost_before_micro_usd.unwrap_or(0))?;
        (spent > 0).then_some(spent)
    }

    /// Words of the agent. Those that nobody said are the caller's.
    pub(super) fn words(
        &mut self,
        chunk: &Chunk,
        voice: Voice,
        quirks: &Quirks,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        if let Some(picture) = chunk.content.picture() {
            self.finish_message(scribe, now);
            let parent = chunk.meta.claude_code.parent_tool_use_id.as_deref();
            return scribe.picture("picture", picture, parent.map(ToolCallId::from), now);
        }
        let Some(words) = chunk.content.words() else { return };
        let name = chunk.message_id.as_deref();
        let goes_on = self.making.as_mut().is_some_and(|making| making.goes_on(name, voice));
        if !goes_on {
            self.finish_message(scribe, now);
            let id = self.new_id(name, scribe, now);
            let parent = chunk.meta.claude_code.parent_tool_use_id.as_deref();
            if let Some(parent) = parent {
                scribe.belongs_to(&id, Some(ToolCallId::from(parent)));
            }
            let names = name.map(str::to_owned).into_iter().collect();
            self.making = Some(Making { id, names, voice, key: 0 });
        }
        let Some(making) = &mut self.making else { return };
        let is_same_voice = making.voice == voice;
        if !is_same_voice {
            making.voice = voice;
            making.key += 1;
        }
        let is_next_thought = goes_on && is_same_voice && voice == Voice::Thinking;
        if is_next_thought && quirks.thoughts_are_whole {
            scribe.words(&making.id, making.key, voice, "\n\n");
        }
        scribe.words(&making.id, making.key, voice, &words);
        if scribe.run().is_none() {
            self.loose_until = Some(now.plus_ms(LOOSE_MS));
        }
    }

    /// A tool call begins or goes on.
    pub(super) fn tool(
        &mut self,
        frame: &Tool,
        quirks: &Quirks,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        if let Some(entries) = self.todo_list(frame, quirks) {
            scribe.plan(entries);
        }
        match self.tools.hear(frame, quirks) {
            Some(News::Begun(call)) => {
                self.finish_message(scribe, now);
                scribe.tool(call, now);
            }
            Some(News::Printed(id, whole)) => {
                let was_told = scribe.tool_output(&id, &whole, now);
                self.tools.told(&id, was_told);
            }
            Some(News::Changed(update)) => scribe.tool_update(update, now),
            None => {}
        }
        for (what, picture) in self.tools.new_pictures(frame) {
            scribe.picture(&what, picture, None, now);
        }
    }

    /// A terminal printed more: all that it printed so far.
    pub(super) fn printed(
        &mut self,
        terminal: &str,
        whole: &str,
        scribe: &mut Scribe,
        now: Timestamp,
    ) {
        for id in self.tools.printed(terminal, whole) {
            let was_told = scribe.tool_output(&id, whole, now);
            self.tools.told(&id, was_told);
        }
    }

    /// The todo list that a tool is given, once for each call.
    fn todo_list(&mut self, frame: &Tool, quirks: &Quirks) -> Option<Vec<PlanEntry>> {
        let is_planning = quirks
            .plan_tool
            .is_some_and(|tool| self.tools.name(&frame.id).is_some_and(|name| name == tool));
        let todos = frame.raw_input.as_ref()?.get("todos").filter(|_| is_planning)?;
        if self.planned.as_deref() == Some(&frame.id) {
            return None;
        }
        self.planned = Some(frame.id.clone());
        Some(plan(super::frames::read(todos.clone())))
    }

    /// What the agent calls the tool of a call.
    pub(super) fn tool_name(&self, id: &str) -> Option<String> {
        self.tools.name(id).map(str::to_owned)
    }

    /// A person said no to a tool call. Not every agent tells so itself.
    pub(super) fn deny(&mut self, id: &ToolCallId, scribe: &mut Scribe, now: Timestamp) {
        self.tools.deny(id);
        let detail = domain::Content::Open(domain::content::ToolDetail::default());
        let status = domain::content::ToolStatus::Cancelled;
        scribe.tool_update(domain::content::ToolUpdate { id: id.clone(), status, detail }, now);
    }

    pub(super) fn any_tool_at_work(&self) -> bool {
        self.tools.any_at_work()
    }

    pub(super) fn usage(&mut self, usage: &UsageUpdate, scribe: &mut Scribe) {
        if let (Some(used), Some(size)) = (usage.used, usage.size.filter(|size| *size > 0)) {
            scribe.context(used, size);
        }
        let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency == "USD") else { return };
        self.cost_micro_usd = micro(cost.amount);
    }

    /// Something that nobody here knows.
    pub(super) fn strange(&mut self, what: &str, scribe: &mut Scribe) {
        self.strange += 1;
        if self.strange <= STRANGE_TOLD_MAX {
            scribe.notice("unknown_message", what);
        }
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.loose_until
    }

    pub(super) fn on_deadline(&mut self, scribe: &mut Scribe, now: Timestamp) {
        if self.loose_until.take_if(|at| *at <= now).is_some() {
            self.finish_message(scribe, now);
        }
    }

    fn finish_message(&mut self, scribe: &mut Scribe, now: Timestamp) {
        self.loose_until = None;
        if let Some(making) = self.making.take() {
            scribe.finish_message(&making.id, now);
        }
    }

    /// The agent's own name where it gives one; the same name again is another message.
    fn new_id(&mut self, name: Option<&str>, scribe: &Scribe, now: Timestamp) -> MessageId {
        self.count += 1;
        let Some(name) = name else {
            return match scribe.run() {
                Some(run) => format!("{run}-{}", self.count).into(),
                None => format!("words-{}-{}", now.0, self.count).into(),
            };
        };
        let times = match self.last_name.take() {
            Some((last, times)) if last == name => times + 1,
            _ => 1,
        };
        self.last_name = Some((name.to_owned(), times));
        if times == 1 { name.into() } else { format!("{name}-{times}").into() }
    }
}

impl Making {
    /// Whether words under this name belong to it. Thinking and the answer after it are one
    /// message, although some agents name them apart.
    fn goes_on(&mut self, name: Option<&str>, voice: Voice) -> bool {
        let Some(name) = name else { return self.names.is_empty() };
        if self.names.iter().any(|known| known == name) {
            return true;
        }
        let is_answer = self.voice == Voice::Thinking && voice == Voice::Text;
        if is_answer && self.names.len() == 1 {
            self.names.push(name.to_owned());
            return true;
        }
        false
    }
}

/// The agent's todo list.
pub(super) fn plan(lines: Vec<PlanLine>) -> Vec<PlanEntry> {
    let entry = |line: PlanLine| PlanEntry {
        text: line.content,
        status: match line.status.as_str() {
            "in_progress" => PlanStatus::InProgress,
            "completed" => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    };
    lines.into_iter().map(entry).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, not negative, and a float becomes the nearest integer there is"
)]
fn micro(dollars: f64) -> Option<u64> {
    (dollars.is_finite() && dollars >= 0.0).then(|| (dollars * 1e6).round() as u64)
}
