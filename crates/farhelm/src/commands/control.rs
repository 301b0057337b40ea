//! `farhelm control`: a session on standard input and output, in place of Claude Code.
//!
//! A program built on the Claude Agent SDK starts this instead of Claude Code and controls any
//! session with it. It accepts Claude Code's own flags, applies those that have a meaning here, and
//! ignores the others.
//!
//! **Invariant**: no line is sent before the permission mode of the flags is set and confirmed.
//! Each line is sent once, even if the relay disconnects meanwhile. The end of the input ends the
//! command once its messages are answered.
//!
//! Not here: what frames mean (`client::control`).

mod flags;
mod opening;

use std::process::ExitCode;

use client::control::{Happening, Machine};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::flags::{BYPASS, Flags};
use self::opening::Opening;
use super::attach::typed_lines;
use super::new_id;
use super::socket::{Heard, Line};
use crate::arguments::Control;
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::sessions::Listed;
use crate::stop::Stop;
use crate::{output, sessions};

/// Where the ids of this command's own requests begin.
const OWN_PREFIX: &str = "farhelm:";
/// The mode in which the agent asks.
const ASKING: &str = "default";

/// Runs until the input ends and is answered, or the relay does not want it.
pub(super) async fn run(control: Control) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let mut reach = control.reach.clone();
    let flags = Flags::read(&control.claude);
    reach.relay = flags.relay.clone().or(reach.relay);
    reach.token = flags.token.clone().or(reach.token);
    reach.data.data = flags.data.clone().map(Into::into).or(reach.data.data);
    let finder = Finder::new(&reach)?;
    let session = session(&finder, &flags, control.session.as_deref()).await?;
    sessions::tell_chosen(&session);
    let machine = Machine::new(&session.id, Some(session.last_sequence), flags.partial);
    let line = Line::new(finder);
    let (shows_own, opening) = (flags.replay, Opening::new());
    let mut bridge = Bridge { machine, line, shows_own, opening, answer: None };
    bridge.connect().await?;
    tokio::select! {
        // The program's first message waits until the session is as the flags say.
        settled = bridge.settle(&flags) => settled?,
        () = stop.asked() => return Ok(ExitCode::SUCCESS),
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

/// The session that the flags name.
async fn session(
    finder: &Finder,
    flags: &Flags,
    argument: Option<&str>,
) -> Result<Listed, Problem> {
    if flags.fork {
        return Err(Problem::usage(
            "this command cannot fork a session, so nothing was sent. To continue the session, \
             leave out --fork-session (forkSession). To fork it, run: farhelm resume --fork",
        ));
    }
    let named = flags.session.as_deref().or(argument);
    let meant = named.or(flags.resume.as_deref()).ok_or_else(|| {
        Problem::usage("no session given: pass --session ID (`farhelm sessions` lists the ids)")
    })?;
    let session = sessions::find(finder, meant).await?;
    if let Some(resumed) = &flags.resume {
        let other = sessions::find(finder, resumed).await?;
        if other.id != session.id {
            return Err(Problem::usage(format!(
                "--session names {}, but --resume names another session, {}: leave one out",
                session.id, other.id
            )));
        }
    }
    Ok(session)
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
    /// Whether the program's own messages come back to it.
    shows_own: bool,
    opening: Opening,
    /// The answer to this command's own request, which it waits for.
    answer: Option<Value>,
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

    /// Brings the session into the state that the flags name, before any message.
    async fn settle(&mut self, flags: &Flags) -> Result<(), Problem> {
        if let Some(mode) = &flags.permission_mode {
            let told = self.ask("set_permission_mode", &json!({ "mode": mode })).await?;
            told.map_err(|error| {
                let mode = output::tame(mode);
                Problem::new(format!(
                    "could not set the permission mode {mode:?}, so no message was sent: {error}"
                ))
            })?;
        } else {
            self.leave_bypass().await?;
        }
        if let Some(model) = &flags.model
            && let Err(error) = self.ask("set_model", &json!({ "model": model })).await?
        {
            output::aside(format_args!("could not set the model: {error}"));
        }
        Ok(())
    }

    /// A program that names no mode did not ask for one in which nobody is asked.
    async fn leave_bypass(&mut self) -> Result<(), Problem> {
        let told = self.ask("initialize", &json!({})).await?;
        let answer = told.map_err(|error| {
            Problem::new(format!("could not read the session's permission mode: {error}"))
        })?;
        if answer["permissionMode"] != BYPASS {
            return Ok(());
        }
        let set = self.ask("set_permission_mode", &json!({ "mode": ASKING })).await?;
        set.map_err(|error| {
            Problem::new(format!(
                "the session runs every tool without asking ({BYPASS}), and its mode could not \
                 be set to {ASKING}: {error}\nTo run it like that, pass --permission-mode \
                 {BYPASS}"
            ))
        })?;
        output::aside(format_args!(
            "the session ran every tool without asking ({BYPASS}); its mode is now {ASKING}. To \
             keep the old mode, pass --permission-mode {BYPASS}"
        ));
        Ok(())
    }

    /// A request of this command itself, and its answer: what it brings, or what is wrong.
    async fn ask(
        &mut self,
        subtype: &str,
        fields: &Value,
    ) -> Result<Result<Value, String>, Problem> {
        let id = format!("{OWN_PREFIX}{subtype}");
        let mut request = fields.clone();
        request["subtype"] = json!(subtype);
        let frame = json!({ "type": "control_request", "request_id": id, "request": request });
        let frame = self.machine.say(frame).map_err(Problem::new)?;
        self.line.write(frame.to_string()).await;
        loop {
            let heard = self.line.hear().await;
            self.on_heard(heard).await?;
            let Some(mut frame) = self.answer.take() else { continue };
            let response = &mut frame["response"];
            return Ok(match response["error"].as_str() {
                None if response["subtype"] == "success" => Ok(response["response"].take()),
                error => Err(output::tame(error.unwrap_or("no reason given"))),
            });
        }
    }

    async fn on_heard(&mut self, heard: Heard) -> Result<(), Problem> {
        match heard {
            Heard::Nothing => Ok(()),
            Heard::Gone(Some(words)) => Err(Problem::new(words)),
            Heard::Gone(None) => {
                output::aside("lost the relay; reconnecting");
                self.connect().await
            }
            Heard::Text(text) => self.on_text(&text).await,
        }
    }

    async fn on_text(&mut self, text: &str) -> Result<(), Problem> {
        let was_at_work = self.machine.is_at_work();
        let (happened, reply) = self.machine.on_text(text);
        if let Some(reply) = reply {
            self.line.write(reply.to_string()).await;
        }
        match happened {
            None => Ok(()),
            Some(Happening::Answer(frame)) => self.on_answer(frame),
            Some(Happening::Message(frame)) => {
                let is_own = match frame["type"].as_str() {
                    // Of a run that none of the program's messages is part of.
                    Some("result") => was_at_work || frame["user_message_uuid"].is_string(),
                    Some("user") => {
                        let uuid = frame["uuid"].as_str().unwrap_or_default();
                        self.shows_own || !self.machine.has_at_work(uuid)
                    }
                    Some(_) | None => true,
                };
                if is_own { self.show(&frame, text) } else { Ok(()) }
            }
            Some(Happening::Asked { .. } | Happening::Withdrawn(_)) => {
                self.show(&Value::Null, text)
            }
        }
    }

    /// Prints a frame, or keeps it until the first `init`.
    fn show(&mut self, frame: &Value, text: &str) -> Result<(), Problem> {
        self.opening.take(frame, text).iter().try_for_each(output::line)
    }

    /// A line of the program that started this.
    async fn on_line(&mut self, line: &str) -> Result<(), Problem> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Ok(mut frame) = serde_json::from_str::<Value>(line) else {
            output::aside("skipped a line of the input: it is not JSON");
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

    /// Prints the answer to a request of the program, and keeps that to our own.
    fn on_answer(&mut self, mut frame: Value) -> Result<(), Problem> {
        let id = frame["response"]["request_id"].as_str().unwrap_or_default();
        if id.starts_with(OWN_PREFIX) {
            self.answer = Some(frame);
            return Ok(());
        }
        if let Some(response) = frame["response"].as_object_mut() {
            // They come as requests of their own, and would be asked twice.
            response.remove("pending_permission_requests");
        }
        output::json(&frame)
    }
}
