//! How pi is started and controlled: its arguments, and commands with numbers that match them to
//! their responses.
//!
//! Not here: the meaning of responses (`life`, `delivery`, `orders`).

use std::collections::VecDeque;

use domain::{RequestId, RunId};
use serde_json::{Value, json};

use super::frames::Response;
use super::notes::Known;
use crate::{Output, Program, Setup};

/// The extension that asks for permission.
const GATE: &str = include_str!("gate.ts");
const GATE_FILE: &str = "pi-gate.ts";
/// Commands whose answers are awaited at once. Beyond, the oldest answer is not understood.
const ASKED_MAX: usize = 256;

/// What a command was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    State,
    Models,
    Efforts,
    Commands,
    Stats,
    /// The last entry of its record, before a message is written.
    Leaf,
    Prompt,
    SetModel(RequestId),
    SetEffort(RequestId),
    ClearQueue,
    Abort,
    /// Whether pi works on what it accepted.
    IsShown,
    /// Whether this run is over: older versions do not say so by themselves.
    IsOver(RunId),
}

impl Asked {
    fn command(&self) -> &'static str {
        match self {
            Self::State | Self::IsShown | Self::IsOver(_) => "get_state",
            Self::Models => "get_available_models",
            Self::Efforts => "get_available_thinking_levels",
            Self::Commands => "get_commands",
            Self::Stats => "get_session_stats",
            Self::Leaf => "get_entries",
            Self::Prompt => "prompt",
            Self::SetModel(_) => "set_model",
            Self::SetEffort(_) => "set_thinking_level",
            Self::ClearQueue => "clear_queue",
            Self::Abort => "abort",
        }
    }
}

/// Commands whose answers are awaited.
#[derive(Debug, Default)]
pub(super) struct Requests {
    last: u64,
    open: VecDeque<(String, Asked)>,
}

impl Requests {
    /// A command, with what else it says.
    pub(super) fn ask(&mut self, asked: Asked, mut command: Value) -> Output {
        self.last += 1;
        let id = format!("f{}", self.last);
        command["id"] = json!(id);
        command["type"] = json!(asked.command());
        self.open.push_back((id, asked));
        if self.open.len() > ASKED_MAX {
            self.open.pop_front();
        }
        Output::Write(command.to_string())
    }

    /// What an answer is to.
    pub(super) fn answered(&mut self, response: &Response) -> Option<Asked> {
        let at = self.open.iter().position(|(id, asked)| match &response.id {
            Some(answered) => id == answered,
            None => asked.command() == response.command,
        })?;
        self.open.remove(at).map(|(_, asked)| asked)
    }

    /// Whether a person waits for an answer.
    pub(super) fn has_setting(&self) -> bool {
        let is_setting = |asked: &Asked| matches!(asked, Asked::SetModel(_) | Asked::SetEffort(_));
        self.open.iter().any(|(_, asked)| is_setting(asked))
    }

    pub(super) fn is_asked(&self, asked: &Asked) -> bool {
        self.open.iter().any(|(_, open)| open == asked)
    }

    /// Nobody will answer any more: what was asked.
    pub(super) fn forget(&mut self) -> Vec<Asked> {
        self.open.drain(..).map(|(_, asked)| asked).collect()
    }
}

/// pi for a session: a new one, one that goes on, or an earlier conversation.
pub(super) fn program(setup: &Setup, known: Option<&Known>) -> Program {
    let gate = Program::argument_of(GATE_FILE);
    let mut args = vec!["--mode", "rpc", "--extension", &gate];
    let file = known.and_then(|known| known.file.as_deref()).map(|file| file.to_string_lossy());
    let earlier = setup.earlier.as_ref().map(|earlier| {
        let place = earlier
            .file
            .as_deref()
            .map_or(earlier.id.as_str().into(), |file| file.to_string_lossy());
        (if earlier.fork { "--fork" } else { "--session" }, place)
    });
    match (known, &file, &earlier) {
        (Some(_), Some(file), _) => args.extend(["--session", file]),
        (None, _, Some((flag, place))) => args.extend([flag, place.as_ref()]),
        (Some(_), None, _) | (None, _, None) => {}
    }
    let asked_model = setup.model.as_ref().map(domain::ModelId::as_str);
    let model = match known {
        Some(known) => known.model.as_deref(),
        None => asked_model,
    };
    if let Some(model) = model {
        args.extend(["--model", model]);
    }
    if let Some(effort) = known.and_then(|known| known.effort.as_deref()) {
        args.extend(["--thinking", effort]);
    }
    let mut program = setup.launcher.program(&args, setup.workspace.clone());
    program.files.push((GATE_FILE.to_owned(), GATE.to_owned()));
    program.env.push(("PI_SKIP_VERSION_CHECK".to_owned(), "1".to_owned()));
    program
}
