//! pi's own record of a session: a file of entries, one JSON object per line, that form a tree.
//!
//! Not here: finding and reading files (`proxy`).

use std::collections::{BTreeMap, HashMap};

use domain::content::{Author, Message, Part, ToolStatus};
use domain::{Content, Timestamp};
use serde::Deserialize;

use super::frames::{Said, Words};
use super::notes::Attempt;
use super::tools;
use crate::stored::Summary;
use crate::{Drawing, Lookup, Piece};

/// Entries of an earlier conversation that are taken over, the newest.
pub(super) const IMPORTED_MAX: usize = 2_000;
/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    message: Option<Said>,
    /// Of the first line.
    #[serde(default)]
    cwd: Option<String>,
    /// Of a line that names the session.
    #[serde(default)]
    name: Option<String>,
    /// Of a message that an extension wrote.
    #[serde(default)]
    content: Words,
    #[serde(default)]
    display: bool,
}

fn entries(text: &str) -> Vec<Entry> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What lists show of a session file. The head of the file is enough.
pub fn summary(_file_name: &str, text: &str) -> Option<Summary> {
    let entries = entries(text);
    let header = entries.iter().find(|entry| entry.kind == "session")?;
    let named = entries.iter().rev().find_map(|entry| entry.name.clone());
    let asked = entries.iter().filter_map(|entry| entry.message.as_ref());
    let asked = asked.filter(|message| message.role == "user").map(|said| said.content.text());
    let title = named.or_else(|| asked.into_iter().find(|text| !text.trim().is_empty()));
    let title = title.map(|title| {
        let line = title.trim().lines().next().unwrap_or_default();
        line.chars().take(TITLE_CHARACTERS_MAX).collect()
    });
    let (id, workspace) = (header.id.clone(), header.cwd.clone());
    Some(Summary { id, title, workspace, updated_at: None })
}

/// Whether pi has what was written to it. `text` is its file, or `None` where there is none;
/// before its first answer pi writes none.
pub(super) fn look_up(before: &Attempt, text: Option<&str>, has_answered: bool) -> Lookup {
    let Some(text) = text else {
        return if has_answered { Lookup::Unknown } else { Lookup::Absent };
    };
    let entries = entries(text);
    let leaf = before.leaf.as_ref();
    let start = leaf.map_or(Some(0), |leaf| {
        entries.iter().position(|entry| entry.id == *leaf).map(|at| at + 1)
    });
    let Some(start) = start else { return Lookup::Unknown };
    let is_after =
        |said: &&Said| leaf.is_some() || said.timestamp.is_some_and(|at| at >= before.at_ms);
    let said = entries[start..].iter().filter_map(|entry| entry.message.as_ref());
    let mut said = said.filter(|said| said.role == "user").filter(is_after).peekable();
    if said.peek().is_none() {
        return Lookup::Absent;
    }
    // What a person wrote may have become something else on its way, such as a template's text.
    let is_there = said.any(|said| before.is_in(&said.content.text()));
    if is_there { Lookup::Found } else { Lookup::Unknown }
}

/// The conversation as it stands at its last entry, and how many entries were left out.
pub(super) fn transcript(text: &str) -> (Vec<Piece>, usize) {
    let entries = entries(text);
    let mut path = branch(&entries);
    let left_out = path.len().saturating_sub(IMPORTED_MAX);
    path.drain(..left_out);
    let results: BTreeMap<&str, &Said> = path
        .iter()
        .filter_map(|entry| entry.message.as_ref())
        .filter_map(|said| Some((said.tool_call_id.as_deref()?, said)))
        .collect();
    let mut pieces = vec![];
    for entry in path {
        match (&entry.message, entry.kind.as_str()) {
            (Some(said), _) => told(&mut pieces, &entry.id, said, &results),
            (None, "custom_message") if entry.display => {
                let parts = vec![Part::Text(entry.content.text())];
                let shown = entry.content.drawings("picture");
                pieces.push(message(&entry.id, Author::System, parts, shown, None));
            }
            (None, _) => {}
        }
    }
    (pieces, left_out)
}

/// The entries from the first to the last one, along the last one's parents.
fn branch(entries: &[Entry]) -> Vec<&Entry> {
    let by_id: HashMap<&str, &Entry> =
        entries.iter().map(|entry| (entry.id.as_str(), entry)).collect();
    let mut path = vec![];
    let mut next = entries.last();
    while let Some(entry) = next.filter(|entry| entry.kind != "session") {
        path.push(entry);
        let parent = entry.parent_id.as_deref().and_then(|id| by_id.get(id).copied());
        // A file that says it is its own ancestor is not followed for ever.
        next = parent.filter(|_| path.len() < entries.len());
    }
    path.reverse();
    path
}

fn told(pieces: &mut Vec<Piece>, id: &str, said: &Said, results: &BTreeMap<&str, &Said>) {
    let author = match said.role.as_str() {
        "user" => Author::User,
        "assistant" => Author::Assistant,
        "custom" if said.display => Author::System,
        _ => return,
    };
    let mut parts = vec![];
    let (mut calls, mut drawings) = (vec![], vec![]);
    if let Words::Plain(text) = &said.content {
        parts.push(Part::Text(text.clone()));
    }
    for block in said.content.blocks() {
        match (block.kind.as_str(), &block.text, &block.thinking, &block.id) {
            ("text", Some(text), _, _) => parts.push(Part::Text(text.clone())),
            ("thinking", _, Some(text), _) => parts.push(Part::Thinking(text.clone())),
            ("image", ..) => drawings.extend(block.drawing("picture")),
            ("toolCall", _, _, Some(call)) => {
                parts.push(Part::ToolCall(call.as_str().into()));
                let tool = block.name.as_deref().unwrap_or("tool");
                let result = results.get(call.as_str());
                let status = match result {
                    Some(result) if result.is_error => ToolStatus::Failed,
                    Some(_) => ToolStatus::Completed,
                    None => ToolStatus::Cancelled,
                };
                let mut told = tools::call(call, tool, &block.arguments, status);
                if let (Content::Open(detail), Some(result)) = (&mut told.detail, result) {
                    detail.output = Some(result.content.text());
                }
                calls.push(Piece::Tool(told));
                let shown = result.map(|result| result.content.drawings(tool)).unwrap_or_default();
                if !shown.is_empty() {
                    let (id, at) = (format!("{call}-pictures"), result.and_then(|it| it.timestamp));
                    calls.push(message(&id, Author::Assistant, vec![], shown, at));
                }
            }
            _ => {}
        }
    }
    let is_empty = parts.iter().all(|part| matches!(part, Part::Text(text) if text.is_empty()));
    if !is_empty || !drawings.is_empty() {
        pieces.push(message(id, author, parts, drawings, said.timestamp));
    }
    pieces.append(&mut calls);
}

fn message(
    id: &str,
    author: Author,
    parts: Vec<Part>,
    drawings: Vec<Drawing>,
    at_ms: Option<u64>,
) -> Piece {
    let message = Message {
        id: format!("pi-{id}").into(),
        author,
        parts: Content::Open(parts),
        created_at: Timestamp(at_ms.unwrap_or_default()),
        run: None,
        parent: None,
        digest: None,
    };
    Piece::Message(message, drawings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"type":"session","version":3,"id":"01a1","timestamp":"2026-11-15T20:56:29.191Z","cwd":"/w"}
{"type":"model_change","id":"e1","parentId":null,"provider":"fake","modelId":"fake-a"}
{"type":"message","id":"e2","parentId":"e1","message":{"role":"user","content":[{"type":"text","text":"list the files\nplease"}],"timestamp":100}}
{"type":"message","id":"e3","parentId":"e2","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}],"timestamp":110}}
{"type":"message","id":"e4","parentId":"e3","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"a.rs\n"}],"isError":false,"timestamp":120}}
{"type":"message","id":"e5","parentId":"e4","message":{"role":"assistant","content":[{"type":"text","text":"left branch"}],"timestamp":130}}
{"type":"message","id":"e6","parentId":"e4","message":{"role":"assistant","content":[{"type":"text","text":"a.rs"}],"timestamp":140}}
{"type":"message","id":"e7","parentId":"e6","message":{"role":"user","content":"thanks","timestamp":150}}
{"type":"message","id":"torn"#;

    #[test]
    fn a_list_shows_the_first_words_or_the_name() {
        let found = summary("x.jsonl", FILE).unwrap();
        assert_eq!(found.id, "01a1");
        assert_eq!(found.title.as_deref(), Some("list the files"));
        assert_eq!(found.workspace.as_deref(), Some("/w"));
        let named = FILE.replace(
            r#"{"type":"message","id":"torn"#,
            r#"{"type":"session_info","id":"n","name":"Tidy up"}"#,
        );
        assert_eq!(summary("x.jsonl", &named).unwrap().title.as_deref(), Some("Tidy up"));
        assert_eq!(summary("x.jsonl", "{}"), None);
    }

    #[test]
    fn the_last_branch_is_imported_with_its_tools() {
        let (pieces, left_out) = transcript(FILE);
        assert_eq!(left_out, 0);
        let ids: Vec<_> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Message(message, _) => message.id.as_str().to_owned(),
                Piece::Tool(call) => call.id.as_str().to_owned(),
            })
            .collect();
        assert_eq!(ids, ["pi-e2", "pi-e3", "c1", "pi-e6", "pi-e7"]);
        let Piece::Tool(call) = &pieces[2] else { panic!() };
        assert_eq!(call.status, ToolStatus::Completed);
        assert_eq!(call.detail.open().unwrap().output.as_deref(), Some("a.rs\n"));
    }

    #[test]
    fn pictures_stand_where_they_were_shown() {
        let file = r#"{"type":"session","id":"s","cwd":"/w"}
{"type":"message","id":"e1","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"QQ==","mimeType":"image/png"}]}}
{"type":"message","id":"e2","parentId":"e1","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}]}}
{"type":"message","id":"e3","parentId":"e2","message":{"role":"toolResult","toolCallId":"c1","content":[{"type":"image","data":"QUI=","mimeType":"image/jpeg"}]}}"#;
        let shown = transcript(file).0.into_iter().map(|piece| match piece {
            Piece::Message(message, drawings) => format!("{} {drawings:?}", message.id),
            Piece::Tool(call) => call.id.to_string(),
        });
        let expected = [
            "pi-e1 [Drawing(picture, image/png, 4 characters)]",
            "pi-e2 []",
            "c1",
            "pi-c1-pictures [Drawing(read, image/jpeg, 4 characters)]",
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_entry_that_is_its_own_ancestor_does_not_go_on_for_ever() {
        let circle = r#"{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"x"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"y"}}"#;
        assert_eq!(transcript(circle).0.len(), 2);
    }

    #[test]
    fn a_message_is_looked_for_after_the_entry_that_was_last() {
        let before = |text: &str, leaf: &str| Attempt::new(text, Some(leaf.to_owned()), 0);
        let look = |attempt: &Attempt| look_up(attempt, Some(FILE), true);
        assert_eq!(look(&before("thanks", "e6")), Lookup::Found);
        assert_eq!(look(&before("thanks", "e7")), Lookup::Absent);
        assert_eq!(look(&before("something else", "e6")), Lookup::Unknown);
        assert_eq!(look(&before("thanks", "not there")), Lookup::Unknown);
        assert_eq!(look_up(&before("thanks", "e6"), None, true), Lookup::Unknown);
        assert_eq!(look_up(&before("thanks", "e6"), None, false), Lookup::Absent);
    }

    #[test]
    fn without_a_last_entry_the_time_decides() {
        let before = |at_ms| Attempt::new("thanks", None, at_ms);
        assert_eq!(look_up(&before(145), Some(FILE), true), Lookup::Found);
        assert_eq!(look_up(&before(151), Some(FILE), true), Lookup::Absent);
    }
}
