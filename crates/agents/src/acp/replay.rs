//! An earlier conversation as replayed by `session/load`: to be imported, or to find out what the
//! agent received.
//!
//! Invariant: the same record always yields the same messages, under the same ids.
//!
//! Not here: live messages (`observation`).

use std::collections::{BTreeMap, VecDeque};

use domain::content::{Author, Message, Part};
use domain::{Content, Timestamp, ToolCallId};

use super::frames::{Chunk, Update};
use super::notes::digest_of;
use super::observation;
use super::quirks::Quirks;
use super::tools::{News, Tools};
use crate::{Drawing, Piece, Scribe};

/// Messages and tool calls that are imported; of a longer conversation the end.
const ITEMS_MAX: usize = 4_000;
/// Pictures of a replay that are held until it is told. What is more is told in words.
const PICTURES_MAX: usize = 128;

#[derive(Debug)]
enum Item {
    Message(Making),
    Tool(ToolCallId, Vec<Drawing>),
}

#[derive(Debug)]
struct Making {
    id: String,
    names: Vec<String>,
    author: Author,
    parts: Vec<Part>,
    drawings: Vec<Drawing>,
}

/// A replay under way.
#[derive(Debug, Default)]
pub(super) struct Replay {
    items: VecDeque<Item>,
    tools: Tools,
    count: usize,
    left_out: usize,
    pictures: usize,
    plan: Option<Vec<domain::content::PlanEntry>>,
}

impl Replay {
    /// Takes in one piece.
    pub(super) fn hear(&mut self, update: Update, quirks: &Quirks) {
        match update {
            Update::User(chunk) => self.words(&chunk, Author::User, Part::Text, quirks),
            Update::Agent(chunk) => self.words(&chunk, Author::Assistant, Part::Text, quirks),
            Update::Thought(chunk) => {
                self.words(&chunk, Author::Assistant, Part::Thinking, quirks);
            }
            Update::Tool(frame) => {
                if let Some(News::Begun(call)) = self.tools.hear(&frame, quirks) {
                    self.push(Item::Tool(call.id, vec![]));
                }
                for (what, (media_type, base64)) in self.tools.new_pictures(&frame) {
                    self.tool_picture(&frame.id, drawing(&what, media_type, base64));
                }
            }
            Update::Plan(lines) => self.plan = Some(observation::plan(lines)),
            Update::Commands(_)
            | Update::Mode(_)
            | Update::Options(_)
            | Update::Usage(_)
            | Update::Other
            | Update::Unknown(_) => {}
        }
    }

    fn words(
        &mut self,
        chunk: &Chunk,
        author: Author,
        part: impl Fn(String) -> Part,
        quirks: &Quirks,
    ) {
        // A picture is no word of the text by which a person's message is recognised.
        if let Some((media_type, base64)) = chunk.content.picture() {
            return self.picture(chunk, author, drawing("picture", media_type, base64));
        }
        let Some(words) = chunk.content.words() else { return };
        if author == Author::User && chunk.content.kind == "image" {
            return;
        }
        if quirks.replay_marks.iter().any(|mark| words.starts_with(mark)) {
            return;
        }
        let part = part(words);
        let name = chunk.message_id.as_deref();
        if let Some(Item::Message(last)) = self.items.back_mut()
            && last.takes(author, name, &part)
        {
            last.add(part);
            return;
        }
        let id = name.map_or_else(|| format!("replayed-{}", self.count), str::to_owned);
        let names = name.map(str::to_owned).into_iter().collect();
        self.push(Item::Message(Making { id, names, author, parts: vec![part], drawings: vec![] }));
    }

    fn picture(&mut self, chunk: &Chunk, author: Author, drawing: Drawing) {
        let drawing = self.bounded(drawing);
        let name = chunk.message_id.as_deref();
        if let Some(Item::Message(last)) = self.items.back_mut()
            && last.author == author
            && (name.is_none() || last.names.iter().any(|known| Some(known.as_str()) == name))
        {
            last.drawings.push(drawing);
            return;
        }
        let id = name.map_or_else(|| format!("replayed-{}", self.count), str::to_owned);
        let names = name.map(str::to_owned).into_iter().collect();
        let drawings = vec![drawing];
        self.push(Item::Message(Making { id, names, author, parts: vec![], drawings }));
    }

    fn tool_picture(&mut self, id: &str, drawing: Drawing) {
        let drawing = self.bounded(drawing);
        let of_call = self.items.iter_mut().rev().find_map(|item| match item {
            Item::Tool(call, drawings) if call.as_str() == id => Some(drawings),
            Item::Tool(..) | Item::Message(_) => None,
        });
        if let Some(drawings) = of_call {
            drawings.push(drawing);
        }
    }

    /// Of too many only the name is held.
    fn bounded(&mut self, drawing: Drawing) -> Drawing {
        self.pictures += 1;
        let is_held = self.pictures <= PICTURES_MAX;
        Drawing { base64: if is_held { drawing.base64 } else { String::new() }, ..drawing }
    }

    fn push(&mut self, item: Item) {
        self.count += 1;
        if self.items.len() >= ITEMS_MAX {
            self.items.pop_front();
            self.left_out += 1;
        }
        self.items.push_back(item);
    }

    /// How often a person said each text.
    pub(super) fn texts(&self) -> BTreeMap<String, usize> {
        let mut texts = BTreeMap::new();
        for item in &self.items {
            if let Item::Message(making) = item
                && making.author == Author::User
            {
                *texts.entry(digest_of(&making.text())).or_default() += 1;
            }
        }
        texts
    }

    /// Tells all of it; the scribe says when that is done.
    pub(super) fn import(self, scribe: &mut Scribe, now: Timestamp) {
        let Self { items, tools, left_out, plan, .. } = self;
        if left_out > 0 {
            let words = format!("The first {left_out} entries of this conversation are not shown");
            scribe.notice("import", words);
        }
        if let Some(plan) = plan {
            scribe.plan(plan);
        }
        let mut pieces = vec![];
        for item in items {
            match item {
                Item::Message(Making { id, author, parts, drawings, .. }) => {
                    pieces.push(Piece::Message(message(&id, author, parts, now), drawings));
                }
                Item::Tool(id, drawings) => {
                    pieces.extend(tools.whole(&id).map(Piece::Tool));
                    if !drawings.is_empty() {
                        let id = format!("{id}-pictures");
                        let message = message(&id, Author::Assistant, vec![], now);
                        pieces.push(Piece::Message(message, drawings));
                    }
                }
            }
        }
        scribe.retell(pieces, now);
    }
}

fn message(id: &str, author: Author, parts: Vec<Part>, created_at: Timestamp) -> Message {
    Message {
        id: id.into(),
        author,
        parts: Content::Open(parts),
        created_at,
        run: None,
        parent: None,
        digest: None,
    }
}

fn drawing(what: &str, media_type: &str, base64: &str) -> Drawing {
    let (what, media_type) = (what.to_owned(), media_type.to_owned());
    Drawing { what, media_type, base64: base64.to_owned() }
}

impl Making {
    /// Without names each message of a person is one piece; the agent's pieces belong together.
    fn takes(&mut self, author: Author, name: Option<&str>, part: &Part) -> bool {
        if author != self.author {
            return false;
        }
        let Some(name) = name else {
            return author == Author::Assistant && self.names.is_empty();
        };
        if self.names.iter().any(|known| known == name) {
            return true;
        }
        let only_thought = matches!(self.parts.as_slice(), [Part::Thinking(_)]);
        if only_thought && self.names.len() == 1 && matches!(part, Part::Text(_)) {
            self.names.push(name.to_owned());
            return true;
        }
        false
    }

    fn add(&mut self, part: Part) {
        match (self.parts.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more))
            | (Some(Part::Thinking(text)), Part::Thinking(more)) => text.push_str(&more),
            (_, part) => self.parts.push(part),
        }
    }

    fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::ToolCall(_) => None,
        };
        self.parts.iter().filter_map(text).collect()
    }
}
