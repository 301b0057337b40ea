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
use std::time::Duration;

use client::control::{Happening, Machine};
use client::{Dial as _, DialFault};
use futures_util::{SinkExt as _, StreamExt as _};
use proxy::dial::Socket;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use self::flags::Flags;
use super::attach::typed_lines;
use super::new_id;
use crate::arguments::Control;
use crate::connect::SocketDial;
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::stop::Stop;
use crate::{output, sessions};

/// The pause before the second attempt; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The relay forbids, or has no such session: another try would end the same.
const FINAL_CODES: [u16; 2] = [4003, 4004];
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
    let mut bridge = Bridge { machine, dial: SocketDial::new(finder), socket: None };
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
            heard = bridge.hear() => bridge.on_heard(heard).await?,
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

/// What the socket brings.
enum Heard {
    Text(String),
    Nothing,
    /// It is gone; with these words for good.
    Gone(Option<String>),
}

struct Bridge {
    machine: Machine,
    dial: SocketDial,
    socket: Option<Socket>,
}

impl Bridge {
    /// Opens a socket, however often it takes, and says what has no answer yet.
    async fn connect(&mut self) -> Result<(), Problem> {
        let mut pause = PAUSE_FIRST;
        loop {
            self.dial.aim(&self.machine.path());
            match self.dial.dial().await {
                Ok(socket) => self.socket = Some(socket),
                Err(DialFault::Refused(words)) => return Err(Problem::new(words)),
                Err(DialFault::Away(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
            }
            for frame in self.machine.again() {
                self.write(&frame).await;
            }
            if self.socket.is_some() {
                return Ok(());
            }
        }
    }

    async fn hear(&mut self) -> Heard {
        let Some(socket) = &mut self.socket else { return Heard::Gone(None) };
        match socket.next().await {
            Some(Ok(Message::Text(text))) => Heard::Text(text.to_string()),
            Some(Ok(Message::Close(Some(close)))) => {
                let code = u16::from(close.code);
                let is_final = FINAL_CODES.contains(&code);
                Heard::Gone(is_final.then(|| close.reason.to_string()))
            }
            Some(Ok(Message::Close(None)) | Err(_)) | None => Heard::Gone(None),
            Some(Ok(
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_),
            )) => Heard::Nothing,
        }
    }

    async fn on_heard(&mut self, heard: Heard) -> Result<(), Problem> {
        match heard {
            Heard::Nothing => Ok(()),
            Heard::Gone(Some(words)) => Err(Problem::new(words)),
            Heard::Gone(None) => {
                self.socket = None;
                output::aside("the relay is away; trying again");
                self.connect().await
            }
            Heard::Text(text) => self.on_text(&text).await,
        }
    }

    async fn on_text(&mut self, text: &str) -> Result<(), Problem> {
        let (happened, reply) = self.machine.on_text(text);
        if let Some(reply) = reply {
            self.write(&reply).await;
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
                self.write(&frame).await;
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
        self.write(&frame).await;
        Ok(())
    }

    /// What cannot be written is said again on the next socket.
    async fn write(&mut self, frame: &Value) {
        let Some(socket) = &mut self.socket else { return };
        if socket.send(Message::text(frame.to_string())).await.is_err() {
            self.socket = None;
        }
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
