//! Tests that need a database file, and how the common story opens one.

use std::path::PathBuf;

use domain::{SessionId, Timestamp};

use super::SqliteLedger;
use crate::story::{Backend, acquire, append, read, sequences};
use crate::{Append, AppendRefused, Fault, Lease, Ledger, Reader, Retention, Vault};

/// A database in a folder of its own, folded when the story asks for it.
pub(crate) struct File {
    folder: tempfile::TempDir,
}

impl File {
    fn path(&self) -> PathBuf {
        self.folder.path().join("farhelm.db")
    }

    /// Overwrites what is found in the file, and says how often.
    fn spoil(&self, mark: &[u8]) -> usize {
        let mut bytes = std::fs::read(self.path()).unwrap();
        let mut found = 0;
        let mut at = 0;
        while at + mark.len() <= bytes.len() {
            if bytes[at..].starts_with(mark) {
                bytes[at + mark.len() / 2] ^= 0xff;
                found += 1;
                at += mark.len();
            }
            at += 1;
        }
        std::fs::write(self.path(), bytes).unwrap();
        found
    }
}

impl Backend for File {
    type Ledger = SqliteLedger;
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
    fn open(&self) -> Result<SqliteLedger, Fault> {
        SqliteLedger::open(&self.path())
    }
    fn settle(ledger: &mut SqliteLedger) {
        ledger.fold(None).unwrap();
        ledger.checkpoint().unwrap();
    }
    fn set_full(&self, ledger: &mut SqliteLedger, full: bool) {
        // One page is less than there is, so SQLite takes what there is.
        ledger.limit_pages(full.then_some(1)).unwrap();
    }
    fn damage(&self, _: &SessionId, mark: &[u8]) {
        assert!(self.spoil(mark) > 0, "the mark is in the file");
    }
}

/// The same, folded after every commit.
pub(crate) struct FoldedFile(File);

pub(crate) struct FoldingLedger(SqliteLedger);

impl Backend for FoldedFile {
    type Ledger = FoldingLedger;
    fn new() -> Self {
        Self(File::new())
    }
    fn open(&self) -> Result<FoldingLedger, Fault> {
        self.0.open().map(FoldingLedger)
    }
    fn settle(ledger: &mut FoldingLedger) {
        File::settle(&mut ledger.0);
    }
    fn set_full(&self, ledger: &mut FoldingLedger, full: bool) {
        self.0.set_full(&mut ledger.0, full);
    }
    fn damage(&self, stream: &SessionId, mark: &[u8]) {
        self.0.damage(stream, mark);
    }
}

impl Ledger for FoldingLedger {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.0.acquire(stream, owner)
    }
    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        let verdicts = self.0.commit(group)?;
        match self.0.fold(None) {
            // The commit stands; a later fold brings it in.
            Ok(()) | Err(Fault::Full) => Ok(verdicts),
            Err(fault) => Err(fault),
        }
    }
    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.0.erase(stream)
    }
    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.0.maintain(now, retention)
    }
    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        self.0.reader()
    }
    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.0.vault()
    }
    fn reopen(&mut self) -> Result<(), Fault> {
        self.0.reopen()
    }
}

#[test]
fn the_second_process_is_told_who_has_the_folder() {
    let file = File::new();
    let _ledger = file.open().unwrap();
    let sentence = file.open().unwrap_err().to_string();
    assert!(sentence.contains(&format!("process {}", std::process::id())), "{sentence}");
    assert!(sentence.contains("--data"), "{sentence}");
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let file = File::new();
    drop(SqliteLedger::open_with(&file.path(), NEXT).unwrap());
    let before = std::fs::read(file.path()).unwrap();
    let fault = file.open().unwrap_err();
    assert!(matches!(fault, Fault::NewerVersion { found: 2, known: 1, .. }), "{fault}");
    assert!(fault.to_string().contains("newer release"));
    assert_eq!(std::fs::read(file.path()).unwrap(), before);
}

/// As if a later release had one more migration.
const NEXT: &[&str] = &[super::schema::MIGRATIONS[0], "ALTER TABLE streams ADD COLUMN later TEXT"];
/// A later release whose migration fails half way.
const BROKEN_NEXT: &[&str] =
    &[super::schema::MIGRATIONS[0], "ALTER TABLE streams ADD COLUMN later TEXT; SELECT nonsense"];

#[test]
fn a_copy_is_made_before_a_migration() {
    let file = File::new();
    let mut ledger = file.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    ledger.commit(&[append("one", epoch, 1..=3)]).unwrap();
    drop(ledger);
    let copy = file.folder.path().join("farhelm.db.before-v2");
    assert!(!copy.exists(), "a new database needs none");
    assert!(SqliteLedger::open_with(&file.path(), BROKEN_NEXT).is_err());
    drop(file.open().expect("a failed migration leaves the old version"));
    let ledger = SqliteLedger::open_with(&file.path(), NEXT).unwrap();
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2, 3]);
    drop(ledger);
    let older = File::new();
    std::fs::copy(copy, older.path()).unwrap();
    assert_eq!(sequences(&read(&older.open().unwrap(), "one", 0)), [1, 2, 3]);
}

#[test]
fn a_broken_header_or_a_foreign_file_is_refused_and_left_alone() {
    let file = File::new();
    drop(file.open().unwrap());
    let sound = std::fs::read(file.path()).unwrap();
    let mut magic = sound.clone();
    magic[3] ^= 0xff;
    let mut page_size = sound.clone();
    page_size[16..18].copy_from_slice(&[0x12, 0x34]);
    let mut foreign = sound.clone();
    foreign[68..72].copy_from_slice(&[0; 4]);
    let short = sound[..50].to_vec();
    for broken in [magic, page_size, foreign, short, b"hello".to_vec()] {
        std::fs::write(file.path(), &broken).unwrap();
        let fault = file.open().unwrap_err();
        assert!(matches!(fault, Fault::NotALedger { .. }), "{fault:?}");
        assert!(fault.to_string().contains("restore a backup"));
        assert_eq!(std::fs::read(file.path()).unwrap(), broken);
    }
    std::fs::write(file.path(), sound).unwrap();
    file.open().unwrap();
}

#[test]
fn a_crash_between_statements_leaves_the_last_commit() {
    let file = File::new();
    let mut ledger = file.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    ledger.commit(&[append("one", epoch, 1..=3)]).unwrap();
    // What a killed process leaves behind in the middle of a fold: the files as they are now,
    // with a transaction open that has deleted the journal and spilled to the log.
    let connection = ledger.connection.as_mut().unwrap();
    connection.pragma_update(None, "cache_size", 1).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE; DELETE FROM journal").unwrap();
    for _ in 0..200 {
        connection
            .execute("INSERT INTO segments (stream, first, last, at_first, at_last, checksum, body) VALUES (1, 1, (SELECT count(*) FROM segments), 1, 1, 0, zeroblob(9000))", [])
            .unwrap();
    }
    let crashed = File::new();
    for suffix in ["", "-wal"] {
        let name = |file: &File| super::schema::with_suffix(&file.path(), suffix);
        std::fs::copy(name(&file), name(&crashed)).unwrap();
    }
    let spilled = std::fs::metadata(super::schema::with_suffix(&crashed.path(), "-wal")).unwrap();
    assert!(spilled.len() > 1_000_000, "the transaction reached the log");
    let mut after = crashed.open().unwrap();
    assert_eq!(sequences(&read(&after, "one", 0)), [1, 2, 3]);
    assert_eq!(after.commit(&[append("one", epoch, 4..=4)]).unwrap(), [Ok(())]);
    drop(after);
    let mut after = crashed.open().unwrap();
    File::settle(&mut after);
    assert_eq!(sequences(&read(&after, "one", 0)), [1, 2, 3, 4]);
}

#[test]
fn a_torn_log_loses_only_the_commit_that_was_not_answered() {
    let file = File::new();
    let mut ledger = file.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let log = super::schema::with_suffix(&file.path(), "-wal");
    let mut lengths = vec![];
    for number in 1..=5 {
        ledger.commit(&[append("one", epoch, number..=number)]).unwrap();
        // Behind the last commit lies room that was made in advance.
        let written = std::fs::read(&log).unwrap();
        let last = written.iter().rposition(|byte| *byte != 0).unwrap();
        let (header, frame) = (32, 24 + 4096);
        lengths.push(header + ((last - header) / frame + 1) * frame);
    }
    let (database, log) = (std::fs::read(file.path()).unwrap(), std::fs::read(&log).unwrap());
    for (committed, pair) in (1..).zip(lengths.windows(2)) {
        for cut in [pair[0], pair[0] + 10, pair[1] - 1] {
            let crashed = File::new();
            std::fs::write(crashed.path(), &database).unwrap();
            let torn = super::schema::with_suffix(&crashed.path(), "-wal");
            std::fs::write(torn, &log[..cut]).unwrap();
            let after = crashed.open().unwrap();
            let expected: Vec<u64> = (1..=committed).collect();
            assert_eq!(sequences(&read(&after, "one", 0)), expected);
        }
    }
}

#[test]
fn an_erased_body_is_no_longer_in_the_files() {
    let file = File::new();
    let mut ledger = file.open().unwrap();
    let epoch = acquire(&mut ledger, "secret");
    ledger.commit(&[append("secret", epoch, 1..=3)]).unwrap();
    ledger.erase(&"secret".into()).unwrap();
    drop(ledger);
    assert_eq!(file.spoil(b"secret 2"), 0);
}

#[test]
fn a_whole_bad_page_refuses_its_own_stream_only() {
    const PAGE: usize = 4096;
    let file = File::new();
    let mut ledger = file.open().unwrap();
    for (stream, fill) in [("one", b'1'), ("two", b'2')] {
        let epoch = acquire(&mut ledger, stream);
        let mut large = append(stream, epoch, 1..=1);
        large.entries[0].body = vec![fill; 6000];
        ledger.commit(&[large]).unwrap();
        File::settle(&mut ledger);
    }
    // Pages that hold nothing any more may hold the same bytes: only those in use are meant.
    let used: Vec<i64> = {
        let connection = ledger.connection.as_ref().unwrap();
        let mut statement = connection
            .prepare("SELECT pageno FROM dbstat WHERE name = 'segments' AND pagetype = 'overflow'")
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    drop(ledger);
    let mut bytes = std::fs::read(file.path()).unwrap();
    let mut bad = 0;
    for number in used {
        let number = usize::try_from(number).unwrap();
        let page = &mut bytes[(number - 1) * PAGE..number * PAGE];
        if page.ends_with(&[b'2'; 100]) {
            page.fill(0xff);
            bad += 1;
        }
    }
    assert!(bad > 0, "there is something to spoil");
    std::fs::write(file.path(), bytes).unwrap();
    let mut ledger = file.open().unwrap();
    let mut reader = ledger.reader().unwrap();
    let two = reader.events(&"two".into(), domain::Sequence(0), None, 10, usize::MAX);
    assert!(matches!(two, Err(Fault::Corrupt { stream: Some(_), .. })), "{two:?}");
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1]);
    // Folding more into the bad stream meets the page again; the other one goes on.
    let epoch = acquire(&mut ledger, "one");
    let hurt = acquire(&mut ledger, "two");
    let mut more = append("two", hurt, 2..=2);
    more.entries[0].body = vec![b'2'; 6000];
    ledger.commit(&[append("one", epoch, 2..=2), more]).unwrap();
    File::settle(&mut ledger);
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2]);
    for _ in 0..2 {
        let group = [append("one", epoch, 3..=3), append("two", hurt, 3..=3)];
        let verdicts = ledger.commit(&group).unwrap();
        assert!(matches!(verdicts[1], Err(AppendRefused::Corrupt { .. })), "{verdicts:?}");
        let fault = ledger.acquire(&"two".into(), "story").unwrap_err();
        assert!(fault.to_string().contains("session two"), "{fault}");
        File::settle(&mut ledger);
    }
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2, 3]);
    // What could not be folded is still in the journal.
    let kept = "SELECT count(*) FROM journal";
    let kept: i64 = ledger.connection().unwrap().query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}
