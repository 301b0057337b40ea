//! The demo agent: scripted, with no model and no key, so that everything can be tried.
//!
//! | message | what it does |
//! |---|---|
//! | `say: TEXT` | streams TEXT word by word, 20 ms apart |
//! | `slow: N` | streams N words, 100 ms apart |
//! | `ask: COMMAND` | asks for permission (yes / no / always, 30 s, default no; in mode `yolo` it does not ask), then says what came of it |
//! | `form: MATTER` | asks three questions about it at once: one of several, some of several, and words; then says the answers |
//! | `tool: NAME` | shows a tool call with input, progress and output |
//! | `think: TEXT` | thinks, then says TEXT |
//! | `fail: CODE` | fails the delivery with that code |
//! | `crash` | closes the session, as if its target had gone |
//! | `degrade`, `recover` | change its health |
//! | anything else | answers `echo: TEXT` |
//!
//! Every message it takes is a line of its own record first: the record is what it received, no
//! more and no less. A run that is cut by a crash is not finished later. It can be steered: a
//! message that comes during a run is answered within that run.
//!
//! Not here: where the record lies (`proxy`).

mod form;
mod record;
mod run;
mod script;

use std::collections::BTreeMap;

use domain::content::Failure;
use domain::session::Report;
use domain::session::config::AgentConfig;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::prompts::AnswerDetail;
use domain::session::runs::Outcome;
use domain::session::status::{Activity, CloseReason, Health};
use domain::{ChoiceId, Content, ModelId, PromptId, RequestId, Sequence, Timestamp};

use crate::driver::open_answer;
use crate::{Driver, File, Input, Lookup, Order, Output, run_id};
use record::Record;
pub use record::{Line, REMEMBERED_MAX};
use run::{Given, Run, Turn};
pub use script::{SLOW_WORDS_MAX, WORD_PAUSE_MS};

/// The agent's name in `agent_type`.
pub const AGENT: &str = "demo";
/// The models that can be chosen. The first is the one it starts with.
pub const MODELS: [&str; 2] = ["demo-small", "demo-large"];
/// The permission modes: it asks, or it does not. The first is the one it starts with.
pub const MODES: [&str; 2] = ["ask", "yolo"];
/// How long a permission prompt waits for a person.
pub const PROMPT_TIMEOUT_MS: u64 = 30_000;

/// One demo session.
#[derive(Debug)]
pub struct Demo {
    record: Record,
    model: ModelId,
    mode: &'static str,
    health: Health,
    run: Option<Run>,
    closed: bool,
}

impl Demo {
    /// A session with what its record held when the proxy started. A model it does not have is
    /// not chosen.
    pub fn new(record: &str, model: Option<&ModelId>) -> Self {
        let chosen = model.filter(|model| MODELS.contains(&model.as_str()));
        Self {
            record: Record::read(record),
            model: chosen.cloned().unwrap_or_else(|| MODELS[0].into()),
            mode: MODES[0],
            health: Health::Healthy,
            run: None,
            closed: false,
        }
    }

    fn deliver(
        &mut self,
        send: &Send,
        attempt: Sequence,
        files: &[File],
        now: Timestamp,
    ) -> Vec<Output> {
        let id = send.id.clone();
        let attempt_told = Some(attempt);
        let fail = |failure| {
            vec![Output::Report(Report::SendFailed {
                id: id.clone(),
                attempt: attempt_told,
                failure,
            })]
        };
        let Content::Open(text) = &send.text else {
            return fail(Failure::new(
                "send_rejected",
                "The demo agent cannot decrypt the message",
            ));
        };
        let turn = script::turn(text, files);
        if let Turn::Fail(code) = turn {
            return fail(Failure::new(
                &code,
                "The message asked the demo agent to fail this delivery",
            ));
        }
        let line = self.record.take(&send.id, attempt, text);
        let run = match &self.run {
            Some(run) => run.id.clone(),
            None => run_id(&send.id, attempt),
        };
        let delivered =
            Report::SendDelivered { id, attempt: Some(attempt), run: Some(run.clone()) };
        let mut outputs = vec![Output::Remember(line)];
        if let Some(steered) = &mut self.run {
            // What it said before it was steered comes before the words that steer it.
            outputs.extend(steered.end_message(now));
            outputs.push(Output::Report(delivered));
            steered.steer(turn);
        } else {
            outputs.push(Output::Report(delivered));
            self.run = Some(Run::new(run, turn, now));
        }
        outputs.extend(self.go_on(now));
        outputs
    }

    /// Plays what is due, and ends the run when nothing is left to play.
    fn go_on(&mut self, now: Timestamp) -> Vec<Output> {
        let Some(run) = &mut self.run else { return vec![] };
        let mut outputs = vec![];
        while let Some(played) = run.play_next(self.mode == MODES[0], now) {
            match played {
                run::Played::Outputs(more) => outputs.extend(more),
                run::Played::Activity(kind, label) => {
                    outputs.push(status(self.health, kind, label, now));
                }
                run::Played::Health(health) => {
                    self.health = health;
                    let reason = match health {
                        Health::Degraded => Some("asked to degrade".to_owned()),
                        Health::Healthy
                        | Health::Disconnected
                        | Health::ScrapingFailed
                        | Health::AgentUiChanged => None,
                    };
                    let activity = Some(activity("generating", "Generating", now));
                    outputs.push(Output::Report(Report::Status { health, activity, reason }));
                }
                run::Played::Crash => {
                    self.run = None;
                    self.closed = true;
                    let reason = CloseReason::TargetClosed;
                    outputs.push(Output::Report(Report::Closed { reason, request: None }));
                    return outputs;
                }
            }
        }
        if run.is_over() {
            outputs.extend(self.end_run(Outcome::Completed, now));
        }
        outputs
    }

    fn end_run(&mut self, outcome: Outcome, now: Timestamp) -> Vec<Output> {
        let Some(mut run) = self.run.take() else { return vec![] };
        let mut outputs = run.wind_up(now);
        let usage = Some(run.usage());
        outputs.push(Output::Report(Report::RunEnded { run: run.id, outcome, usage }));
        outputs.push(status(self.health, "idle", "Idle", now));
        outputs
    }

    fn answer(
        &mut self,
        request: &RequestId,
        prompt: &PromptId,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
        now: Timestamp,
    ) -> Vec<Output> {
        let edited = detail.updated_input.as_deref().and_then(edited_command);
        let answers = detail.answers.as_deref();
        let given = Given { edited: edited.as_deref(), answers };
        let taken = match &mut self.run {
            Some(run) => run.answer(prompt, choice.map(ChoiceId::as_str), &given, now),
            None => false,
        };
        if !taken {
            let failure = Failure::new("prompt_not_found", "The question is no longer open");
            return vec![done(request, Some(failure))];
        }
        let mut outputs = vec![done(request, None)];
        if detail.stop {
            outputs.extend(self.end_run(Outcome::Interrupted, now));
        } else {
            outputs.extend(self.go_on(now));
        }
        outputs
    }

    fn control(&mut self, request: &RequestId, control: &Control, now: Timestamp) -> Vec<Output> {
        match control {
            Control::Interrupt { run: meant } => {
                let active = self.run.as_ref().map(|run| &run.id);
                let is_meant = meant.is_none() || meant.as_ref() == active;
                if active.is_none() || !is_meant {
                    let words = "Nothing to stop: this run is not active";
                    return vec![done(request, Some(Failure::new("agent_not_active", words)))];
                }
                let mut outputs = vec![done(request, None)];
                outputs.extend(self.end_run(Outcome::Interrupted, now));
                outputs
            }
            Control::SetModel(model) if MODELS.contains(&model.as_str()) => {
                self.model = model.clone();
                vec![done(request, None), Output::Report(Report::Config(self.config(now)))]
            }
            Control::SetModel(model) => {
                let words = format!("The demo agent has no model {model}");
                vec![done(request, Some(Failure::new("model_not_available", words)))]
            }
            Control::SetMode(asked) => {
                let Some(mode) = MODES.iter().find(|mode| *mode == asked) else {
                    let words = format!("The demo agent has no mode {asked}");
                    return vec![done(request, Some(Failure::new("control_not_supported", words)))];
                };
                self.mode = mode;
                vec![done(request, None), Output::Report(Report::Config(self.config(now)))]
            }
            Control::SetEffort(_) => {
                let words = "The demo agent has no such setting";
                vec![done(request, Some(Failure::new("control_not_supported", words)))]
            }
            Control::ReadConfig => {
                vec![Output::Report(Report::Config(self.config(now))), done(request, None)]
            }
            Control::Close => {
                let mut outputs = self.end_run(Outcome::Interrupted, now);
                self.closed = true;
                let (reason, request) = (CloseReason::UserRequested, Some(request.clone()));
                outputs.push(Output::Report(Report::Closed { reason, request }));
                outputs
            }
            // Answers come as orders of their own.
            Control::Answer(_) => vec![],
        }
    }

    fn config(&self, now: Timestamp) -> AgentConfig {
        let can = |ability: &str, able| (ability.to_owned(), able);
        AgentConfig {
            model: self.model.clone(),
            permission_mode: Some(self.mode.to_owned()),
            file_access_scope: Some("none".to_owned()),
            available_models: Some(MODELS.map(ModelId::from).to_vec()),
            available_modes: Some(MODES.map(str::to_owned).to_vec()),
            effort: None,
            available_efforts: None,
            session_file: None,
            commands: None,
            capabilities: BTreeMap::from([
                can("interrupt", true),
                can("set_model", true),
                can("permission_mode_change", true),
                can("permission_dialogs", true),
                can("steer", true),
            ]),
            read_at: now,
        }
    }
}

impl Driver for Demo {
    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        let config = Output::Report(Report::Config(self.config(now)));
        vec![config, status(self.health, "idle", "Idle", now), Output::Ready]
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        if self.closed {
            return vec![];
        }
        match order {
            Order::Deliver { send, attempt, files } => self.deliver(send, *attempt, files, now),
            Order::LookUp { id, attempt } => {
                let has = self.record.has(id, *attempt);
                let found = if has { Lookup::Found } else { Lookup::Absent };
                vec![Output::LookedUp { id: id.clone(), attempt: *attempt, found }]
            }
            Order::Answer { request, prompt, choice, detail } => {
                match open_answer(detail.as_ref()) {
                    Ok(detail) => self.answer(request, prompt, choice.as_ref(), &detail, now),
                    Err(failure) => vec![done(request, Some(failure))],
                }
            }
            Order::Control { request, control } => self.control(request, control, now),
            // There is no program to end.
            Order::Rest => vec![],
        }
    }

    fn on_input(&mut self, _input: Input, _now: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        self.go_on(now)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.run.as_ref()?.next_at()
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

fn done(request: &RequestId, failure: Option<Failure>) -> Output {
    Output::Report(Report::ControlResult { request: request.clone(), failure })
}

/// The command of an input that a person wrote in place of the agent's.
fn edited_command(input: &str) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    input["command"].as_str().map(str::to_owned)
}

fn activity(kind: &str, label: &str, now: Timestamp) -> Activity {
    Activity { kind: kind.to_owned(), label: Some(label.to_owned()), updated_at: now }
}

fn status(health: Health, kind: &str, label: &str, now: Timestamp) -> Output {
    let activity = Some(activity(kind, label, now));
    Output::Report(Report::Status { health, activity, reason: None })
}

#[cfg(test)]
mod tests;
