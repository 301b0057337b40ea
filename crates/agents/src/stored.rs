//! Conversations that agents keep themselves: where they are, and how lists show them.
//!
//! Not here: searching the files (`proxy`), the content of one agent's files (`<agent>::stored`).

use domain::Timestamp;

use crate::{claude, codex, pi};

/// An earlier conversation of an agent's own, as far as the head of its record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// As the agent names it.
    pub id: String,
    /// One line for people: its title, or its first words.
    pub title: Option<String>,
    /// Where it was held.
    pub workspace: Option<String>,
    /// When it was last added to; `None` where only the file's own time says.
    pub updated_at: Option<Timestamp>,
}

/// Where an agent keeps its conversations, a file each.
#[derive(Debug, Clone, Copy)]
pub struct Store {
    /// Which agent.
    pub agent: &'static str,
    /// The variable that names the folder it keeps everything in.
    pub variable: &'static str,
    /// That folder below the person's home, where the variable says nothing.
    pub below_home: &'static str,
    /// The conversations below that folder.
    pub below: &'static str,
    /// Folders between there and the files.
    pub levels: usize,
    /// How the files' names begin.
    pub prefix: &'static str,
    /// How they end.
    pub suffix: &'static str,
    /// Reads a file's name and the head of its text; `None` for what is no conversation.
    pub summary: fn(&str, &str) -> Option<Summary>,
}

/// The agents whose conversations are files.
pub const STORES: &[Store] = &[
    Store {
        agent: claude::AGENT,
        variable: "CLAUDE_CONFIG_DIR",
        below_home: ".claude",
        below: "projects",
        levels: 1,
        prefix: "",
        suffix: ".jsonl",
        summary: claude::stored::summary,
    },
    Store {
        agent: codex::AGENT,
        variable: "CODEX_HOME",
        below_home: ".codex",
        below: "sessions",
        // A year, a month and a day.
        levels: 3,
        prefix: "rollout-",
        suffix: ".jsonl",
        summary: codex::summary,
    },
    Store {
        agent: pi::AGENT,
        variable: "PI_CODING_AGENT_DIR",
        below_home: ".pi/agent",
        below: "sessions",
        levels: 1,
        prefix: "",
        suffix: ".jsonl",
        summary: pi::summary,
    },
];
