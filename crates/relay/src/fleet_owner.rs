//! The owner of the fleet: the only task that decides about machines and launches.
//!
//! The fleet changes rarely, so each command is committed before the next one starts.
//!
//! Not here: what commands lead to (`domain`), sessions (`owner`).

use std::sync::Arc;
use std::time::Duration;

use domain::fleet::{self, Claim, Command, Fleet, Launch, Named, Policy};
use domain::session::status::Via;
use domain::{ClientKey, ConnectionId, RequestId, Sequence};
use store::{Append, Entry, Fault, Snapshot};
use tokio::sync::{mpsc, oneshot};
use wire::native::Denied;

use crate::books::{Books, EventsAsked};
use crate::hub::{Hub, Live};
use crate::load::{self, Loaded, Replayed};
use crate::owner::NAP_MS_MAX;
use crate::ports::Clock;
use crate::routes::{Errand, Routes};
use crate::tasks::Tasks;

const INBOX_MAX: usize = 1_024;
const SNAPSHOT_EVERY_EVENTS: u64 = 256;
/// Events that are shown at once that a failed commit had recorded.
const UNSEEN_PAGE_EVENTS: usize = 1_024;
const CLOSE_TAKEN_OVER: u16 = 4090;

/// Something for the fleet's owner.
pub(crate) enum Input {
    /// Decide this.
    Command(Command, oneshot::Sender<Result<Vec<Arc<fleet::Recorded>>, Denied>>),
    /// A proxy names its sessions.
    Name(ConnectionId, Vec<Named>, oneshot::Sender<Result<Claim, Denied>>),
    /// A launch that went to this connection's machine.
    Launch(ConnectionId, RequestId, oneshot::Sender<Option<Launch>>),
    /// What is on its way or held for a client.
    Launches(ClientKey, oneshot::Sender<Vec<Launch>>),
    /// The whole state, for lists of machines.
    Look(oneshot::Sender<Fleet>),
}

pub(crate) struct FleetOwner {
    pub books: Books,
    pub hub: Hub,
    pub routes: Arc<Routes>,
    pub clock: Arc<dyn Clock>,
    pub policy: Policy,
    pub loaded: Option<Loaded<Fleet>>,
    /// The last event that was shown.
    pub shown: Sequence,
    /// Whether a commit failed since connections were last looked after.
    pub has_lost_a_commit: bool,
}

impl FleetOwner {
    pub(crate) fn spawn(self, tasks: &Tasks) -> mpsc::Sender<Input> {
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        tasks.spawn("fleet", self.run(inbox));
        sender
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Input>) {
        loop {
            let nap = self.nap();
            tokio::select! {
                biased;
                input = inbox.recv() => match input {
                    Some(input) => {
                        self.notice_lost_connections().await;
                        self.take(input).await;
                    }
                    None => return,
                },
                () = tokio::time::sleep(nap) => {
                    self.notice_lost_connections().await;
                    let _ = self.perform(&Command::Tick).await;
                }
            }
        }
    }

    fn nap(&self) -> Duration {
        let now = self.clock.now();
        let deadline = self.loaded.as_ref().and_then(|it| it.state.deadline(self.policy));
        Duration::from_millis(deadline.map_or(NAP_MS_MAX, |at| at.ms_since(now).min(NAP_MS_MAX)))
    }

    /// The end of a connection may have been in a commit that failed, and nobody tells it again.
    async fn notice_lost_connections(&mut self) {
        if !self.has_lost_a_commit {
            return;
        }
        let routes = self.routes.clone();
        let Ok(fleet) = self.fleet().await else { return };
        let connected = fleet.machines().all().filter_map(|(_, machine)| machine.via.as_ref());
        let lost = connected.filter(|via| routes.to(&via.connection).is_none());
        let lost: Vec<ConnectionId> = lost.map(|via| via.connection.clone()).collect();
        self.has_lost_a_commit = false;
        for connection in lost {
            let _ = self.perform(&Command::Disconnected(connection)).await;
        }
    }

    async fn take(&mut self, input: Input) {
        match input {
            Input::Command(command, reply) => {
                let _ = reply.send(self.perform(&command).await);
            }
            Input::Name(connection, named, reply) => {
                let _ = reply.send(self.name(connection, named).await);
            }
            Input::Launch(connection, request, reply) => {
                let _ = reply.send(self.launch(&connection, &request).await);
            }
            Input::Launches(client, reply) => {
                let launches = match self.fleet().await {
                    Ok(fleet) => fleet.launches().of(&client).cloned().collect(),
                    Err(_) => vec![],
                };
                let _ = reply.send(launches);
            }
            Input::Look(reply) => {
                if let Ok(fleet) = self.fleet().await {
                    let _ = reply.send(fleet.clone());
                }
            }
        }
    }

    async fn name(&mut self, by: ConnectionId, named: Vec<Named>) -> Result<Claim, Denied> {
        let claim = self.fleet().await?.claim(&by, named).map_err(Denied::Refused)?;
        self.perform(&Command::Named { connection: by, claim: claim.clone() }).await?;
        Ok(claim)
    }

    async fn launch(&mut self, by: &ConnectionId, request: &RequestId) -> Option<Launch> {
        let fleet = self.fleet().await.ok()?;
        let machine = fleet.machines().of(by)?;
        fleet.launches().get(request).filter(|launch| launch.machine == *machine).cloned()
    }

    /// Decides, commits, then lets the consequences leave.
    async fn perform(&mut self, command: &Command) -> Result<Vec<Arc<fleet::Recorded>>, Denied> {
        let (now, policy) = (self.clock.now(), self.policy);
        let before = self.fleet().await?;
        let mut taken_over = None;
        if let Command::Connected { machine, via, .. } = command {
            let older = before.machines().via(machine).cloned();
            taken_over = older.filter(|older| older.connection != via.connection);
        }
        let Some(loaded) = self.loaded.as_mut() else { return Ok(vec![]) };
        let events = loaded.state.perform(command, policy, now).map_err(Denied::Refused)?;
        if !events.is_empty() {
            let append = append(loaded, &events);
            self.commit(append).await?;
        }
        Ok(self.show(taken_over.as_ref(), events))
    }

    /// Lets the consequences of recorded events leave.
    fn show(
        &mut self,
        taken_over: Option<&Via>,
        events: Vec<fleet::Recorded>,
    ) -> Vec<Arc<fleet::Recorded>> {
        self.tell(taken_over, &events);
        self.shown = events.last().map_or(self.shown, |last| last.sequence);
        let events: Vec<_> = events.into_iter().map(Arc::new).collect();
        self.hub.publish(events.iter().cloned().map(Live::Fleet).collect());
        events
    }

    async fn commit(&mut self, append: Append) -> Result<(), Denied> {
        let (reply, mut answer) = mpsc::unbounded_channel();
        self.books.append(append, (reply, 0));
        match answer.recv().await {
            Some((_, Ok(()))) => Ok(()),
            Some((_, Err(lost))) => {
                tracing::error!(%lost, "could not record the fleet's events");
                self.loaded = None;
                self.has_lost_a_commit = true;
                Err(Denied::Failed(lost.to_string()))
            }
            None => Err(Denied::Failed("the relay is shutting down".to_owned())),
        }
    }

    /// Launches leave for their machine; a connection that was taken over is closed.
    fn tell(&self, taken_over: Option<&Via>, events: &[fleet::Recorded]) {
        if let Some(older) = taken_over {
            let reason = "a newer connection of the same machine took over";
            self.routes.kick(&older.connection, CLOSE_TAKEN_OVER, reason);
        }
        let Some(loaded) = &self.loaded else { return };
        for event in events {
            match &event.event {
                fleet::Event::Launch(fleet::launches::Event::Requested(launch)) => {
                    self.send_launch(&launch.via, launch);
                }
                fleet::Event::Machine(fleet::machines::Event::Connected { via, .. }) => {
                    for launch in loaded.state.owed(via) {
                        self.send_launch(via, launch);
                    }
                }
                fleet::Event::Launch(_) | fleet::Event::Machine(_) => {}
            }
        }
    }

    fn send_launch(&self, via: &Via, launch: &Launch) {
        if let Some(route) = self.routes.to(&via.connection) {
            route.send(Errand::Launch(Box::new(launch.clone())));
        }
    }

    async fn fleet(&mut self) -> Result<&mut Fleet, Denied> {
        if self.loaded.is_none() {
            let failed = |fault: Fault| Denied::Failed(fault.to_string());
            self.loaded = Some(load(&self.books).await.map_err(failed)?);
            if let Err(fault) = self.show_unseen().await {
                self.loaded = None;
                return Err(failed(fault));
            }
        }
        match self.loaded.as_mut() {
            Some(loaded) => Ok(&mut loaded.state),
            None => Err(Denied::Failed("could not read the fleet".to_owned())),
        }
    }

    /// Events that were committed although their commit was reported as failed.
    async fn show_unseen(&mut self) -> Result<(), Fault> {
        let Some(head) = self.loaded.as_ref().map(|loaded| loaded.state.head()) else {
            return Ok(());
        };
        while self.shown < head {
            let (stream, after) = (fleet::FLEET_STREAM.into(), self.shown);
            let ask = EventsAsked { stream, after, upto: Some(head), limit: UNSEEN_PAGE_EVENTS };
            let (events, _) = Fleet::read(&self.books, ask).await?;
            if events.is_empty() {
                return Ok(());
            }
            self.show(None, events);
        }
        Ok(())
    }
}

fn append(loaded: &mut Loaded<Fleet>, events: &[fleet::Recorded]) -> Append {
    let mut append = Append::new(fleet::FLEET_STREAM.into(), loaded.epoch);
    let entry = |recorded: &fleet::Recorded| Entry {
        sequence: recorded.sequence,
        at: recorded.at,
        body: store::codec::encode_fleet_event(recorded),
    };
    append.entries = events.iter().map(entry).collect();
    let head = loaded.state.head();
    if loaded.stored_at.is_none_or(|at| head.0 - at.0 >= SNAPSHOT_EVERY_EVENTS) {
        let body = store::codec::encode_fleet(&loaded.state);
        append.snapshot = Some(Snapshot { sequence: head, body });
        loaded.stored_at = Some(head);
    }
    append
}

/// The fleet from its stream.
pub(crate) async fn load(books: &Books) -> Result<Loaded<Fleet>, Fault> {
    load::load(books, &fleet::FLEET_STREAM.into()).await
}
