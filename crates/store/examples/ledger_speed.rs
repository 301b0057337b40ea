//! Measures the ledger beside a raw file: `cargo run --release -p store --example ledger_speed`.
//!
//! Each round takes every contender once; medians are told. The figures are those of
//! docs/decisions/0002-ledger-schema.md.

use std::error::Error;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use domain::{Sequence, SessionId, Timestamp};
use rusqlite::Connection;
use store::{Append, Entry, Ledger, Retention, SqliteLedger};

const ROUNDS: usize = 5;
const STREAMS: usize = 256;
const BATCHES: usize = 800;
const BODY_BYTES: usize = 256;
const SINGLES: usize = 2000;
const READ_EVENTS: u64 = 100_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
    let at = |name: &str, round: usize| folder.path().join(format!("{name}{round}"));
    let mut out = std::io::stdout().lock();
    let mut rates: [Vec<f64>; 5] = Default::default();
    let mut singles: [Vec<f64>; 2] = Default::default();
    for round in 0..ROUNDS {
        rates[0].push(raw_batches(&at("raw", round))?);
        rates[1].push(row_batches(&at("rows", round), true)?);
        rates[2].push(row_batches(&at("plain", round), false)?);
        rates[3].push(ledger_batches(&at("ledger", round), false)?);
        rates[4].push(ledger_batches(&at("kept", round), true)?);
        singles[0].push(raw_single(&at("single", round))?);
        singles[1].push(ledger_single(&at("one", round))?);
    }
    let floor = median(&mut rates[0].clone());
    let names = [
        "raw file",
        "row per event, indexed",
        "row per event, no index",
        "ledger",
        "ledger, maintain after each batch",
    ];
    writeln!(out, "batch {STREAMS} over {STREAMS} streams, {BODY_BYTES} byte bodies, events/s")?;
    for (name, mut rates) in names.into_iter().zip(rates) {
        let rate = median(&mut rates);
        writeln!(out, "  {name:35} {rate:9.0}  {:4.0} %", rate / floor * 100.0)?;
    }
    let floor = median(&mut singles[0].clone());
    writeln!(out, "one event a commit, p50 in µs")?;
    for (name, mut times) in ["fdatasync", "ledger"].into_iter().zip(singles) {
        let time = median(&mut times);
        writeln!(out, "  {name:35} {time:9.0}  {:4.2} x", time / floor)?;
    }
    read_back(&mut out, &at("read", 0))?;
    open_large(&mut out, &at("large", 0))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn rate(events: usize, started: Instant) -> f64 {
    f64::from(u32::try_from(events).unwrap_or(u32::MAX)) / started.elapsed().as_secs_f64()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn preallocated(path: &Path, size_bytes: usize) -> Outcome<File> {
    let mut file = File::create(path)?;
    file.write_all(&vec![1; size_bytes])?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn raw_batches(path: &Path) -> Outcome<f64> {
    let batch = vec![7_u8; STREAMS * (BODY_BYTES + 24)];
    let mut file = preallocated(path, batch.len() * BATCHES)?;
    let started = Instant::now();
    for _ in 0..BATCHES {
        file.write_all(&batch)?;
        file.sync_data()?;
    }
    Ok(rate(BATCHES * STREAMS, started))
}

fn raw_single(path: &Path) -> Outcome<f64> {
    let mut file = preallocated(path, 4096 * SINGLES)?;
    let mut times = Vec::new();
    for _ in 0..SINGLES {
        let started = Instant::now();
        file.write_all(&[7; BODY_BYTES])?;
        file.sync_data()?;
        times.push(micros(started.elapsed()));
    }
    Ok(median(&mut times))
}

/// What the ledger would be with a row per event.
fn row_batches(path: &Path, indexed: bool) -> Outcome<f64> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 8192;
         CREATE TABLE log (position INTEGER PRIMARY KEY, stream, sequence, at, body BLOB)",
    )?;
    if indexed {
        connection.execute_batch("CREATE UNIQUE INDEX by_stream ON log (stream, sequence)")?;
    }
    let body = [7_u8; BODY_BYTES];
    let started = Instant::now();
    for sequence in 0..BATCHES {
        let transaction = connection.transaction()?;
        let mut insert = transaction
            .prepare_cached("INSERT INTO log (stream, sequence, at, body) VALUES (?, ?, ?, ?)")?;
        for stream in 0..STREAMS {
            insert.execute((stream.cast_signed(), sequence.cast_signed(), 1, &body[..]))?;
        }
        drop(insert);
        transaction.commit()?;
    }
    Ok(rate(BATCHES * STREAMS, started))
}

fn open(folder: &Path) -> Outcome<SqliteLedger> {
    std::fs::create_dir_all(folder)?;
    Ok(SqliteLedger::open(&folder.join("farhelm.db"))?)
}

fn entry(sequence: u64) -> Entry {
    Entry {
        sequence: Sequence(sequence),
        at: Timestamp(1_790_000_000_000 + sequence),
        body: vec![7; BODY_BYTES],
    }
}

fn ledger_batches(folder: &Path, maintained: bool) -> Outcome<f64> {
    let mut ledger = open(folder)?;
    let mut group = Vec::new();
    for number in 0..STREAMS {
        let stream = SessionId::from(format!("session_{number}"));
        let lease = ledger.acquire(&stream, "speed")?;
        let entries = vec![entry(0)];
        group.push(Append { entries, ..Append::new(stream, lease.epoch) });
    }
    let started = Instant::now();
    for _ in 0..BATCHES {
        for append in &mut group {
            for entry in &mut append.entries {
                entry.sequence = entry.sequence.next();
            }
        }
        let verdicts = ledger.commit(&group)?;
        if verdicts.iter().any(Result::is_err) {
            return Err("an append was refused".into());
        }
        if maintained {
            while ledger.maintain(Timestamp(0), &Retention::default())? {}
        }
    }
    Ok(rate(BATCHES * STREAMS, started))
}

fn ledger_single(folder: &Path) -> Outcome<f64> {
    let mut ledger = open(folder)?;
    let stream = SessionId::from("single");
    let lease = ledger.acquire(&stream, "speed")?;
    let mut times = Vec::new();
    for sequence in (1..).take(SINGLES) {
        let entries = vec![entry(sequence)];
        let append = Append { entries, ..Append::new(stream.clone(), lease.epoch) };
        let started = Instant::now();
        ledger.commit(&[append])?;
        times.push(micros(started.elapsed()));
        while ledger.maintain(Timestamp(0), &Retention::default())? {}
    }
    Ok(median(&mut times))
}

fn read_back(out: &mut impl Write, folder: &Path) -> Outcome<()> {
    let mut ledger = open(folder)?;
    let stream = SessionId::from("read");
    let others: Vec<SessionId> =
        (0..16).map(|number| SessionId::from(format!("other_{number}"))).collect();
    let epoch = ledger.acquire(&stream, "speed")?.epoch;
    let mut epochs = Vec::new();
    for other in &others {
        epochs.push(ledger.acquire(other, "speed")?.epoch);
    }
    for start in (0..READ_EVENTS).step_by(8) {
        let entries: Vec<Entry> = (start + 1..=start + 8).map(entry).collect();
        let mut group =
            vec![Append { entries: entries.clone(), ..Append::new(stream.clone(), epoch) }];
        for (other, epoch) in others.iter().zip(&epochs) {
            let entries = entries.iter().take(2).cloned().zip(start / 4 + 1..);
            let entries =
                entries.map(|(entry, number)| Entry { sequence: Sequence(number), ..entry });
            group.push(Append { entries: entries.collect(), ..Append::new(other.clone(), *epoch) });
        }
        ledger.commit(&group)?;
        while ledger.maintain(Timestamp(0), &Retention::default())? {}
    }
    let mut reader = ledger.reader()?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut cursor = Sequence(0);
        while cursor.0 < READ_EVENTS {
            let page = reader.events(&stream, cursor, None, 1000, 1 << 20)?;
            cursor = page.entries.last().ok_or("nothing more to read")?.sequence;
        }
        times.push(micros(started.elapsed()) / 1000.0);
    }
    writeln!(out, "reading {READ_EVENTS} events in pages of 1000: {:.1} ms", median(&mut times))?;
    Ok(())
}

fn open_large(out: &mut impl Write, folder: &Path) -> Outcome<()> {
    let mut ledger = open(folder)?;
    let streams = (0..64).map(|number| SessionId::from(format!("large_{number}")));
    let mut group = Vec::new();
    for stream in streams {
        let epoch = ledger.acquire(&stream, "speed")?.epoch;
        let entries = (1..=64).map(entry).collect();
        group.push(Append { entries, ..Append::new(stream, epoch) });
    }
    for _ in 0..900 {
        if ledger.commit(&group)?.iter().any(Result::is_err) {
            return Err("an append was refused".into());
        }
        for entry in group.iter_mut().flat_map(|append| &mut append.entries) {
            entry.sequence.0 += 64;
        }
    }
    drop(ledger);
    let size = std::fs::metadata(folder.join("farhelm.db"))?.len() / 1_000_000;
    let started = Instant::now();
    let mut ledger = open(folder)?;
    let opened = started.elapsed();
    let lease = ledger.acquire(&"large_1".into(), "speed")?;
    let entries = vec![entry(lease.head.0 + 1)];
    let verdict =
        ledger.commit(&[Append { entries, ..Append::new("large_1".into(), lease.epoch) }])?;
    let committed = started.elapsed();
    writeln!(
        out,
        "{size} MB: open {:.1} ms, first commit after {:.1} ms ({verdict:?})",
        micros(opened) / 1000.0,
        micros(committed) / 1000.0
    )?;
    Ok(())
}
