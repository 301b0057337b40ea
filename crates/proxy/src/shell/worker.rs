//! The thread that holds the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents::File;
use bytes::Bytes;
use domain::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::folder::{self, Folder};
use crate::disk::FileDisk;
use crate::engine::{Fetch, FetchFault, Ids, Settings};
use crate::host::{Host, Input, Turn};
use crate::journal::Attempt;
use crate::records::FileRecords;
use crate::{Fault, ProxyConfig};

/// Events that are taken at once, and served by one sync.
const BATCH_MAX: usize = 256;
/// The host looks up at least this often, whatever it waits for: wall clocks jump.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Something that happened outside of the thread.
pub(super) enum Event {
    Connected(mpsc::Sender<Bytes>),
    Text(String),
    Disconnected,
    Fetched(Attempt, Result<Vec<File>, FetchFault>),
}

/// A handle to the thread.
pub(super) struct Worker {
    ended: oneshot::Receiver<Result<(), Fault>>,
    is_over: bool,
}

impl Worker {
    /// Opens the data folder and starts the thread; what is wrong with the folder is told here.
    pub(super) fn spawn(
        config: &ProxyConfig,
        inbox: mpsc::Receiver<Event>,
        fetches: mpsc::Sender<Fetch>,
        greeted: Arc<AtomicBool>,
    ) -> Result<Self, Fault> {
        let Folder { journal, records, lock } = folder::open(&config.data)?;
        let host = Host::open(settings(config), journal, records, ids()?, now())?;
        if host.torn_bytes() > 0 {
            tracing::warn!(
                bytes = host.torn_bytes(),
                "the journal's end was cut off by a crash; nothing of it had been done"
            );
        }
        let (tell, ended) = oneshot::channel();
        let handle = Handle::current();
        let work = move || {
            let outcome = work(host, inbox, &fetches, &greeted, &handle);
            // Held until the host is gone.
            drop(lock);
            let _ = tell.send(outcome);
        };
        std::thread::Builder::new()
            .name("farhelm-proxy".to_owned())
            .spawn(work)
            .map_err(|error| Fault::disk("starting a thread", error))?;
        Ok(Self { ended, is_over: false })
    }

    /// Waits for the thread's end, which comes when its events end or something broke.
    pub(super) async fn ended(&mut self) -> Result<(), Fault> {
        if self.is_over {
            return Ok(());
        }
        let outcome = (&mut self.ended).await;
        self.is_over = true;
        outcome.unwrap_or(Err(Fault::Worker))
    }
}

fn work(
    mut host: Host<FileDisk, FileRecords>,
    mut inbox: mpsc::Receiver<Event>,
    fetches: &mpsc::Sender<Fetch>,
    greeted: &AtomicBool,
    handle: &Handle,
) -> Result<(), Fault> {
    let mut outgoing: Option<mpsc::Sender<Bytes>> = None;
    let mut events = Vec::with_capacity(BATCH_MAX);
    let mut put_off = vec![];
    loop {
        let due = host.deadline().map(|at| Duration::from_millis(at.ms_since(now())));
        let wait = due.unwrap_or(LOOK_UP).min(LOOK_UP);
        let heard =
            handle.block_on(async { timeout(wait, inbox.recv_many(&mut events, BATCH_MAX)).await });
        if heard == Ok(0) {
            return Ok(());
        }
        let mut inputs = std::mem::take(&mut put_off);
        for event in events.drain(..) {
            inputs.push(match event {
                Event::Connected(frames) => {
                    outgoing = Some(frames);
                    Input::Connected
                }
                Event::Text(text) => Input::Text(text),
                Event::Disconnected => {
                    outgoing = None;
                    Input::Disconnected
                }
                Event::Fetched(attempt, outcome) => Input::Fetched(attempt, outcome),
            });
        }
        let Turn { frames, disconnect, complaints, fetches: wanted } =
            host.handle(inputs, now())?;
        for failure in complaints {
            tracing::warn!(code = %failure.code, message = %failure.message, "the relay complained");
        }
        for fetch in wanted {
            // Never waited for: whoever gets the files may be waiting to say so.
            if let Err(full) = fetches.try_send(fetch) {
                let attempt = full.into_inner().attempt;
                put_off.push(Input::Fetched(attempt, Err(FetchFault::Away)));
            }
        }
        greeted.fetch_or(host.is_up(), Ordering::Relaxed);
        if let Some(connection) = &outgoing {
            for frame in frames {
                // A connection that is gone says so by its own event.
                if handle.block_on(connection.send(frame)).is_err() {
                    break;
                }
            }
        }
        if let Some(reason) = disconnect {
            tracing::info!(reason, "leaving the connection");
            outgoing = None;
        }
    }
}

fn settings(config: &ProxyConfig) -> Settings {
    let label = config.machine.clone().unwrap_or_else(hostname);
    Settings {
        machine: label.into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        agents: vec![agents::demo::AGENT.into()],
        workspaces: config.workspaces.clone(),
        allowed_roots: config.allowed_roots.clone(),
        has_demo: config.has_demo,
    }
}

fn hostname() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "machine".to_owned() } else { name }
}

/// Random UUIDs. The system is asked once here, so that later it cannot fail.
fn ids() -> Result<Ids, Fault> {
    random()?;
    Ok(Box::new(|| random().unwrap_or_else(|_| format!("late-{}", now().0))))
}

fn random() -> Result<String, Fault> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| Fault::Randomness(error.to_string()))?;
    let number = u128::from_be_bytes(bytes);
    // Version 4, variant 1.
    let number = number & !(0xF << 76) | (4 << 76);
    let number = number & !(0x3 << 62) | (2 << 62);
    let hex = format!("{number:032x}");
    let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(groups.join("-"))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_random_uuids_that_the_relay_takes() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36);
        assert_eq!(&one[14..15], "4");
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"));
        assert!(domain::SessionId::parse(&one).is_some());
    }
}
