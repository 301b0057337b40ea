//! What a connection knows about the session it shows: only what its frames and answers need.
//!
//! **Invariant**: at the same event, every connection that saw a run from its start has the same
//! values for shared frames.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use domain::content::{ToolCall, ToolUpdate, Usage};
use domain::session::config::AgentConfig;
use domain::session::prompts::{self, Prompt};
use domain::session::status::{self, Meta};
use domain::session::transcript::{self, ContextUse};
use domain::session::{Event, Recorded, controls, runs};
use domain::{AgentType, PromptId, RequestId, RunId, Sequence, SessionId, Timestamp, ToolCallId};
use serde_json::{Value, json};

use super::messages;
use super::queue::Queue;
use super::sessions::path_of;
use crate::visitor::Followed;

/// Tool calls of a run that are remembered; more go on under no name.
const TOOLS_MAX: usize = 256;
/// Bytes of a run's messages that its end repeats. Of more, the newest.
const RUN_BYTES_MAX: usize = 1 << 20;

/// What is known of the session.
#[derive(Debug)]
pub(super) struct View {
    pub(super) session: SessionId,
    pub(super) meta: Meta,
    pub(super) title: Option<String>,
    pub(super) config: Option<AgentConfig>,
    /// The domain bounds them.
    pub(super) prompts: BTreeMap<PromptId, Prompt>,
    pub(super) queue: Queue,
    pub(super) run: Option<Run>,
    pub(super) last_ended: Option<RunId>,
    pub(super) context: Option<ContextUse>,
    pub(super) tools: Tools,
    /// Messages of people and of the agent, and results of tools.
    pub(super) messages: u64,
    /// Requests to stop the run that goes on. The domain bounds them.
    stops: BTreeSet<RequestId>,
    /// The last event that was shown, and when it was.
    pub(super) shown: Sequence,
    pub(super) at: Timestamp,
}

/// The run that goes on.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// Whether it was seen from its start.
    pub(super) is_whole: bool,
    said: VecDeque<Bytes>,
    bytes: usize,
}

/// Tool calls of the run that goes on.
#[derive(Debug, Default)]
pub(super) struct Tools(BTreeMap<ToolCallId, Tool>);

/// A tool call.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) arguments: Value,
    /// The frame with what it printed last; shared with whoever sends it.
    pub(super) printed: Option<Bytes>,
    /// Whether everything about it was seen.
    pub(super) is_whole: bool,
    /// Whether it was told as a message of its own.
    pub(super) is_told_alone: bool,
}

impl View {
    /// Nothing is known yet.
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            meta: Meta::of_agent(AgentType::from("unknown")),
            title: None,
            config: None,
            prompts: BTreeMap::new(),
            queue: Queue::empty(),
            run: None,
            last_ended: None,
            context: None,
            tools: Tools::default(),
            messages: 0,
            stops: BTreeSet::new(),
            shown: Sequence(0),
            at: Timestamp(0),
        }
    }

    /// What is open when a connection joins, with what is known of tools at work.
    pub(super) fn of(followed: &Followed, tools: Tools) -> Self {
        let glance = &followed.glance;
        let status = &glance.card.status;
        let mut view = Self::new(followed.session.clone());
        view.meta = status.meta.clone();
        view.title.clone_from(&status.title);
        view.config.clone_from(&glance.card.config);
        view.prompts = glance.card.prompts.iter().map(|it| (it.id.clone(), it.clone())).collect();
        view.queue = Queue::of(glance);
        view.run = glance.run.as_ref().map(|(run, _)| Run::new(run.clone(), false));
        view.context = glance.context;
        view.tools = tools;
        view.messages = glance.card.messages + glance.card.results;
        view.shown = followed.head;
        view.at = status.last_seen_at;
        view
    }

    /// The model, as the agent names it.
    pub(super) fn model(&self) -> &str {
        self.config.as_ref().map_or("unknown", |config| config.model.as_str())
    }

    /// How hard the agent thinks, in pi's words.
    pub(super) fn effort(&self) -> &str {
        self.config.as_ref().and_then(|config| config.effort.as_deref()).unwrap_or("off")
    }

    /// What people call the session, if anybody named it.
    pub(super) fn name(&self) -> Option<&str> {
        self.title.as_deref().filter(|title| !title.is_empty())
    }

    /// Where the session's record is, as far as a client can tell.
    pub(super) fn path(&self) -> String {
        path_of(&self.session, self.config.as_ref())
    }

    /// Whether the agent works, or is about to.
    pub(super) fn is_streaming(&self) -> bool {
        self.queue.is_at_work()
    }

    /// Whether a person wants the run to stop, as far as this connection saw it.
    pub(super) fn is_stopping(&self) -> bool {
        !self.stops.is_empty()
    }

    /// A tool call as it stands in a message.
    pub(super) fn call(&self, id: &ToolCallId) -> Value {
        match self.tools.get(id) {
            Some(tool) => messages::tool_call(id, &tool.name, &tool.arguments),
            None => messages::tool_call(id, "tool", &json!({})),
        }
    }

    /// Takes in an event, after its frames were made. The queue takes it in for itself.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        self.shown = recorded.sequence;
        self.at = recorded.at;
        match &recorded.event {
            Event::Prompt(prompts::Event::Asked(prompt)) => {
                self.prompts.insert(prompt.id.clone(), prompt.clone());
            }
            Event::Prompt(prompts::Event::Reopened { prompt, .. }) => {
                self.prompts.insert(prompt.id.clone(), (**prompt).clone());
            }
            Event::Prompt(prompts::Event::Settled { prompt, .. }) => {
                self.prompts.remove(prompt);
            }
            Event::Run(runs::Event::Started { run, .. }) => {
                self.run = Some(Run::new(run.clone(), true));
                self.tools = Tools::default();
                self.stops.clear();
            }
            Event::Run(runs::Event::Ended { run, .. }) => {
                self.run = None;
                self.last_ended = Some(run.clone());
                self.tools = Tools::default();
                self.stops.clear();
            }
            Event::Config(config) => self.config = Some(config.clone()),
            Event::Status(status::Event::Up { meta, .. }) => {
                self.meta = (**meta).clone();
            }
            Event::Status(status::Event::Renamed(title)) => self.title = Some(title.clone()),
            Event::Transcript(event) => {
                let counts = event.counts();
                self.messages += counts.messages + counts.results;
                if let transcript::Event::Context(context) = event {
                    self.context = Some(*context);
                }
            }
            Event::Control(event) => note_stop(&mut self.stops, event),
            Event::Prompt(prompts::Event::Confirmed(_))
            | Event::Status(
                status::Event::Down { .. }
                | status::Event::Closed { .. }
                | status::Event::Changed { .. }
                | status::Event::Archived(_),
            )
            | Event::Delivery(_)
            | Event::Queue(_) => {}
        }
    }
}

/// Keeps account of who wants a run to stop, for as long as nobody said that it cannot be.
pub(super) fn note_stop(stops: &mut BTreeSet<RequestId>, event: &controls::Event) {
    match event {
        controls::Event::Requested { request, control, .. } => {
            if control.kind() == controls::Kind::Interrupt {
                stops.insert(request.clone());
            }
        }
        controls::Event::Settled { request, failure: Some(_), .. } => {
            stops.remove(request);
        }
        controls::Event::Settled { failure: None, .. } => {}
    }
}

impl Run {
    fn new(id: RunId, is_whole: bool) -> Self {
        Self { id, is_whole, said: VecDeque::new(), bytes: 0 }
    }

    /// A message of this run, for its end.
    pub(super) fn keep(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.said.push_back(message);
        while self.bytes > RUN_BYTES_MAX {
            let Some(oldest) = self.said.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// The run took this; its last message of the agent is the one to say so.
    pub(super) fn account(&mut self, last: &mut Bytes, usage: &Usage) {
        let accounted = messages::with_usage(last, usage);
        let kept = self.said.iter_mut().rev().find(|kept| kept.as_ptr() == last.as_ptr());
        if let Some(kept) = kept {
            *kept = accounted.clone();
        }
        *last = accounted;
    }

    /// The messages that were kept.
    pub(super) fn said(&self) -> impl Iterator<Item = &Bytes> {
        self.said.iter()
    }
}

impl Tools {
    pub(super) fn get(&self, id: &ToolCallId) -> Option<&Tool> {
        self.0.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &ToolCallId) -> Option<&mut Tool> {
        self.0.get_mut(id)
    }

    /// A call begins.
    pub(super) fn begin(&mut self, call: &ToolCall, is_whole: bool, is_told_alone: bool) {
        if self.0.len() < TOOLS_MAX {
            let tool = Tool {
                name: call.tool.clone(),
                arguments: messages::arguments(&call.detail),
                printed: None,
                is_whole,
                is_told_alone,
            };
            self.0.insert(call.id.clone(), tool);
        }
    }

    /// What a page of the past says of tools that may still be at work.
    pub(super) fn learn(&mut self, event: &Event) {
        match event {
            Event::Transcript(transcript::Event::ToolCall(call)) => self.begin(call, false, false),
            Event::Transcript(transcript::Event::ToolUpdate(update)) => self.on_update(update),
            Event::Run(_) => self.0.clear(),
            Event::Transcript(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }

    fn on_update(&mut self, update: &ToolUpdate) {
        let Some(tool) = self.0.get_mut(&update.id) else { return };
        if let Some(detail) = update.detail.open().filter(|detail| detail.output.is_some()) {
            let result = messages::result(update.status, detail, None);
            tool.printed = Some(super::tools::progress(&update.id, tool, &result));
        }
    }
}
