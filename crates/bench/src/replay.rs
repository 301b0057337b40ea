//! 100,000 events to a client that reconnects: from its hello to the last `history_delta`.
//!
//! The floor reads the same rows, undecoded, through the store in this process, in one call.

use std::fs;
use std::time::Instant;

use domain::{Sequence, SessionId};
use memchr::memmem;
use store::{Ledger as _, Reader, SqliteLedger};
use tempfile::TempDir;

use super::clients::{self, WORDS};
use super::fill;
use super::lab::Lab;
use super::process::{Ready, Relay};
use super::scenario::Contest;
use super::statistics::per_second;
use super::trouble::{Outcome, Trouble};
use super::websocket::Socket;
use crate::lab::DATABASE_FILE_NAME;

const EVENTS: u64 = 100_000;
const SESSION: &str = "bench-replay";
/// A `history_delta` says near its beginning or its end whether more follows.
const EDGE_BYTES: usize = 256;

pub(crate) struct Replay {
    reader: Box<dyn Reader>,
    ready: Ready,
    _ledger: SqliteLedger,
    _relay: Relay,
    _folders: [TempDir; 2],
}

impl Replay {
    pub(crate) fn prepare(lab: &Lab) -> Outcome<Self> {
        let (served, copied) = (lab.new_folder()?, lab.new_folder()?);
        fill::session(&mut fill::open(served.path())?, &SESSION.into(), EVENTS, WORDS)?;
        // A database has one process; the floor reads a copy.
        fs::copy(served.path().join(DATABASE_FILE_NAME), copied.path().join(DATABASE_FILE_NAME))?;
        let ledger = fill::open(copied.path())?;
        let rows = ledger.reader()?;
        let (relay, ready) = Relay::start(lab, served.path())?;
        let folders = [served, copied];
        let mut contest =
            Self { reader: rows, ready, _ledger: ledger, _relay: relay, _folders: folders };
        // Once with a look at every event, so that what is timed is known to be whole.
        let mut events = 0;
        contest.resume(|frame| events += memmem::find_iter(frame, b"\"event_id\"").count())?;
        if u64::try_from(events).unwrap_or(0) < EVENTS {
            let words = format!("only {events} of {EVENTS} events were replayed");
            return Err(Trouble::new(words));
        }
        contest.floor()?;
        Ok(contest)
    }

    /// Comes back with an empty cursor, and reads until nothing more follows.
    fn resume(&mut self, mut look: impl FnMut(&[u8])) -> Outcome<f64> {
        let address = self.ready.address()?;
        let mut socket = Socket::connect(address, clients::CLIENT_PATH, &self.ready.token)?;
        let hello = clients::hello("bench-back", &["paging"], &[(SESSION, 0)]);
        let begun = Instant::now();
        socket.send(&hello)?;
        loop {
            let frame = socket.next_of("history_delta")?;
            look(frame);
            let edges = [
                &frame[..frame.len().min(EDGE_BYTES)],
                &frame[frame.len().saturating_sub(EDGE_BYTES)..],
            ];
            if edges.iter().any(|edge| memmem::find(edge, b"\"has_more\":false").is_some()) {
                return Ok(per_second(EVENTS, begun.elapsed()));
            }
        }
    }
}

impl Contest for Replay {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        let session = SessionId::from(SESSION);
        let begun = Instant::now();
        let page = self.reader.events(&session, Sequence(0), None, usize::MAX, usize::MAX)?;
        let time = begun.elapsed();
        if page.head != Sequence(EVENTS) || page.has_more {
            return Err(Trouble::new("the floor did not read all rows"));
        }
        Ok(Some(per_second(EVENTS, time)))
    }

    fn measure(&mut self) -> Outcome<f64> {
        self.resume(|_| {})
    }
}
