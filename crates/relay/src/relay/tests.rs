//! A relay that starts again, on a disk in memory and in paused time.

mod damage;
mod deadlines;
mod failed_commits;
mod silence;
mod socket;
mod starts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::session::delivery::Send;
use domain::session::prompts::{Choice, Expiry, Prompt};
use domain::session::status::{DownReason, Health, Meta, Via};
use domain::session::{Recorded, Report, Wish, Word};
use domain::{Content, Principal, Role};
use store::{Append, Ledger, MemoryDisk, MemoryLedger, Retention};
use tokio::time::Instant;

use super::*;
use crate::ports::{Clock, Ids, NoUploads};
use crate::tasks::Tasks;

/// When the stage's time begins.
const BEGINNING: Timestamp = Timestamp(1_790_000_000_000);
/// More than enough for anything that happens without anybody asking.
const SOON: Duration = Duration::from_secs(120);

/// The stage's clock follows its paused time.
#[derive(Clone)]
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        BEGINNING.plus_ms(u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

#[derive(Default)]
struct Names(AtomicU64);

impl Ids for Names {
    fn connection(&self) -> ConnectionId {
        format!("c{}", self.0.fetch_add(1, Ordering::Relaxed)).into()
    }
}

/// A relay that can be killed and started again.
struct Stage {
    disk: MemoryDisk,
    clock: PausedClock,
    policies: Policies,
    running: Option<(Relay, Tasks)>,
}

impl Stage {
    async fn new(send_grace_ms: u64) -> Self {
        let session = domain::session::Policy { send_grace_ms, ..<_>::default() };
        let policies = Policies { session, ..Policies::default() };
        let (disk, clock) = (MemoryDisk::new(), PausedClock(Instant::now()));
        let mut stage = Self { disk, clock, policies, running: None };
        stage.start().await;
        stage
    }

    async fn start(&mut self) {
        let tasks = Tasks::default();
        let ledger: Box<dyn Ledger> = Box::new(self.disk().await);
        let metrics = Arc::<Metrics>::default();
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let turn = || std::future::ready(());
        let books = Books::as_tasks(
            ledger,
            "test",
            Retention::default(),
            clock.clone(),
            metrics.clone(),
            &tasks,
            turn,
        );
        let (ids, uploads) = (Arc::new(Names::default()), Arc::new(NoUploads));
        let ports = Ports { clock, ids, uploads, tasks: tasks.clone() };
        let relay = Relay::start(books.unwrap(), ports, self.policies, metrics).await.unwrap();
        self.running = Some((relay, tasks));
    }

    /// The disk, once the tasks of a killed relay have let go of it.
    async fn disk(&self) -> MemoryLedger {
        loop {
            match self.disk.open() {
                Ok(ledger) => return ledger,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// SIGKILL.
    fn kill(&mut self) {
        if let Some((_, tasks)) = self.running.take() {
            tasks.abort_all();
        }
    }

    /// Puts something else than its relay did into a stream, while no relay runs.
    async fn spoil(&self, stream: &str, spoil: impl FnOnce(&mut Append, Sequence)) {
        let mut ledger = self.disk().await;
        let lease = ledger.acquire(&stream.into(), "test").unwrap();
        let mut append = Append::new(stream.into(), lease.epoch);
        spoil(&mut append, lease.head);
        ledger.commit(&[append]).unwrap()[0].clone().unwrap();
    }

    fn relay(&self) -> &Relay {
        &self.running.as_ref().unwrap().0
    }

    async fn tell(&self, session: &str, command: Command) {
        let (reply, answer) = oneshot::channel();
        self.relay().tell(&session.into(), command, Reply::Once(reply)).await;
        answer.await.unwrap().unwrap();
    }

    async fn up(&self, session: &str) {
        let via = Via { connection: "socket-1".into(), link: Some("journal-1".into()) };
        let meta = Box::new(Meta::of_agent("demo".into()));
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.tell(session, Command::Relay(up)).await;
    }

    async fn down(&self, session: &str) {
        let down = Change::Down { connection: None, reason: DownReason::ProxyDisconnected };
        self.tell(session, Command::Relay(down)).await;
    }

    /// A session whose machine was there and is away.
    async fn away(&self, session: &str) {
        self.up(session).await;
        self.down(session).await;
    }

    async fn send(&self, session: &str, id: &str) {
        self.try_send(session, id).await.unwrap();
    }

    async fn try_send(&self, session: &str, id: &str) -> Result<(), Denied> {
        let send = Send {
            id: id.into(),
            text: Content::Open("run the old command".to_owned()),
            attachments: vec![],
            mode: None,
            by: "ada".to_owned(),
            created_at: self.clock.now(),
            digest: None,
        };
        let command = Command::Person(ada(), Wish::Send { send, earlier: None });
        self.relay().command(&session.into(), command).await.map(drop)
    }

    async fn runs(&self, session: &str, run: &str) {
        let report = Report::RunStarted { run: run.into(), cause: None };
        let word = Word { connection: "socket-1".into(), position: None, report };
        self.tell(session, Command::Proxy(word)).await;
    }

    async fn ask(&self, session: &str, prompt: &str, timeout_ms: u64) {
        let choice = Choice {
            id: "no".into(),
            label: "No".into(),
            is_default: true,
            effect: None,
            wants_answers: false,
        };
        let at = self.clock.now().plus_ms(timeout_ms);
        let report = Report::Asked(Prompt {
            id: prompt.into(),
            text: Content::Open("Delete build/?".to_owned()),
            choices: vec![choice],
            expiry: Some(Expiry { at, timeout_ms, choice: Some("no".into()) }),
            detected_at: self.clock.now(),
            run: None,
            detail: None,
        });
        let word = Word { connection: "socket-1".into(), position: None, report };
        self.tell(session, Command::Proxy(word)).await;
    }

    async fn ledger(&self, session: &str) -> Vec<Recorded> {
        let (after, upto, limit) = (Sequence(0), None, usize::MAX);
        self.relay().history(&session.into(), after, upto, limit).await.unwrap().events
    }

    /// Waits until an event is recorded that nobody asks for.
    async fn recorded(&self, session: &str, what: impl Fn(&Recorded) -> bool) -> Recorded {
        let found = async {
            loop {
                if let Some(found) = self.ledger(session).await.into_iter().find(&what) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, found).await.expect("it is recorded")
    }
}

fn ada() -> Principal {
    Principal { credential: "ada".into(), role: Role::Owner, client: None, name: "ada".into() }
}
