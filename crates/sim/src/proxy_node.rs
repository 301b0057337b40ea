//! A machine of the simulated world: the real proxy with the demo agent, on a disk in memory.
//!
//! A crash may come between any two writes to the disk, and what was not synced may be lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agents::demo;
use bytes::Bytes;
use domain::{MessageId, SessionId};
use proxy::catalog::Catalog;
use proxy::disk::{Crash, MemoryDisk};
use proxy::engine::Settings;
use proxy::host::{Host, Input};
use proxy::records::{Failing, MemoryRecords};
use relay::ports::Clock;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::clock::SimClock;
use crate::net::End;
use crate::rng::Rng;

/// Writes within which a crash may come.
const CRASH_WITHIN_WRITES: u64 = 12;
/// The longest a proxy sleeps: clocks jump.
const NAP_MS_MAX: u64 = 1_000;

type SimHost = Host<MemoryDisk, MemoryRecords>;

/// A machine of the simulated world.
pub(crate) struct ProxyNode {
    machine: String,
    clock: SimClock,
    rng: Rng,
    disk: MemoryDisk,
    records: MemoryRecords,
    session: SessionId,
    connected: Arc<Mutex<bool>>,
    running: Option<(AbortHandle, mpsc::UnboundedSender<End>)>,
}

impl ProxyNode {
    /// A machine with one demo session, running and not connected.
    pub(crate) fn new(machine: &str, clock: SimClock, rng: Rng) -> Self {
        let mut node = Self {
            machine: machine.to_owned(),
            clock,
            rng,
            disk: MemoryDisk::default(),
            records: MemoryRecords::default(),
            session: "none".into(),
            connected: Arc::default(),
            running: None,
        };
        node.restart();
        node
    }

    /// Its demo session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// What its agent received, by the agent's own record.
    pub(crate) fn received(&self) -> Vec<MessageId> {
        let lines = self.records.lines(&self.session);
        let id = |line: &String| serde_json::from_str::<demo::Line>(line).ok().map(|line| line.id);
        lines.iter().filter_map(id).collect()
    }

    /// Whether it runs and has no connection.
    pub(crate) fn wants_connection(&self) -> bool {
        let connected = *self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        self.running.as_ref().is_some_and(|(task, _)| !task.is_finished()) && !connected
    }

    /// Whether it died of a disk that failed.
    pub(crate) fn is_dead(&self) -> bool {
        self.running.as_ref().is_none_or(|(task, _)| task.is_finished())
    }

    /// A connection to the relay is open.
    pub(crate) fn dial(&self, end: End) {
        if let Some((_, ends)) = &self.running {
            let _ = ends.send(end);
        }
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
            _ => self.disk.fail_at(self.rng.below(CRASH_WITHIN_WRITES)),
        }
    }

    /// Starts again on what its disk has. One that has not died yet dies now.
    pub(crate) fn restart(&mut self) {
        if let Some((task, _)) = self.running.take() {
            task.abort();
        }
        let left = [Crash::KeepsNone, Crash::KeepsHalf, Crash::KeepsAll];
        self.disk.crash(self.rng.pick(&left).copied().unwrap_or(Crash::KeepsAll));
        *self.connected.lock().unwrap_or_else(PoisonError::into_inner) = false;
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
        if let Some(session) = host.sessions().into_iter().next() {
            self.session = session;
        }
        let (ends, dialed) = mpsc::unbounded_channel();
        let (clock, connected) = (self.clock.clone(), self.connected.clone());
        let task = tokio::spawn(live(host, dialed, clock, connected));
        self.running = Some((task.abort_handle(), ends));
    }
}

async fn live(
    mut host: SimHost,
    mut dialed: mpsc::UnboundedReceiver<End>,
    clock: SimClock,
    connected: Arc<Mutex<bool>>,
) {
    let note = |is: bool| *connected.lock().unwrap_or_else(PoisonError::into_inner) = is;
    let mut end: Option<End> = None;
    loop {
        let now = clock.now();
        let nap = host.deadline().map_or(NAP_MS_MAX, |at| at.ms_since(now).min(NAP_MS_MAX));
        let mut inputs = vec![];
        tokio::select! {
            biased;
            new = dialed.recv() => {
                let Some(new) = new else { return };
                if end.is_some() {
                    inputs.push(Input::Disconnected);
                }
                end = Some(new);
                note(true);
                inputs.push(Input::Connected);
            }
            frame = receive(end.as_mut()) => if let Some(frame) = frame {
                inputs.push(Input::Text(String::from_utf8_lossy(&frame).into_owned()));
            } else {
                end = None;
                note(false);
                inputs.push(Input::Disconnected);
            },
            () = tokio::time::sleep(Duration::from_millis(nap)) => {}
        }
        // A disk that fails is a proxy that dies.
        let Ok(turn) = host.handle(inputs, clock.now()) else {
            note(false);
            return;
        };
        let sent = turn.frames.iter().try_for_each(|frame| match end.as_mut() {
            Some(end) => end.send(frame),
            None => Ok(()),
        });
        if sent.is_err() || turn.disconnect.is_some() {
            end = None;
            note(false);
            if host.handle([Input::Disconnected], clock.now()).is_err() {
                return;
            }
        }
    }
}

async fn receive(end: Option<&mut End>) -> Option<Bytes> {
    match end {
        Some(end) => end.receive().await,
        None => std::future::pending().await,
    }
}
