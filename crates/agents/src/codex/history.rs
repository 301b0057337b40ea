//! Codex's own record of a thread: imports earlier conversations once, and looks up messages that a
//! crash cut off.
//!
//! The record is read through the program, newest page first, because its file format is internal
//! to Codex.
//!
//! Not here: when a look-up is due (`proxy`, `ending`), lists of conversations (`stored`).

use domain::content::{Author, Failure, Message, ToolCall, ToolStatus};
use domain::{Content, MessageId, Sequence, SessionId, Timestamp};
use serde_json::{Value, json};

use super::delivery::Sent;
use super::frames::{Item, Page, Read, read};
use super::{Codex, Record, Why, items};
use crate::rpc::{METHOD_NOT_FOUND, RpcError};
use crate::{Lookup, Output, Piece, uuid_of};

/// Items of a page.
const PAGE_ITEMS: u32 = 100;
/// Pages of an earlier conversation that are told; what is older stays with Codex.
const IMPORT_PAGES_MAX: usize = 50;
/// Pages that are searched. A message was cut off moments ago: it is among the newest or nowhere.
const SEARCH_PAGES_MAX: usize = 20;

/// A search for a message in the record.
#[derive(Debug, Clone)]
pub(super) struct Search {
    id: MessageId,
    attempt: Sequence,
    client: String,
    /// Whether the proxy asked, or the program died under us.
    is_ordered: bool,
    pages: usize,
}

impl Search {
    pub(super) fn ordered(session: &SessionId, id: &MessageId, attempt: Sequence) -> Self {
        let client = uuid_of(session, id, attempt);
        Self { id: id.clone(), attempt, client, is_ordered: true, pages: 0 }
    }

    pub(super) fn doubting(sent: &Sent) -> Self {
        let (id, client) = (sent.id.clone(), sent.client.clone());
        Self { id, attempt: sent.attempt, client, is_ordered: false, pages: 0 }
    }

    fn is_met_by(&self, item: &Value) -> bool {
        item.get("clientId").and_then(Value::as_str) == Some(&self.client)
    }
}

impl Codex {
    pub(super) fn look_up(&mut self, search: Search) {
        match self.record {
            Record::Kept => self.ask_page(Why::LookUp(search), None),
            Record::Empty => self.searched(&search, Lookup::Absent),
            Record::Lost => self.searched(&search, Lookup::Unknown),
        }
    }

    fn ask_page(&mut self, why: Why, cursor: Option<&str>) {
        let params = json!({
            "threadId": self.thread,
            "limit": PAGE_ITEMS,
            "sortDirection": "desc",
            "cursor": cursor,
        });
        self.ask(why, "thread/items/list", params);
    }

    fn ask_whole(&mut self, why: Why) {
        let params = json!({ "threadId": self.thread, "includeTurns": true });
        self.ask(why, "thread/read", params);
    }

    pub(super) fn page_looked_up(&mut self, mut search: Search, result: Result<Value, RpcError>) {
        let page = match result {
            Ok(result) => read::<Page>(&result),
            Err(error) if error.code == METHOD_NOT_FOUND => {
                self.ask_whole(Why::LookUpWhole(search));
                return;
            }
            Err(_) => None,
        };
        let Some(page) = page else { return self.search_failed(&search) };
        if page.data.iter().any(|entry| search.is_met_by(&entry.item)) {
            return self.searched(&search, Lookup::Found);
        }
        search.pages += 1;
        match page.next_cursor {
            None => self.searched(&search, Lookup::Absent),
            Some(_) if search.pages >= SEARCH_PAGES_MAX => self.search_failed(&search),
            Some(cursor) => self.ask_page(Why::LookUp(search), Some(&cursor)),
        }
    }

    pub(super) fn whole_looked_up(&mut self, search: &Search, result: Result<Value, RpcError>) {
        let Some(Read { thread }) = result.ok().and_then(|result| read(&result)) else {
            return self.search_failed(search);
        };
        let mut all = thread.turns.iter().flat_map(|turn| &turn.items);
        let found =
            if all.any(|item| search.is_met_by(item)) { Lookup::Found } else { Lookup::Absent };
        self.searched(search, found);
    }

    pub(super) fn search_failed(&mut self, search: &Search) {
        self.searched(search, Lookup::Unknown);
    }

    fn searched(&mut self, search: &Search, found: Lookup) {
        let (id, attempt) = (&search.id, search.attempt);
        match (search.is_ordered, found) {
            (true, _) => {
                self.scribe.push(Output::LookedUp { id: id.clone(), attempt, found });
            }
            (false, Lookup::Found) => self.scribe.delivered_and_cut_off(id, attempt, "Codex"),
            (false, Lookup::Absent) => {
                let words = "Codex stopped before it received the message. Send it again";
                let failure = Failure::new("agent_not_open", words);
                self.scribe.not_delivered(id, attempt, failure);
            }
            (false, Lookup::Unknown) => self.doubt_remains(id, attempt),
        }
    }

    /// Tells an earlier conversation, before anything else.
    pub(super) fn import_history(&mut self) {
        self.watch.history.clear();
        self.ask_page(Why::Import, None);
    }

    pub(super) fn page_of_history(&mut self, result: Result<Value, RpcError>, now: Timestamp) {
        let page = match result {
            Ok(result) => read::<Page>(&result),
            Err(error) if error.code == METHOD_NOT_FOUND => {
                self.ask_whole(Why::ImportWhole);
                return;
            }
            Err(error) => {
                self.history_missing(&error.to_string());
                None
            }
        };
        let Some(page) = page else { return self.tell_history(now) };
        self.watch.history.extend(page.data.into_iter().map(|entry| entry.item));
        let items_max = IMPORT_PAGES_MAX * usize::try_from(PAGE_ITEMS).unwrap_or(usize::MAX);
        match page.next_cursor.filter(|_| self.watch.history.len() < items_max) {
            Some(cursor) => self.ask_page(Why::Import, Some(&cursor)),
            None => self.tell_history(now),
        }
    }

    pub(super) fn whole_history(&mut self, result: Result<Value, RpcError>, now: Timestamp) {
        match result {
            Ok(result) => {
                let turns = read::<Read>(&result).map(|read| read.thread.turns).unwrap_or_default();
                let all = turns.into_iter().flat_map(|turn| turn.items);
                self.watch.history = all.collect();
                self.watch.history.reverse();
            }
            Err(error) => self.history_missing(&error.to_string()),
        }
        self.tell_history(now);
    }

    fn history_missing(&mut self, error: &str) {
        let words = format!("Could not load the earlier messages from Codex: {error}");
        self.scribe.notice("history", words);
    }

    /// The newest came first; people read the oldest first.
    fn tell_history(&mut self, now: Timestamp) {
        let history = std::mem::take(&mut self.watch.history);
        let mut pieces = vec![];
        for item in history.iter().rev().filter_map(read::<Item>) {
            let drawings = items::drawings(&item);
            if let Some(message) = items::message(&item, now) {
                pieces.push(Piece::Message(message, drawings));
            } else if let Some(call) = items::tool_call(&item, &self.setup.workspace) {
                let shown = (!drawings.is_empty()).then(|| pictures_of(&call, now));
                pieces.push(Piece::Tool(closed(call)));
                pieces.extend(shown.map(|message| Piece::Message(message, drawings)));
            }
        }
        self.scribe.retell(pieces, now);
        self.retold(now);
    }

    /// Goes on when all of it is told.
    pub(super) fn retold(&mut self, now: Timestamp) {
        if self.scribe.take_retold() {
            self.imported(now);
        }
    }
}

/// What an earlier run left open does not go on.
fn closed(call: ToolCall) -> ToolCall {
    let status = match call.status {
        ToolStatus::Pending | ToolStatus::Running => ToolStatus::Cancelled,
        status @ (ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled) => status,
    };
    ToolCall { status, ..call }
}

/// The message that shows what a tool drew.
fn pictures_of(call: &ToolCall, now: Timestamp) -> Message {
    Message {
        id: format!("{}-pictures", call.id).into(),
        author: Author::Assistant,
        parts: Content::Open(vec![]),
        created_at: now,
        run: None,
        parent: call.parent.clone(),
        digest: None,
    }
}
