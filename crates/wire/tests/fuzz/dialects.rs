//! The connections that are fuzzed, one line for each.

use wire::{blob, control, pi, webchannel};

use crate::fuzz::native::{NativeClient, NativeProxy};
use crate::fuzz::visiting::Visiting;
use crate::fuzz::world::{Peer, World};

/// One dialect: its name, which begins with the folder of its fixtures, what a client says first,
/// and a connection of it.
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) first: &'static [&'static str],
    pub(crate) open: fn(&mut World) -> Box<dyn Peer>,
}

const HELLO: &str = r#"{"type":"connection_hello","protocol_version":1,"peer_role":"browser","client_name":"t","features":["deltas","tools","runs","modes","queue"]}"#;
const PROXY: &str = r#"{"type":"connection_hello","protocol_version":1,"peer_role":"proxy","client_name":"t","machine_label":"laptop"}"#;
const CONNECT: &str = r#"{"type":"req","id":"c","method":"connect","params":{"version":"1"}}"#;

/// A new dialect is one more line.
pub(crate) const DIALECTS: [Dialect; 6] = [
    Dialect { name: "native", first: &[HELLO], open: |w| NativeClient::open(w) },
    Dialect { name: "native proxy", first: &[PROXY], open: |w| NativeProxy::open(w) },
    Dialect {
        name: "control",
        first: &[],
        open: |w| Visiting::open(w, "session=sess_1&partial=1", control::Connection::new),
    },
    Dialect {
        name: "blob",
        first: &[CONNECT],
        open: |w| Visiting::open(w, "", blob::Connection::new),
    },
    Dialect {
        name: "pi",
        first: &[],
        open: |w| Visiting::open(w, "session=sess_1", pi::Connection::new),
    },
    Dialect {
        name: "webchannel",
        first: &[],
        open: |w| {
            Visiting::open(w, "session_id=sess_1", |connection, who, query, limits, now| {
                webchannel::Connection::new(connection, who, query, limits, [7; 32], now)
            })
        },
    },
];
