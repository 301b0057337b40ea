//! `farhelm control`: a session on standard input and output, as Claude Code would be.
//!
//! A program that is built on the Claude Agent SDK starts this in place of Claude Code and steers
//! any session with it. Claude Code's own flags are accepted; those that mean something here are
//! heeded, the others are not.
//!
//! **Invariant**: every line that comes in is said once, also when the relay goes away meanwhile;
//! the end of the input ends the command when its messages are answered.
//!
//! Not here: what frames mean (`client::control`).

mod flags;

use std::process::ExitCode;

use client::control::{Happening, Machine};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::flags::Flags;
use super::attach::typed_lines;
use super::new_id;
use super::socket::{Heard, Line};
use crate::arguments::Control;
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::stop::Stop;
use crate::{output, sessions};

/// Where the ids of this command's own requests begin.
const OWN_PREFIX: &str = "farhelm:";

/// Runs until the input ends and is answered, or the relay does not want it.
pub(super) async fn run(control: Control) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let mut reach = control.reach.clone();
    let flags = Flags::read(&control.claude);
    reach.relay = flags.relay.clone().or(reach.relay);
    reach.token = flags.token.clone().or(reach.token);
    reach.data.data = flags.data.clone().map(Into::into).or(reach.data.data);
    let meant = flags.session.clone().or(control.session);
    let meant = meant.ok_or_else(|| {
        Problem::usage("say which session with --session ID (farhelm sessions lists them)")
    })?;
    let finder = Finder::new(&reach)?;
    let session = sessions::find(&finder, &meant).await?;
    let machine = Machine::new(&session.id, Some(session.last_sequence), flags.partial);
    let mut bridge = Bridge { machine, line: Line::new(finder) };
    bridge.connect().await?;
    for (subtype, field, value) in flags.settings() {
        bridge.ask(subtype, field, value).await?;
    }
    let mut lines = Some(typed_lines()?);
    loop {
        if lines.is_none() && bridge.machine.is_settled() {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            heard = bridge.line.hear() => bridge.on_heard(heard).await?,
            line = next(&mut lines) => match line {
                Some(line) => bridge.on_line(&line).await?,
                None => lines = None,
            },
            () = stop.asked() => return Ok(ExitCode::SUCCESS),
        }
    }
}

async fn next(lines: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

struct Bridge {
    machine: Machine,
    line: Line,
}

impl Bridge {
    /// Opens a socket, however often it takes, and says what has no answer yet.
    async fn connect(&mut self) -> Result<(), Problem> {
        loop {
            self.line.open(&self.machine.path()).await?;
            for frame in self.machine.again() {
                self.line.write(frame.to_string()).await;
            }
            if self.line.is_open() {
                return Ok(());
            }
        }
    }

    async fn on_heard(&mut self, heard: Heard) -> Result<(), Problem> {
        match heard {
            Heard::Nothing => Ok(()),
            Heard::Gone(Some(words)) => Err(Problem::new(words)),
            Heard::Gone(None) => {
                output::aside("the relay is away; trying again");
                self.connect().await
            }
            Heard::Text(text) => self.on_text(&text).await,
        }
    }

    async fn on_text(&mut self, text: &str) -> Result<(), Problem> {
        let (happened, reply) = self.machine.on_text(text);
        if let Some(reply) = reply {
            self.line.write(reply.to_string()).await;
        }
        match happened {
            None => Ok(()),
            Some(Happening::Answer(frame)) => answered(frame),
            Some(Happening::Message(_) | Happening::Asked { .. } | Happening::Withdrawn(_)) => {
                output::line(text)
            }
        }
    }

    /// A line of the program that started this.
    async fn on_line(&mut self, line: &str) -> Result<(), Problem> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Ok(mut frame) = serde_json::from_str::<Value>(line) else {
            output::aside("a line of the input is not JSON; it is not sent");
            return Ok(());
        };
        if frame["type"] == "user" && frame["uuid"].as_str().is_none_or(str::is_empty) {
            frame["uuid"] = json!(new_id("msg")?);
        }
        match self.machine.say(frame) {
            Ok(frame) => {
                self.line.write(frame.to_string()).await;
                Ok(())
            }
            Err(unsaid) => Err(Problem::new(unsaid)),
        }
    }

    /// A request of this command itself, for a flag.
    async fn ask(&mut self, subtype: &str, field: &str, value: &str) -> Result<(), Problem> {
        let frame = json!({
            "type": "control_request", "request_id": format!("{OWN_PREFIX}{subtype}"),
            "request": { "subtype": subtype, field: value },
        });
        let frame = self.machine.say(frame).map_err(Problem::new)?;
        self.line.write(frame.to_string()).await;
        Ok(())
    }
}

/// Prints the answer to a request of the program, and tells what went wrong with our own.
fn answered(mut frame: Value) -> Result<(), Problem> {
    let id = frame["response"]["request_id"].as_str().unwrap_or_default();
    if let Some(subtype) = id.strip_prefix(OWN_PREFIX) {
        if let Some(error) = frame["response"]["error"].as_str() {
            output::aside(format_args!("{subtype}: {}", output::tame(error)));
        }
        return Ok(());
    }
    if let Some(response) = frame["response"].as_object_mut() {
        // They come as requests of their own, and would be asked twice.
        response.remove("pending_permission_requests");
    }
    output::json(&frame)
}
