//! How a test uses each dialect, and how it reads the answers.

use serde_json::{Value, json};
use wire::native::Limits;
use wire::{blob, control, pi, webchannel};

use crate::ports::Clock as _;
use crate::tests::world::{Peer, SESSION, World, person};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Blob,
    Pi,
    Control,
    Webchannel,
}

pub(super) const ALL: [Dialect; 4] =
    [Dialect::Blob, Dialect::Pi, Dialect::Control, Dialect::Webchannel];
/// Those in which something that a person does is answered once it is recorded. The webchannel
/// answers only what failed.
pub(super) const ANSWERING: [Dialect; 3] = [Dialect::Blob, Dialect::Pi, Dialect::Control];

impl Dialect {
    /// A connection that has said nothing yet.
    pub(super) fn dial(self, world: &World, who: Option<&str>) -> Peer {
        let (connection, principal) = (world.ids(), who.map(person));
        let (limits, now) = (Limits::default(), world.clock.now());
        match self {
            Self::Blob => {
                world.visitor(blob::Connection::new(connection, principal, "", limits, now))
            }
            Self::Pi => {
                let query = format!("session={SESSION}");
                world.visitor(pi::Connection::new(connection, principal, &query, limits, now))
            }
            Self::Control => {
                let query = format!("session={SESSION}&partial=1");
                world.visitor(control::Connection::new(connection, principal, &query, limits, now))
            }
            Self::Webchannel => {
                let query = format!("session_id={SESSION}&plain=1");
                let seed = [7; 32];
                let visitor =
                    webchannel::Connection::new(connection, principal, &query, limits, seed, now);
                world.visitor(visitor)
            }
        }
    }

    /// A connection that follows the session.
    pub(super) async fn join(self, world: &World, who: &str) -> Peer {
        let mut peer = self.dial(world, Some(who));
        if self == Self::Blob {
            peer.say(&request("c", "connect", &json!({ "version": "1" }))).await;
            peer.say(&request("s", "sessions.switch", &json!({ "sessionId": SESSION }))).await;
            peer.until(|frame| frame["event"] == "session_changed").await;
        }
        peer.rest().await;
        peer
    }

    /// A person's message.
    pub(super) fn message(self, id: &str, text: &str) -> Value {
        match self {
            Self::Blob => request(id, "agent", &json!({ "message": text })),
            Self::Pi => json!({
                "type": "prompt", "id": id, "message": text, "streamingBehavior": "followUp",
            }),
            Self::Control => json!({
                "type": "user", "uuid": id, "message": { "role": "user", "content": text },
                "parent_tool_use_id": null, "session_id": "",
            }),
            Self::Webchannel => json!({
                "v": 1, "type": "user_message", "session_id": SESSION, "request_id": id,
                "payload": { "access_token": "ada", "content": text },
            }),
        }
    }

    /// Something that is answered once it is recorded; see [`ANSWERING`].
    pub(super) fn question(self, id: &str) -> Value {
        match self {
            Self::Blob | Self::Pi | Self::Webchannel => self.message(id, "hi"),
            Self::Control => json!({
                "type": "control_request", "request_id": id,
                "request": { "subtype": "rename_session", "title": "kite" },
            }),
        }
    }

    /// Whether this answers that.
    pub(super) fn is_answer(self, frame: &Value, id: &str) -> bool {
        match self {
            Self::Blob => frame["type"] == "res" && frame["id"] == id,
            Self::Pi => frame["type"] == "response" && frame["id"] == id,
            Self::Control => {
                frame["type"] == "control_response" && frame["response"]["request_id"] == id
            }
            Self::Webchannel => frame["type"] == "error" && frame["request_id"] == id,
        }
    }
}

pub(super) fn request(id: &str, method: &str, params: &Value) -> Value {
    let params = params.as_object().unwrap();
    json!({ "type": "req", "id": id, "method": method, "params": params })
}

pub(super) fn mentions(frame: &Value, what: &str) -> bool {
    frame.to_string().contains(what)
}

/// The numbers in `word-N.`, one for each time that the frames say it.
pub(super) fn words(frames: &[Value]) -> Vec<u64> {
    let mut numbers = vec![];
    for frame in frames {
        let text = frame.to_string();
        let found = text.split("word-").skip(1).filter_map(|rest| rest.split('.').next());
        numbers.extend(found.filter_map(|number| number.parse::<u64>().ok()));
    }
    numbers
}

pub(super) async fn say_words(machine: &mut Peer, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers.clone() {
        machine.reports(number, &format!("word-{number}.")).await;
    }
    machine.is_acknowledged(*numbers.end()).await;
}
