//! Reads the program's lines and acts on them.

use domain::content::{Failure, ToolStatus};
use domain::session::runs::Outcome;
use domain::{ModelId, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::frames::{
    Applied, CanUseTool, ContextUsage, Frame, Introduction, Response, System, TurnResult,
};
use super::notes::Chosen;
use super::observation::call_is;
use super::questions::Question;
use super::transport::{self, Purpose};
use super::{Claude, Life};
use crate::Output;

/// Questions that wait at once. More are declined: an agent that needs more is looping.
const QUESTIONS_MAX: usize = 32;

impl Claude {
    pub(super) fn hear(&mut self, line: &str, now: Timestamp) {
        let frame = match serde_json::from_str(line) {
            Ok(frame) => frame,
            Err(_) if line.trim_start().starts_with('{') => Frame::Unknown,
            Err(_) => {
                self.scribe.complaint(line, now);
                return;
            }
        };
        let (watch, scribe) = (&mut self.watch, &mut self.scribe);
        match frame {
            Frame::StreamEvent { event, parent_tool_use_id } => {
                watch.event(event, parent_tool_use_id.as_deref(), scribe, now);
            }
            Frame::Assistant(frame) => watch.assistant(*frame, scribe, now),
            Frame::User(frame) => {
                watch.user(&frame, scribe, now);
                if let Some(uuid) = frame.uuid.as_deref().filter(|_| frame.is_replay) {
                    self.taken(uuid, now);
                }
            }
            Frame::CommandLifecycle { command_uuid, state } => match state.as_str() {
                "started" | "completed" => self.taken(&command_uuid, now),
                "cancelled" => self.dropped(&command_uuid),
                _ => {}
            },
            Frame::Result(result) => self.turn_over(&result, now),
            Frame::System(frame) => self.system(&frame, line, now),
            Frame::ControlRequest { request_id, request } => {
                self.requested(request_id, request, now);
            }
            Frame::ControlResponse { response } => self.answered(response, now),
            Frame::ControlCancelRequest { request_id } => self.withdrawn(&request_id, now),
            Frame::RateLimitEvent { rate_limit_info } => watch.limit(&rate_limit_info, scribe, now),
            Frame::ToolProgress { tool_use_id } => {
                if !self.questions.iter().any(|(_, q)| q.tool_call() == Some(&tool_use_id)) {
                    call_is(&tool_use_id, ToolStatus::Running, scribe, now);
                }
            }
            Frame::ConversationReset {} => watch.reset(scribe),
            Frame::AuthStatus { error: Some(words) } => scribe.notice("agent", words),
            Frame::AuthStatus { error: None }
            | Frame::KeepAlive {}
            | Frame::ToolUseSummary {}
            | Frame::PromptSuggestion {}
            | Frame::ActiveGoal {}
            | Frame::TranscriptMirror {} => {}
            Frame::Unknown => watch.unknown(line, scribe),
        }
    }

    fn system(&mut self, frame: &System, line: &str, now: Timestamp) {
        if !self.watch.system(frame, &mut self.scribe, now) {
            self.watch.unknown(line, &mut self.scribe);
        }
        if frame.subtype == "init"
            && let Some(id) = &frame.session_id
        {
            self.scribe_remember(|notes| notes.conversation(id));
        }
        let changed = |known: &mut Option<String>, told: &Option<String>| {
            let is_new = told.is_some() && known != told;
            if is_new {
                known.clone_from(told);
            }
            is_new
        };
        let has_model = changed(&mut self.settings.model, &frame.model);
        let has_mode = changed(&mut self.settings.mode, &frame.permission_mode);
        if (has_model || has_mode) && matches!(self.life, Life::Up) {
            self.tell_config(now);
        }
    }

    /// A turn is over: its run with it.
    fn turn_over(&mut self, result: &TurnResult, now: Timestamp) {
        if let Life::Starting(starting) = &mut self.life {
            starting.errors.extend(result.errors.iter().cloned());
            return;
        }
        let usage = self.watch.usage(result);
        let was_stopped = !self.interrupts.requests.is_empty() && result.is_error;
        let outcome = outcome(result, was_stopped);
        self.watch.turn_ended(&mut self.scribe, now);
        for request in std::mem::take(&mut self.interrupts.requests) {
            self.scribe.answered(&request, None);
        }
        self.interrupts.until = None;
        self.scribe.end_run(outcome, usage, now);
        self.ask_again(now);
        let request = json!({"subtype": "get_context_usage", "detail": "summary"});
        self.ask(Purpose::Context, &request, now);
    }

    /// Asks something of the program.
    pub(super) fn ask(&mut self, purpose: Purpose, request: &Value, now: Timestamp) {
        let line = self.requests.ask(purpose, request, now);
        self.scribe.push(Output::Write(line));
    }

    /// The program asks something of us.
    fn requested(&mut self, request_id: String, request: Value, now: Timestamp) {
        let subtype = request["subtype"].as_str().unwrap_or_default().to_owned();
        match subtype.as_str() {
            "can_use_tool" => {
                let Ok(asked) = serde_json::from_value::<CanUseTool>(request) else {
                    let words = "The question could not be read";
                    self.scribe.push(Output::Write(transport::refuse(&request_id, words)));
                    return;
                };
                self.question(Question::new(request_id, asked), now);
            }
            "elicitation" => {
                let server = request["mcp_server_name"].as_str().unwrap_or("an MCP server");
                let words = request["message"].as_str().unwrap_or_default();
                self.scribe.notice("agent", format!("Declined a question from {server}: {words}"));
                let line = transport::answer(&request_id, &json!({"action": "decline"}));
                self.scribe.push(Output::Write(line));
            }
            // It goes on without us; an answer would be taken for a person's.
            "request_user_dialog" => {}
            other => {
                let words = format!("Unsupported control request subtype: {other}");
                self.scribe.push(Output::Write(transport::refuse(&request_id, &words)));
            }
        }
    }

    fn question(&mut self, question: Question, now: Timestamp) {
        if self.questions.len() >= QUESTIONS_MAX {
            let words = json!({"behavior": "deny", "message": "Too many questions are open"});
            let line = transport::answer(&question.request_id, &words);
            self.scribe.push(Output::Write(line));
            return;
        }
        if let Some(call) = question.tool_call() {
            self.watch.call_asks(call, &mut self.scribe, now);
        }
        let id = question.request_id.as_str().into();
        self.scribe.ask(question.prompt(id, self.scribe.run().cloned(), now), now);
        self.questions.push((question.request_id.as_str().into(), question));
    }

    /// Subagents in the background ask beyond the end of a run, which closed their questions.
    fn ask_again(&mut self, now: Timestamp) {
        for (id, question) in &mut self.questions {
            if !self.scribe.is_asking(id) {
                *id = format!("{id}+").into();
                self.scribe.ask(question.prompt(id.clone(), None, now), now);
            }
        }
    }

    fn withdrawn(&mut self, request_id: &str, now: Timestamp) {
        let of_it = |(_, question): &(_, Question)| question.request_id == request_id;
        if let Some(at) = self.questions.iter().position(of_it) {
            let (prompt, question) = self.questions.remove(at);
            if let Some(call) = question.tool_call() {
                self.watch.call_was_answered(call);
            }
            self.scribe.prompt_gone(&prompt, now);
        }
    }

    /// The program answers us.
    fn answered(&mut self, response: Response, now: Timestamp) {
        let Some(purpose) = self.requests.answered(&response.request_id) else { return };
        let told = match response.subtype.as_str() {
            "success" => Ok(response.told),
            _ => Err(response.error.unwrap_or_else(|| "no reason given".to_owned())),
        };
        match purpose {
            Purpose::Initialize => self.introduced(told.map(read::<Introduction>), now),
            Purpose::Settings(request) => {
                let applied = told.ok().map(|told| told.get("applied").cloned());
                let applied = applied.map(|it| read::<Applied>(it.unwrap_or_default()));
                self.settings_told(applied, request, now);
            }
            Purpose::Interrupt => self.interrupted(told),
            Purpose::SetModel(request, model) => {
                self.model_set(&request, &model, told, now);
            }
            Purpose::SetMode(request, mode) => match told {
                Ok(_) => {
                    self.settings.mode = Some(mode);
                    self.tell_config(now);
                    self.scribe.answered(&request, None);
                }
                Err(words) => self.not_set(&request, "control_not_supported", words),
            },
            Purpose::SetEffort(request, effort) => match told {
                Ok(_) => {
                    self.settings.effort = Some(effort.clone());
                    let model = self.notes.chosen.model.clone();
                    self.scribe_remember(|n| n.choose(Chosen { model, effort: Some(effort) }));
                    self.tell_config(now);
                    self.scribe.answered(&request, None);
                }
                Err(words) => self.not_set(&request, "control_not_supported", words),
            },
            Purpose::Context => {
                let usage = told.map(read::<ContextUsage>).unwrap_or_default();
                if let Some(window) = usage.window.or(usage.usable) {
                    self.scribe.context(usage.used, window);
                }
            }
        }
    }

    fn model_set(
        &mut self,
        request: &domain::RequestId,
        model: &ModelId,
        told: Result<Value, String>,
        now: Timestamp,
    ) {
        match told {
            Ok(told) => {
                let name = model.as_str();
                let resolved = told["model"].as_str().map(str::to_owned);
                self.settings.model = resolved.or_else(|| Some(self.settings.resolved(name)));
                let effort = self.notes.chosen.effort.clone();
                let chosen = Chosen { model: Some(name.to_owned()), effort };
                self.scribe_remember(|notes| notes.choose(chosen));
                self.tell_config(now);
                self.scribe.answered(request, None);
            }
            Err(words) => self.not_set(request, "model_not_available", words),
        }
    }

    fn not_set(&mut self, request: &domain::RequestId, code: &str, words: String) {
        self.scribe.answered(request, Some(Failure::new(code, words)));
    }

    /// The program says that it stopped; the end of the turn follows, unless there was none.
    fn interrupted(&mut self, told: Result<Value, String>) {
        let failure = match told {
            Ok(told) => {
                let cancelled = told["cancelled"].as_array().cloned().unwrap_or_default();
                for uuid in cancelled.iter().filter_map(Value::as_str) {
                    self.dropped(uuid);
                }
                None
            }
            Err(words) => Some(Failure::new("agent_not_active", words)),
        };
        if self.scribe.run().is_none() || failure.is_some() {
            for request in std::mem::take(&mut self.interrupts.requests) {
                self.scribe.answered(&request, failure.clone());
            }
            self.interrupts.until = None;
        }
    }
}

fn outcome(result: &TurnResult, was_stopped: bool) -> Outcome {
    let reason = result.terminal_reason.as_deref().unwrap_or_default();
    if reason.starts_with("aborted") || was_stopped {
        return Outcome::Interrupted;
    }
    if !result.is_error {
        return Outcome::Completed;
    }
    let words = result.result.clone().filter(|words| !words.is_empty());
    let words = words.unwrap_or_else(|| match result.errors.as_slice() {
        [] => result.subtype.replace('_', " "),
        errors => errors.join("\n"),
    });
    if words.contains("/login") {
        return Outcome::Failed(format!("{words} (run `claude` on that machine and log in)"));
    }
    Outcome::Failed(words)
}

/// An answer; what it lacks is as if it were not told.
fn read<T: DeserializeOwned + Default>(told: Value) -> T {
    serde_json::from_value(told).unwrap_or_default()
}
