//! What the browser watchers report to the service.
//!
//! Not here: watching (`port`, `watcher`), what follows from it (`service`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use agents::panel::{Done, JobNumber, Profile};
use cdp::{Browser, Place};
use domain::SessionId;
use domain::content::Failure;
use serde::Deserialize;
use tokio::sync::{mpsc, watch};

use super::skeletons::Bones;

/// Names a panel for as long as it is watched.
pub(super) type Number = u64;
/// Deeds that wait in one window.
pub(super) const QUEUE_MAX: usize = 32;

/// Something to do in a window, when it is its turn.
pub(super) type Deed = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What is done in one window, one after the other: there is only one focus.
pub(super) type Queue = mpsc::Sender<Deed>;

/// Something was seen.
pub(super) enum Seen {
    /// A browser answers at this port.
    PortUp(String),
    /// It does not any more.
    PortDown(String),
    /// A window that a panel may be opened in.
    Window(Window),
    /// It is closed.
    WindowGone { address: String, target: String },
    /// A panel that can be read, or another document in one that was there before.
    Appeared(Box<Sight>),
    /// Its window is called otherwise now.
    Titled { panel: Number, window_title: String, window_url: String },
    /// What its observer says.
    Pushed(Number, String),
    /// The whole view of one that is to be looked at as if it were new, where it could be had.
    Anew(Number, Option<String>),
    /// Its observer does not answer.
    Blind(Number, String),
    /// It is not there any more.
    Gone(Number, Leaving),
    /// What came of a job.
    Did { session: SessionId, job: JobNumber, outcome: Result<Done, Failure> },
    /// What came of the steps that open a chat in a panel.
    ChatOpened { session: SessionId, panel: Number, outcome: Result<String, Failure> },
    /// What came of the steps that open a panel in a window, or of starting an IDE.
    PanelOpened { session: SessionId, outcome: Result<(), Failure> },
    /// The bare bones of a panel.
    Skeleton(SessionId, Arc<Profile>, Bones),
}

/// How a panel left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Its window does not show it.
    Hidden,
    /// Its page was closed.
    Closed,
    /// The browser is gone.
    Lost,
}

/// A panel as it is seen for the first time.
pub(super) struct Sight {
    pub(super) number: Number,
    pub(super) address: String,
    pub(super) target: String,
    pub(super) window: String,
    pub(super) profile: Arc<Profile>,
    pub(super) window_title: String,
    pub(super) window_url: String,
    pub(super) target_url: String,
    /// The observer's whole view.
    pub(super) push: String,
    pub(super) hand: Hand,
}

/// A window: a page of the browser.
pub(super) struct Window {
    pub(super) address: String,
    pub(super) target: String,
    pub(super) title: String,
    pub(super) url: String,
    /// The profiles whose panels can be opened in it.
    pub(super) openings: Vec<String>,
    pub(super) hand: Hand,
}

/// By which something is done in a panel or window.
#[derive(Clone)]
pub(super) struct Hand {
    pub(super) browser: Browser,
    /// The session that takes keys and clicks.
    pub(super) page: cdp::SessionId,
    /// Where its scripts run now; `None` while it is being loaded.
    pub(super) place: watch::Receiver<Option<Place>>,
    pub(super) queue: Queue,
}

/// What is read of a push here; everything else is its driver's.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Peek {
    #[serde(default)]
    pub(super) epoch: String,
    #[serde(default)]
    pub(super) n: u64,
    /// Only asks to be woken after so long.
    #[serde(default)]
    pub(super) due_ms: Option<u64>,
    #[serde(default)]
    pub(super) rows: Vec<PeekedRow>,
    #[serde(default)]
    pub(super) composer: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    pub(super) waiting: Option<String>,
    #[serde(default)]
    pub(super) conversation: Option<String>,
    /// How often the person asked for a new chat in this document.
    #[serde(default)]
    pub(super) new_chats: u64,
    /// How many rows there are.
    #[serde(default)]
    pub(super) count: u64,
    #[serde(default)]
    pub(super) ready: bool,
    #[serde(default)]
    pub(super) title: String,
}

/// A row of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct PeekedRow {
    #[serde(default)]
    pub(super) role: String,
    #[serde(default)]
    pub(super) text: String,
}

impl Peek {
    pub(super) fn read(push: &str) -> Self {
        serde_json::from_str(push).unwrap_or_default()
    }

    /// Whether the panel has come to rest, so that what it shows tells which one it is.
    pub(super) fn is_settled(&self) -> bool {
        self.ready && (self.composer.is_some() || self.waiting.is_some())
    }

    /// Whether the panel is one in which nothing was said yet.
    pub(super) fn is_blank(&self) -> bool {
        self.ready && self.composer.is_some() && self.waiting.is_none() && self.count == 0
    }
}
