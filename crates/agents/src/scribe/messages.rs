//! Unfinished messages.
//!
//! What an agent writes as one message may be recorded in several pieces: the text before a tool
//! call is recorded before the call, so that the ledger keeps the agent's own order. The first
//! piece keeps the agent's id; each further one gets a number appended.

use domain::content::{Author, Message, Part};
use domain::passing::{Delta, Voice};
use domain::{Content, MessageId, RunId, Timestamp, ToolCallId};

/// Messages in the making at once. At the bound the oldest is not written any further.
const OPEN_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Messages(Vec<Making>);

#[derive(Debug)]
struct Making {
    /// As the agent names it.
    id: MessageId,
    parent: Option<ToolCallId>,
    parts: Vec<Place>,
    /// How many of `parts` are recorded already.
    recorded: usize,
    /// How many pieces are recorded already.
    pieces: u32,
}

#[derive(Debug)]
struct Place {
    key: u32,
    part: Part,
    /// Its length in UTF-16 units.
    units: u64,
}

impl Messages {
    pub(super) fn is_open(&self, id: &MessageId) -> bool {
        self.0.iter().any(|making| making.id == *id)
    }

    /// The call to which a message in the making belongs.
    pub(super) fn parent(&self, id: &MessageId) -> Option<&ToolCallId> {
        self.0.iter().find(|making| making.id == *id)?.parent.as_ref()
    }

    /// Those in the making, with the calls to which they belong.
    pub(super) fn open(&self) -> Vec<(MessageId, Option<ToolCallId>)> {
        self.0.iter().map(|making| (making.id.clone(), making.parent.clone())).collect()
    }

    pub(super) fn words(
        &mut self,
        id: &MessageId,
        key: u32,
        voice: Voice,
        words: &str,
    ) -> Option<Delta> {
        if words.is_empty() {
            return None;
        }
        let (piece, at, place) = self.place(id, key, voice)?;
        let offset = place.units;
        match &mut place.part {
            Part::Text(text) | Part::Thinking(text) => text.push_str(words),
            Part::Image(_) | Part::File(_) | Part::ToolCall(_) => return None,
        }
        place.units += units(words);
        let words = Content::Open(words.to_owned());
        Some(Delta { message: piece, part: at, voice, offset, words })
    }

    /// Where the agent's last word differs from what was told, the recorded message has it.
    pub(super) fn whole_words(
        &mut self,
        id: &MessageId,
        key: u32,
        voice: Voice,
        whole: &str,
    ) -> Option<Delta> {
        let (_, _, place) = self.place(id, key, voice)?;
        let told = match &mut place.part {
            Part::Text(text) | Part::Thinking(text) => text,
            Part::Image(_) | Part::File(_) | Part::ToolCall(_) => return None,
        };
        if let Some(rest) = whole.strip_prefix(told.as_str()) {
            let rest = rest.to_owned();
            return self.words(id, key, voice, &rest);
        }
        whole.clone_into(told);
        None
    }

    pub(super) fn place_tool(&mut self, id: &MessageId, key: u32, tool: ToolCallId) {
        let making = self.making(id);
        if making.parts.iter().all(|place| place.key != key) {
            making.parts.push(Place { key, part: Part::ToolCall(tool), units: 0 });
        }
    }

    pub(super) fn belongs_to(&mut self, id: &MessageId, parent: Option<ToolCallId>) {
        self.making(id).parent = parent;
    }

    pub(super) fn finish(
        &mut self,
        id: &MessageId,
        run: Option<&RunId>,
        now: Timestamp,
    ) -> Option<Message> {
        let at = self.0.iter().position(|making| making.id == *id)?;
        let mut making = self.0.remove(at);
        let whole = making.parts.len();
        making.record_up_to(whole, run, now)
    }

    /// The text that the agent wrote before it called this tool.
    pub(super) fn before_tool(
        &mut self,
        tool: &ToolCallId,
        run: Option<&RunId>,
        now: Timestamp,
    ) -> Option<Message> {
        self.0.iter_mut().find_map(|making| {
            let mut parts = making.parts.iter().skip(making.recorded);
            let before = parts.position(|place| place.part == Part::ToolCall(tool.clone()))?;
            let place = making.recorded + before;
            making.has_text_before(place).then(|| making.record_up_to(place, run, now))?
        })
    }

    fn making(&mut self, id: &MessageId) -> &mut Making {
        let at = self.0.iter().position(|making| making.id == *id).unwrap_or_else(|| {
            if self.0.len() >= OPEN_MAX {
                self.0.remove(0);
            }
            let (id, parent, parts) = (id.clone(), None, vec![]);
            self.0.push(Making { id, parent, parts, recorded: 0, pieces: 0 });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Where words of this key go: the piece, the part within it, and the part itself. Nothing
    /// for a key that is recorded already.
    fn place(
        &mut self,
        id: &MessageId,
        key: u32,
        voice: Voice,
    ) -> Option<(MessageId, u32, &mut Place)> {
        let making = self.making(id);
        let at = making.parts.iter().position(|place| place.key == key).unwrap_or_else(|| {
            let part = match voice {
                Voice::Text => Part::Text(String::new()),
                Voice::Thinking => Part::Thinking(String::new()),
            };
            making.parts.push(Place { key, part, units: 0 });
            making.parts.len() - 1
        });
        let within = at.checked_sub(making.recorded)?;
        let piece = making.piece();
        Some((piece, u32::try_from(within).ok()?, &mut making.parts[at]))
    }
}

impl Making {
    /// The id of the piece that comes next.
    fn piece(&self) -> MessageId {
        match self.pieces {
            0 => self.id.clone(),
            earlier => format!("{}.{}", self.id, earlier + 1).into(),
        }
    }

    fn has_text_before(&self, place: usize) -> bool {
        self.parts[self.recorded..place].iter().any(|place| match &place.part {
            Part::Text(text) | Part::Thinking(text) => !text.is_empty(),
            Part::Image(_) | Part::File(_) | Part::ToolCall(_) => false,
        })
    }

    /// The next piece: everything before this part that is not recorded yet. Nothing where that
    /// has no content.
    fn record_up_to(
        &mut self,
        place: usize,
        run: Option<&RunId>,
        now: Timestamp,
    ) -> Option<Message> {
        let id = self.piece();
        let parts: Vec<_> =
            self.parts[self.recorded..place].iter().map(|place| place.part.clone()).collect();
        let has_content = parts.iter().any(|part| match part {
            Part::Text(text) | Part::Thinking(text) => !text.is_empty(),
            Part::Image(_) | Part::File(_) | Part::ToolCall(_) => true,
        });
        if !has_content {
            return None;
        }
        self.recorded = place;
        self.pieces += 1;
        Some(Message {
            id,
            author: Author::Assistant,
            parts: Content::Open(parts),
            created_at: now,
            run: run.cloned(),
            parent: self.parent.clone(),
            digest: None,
        })
    }
}

fn units(words: &str) -> u64 {
    u64::try_from(words.encode_utf16().count()).unwrap_or(u64::MAX)
}
