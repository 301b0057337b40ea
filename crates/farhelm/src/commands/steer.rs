//! `farhelm answer`, `interrupt` and `close`: one command, one answer.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use client::{Happening, Heard, control};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{new_id, remote};
use crate::arguments::{Answer, Close, Interrupt, Reach};
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::{output, sessions};

/// A relay and its machine answer sooner, or not at all. A launch may take longer: the relay, whose
/// flag says how long, answers it in any case, so only a relay that is away is not waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Answers a permission question.
pub(super) async fn answer(answer: Answer) -> Result<ExitCode, Problem> {
    let more = json!({ "prompt_id": answer.prompt, "choice_id": answer.choice });
    let order = Order { session: &answer.session, kind: "permission_response", more };
    let told = order.carry_out(&answer.reach).await?;
    print(answer.json, &told, &format!("answered {}", answer.choice))
}

/// Stops what the agent is doing.
pub(super) async fn interrupt(interrupt: Interrupt) -> Result<ExitCode, Problem> {
    let order = Order { session: &interrupt.session, kind: "agent_interrupt", more: json!({}) };
    let told = order.carry_out(&interrupt.reach).await?;
    print(interrupt.json, &told, "interrupted")
}

/// Closes a session.
pub(super) async fn close(close: Close) -> Result<ExitCode, Problem> {
    let order = Order { session: &close.session, kind: "close_session", more: json!({}) };
    let told = order.carry_out(&close.reach).await?;
    print(close.json, &told, "closed; you can still read the conversation")
}

struct Order<'a> {
    session: &'a str,
    kind: &'a str,
    more: Value,
}

impl Order<'_> {
    async fn carry_out(self, reach: &Reach) -> Result<Value, Problem> {
        let finder = Finder::new(reach)?;
        let session = sessions::find_to_act(&finder, self.session).await?;
        let request = new_id("req")?;
        let empty = Map::new();
        let more = self.more.as_object().unwrap_or(&empty);
        let frame = control(self.kind, &session.id, &request, more);
        exchange(finder, &request, &session.id, &frame).await
    }
}

/// Says it once the relay has said hello, and waits for the answer.
pub(super) async fn exchange(
    finder: Finder,
    request: &str,
    session: &str,
    frame: &Value,
) -> Result<Value, Problem> {
    // Reaching nobody is said at once rather than tried for a minute.
    sessions::list(&finder).await?;
    let mut remote = remote(finder)?;
    let is_launch = frame["type"] == "launch_session" || frame["type"] == "resume_session";
    let mut is_said = false;
    let mut patience = Patience::new(is_launch, Instant::now());
    loop {
        match patience.wait(remote.next()).await? {
            // A launch is known by its id and may be said twice; the others may not.
            Heard::Happening(Happening::Connected(_)) if is_launch || !is_said => {
                remote.say(frame);
                is_said = true;
                patience.said();
            }
            Heard::Happening(Happening::Event(event)) => {
                if let Some(end) = end(&event.frame, request, session) {
                    return end;
                }
            }
            Heard::Happening(Happening::Answer(answer)) => {
                if let Some(end) = end(&answer, request, session) {
                    return end;
                }
            }
            Heard::Happening(_) => {}
            Heard::Lost { words, .. } => {
                if is_said && !is_launch {
                    return Err(Problem::new(format!(
                        "lost the relay before it answered ({words}); run `farhelm tail` to see \
                         whether the command took effect"
                    )));
                }
                patience.lost(Instant::now());
            }
            Heard::Refused(words) => return Err(Problem::new(words)),
        }
    }
}

/// How long an answer is waited for.
struct Patience {
    is_launch: bool,
    /// `None`: until it comes.
    until: Option<Instant>,
}

impl Patience {
    fn new(is_launch: bool, now: Instant) -> Self {
        Self { is_launch, until: Some(now + ANSWER_WITHIN) }
    }

    /// The relay is there, and was told.
    fn said(&mut self) {
        if self.is_launch {
            self.until = None;
        }
    }

    /// The relay is away. It is tried again for a while.
    fn lost(&mut self, now: Instant) {
        self.until.get_or_insert(now + ANSWER_WITHIN);
    }

    async fn wait<T>(&self, next: impl Future<Output = T>) -> Result<T, Problem> {
        let Some(until) = self.until else { return Ok(next.await) };
        tokio::time::timeout_at(until, next).await.map_err(|_| {
            if self.is_launch {
                let words = "no connection to the relay for a minute, so it is unknown whether the \
                             session started; check with `farhelm sessions` once it is back";
                Problem::new(words)
            } else {
                Problem::new(
                    "no answer within a minute; the session's machine may be busy or offline",
                )
            }
        })
    }
}

/// What became of the request, when this frame says so.
fn end(frame: &Value, request: &str, session: &str) -> Option<Result<Value, Problem>> {
    let ours = frame["request_id"] == *request;
    let text = |value: &Value| output::tame(value.as_str().unwrap_or_default());
    match frame["type"].as_str()? {
        "agent_control_result" if ours => Some(if frame["result"] == "ok" {
            Ok(frame.clone())
        } else {
            let (message, code) = (&frame["error"]["message"], &frame["error_code"]);
            Err(Problem::new(format!("{} ({})", text(message), text(code))))
        }),
        "session_launch_ack" | "catalog" | "resumable_sessions" if ours => Some(Ok(frame.clone())),
        "session_launch_failed" if ours => {
            let (reason, code) = (&frame["reason"], &frame["error_code"]);
            Some(Err(Problem::new(format!("{} ({})", text(reason), text(code)))))
        }
        "connection_error" if ours || frame["request_id"].is_null() => {
            let (message, code) = (&frame["message"], &frame["code"]);
            Some(Err(Problem::new(format!("{} ({})", text(message), text(code)))))
        }
        // The answer to a close is the event that everybody hears.
        "session_closed" if ours || (!session.is_empty() && frame["session_id"] == *session) => {
            Some(Ok(frame.clone()))
        }
        _ => None,
    }
}

pub(super) fn print(is_json: bool, told: &Value, words: &str) -> Result<ExitCode, Problem> {
    if is_json {
        output::json(told)?;
    } else {
        output::aside(words);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_takes_as_long_as_the_relay_lets_it_unless_the_relay_is_away() {
        let begun = Instant::now();
        let mut patience = Patience::new(true, begun);
        assert_eq!(patience.until, Some(begun + ANSWER_WITHIN), "nobody is there yet");
        patience.said();
        assert_eq!(patience.until, None);
        let lost = begun + Duration::from_secs(80);
        patience.lost(lost);
        patience.lost(lost + Duration::from_secs(5));
        assert_eq!(patience.until, Some(lost + ANSWER_WITHIN));
        patience.said();
        assert_eq!(patience.until, None, "it is back, and was told again");
    }

    #[test]
    fn everything_else_is_answered_within_a_minute() {
        let begun = Instant::now();
        let mut patience = Patience::new(false, begun);
        patience.said();
        patience.lost(begun + Duration::from_secs(5));
        assert_eq!(patience.until, Some(begun + ANSWER_WITHIN));
    }
}
