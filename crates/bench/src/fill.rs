//! Databases with a history, written by the store itself and not through a relay.

use std::path::Path;

use domain::content::{Author, Message, Part};
use domain::session::status::{self, DownReason, Health, Meta, Via};
use domain::session::{Event, Recorded, Session, transcript};
use domain::{Content, Sequence, SessionId, Timestamp};
use store::{Append, Entry, Ledger as _, Retention, Snapshot, SqliteLedger, codec};

use super::trouble::{Outcome, Trouble};
use crate::lab::DATABASE_FILE_NAME;

const BEGIN: Timestamp = Timestamp(1_790_000_000_000);
const ENTRIES_A_COMMIT: u64 = 500;

/// Opens or makes the database of a data folder.
pub(crate) fn open(folder: &Path) -> Outcome<SqliteLedger> {
    Ok(SqliteLedger::open(&folder.join(DATABASE_FILE_NAME))?)
}

/// Writes a session of `events` events: it came up, its agent talked, and it went down.
pub(crate) fn session(
    ledger: &mut SqliteLedger,
    id: &SessionId,
    events: u64,
    words: &str,
) -> Outcome<()> {
    let epoch = ledger.acquire(id, "bench")?.epoch;
    let mut state = Session::default();
    let mut append = Append::new(id.clone(), epoch);
    for number in 1..=events {
        let event = match number {
            1 => came_up(),
            number if number == events => went_down(),
            number => said(number, words),
        };
        let at = BEGIN.plus_ms(number);
        let recorded = Recorded { sequence: Sequence(number), at, position: None, event };
        state.apply(&recorded);
        append.entries.push(Entry {
            sequence: recorded.sequence,
            at,
            body: codec::encode_event(&recorded),
        });
        if number.is_multiple_of(ENTRIES_A_COMMIT) || number == events {
            commit(ledger, append, &state)?;
            append = Append::new(id.clone(), epoch);
        }
    }
    Ok(())
}

fn commit(ledger: &mut SqliteLedger, mut append: Append, state: &Session) -> Outcome<()> {
    append.snapshot = Some(Snapshot { sequence: state.head(), body: codec::encode_session(state) });
    append.card = Some(codec::encode_card(&state.card()));
    if ledger.commit(&[append])?.iter().any(Result::is_err) {
        return Err(Trouble::new("the store rejected an append"));
    }
    while ledger.maintain(BEGIN, &Retention::default())? {}
    Ok(())
}

fn came_up() -> Event {
    Event::Status(status::Event::Up {
        via: Via { connection: "bench".into(), link: None },
        meta: Box::new(Meta::of_agent("bench".into())),
        health: Health::Healthy,
        activity: None,
    })
}

fn went_down() -> Event {
    Event::Status(status::Event::Down { reason: DownReason::ProxyDisconnected, since: None })
}

fn said(number: u64, words: &str) -> Event {
    Event::Transcript(transcript::Event::Message(Message {
        id: format!("bench-{number:08}").into(),
        author: Author::Assistant,
        parts: Content::Open(vec![Part::Text(words.to_owned())]),
        created_at: BEGIN.plus_ms(number),
        run: None,
        parent: None,
        digest: None,
    }))
}
