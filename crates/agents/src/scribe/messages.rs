//! Messages in the making.

use domain::content::{Author, Message, Part};
use domain::passing::{Delta, Voice};
use domain::{Content, MessageId, RunId, Timestamp, ToolCallId};

/// Messages in the making at once. At the bound the oldest is not written any further.
const OPEN_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Messages(Vec<Making>);

#[derive(Debug)]
struct Making {
    id: MessageId,
    parent: Option<ToolCallId>,
    parts: Vec<Place>,
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
        let (at, place) = self.place(id, key, voice)?;
        let offset = place.units;
        match &mut place.part {
            Part::Text(text) | Part::Thinking(text) => text.push_str(words),
            Part::Image(_) | Part::File(_) | Part::ToolCall(_) => return None,
        }
        place.units += units(words);
        let words = Content::Open(words.to_owned());
        Some(Delta { message: id.clone(), part: at, voice, offset, words })
    }

    /// Where the agent's last word differs from what was told, the recorded message has it.
    pub(super) fn whole_words(
        &mut self,
        id: &MessageId,
        key: u32,
        voice: Voice,
        whole: &str,
    ) -> Option<Delta> {
        let (_, place) = self.place(id, key, voice)?;
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
        let making = self.0.remove(at);
        let parts: Vec<_> = making.parts.into_iter().map(|place| place.part).collect();
        let has_content = parts.iter().any(|part| match part {
            Part::Text(text) | Part::Thinking(text) => !text.is_empty(),
            Part::Image(_) | Part::File(_) | Part::ToolCall(_) => true,
        });
        has_content.then(|| Message {
            id: making.id,
            author: Author::Assistant,
            parts: Content::Open(parts),
            created_at: now,
            run: run.cloned(),
            parent: making.parent,
            digest: None,
        })
    }

    fn making(&mut self, id: &MessageId) -> &mut Making {
        let at = self.0.iter().position(|making| making.id == *id).unwrap_or_else(|| {
            if self.0.len() >= OPEN_MAX {
                self.0.remove(0);
            }
            self.0.push(Making { id: id.clone(), parent: None, parts: vec![] });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    fn place(&mut self, id: &MessageId, key: u32, voice: Voice) -> Option<(u32, &mut Place)> {
        let making = self.making(id);
        let at = making.parts.iter().position(|place| place.key == key).unwrap_or_else(|| {
            let part = match voice {
                Voice::Text => Part::Text(String::new()),
                Voice::Thinking => Part::Thinking(String::new()),
            };
            making.parts.push(Place { key, part, units: 0 });
            making.parts.len() - 1
        });
        Some((u32::try_from(at).ok()?, &mut making.parts[at]))
    }
}

fn units(words: &str) -> u64 {
    u64::try_from(words.encode_utf16().count()).unwrap_or(u64::MAX)
}
