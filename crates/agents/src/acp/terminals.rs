//! Commands that the agent asks us to run, and their output.
//!
//! The end of a command's output is kept up to the agent's limit and ours, and shown to people as
//! the output of the tool call that names the terminal. Permission is settled before the request:
//! the agent asks for it as its mode requires.
//!
//! Invariant: every request is answered once, unless its program ends first. A terminal that was
//! released, or whose program ended, runs nothing.
//!
//! Not here: processes (`proxy`).

use std::collections::BTreeMap;

use domain::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Acp;
use super::frames::{Tool, lenient, list, read};
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, TheirId};
use crate::{Exit, Output, TerminalCommand, TerminalId, TerminalJob, TerminalNews};

/// Terminals that are not released. Beyond, they are refused.
const TERMINALS_MAX: usize = 32;
/// Bytes of output that are kept of one terminal; an agent may want fewer.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Requests that wait for the end of one terminal. Beyond, they are refused.
const WAITING_MAX: usize = 16;

/// The terminals of one program.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    open: BTreeMap<TerminalId, Terminal>,
    last: u64,
}

#[derive(Debug)]
struct Terminal {
    state: State,
    output: String,
    is_cut: bool,
    bytes_max: usize,
    /// Who wants to know when it ends.
    waiting: Vec<TheirId>,
}

#[derive(Debug)]
enum State {
    /// Whoever wanted it waits for that.
    Opening(TheirId),
    Running,
    Over(Exit),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Create {
    #[serde(deserialize_with = "lenient")]
    command: String,
    #[serde(deserialize_with = "list")]
    args: Vec<String>,
    #[serde(deserialize_with = "list")]
    env: Vec<Variable>,
    #[serde(deserialize_with = "lenient")]
    cwd: Option<String>,
    #[serde(deserialize_with = "lenient")]
    output_byte_limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Named {
    #[serde(deserialize_with = "lenient")]
    terminal_id: String,
}

impl Terminals {
    /// The program is no more, and what it ran ended with it.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Whether any command runs.
    pub(super) fn any_at_work(&self) -> bool {
        self.open.values().any(|terminal| match terminal.state {
            State::Opening(_) | State::Running => true,
            State::Over(_) => false,
        })
    }

    /// What a terminal printed so far.
    pub(super) fn output(&self, name: &str) -> Option<&str> {
        let (_, terminal) = self.find(name)?;
        Some(&terminal.output)
    }

    fn find(&self, name: &str) -> Option<(TerminalId, &Terminal)> {
        let found = self.open.iter().find(|(id, _)| id.to_string() == name);
        found.map(|(id, terminal)| (*id, terminal))
    }
}

impl Terminal {
    fn print(&mut self, text: &str) {
        self.output.push_str(text);
        let Some(over) = self.output.len().checked_sub(self.bytes_max).filter(|over| *over > 0)
        else {
            return;
        };
        self.is_cut = true;
        let end = self.output.len();
        let start = (over..=end).find(|at| self.output.is_char_boundary(*at)).unwrap_or(end);
        self.output.drain(..start);
    }

    fn exit(&self) -> Option<Exit> {
        match self.state {
            State::Over(exit) => Some(exit),
            State::Opening(_) | State::Running => None,
        }
    }
}

impl Acp {
    /// A request about terminals; false where it is none that is known.
    pub(super) fn asked_of_terminal(&mut self, id: &TheirId, method: &str, params: Value) -> bool {
        if method == "terminal/create" {
            self.create_terminal(id, read(params));
            return true;
        }
        if !matches!(
            method,
            "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release"
        ) {
            return false;
        }
        let named: Named = read(params);
        let Some((terminal, _)) = self.terminals.find(&named.terminal_id) else {
            let words = format!("Unknown terminal {}", shortened(&named.terminal_id));
            let line = self.rpc.refusal(id, INVALID_PARAMS, &words);
            self.write(line);
            return true;
        };
        match method {
            "terminal/output" => self.tell_output(id, terminal),
            "terminal/wait_for_exit" => self.wait_for_exit(id, terminal),
            "terminal/kill" => self.kill_terminal(id, terminal),
            _ => self.release_terminal(id, terminal),
        }
        true
    }

    fn create_terminal(&mut self, id: &TheirId, wanted: Create) {
        let refusal = if wanted.command.trim().is_empty() {
            Some((INVALID_PARAMS, "The command is empty".to_owned()))
        } else if self.terminals.open.len() >= TERMINALS_MAX {
            let words = format!(
                "{TERMINALS_MAX} terminals are already open, which is the limit: release some first"
            );
            Some((INTERNAL_ERROR, words))
        } else {
            None
        };
        if let Some((code, words)) = refusal {
            let line = self.rpc.refusal(id, code, &words);
            return self.write(line);
        }
        self.terminals.last += 1;
        let terminal = TerminalId(self.terminals.last);
        let limit = wanted.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let opening = Terminal {
            state: State::Opening(id.clone()),
            output: String::new(),
            is_cut: false,
            bytes_max: limit.unwrap_or(OUTPUT_BYTES_MAX).min(OUTPUT_BYTES_MAX),
            waiting: vec![],
        };
        self.terminals.open.insert(terminal, opening);
        let own = wanted.env.into_iter().map(|variable| (variable.name, variable.value));
        let command = TerminalCommand {
            command: wanted.command,
            args: wanted.args,
            env: self.setup.launcher.env.iter().cloned().chain(own).collect(),
            folder: wanted.cwd.map(Into::into),
        };
        self.scribe.push(Output::Terminal(TerminalJob::Open(terminal, Box::new(command))));
    }

    fn tell_output(&mut self, id: &TheirId, terminal: TerminalId) {
        let Some(known) = self.terminals.open.get(&terminal) else { return };
        let mut result = json!({ "output": known.output, "truncated": known.is_cut });
        if let Some(exit) = known.exit() {
            result["exitStatus"] = status(exit);
        }
        let line = self.rpc.answer(id, result);
        self.write(line);
    }

    fn wait_for_exit(&mut self, id: &TheirId, terminal: TerminalId) {
        let Some(known) = self.terminals.open.get_mut(&terminal) else { return };
        let line = if let Some(exit) = known.exit() {
            self.rpc.answer(id, status(exit))
        } else if known.waiting.len() >= WAITING_MAX {
            self.rpc.refusal(
                id,
                INTERNAL_ERROR,
                "Too many requests are waiting for this terminal to exit",
            )
        } else {
            return known.waiting.push(id.clone());
        };
        self.write(line);
    }

    fn kill_terminal(&mut self, id: &TheirId, terminal: TerminalId) {
        if self.terminals.open.get(&terminal).is_some_and(|known| known.exit().is_none()) {
            self.scribe.push(Output::Terminal(TerminalJob::Kill(terminal)));
        }
        let line = self.rpc.answer(id, json!({}));
        self.write(line);
    }

    /// It stays in the transcript, and is gone for the agent.
    fn release_terminal(&mut self, id: &TheirId, terminal: TerminalId) {
        let Some(known) = self.terminals.open.remove(&terminal) else { return };
        if known.exit().is_none() {
            self.scribe.push(Output::Terminal(TerminalJob::Kill(terminal)));
        }
        let opening = match known.state {
            State::Opening(asked) => Some(asked),
            State::Running | State::Over(_) => None,
        };
        for waiting in known.waiting.iter().chain(&opening) {
            let line = self.rpc.refusal(waiting, INTERNAL_ERROR, "The terminal was released");
            self.write(line);
        }
        let line = self.rpc.answer(id, json!({}));
        self.write(line);
    }

    /// Something happened to a terminal.
    pub(super) fn terminal_news(&mut self, id: TerminalId, news: TerminalNews, now: Timestamp) {
        let Some(terminal) = self.terminals.open.get_mut(&id) else { return };
        match news {
            TerminalNews::Opened => {
                let before = std::mem::replace(&mut terminal.state, State::Running);
                if let State::Opening(asked) = before {
                    let line = self.rpc.answer(&asked, json!({ "terminalId": id.to_string() }));
                    self.write(line);
                }
            }
            TerminalNews::NotOpened(failure) => {
                let Some(terminal) = self.terminals.open.remove(&id) else { return };
                if let State::Opening(asked) = terminal.state {
                    let line = self.rpc.refusal(&asked, INTERNAL_ERROR, &failure.message);
                    self.write(line);
                }
            }
            TerminalNews::Printed(text) => {
                terminal.print(&text);
                let (name, output) = (id.to_string(), &terminal.output);
                self.observation.printed(&name, output, &mut self.scribe, now);
            }
            TerminalNews::Ended(exit) => {
                terminal.state = State::Over(exit);
                for waiting in std::mem::take(&mut terminal.waiting) {
                    let line = self.rpc.answer(&waiting, status(exit));
                    self.write(line);
                }
            }
        }
        // The agent may be silent while its command is not.
        self.heard(now);
    }

    /// Puts what terminals printed in the place of their names.
    pub(super) fn fill_terminals(&mut self, frame: &mut Tool) {
        for content in frame.content.iter_mut().filter(|content| content.kind == "terminal") {
            let Some(output) = self.terminals.output(&content.terminal_id) else { continue };
            "text".clone_into(&mut content.content.kind);
            content.content.text = Some(output.to_owned());
        }
    }
}

fn status(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({ "exitCode": code, "signal": null }),
        Exit::Signal(signal) => json!({ "exitCode": null, "signal": signal_name(signal) }),
    }
}

/// As people know it.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}
