//! The engine with its journal and its drivers, on one thread.
//!
//! [`Host::handle`] takes everything that happened since the last call and returns once the journal
//! is on disk and nothing is left to do, so that one sync serves all pending input. After a
//! [`Fault`], drop the host; a new one opens from the disk, as after a crash.
//!
//! Not here: clocks and sockets (`shell`).

mod guard;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use agents::{
    Driver, File, FileJob, Input as AgentInput, Order as AgentOrder, Output, Picture, Program,
    TerminalJob, panel,
};
use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::AgentOffer;
use domain::session::Report;
use domain::session::status::Health;
use domain::{AgentType, RequestId, SessionId, Timestamp};
use wire::native::shapes::{Conversations, ResumableList};

use crate::Fault;
use crate::disk::Disk;
use crate::engine::{
    Adoption, Effect, Engine, Fetch, FetchFault, Ids, Preparation, Prepared, Settings,
};
use crate::journal::{self, Attempt, Book, Opened};
use crate::records::Records;
use guard::Guard;

/// A journal smaller than this is not worth shortening.
const JOURNAL_BYTES_MIN: usize = 1 << 20;
/// A journal is shortened when it has grown to this many times what it says.
const JOURNAL_GROWTH_MAX: usize = 4;

/// Something that happened outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A socket to the relay is open.
    Connected,
    /// The relay said something.
    Text(String),
    /// The socket is gone.
    Disconnected,
    /// What became of a [`Fetch`].
    Fetched(Attempt, Result<Vec<File>, FetchFault>),
    /// Something happened to a session's program.
    Agent(SessionId, AgentInput),
    /// What became of a [`Preparation`].
    Prepared(SessionId, Result<Prepared, Failure>),
    /// What agents there are.
    Offer(Vec<AgentOffer>),
    /// A panel was seen that is this session's, perhaps a new one.
    Adopted(Adoption),
    /// Which agents can be opened in panels.
    PanelOffer(Vec<AgentOffer>),
    /// The conversations that were asked for.
    Listed(RequestId, Result<Conversations, Failure>),
}

/// What to do now.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Frames to the relay, in order.
    pub frames: Vec<Bytes>,
    /// Close the connection, after the frames: it is of no use any more.
    pub disconnect: Option<&'static str>,
    /// What the relay complained about.
    pub complaints: Vec<Failure>,
    /// Files to get, each answered by [`Input::Fetched`].
    pub fetches: Vec<Fetch>,
    /// What to do with the agents' programs, in order.
    pub acts: Vec<(SessionId, Act)>,
    /// Launches to look at, each answered by [`Input::Prepared`].
    pub preparations: Vec<Preparation>,
    /// Conversations to look for, answered by [`Input::Listed`].
    pub lists: Vec<(RequestId, ResumableList)>,
    /// Pictures to keep at the relay, each answered by [`AgentInput::Kept`].
    pub pictures: Vec<(SessionId, Picture)>,
    /// What to do in sessions' panels, each answered by [`AgentInput::Panel`].
    pub panel_jobs: Vec<PanelJob>,
    /// Sessions whose panels look otherwise than they should: worth a look at why.
    pub changed_panels: Vec<SessionId>,
}

/// Something to do in a session's panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelJob {
    /// Whose.
    pub session: SessionId,
    /// Which agent it is: the name of its profile.
    pub agent: AgentType,
    /// Recognises the panel, where it was seen before.
    pub signature: Option<String>,
    /// What to do.
    pub job: panel::Job,
}

/// Something to do with a session's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Start it; one that still runs is ended first, and nothing is heard of it.
    Spawn(Program),
    /// A line for its standard input.
    Write(String),
    /// End it and all that it started. [`AgentInput::Ended`] follows.
    End,
    /// The session is over: end it, and nothing is heard of it. Then this working tree is
    /// removed, if nothing is in it.
    Forget(Option<String>),
    /// Read a file. [`AgentInput::Read`] follows.
    Read(PathBuf),
    /// Read or write a file of its workspace for it. [`AgentInput::Filed`] follows.
    File(FileJob),
    /// Run a command for it, or end one. [`AgentInput::Terminal`] follows.
    Terminal(TerminalJob),
}

/// Makes the driver of a session from how it was opened and the notes its driver took.
pub type Drivers = Box<dyn Fn(&SessionId, &Opened, String) -> Box<dyn Driver> + Send>;

/// The proxy without clock and socket.
pub struct Host<D, R> {
    engine: Engine,
    disk: D,
    records: R,
    make: Drivers,
    drivers: BTreeMap<SessionId, Box<dyn Driver>>,
    /// What the drivers want done, when everything is on disk.
    acts: Vec<(SessionId, Act)>,
    /// Pictures that the drivers want kept.
    pictures: Vec<(SessionId, Picture)>,
    /// What the drivers want done in panels.
    panel_jobs: Vec<PanelJob>,
    changed_panels: Vec<SessionId>,
    journal_bytes: usize,
    shortened_bytes: usize,
    /// Bytes at the journal's end that a crash had cut off.
    torn_bytes: usize,
    /// Files that were wanted before anybody could ask for them.
    fetches: Vec<Fetch>,
    /// The time it last was: clocks can be set back.
    seen_at: Timestamp,
    guard: Guard,
    /// What follows from making room, for the end of the turn.
    later: Vec<Effect>,
}

impl<D, R> std::fmt::Debug for Host<D, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (engine, drivers) = (&self.engine, &self.drivers);
        f.debug_struct("Host")
            .field("engine", engine)
            .field("drivers", drivers)
            .finish_non_exhaustive()
    }
}

impl<D: Disk, R: Records> Host<D, R> {
    /// Opens the journal, shortens it, and begins where it ended.
    pub fn open(
        settings: Settings,
        mut disk: D,
        records: R,
        make: Drivers,
        ids: Ids,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let bytes = disk.read().map_err(|error| Fault::disk("reading the journal", error))?;
        let (read, torn_bytes) = journal::decode(&bytes);
        let guard = Guard::new(settings.guards);
        let engine = Engine::new(settings, Book::replay(read), ids);
        let mut host = Self {
            engine,
            disk,
            records,
            make,
            drivers: BTreeMap::new(),
            acts: vec![],
            pictures: vec![],
            panel_jobs: vec![],
            changed_panels: vec![],
            journal_bytes: bytes.len(),
            shortened_bytes: 0,
            torn_bytes,
            fetches: vec![],
            seen_at: now,
            guard,
            later: vec![],
        };
        host.shorten()?;
        let effects = host.engine.start(now);
        // Nobody is connected: what would be sent is in the outbox.
        let mut turn = Turn::default();
        host.settle(effects, &mut turn, now)?;
        host.fetches = turn.fetches;
        Ok(host)
    }

    /// Everything that happened, and the time.
    pub fn handle(
        &mut self,
        inputs: impl IntoIterator<Item = Input>,
        now: Timestamp,
    ) -> Result<Turn, Fault> {
        let mut turn = Turn { fetches: std::mem::take(&mut self.fetches), ..Turn::default() };
        let (mut effects, mut kept) = (vec![], vec![]);
        let denied = self.guard.take_denied();
        let denied = denied.into_iter().map(|(session, input)| Input::Agent(session, input));
        for input in denied.chain(inputs) {
            match input {
                Input::Connected => effects.extend(self.engine.on_connected(now)),
                Input::Text(text) => effects.extend(self.engine.on_text(&text, now)),
                Input::Disconnected => self.engine.on_disconnected(),
                Input::Fetched(attempt, outcome) => {
                    effects.extend(self.engine.on_fetched(&attempt, outcome, now));
                }
                Input::Agent(session, input) => {
                    let Some(driver) = self.drivers.get_mut(&session) else { continue };
                    if matches!(input, AgentInput::Ended(_)) {
                        self.guard.ended(&session);
                    }
                    if let AgentInput::Kept { message, .. } = &input {
                        kept.push((session.clone(), message.clone()));
                    }
                    let outputs = driver.on_input(input, now);
                    effects.extend(self.observe(&session, outputs, now)?);
                }
                Input::Prepared(session, outcome) => {
                    effects.extend(self.engine.on_prepared(&session, outcome));
                }
                Input::Offer(details) => effects.extend(self.engine.on_offer(details)),
                Input::PanelOffer(details) => effects.extend(self.engine.on_panel_offer(details)),
                Input::Adopted(adoption) => {
                    effects.extend(self.engine.on_adopted(adoption));
                    // What is heard next may be of this very session: its driver must be there.
                    self.settle(std::mem::take(&mut effects), &mut turn, now)?;
                }
                Input::Listed(request, listed) => {
                    let listed = listed.map(|page| self.mark_open(page));
                    effects.extend(self.engine.on_listed(&request, &listed));
                }
            }
        }
        effects.extend(self.engine.on_tick(now));
        self.settle(effects, &mut turn, now)?;
        for (session, picture) in kept {
            // Its message is in the journal.
            self.records.let_go(&session, &picture);
        }
        self.play(&mut turn, now)?;
        self.let_rest(&mut turn, now)?;
        if self.journal_bytes > JOURNAL_BYTES_MIN
            && self.journal_bytes > self.shortened_bytes.saturating_mul(JOURNAL_GROWTH_MAX)
        {
            self.shorten()?;
        }
        turn.acts = std::mem::take(&mut self.acts);
        turn.pictures = std::mem::take(&mut self.pictures);
        turn.panel_jobs = std::mem::take(&mut self.panel_jobs);
        turn.changed_panels = std::mem::take(&mut self.changed_panels);
        Ok(turn)
    }

    /// When to call [`Host::handle`] next, whatever happens.
    pub fn deadline(&self) -> Option<Timestamp> {
        let drivers = self.drivers.values().filter_map(|driver| driver.deadline()).min();
        let drivers = drivers.filter(|_| !self.engine.is_congested());
        let guard = self.guard.deadline(self.seen_at);
        [self.engine.deadline(), drivers, guard].into_iter().flatten().min()
    }

    /// Whether the relay has greeted.
    pub fn is_up(&self) -> bool {
        self.engine.is_up()
    }

    /// The sessions that are open.
    pub fn sessions(&self) -> BTreeSet<SessionId> {
        self.engine.book().sessions.keys().cloned().collect()
    }

    /// Whether so much waits for the relay that the agents should pause.
    pub fn is_congested(&self) -> bool {
        self.engine.is_congested()
    }

    /// What the journal adds up to.
    pub fn book(&self) -> &Book {
        self.engine.book()
    }

    /// Bytes at the journal's end that a crash had cut off.
    pub fn torn_bytes(&self) -> usize {
        self.torn_bytes
    }

    /// Lets the drivers whose time has come go on.
    fn play(&mut self, turn: &mut Turn, now: Timestamp) -> Result<(), Fault> {
        if self.engine.is_congested() {
            return Ok(());
        }
        let set_back = now < self.seen_at;
        self.seen_at = now;
        let due = |driver: &dyn Driver| driver.deadline().is_some_and(|at| at <= now || set_back);
        let sessions: Vec<_> =
            self.drivers.iter().filter(|(_, d)| due(d.as_ref())).map(|(s, _)| s.clone()).collect();
        let mut effects = vec![];
        for session in sessions {
            let outputs = self.drivers.get_mut(&session).map(|driver| driver.on_deadline(now));
            effects.extend(self.observe(&session, outputs.unwrap_or_default(), now)?);
        }
        self.settle(effects, turn, now)
    }

    /// Carries effects out until none are left: first the journal, then what depends on it.
    fn settle(
        &mut self,
        mut effects: Vec<Effect>,
        turn: &mut Turn,
        now: Timestamp,
    ) -> Result<(), Fault> {
        while !effects.is_empty() {
            self.persist(&effects)?;
            let mut next = vec![];
            for effect in effects {
                match effect {
                    Effect::Persist(_) => {}
                    Effect::Send(frame) => turn.frames.push(frame),
                    Effect::Start(session, opened, ready_by) => {
                        next.extend(self.start(&session, &opened, ready_by, now)?);
                    }
                    Effect::Order(session, order) => {
                        next.extend(self.order(&session, &order, now)?);
                    }
                    Effect::Stop(session, worktree) => {
                        self.drivers.remove(&session);
                        self.guard.ended(&session);
                        self.records.forget_pictures(&session);
                        self.acts.push((session, Act::Forget(worktree)));
                    }
                    Effect::Prepare(preparation) => {
                        next.extend(self.prepare(preparation, turn));
                    }
                    Effect::List(request, list) => turn.lists.push((request, list)),
                    Effect::Fetch(fetch) => turn.fetches.push(fetch),
                    Effect::Disconnect(reason) => turn.disconnect = Some(reason),
                    Effect::Complaint(failure) => turn.complaints.push(failure),
                }
            }
            effects = next;
        }
        Ok(())
    }

    /// Writing early what the journal says of later effects is harmless: it is as if the crash
    /// had come later.
    fn persist(&mut self, effects: &[Effect]) -> Result<(), Fault> {
        let mut lines = vec![];
        let mut must_sync = false;
        for effect in effects {
            if let Effect::Persist(record) = effect {
                journal::encode(record, &mut lines);
                must_sync |= !record.may_wait();
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.journal_bytes += lines.len();
        self.disk.append(&lines).map_err(|error| Fault::disk("writing the journal", error))?;
        if must_sync {
            self.disk.sync().map_err(|error| Fault::disk("syncing the journal", error))?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        session: &SessionId,
        opened: &Opened,
        ready_by: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Vec<Effect>, Fault> {
        let record = self.records.read(session, &opened.agent);
        let record = record
            .map_err(|error| Fault::disk(format!("reading the record of {session}"), error))?;
        let mut driver = (self.make)(session, opened, record);
        shorten_notes(&mut self.records, session, driver.as_ref())?;
        if let Some(at) = ready_by {
            driver.ready_by(at);
        }
        let mut outputs = driver.start(now);
        for picture in self.records.held(session) {
            outputs.extend(driver.on_input(AgentInput::Held(picture), now));
        }
        self.drivers.insert(session.clone(), driver);
        self.observe(session, outputs, now)
    }

    fn order(
        &mut self,
        session: &SessionId,
        order: &AgentOrder,
        now: Timestamp,
    ) -> Result<Vec<Effect>, Fault> {
        let Some(driver) = self.drivers.get_mut(session) else { return Ok(vec![]) };
        let outputs = driver.on_order(order, now);
        self.guard.asked(session);
        self.observe(session, outputs, now)
    }

    fn observe(
        &mut self,
        session: &SessionId,
        outputs: Vec<Output>,
        now: Timestamp,
    ) -> Result<Vec<Effect>, Fault> {
        for output in &outputs {
            let act = match output {
                Output::Remember(line) => {
                    let written = self.records.append(session, line);
                    written.map_err(|error| {
                        Fault::disk(format!("writing the record of {session}"), error)
                    })?;
                    continue;
                }
                Output::Spawn(program) => {
                    if !self.make_room(session, now)? {
                        continue;
                    }
                    Act::Spawn(program.clone())
                }
                Output::Write(line) => Act::Write(line.clone()),
                Output::End => Act::End,
                Output::Read(path) => Act::Read(path.clone()),
                Output::File(job) => Act::File(job.clone()),
                Output::Terminal(job) => Act::Terminal(job.clone()),
                Output::Keep(picture) => {
                    if let Err(error) = self.records.hold(session, picture) {
                        // It is handed over all the same; only a crash would lose it.
                        tracing::warn!(%session, %error, "could not save a picture to disk");
                    }
                    self.pictures.push((session.clone(), picture.clone()));
                    continue;
                }
                Output::Panel(job) => {
                    self.panel_job(session, job.clone());
                    continue;
                }
                Output::Report(Report::Status { health: Health::AgentUiChanged, .. }) => {
                    self.changed_panels.push(session.clone());
                    continue;
                }
                Output::LookedUp { .. }
                | Output::Report(_)
                | Output::Passing(..)
                | Output::Ready
                | Output::Unusable(_) => continue,
            };
            self.acts.push((session.clone(), act));
        }
        if outputs.iter().any(|output| matches!(output, Output::Remember(_)))
            && let Some(driver) = self.drivers.get(session)
        {
            shorten_notes(&mut self.records, session, driver.as_ref())?;
        }
        Ok(self.engine.on_outputs(session, outputs, now))
    }

    fn panel_job(&mut self, session: &SessionId, job: panel::Job) {
        let Some(opened) = self.engine.opened(session) else { return };
        let (agent, signature) = (opened.agent.clone(), opened.signature.clone());
        self.panel_jobs.push(PanelJob { session: session.clone(), agent, signature, job });
    }

    /// A conversation that is open in a session already needs no other one.
    fn prepare(&mut self, preparation: Preparation, turn: &mut Turn) -> Vec<Effect> {
        let wanted = preparation.earlier.as_ref().filter(|earlier| !earlier.fork);
        let open_in = wanted.and_then(|wanted| self.open_in(&preparation.agent, &wanted.id));
        if let Some(open_in) = open_in {
            return self.engine.on_open_already(&preparation.session, &open_in);
        }
        turn.preparations.push(preparation);
        vec![]
    }

    /// The session in which a conversation is open.
    fn open_in(&self, agent: &AgentType, conversation: &str) -> Option<SessionId> {
        let sessions = &self.engine.book().sessions;
        let mut of_agent = self.drivers.iter().filter(|(session, _)| {
            sessions.get(*session).is_some_and(|opened| opened.agent == *agent)
        });
        let found = of_agent.find(|(_, driver)| driver.conversation() == Some(conversation));
        found.map(|(session, _)| session.clone())
    }

    fn mark_open(&self, mut page: Conversations) -> Conversations {
        for listed in &mut page.conversations {
            listed.session_id = self.open_in(&listed.agent_type, &listed.conversation_id);
        }
        page
    }

    /// Writes the journal anew, as short as it can be.
    fn shorten(&mut self) -> Result<(), Fault> {
        let mut lines = vec![];
        for record in self.engine.book().records() {
            journal::encode(&record, &mut lines);
        }
        self.disk.replace(&lines).map_err(|error| Fault::disk("compacting the journal", error))?;
        self.journal_bytes = lines.len();
        self.shortened_bytes = lines.len();
        Ok(())
    }
}

/// Writes the notes of a session anew where they have grown long.
fn shorten_notes<R: Records>(
    records: &mut R,
    session: &SessionId,
    driver: &dyn Driver,
) -> Result<(), Fault> {
    let shortened = records.shorten(session, &|notes| driver.shorten_notes(notes));
    shortened.map_err(|error| Fault::disk(format!("compacting the record of {session}"), error))
}

#[cfg(test)]
mod panel_tests;
#[cfg(test)]
mod tests;
