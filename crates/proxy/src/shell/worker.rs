//! The thread that holds the host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents::{File, Input as AgentInput, Kept, Picture};
use bytes::Bytes;
use domain::content::Failure;
use domain::{MessageId, SessionId, Timestamp};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::asides::{Asides, FOUND_MAX};
use super::folder::{self, Folder};
use super::outgoing::Outgoing;
use crate::aids::{self, Mortal};
use crate::catalog::Catalog;
use crate::discovery::Discovery;
use crate::disk::FileDisk;
use crate::engine::{Fetch, FetchFault, Ids, Settings};
use crate::host::{Act, Host, Input, Turn};
use crate::journal::Attempt;
use crate::panels::{self, Panels, ProfileSet};
use crate::processes::{self, HEARD_MAX, Heard, Processes};
use crate::records::FileRecords;
use crate::{Fault, ProxyConfig};

/// Events that are taken at once, and served by one sync.
const BATCH_MAX: usize = 256;
/// The host looks up at least this often, whatever it waits for: wall clocks jump.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Where it is noted which programs run.
const RUNNING_FOLDER: &str = "running";

/// Something that happened outside of the thread.
pub(super) enum Event {
    Connected(mpsc::Sender<Bytes>),
    Text(String),
    Disconnected,
    Fetched(Attempt, Result<Vec<File>, FetchFault>),
    /// What became of a picture.
    Kept(SessionId, MessageId, Kept),
}

/// What is done over the relay's HTTP API, beside the thread.
pub(super) struct Errands {
    pub(super) fetches: mpsc::Sender<Fetch>,
    pub(super) pictures: mpsc::Sender<(SessionId, Picture)>,
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
        errands: Errands,
        greeted: Arc<AtomicBool>,
    ) -> Result<Self, Fault> {
        let Folder { journal, records, lock } = folder::open(&config.data)?;
        let running = config.data.join(RUNNING_FOLDER);
        for session in processes::end_leftovers(&running) {
            tracing::info!(%session, "stopped a program that an earlier proxy left running");
        }
        let catalog = Arc::new(Catalog::new(&config.agents));
        let profiles = Arc::new(ProfileSet::load(config.ide.profiles.as_deref()));
        let profiles = watch::Sender::new(profiles);
        let settings = settings(config, &catalog);
        let guards = settings.guards;
        let (journal, drivers) =
            (Mortal(journal), panels::drivers(catalog.drivers(), profiles.subscribe()));
        let drivers = aids::watched(drivers);
        let host = Host::open(settings, journal, records, drivers, ids()?, now())?;
        if host.torn_bytes() > 0 {
            tracing::warn!(
                bytes = host.torn_bytes(),
                "a crash cut off the end of the journal; none of the lost entries had been acted on"
            );
        }
        let (tell, ended) = oneshot::channel();
        let handle = Handle::current();
        let (heard, said) = mpsc::channel(HEARD_MAX);
        let processes = Processes::new(heard, running, guards.memory_bytes_max, handle.clone());
        let (tell_found, found) = mpsc::channel(FOUND_MAX);
        let mut asides =
            Asides::new(config, &catalog, profiles.subscribe(), tell_found, handle.clone());
        asides.tidy(&config.data, host.sessions());
        let (tell_news, news) = mpsc::channel(panels::NEWS_MAX);
        let new_id = || random().ok();
        let panels = Panels::new(&config.ide, &config.data, profiles, tell_news, new_id, &handle);
        let work = move || {
            let (outgoing, put_off) = (None, vec![]);
            let mut work = Work { host, processes, panels, asides, outgoing, put_off };
            let heard = Sources { inbox, said, found, news };
            let outcome = work.go_on(heard, &errands, &greeted, &handle);
            handle.block_on(work.processes.end_all());
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

/// Where things come from.
struct Sources {
    inbox: mpsc::Receiver<Event>,
    said: mpsc::Receiver<Heard>,
    found: mpsc::Receiver<Input>,
    news: mpsc::Receiver<Input>,
}

struct Work {
    host: Host<Mortal<FileDisk>, FileRecords>,
    processes: Processes,
    panels: Panels,
    asides: Asides,
    outgoing: Option<Outgoing>,
    put_off: Vec<Input>,
}

impl Work {
    fn go_on(
        &mut self,
        mut sources: Sources,
        errands: &Errands,
        greeted: &AtomicBool,
        handle: &Handle,
    ) -> Result<(), Fault> {
        let Sources { inbox, said, found, news } = &mut sources;
        let (mut events, mut heard) =
            (Vec::with_capacity(BATCH_MAX), Vec::with_capacity(BATCH_MAX));
        let (mut asides, mut told) = (vec![], vec![]);
        // What the sessions want at their start does not wait for anybody.
        self.turn(vec![], errands)?;
        loop {
            let due = self.host.deadline().map(|at| Duration::from_millis(at.ms_since(now())));
            let wait = due.unwrap_or(LOOK_UP).min(LOOK_UP);
            // While too much waits for the relay, the agents' own pipes hold them back.
            let may_listen = !self.host.is_congested();
            let outgoing = &self.outgoing;
            let room = async {
                match outgoing {
                    Some(outgoing) => outgoing.room().await,
                    None => std::future::pending().await,
                }
            };
            let is_over = handle.block_on(async {
                tokio::select! {
                    taken = inbox.recv_many(&mut events, BATCH_MAX) => taken == 0,
                    _ = said.recv_many(&mut heard, BATCH_MAX), if may_listen => false,
                    _ = found.recv_many(&mut asides, BATCH_MAX) => false,
                    _ = news.recv_many(&mut told, BATCH_MAX), if may_listen => false,
                    () = room => false,
                    () = tokio::time::sleep(wait) => false,
                }
            });
            if is_over {
                return Ok(());
            }
            let mut inputs = std::mem::take(&mut self.put_off);
            for event in events.drain(..) {
                inputs.push(self.input(event));
            }
            inputs.append(&mut asides);
            inputs.append(&mut told);
            let current = heard.drain(..).filter(|heard| self.processes.is_current(heard));
            inputs.extend(current.map(|heard| Input::Agent(heard.session, heard.input)));
            self.turn(inputs, errands)?;
            greeted.fetch_or(self.host.is_up(), Ordering::Relaxed);
        }
    }

    fn input(&mut self, event: Event) -> Input {
        match event {
            Event::Connected(frames) => {
                self.outgoing = Some(Outgoing::new(frames));
                Input::Connected
            }
            Event::Text(text) => Input::Text(text),
            Event::Disconnected => {
                self.outgoing = None;
                Input::Disconnected
            }
            Event::Fetched(attempt, outcome) => Input::Fetched(attempt, outcome),
            Event::Kept(session, message, outcome) => {
                Input::Agent(session, AgentInput::Kept { message, outcome })
            }
        }
    }

    fn turn(&mut self, inputs: Vec<Input>, errands: &Errands) -> Result<(), Fault> {
        let mut turn = self.host.handle(inputs, now())?;
        self.put_off.extend(self.asides.begin(&mut turn));
        let Turn { frames, disconnect, complaints, fetches: wanted, acts, pictures, .. } = turn;
        for session in turn.changed_panels {
            self.panels.look_at(&session);
        }
        let refused = turn.panel_jobs.into_iter().filter_map(|job| self.panels.carry_out(job));
        self.put_off.extend(refused);
        for failure in complaints {
            tracing::warn!(
                code = %failure.code,
                message = %failure.message,
                "the relay reported an error"
            );
        }
        for (session, act) in acts {
            if matches!(act, Act::Forget(_)) {
                self.panels.forget(&session);
            }
            self.processes.carry_out(&session, act);
        }
        for fetch in wanted {
            // Never waited for: whoever gets the files may be waiting to say so.
            if let Err(full) = errands.fetches.try_send(fetch) {
                let attempt = full.into_inner().attempt;
                self.put_off.push(Input::Fetched(attempt, Err(FetchFault::Away)));
            }
        }
        for picture in pictures {
            if let Err(full) = errands.pictures.try_send(picture) {
                let (session, Picture { message, .. }) = full.into_inner();
                let outcome =
                    Err(Failure::new("rate_limited", "there are too many pictures at once"));
                self.put_off.push(Input::Agent(session, AgentInput::Kept { message, outcome }));
            }
        }
        if let Some(outgoing) = &mut self.outgoing
            && outgoing.send(frames).is_err()
        {
            tracing::warn!(
                "the relay reads more slowly than the agents write; dropping the connection"
            );
            self.outgoing = None;
        }
        if let Some(reason) = disconnect {
            tracing::info!(reason, "dropping the connection");
            self.outgoing = None;
        }
        Ok(())
    }
}

fn settings(config: &ProxyConfig, catalog: &Arc<Catalog>) -> Settings {
    let label = config.machine.clone().unwrap_or_else(hostname);
    let mut settings = Settings {
        machine: label.into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        agents: vec![],
        missing: BTreeMap::new(),
        details: vec![],
        workspaces: config.workspaces.clone(),
        allowed_roots: config.allowed_roots.clone(),
        has_demo: config.has_demo,
        guards: config.guards,
    };
    // Versions are asked for later: nobody waits for them.
    settings.offer(Discovery::new(Arc::clone(catalog)).glance());
    settings
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
