//! `farhelm tail --dialect`: a session as a client of another dialect sees it.
//!
//! No dialect but the native one reports the end of a session in a way that a program can rely
//! on, so a native connection beside the other one waits for it.
//!
//! Not here: the dialects (`client`).

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use client::{Happening, Remote, Seen, Speaker, blob, control, pi, webchannel};
use serde_json::json;

use super::super::socket::{Heard, Line};
use super::super::{new_id, remote};
use crate::arguments::{Dialect, Tail};
use crate::connect::NativeDial;
use crate::discovery::Finder;
use crate::problem::{Context as _, Problem};
use crate::stop::Stop;
use crate::{output, sessions};

/// After its end a session is shown until nothing has come for this long: the two connections are
/// not in step.
const QUIET: Duration = Duration::from_millis(500);

/// Follows from now on, in the dialect's own way, until the session is closed.
pub(super) async fn run(tail: Tail, dialect: Dialect) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let finder = Finder::new(&tail.reach)?;
    let session = sessions::find(&finder, &tail.session).await?;
    if sessions::is_closed(&finder, &session).await? {
        output::aside("this session is closed: there will be no more events");
        return Ok(ExitCode::SUCCESS);
    }
    let mut speaker = speaker(dialect, &session.id)?;
    let mut native = remote(finder.clone())?;
    native.machine().follow(&session.id, session.last_sequence);
    let mut closed = pin!(closed(native, &session.id));
    let mut is_closed = false;
    let mut line = Line::new(finder);
    let mut screen = Screen { is_json: tail.json, is_in_words: false };
    loop {
        line.open(&speaker.path()).await?;
        for frame in speaker.on_open() {
            line.write(frame).await;
        }
        loop {
            let heard = tokio::select! {
                heard = line.hear() => heard,
                told = &mut closed, if !is_closed => {
                    told?;
                    is_closed = true;
                    Heard::Nothing
                }
                () = tokio::time::sleep(QUIET), if is_closed => return Ok(ExitCode::SUCCESS),
                () = stop.asked() => return Ok(ExitCode::SUCCESS),
            };
            match heard {
                Heard::Nothing => {}
                Heard::Gone(_) if is_closed => return Ok(ExitCode::SUCCESS),
                Heard::Gone(Some(words)) => return Err(Problem::new(words)),
                Heard::Gone(None) => break,
                Heard::Text(text) => {
                    let (seen, replies) = speaker.on_text(&text);
                    for reply in replies {
                        line.write(reply).await;
                    }
                    seen.iter().try_for_each(|it| screen.show(it))?;
                }
            }
        }
        output::aside("lost the relay; reconnecting");
    }
}

/// Waits for the end of the session.
async fn closed(mut native: Remote<NativeDial>, session: &str) -> Result<(), Problem> {
    loop {
        match native.next().await {
            client::Heard::Happening(Happening::Event(event))
                if event.session == session && event.kind == "session_closed" =>
            {
                return Ok(());
            }
            client::Heard::Refused(words) => return Err(Problem::new(words)),
            // The other connection says when the relay is away.
            client::Heard::Happening(_) | client::Heard::Lost { .. } => {}
        }
    }
}

fn speaker(dialect: Dialect, session: &str) -> Result<Box<dyn Speaker>, Problem> {
    let name = new_id("tail")?;
    Ok(match dialect {
        Dialect::Blob => Box::new(blob::Machine::new(session)),
        Dialect::Control => Box::new(control::Machine::new(session, None, true).called(&name)),
        Dialect::Pi => Box::new(pi::Machine::new(Some(session))),
        Dialect::Webchannel => Box::new(webchannel::Machine::let_in(session, seed()?)),
    })
}

/// What keys and nonces are drawn from.
fn seed() -> Result<[u8; 32], Problem> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).context("the system provides no random bytes")?;
    Ok(seed)
}

struct Screen {
    is_json: bool,
    /// Whether the line that stands there is the agent's, in the making.
    is_in_words: bool,
}

impl Screen {
    fn show(&mut self, seen: &Seen) -> Result<(), Problem> {
        if self.is_json {
            return output::json(&as_json(seen));
        }
        if let Seen::Piece(words) = seen {
            self.is_in_words = true;
            return output::raw(&output::tame(words));
        }
        let was_in_words = std::mem::take(&mut self.is_in_words);
        if was_in_words {
            output::raw("\n")?;
        }
        match seen {
            Seen::Person(words) => output::line(format!("> {}", output::tame(words))),
            Seen::Agent(_) if was_in_words => Ok(()),
            Seen::Agent(words) => output::line(output::tame(words)),
            Seen::Piece(_) => Ok(()),
            Seen::Tool(name) => output::line(format!("tool: {}", output::tame(name))),
            Seen::Asked { id, what } => {
                output::line(format!("asks ({}): {}", output::tame(id), output::tame(what)))
            }
            Seen::Settled { id } => output::line(format!("decided: {}", output::tame(id))),
            Seen::Ended(None) => output::line("done"),
            Seen::Ended(Some(why)) => output::line(format!("ended: {}", output::tame(why))),
            Seen::Trouble(words) => {
                output::aside(output::tame(words));
                Ok(())
            }
        }
    }
}

fn as_json(seen: &Seen) -> serde_json::Value {
    match seen {
        Seen::Person(text) => json!({"seen": "person", "text": text}),
        Seen::Piece(text) => json!({"seen": "piece", "text": text}),
        Seen::Agent(text) => json!({"seen": "agent", "text": text}),
        Seen::Tool(name) => json!({"seen": "tool", "name": name}),
        Seen::Asked { id, what } => json!({"seen": "asked", "id": id, "what": what}),
        Seen::Settled { id } => json!({"seen": "settled", "id": id}),
        Seen::Ended(why) => json!({"seen": "ended", "why": why}),
        Seen::Trouble(words) => json!({"seen": "trouble", "words": words}),
    }
}
