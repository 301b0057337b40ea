//! Whether a session can be reached, its health, and its agent's activity.
//!
//! Reachability follows the proxy's socket; the proxy reports the agent's health.
//!
//! Not here: which machine a session belongs to (`fleet`).

use serde::{Deserialize, Serialize};

use super::queue;
use crate::{AgentType, ConnectionId, LinkId, MachineLabel, RequestId, TargetSignature, Timestamp};

/// What is known about a session besides its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The agent's name.
    pub agent: AgentType,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The title of its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_title: Option<String>,
    /// The workspace's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<String>,
    /// The workspace's folder on its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineLabel>,
    /// Recognises the same target after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TargetSignature>,
    /// Proxy-local and transient; never an identifier for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_id: Option<String>,
}

impl Meta {
    /// Nothing is known but the agent.
    pub fn of_agent(agent: AgentType) -> Self {
        Self {
            agent,
            display_name: None,
            window_title: None,
            workspace_name: None,
            workspace_path: None,
            machine: None,
            signature: None,
            target_id: None,
        }
    }
}

/// How the proxy finds the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// All is well.
    Healthy,
    /// It answers, but not as it should.
    Degraded,
    /// It cannot be reached.
    Disconnected,
    /// Its transcript cannot be read.
    ScrapingFailed,
    /// Its window no longer looks as expected; nothing is typed into it.
    AgentUiChanged,
}

/// What the agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// A word of the native document, or one a client shows by its label.
    pub kind: String,
    /// What people read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Since when, as the proxy says.
    pub updated_at: Timestamp,
}

/// Why a session cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DownReason {
    /// The proxy's socket is gone.
    ProxyDisconnected,
    /// The proxy no longer names it.
    TargetGone,
}

/// Why a session was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// A person asked for it.
    UserRequested,
    /// Its target was closed on the machine.
    TargetClosed,
    /// The proxy ended and cannot bring it back.
    ProxyShutdown,
}

/// The proxy connection through which a session is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Via {
    /// The socket.
    pub connection: ConnectionId,
    /// The proxy's journal; a plain v1 proxy has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkId>,
}

/// Facts about a session's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It can be reached (again).
    Up {
        /// Through which connection.
        via: Via,
        /// As the proxy describes it.
        meta: Box<Meta>,
        /// As the proxy finds it.
        health: Health,
        /// What its agent is doing, if the proxy says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        activity: Option<Activity>,
    },
    /// It cannot be reached.
    Down {
        /// Why.
        reason: DownReason,
        /// Since when, where that was before it was recorded: the relay was down itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
    },
    /// Its health or activity changed.
    Changed {
        /// As the proxy finds it.
        health: Health,
        /// What its agent is doing, if the proxy says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        activity: Option<Activity>,
        /// Why, in words for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It is over; its history remains.
    Closed {
        /// Why.
        reason: CloseReason,
        /// The client's request, if one closed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
    },
    /// A person named it.
    Renamed(String),
    /// A person put it away, or took it out again.
    Archived(bool),
}

/// Reachability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Never seen through a proxy.
    New,
    /// Through this connection.
    Up(Via),
    /// Not since then.
    Down {
        /// Since when.
        since: Timestamp,
        /// The journal it was reached through before.
        link: Option<LinkId>,
    },
    /// Over.
    Closed,
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Reachability.
    pub reach: Reach,
    /// As the proxy last described it.
    pub meta: Meta,
    /// As the proxy last found it.
    pub health: Health,
    /// What is not as it should be, and why, as it was last told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<(Health, String)>,
    /// What its agent was last doing.
    pub activity: Option<Activity>,
    /// A person's name for it.
    pub title: Option<String>,
    /// Whether a person put it away.
    pub archived: bool,
    /// When anything was last heard.
    pub last_seen_at: Timestamp,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            reach: Reach::New,
            meta: Meta::of_agent("unknown".into()),
            health: Health::Disconnected,
            trouble: None,
            activity: None,
            title: None,
            archived: false,
            last_seen_at: Timestamp(0),
        }
    }
}

impl Status {
    /// The connection it is reached through, if any.
    pub fn via(&self) -> Option<&Via> {
        match &self.reach {
            Reach::Up(via) => Some(via),
            Reach::New | Reach::Down { .. } | Reach::Closed => None,
        }
    }

    /// How sends reach it now.
    pub fn queue_reach(&self) -> queue::Reach {
        match self.via() {
            None => queue::Reach::Away,
            Some(via) if via.link.is_none() => queue::Reach::Plain,
            Some(_) => queue::Reach::Linked,
        }
    }

    /// The journal it is or was last reached through.
    pub fn link(&self) -> Option<&LinkId> {
        match &self.reach {
            Reach::Up(via) => via.link.as_ref(),
            Reach::Down { link, .. } => link.as_ref(),
            Reach::New | Reach::Closed => None,
        }
    }

    /// Since when it cannot be reached, if it cannot.
    pub fn down_since(&self) -> Option<Timestamp> {
        match &self.reach {
            Reach::Down { since, .. } => Some(*since),
            Reach::New => Some(Timestamp(0)),
            Reach::Up(_) | Reach::Closed => None,
        }
    }

    /// Why its health is as it is, in words for a person, where somebody said so.
    pub fn reason(&self) -> Option<&str> {
        let trouble = self.trouble.as_ref().filter(|(health, _)| *health == self.health);
        trouble.map(|(_, words)| words.as_str())
    }

    /// Whether it is over.
    pub fn is_closed(&self) -> bool {
        self.reach == Reach::Closed
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        self.last_seen_at = at;
        match event {
            Event::Up { via, meta, health, activity } => {
                self.reach = Reach::Up(via.clone());
                self.meta = (**meta).clone();
                self.health = *health;
                if activity.is_some() {
                    self.activity.clone_from(activity);
                }
            }
            Event::Down { since, .. } => {
                let link = self.link().cloned();
                self.reach = Reach::Down { since: since.unwrap_or(at), link };
                self.health = Health::Disconnected;
                self.activity = None;
            }
            Event::Changed { health, activity, reason } => {
                self.health = *health;
                // A change of activity says nothing of it: then the old words stand.
                match reason {
                    Some(reason) => self.trouble = Some((*health, reason.clone())),
                    None if self.reason().is_none() => self.trouble = None,
                    None => {}
                }
                if activity.is_some() {
                    self.activity.clone_from(activity);
                }
            }
            Event::Closed { .. } => {
                self.reach = Reach::Closed;
                self.health = Health::Disconnected;
                self.activity = None;
            }
            Event::Renamed(title) => self.title = Some(title.clone()),
            Event::Archived(archived) => self.archived = *archived,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_stands_while_its_health_does() {
        let mut status = Status::default();
        let changed = |health: Health, words: Option<&str>| Event::Changed {
            health,
            activity: None,
            reason: words.map(str::to_owned),
        };
        status.apply(&changed(Health::Degraded, Some("log in")), Timestamp(1));
        status.apply(&changed(Health::Degraded, None), Timestamp(2));
        assert_eq!(status.reason(), Some("log in"), "only what it does changed");
        let (reason, since) = (DownReason::ProxyDisconnected, None);
        status.apply(&Event::Down { reason, since }, Timestamp(3));
        assert_eq!(status.reason(), None);
        status.apply(&changed(Health::Degraded, None), Timestamp(4));
        assert_eq!(status.reason(), Some("log in"), "it came back as it was");
        status.apply(&changed(Health::Healthy, None), Timestamp(5));
        status.apply(&changed(Health::Degraded, None), Timestamp(6));
        assert_eq!(status.reason(), None);
    }
}
