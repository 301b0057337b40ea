//! `farhelm tail`: follows a session until Ctrl-C, or until it is closed.
//!
//! **Invariant**: every event is shown once, in order, however often the relay disconnects.

mod dialect;

use std::process::ExitCode;

use client::{Happening, Heard};
use serde_json::json;

use super::end::End;
use super::remote;
use crate::arguments::Tail;
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::stop::Stop;
use crate::view::View;
use crate::{output, sessions};

/// Follows.
pub(super) async fn run(tail: Tail) -> Result<ExitCode, Problem> {
    if let Some(dialect) = tail.dialect {
        return dialect::run(tail, dialect).await;
    }
    let mut stop = Stop::listen()?;
    let finder = Finder::new(&tail.reach)?;
    let session = sessions::find(&finder, &tail.session).await?;
    let after = tail.after.unwrap_or_else(|| session.last_sequence.saturating_sub(tail.last));
    // Then what is there already is all there will be.
    let is_closed = sessions::is_closed(&finder, &session).await?;
    if is_closed && after >= session.last_sequence {
        return Ok(ExitCode::SUCCESS);
    }
    let mut remote = remote(finder)?;
    remote.machine().follow(&session.id, after);
    // As it was typed, where that can be typed again without thinking of quotes.
    let is_plain = tail.session.chars().all(|letter| letter.is_alphanumeric() || letter == '-');
    let name = if is_plain { &tail.session } else { &session.id };
    let view = View::new(name, output::is_terminal());
    let mut screen = Screen {
        session: session.id,
        is_json: tail.json,
        view,
        end: End { is_closed, last_sequence: session.last_sequence, shown: after },
    };
    while !screen.end.has_come() {
        let heard = tokio::select! {
            heard = remote.next() => heard,
            () = stop.asked() => {
                output::raw(&screen.view.end_line())?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        screen.show(heard)?;
    }
    output::raw(&screen.line_end())?;
    Ok(ExitCode::SUCCESS)
}

struct Screen {
    session: String,
    is_json: bool,
    view: View,
    end: End,
}

impl Screen {
    fn show(&mut self, heard: Heard) -> Result<(), Problem> {
        match heard {
            Heard::Happening(happening) => self.on_happening(happening),
            Heard::Lost { words, failures } => {
                if failures <= 1 {
                    output::raw(&self.line_end())?;
                    output::aside(format_args!("cannot reach the relay ({words}); reconnecting"));
                }
                Ok(())
            }
            Heard::Refused(words) => Err(Problem::new(words)),
        }
    }

    fn on_happening(&mut self, happening: Happening) -> Result<(), Problem> {
        match happening {
            Happening::Event(event) if event.session == self.session => {
                self.end.show(&event.frame);
                if self.is_json {
                    return output::json(&event.frame);
                }
                self.print(|view| view.on_event(&event))
            }
            Happening::Delta(delta) if delta["session_id"] == *self.session => {
                if self.is_json {
                    return output::json(&delta);
                }
                self.print(|view| view.on_delta(&delta))
            }
            Happening::Anew { session, messages, last_sequence } if session == self.session => {
                self.end.skip_to(last_sequence);
                output::aside(
                    "the relay no longer has the missed events; showing the session from its \
                     beginning:",
                );
                if self.is_json {
                    return output::json(&json!({ "type": "history_snapshot",
                        "session_id": session, "last_sequence": last_sequence,
                        "messages": messages }));
                }
                messages.iter().try_for_each(|it| self.print(|view| view.on_message(it)))
            }
            Happening::Answer(frame) if frame["type"] == "connection_error" => {
                let text = |name: &str| output::tame(frame[name].as_str().unwrap_or_default());
                output::aside(format_args!("{} ({})", text("message"), text("code")));
                Ok(())
            }
            Happening::Connected(_)
            | Happening::Sessions(_)
            | Happening::Event(_)
            | Happening::Delta(_)
            | Happening::Anew { .. }
            | Happening::Page { .. }
            | Happening::Answer(_) => Ok(()),
        }
    }

    fn print(&mut self, draw: impl FnOnce(&mut View) -> String) -> Result<(), Problem> {
        let text = draw(&mut self.view);
        if text.is_empty() { Ok(()) } else { output::raw(&text) }
    }

    fn line_end(&mut self) -> String {
        if self.is_json { String::new() } else { self.view.end_line() }
    }
}
