//! What a connection knows about the session it shows: only what its frames need.
//!
//! **Invariant**: at the same event, every connection's view has the same queue, run and machine,
//! no matter when it joined.

use std::collections::{BTreeMap, BTreeSet};

use domain::content::Author;
use domain::session::prompts::{self, Prompt};
use domain::session::status::{self, Status};
use domain::session::transcript::{self, ContextUse};
use domain::session::{Event, Glance, Line, Recorded, controls, delivery, runs};
use domain::{MessageId, ModelId, RunId, SessionId, ToolCallId};

/// Tool calls whose names are remembered; the end of an older one is told without a name.
const TOOLS_MAX: usize = 64;
/// Calls that came to their end which a look back remembers; of more, it looks no further.
const CALLS_OVER_MAX: usize = 1_024;
/// Sends of one run that are remembered; of more, the later ones get no end of their own.
const RUN_SENDS_MAX: usize = 256;
/// A session that nobody named.
const UNTITLED: &str = "Untitled conversation";

/// What is known of the session.
#[derive(Debug)]
pub(super) struct View {
    pub(super) session: SessionId,
    pub(super) title: String,
    pub(super) model: Option<ModelId>,
    pub(super) context: Option<ContextUse>,
    pub(super) messages: u64,
    /// What waits for the agent, and what is on its way there.
    pub(super) line: Line,
    pub(super) run: Option<Run>,
    /// Questions that wait, oldest first. The domain bounds them.
    pub(super) prompts: Vec<Prompt>,
    tools: BTreeMap<ToolCallId, String>,
}

/// The run that goes on, as far as it was seen.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// The sends that it answers; the first began it.
    pub(super) sends: Vec<MessageId>,
    /// The agent's last message in it.
    pub(super) last_message: Option<MessageId>,
    /// Whether a person wants it to stop.
    pub(super) is_stopping: bool,
}

/// What the past says of tool calls, read from its end.
#[derive(Debug, Default)]
pub(super) struct Backwards {
    over: BTreeSet<ToolCallId>,
    is_at_work: bool,
    /// Whether everything of the run that goes on was read.
    is_before: bool,
}

impl Backwards {
    /// Whether a call that was met has no end.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_at_work
    }

    /// The next events back, in their order.
    pub(super) fn see(&mut self, past: &[Recorded]) {
        for recorded in past.iter().rev() {
            if self.is_before {
                return;
            }
            match &recorded.event {
                Event::Run(_) => self.is_before = true,
                Event::Transcript(transcript::Event::ToolUpdate(update)) => {
                    if update.status.is_over() {
                        self.over.insert(update.id.clone());
                    }
                    self.is_before |= self.over.len() > CALLS_OVER_MAX;
                }
                Event::Transcript(transcript::Event::ToolCall(call)) => {
                    let is_over = call.status.is_over() || self.over.contains(&call.id);
                    self.is_at_work |= !is_over;
                }
                Event::Transcript(_)
                | Event::Delivery(_)
                | Event::Queue(_)
                | Event::Prompt(_)
                | Event::Control(_)
                | Event::Config(_)
                | Event::Status(_) => {}
            }
        }
    }
}

impl Run {
    /// What this dialect calls it: the send that began it, where one did.
    pub(super) fn name(&self) -> &str {
        self.sends.first().map_or(self.id.as_str(), MessageId::as_str)
    }

    /// Whether this dialect's word names this run, or a send that it took up.
    pub(super) fn is(&self, word: &str) -> bool {
        self.id.as_str() == word || self.sends.iter().any(|send| send.as_str() == word)
    }

    fn take_up(&mut self, send: &MessageId) {
        if self.sends.len() < RUN_SENDS_MAX && !self.sends.contains(send) {
            self.sends.push(send.clone());
        }
    }
}

impl View {
    /// What is open when a connection joins.
    pub(super) fn of(session: SessionId, glance: Glance) -> Self {
        let line = Line::of(&glance);
        let card = glance.card;
        let mut prompts = card.prompts;
        prompts.sort_by_key(|prompt| prompt.detected_at);
        Self {
            session,
            title: title(&card.status).to_owned(),
            model: card.config.map(|config| config.model),
            context: glance.context,
            messages: card.messages,
            line,
            run: glance.run.map(|(id, cause)| Run {
                id,
                sends: cause.into_iter().collect(),
                last_message: None,
                is_stopping: false,
            }),
            prompts,
            tools: BTreeMap::new(),
        }
    }

    /// What happened shortly before the join, so that what goes on can be named.
    pub(super) fn recall(&mut self, past: &[Recorded]) {
        for recorded in past.iter().rev() {
            match &recorded.event {
                Event::Transcript(transcript::Event::ToolCall(call)) => {
                    self.note_tool(&call.id, &call.tool);
                }
                Event::Transcript(transcript::Event::Message(message)) => {
                    if let Some(run) = &mut self.run
                        && message.author == Author::Assistant
                        && message.run.as_ref().is_some_and(|of| *of == run.id)
                        && run.last_message.is_none()
                    {
                        run.last_message = Some(message.id.clone());
                    }
                }
                Event::Delivery(delivery::Event::Delivered { id, run: Some(of) }) => {
                    if let Some(run) = self.run.as_mut().filter(|run| run.id == *of) {
                        run.take_up(id);
                    }
                }
                Event::Transcript(_)
                | Event::Delivery(_)
                | Event::Queue(_)
                | Event::Prompt(_)
                | Event::Run(_)
                | Event::Control(_)
                | Event::Config(_)
                | Event::Status(_) => {}
            }
        }
    }

    /// What this dialect calls the run that goes on.
    pub(super) fn run_name(&self) -> Option<&str> {
        self.run.as_ref().map(Run::name)
    }

    /// The name of a tool that was called.
    pub(super) fn tool(&self, call: &ToolCallId) -> Option<&str> {
        self.tools.get(call).map(String::as_str)
    }

    /// Whether a send is with the machine, and nobody knows yet whether with the agent.
    pub(super) fn is_handed(&self, word: &str) -> bool {
        self.line.handed().any(|send| send.as_str() == word)
    }

    /// Whether a send waits for its turn.
    pub(super) fn is_waiting(&self, word: &str) -> bool {
        self.line.waiting().any(|send| send.as_str() == word)
    }

    /// The line after this event, if it is about the line.
    pub(super) fn line_after(&self, event: &Event) -> Option<Line> {
        match event {
            Event::Delivery(_) | Event::Queue(_) => {
                let mut line = self.line.clone();
                line.apply(event);
                Some(line)
            }
            Event::Prompt(_)
            | Event::Run(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_)
            | Event::Transcript(_) => None,
        }
    }

    /// Takes in an event, after its frames were made.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        self.line.apply(&recorded.event);
        match &recorded.event {
            Event::Delivery(event) => self.on_delivery(event),
            Event::Prompt(event) => self.on_prompt(event),
            Event::Run(runs::Event::Started { run, cause }) => {
                self.run = Some(Run {
                    id: run.clone(),
                    sends: cause.iter().cloned().collect(),
                    last_message: None,
                    is_stopping: false,
                });
            }
            Event::Run(runs::Event::Ended { .. }) => {
                self.run = None;
                self.tools.clear();
            }
            Event::Control(controls::Event::Requested { control, .. }) => {
                if let (Some(run), controls::Kind::Interrupt) = (&mut self.run, control.kind()) {
                    run.is_stopping = true;
                }
            }
            Event::Queue(_) | Event::Control(controls::Event::Settled { .. }) => {}
            Event::Config(config) => self.model = Some(config.model.clone()),
            Event::Status(event) => self.on_status(event),
            Event::Transcript(event) => self.on_transcript(event),
        }
    }

    fn on_delivery(&mut self, event: &delivery::Event) {
        match event {
            delivery::Event::Accepted(_)
            | delivery::Event::HandedOver { .. }
            | delivery::Event::Failed { .. } => {}
            delivery::Event::Delivered { id, run } => {
                let active = self.run.as_mut();
                let joined = active.filter(|it| run.as_ref().is_none_or(|run| *run == it.id));
                if let Some(active) = joined {
                    active.take_up(id);
                }
            }
        }
    }

    fn on_prompt(&mut self, event: &prompts::Event) {
        match event {
            prompts::Event::Asked(prompt) => self.prompts.push(prompt.clone()),
            prompts::Event::Reopened { prompt, .. } => self.prompts.push((**prompt).clone()),
            prompts::Event::Settled { prompt, .. } => self.prompts.retain(|it| it.id != *prompt),
            prompts::Event::Confirmed(_) => {}
        }
    }

    fn on_status(&mut self, event: &status::Event) {
        match event {
            status::Event::Renamed(title) => self.title.clone_from(title),
            status::Event::Up { .. }
            | status::Event::Down { .. }
            | status::Event::Closed { .. }
            | status::Event::Changed { .. }
            | status::Event::Archived(_) => {}
        }
    }

    fn on_transcript(&mut self, event: &transcript::Event) {
        self.messages += event.counts().messages;
        match event {
            transcript::Event::Message(message) => {
                if let (Some(run), Author::Assistant, None) =
                    (&mut self.run, message.author, &message.parent)
                {
                    run.last_message = Some(message.id.clone());
                }
            }
            transcript::Event::ToolCall(call) => self.note_tool(&call.id, &call.tool),
            transcript::Event::Context(context) => self.context = Some(*context),
            transcript::Event::ToolUpdate(_)
            | transcript::Event::Plan(_)
            | transcript::Event::Notice(_)
            | transcript::Event::Echoed(_) => {}
        }
    }

    fn note_tool(&mut self, call: &ToolCallId, tool: &str) {
        if self.tools.len() < TOOLS_MAX {
            self.tools.insert(call.clone(), tool.to_owned());
        }
    }
}

/// What people call a session.
pub(super) fn title(status: &Status) -> &str {
    let meta = &status.meta;
    let names = [&status.title, &meta.display_name, &meta.window_title, &meta.workspace_name];
    let first = names.into_iter().flatten().find(|name| !name.is_empty());
    first.map_or(UNTITLED, String::as_str)
}
