//! Properties of every dialect's client that hold whatever a relay sends. A target in `fuzz/`
//! looks for conversations that break them, and a test replays `fixtures/fuzz`.
//!
//! The first line names the dialect. Of the other lines, one that starts with `~` is an action of
//! the person or the socket, and any other is a frame of the relay.
//!
//! | line | |
//! |---|---|
//! | `~open` | the next connection is open |
//! | `~send TEXT` | a message for the agent |
//! | `~allow ID`, `~deny ID` | a decision |
//! | `~stop` | the run is stopped |

use std::fmt;

use domain::Timestamp;
use serde_json::Value;

use crate::webchannel::Auth;
use crate::{Happening, Machine, OneSession, Settings, Speaker, blob, control, pi, webchannel};

const SESSION: &str = "sess_1";
const CREATED_AT: &str = "2026-01-01T00:00:00.000Z";
/// The key and the seed of a client that is paired.
const KEY: [u8; 32] = [7; 32];
/// Lines of one conversation; more say nothing new.
const LINES_MAX: usize = 200;
/// How long each line of a native conversation takes.
const LINE_MS: u64 = 1_000;

/// A client says nothing but JSON, and shows each event once.
///
/// # Panics
///
/// Where that does not hold.
pub fn client(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (dialect, lines) = text.split_once('\n').unwrap_or((text, ""));
    let key = Some(KEY);
    let auth = Auth { access_token: "fh_1".to_owned(), key, expires_in_s: 60 };
    let mut speaker: Box<dyn Speaker> = match dialect {
        "native" => {
            events_are_shown_once(lines);
            Box::new(OneSession::new(SESSION, 0, "ada", CREATED_AT))
        }
        "blob" => Box::new(blob::Machine::new(SESSION)),
        "control" => Box::new(control::Machine::new(SESSION, None, true).called("ada")),
        "pi" => Box::new(pi::Machine::new(Some(SESSION))),
        "webchannel" => Box::new(webchannel::Machine::new(SESSION, Some(auth), KEY)),
        _ => return,
    };
    are_json(&speaker.on_open());
    for line in lines.lines().take(LINES_MAX) {
        let said = match line.strip_prefix('~').map(|it| it.split_once(' ').unwrap_or((it, ""))) {
            Some(("open", _)) => {
                assert!(speaker.path().starts_with("/ws/"), "{}", speaker.path());
                speaker.on_open()
            }
            Some(("send", text)) => speaker.send(text),
            Some(("allow", id)) => speaker.decide(id, true),
            Some(("deny", id)) => speaker.decide(id, false),
            Some(("stop", _)) => speaker.interrupt(),
            Some(_) | None => speaker.on_text(line).1,
        };
        are_json(&said);
    }
}

/// Of a session that is followed, numbers only grow, but where history begins anew.
fn events_are_shown_once(lines: &str) {
    let mut machine = Machine::new(Settings::full("ada", "ada"));
    machine.follow(SESSION, 0);
    let mut last = 0;
    for (count, line) in (1..).zip(lines.lines().take(LINES_MAX)) {
        let (happened, replies) = machine.on_text(line);
        for happening in &happened {
            match happening {
                Happening::Event(event) if event.session == SESSION => {
                    assert!(event.sequence > last, "{} after {last}", event.sequence);
                    last = event.sequence;
                }
                Happening::Anew { session, last_sequence, .. } if session == SESSION => {
                    last = *last_sequence;
                }
                Happening::Page { session, last_sequence, .. } if session == SESSION => {
                    last = last.max(*last_sequence);
                }
                Happening::Connected(_)
                | Happening::Sessions(_)
                | Happening::Event(_)
                | Happening::Delta(_)
                | Happening::Anew { .. }
                | Happening::Page { .. }
                | Happening::Answer(_) => {}
            }
        }
        assert_eq!(machine.cursor(SESSION), Some(last));
        machine.heartbeat(Timestamp(count * LINE_MS));
        are_json(&replies);
    }
}

fn are_json(said: &[impl fmt::Display]) {
    for frame in said {
        let frame = frame.to_string();
        assert!(serde_json::from_str::<Value>(&frame).is_ok(), "{frame}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_fuzzing_found_is_survived() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz/clients");
        let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(inputs.len() >= 5, "{folder} holds next to nothing");
        for input in inputs {
            super::client(&std::fs::read(input.unwrap().path()).unwrap());
        }
    }
}
