//! Converts rows of the panel to messages and tool calls.
//!
//! A person's row is finished at once. The agent's row is finished when another follows it, or when
//! everything was quiet for a while; until then, its growth is passed on live. A row that leaves
//! the document is not a deletion. A row above all known rows is older, and is not reported after
//! them.

use std::collections::BTreeMap;

use domain::content::{Author, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus};
use domain::passing::{Delta, Voice};
use domain::{Content, MessageId, Timestamp, ToolCallId};
use sha2::{Digest, Sha256};

use super::PanelDriver;
use crate::Output;
use crate::panel::frames::{Push, Row};
use crate::panel::identity::print_of;
use crate::panel::profile::Role;
use crate::panel::tellings::Telling;

/// How often a finished row that is written anew is told again.
const TELLINGS_MAX: u32 = 4;
/// Rows in the making at once. At the bound the first by name is not written any further.
const OPEN_MAX: usize = 32;
/// The least time between two tellings of a tool at work: each is recorded.
const TOOL_EVERY_MS: u64 = 1_000;
/// How far numbers of places move when rows between them go.
const SLACK: u64 = 3;
/// Characters of a tool's title.
const TITLE_CHARACTERS_MAX: usize = 200;
/// Rows that must agree before a chat that comes back is known again.
const RETURN_ROWS_MIN: usize = 2;

/// Rows in the making.
#[derive(Debug, Default)]
pub(super) struct Rows {
    open: BTreeMap<String, Open>,
    /// Tools at work: the fingerprint that was told last, how far it was, and when.
    tools: BTreeMap<String, (String, ToolStatus, Timestamp)>,
    /// The list was seen empty after it was not.
    was_cleared: bool,
    was_filled: bool,
    /// Rows that wait for quiet.
    unfinished: usize,
}

#[derive(Debug)]
struct Open {
    id: MessageId,
    /// Where the untold part begins, in bytes.
    from: usize,
    number: u32,
    /// What was passed on, after `from`.
    told: String,
    units: u64,
    /// How long it was when it was last looked at, in bytes.
    length: usize,
}

impl Rows {
    pub(super) fn has_unfinished(&self) -> bool {
        self.unfinished > 0
    }
}

/// What is so while the rows are gone through.
struct Pass {
    now: Timestamp,
    is_settled: bool,
    /// A send is being typed: what follows its row waits for it.
    is_withheld: bool,
}

impl PanelDriver {
    /// Which chat is shown.
    pub(super) fn follow_chapter(&mut self, last: &Push) {
        let tellings = &self.notes.tellings;
        if let Some(name) = last.conversation.as_ref().filter(|name| **name != tellings.chapter) {
            let is_nameless = tellings.chapter.is_empty() || tellings.chapter.starts_with('#');
            // A chat often gets its name with its first words.
            let line = if is_nameless && !tellings.knows(name) {
                self.notes.note_renamed(name.clone())
            } else {
                self.notes.note_chapter(name.clone())
            };
            self.rows.was_cleared = false;
            return self.remember(line);
        }
        if last.conversation.is_some() {
            return;
        }
        if self.sight.rows.is_empty() || last.count == 0 {
            self.rows.was_cleared |= self.rows.was_filled && last.landmarks.composer.is_some();
            return;
        }
        self.rows.was_filled = true;
        if !std::mem::take(&mut self.rows.was_cleared) {
            return;
        }
        let shown: Vec<_> =
            self.sight.rows.iter().map(|row| (slot_of(row), row.print().to_owned())).collect();
        let is_return = shown.len() >= RETURN_ROWS_MIN;
        let known = is_return.then(|| self.notes.tellings.chapter_of(&shown)).flatten();
        let next = || format!("#{}", self.notes.tellings.chapters + 1);
        let name = known.unwrap_or_else(next);
        if name != self.notes.tellings.chapter {
            let line = self.notes.note_chapter(name);
            self.remember(line);
        }
    }

    /// Tells what is new in the rows.
    pub(super) fn follow_rows(&mut self, now: Timestamp) {
        self.go_through(now, self.running.is_settled(self.settle_ms(now), now));
    }

    /// Tells the rows as far as they came: nothing more is to come.
    pub(super) fn finish_rows(&mut self, now: Timestamp) {
        self.go_through(now, true);
    }

    fn go_through(&mut self, now: Timestamp, is_settled: bool) {
        let mut rows = std::mem::take(&mut self.sight.rows);
        let mut pass = Pass { now, is_settled, is_withheld: false };
        let mut said: BTreeMap<(String, String), usize> = BTreeMap::new();
        let is_told = |this: &Self, row: &Row| {
            row.is_done || this.notes.tellings.count(&slot_of(row), row.print()) > 0
        };
        let first_told = rows.iter().position(|row| is_told(self, row));
        let length = rows.len();
        self.rows.unfinished = 0;
        for (at, row) in rows.iter_mut().enumerate() {
            let slot = slot_of(row);
            let times = said.entry((slot.clone(), row.print().to_owned())).or_default();
            *times += 1;
            let is_known = self.notes.tellings.count(&slot, row.print()) >= *times;
            if row.is_done || is_known {
                row.is_done = true;
                continue;
            }
            if self.is_older(row, at, first_told) {
                row.is_done = true;
                continue;
            }
            let has_later = at + 1 < length;
            self.follow_row(row, &slot, has_later, &mut pass);
            self.rows.unfinished += usize::from(!row.is_done);
        }
        for row in rows.iter_mut().filter(|row| row.is_done) {
            row.forget_words();
        }
        self.sight.rows = rows;
    }

    /// Whether a row was said before all that was told, and only came into sight now.
    fn is_older(&self, row: &Row, at: usize, first_told: Option<usize>) -> bool {
        // A name that is only a count may be another row's now.
        let is_named = slot_of(row) == row.key;
        let goes_on =
            |last: &Telling| is_named || last.rest(&row.text).is_some() || last.is_like(&row.text);
        let was_told = self.notes.tellings.last(&row.key).is_some_and(goes_on);
        if self.rows.open.contains_key(&row.key) || was_told {
            return false;
        }
        let is_above = first_told.is_some_and(|first| at < first);
        let is_below = self.notes.tellings.top().is_some_and(|top| row.ordinal + SLACK < top);
        is_above || (self.profile.transcript.is_virtual && row.is_placed && is_below)
    }

    fn follow_row(&mut self, row: &mut Row, slot: &str, has_later: bool, pass: &mut Pass) {
        let is_finished = (has_later || pass.is_settled) && !pass.is_withheld;
        match row.role {
            Role::User => self.user_row(row, slot, pass),
            Role::Assistant => {
                self.running.answered();
                self.agent_row(row, slot, Voice::Text, is_finished, pass.now);
            }
            Role::Thinking => {
                self.running.answered();
                self.agent_row(row, slot, Voice::Thinking, is_finished, pass.now);
            }
            Role::Tool => {
                self.running.answered();
                self.tool_row(row, slot, is_finished, pass.now);
            }
            Role::System if is_finished => {
                self.say(row, slot, Author::System, 0, pass.now);
            }
            Role::System => {}
        }
    }

    fn user_row(&mut self, row: &mut Row, slot: &str, pass: &mut Pass) {
        if pass.is_withheld {
            return;
        }
        let bare = self.without_habit(&row.text).to_owned();
        if self.flight().is_some_and(|it| it.is_echo(&row.text) || it.is_echo(&bare)) {
            // Whether it was delivered its job says.
            pass.is_withheld = true;
            return;
        }
        let is_made_up = self.notes.tellings.last(&row.key).is_some_and(|it| it.is_like(&row.text));
        if is_made_up
            || self.take_echo(&row.text, pass.now)
            || (bare != row.text && self.take_echo(&bare, pass.now))
        {
            return self.note_told(row, slot, 1);
        }
        self.say(row, slot, Author::User, 0, pass.now);
    }

    /// A row of the agent's words: live while it grows, recorded when it is finished.
    fn agent_row(
        &mut self,
        row: &mut Row,
        slot: &str,
        voice: Voice,
        is_finished: bool,
        now: Timestamp,
    ) {
        if !self.rows.open.contains_key(&row.key) && !self.open_row(row, slot) {
            return;
        }
        let length = row.text.len();
        let grows = self.rows.open.get(&row.key).is_some_and(|open| length > open.length);
        // Words that grow are work, whatever else the panel shows.
        if grows && !is_finished && self.scribe.run().is_none() {
            self.begin_run(now);
        }
        let has_run = self.scribe.run().is_some();
        let Some(open) = self.rows.open.get_mut(&row.key) else { return };
        open.length = length;
        let part = row.text.get(open.from..).unwrap_or(&row.text);
        if !is_finished {
            let more = part.strip_prefix(open.told.as_str()).filter(|more| !more.is_empty());
            if let Some(more) = more.filter(|_| has_run) {
                let words = Content::Open(more.to_owned());
                let (message, offset) = (open.id.clone(), open.units);
                open.units += u64::try_from(more.encode_utf16().count()).unwrap_or(u64::MAX);
                open.told.push_str(more);
                let delta = Delta { message, part: 0, voice, offset, words };
                self.scribe.push(Output::Passing(delta, None));
            }
            return;
        }
        let (number, part) = (open.number, part.to_owned());
        let id = open.id.clone();
        self.rows.open.remove(&row.key);
        let parts = match voice {
            Voice::Text => Part::Text(part),
            Voice::Thinking => Part::Thinking(part),
        };
        self.note_told(row, slot, number);
        self.record(id, Author::Assistant, parts, now);
    }

    /// Begins a row, or goes on with one that was told already. False where nothing is new.
    fn open_row(&mut self, row: &mut Row, slot: &str) -> bool {
        let last = self.notes.tellings.last(&row.key).cloned();
        let (from, number) = match &last {
            None => (0, 1),
            Some(last) => match last.rest(&row.text) {
                Some(from) if row.text[from..].trim().is_empty() => {
                    self.note_told(row, slot, last.number);
                    return false;
                }
                Some(from) => (from, last.number + 1),
                None if last.is_like(&row.text) || last.number >= TELLINGS_MAX => {
                    self.note_told(row, slot, last.number);
                    return false;
                }
                None => (0, last.number + 1),
            },
        };
        if self.rows.open.len() >= OPEN_MAX {
            self.rows.open.pop_first();
        }
        let id = self.id_of(&row.key, number);
        let open = Open { id, from, number, told: String::new(), units: 0, length: row.text.len() };
        self.rows.open.insert(row.key.clone(), open);
        true
    }

    fn tool_row(&mut self, row: &mut Row, slot: &str, is_finished: bool, now: Timestamp) {
        let last = self.notes.tellings.last(&row.key);
        if last.is_some_and(|last| last.number >= TELLINGS_MAX || last.is_like(&row.text)) {
            let number = last.map_or(1, |last| last.number);
            return self.note_told(row, slot, number);
        }
        let mut lines = row.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let title: String =
            lines.next().unwrap_or("Tool").chars().take(TITLE_CHARACTERS_MAX).collect();
        let rest = row.text.trim_start().split_once('\n').map(|(_, rest)| rest.trim().to_owned());
        let word = row.tool.as_ref().and_then(|tool| tool.status.as_deref());
        let status = tool_status(word, is_finished);
        // What was told as finished and goes on is a call of its own.
        let number = last.map_or(1, |last| last.number + 1);
        let id = ToolCallId::from(self.id_of(&row.key, number).as_str());
        let detail = ToolDetail {
            title: Some(title.clone()),
            output: rest.filter(|rest| !rest.is_empty()),
            ..ToolDetail::default()
        };
        let call = ToolCall {
            id,
            tool: title.split([' ', '(', ':']).next().unwrap_or("tool").to_owned(),
            kind: ToolKind::Other,
            status,
            detail: Content::Open(detail),
            run: None,
            parent: None,
        };
        let is_over = match status {
            ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => true,
            ToolStatus::Pending | ToolStatus::Running => false,
        };
        if is_over {
            self.rows.tools.remove(&row.key);
            self.note_told(row, slot, number);
        } else {
            let print = row.print().to_owned();
            let told = self.rows.tools.get(&row.key);
            let is_soon = |at: Timestamp| now.ms_since(at) < TOOL_EVERY_MS;
            if told.is_some_and(|told| told.1 == status && (told.0 == print || is_soon(told.2))) {
                return;
            }
            if self.rows.tools.len() >= OPEN_MAX {
                self.rows.tools.pop_first();
            }
            self.rows.tools.insert(row.key.clone(), (print, status, now));
        }
        self.scribe.tool(call, now);
    }

    /// A whole message at once.
    fn say(&mut self, row: &mut Row, slot: &str, author: Author, from: usize, now: Timestamp) {
        let number = self.notes.tellings.last(&row.key).map_or(1, |last| last.number + 1);
        let id = self.id_of(&row.key, number);
        let part = Part::Text(row.text[from..].to_owned());
        self.note_told(row, slot, number);
        self.record(id, author, part, now);
    }

    fn record(&mut self, id: MessageId, author: Author, part: Part, now: Timestamp) {
        let run = self.scribe.run().cloned().filter(|_| author == Author::Assistant);
        let parts = Content::Open(vec![part]);
        let (created_at, parent, digest) = (now, None, None);
        self.scribe.message(Message { id, author, parts, created_at, run, parent, digest });
    }

    fn note_told(&mut self, row: &mut Row, slot: &str, number: u32) {
        let chapter = self.notes.tellings.chapter.clone();
        let telling = Telling::new(&chapter, &row.key, slot, &row.text, row.ordinal, number);
        self.notes.told(telling);
        row.is_done = true;
    }

    /// The same row has the same id, whenever it is seen.
    fn id_of(&self, key: &str, number: u32) -> MessageId {
        let mut hash = Sha256::new();
        let number = number.to_string();
        for piece in [self.session.as_str(), &self.notes.tellings.chapter, key, &number] {
            hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(piece.as_bytes());
        }
        let digest = hash.finalize();
        let hex =
            digest.iter().take(12).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        format!("row-{hex}").into()
    }
}

/// Where the same words count as the same: a row's own name, or its role where it has none.
fn slot_of(row: &Row) -> String {
    match row.key.split_once('#') {
        Some((role, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => role.to_owned(),
        _ => row.key.clone(),
    }
}

fn tool_status(word: Option<&str>, is_finished: bool) -> ToolStatus {
    match word.map(str::to_ascii_lowercase).as_deref() {
        Some("completed" | "complete" | "success" | "done" | "finished") => ToolStatus::Completed,
        Some("error" | "failed" | "failure") => ToolStatus::Failed,
        Some("cancelled" | "canceled" | "rejected" | "skipped" | "denied") => ToolStatus::Cancelled,
        _ if is_finished => ToolStatus::Completed,
        Some("pending" | "queued" | "waiting") => ToolStatus::Pending,
        _ => ToolStatus::Running,
    }
}

impl Row {
    /// The fingerprint of its words.
    fn print(&self) -> &str {
        self.print.get_or_init(|| print_of(&self.text))
    }

    /// What was told is not kept.
    fn forget_words(&mut self) {
        self.print();
        self.text = String::new();
    }
}
