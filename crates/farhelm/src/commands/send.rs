//! `farhelm send`: sends a message and waits for its outcome.
//!
//! **Invariant**: the exit code is 0 only if the relay reported *delivered* (or *accepted*, where
//! that was enough).

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use client::{Happening, Heard};
use serde_json::Value;

use super::{new_id, remote};
use crate::arguments::Send;
use crate::discovery::Finder;
use crate::problem::{Context as _, Problem};
use crate::{output, sessions};

/// The largest message that is read from standard input; the relay has its own bound.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The code of a relay that could not record something: its disk is full, or failed.
const COULD_NOT_RECORD: &str = "internal";

/// A message that is not delivered by then needs a word of explanation.
const EXPLAINED_AFTER: Duration = Duration::from_secs(2);

/// Sends and waits.
pub(super) async fn run(send: Send) -> Result<ExitCode, Problem> {
    let finder = Finder::new(&send.reach)?;
    let text = if send.text == "-" { standard_input()? } else { send.text.clone() };
    let session = sessions::find_to_act(&finder, &send.session).await?;
    let id = match &send.id {
        Some(id) => id.clone(),
        None => new_id("msg")?,
    };
    let mut remote = remote(finder)?;
    remote.machine().follow(&session.id, session.last_sequence);
    remote.send(&session.id, &id, &text, &now());
    let mut wait =
        Wait { send: &send, id: &id, accepted: false, troubled: false, is_explained: false };
    let patient_until = tokio::time::Instant::now() + EXPLAINED_AFTER;
    let waited = async {
        loop {
            let heard = tokio::select! {
                heard = remote.next() => heard,
                () = tokio::time::sleep_until(patient_until), if !wait.is_explained => {
                    wait.explain();
                    continue;
                }
            };
            if let Some(end) = wait.on_heard(heard) {
                return end;
            }
        }
    };
    let Some(timeout_ms) = send.timeout_ms else { return waited.await };
    let Ok(end) = tokio::time::timeout(Duration::from_millis(timeout_ms), waited).await else {
        return Err(Problem::new(format!(
            "the message was not confirmed within {timeout_ms} ms. Send it again with --id {id}: \
             it cannot arrive twice"
        )));
    };
    end
}

struct Wait<'a> {
    send: &'a Send,
    id: &'a str,
    accepted: bool,
    /// Whether a person knows that the relay has trouble.
    troubled: bool,
    /// Whether a person knows why this takes so long.
    is_explained: bool,
}

impl Wait<'_> {
    fn explain(&mut self) {
        self.is_explained = true;
        if self.accepted {
            output::aside(
                "waiting: the agent is busy, or its machine is offline. Ctrl-C stops waiting; \
                 the message stays queued",
            );
        }
    }

    /// The end, when this is it.
    fn on_heard(&mut self, heard: Heard) -> Option<Result<ExitCode, Problem>> {
        match heard {
            Heard::Happening(Happening::Event(event)) => self.on_frame(&event.frame),
            Heard::Happening(Happening::Answer(frame)) => self.on_frame(&frame),
            Heard::Happening(
                Happening::Connected(_)
                | Happening::Sessions(_)
                | Happening::Delta(_)
                | Happening::Anew { .. }
                | Happening::Page { .. },
            ) => None,
            Heard::Lost { words, failures } => {
                if failures <= 1 {
                    output::aside(format_args!("cannot reach the relay ({words}); reconnecting"));
                }
                None
            }
            Heard::Refused(words) => Some(Err(Problem::new(words))),
        }
    }

    fn on_frame(&mut self, frame: &Value) -> Option<Result<ExitCode, Problem>> {
        let kind = frame["type"].as_str().unwrap_or_default();
        if kind == "connection_error" && frame["code"] == COULD_NOT_RECORD {
            // The client repeats it by itself.
            if !self.troubled {
                self.troubled = true;
                let words = output::tame(frame["message"].as_str().unwrap_or_default());
                output::aside(format_args!(
                    "the relay could not record the message ({words}); retrying"
                ));
            }
            return None;
        }
        if frame["client_message_id"] != *self.id {
            return refusal(kind, frame);
        }
        match kind {
            "message_accepted" => {
                if !self.accepted {
                    self.accepted = true;
                    output::aside(format_args!("accepted  {}", self.id));
                }
                self.send.no_wait.then(|| self.done(frame))
            }
            "message_delivered" => {
                output::aside(format_args!("delivered {}", self.id));
                Some(self.done(frame))
            }
            "message_failed" => {
                let printed = if self.send.json { output::json(frame) } else { Ok(()) };
                Some(printed.and(Err(failed("message failed to send", &frame["error"]))))
            }
            "connection_error" => Some(Err(failed("the relay rejected the message", frame))),
            _ => None,
        }
    }

    fn done(&self, frame: &Value) -> Result<ExitCode, Problem> {
        if self.send.json {
            output::json(frame)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// An error that names no message is about this one: nothing else was asked.
fn refusal(kind: &str, frame: &Value) -> Option<Result<ExitCode, Problem>> {
    let ours = kind == "connection_error"
        && frame["client_message_id"].is_null()
        && frame["code"] != "resume_cursor_invalid";
    ours.then(|| Err(failed("the relay rejected the message", frame)))
}

fn failed(what: &str, error: &Value) -> Problem {
    let text = |name: &str| output::tame(error[name].as_str().unwrap_or_default());
    Problem::new(format!("{what}: {} ({})", text("message"), text("code")))
}

fn standard_input() -> Result<String, Problem> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut text);
    read.context("could not read the message from standard input")?;
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    if text.is_empty() {
        return Err(Problem::usage("standard input contains no message"));
    }
    Ok(text)
}

pub(super) fn now() -> String {
    let now = wire::native::shapes::Time::from(server::clock::now());
    serde_json::to_value(now).ok().and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default()
}
