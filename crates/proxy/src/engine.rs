//! The proxy's decisions. Pure: it receives what happened and the current time, and returns effects
//! to carry out in order.
//!
//! An [`Effect::Persist`] must be on disk before any later effect leaves. The engine's state in
//! memory always equals its journal plus what is transient (drafts, open prompts, the run).
//!
//! Not here: carrying effects out (`host`), the socket (`shell`).

mod adoption;
mod attachments;
mod connection;
mod crash;
mod fitting;
mod launches;
mod live;
mod orders;
mod outputs;
mod preparing;

use std::collections::{BTreeMap, VecDeque};

use agents::Order as AgentOrder;
use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::{AgentOffer, Offer};
use domain::session::Report;
use domain::{AgentType, LinkId, MachineLabel, RequestId, SessionId, Timestamp};
use wire::native::proxy_frames;
use wire::native::shapes::{Conversations, ResumableList};

use crate::config::Guards;
use crate::journal::{Attempt, Book, Means, Opened, Outgoing, Record, Step};
use attachments::Fetching;
use connection::Line;
use launches::Starting;
use live::Live;
use preparing::Preparing;

pub use adoption::Adoption;
pub use attachments::{Fetch, FetchFault};
pub use preparing::{Preparation, Prepared};

/// Frames that may wait for the relay. At the bound the agents' clocks stand still.
pub const OUTBOX_FRAMES_MAX: usize = 50_000;
/// Bytes that may wait for the relay. The same.
pub const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// Sessions on one machine. At the bound launches fail.
pub const SESSIONS_MAX: usize = 256;
/// Answered requests that are remembered, so that a repeat has no second effect.
pub const REQUESTS_REMEMBERED_MAX: usize = 512;

/// What the engine is told at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What people call this machine.
    pub machine: MachineLabel,
    /// The program's version, for the relay's log.
    pub version: String,
    /// Agents that can be started here.
    pub agents: Vec<AgentType>,
    /// Agents that could be if they were installed, and how a person does that.
    pub missing: BTreeMap<AgentType, String>,
    /// More about all of these, for people.
    pub details: Vec<AgentOffer>,
    /// Folders that this machine is known for.
    pub workspaces: Vec<String>,
    /// Folders in which agents may be started; none means anywhere.
    pub allowed_roots: Vec<String>,
    /// Whether to keep one demo session.
    pub has_demo: bool,
    /// How much the agents may take.
    pub guards: Guards,
}

impl Settings {
    /// Takes in which agents there are; the demo agent always is.
    pub fn offer(&mut self, details: Vec<AgentOffer>) {
        let installed = details.iter().filter(|it| it.is_installed).map(|it| it.agent.clone());
        self.agents = std::iter::once(agents::demo::AGENT.into()).chain(installed).collect();
        let missing = details.iter().filter(|it| !it.is_installed);
        let missing = missing.map(|it| (it.agent.clone(), it.install.clone().unwrap_or_default()));
        self.missing = missing.collect();
        self.details = details;
    }
}

/// Something to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write this to the journal; on disk before later effects leave.
    Persist(Record),
    /// A text frame to the relay.
    Send(Bytes),
    /// Begin a session, new or from before; a launched one is ready by this time, or says why not.
    Start(SessionId, Opened, Option<Timestamp>),
    /// Something for a session's agent.
    Order(SessionId, AgentOrder),
    /// Get these files, then tell [`Engine::on_fetched`].
    Fetch(Fetch),
    /// Look whether a session can be started, and make ready what it needs; then tell
    /// [`Engine::on_prepared`].
    Prepare(Preparation),
    /// Look for conversations that agents keep; then tell [`Engine::on_listed`].
    List(RequestId, ResumableList),
    /// A session is over. Its working tree goes with it, if nothing is in it.
    Stop(SessionId, Option<String>),
    /// The connection is of no use any more.
    Disconnect(&'static str),
    /// The relay complained.
    Complaint(Failure),
}

/// Makes ids that nobody else has.
pub type Ids = Box<dyn FnMut() -> String + Send>;

/// The proxy's mind.
pub struct Engine {
    settings: Settings,
    ids: Ids,
    book: Book,
    live: BTreeMap<SessionId, Live>,
    /// Launches whose folder and program are being looked at. A crash forgets them too.
    preparing: BTreeMap<SessionId, Preparing>,
    /// Launches whose agent is not ready yet. A crash forgets them: the relay asks again.
    starting: BTreeMap<SessionId, Starting>,
    line: Line,
    /// What the agents with programs are, and those that live in panels.
    offered: adoption::Offered,
    /// Requests with the agents, and the type of the frame that carried each.
    pending: BTreeMap<(SessionId, RequestId), orders::Pending>,
    answered: VecDeque<orders::Answered>,
    /// What a crash left of runs.
    crashed: BTreeMap<SessionId, crash::Cut>,
    /// Files of open sends; no more than those.
    fetches: BTreeMap<Attempt, Fetching>,
    beats: u64,
    effects: Vec<Effect>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("book", &self.book).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine with what its journal says.
    pub fn new(settings: Settings, book: Book, ids: Ids) -> Self {
        let answered = orders::answered_in(&book);
        let offered = adoption::Offered::new(&settings);
        Self {
            settings,
            ids,
            book,
            live: BTreeMap::new(),
            preparing: BTreeMap::new(),
            starting: BTreeMap::new(),
            line: Line::Down,
            offered,
            pending: BTreeMap::new(),
            answered,
            crashed: BTreeMap::new(),
            fetches: BTreeMap::new(),
            beats: 0,
            effects: vec![],
        }
    }

    /// Begins, or begins again: sessions first, then what was on its way to their agents.
    pub fn start(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.book.link.is_none() {
            let link = LinkId::from((self.ids)());
            self.persist(Record::Link(link));
        }
        let known: Vec<_> = self.book.sessions.clone().into_iter().collect();
        for (session, opened) in known {
            self.begin(session.clone(), opened);
            self.tell_run_cut_off(&session, now);
        }
        self.stand_in();
        let open: Vec<_> = self.book.inbox.open().map(|(a, step, _)| (a.clone(), step)).collect();
        for (attempt, step) in open {
            match step {
                Step::Received => self.advance(&attempt.session),
                Step::Attempting => {
                    let order =
                        AgentOrder::LookUp { id: attempt.id.clone(), attempt: attempt.number };
                    self.effects.push(Effect::Order(attempt.session, order));
                }
            }
        }
        self.take()
    }

    /// Whether so much waits for the relay that the agents should pause.
    pub fn is_congested(&self) -> bool {
        self.book.outbox.len() >= OUTBOX_FRAMES_MAX || self.book.outbox_bytes >= OUTBOX_BYTES_MAX
    }

    /// Which agents there are changed; the relay is told.
    pub fn on_offer(&mut self, details: Vec<AgentOffer>) -> Vec<Effect> {
        self.offered.programs = details;
        self.tell_offer();
        self.take()
    }

    /// What came of [`Effect::List`].
    pub fn on_listed(
        &mut self,
        request: &RequestId,
        listed: &Result<Conversations, Failure>,
    ) -> Vec<Effect> {
        self.send_if_up(proxy_frames::encode_conversations(request, listed));
        self.take()
    }

    fn offer(&self) -> Offer {
        Offer {
            agents: Some(self.settings.agents.clone()),
            workspaces: self.settings.workspaces.clone(),
            details: self.settings.details.clone(),
            limits: Some(self.settings.guards.limits()),
        }
    }

    /// What the journal adds up to.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// Opens a demo session where one is kept and none is. True if one was opened.
    fn stand_in(&mut self) -> bool {
        let is_standing = |opened: &Opened| {
            opened.launch.is_none() && opened.agent.as_str() == agents::demo::AGENT
        };
        let has_standing = self.book.sessions.values().any(is_standing);
        if !self.settings.has_demo || has_standing {
            return false;
        }
        let opened = Opened {
            agent: agents::demo::AGENT.into(),
            display_name: Some("Demo".to_owned()),
            workspace_path: None,
            window_title: None,
            model: None,
            mode: None,
            earlier: None,
            worktree: None,
            arguments: vec![],
            launch: None,
            signature: None,
        };
        let session = self.new_session();
        self.persist(Record::Opened(session.clone(), opened.clone()));
        self.begin(session, opened);
        true
    }

    fn begin(&mut self, session: SessionId, opened: Opened) {
        self.live.insert(session.clone(), Live::default());
        self.effects.push(Effect::Start(session, opened, None));
    }

    fn new_session(&mut self) -> SessionId {
        SessionId::from((self.ids)())
    }

    /// The one way into the book, so that memory and journal cannot differ.
    fn persist(&mut self, record: Record) {
        self.book.apply(record.clone());
        self.effects.push(Effect::Persist(record));
    }

    /// Puts a report into the outbox, and on its way if there is one.
    fn report(
        &mut self,
        session: &SessionId,
        report: &Report,
        command: Option<&str>,
        means: Option<Means>,
        now: Timestamp,
    ) {
        let number = self.book.outbox.next_number();
        let report = fitting::fitting(report);
        let frame = proxy_frames::encode_report(session, &report, command, Some(number), now);
        self.post(number, frame, means);
    }

    fn post(&mut self, number: u64, frame: Bytes, means: Option<Means>) {
        self.persist(Record::Frame { number, frame: frame.clone(), means });
        self.send_if_up(frame);
    }

    /// Passing frames are not kept: who is not there does not hear them.
    fn send_if_up(&mut self, frame: Bytes) {
        if self.line.is_up() {
            self.effects.push(Effect::Send(frame));
        }
    }

    fn unacked(&self) -> Vec<Outgoing> {
        self.book.outbox.unacked().map(|numbered| numbered.frame.clone()).collect()
    }

    fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
