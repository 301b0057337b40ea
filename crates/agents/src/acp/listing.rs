//! Earlier conversations of an agent that lists them itself (`session/list`): a short dialogue with
//! a separate program.
//!
//! Not here: running that program, and for how long (`proxy`).

use std::path::Path;

use serde_json::{Value, json};

use super::frames::{self, Initialized};
use crate::rpc::{Incoming, METHOD_NOT_FOUND, Rpc, Version};
use crate::{Launcher, Program, Summary, moment};

/// Conversations that are listed; of more, those that the agent tells first.
const LISTED_MAX: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Initialize,
    List,
}

/// What a line brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Listed {
    /// Lines to write to the program; more is to come.
    Write(Vec<String>),
    /// The conversations; the program may end.
    Done(Vec<Summary>),
    /// This agent does not tell them, for this reason; the program may end.
    Impossible(String),
}

/// One dialogue.
#[derive(Debug)]
pub struct Listing {
    rpc: Rpc<Ask>,
    workspace: Option<String>,
}

impl Listing {
    /// The program to start, the first line to write to it, and who hears its lines. Without a
    /// workspace, the conversations of all.
    pub fn begin(
        launcher: &Launcher,
        folder: &Path,
        workspace: Option<&Path>,
    ) -> (Self, Program, String) {
        let mut rpc = Rpc::new(Version::Told);
        let params = json!({
            "protocolVersion": 1,
            "clientInfo": { "name": "farhelm", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": {},
        });
        let line = rpc.request(Ask::Initialize, "initialize", params);
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        (Self { rpc, workspace }, launcher.program(&[], folder.to_path_buf()), line)
    }

    /// A line of the program.
    pub fn hear(&mut self, line: &str) -> Listed {
        match self.rpc.read(line) {
            Incoming::Answer { result: Err(error), .. } => Listed::Impossible(error.to_string()),
            Incoming::Answer { tag: Ask::Initialize, result: Ok(result) } => {
                let told: Initialized = frames::read(result);
                if told.agent_capabilities.session.list.is_none() {
                    return Listed::Impossible(
                        "the agent does not support listing its conversations".to_owned(),
                    );
                }
                let params = match &self.workspace {
                    Some(workspace) => json!({ "cwd": workspace }),
                    None => json!({}),
                };
                Listed::Write(vec![self.rpc.request(Ask::List, "session/list", params)])
            }
            Incoming::Answer { tag: Ask::List, result: Ok(result) } => Listed::Done(read(result)),
            Incoming::Request { id, .. } => Listed::Write(vec![self.rpc.refusal(
                &id,
                METHOD_NOT_FOUND,
                "not supported while listing conversations",
            )]),
            Incoming::Notification { .. } | Incoming::Strange(_) => Listed::Write(vec![]),
        }
    }
}

fn read(result: Value) -> Vec<Summary> {
    let listed: frames::Listed = frames::read(result);
    let summary = |session: frames::ListedSession| Summary {
        id: session.session_id,
        title: session.title.filter(|title| !title.is_empty()),
        workspace: session.cwd,
        updated_at: session.updated_at.as_deref().and_then(moment),
    };
    listed.sessions.into_iter().take(LISTED_MAX).map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    #[test]
    fn conversations_are_listed_after_a_handshake() {
        let launcher = Launcher { command: "opencode".into(), ..Launcher::default() };
        let (mut listing, program, first) =
            Listing::begin(&launcher, Path::new("/w"), Some(Path::new("/w")));
        assert_eq!(
            (program.command.as_str(), program.folder.as_path()),
            ("opencode", Path::new("/w"))
        );
        assert!(first.contains(r#""method":"initialize""#));
        let able = r#"{"id":1,"result":{"agentCapabilities":{"sessionCapabilities":{"list":{}}}}}"#;
        let Listed::Write(lines) = listing.hear(able) else { panic!("it asks for the list") };
        assert!(lines[0].contains(r#""params":{"cwd":"/w"}"#), "{lines:?}");
        assert_eq!(listing.hear("some noise"), Listed::Write(vec![]));
        let answer = r#"{"id":2,"result":{"sessions":[
            {"sessionId":"s1","cwd":"/w","title":"Kites","updatedAt":"2026-11-15T20:58:45.445Z"},
            {"sessionId":"s2"}, {"nonsense":1}]}}"#;
        let Listed::Done(summaries) = listing.hear(&answer.replace('\n', "")) else {
            panic!("the list")
        };
        assert_eq!(summaries.len(), 2);
        assert_eq!(summaries[0].title.as_deref(), Some("Kites"));
        assert_eq!(summaries[0].updated_at, Some(Timestamp(1_794_776_325_445)));
        assert_eq!(summaries[1].updated_at, None);
    }

    #[test]
    fn an_agent_that_cannot_list_says_so() {
        let launcher = Launcher::default();
        let (mut listing, ..) = Listing::begin(&launcher, Path::new("/w"), None);
        let answer = r#"{"id":1,"result":{"agentCapabilities":{"loadSession":true}}}"#;
        assert!(matches!(listing.hear(answer), Listed::Impossible(_)));
    }
}
