//! Sessions that nobody launched: an agent's panel was found in an IDE.
//!
//! Invariant: a panel is reported as a session under one id, however often it is seen; later
//! reports change at most the session's name.
//!
//! Not here: finding panels, and matching them to sessions (`panels`).

use domain::fleet::AgentOffer;
use domain::{AgentType, SessionId};
use wire::native::proxy_frames;

use super::{Effect, Engine, SESSIONS_MAX, Settings};
use crate::journal::{Opened, Record};

/// A panel that was seen, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    /// Whose.
    pub session: SessionId,
    /// The agent: the name of the panel's profile.
    pub agent: AgentType,
    /// What people call it.
    pub display_name: String,
    /// The title of its window.
    pub window_title: Option<String>,
    /// The folder that is open in its window.
    pub workspace_path: Option<String>,
    /// Recognises the panel after a restart.
    pub signature: String,
}

/// What this machine offers, by where the agents live.
#[derive(Debug, Default)]
pub(super) struct Offered {
    pub(super) programs: Vec<AgentOffer>,
    panels: Vec<AgentOffer>,
}

impl Offered {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { programs: settings.details.clone(), panels: vec![] }
    }
}

impl Engine {
    /// A panel was seen. One that no session has becomes a session.
    pub fn on_adopted(&mut self, adoption: Adoption) -> Vec<Effect> {
        let Adoption { session, .. } = &adoption;
        let session = session.clone();
        if let Some(starting) = self.starting.get_mut(&session) {
            rename(&mut starting.opened, adoption);
        } else if let Some(known) = self.book.sessions.get(&session) {
            let mut opened = known.clone();
            rename(&mut opened, adoption);
            if opened != *known {
                self.persist(Record::Opened(session, opened));
                self.send_snapshot(false);
            }
        } else if !self.book.closing.contains_key(&session) {
            self.adopt(session, adoption);
        }
        self.take()
    }

    /// Which agents can be opened in panels changed; the relay is told.
    pub fn on_panel_offer(&mut self, details: Vec<AgentOffer>) -> Vec<Effect> {
        self.offered.panels = details;
        self.tell_offer();
        self.take()
    }

    /// A session as it was opened, ready or not.
    pub fn opened(&self, session: &SessionId) -> Option<&Opened> {
        let starting = self.starting.get(session).map(|starting| &starting.opened);
        self.book.sessions.get(session).or(starting)
    }

    pub(super) fn tell_offer(&mut self) {
        let both = self.offered.programs.iter().chain(&self.offered.panels);
        let details: Vec<_> = both.cloned().collect();
        if self.settings.details != details {
            self.settings.offer(details);
            self.send_if_up(proxy_frames::encode_catalog(&self.offer()));
        }
    }

    fn adopt(&mut self, session: SessionId, adoption: Adoption) {
        if self.book.sessions.len() >= SESSIONS_MAX {
            tracing::warn!(
                agent = %adoption.agent,
                "ignoring a panel: this machine already has the maximum of {SESSIONS_MAX} sessions"
            );
            return;
        }
        let opened = Opened {
            agent: adoption.agent,
            display_name: Some(adoption.display_name),
            workspace_path: adoption.workspace_path,
            window_title: adoption.window_title,
            model: None,
            mode: None,
            earlier: None,
            worktree: None,
            arguments: vec![],
            launch: None,
            signature: Some(adoption.signature),
        };
        self.persist(Record::Opened(session.clone(), opened.clone()));
        self.begin(session, opened);
        self.send_snapshot(false);
    }
}

/// What was known is kept where nothing newer is seen; its own name stays.
fn rename(opened: &mut Opened, adoption: Adoption) {
    opened.signature = Some(adoption.signature);
    if let Some(path) = adoption.workspace_path {
        opened.workspace_path = Some(path);
    }
    if let Some(title) = adoption.window_title {
        opened.window_title = Some(title);
    }
}
