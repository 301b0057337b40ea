//! `farhelm attach` and `farhelm run`: a session in this terminal, to read and to type.
//!
//! The agent runs under the proxy, so that this terminal and other devices see the same session.
//! Leaving does not end it.
//!
//! **Invariant**: a typed line is sent once, even if the relay disconnects meanwhile.

mod typed;

use std::collections::VecDeque;
use std::process::ExitCode;

use client::{Event, Happening, Heard, Remote, control};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use self::typed::Typed;
use super::end::End;
use super::launch::launched;
use super::{new_id, remote, send};
use crate::arguments::{Attach, Run};
use crate::connect::NativeDial;
use crate::discovery::Finder;
use crate::problem::{Context as _, Problem};
use crate::stop::Stop;
use crate::view::View;
use crate::{output, sessions};

/// Commands whose success shows nowhere else.
const SETTINGS: [&str; 3] = ["agent_set_model", "agent_set_permission_mode", "agent_set_effort"];
/// Lines that may wait to be sent. At the bound typing waits.
const LINES_WAITING_MAX: usize = 256;
/// Events before the end that are shown at first.
const SHOWN_FIRST: u64 = 200;

/// Joins a session.
pub(super) async fn attach(attach: Attach) -> Result<ExitCode, Problem> {
    let finder = Finder::new(&attach.reach)?;
    let session = sessions::find_to_act(&finder, &attach.session).await?;
    converse(finder, &session.id, session.last_sequence).await
}

/// Starts an agent in this folder and joins it.
pub(super) async fn run(run: Run) -> Result<ExitCode, Problem> {
    let workspace = match &run.workspace {
        Some(folder) => std::path::absolute(folder),
        None => std::env::current_dir(),
    };
    let workspace = workspace.context("could not determine the working folder")?;
    let request = new_id("launch")?;
    let mut frame = json!({ "type": "launch_session", "protocol_version": 1,
        "request_id": request, "agent_type": run.agent, "workspace_path": workspace });
    for (name, value) in [("model_id", &run.model), ("permission_mode", &run.mode)] {
        if let Some(value) = value {
            frame[name] = json!(value);
        }
    }
    if let Some(machine) = &run.machine {
        frame["machine_label"] = json!(machine);
    }
    if !run.arguments.is_empty() {
        frame["arguments"] = json!(run.arguments);
    }
    let finder = Finder::new(&run.reach)?;
    output::aside(format_args!("starting {} in {} …", run.agent, workspace.display()));
    let told = launched(&finder, &request, &frame).await?;
    let session = told["session_id"].as_str().unwrap_or_default().to_owned();
    converse(finder, &session, 0).await
}

/// `last_sequence` is the last event of the session so far.
async fn converse(finder: Finder, session: &str, last_sequence: u64) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let mut remote = remote(finder)?;
    let shown = last_sequence.saturating_sub(SHOWN_FIRST);
    remote.machine().follow(session, shown);
    output::aside("Type /help for the commands. Ctrl-D leaves; the session continues.");
    let view = View::answering(session, output::is_terminal());
    let mut desk = Desk {
        remote,
        session: session.to_owned(),
        view,
        questions: vec![],
        is_running: false,
        end: End { is_closed: false, last_sequence, shown },
        said: vec![],
        is_connected: false,
        orders: VecDeque::new(),
    };
    let mut lines = typed_lines()?;
    loop {
        let goes_on = tokio::select! {
            heard = desk.remote.next() => desk.on_heard(heard)?,
            line = lines.recv() => match line {
                Some(line) => desk.on_line(&line)?,
                None => false,
            },
            () = stop.asked() => desk.on_stop()?,
        };
        if !goes_on {
            output::raw(&desk.view.end_line())?;
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// What is typed, line by line, until the end. On a thread of its own, which nobody waits for: it
/// may be reading when everything else is over.
pub(super) fn typed_lines() -> Result<mpsc::Receiver<String>, Problem> {
    let (typed, lines) = mpsc::channel(LINES_WAITING_MAX);
    let read = move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("typed".to_owned()).spawn(read);
    thread.context("could not read the keyboard input")?;
    Ok(lines)
}

/// A question and the ids of its choices.
struct Question {
    prompt: String,
    choices: Vec<String>,
}

struct Desk {
    remote: Remote<NativeDial>,
    session: String,
    view: View,
    /// Oldest first; the first is the one that numbers answer.
    questions: Vec<Question>,
    is_running: bool,
    end: End,
    /// Messages of ours, which need no echo.
    said: Vec<String>,
    is_connected: bool,
    /// What was asked for while there was no connection.
    orders: VecDeque<Value>,
}

impl Desk {
    /// Whether to go on.
    fn on_heard(&mut self, heard: Heard) -> Result<bool, Problem> {
        match heard {
            Heard::Happening(Happening::Event(event)) if event.session == self.session => {
                self.on_event(&event)
            }
            Heard::Happening(Happening::Delta(delta)) if delta["session_id"] == *self.session => {
                output::raw(&self.view.on_delta(&delta))?;
                Ok(true)
            }
            Heard::Happening(Happening::Anew { session, messages, last_sequence })
                if session == self.session =>
            {
                self.end.skip_to(last_sequence);
                for message in &messages {
                    output::raw(&self.view.on_message(message))?;
                }
                Ok(true)
            }
            Heard::Happening(Happening::Answer(frame)) => {
                show_answer(&frame);
                Ok(true)
            }
            Heard::Happening(Happening::Connected(_)) => {
                self.is_connected = true;
                for order in std::mem::take(&mut self.orders) {
                    self.remote.say(&order);
                }
                Ok(true)
            }
            Heard::Happening(_) => Ok(true),
            Heard::Lost { words, failures } => {
                self.is_connected = false;
                if failures <= 1 {
                    output::aside(format_args!("cannot reach the relay ({words}); reconnecting"));
                }
                Ok(true)
            }
            Heard::Refused(words) => Err(Problem::new(words)),
        }
    }

    fn on_event(&mut self, event: &Event) -> Result<bool, Problem> {
        let frame = &event.frame;
        self.end.show(frame);
        match event.kind.as_str() {
            "run_started" => self.is_running = true,
            "run_ended" => self.is_running = false,
            "permission_prompt" => self.ask(frame),
            "permission_prompt_resolved" | "permission_prompt_expired" => {
                let over = frame["prompt_id"].as_str().unwrap_or_default();
                self.questions.retain(|question| question.prompt != over);
            }
            "message_event" if self.is_ours(&frame["message"]["message_id"]) => return Ok(true),
            _ => {}
        }
        output::raw(&self.view.on_event(event))?;
        Ok(!self.end.has_come())
    }

    fn is_ours(&mut self, id: &Value) -> bool {
        let place = self.said.iter().position(|said| id == said.as_str());
        place.map(|place| self.said.remove(place)).is_some()
    }

    fn ask(&mut self, frame: &Value) {
        let choices = frame["choices"].as_array().into_iter().flatten();
        let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let prompt = id(&frame["prompt_id"]);
        if self.questions.iter().all(|known| known.prompt != prompt) {
            let choices = choices.map(|choice| id(&choice["choice_id"])).collect();
            self.questions.push(Question { prompt, choices });
        }
    }

    fn on_line(&mut self, line: &str) -> Result<bool, Problem> {
        let choices = self.questions.first().map_or(0, |question| question.choices.len());
        match typed::read(line, choices) {
            Typed::Nothing => {}
            Typed::Say(text) => self.say(&text, None)?,
            Typed::Steer(text) => self.say(&text, Some("steer"))?,
            Typed::Answer(place, words) => self.answer(place, words)?,
            Typed::Stop => self.order("agent_interrupt", &json!({}))?,
            Typed::Model(model) => self.order("agent_set_model", &json!({ "model_id": model }))?,
            Typed::Mode(mode) => {
                self.order("agent_set_permission_mode", &json!({ "permission_mode": mode }))?;
            }
            Typed::Effort(effort) => {
                self.order("agent_set_effort", &json!({ "effort": effort }))?;
            }
            Typed::GoOn => self.order("queue_resume", &json!({}))?,
            Typed::Close => self.order("close_session", &json!({}))?,
            Typed::Leave => return Ok(false),
            Typed::Help => output::aside(typed::HELP),
            Typed::Unclear(words) => output::aside(words),
        }
        Ok(true)
    }

    /// Ctrl-C stops the run; without one it leaves.
    fn on_stop(&mut self) -> Result<bool, Problem> {
        if !self.is_running {
            return Ok(false);
        }
        output::aside("stopping the run; press Ctrl-C again to leave");
        self.is_running = false;
        self.order("agent_interrupt", &json!({}))?;
        Ok(true)
    }

    fn say(&mut self, text: &str, mode: Option<&str>) -> Result<(), Problem> {
        let id = new_id("msg")?;
        self.said.push(id.clone());
        self.remote.send_in_mode(&self.session, &id, text, mode, &send::now());
        Ok(())
    }

    fn answer(&mut self, place: usize, words: Option<String>) -> Result<(), Problem> {
        let Some(question) = self.questions.first() else { return Ok(()) };
        let mut more =
            json!({ "prompt_id": question.prompt, "choice_id": question.choices[place] });
        if let Some(words) = words {
            more["message"] = json!(words);
        }
        self.order("permission_response", &more)
    }

    fn order(&mut self, kind: &str, more: &Value) -> Result<(), Problem> {
        let empty = Map::new();
        let more = more.as_object().unwrap_or(&empty);
        let frame = control(kind, &self.session, &new_id("req")?, more);
        if self.is_connected {
            self.remote.say(&frame);
        } else if self.orders.len() < LINES_WAITING_MAX {
            self.orders.push_back(frame);
        } else {
            output::aside("too many commands are waiting for the relay; this one was dropped");
        }
        Ok(())
    }
}

/// Only what would not be seen otherwise is worth a word.
fn show_answer(frame: &Value) {
    let text = |value: &Value| output::tame(value.as_str().unwrap_or_default());
    match frame["type"].as_str() {
        Some("agent_control_result") if frame["result"] != "ok" => {
            let (message, code) = (&frame["error"]["message"], &frame["error_code"]);
            output::aside(format_args!("{} ({})", text(message), text(code)));
        }
        Some("agent_control_result") if SETTINGS.contains(&text(&frame["command"]).as_str()) => {
            output::aside("- done");
        }
        Some("connection_error") => {
            output::aside(format_args!("{} ({})", text(&frame["message"]), text(&frame["code"])));
        }
        Some("message_failed") => {
            let error = &frame["error"];
            output::aside(format_args!("{} ({})", text(&error["message"]), text(&error["code"])));
        }
        _ => {}
    }
}
