//! A system that is broken on purpose, to show that the simulation would notice.
//!
//! Every fault sits in a port: the ledger, its readers, the proxy's disk, the door, the sockets,
//! the gate's view of a dialect, the policy. Nothing of it is in the product.
//!
//! Not here: faults that the product must survive (`world`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use domain::{MessageId, Sequence, SessionId, Timestamp};
use proxy::disk::{Disk, MemoryDisk};
use serde_json::{Value, json};
use store::{
    Append, AppendRefused, Fault, Lease, Ledger, Page, Reader, Retention, StreamRow, Vault, codec,
};

/// Pages up to this length are read by connections; the relay itself reads longer ones.
const CLIENT_PAGE_MAX: usize = 500;

/// Declares the kinds together with the list of all of them, so that none can be forgotten.
macro_rules! sabotages {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What is broken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum Sabotage {
            /// Nothing.
            #[default]
            None,
            $($(#[$doc])* $name,)*
        }

        impl Sabotage {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

sabotages! {
    /// Now and then a commit is reported as done and is not.
    DropsCommits,
    /// Every commit is reported as done and happens with the next one: a crash loses the last.
    AnswersEarly,
    /// The proxy says that its inbox is on disk before it is: what a crash takes is delivered
    /// again.
    DeliversTwice,
    /// Sends wait for their machine for ever.
    ForgetsDeadlines,
    /// A connection that reads the ledger is now and then given the page after the one it asked
    /// for.
    SkipsPages,
    /// Now and then a connection is shown an event a second time.
    ShowsTwice,
    /// Now and then an event is recorded under the number of the one before.
    ReusesSequences,
    /// A revoked credential stays good.
    IgnoresRevocations,
    /// Now and then a connection reads words that nobody said.
    ChangesWords,
    /// What is erased stays.
    KeepsErased,
    /// Once one session is damaged, all of them refuse.
    SpreadsDamage,
    /// Nobody is told which session their launch led to.
    ForgetsLaunches,
    /// Two sends that leave for a machine together change places.
    SwapsOrders,
    /// A client that is told events again reads words that nobody said, and only then.
    ChangesRepeats,
    /// The messages that replace a forgotten history are other ones.
    ChangesSnapshots,
    /// A send that was accepted is told as refused.
    RefusesAccepted,
}

/// One commit in so many is dropped.
const DROPS_ONE_IN: u64 = 40;
/// One entry in so many has its predecessor's number.
const REUSES_ONE_IN: u64 = 50;
/// One page in so many is skipped, or altered.
const SPOILS_ONE_PAGE_IN: u64 = 3;

/// A ledger that lies.
pub(crate) struct Saboteur {
    ledger: Box<dyn Ledger>,
    sabotage: Sabotage,
    commits: u64,
    entries: u64,
    promised: Vec<Append>,
    pages: Arc<AtomicU64>,
    is_hurt: Arc<AtomicBool>,
}

impl Saboteur {
    pub(crate) fn new(ledger: Box<dyn Ledger>, sabotage: Sabotage) -> Self {
        let (pages, is_hurt) = (Arc::default(), Arc::default());
        Self { ledger, sabotage, commits: 0, entries: 0, promised: vec![], pages, is_hurt }
    }

    fn keep_promises(&mut self) -> Result<(), Fault> {
        let promised = std::mem::take(&mut self.promised);
        if promised.is_empty() { Ok(()) } else { self.ledger.commit(&promised).map(drop) }
    }

    /// The same group with an event here and there under the number of the one before.
    fn renumbered(&mut self, group: &[Append]) -> Vec<Append> {
        let mut group = group.to_vec();
        for entry in group.iter_mut().flat_map(|append| &mut append.entries) {
            self.entries += 1;
            if self.entries.is_multiple_of(REUSES_ONE_IN)
                && let Ok(mut recorded) = codec::decode_event(&entry.body)
            {
                recorded.sequence = Sequence(recorded.sequence.0.saturating_sub(1));
                entry.body = codec::encode_event(&recorded);
            }
        }
        group
    }
}

impl Ledger for Saboteur {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.keep_promises()?;
        let lease = self.ledger.acquire(stream, owner);
        if matches!(lease, Err(Fault::Corrupt { .. })) {
            self.is_hurt.store(true, Ordering::Relaxed);
        }
        if self.sabotage == Sabotage::SpreadsDamage && self.is_hurt.load(Ordering::Relaxed) {
            let (stream, detail) = (Some(stream.clone()), "another one is damaged".to_owned());
            return Err(Fault::Corrupt { stream, detail });
        }
        lease
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        self.commits += 1;
        match self.sabotage {
            Sabotage::DropsCommits if self.commits.is_multiple_of(DROPS_ONE_IN) => {
                Ok(group.iter().map(|_| Ok(())).collect())
            }
            Sabotage::AnswersEarly => {
                self.keep_promises()?;
                self.promised = group.to_vec();
                Ok(group.iter().map(|_| Ok(())).collect())
            }
            Sabotage::ReusesSequences => {
                let group = self.renumbered(group);
                self.ledger.commit(&group)
            }
            Sabotage::None
            | Sabotage::DropsCommits
            | Sabotage::DeliversTwice
            | Sabotage::ForgetsDeadlines
            | Sabotage::SkipsPages
            | Sabotage::ShowsTwice
            | Sabotage::IgnoresRevocations
            | Sabotage::ChangesWords
            | Sabotage::KeepsErased
            | Sabotage::SpreadsDamage
            | Sabotage::ForgetsLaunches
            | Sabotage::SwapsOrders
            | Sabotage::ChangesRepeats
            | Sabotage::ChangesSnapshots
            | Sabotage::RefusesAccepted => self.ledger.commit(group),
        }
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        if self.sabotage == Sabotage::KeepsErased {
            return Ok(());
        }
        self.ledger.erase(stream)
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.ledger.maintain(now, retention)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        let (reader, sabotage, pages) = (self.ledger.reader()?, self.sabotage, self.pages.clone());
        Ok(match sabotage {
            Sabotage::SkipsPages | Sabotage::ChangesWords | Sabotage::SpreadsDamage => {
                Box::new(Misreader { reader, sabotage, pages, is_hurt: self.is_hurt.clone() })
            }
            Sabotage::None
            | Sabotage::DropsCommits
            | Sabotage::AnswersEarly
            | Sabotage::DeliversTwice
            | Sabotage::ForgetsDeadlines
            | Sabotage::ShowsTwice
            | Sabotage::ReusesSequences
            | Sabotage::IgnoresRevocations
            | Sabotage::KeepsErased
            | Sabotage::ForgetsLaunches
            | Sabotage::SwapsOrders
            | Sabotage::ChangesRepeats
            | Sabotage::ChangesSnapshots
            | Sabotage::RefusesAccepted => reader,
        })
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.ledger.vault()
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.ledger.reopen()
    }
}

/// A reader that gives something else than what is there.
struct Misreader {
    reader: Box<dyn Reader>,
    sabotage: Sabotage,
    pages: Arc<AtomicU64>,
    is_hurt: Arc<AtomicBool>,
}

impl Reader for Misreader {
    fn events(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<Page, Fault> {
        let page = self.reader.events(stream, after, upto, limit, limit_bytes);
        if matches!(page, Err(Fault::Corrupt { .. })) {
            self.is_hurt.store(true, Ordering::Relaxed);
        }
        let mut page = page?;
        if self.sabotage == Sabotage::SpreadsDamage {
            return Ok(page);
        }
        if limit > CLIENT_PAGE_MAX || page.entries.is_empty() {
            return Ok(page);
        }
        let pages = self.pages.fetch_add(1, Ordering::Relaxed) + 1;
        if !pages.is_multiple_of(SPOILS_ONE_PAGE_IN) {
            return Ok(page);
        }
        if self.sabotage == Sabotage::ChangesWords {
            for entry in &mut page.entries {
                entry.body = change_words(&String::from_utf8_lossy(&entry.body)).into_bytes();
            }
            return Ok(page);
        }
        let last = page.entries.last().map_or(after, |last| last.sequence);
        self.reader.events(stream, last, upto, limit, limit_bytes)
    }

    fn send_state(&mut self, stream: &SessionId, id: &MessageId) -> Result<Option<Vec<u8>>, Fault> {
        self.reader.send_state(stream, id)
    }

    fn stream(&mut self, stream: &SessionId) -> Result<Option<StreamRow>, Fault> {
        self.reader.stream(stream)
    }

    fn streams(&mut self) -> Result<Vec<StreamRow>, Fault> {
        self.reader.streams()
    }
}

/// Spoils what the relay sends on one connection.
pub(crate) struct Spoiler {
    sabotage: Sabotage,
    /// The last event of each session that was told on this connection.
    told: BTreeMap<String, u64>,
}

impl Spoiler {
    pub(crate) fn new(sabotage: Sabotage) -> Self {
        Self { sabotage, told: BTreeMap::new() }
    }

    /// Frames on their way out of the relay.
    pub(crate) fn spoil(&mut self, frames: &mut Vec<Bytes>) {
        let has = |frame: &Bytes, words: &[u8]| frame.windows(words.len()).any(|it| it == words);
        match self.sabotage {
            Sabotage::ForgetsLaunches => frames.retain(|frame| !has(frame, b"session_launch_ack")),
            Sabotage::SwapsOrders => {
                let is_order = |frame: &Bytes| has(frame, b"\"send_message\"");
                let together = |pair: &[Bytes]| pair.iter().all(is_order);
                if let Some(place) = frames.windows(2).position(together) {
                    frames.swap(place, place + 1);
                }
            }
            Sabotage::ChangesRepeats => {
                for frame in frames {
                    if let Some(changed) = self.change_repeats(frame) {
                        *frame = changed;
                    }
                }
            }
            Sabotage::ChangesSnapshots => {
                for frame in frames.iter_mut().filter(|it| has(it, b"\"history_snapshot\"")) {
                    *frame = change_words(&String::from_utf8_lossy(frame)).into();
                }
            }
            Sabotage::RefusesAccepted => {
                let is_accepted = |frame: &Bytes| has(frame, b"\"message_accepted\"");
                if let Some(place) = frames.iter().position(is_accepted)
                    && let Some(refusal) = refusal_of(&frames[place])
                {
                    frames.insert(place, refusal);
                }
            }
            Sabotage::None
            | Sabotage::DropsCommits
            | Sabotage::AnswersEarly
            | Sabotage::DeliversTwice
            | Sabotage::ForgetsDeadlines
            | Sabotage::SkipsPages
            | Sabotage::ShowsTwice
            | Sabotage::ReusesSequences
            | Sabotage::IgnoresRevocations
            | Sabotage::ChangesWords
            | Sabotage::KeepsErased
            | Sabotage::SpreadsDamage => {}
        }
    }

    /// The same page with other words in the events that were told before. Those that are new to
    /// the client stay as they are: it would show them.
    fn change_repeats(&mut self, frame: &Bytes) -> Option<Bytes> {
        let mut frame: Value = serde_json::from_slice(frame).ok()?;
        let told = self.told.entry(frame["session_id"].as_str()?.to_owned()).or_default();
        match frame["type"].as_str()? {
            "history_delta" => {
                let last = frame["last_sequence"].as_u64()?;
                for event in frame["events"].as_array_mut()? {
                    if event["sequence"].as_u64()? <= *told {
                        *event = serde_json::from_str(&change_words(&event.to_string())).ok()?;
                    }
                }
                *told = last.max(*told);
                Some(frame.to_string().into())
            }
            "history_snapshot" => {
                // The client begins again from here.
                *told = frame["last_sequence"].as_u64()?;
                None
            }
            _ => {
                *told = frame["sequence"].as_u64()?.max(*told);
                None
            }
        }
    }
}

fn change_words(text: &str) -> String {
    text.replace("echo", "ehco")
}

/// What a client would be told if the send of this `message_accepted` had been refused. The sends
/// at the end of a world are spared: what is told of those is compared in another way (`rest`).
fn refusal_of(accepted: &Bytes) -> Option<Bytes> {
    let accepted: Value = serde_json::from_slice(accepted).ok()?;
    let id = accepted["client_message_id"].as_str().filter(|id| !id.starts_with("probe-"))?;
    let refusal = json!({
        "type": "message_failed", "protocol_version": 1, "session_id": accepted["session_id"],
        "client_message_id": id, "error": { "code": "session_unknown" },
    });
    Some(refusal.to_string().into())
}

/// A proxy's disk. A lying one syncs nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProxyDisk {
    pub(crate) disk: MemoryDisk,
    pub(crate) lies: bool,
}

impl Disk for ProxyDisk {
    fn read(&mut self) -> std::io::Result<Vec<u8>> {
        self.disk.read()
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.disk.append(bytes)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        if self.lies { Ok(()) } else { self.disk.sync() }
    }

    fn replace(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.disk.replace(bytes)
    }
}
