//! From the start of `farhelm up` to the first durable `message_accepted` over a socket.

use std::path::Path;
use std::time::Instant;

use domain::SessionId;
use serde_json::Value;
use tempfile::TempDir;

use super::clients::{self, CLIENT_PATH, WORDS};
use super::fill;
use super::lab::Lab;
use super::process::Relay;
use super::scenario::Contest;
use super::statistics::millis;
use super::trouble::Outcome;
use super::websocket::Socket;
use crate::lab::DATABASE_FILE_NAME;

/// Events of each session of the large database.
const EVENTS_A_SESSION: u64 = 2_000;
/// Sessions between two words about progress.
const SAY_EVERY: usize = 100;

pub(crate) struct ColdStart<'a> {
    lab: &'a Lab,
    /// `None`: a new folder each time.
    large: Option<TempDir>,
    turns: u32,
}

impl<'a> ColdStart<'a> {
    pub(crate) fn new(lab: &'a Lab) -> Self {
        Self { lab, large: None, turns: 0 }
    }

    pub(crate) fn with_large_database(lab: &'a Lab) -> Outcome<Self> {
        let folder = lab.new_folder()?;
        let words = [WORDS; 6].join("\n");
        let path = folder.path().join(DATABASE_FILE_NAME);
        let mut ledger = fill::open(folder.path())?;
        let mut size_bytes = 0;
        for number in 0_usize.. {
            if size_bytes >= lab.big_bytes {
                break;
            }
            let id = SessionId::from(format!("bench-{number:06}"));
            fill::session(&mut ledger, &id, EVENTS_A_SESSION, &words)?;
            size_bytes = path.metadata()?.len();
            if number % SAY_EVERY == 0 {
                let (made, wanted) = (size_bytes / 1_000_000, lab.big_bytes / 1_000_000);
                lab.say(&format!("  database: {made} of {wanted} MB"));
            }
        }
        Ok(Self { lab, large: Some(folder), turns: 0 })
    }

    fn start_on(&mut self, data: &Path) -> Outcome<f64> {
        self.turns += 1;
        let begun = Instant::now();
        let mut relay = Relay::spawn(self.lab, "up", data)?;
        let ready = relay.ready()?;
        let mut socket = Socket::connect(ready.address()?, CLIENT_PATH, &ready.token)?;
        socket.send(&clients::hello("bench-first", &[], &[]))?;
        let session = loop {
            let frame: Value = serde_json::from_slice(socket.next()?)?;
            if let Some(session) = clients::reachable(&frame).first() {
                break (*session).to_owned();
            }
        };
        socket.send(&clients::send_message(&session, &format!("bench-first-{}", self.turns)))?;
        socket.next_of("message_accepted")?;
        let time = begun.elapsed();
        relay.stop()?;
        Ok(millis(time))
    }
}

impl Contest for ColdStart<'_> {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        Ok(None)
    }

    fn measure(&mut self) -> Outcome<f64> {
        if let Some(folder) = &self.large {
            let path = folder.path().to_path_buf();
            return self.start_on(&path);
        }
        let folder = self.lab.new_folder()?;
        self.start_on(folder.path())
    }
}
