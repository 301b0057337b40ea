//! What a connection knows about the session it shows: only what its frames need.
//!
//! **Invariant**: at the same event, every connection's view has the same values for shared frames
//! (model, mode, folder), no matter when it joined.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::content::{Author, ToolUpdate};
use domain::session::config::AgentConfig;
use domain::session::delivery;
use domain::session::prompts::{self, AnswerDetail, Prompt, Settled};
use domain::session::status;
use domain::session::transcript::{self, ContextUse};
use domain::session::{Event, Glance, Recorded, queue, runs};
use domain::{Content, MessageId, PromptId, SessionId, Timestamp, ToolCallId};
use serde_json::{Value, json};

use super::prompts::{is_refusal, original_input};

/// Tool calls whose names are remembered; older ones go on without signs of life.
const TOOLS_MAX: usize = 64;
/// Refusals that the result of a run lists.
const DENIALS_MAX: usize = 64;

/// The word for an agent, and for a session, that does nothing.
const IDLE: &str = "idle";

/// What is known of the session.
#[derive(Debug)]
pub(super) struct View {
    pub(super) session: SessionId,
    pub(super) agent: String,
    pub(super) folder: String,
    pub(super) config: Option<AgentConfig>,
    pub(super) prompts: BTreeMap<PromptId, Prompt>,
    /// Sends that wait for their turn, in order. The domain bounds them.
    pub(super) waiting: Vec<MessageId>,
    pub(super) run: Option<Run>,
    /// Whether its machine reports runs. A plain version 1 machine does not; what its agent is
    /// doing stands for them.
    pub(super) reports_runs: bool,
    /// Whether its agent is doing something, as its machine says.
    pub(super) is_busy: bool,
    /// Whether the `init` of the run that is about to begin was sent.
    pub(super) has_init: bool,
    pub(super) context: Option<ContextUse>,
    pub(super) tools: BTreeMap<ToolCallId, Tool>,
    /// What a person said when they denied a call.
    pub(super) refusals: BTreeMap<ToolCallId, String>,
}

/// The run that goes on, as far as it was seen.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) began_at: Option<Timestamp>,
    pub(super) messages: u64,
    pub(super) denials: Vec<Value>,
    /// The frame with the agent's last words; shared with whoever sends it.
    pub(super) last_words: Option<Bytes>,
}

/// A tool call that goes on.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) began_at: Timestamp,
    pub(super) parent: Option<ToolCallId>,
}

impl View {
    /// Nothing is known yet.
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            agent: String::new(),
            folder: String::new(),
            config: None,
            prompts: BTreeMap::new(),
            waiting: vec![],
            run: None,
            reports_runs: true,
            is_busy: false,
            has_init: false,
            context: None,
            tools: BTreeMap::new(),
            refusals: BTreeMap::new(),
        }
    }

    /// What is open when a connection joins.
    pub(super) fn of(session: SessionId, glance: Glance) -> Self {
        let mut view = Self::new(session);
        let status = &glance.card.status;
        view.named(&status.meta);
        view.reports_runs = status.link().is_some();
        view.is_busy = status.activity.as_ref().is_some_and(is_busy);
        view.config = glance.card.config;
        view.prompts = glance.card.prompts.into_iter().map(|it| (it.id.clone(), it)).collect();
        view.waiting = glance.waiting.into_iter().map(|send| send.id).collect();
        let began_at = glance.run_began_at;
        view.run = glance.run.map(|_| Run { began_at, ..Run::default() });
        view.context = glance.context;
        view
    }

    /// The model, as the agent names it.
    pub(super) fn model(&self) -> &str {
        self.config.as_ref().map_or("unknown", |config| config.model.as_str())
    }

    /// The permission mode, as the agent names it.
    pub(super) fn mode(&self) -> Option<&str> {
        self.config.as_ref()?.permission_mode.as_deref()
    }

    /// The word of this dialect for what the session is doing.
    pub(super) fn state(&self) -> &'static str {
        if self.prompts.is_empty() { self.work() } else { "requires_action" }
    }

    /// The same, apart from questions.
    pub(super) fn work(&self) -> &'static str {
        work(self.run.is_some(), self.reports_runs, self.is_busy)
    }

    /// What it is after this change of its status.
    pub(super) fn work_after(&self, event: &status::Event) -> &'static str {
        let (reports_runs, is_busy) = self.busy_after(event);
        work(self.run.is_some(), reports_runs, is_busy)
    }

    /// Whether its machine reports runs, and whether its agent is doing something, after this.
    fn busy_after(&self, event: &status::Event) -> (bool, bool) {
        let told =
            |activity: &Option<status::Activity>| activity.as_ref().map_or(self.is_busy, is_busy);
        match event {
            status::Event::Up { via, activity, .. } => (via.link.is_some(), told(activity)),
            status::Event::Changed { activity, .. } => (self.reports_runs, told(activity)),
            status::Event::Down { .. } | status::Event::Closed { .. } => (self.reports_runs, false),
            status::Event::Renamed(_) | status::Event::Archived(_) => {
                (self.reports_runs, self.is_busy)
            }
        }
    }

    /// Whether an `init` belongs before this event: it begins a run, or is the message that will.
    pub(super) fn wants_init(&self, event: &Event) -> bool {
        match event {
            Event::Run(runs::Event::Started { .. }) => !self.has_init,
            Event::Transcript(transcript::Event::Message(message)) => {
                message.author == Author::User && self.run.is_none() && !self.has_init
            }
            Event::Run(runs::Event::Ended { .. })
            | Event::Transcript(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => false,
        }
    }

    /// What a person said about a call that they denied, where the call itself gave nothing.
    pub(super) fn refusal(&self, update: &ToolUpdate) -> Option<&str> {
        let is_silent = update.detail.open().is_none_or(|detail| detail.output.is_none());
        self.refusals.get(&update.id).filter(|_| is_silent).map(String::as_str)
    }

    /// Takes in an event, after its frames were made.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Delivery(event) => self.on_delivery(event),
            Event::Queue(queue::Event::Moved { id, to }) => {
                self.waiting.retain(|waiting| waiting != id);
                self.waiting.insert((*to).min(self.waiting.len()), id.clone());
            }
            Event::Prompt(event) => self.on_prompt(event),
            Event::Transcript(transcript::Event::Message(message)) => {
                // What answers without a run ends what the `init` announced.
                self.has_init = self.run.is_none() && message.author == Author::User;
            }
            Event::Run(runs::Event::Started { .. }) => {
                self.has_init = false;
                self.run = Some(Run { began_at: Some(recorded.at), ..Run::default() });
            }
            Event::Run(runs::Event::Ended { .. }) => {
                self.run = None;
                self.tools.clear();
                self.refusals.clear();
            }
            Event::Config(config) => self.config = Some(config.clone()),
            Event::Status(event) => {
                (self.reports_runs, self.is_busy) = self.busy_after(event);
                if let status::Event::Up { meta, .. } = event {
                    self.named(meta);
                }
            }
            Event::Transcript(transcript::Event::ToolCall(call)) => {
                if self.tools.len() < TOOLS_MAX {
                    let (name, parent) = (call.tool.clone(), call.parent.clone());
                    let tool = Tool { name, began_at: recorded.at, parent };
                    self.tools.insert(call.id.clone(), tool);
                }
            }
            Event::Transcript(transcript::Event::Context(context)) => self.context = Some(*context),
            Event::Queue(_) | Event::Control(_) | Event::Transcript(_) => {}
        }
    }

    fn named(&mut self, meta: &status::Meta) {
        self.agent = meta.agent.to_string();
        self.folder = meta.workspace_path.clone().unwrap_or_default();
    }

    fn on_delivery(&mut self, event: &delivery::Event) {
        match event {
            delivery::Event::Accepted(send) => self.waiting.push(send.id.clone()),
            delivery::Event::HandedOver { id, .. }
            | delivery::Event::Delivered { id, .. }
            | delivery::Event::Failed { id, .. } => self.waiting.retain(|waiting| waiting != id),
        }
    }

    fn on_prompt(&mut self, event: &prompts::Event) {
        match event {
            prompts::Event::Asked(prompt) => {
                self.prompts.insert(prompt.id.clone(), prompt.clone());
            }
            prompts::Event::Reopened { prompt, .. } => {
                self.prompts.insert(prompt.id.clone(), (**prompt).clone());
            }
            prompts::Event::Settled { prompt, choice, settled, detail, .. } => {
                let Some(prompt) = self.prompts.remove(prompt) else { return };
                let refused = choice.as_ref().is_some_and(|choice| is_refusal(&prompt, choice));
                if refused {
                    self.note_refusal(&prompt, detail.as_ref());
                }
                if let (Some(run), true, true) =
                    (&mut self.run, refused, *settled != Settled::Withdrawn)
                    && run.denials.len() < DENIALS_MAX
                {
                    run.denials.push(denial(&prompt));
                }
            }
            prompts::Event::Confirmed(_) => {}
        }
    }
}

impl View {
    fn note_refusal(&mut self, prompt: &Prompt, answer: Option<&Content<AnswerDetail>>) {
        let call =
            prompt.detail.as_ref().and_then(Content::open).and_then(|it| it.tool_call.as_ref());
        let words = answer.and_then(Content::open).and_then(|it| it.message.as_ref());
        if let (Some(call), Some(words)) = (call, words)
            && !words.trim().is_empty()
            && self.refusals.len() < DENIALS_MAX
        {
            self.refusals.insert(call.clone(), words.clone());
        }
    }
}

fn is_busy(activity: &status::Activity) -> bool {
    activity.kind != IDLE
}

fn work(has_run: bool, reports_runs: bool, is_busy: bool) -> &'static str {
    if has_run || (!reports_runs && is_busy) { "running" } else { IDLE }
}

fn denial(prompt: &Prompt) -> Value {
    let request = super::prompts::request(prompt);
    let request = &request["request"];
    json!({
        "tool_name": request["tool_name"], "tool_use_id": request["tool_use_id"],
        "tool_input": original_input(prompt),
    })
}
