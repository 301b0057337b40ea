//! The scribe: converts what a driver observes to reports for all clients.
//!
//! It tracks what is open (a run, unfinished messages, tool calls, prompts), so that a driver only
//! reports what happened, and nothing stays open after a run ended, however it ended.
//!
//! Invariant: a tool call is reported before its updates and closed once. A prompt is reported once
//! and removed once. A message is recorded once, with its parts in the places that its deltas
//! named, and text before a tool call is recorded before that call.
//!
//! Not here: the meaning of an agent's frames (the drivers).

mod complaints;
mod messages;
mod pictures;
mod retelling;
mod tools;

use std::collections::BTreeSet;

use domain::content::{Failure, PlanEntry, Usage};
use domain::passing::{Delta, Voice};
use domain::session::Report;
use domain::session::config::AgentConfig;
use domain::session::delivery::Send;
use domain::session::prompts::{AnswerDetail, Prompt};
use domain::session::runs::{Cut, Outcome};
use domain::session::status::{Activity, CloseReason, Health};
use domain::session::transcript::{ContextUse, Notice};
use domain::{Content, MessageId, PromptId, RequestId, RunId, Sequence, Timestamp, ToolCallId};

use crate::driver::open_answer;
use crate::{Kept, Output, Picture, run_id};
use complaints::Complaints;
use messages::Messages;
pub use pictures::Drawing;
use pictures::{Pictures, Taken};
pub use retelling::Piece;
use retelling::Retelling;
pub use tools::Outlives;
use tools::Tools;

/// Bytes of a notice. What is longer is cut: a notice is for a glance.
const NOTICE_BYTES_MAX: usize = 8 * 1024;

/// What a session has open, and what is to be told.
#[derive(Debug)]
pub struct Scribe {
    outputs: Vec<Output>,
    run: Option<RunId>,
    messages: Messages,
    pictures: Pictures,
    /// An earlier conversation that is being told.
    retelling: Option<Retelling>,
    has_retold: bool,
    outlives: Outlives,
    tools: Tools,
    prompts: BTreeSet<PromptId>,
    health: Health,
    activity: Option<(String, String)>,
    context: Option<ContextUse>,
    complaints: Complaints,
}

impl Default for Scribe {
    fn default() -> Self {
        Self {
            outputs: vec![],
            run: None,
            messages: Messages::default(),
            pictures: Pictures::default(),
            retelling: None,
            has_retold: false,
            outlives: Outlives::Nothing,
            tools: Tools::default(),
            prompts: BTreeSet::new(),
            health: Health::Healthy,
            activity: None,
            context: None,
            complaints: Complaints::default(),
        }
    }
}

impl Scribe {
    /// Everything that was said since the last time, in order.
    pub fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Says something as it is.
    pub fn push(&mut self, output: Output) {
        if output == Output::Ready {
            self.complaints.forgive();
        }
        self.outputs.push(output);
    }

    fn report(&mut self, report: Report) {
        self.outputs.push(Output::Report(report));
    }

    /// The run that goes on.
    pub fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// A run begins. Nothing is said when it goes on already.
    pub fn begin_run(&mut self, run: RunId, cause: Option<MessageId>, now: Timestamp) {
        if self.run.as_ref() == Some(&run) {
            return;
        }
        self.end_run(Outcome::Completed, None, now);
        self.run = Some(run.clone());
        self.report(Report::RunStarted { run, cause });
        self.activity("generating", "Generating", now);
    }

    /// The run ends: messages in the making are kept as far as they came, tool calls that did not
    /// end are cancelled, prompts are gone. Nothing is said when there is none.
    pub fn end_run(&mut self, outcome: Outcome, usage: Option<Usage>, now: Timestamp) {
        let Some(run) = self.run.clone() else { return };
        self.close_all(now);
        self.run = None;
        self.report(Report::RunEnded { run, outcome, usage });
        self.activity("idle", "Idle", now);
    }

    /// What goes on when a run ends, from now on.
    pub fn outlives(&mut self, outlives: Outlives) {
        self.outlives = outlives;
    }

    /// Closes messages, tool calls and prompts, but for what outlives the run.
    pub fn close_all(&mut self, now: Timestamp) {
        for (id, parent) in self.messages.open() {
            let is_behind = parent.is_some_and(|parent| self.tools.is_behind(&parent));
            if !(is_behind && self.outlives == Outlives::Background) {
                self.finish_message(&id, now);
            }
        }
        for update in self.tools.close_all(self.outlives) {
            self.report(Report::ToolUpdate(update));
        }
        for prompt in std::mem::take(&mut self.prompts) {
            self.report(Report::PromptGone(prompt));
        }
    }

    /// A send reached the agent.
    pub fn delivered(&mut self, id: &MessageId, attempt: Sequence, run: Option<RunId>) {
        let (id, attempt) = (id.clone(), Some(attempt));
        self.report(Report::SendDelivered { id, attempt, run });
    }

    /// The agent's record has a send, but its program ended before it said so. Nothing else is
    /// known of the run: it is told as cut off. `agent` is its name, for a person.
    pub fn delivered_and_cut_off(&mut self, id: &MessageId, attempt: Sequence, agent: &str) {
        if let Some(run) = self.run.clone() {
            return self.delivered(id, attempt, Some(run));
        }
        let run = run_id(id, attempt);
        self.delivered(id, attempt, Some(run.clone()));
        self.report(Report::RunStarted { run: run.clone(), cause: Some(id.clone()) });
        let why = format!("{agent} stopped before it answered");
        let outcome = Outcome::Cut(Cut { why, lasted_ms: None });
        self.report(Report::RunEnded { run, outcome, usage: None });
    }

    /// A send certainly did not reach the agent.
    pub fn not_delivered(&mut self, id: &MessageId, attempt: Sequence, failure: Failure) {
        let (id, attempt) = (id.clone(), Some(attempt));
        self.report(Report::SendFailed { id, attempt, failure });
    }

    /// The words of a send, or that it cannot be read here.
    pub fn words_of(&mut self, send: &Send, attempt: Sequence) -> Option<String> {
        match &send.text {
            Content::Open(text) => Some(text.clone()),
            Content::Sealed(_) => {
                let words = "This machine cannot decrypt the message";
                self.not_delivered(&send.id, attempt, Failure::new("send_rejected", words));
                None
            }
        }
    }

    /// An order was carried out, or not.
    pub fn answered(&mut self, request: &RequestId, failure: Option<Failure>) {
        self.report(Report::ControlResult { request: request.clone(), failure });
    }

    /// The agent waits for a person.
    pub fn ask(&mut self, prompt: Prompt, now: Timestamp) {
        if self.prompts.insert(prompt.id.clone()) {
            self.report(Report::Asked(prompt));
            self.activity("waiting_for_user", "Waiting for an answer", now);
        }
    }

    /// What an answer carries besides its choice. `None`: it cannot be read here, and the answer
    /// is refused; the prompt stays open.
    pub fn open_answer(
        &mut self,
        request: &RequestId,
        detail: Option<&Content<AnswerDetail>>,
    ) -> Option<AnswerDetail> {
        match open_answer(detail) {
            Ok(detail) => Some(detail),
            Err(failure) => {
                self.answered(request, Some(failure));
                None
            }
        }
    }

    /// Whether a prompt waits.
    pub fn is_asking(&self, prompt: &PromptId) -> bool {
        self.prompts.contains(prompt)
    }

    /// Whether any prompt waits.
    pub fn is_asking_any(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// A prompt was answered through us: it is closed without a word of its own.
    pub fn prompt_answered(&mut self, prompt: &PromptId, now: Timestamp) {
        self.prompts.remove(prompt);
        if self.prompts.is_empty() && self.run.is_some() {
            self.activity("generating", "Generating", now);
        }
    }

    /// The agent no longer waits.
    pub fn prompt_gone(&mut self, prompt: &PromptId, now: Timestamp) {
        if self.prompts.contains(prompt) {
            self.report(Report::PromptGone(prompt.clone()));
            self.prompt_answered(prompt, now);
        }
    }

    /// More words of a message in the making. `key` names the part within the message as the
    /// agent does; parts stand in the order in which their keys first came.
    pub fn words(&mut self, message: &MessageId, key: u32, voice: Voice, words: &str) {
        let delta = self.messages.words(message, key, voice, words);
        self.pass(message, delta);
    }

    /// All words of a part, as the agent has them in the end: what was not told yet is told.
    pub fn whole_words(&mut self, message: &MessageId, key: u32, voice: Voice, whole: &str) {
        let delta = self.messages.whole_words(message, key, voice, whole);
        self.pass(message, delta);
    }

    fn pass(&mut self, message: &MessageId, delta: Option<Delta>) {
        let Some(delta) = delta else { return };
        let parent = self.messages.parent(message).cloned();
        self.outputs.push(Output::Passing(delta, parent));
    }

    /// Whether a message is in the making.
    pub fn is_writing(&self, message: &MessageId) -> bool {
        self.messages.is_open(message)
    }

    /// The subagent's tool call to which a message in the making belongs.
    pub fn belongs_to(&mut self, message: &MessageId, parent: Option<ToolCallId>) {
        self.messages.belongs_to(message, parent);
    }

    /// The place of a tool call within a message in the making.
    pub fn place_tool(&mut self, message: &MessageId, key: u32, tool: ToolCallId) {
        self.messages.place_tool(message, key, tool);
    }

    /// A message is finished. One without content is not recorded.
    pub fn finish_message(&mut self, message: &MessageId, now: Timestamp) {
        if let Some(message) = self.messages.finish(message, self.run.as_ref(), now) {
            self.report(Report::Message { message, has_own_id: true, echo: None });
        }
    }

    /// Every message in the making is finished.
    pub fn finish_messages(&mut self, now: Timestamp) {
        for (id, _) in self.messages.open() {
            self.finish_message(&id, now);
        }
    }

    /// A whole message from elsewhere: an earlier conversation, or words typed at the machine.
    pub fn message(&mut self, message: domain::content::Message) {
        self.report(Report::Message { message, has_own_id: true, echo: None });
    }

    /// The agent made a picture, or a tool did. It becomes a message when the relay has it.
    pub fn picture(
        &mut self,
        what: &str,
        (media_type, base64): (&str, &str),
        parent: Option<ToolCallId>,
        now: Timestamp,
    ) {
        let of = (self.run.clone(), parent);
        match self.pictures.take(what, (media_type, base64), of, now) {
            Taken::Keep(picture) => self.push(Output::Keep(picture)),
            Taken::Tell(message) => self.message(message),
        }
    }

    /// An earlier conversation, in its order. Its pictures are waited for, though not for long;
    /// [`Scribe::take_retold`] says when all of it is told.
    pub fn retell(&mut self, pieces: Vec<Piece>, now: Timestamp) {
        self.retelling = Some(Retelling::new(pieces, now));
        self.go_on_retelling();
    }

    /// Whether an earlier conversation has come to its end since this was last asked.
    pub fn take_retold(&mut self) -> bool {
        std::mem::take(&mut self.has_retold)
    }

    fn go_on_retelling(&mut self) {
        let Some(retelling) = &mut self.retelling else { return };
        let outputs = retelling.go_on();
        if retelling.is_over() {
            self.retelling = None;
            self.has_retold = true;
        }
        self.outputs.extend(outputs);
    }

    /// A picture that was on its way when the proxy died.
    pub fn held(&mut self, picture: Picture) {
        if self.pictures.held(&picture) {
            self.push(Output::Keep(picture));
        }
    }

    /// What became of a picture.
    pub fn kept(&mut self, picture: &MessageId, outcome: Kept) {
        if let Some(retelling) = &mut self.retelling
            && retelling.awaits(picture)
        {
            retelling.kept(outcome);
            self.go_on_retelling();
        } else if let Some(message) = self.pictures.kept(picture, outcome) {
            self.message(message);
        }
    }

    /// A tool call begins, or more is known of it. The text before it is recorded first.
    pub fn tool(&mut self, mut call: domain::content::ToolCall, now: Timestamp) {
        call.run = call.run.or_else(|| self.run.clone());
        let (kind, label) = (tools::activity(call.kind), tools::label(&call));
        let is_at_work = tools::is_open(call.status);
        match self.tools.begin(call) {
            tools::Told::New(call) => {
                if let Some(message) = self.messages.before_tool(&call.id, self.run.as_ref(), now) {
                    self.message(message);
                }
                self.report(Report::ToolCall(call));
            }
            tools::Told::Update(update) => self.report(Report::ToolUpdate(update)),
            tools::Told::Nothing => {}
        }
        if is_at_work && self.prompts.is_empty() {
            self.activity(kind, &label, now);
        }
    }

    /// A tool call goes on or ends. One that was never told, or is over, is passed over.
    pub fn tool_update(&mut self, update: domain::content::ToolUpdate, now: Timestamp) {
        let is_over = !tools::is_open(update.status);
        if let Some(update) = self.tools.update(update) {
            self.report(Report::ToolUpdate(update));
            if is_over && !self.tools.any_open() && self.prompts.is_empty() && self.run.is_some() {
                self.activity("generating", "Generating", now);
            }
        }
    }

    /// What a tool printed so far, whole. Told now and then: each telling is recorded. Whether it
    /// was told this time.
    pub fn tool_output(&mut self, tool: &ToolCallId, whole: &str, now: Timestamp) -> bool {
        let Some(update) = self.tools.output(tool, whole, now) else { return false };
        self.report(Report::ToolUpdate(update));
        true
    }

    /// Whether a tool call is open.
    pub fn has_open_tool(&self, tool: &ToolCallId) -> bool {
        self.tools.is_open(tool)
    }

    /// The agent's todo list, whole.
    pub fn plan(&mut self, entries: Vec<PlanEntry>) {
        self.report(Report::Plan(Content::Open(entries)));
    }

    /// Something to know.
    pub fn notice(&mut self, kind: &str, text: impl Into<String>) {
        let mut text = text.into();
        let end =
            (0..=NOTICE_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        self.report(Report::Notice(Notice { kind: kind.to_owned(), text }));
    }

    /// How full the context is. The same again is not told again.
    pub fn context(&mut self, used_tokens: u64, window_tokens: u64) {
        let context = ContextUse { used_tokens, window_tokens };
        if self.context.replace(context) != Some(context) {
            self.report(Report::Context(context));
        }
    }

    /// The configuration as it is now.
    pub fn config(&mut self, config: AgentConfig) {
        self.report(Report::Config(config));
    }

    /// What the agent does now. The same again is not told again.
    pub fn activity(&mut self, kind: &str, label: &str, now: Timestamp) {
        let activity = (kind.to_owned(), label.to_owned());
        if self.activity.as_ref() == Some(&activity) {
            return;
        }
        self.activity = Some(activity);
        self.tell_status(None, now);
    }

    /// How well the session is. The same again is not told again.
    pub fn health(&mut self, health: Health, reason: Option<String>, now: Timestamp) {
        if health == Health::Healthy {
            // What it complained of before it was well is not why it ends later.
            self.complaints.forgive();
        }
        if self.health == health && reason.is_none() {
            return;
        }
        self.health = health;
        self.tell_status(reason, now);
    }

    /// Health and activity as they are, said anew: a session that begins tells both.
    pub fn tell_status(&mut self, reason: Option<String>, now: Timestamp) {
        let (kind, label) =
            self.activity.clone().unwrap_or_else(|| ("idle".to_owned(), "Idle".to_owned()));
        let activity = Some(Activity { kind, label: Some(label), updated_at: now });
        self.report(Report::Status { health: self.health, activity, reason });
    }

    /// The session is over on this machine.
    pub fn closed(&mut self, reason: CloseReason, request: Option<RequestId>) {
        self.report(Report::Closed { reason, request });
    }

    /// A line of the program's standard error.
    pub fn complaint(&mut self, line: &str, now: Timestamp) {
        self.complaints.hear(line, now);
    }

    /// The last lines of the program's standard error, for a reason.
    pub fn last_complaints(&self) -> Option<String> {
        self.complaints.last()
    }

    /// Tells what is due: complaints that waited for more.
    pub fn on_deadline(&mut self, now: Timestamp) {
        if let Some(text) = self.complaints.due(now) {
            self.notice("stderr", text);
        }
        if self.retelling.as_mut().is_some_and(|retelling| retelling.give_up_waiting(now)) {
            self.go_on_retelling();
        }
    }

    /// When [`Scribe::on_deadline`] has something to say.
    pub fn deadline(&self) -> Option<Timestamp> {
        let retelling = self.retelling.as_ref().map(Retelling::deadline);
        [self.complaints.deadline(), retelling].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
