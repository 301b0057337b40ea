//! Sends on their way to the agent, and where they are found again after a crash.
//!
//! Each attempt has its own uuid, which the agent repeats when it takes the message and writes to
//! its session file. While the agent only queues a message it can still be lost, so queueing does
//! not count as delivery.
//!
//! Not here: whether a send may be tried again (`proxy`, the relay).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use domain::content::Failure;
use domain::session::delivery::{DELIVERY_UNKNOWN, Mode, Send};
use domain::{MessageId, Sequence, Timestamp};
use serde_json::Value;

use super::transport::{Urgency, user};
use super::{Claude, Life};
use crate::{File, Lookup, Output, run_id, uuid_of, variable};

/// Letters of a folder's name beyond which the agent shortens it in a way of its own.
const FOLDER_NAME_MAX: usize = 200;

/// A send that was written to the program, and of which it has not said that it took it.
#[derive(Debug, Clone)]
pub(super) struct Written {
    uuid: String,
    id: MessageId,
    attempt: Sequence,
}

/// A question to the agent's session file.
#[derive(Debug)]
pub(super) struct Searched {
    path: PathBuf,
    send: Written,
    /// Whether the proxy asked; else the program ended without saying.
    is_asked: bool,
}

impl Claude {
    pub(super) fn deliver(&mut self, send: &Send, attempt: Sequence, files: &[File]) {
        let Some(words) = self.scribe.words_of(send, attempt) else { return };
        let uuid = uuid_of(&self.setup.session, &send.id, attempt);
        let urgency = match send.mode {
            Some(Mode::Steer) => Urgency::Steer,
            Some(Mode::FollowUp) | None => Urgency::FollowUp,
        };
        let line = user(&uuid, &words, files, urgency);
        self.scribe.push(Output::Write(line));
        self.written.push_back(Written { uuid, id: send.id.clone(), attempt });
    }

    /// The agent took a message.
    pub(super) fn taken(&mut self, uuid: &str, now: Timestamp) {
        let Some(send) = self.take_written(uuid) else { return };
        let begun = self.scribe.run().cloned();
        let run = begun.clone().unwrap_or_else(|| run_id(&send.id, send.attempt));
        self.scribe.delivered(&send.id, send.attempt, Some(run.clone()));
        if begun.is_none() {
            self.scribe.begin_run(run, Some(send.id), now);
        }
    }

    /// The agent let go of a message that it had not taken.
    pub(super) fn dropped(&mut self, uuid: &str) {
        let Some(send) = self.take_written(uuid) else { return };
        let words = "The run was stopped before the agent received this message. Send it again";
        let failure = Failure::new("send_rejected", words);
        self.scribe.not_delivered(&send.id, send.attempt, failure);
    }

    fn take_written(&mut self, uuid: &str) -> Option<Written> {
        let at = self.written.iter().position(|written| written.uuid == uuid)?;
        self.written.remove(at)
    }

    pub(super) fn look_up(&mut self, id: &MessageId, attempt: Sequence) {
        let uuid = uuid_of(&self.setup.session, id, attempt);
        let send = Written { uuid, id: id.clone(), attempt };
        self.search(send, true);
    }

    /// The program ended: what became of the sends that it did not take?
    pub(super) fn search_written(&mut self) {
        for send in std::mem::take(&mut self.written) {
            self.search(send, false);
        }
    }

    fn search(&mut self, send: Written, is_asked: bool) {
        let path = self.session_file(&self.conversation_id());
        self.scribe.push(Output::Read(path.clone()));
        self.searches.push_back(Searched { path, send, is_asked });
    }

    /// A session file was read for the searches in it.
    pub(super) fn found(&mut self, path: &Path, text: Option<&str>) {
        let all = std::mem::take(&mut self.searches);
        let (here, elsewhere): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|search| search.path == path);
        self.searches = elsewhere;
        for Searched { send, is_asked, .. } in here {
            let found = match text {
                Some(text) => holds(text, &send.uuid),
                // No file, no conversation; if it would lie there.
                None if self.is_certain_of_files() => Lookup::Absent,
                None => Lookup::Unknown,
            };
            let Written { id, attempt, .. } = send;
            match (is_asked, found) {
                (true, found) => self.scribe.push(Output::LookedUp { id, attempt, found }),
                (false, Lookup::Found) => {
                    self.scribe.delivered_and_cut_off(&id, attempt, "Claude Code");
                }
                (false, Lookup::Absent) => {
                    let words = "Claude Code stopped before it received this message. Send it \
                                 again";
                    let failure = Failure::new("agent_not_open", words);
                    self.scribe.not_delivered(&id, attempt, failure);
                }
                (false, Lookup::Unknown) => {
                    let words = "Claude Code stopped while the message was being delivered. It \
                                 may have arrived";
                    let failure = Failure::new(DELIVERY_UNKNOWN, words);
                    self.scribe.not_delivered(&id, attempt, failure);
                }
            }
        }
    }

    /// The agent's name of the conversation: as noted, or as it will be.
    pub(super) fn conversation_id(&self) -> String {
        let earlier = self.setup.earlier.as_ref().filter(|earlier| !earlier.fork);
        let noted = self.notes.conversation.clone();
        noted.or_else(|| Some(earlier?.id.clone())).unwrap_or_else(|| self.own_id())
    }

    /// The name that we give to a new conversation.
    pub(super) fn own_id(&self) -> String {
        self.name_of(0)
    }

    /// A name for the conversation after so many others.
    pub(super) fn name_of(&self, conversations: u64) -> String {
        uuid_of(&self.setup.session, &"conversation".into(), Sequence(conversations))
    }

    /// Where the agent keeps a conversation of this workspace.
    pub(super) fn session_file(&self, id: &str) -> PathBuf {
        let folder = self.folder().unwrap_or_default();
        folder.join("projects").join(self.project()).join(format!("{id}.jsonl"))
    }

    /// The agent's folder, where the person's environment says.
    fn folder(&self) -> Option<PathBuf> {
        let set = |name: &str| {
            let own = variable(&self.setup.launcher.env, name);
            let value = own.or_else(|| self.setup.variables.get(name).map(String::as_str));
            value.filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        let home = || set("HOME").or_else(|| set("USERPROFILE"));
        set("CLAUDE_CONFIG_DIR").or_else(|| Some(home()?.join(".claude")))
    }

    fn project(&self) -> String {
        project_folder(&self.setup.workspace.to_string_lossy())
    }

    /// Whether the agent would name its folder as we do.
    fn is_certain_of_files(&self) -> bool {
        self.folder().is_some() && self.project().len() <= FOLDER_NAME_MAX
    }

    /// Whether sends are on their way.
    pub(super) fn is_delivering(&self) -> bool {
        !self.written.is_empty() || !self.searches.is_empty()
    }

    /// A session file was read to know whether there is a conversation to resume.
    pub(super) fn located(&mut self, path: &Path, has_text: bool, now: Timestamp) {
        match &self.life {
            Life::Locating(awaited) if awaited == path => {
                let conversation = self.conversation(has_text);
                self.spawn(&conversation, now);
            }
            Life::Down
            | Life::Importing(_)
            | Life::Retelling
            | Life::Locating(_)
            | Life::Starting(_)
            | Life::Up
            | Life::Ending(_) => {}
        }
    }
}

/// How the agent names the folder of a workspace: it counts in UTF-16 units.
pub(super) fn project_folder(workspace: &str) -> String {
    let mut name = String::new();
    for letter in workspace.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            letter => name.extend(std::iter::repeat_n('-', letter.len_utf16())),
        }
    }
    name
}

/// Whether a session file says that the agent took this message. A uuid is also written when a
/// message is let go of, so that finding it is not enough.
fn holds(text: &str, uuid: &str) -> Lookup {
    let mut found = Lookup::Absent;
    for line in text.lines().filter(|line| line.contains(uuid)) {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            // Cut off by the crash: it was being written.
            found = Lookup::Unknown;
            continue;
        };
        let is_message = record["type"] == "user" && record["uuid"] == uuid;
        let is_steering = record["attachment"]["source_uuid"] == uuid
            || (record["commandUuid"] == uuid && record["reason"] == "absorbed_mid_turn");
        if is_message || is_steering {
            return Lookup::Found;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_where_the_agent_took_it_and_nowhere_else() {
        let asked = r#"{"type":"user","uuid":"u1","message":{}}"#;
        let steered = r#"{"type":"attachment","attachment":{"type":"queued_command","source_uuid":"u2"},"uuid":"x"}"#;
        let let_go = r#"{"type":"queue-operation","operation":"remove","reason":"cleared_on_cancel","commandUuid":"u3"}"#;
        let child = r#"{"type":"assistant","parentUuid":"u4","uuid":"y"}"#;
        let text =
            [asked, steered, let_go, child, r#"{"type":"user","uuid":"u5","mess"#].join("\n");
        assert_eq!(holds(&text, "u1"), Lookup::Found);
        assert_eq!(holds(&text, "u2"), Lookup::Found);
        assert_eq!(holds(&text, "u3"), Lookup::Absent);
        assert_eq!(holds(&text, "u4"), Lookup::Absent);
        assert_eq!(holds(&text, "u5"), Lookup::Unknown);
        assert_eq!(holds(&text, "u6"), Lookup::Absent);
    }

    #[test]
    fn a_workspace_names_a_folder_as_the_agent_does() {
        assert_eq!(project_folder("/home/ada/w.1_ä🙂"), "-home-ada-w-1----");
    }
}
