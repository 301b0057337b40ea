//! The cost of a start with many sessions. Measurements, on a real file and in real time:
//!
//! ```text
//! cargo test -p relay --release -- --ignored --nocapture a_start_with_ten_thousand_sessions
//! ```

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::session::delivery::Send;
use domain::session::status::{Health, Meta, Via};
use domain::session::{Change, Command, Event, Recorded, Session, delivery, status};
use domain::{Content, Sequence, SessionId, Timestamp};
use store::{Append, Entry, Ledger, Retention, Snapshot, SqliteLedger, codec};
use tokio::sync::oneshot;
use wire::native::Listing;

use super::world::{BEGINNING_MS, TestIds};
use crate::metrics::Metrics;
use crate::owner::Reply;
use crate::ports::{Clock, NoUploads, Ports};
use crate::{Books, Policies, Relay, Tasks};

const BEGINNING: Timestamp = Timestamp(BEGINNING_MS);

const SESSIONS: u64 = 10_000;
/// Appends in one commit of the preparation.
const COMMIT_APPENDS: usize = 500;
/// An hour before the relay of the measurement starts.
const LONG_AGO: Timestamp = Timestamp(BEGINNING.0 - 3_600_000);
const GRACE_MS: u64 = 30_000;

#[derive(Clone)]
struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        BEGINNING.plus_ms(u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// How the sessions were left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    /// Away, and nothing waits.
    Quiet,
    /// Away, and a send waits that is overdue.
    Overdue,
    /// Reached when the relay was killed, with a send that waits.
    Reached,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_start_with_ten_thousand_sessions() {
    for left in [Left::Quiet, Left::Overdue, Left::Reached] {
        let folder = std::env::temp_dir().join(format!("farhelm-starts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{left:?}.db"));
        fill(&path, left);
        let clock: Arc<dyn Clock> = Arc::new(RealClock(Instant::now()));
        let metrics = Arc::<Metrics>::default();
        let ledger: Box<dyn Ledger> = Box::new(SqliteLedger::open(&path).unwrap());
        let retention = Retention::default();
        let books =
            Books::on_threads(ledger, "test", retention, clock.clone(), metrics.clone()).unwrap();
        let tasks = Tasks::default();
        let (ids, uploads) = (Arc::new(TestIds::default()), Arc::new(NoUploads));
        let ports = Ports { clock, ids, uploads, tasks: tasks.clone() };
        let session = domain::session::Policy { send_grace_ms: GRACE_MS, ..<_>::default() };
        let policies = Policies { session, ..Policies::default() };
        let begun = Instant::now();
        let relay = Relay::start(books, ports, policies, metrics).await.unwrap();
        let started_ms = begun.elapsed().as_millis();
        // What a person waits who asks for something at once.
        let mut waits_ms = vec![];
        let mut owners = 0;
        let mut is_first = true;
        while is_first || pending(&relay, left) > 0 {
            is_first = false;
            let asked = Instant::now();
            let id = format!("fresh-{}", waits_ms.len());
            let via = Via { connection: "socket-1".into(), link: None };
            let meta = Box::new(Meta::of_agent("demo".into()));
            let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
            let (reply, answer) = oneshot::channel();
            relay.tell(&id.as_str().into(), Command::Relay(up), Reply::Once(reply)).await;
            answer.await.unwrap().unwrap();
            waits_ms.push(asked.elapsed().as_millis());
            owners = owners.max(relay.metrics().owners.load(Ordering::Relaxed));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let settled_ms = begun.elapsed().as_millis();
        let longest_ms = waits_ms.iter().max().unwrap();
        let _ = writeln!(
            std::io::stderr(),
            "{left:?}: start {started_ms} ms, all told after {settled_ms} ms, a command waits \
             {} ms at first and {longest_ms} ms at most ({} asked), {owners} owners at once",
            waits_ms[0],
            waits_ms.len(),
        );
        tasks.abort_all();
        drop(relay);
        let _ = std::fs::remove_dir_all(&folder);
    }
}

/// Sessions for which something is still to be recorded.
fn pending(relay: &Relay, left: Left) -> usize {
    let is_pending = |listing: &Listing| {
        let deadlines = listing.card.deadlines.unwrap_or_default();
        let is_old = !listing.id.as_str().starts_with("fresh");
        is_old && (deadlines.waiting_since.is_some() || listing.card.status.via().is_some())
    };
    match left {
        Left::Quiet => 0,
        Left::Overdue | Left::Reached => {
            relay.listings().iter().filter(|it| is_pending(it)).count()
        }
    }
}

fn fill(path: &std::path::Path, left: Left) {
    let mut ledger = SqliteLedger::open(path).unwrap();
    let mut appends = vec![];
    for number in 0..SESSIONS {
        let id: SessionId = format!("s{number}").as_str().into();
        let epoch = ledger.acquire(&id, "fill").unwrap().epoch;
        let mut append = Append::new(id, epoch);
        let mut state = Session::default();
        for (at, event) in (1..).zip(events(left)) {
            let (sequence, at) = (Sequence(at), LONG_AGO.plus_ms(at));
            let recorded = Recorded { sequence, at, position: None, event };
            state.apply(&recorded);
            let body = codec::encode_event(&recorded);
            append.entries.push(Entry { sequence, at, body });
        }
        append.snapshot =
            Some(Snapshot { sequence: state.head(), body: codec::encode_session(&state) });
        append.card = Some(codec::encode_card(&state.card()));
        appends.push(append);
        if appends.len() == COMMIT_APPENDS {
            let done = ledger.commit(&std::mem::take(&mut appends)).unwrap();
            assert!(done.iter().all(Result::is_ok));
        }
    }
}

fn events(left: Left) -> Vec<Event> {
    let up = Event::Status(status::Event::Up {
        via: Via { connection: "socket-0".into(), link: Some("journal-1".into()) },
        meta: Box::new(Meta::of_agent("demo".into())),
        health: Health::Healthy,
        activity: None,
    });
    let reason = status::DownReason::ProxyDisconnected;
    let down = Event::Status(status::Event::Down { reason, since: None });
    let accepted = Event::Delivery(delivery::Event::Accepted(Send {
        id: "m1".into(),
        text: Content::Open("run the old command".to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: LONG_AGO,
        digest: None,
    }));
    match left {
        Left::Quiet => vec![up, down],
        Left::Overdue => vec![up, down, accepted],
        Left::Reached => vec![up, accepted],
    }
}
