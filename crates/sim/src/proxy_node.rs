//! A machine of the simulated world: the real proxy with the demo agent, on a disk in memory.
//!
//! A crash may come between any two writes to the disk, and what was not synced may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agents::{File, demo};
use bytes::Bytes;
use domain::SessionId;
use proxy::catalog::Catalog;
use proxy::disk::{Crash, MemoryDisk};
use proxy::engine::{Fetch, FetchFault, Preparation, Prepared, Settings};
use proxy::host::{Host, Input};
use proxy::records::{Failing, MemoryRecords};
use relay::ports::Clock;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::clock::SimClock;
use crate::net::End;
use crate::rng::Rng;
use crate::sabotage::ProxyDisk;
use crate::uploads::SimUploads;

/// Writes within which a crash may come.
const CRASH_WITHIN_WRITES: u64 = 12;
/// The longest a proxy sleeps: clocks jump.
const NAP_MS_MAX: u64 = 1_000;

type SimHost = Host<ProxyDisk, MemoryRecords>;

/// Something for the proxy's process.
enum Deed {
    Dial(End),
    /// It stands still for so long.
    Pause(Duration),
}

/// What the world sees of it.
#[derive(Debug, Default)]
struct State {
    is_connected: bool,
    /// Every session that it ever had.
    sessions: BTreeSet<SessionId>,
    /// Those that it has, or of whose end the relay may not know.
    open: BTreeSet<SessionId>,
}

impl State {
    fn note(&mut self, host: &SimHost) {
        let book = host.book();
        self.open = book.sessions.keys().chain(book.closing.keys()).cloned().collect();
        self.sessions.extend(self.open.iter().cloned());
    }
}

/// A machine of the simulated world.
pub(crate) struct ProxyNode {
    machine: String,
    clock: SimClock,
    rng: Rng,
    disk: ProxyDisk,
    records: MemoryRecords,
    uploads: SimUploads,
    state: Arc<Mutex<State>>,
    running: Option<(AbortHandle, mpsc::UnboundedSender<Deed>)>,
    /// Until then its network is away.
    pub(crate) away_until: Option<Instant>,
}

impl ProxyNode {
    /// A machine with one demo session, running and not connected. With `lies` set, its disk
    /// says that it synced and did not.
    pub(crate) fn new(
        machine: &str,
        lies: bool,
        uploads: SimUploads,
        clock: SimClock,
        rng: Rng,
    ) -> Self {
        let mut node = Self {
            machine: machine.to_owned(),
            clock,
            rng,
            disk: ProxyDisk { disk: MemoryDisk::default(), lies },
            records: MemoryRecords::default(),
            uploads,
            state: Arc::default(),
            running: None,
            away_until: None,
        };
        node.restart();
        node
    }

    /// Its name.
    pub(crate) fn machine(&self) -> &str {
        &self.machine
    }

    /// Every session that it ever had.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.lock().sessions.iter().cloned().collect()
    }

    /// What a session's agent received, by the agent's own record.
    pub(crate) fn received(&self, session: &SessionId) -> Vec<demo::Line> {
        let lines = self.records.lines(session);
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Whether it runs and has no connection.
    pub(crate) fn wants_connection(&self) -> bool {
        let is_away = self.away_until.is_some_and(|until| until > Instant::now());
        !self.is_dead() && !is_away && !self.lock().is_connected
    }

    /// Whether it died of a disk that failed.
    pub(crate) fn is_dead(&self) -> bool {
        self.running.as_ref().is_none_or(|(task, _)| task.is_finished())
    }

    /// A connection to the relay is open.
    pub(crate) fn dial(&self, end: End) {
        self.does(Deed::Dial(end));
    }

    /// Its process is stopped for so long.
    pub(crate) fn pause(&self, pause: Duration) {
        self.does(Deed::Pause(pause));
    }

    fn does(&self, deed: Deed) {
        if let Some((_, deeds)) = &self.running {
            let _ = deeds.send(deed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dies: now, or in the middle of one of its next writes.
    pub(crate) fn crash(&mut self) {
        match self.rng.below(4) {
            0 => {
                if let Some((task, _)) = self.running.take() {
                    task.abort();
                }
            }
            1 => self.records.fail_next(Failing::Before),
            2 => self.records.fail_next(Failing::After),
            _ => self.disk.disk.fail_at(self.rng.below(CRASH_WITHIN_WRITES)),
        }
    }

    /// Starts again on what its disk has. One that has not died yet dies now.
    pub(crate) fn restart(&mut self) {
        if let Some((task, _)) = self.running.take() {
            task.abort();
        }
        let left = [Crash::KeepsNone, Crash::KeepsHalf, Crash::KeepsAll];
        self.disk.disk.crash(self.rng.pick(&left).copied().unwrap_or(Crash::KeepsAll));
        self.lock().is_connected = false;
        let settings = Settings {
            machine: self.machine.as_str().into(),
            version: "sim".to_owned(),
            agents: vec![demo::AGENT.into()],
            missing: BTreeMap::new(),
            details: vec![],
            workspaces: vec![],
            allowed_roots: vec![],
            has_demo: true,
            guards: proxy::config::Guards::default(),
        };
        let mut names = self.rng.fork();
        let machine = self.machine.clone();
        let ids = Box::new(move || format!("{machine}-{:016x}", names.next_u64()));
        let (disk, records) = (self.disk.clone(), self.records.clone());
        let drivers = Arc::new(Catalog::default()).drivers();
        let Ok(host) = Host::open(settings, disk, records, drivers, ids, self.clock.now()) else {
            return;
        };
        self.lock().note(&host);
        let (deeds, inbox) = mpsc::unbounded_channel();
        let process = Process {
            host,
            state: self.state.clone(),
            uploads: self.uploads.clone(),
            clock: self.clock.clone(),
            end: None,
        };
        let task = tokio::spawn(process.run(inbox));
        self.running = Some((task.abort_handle(), deeds));
    }
}

/// The proxy's process.
struct Process {
    host: SimHost,
    state: Arc<Mutex<State>>,
    uploads: SimUploads,
    clock: SimClock,
    end: Option<End>,
}

impl Process {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Deed>) {
        loop {
            let now = self.clock.now();
            let nap = self.host.deadline().map_or(NAP_MS_MAX, |at| at.ms_since(now));
            let nap = Duration::from_millis(nap.min(NAP_MS_MAX));
            let mut inputs = vec![];
            tokio::select! {
                biased;
                deed = inbox.recv() => match deed {
                    None => return,
                    Some(Deed::Pause(pause)) => tokio::time::sleep(pause).await,
                    Some(Deed::Dial(new)) => {
                        if self.end.is_some() {
                            inputs.push(Input::Disconnected);
                        }
                        self.connected(Some(new));
                        inputs.push(Input::Connected);
                    }
                },
                frame = receive(self.end.as_mut()) => if let Some(frame) = frame {
                    inputs.push(Input::Text(String::from_utf8_lossy(&frame).into_owned()));
                } else {
                    self.connected(None);
                    inputs.push(Input::Disconnected);
                },
                () = tokio::time::sleep(nap) => {}
            }
            // A disk that fails is a proxy that dies.
            if self.take(inputs).is_err() {
                self.connected(None);
                return;
            }
        }
    }

    /// Takes what happened, and whatever follows from it at once.
    fn take(&mut self, mut inputs: Vec<Input>) -> Result<(), proxy::Fault> {
        loop {
            let turn = self.host.handle(inputs, self.clock.now())?;
            self.state.lock().unwrap_or_else(PoisonError::into_inner).note(&self.host);
            inputs = turn.fetches.iter().map(|fetch| self.fetch(fetch)).collect();
            inputs.extend(turn.preparations.iter().map(prepared));
            let sent = turn.frames.iter().try_for_each(|frame| match self.end.as_mut() {
                Some(end) => end.send(frame),
                None => Ok(()),
            });
            if (sent.is_err() || turn.disconnect.is_some()) && self.end.is_some() {
                self.connected(None);
                inputs.push(Input::Disconnected);
            }
            if inputs.is_empty() {
                return Ok(());
            }
        }
    }

    /// Gets the files of a send, if the relay can be reached.
    fn fetch(&self, fetch: &Fetch) -> Input {
        let files = fetch.files.iter().map(|file| {
            let bytes = self.uploads.get(&file.id).filter(|_| self.end.is_some());
            let bytes = bytes.ok_or(FetchFault::Away)?;
            let (path, size_bytes) = (PathBuf::from(file.id.as_str()), bytes.len() as u64);
            Ok(File { name: file.name.clone(), path, size_bytes, image: None })
        });
        Input::Fetched(fetch.attempt.clone(), files.collect())
    }

    fn connected(&mut self, end: Option<End>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_connected = end.is_some();
        self.end = end;
    }
}

/// Nothing has to be looked at for a demo session.
fn prepared(preparation: &Preparation) -> Input {
    let workspace_path = preparation.workspace_path.clone();
    let prepared = Prepared { workspace_path, ..Prepared::default() };
    Input::Prepared(preparation.session.clone(), Ok(prepared))
}

async fn receive(end: Option<&mut End>) -> Option<Bytes> {
    match end {
        Some(end) => end.receive().await,
        None => std::future::pending().await,
    }
}
