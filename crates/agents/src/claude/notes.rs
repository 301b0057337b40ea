//! What the driver remembers of a session across restarts of the proxy.

use domain::session::config::AgentConfig;
use serde::{Deserialize, Serialize};

use crate::notes::{Kept, shortened};

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The session can be used, with this configuration.
    Ready(AgentConfig),
    /// The agent keeps the conversation under this name: there is something to resume.
    Conversation(String),
    /// The earlier conversation is in the ledger.
    Imported,
    /// A person chose these.
    Chosen(Chosen),
}

/// Which lines still count. Conversations are counted, so each of them does.
fn kept(line: &Line) -> Kept {
    match line {
        Line::Ready(_) => Kept::Newest("ready"),
        Line::Conversation(_) => Kept::All,
        Line::Imported => Kept::Newest("imported"),
        Line::Chosen(_) => Kept::Newest("chosen"),
    }
}

/// What a person chose; the rest is the agent's own choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Chosen {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effort: Option<String>,
}

/// All lines together.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The last configuration of a session that was ready once.
    pub(super) config: Option<AgentConfig>,
    /// The agent's name of a conversation that began.
    pub(super) conversation: Option<String>,
    /// How many conversations there were.
    pub(super) conversations: u64,
    pub(super) is_imported: bool,
    pub(super) chosen: Chosen,
}

impl Notes {
    /// A line that cannot be read is passed over: a later version may have written it.
    pub(super) fn read(text: &str) -> Self {
        let mut notes = Self::default();
        for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            match line {
                Line::Ready(config) => notes.config = Some(config),
                Line::Conversation(id) => {
                    notes.conversation = Some(id);
                    notes.conversations += 1;
                }
                Line::Imported => notes.is_imported = true,
                Line::Chosen(chosen) => notes.chosen = chosen,
            }
        }
        notes
    }

    /// The lines without those that newer ones replace.
    pub(super) fn shortened(text: &str) -> String {
        shortened(text, kept)
    }

    /// The line that remembers a configuration, if it is another than before.
    pub(super) fn ready(&mut self, config: &AgentConfig) -> Option<String> {
        let is_same = self.config.as_ref().is_some_and(|known| {
            AgentConfig { read_at: config.read_at, ..known.clone() } == *config
        });
        self.config = Some(config.clone());
        if is_same { None } else { line(&Line::Ready(config.clone())) }
    }

    /// The line that remembers a conversation, if it is another than before.
    pub(super) fn conversation(&mut self, id: &str) -> Option<String> {
        if self.conversation.as_deref() == Some(id) {
            return None;
        }
        self.conversation = Some(id.to_owned());
        self.conversations += 1;
        line(&Line::Conversation(id.to_owned()))
    }

    pub(super) fn imported(&mut self) -> Option<String> {
        self.is_imported = true;
        line(&Line::Imported)
    }

    pub(super) fn choose(&mut self, chosen: Chosen) -> Option<String> {
        self.chosen = chosen;
        line(&Line::Chosen(self.chosen.clone()))
    }
}

fn line(line: &Line) -> Option<String> {
    serde_json::to_string(line).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::Timestamp;

    use super::*;

    #[test]
    fn notes_are_read_as_they_were_taken() {
        let config = AgentConfig {
            model: "opus".into(),
            permission_mode: None,
            file_access_scope: None,
            available_models: None,
            available_modes: None,
            effort: None,
            available_efforts: None,
            session_file: None,
            commands: None,
            capabilities: BTreeMap::new(),
            read_at: Timestamp(1),
        };
        let mut notes = Notes::default();
        let mut lines = vec![notes.ready(&config), notes.conversation("c1"), notes.imported()];
        lines.push(notes.choose(Chosen { model: Some("opus".into()), effort: None }));
        let later = AgentConfig { read_at: Timestamp(2), ..config };
        assert_eq!(notes.ready(&later), None, "only the time is another");
        assert_eq!(notes.conversation("c1"), None);
        let text: Vec<String> = lines.into_iter().flatten().collect();
        let many = std::iter::repeat_n(text[0].clone(), 500).chain(text.clone());
        let short = Notes::shortened(&many.collect::<Vec<_>>().join("\n"));
        assert_eq!(short.lines().collect::<Vec<_>>(), text);
        let read = Notes::read(&format!("{}\nnonsense\n", text.join("\n")));
        assert_eq!(read.conversation.as_deref(), Some("c1"));
        assert!(read.is_imported && read.config.is_some());
        assert_eq!(read.chosen.model.as_deref(), Some("opus"));
    }
}
