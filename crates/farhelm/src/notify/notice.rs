//! The text of a notification: what needs attention, and where.
//!
//! **Invariant**: every text in it went through `words`.
//!
//! Not here: whether it is sent (`desk`), how it travels (`target`).

use std::fmt::Write as _;

use domain::session::Card;
use domain::session::runs::Outcome;
use serde::Serialize;
use wire::time::Time;

use super::desk::{Asked, Call, Matter};
use super::words::name;

/// What sort of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    PromptWaits,
    RunEnded,
    SendFailed,
}

/// What is told; as JSON, what a webhook and a command get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Notice {
    /// The same for every attempt at the same call.
    pub(super) id: String,
    pub(super) kind: Kind,
    /// One line.
    pub(super) title: String,
    /// A few lines.
    pub(super) text: String,
    /// The page, at this session, and at the question that waits.
    pub(super) link: String,
    pub(super) session_id: String,
    /// What people call the session.
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) machine: Option<String>,
    pub(super) workspace: Option<String>,
    pub(super) prompt_id: Option<String>,
    /// What would run, where the agent tells.
    pub(super) command: Option<String>,
    /// The event that it is about.
    pub(super) sequence: u64,
    pub(super) at: String,
    /// Calls that were not made since the one before.
    pub(super) left_out: u64,
}

impl Kind {
    /// As JSON has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::PromptWaits => "prompt_waits",
            Self::RunEnded => "run_ended",
            Self::SendFailed => "send_failed",
        }
    }
}

impl Notice {
    /// Words a call about the session with this card; `base` is the address that people use.
    pub(super) fn new(call: &Call, card: &Card, base: &str) -> Self {
        let meta = &card.status.meta;
        let agent = name(meta.agent.as_str());
        let names = [&card.status.title, &meta.display_name, &meta.workspace_name];
        let session = names.into_iter().flatten().map(|it| name(it)).find(|it| !it.is_empty());
        let session = session.unwrap_or_else(|| agent.clone());
        let machine = meta.machine.as_ref().map(|machine| name(machine.as_str()));
        let workspace = meta.workspace_path.as_ref().or(meta.workspace_name.as_ref());
        let workspace = workspace.map(|it| name(it));
        let (mut prompt_id, mut waiting) = (None, None);
        let (kind, title, words) = match &call.matter {
            Matter::Asked(question) => {
                prompt_id = Some(question.id.to_string());
                waiting.clone_from(&question.command);
                (Kind::PromptWaits, "needs your answer", question.words.clone())
            }
            Matter::Ended(outcome) => match outcome {
                Outcome::Completed => (Kind::RunEnded, "finished", String::new()),
                Outcome::Interrupted => (Kind::RunEnded, "was interrupted", String::new()),
                Outcome::Cut(cut) => (Kind::RunEnded, "was interrupted", cut.why.clone()),
                Outcome::Failed(words) => (Kind::RunEnded, "failed", words.clone()),
            },
            Matter::Failed(words) => (Kind::SendFailed, "did not receive a message", words.clone()),
        };
        let question = prompt_id.as_deref().map(|id| format!("/p/{}", escaped(id)));
        let mut lines = vec![words, place(&agent, machine.as_deref(), workspace.as_deref())];
        lines.retain(|line| !line.is_empty());
        if call.left_out > 0 {
            lines.push(format!(
                "{} more notifications were left out since the last one.",
                call.left_out
            ));
        }
        Self {
            id: format!("{}-{}", call.session, call.sequence.0),
            kind,
            title: format!("{session} {title}"),
            text: lines.join("\n"),
            link: format!("{base}/#/s/{}{}", call.session, question.unwrap_or_default()),
            session_id: call.session.to_string(),
            session,
            agent,
            machine,
            workspace,
            prompt_id,
            command: waiting,
            sequence: call.sequence.0,
            at: Time(call.at).to_string(),
            left_out: call.left_out,
        }
    }

    /// The question that it is about.
    pub(super) fn asked(&self) -> Option<Asked> {
        let prompt = self.prompt_id.as_deref()?;
        Some((self.session_id.as_str().into(), prompt.into()))
    }

    /// Some more were not told.
    pub(super) fn add_left_out(&mut self, more: u64) {
        if more > 0 {
            self.left_out += more;
            let line = format!("\n{more} more notifications could not be delivered.");
            self.text.push_str(&line);
        }
    }
}

/// For the part of an address after `#`: what an agent calls its questions may hold anything.
fn escaped(id: &str) -> String {
    id.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            other => {
                // Writing to a text cannot fail.
                let _ = write!(text, "%{other:02X}");
            }
        }
        text
    })
}

fn place(agent: &str, machine: Option<&str>, workspace: Option<&str>) -> String {
    let machine = machine.map_or(String::new(), |machine| format!(" on {machine}"));
    let workspace = workspace.map_or(String::new(), |workspace| format!(", {workspace}"));
    format!("{agent}{machine}{workspace}")
}

#[cfg(test)]
mod tests;
