//! Pictures that the agent made, from when they are seen to the message that shows them.
//!
//! A picture is a message of its own, told when the relay has its bytes. One that cannot be kept
//! is told in words, so that nobody wonders what the agent speaks of.
//!
//! Invariant: every picture is told once, as itself or in words.

use std::collections::BTreeMap;

use domain::content::{Attachment, Author, Message, Part};
use domain::{Content, MessageId, RunId, Timestamp, ToolCallId};

use crate::{Kept, Picture};

/// Bytes of a picture. A larger one is told in words.
const PICTURE_BYTES_MAX: usize = 10 << 20;
/// Pictures on their way at once. What is more is told in words.
const PENDING_MAX: usize = 16;
/// Characters of a picture's name, without its ending.
const NAME_CHARACTERS_MAX: usize = 60;
/// Characters of a media type.
const TYPE_CHARACTERS_MAX: usize = 60;

/// Pictures on their way.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    pending: BTreeMap<MessageId, Pending>,
    count: u64,
}

/// What is known of a picture.
#[derive(Debug)]
struct Pending {
    name: String,
    media_type: String,
    size_bytes: usize,
    run: Option<RunId>,
    parent: Option<ToolCallId>,
    seen_at: Timestamp,
}

/// What to do about a picture.
pub(super) enum Taken {
    Keep(Picture),
    Tell(Message),
}

impl Pictures {
    pub(super) fn take(
        &mut self,
        what: &str,
        (media_type, base64): (&str, &str),
        (run, parent): (Option<RunId>, Option<ToolCallId>),
        now: Timestamp,
    ) -> Taken {
        self.count += 1;
        let id: MessageId = match &run {
            Some(run) => format!("{run}-picture-{}", self.count).into(),
            None => format!("picture-{}-{}", now.0, self.count).into(),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
        let media_type: String = media_type.chars().take(TYPE_CHARACTERS_MAX).collect();
        let is_picture = media_type.starts_with("image/") && media_type.chars().all(is_plain);
        let size_bytes = base64.len() / 4 * 3;
        let name = format!("{}.{}", name(what), ending(&media_type));
        let pending = Pending { name, media_type, size_bytes, run, parent, seen_at: now };
        let why_not = if !is_picture {
            Some("its type is not that of a picture")
        } else if size_bytes > PICTURE_BYTES_MAX {
            Some("it is larger than 10 MiB")
        } else if self.pending.len() >= PENDING_MAX {
            Some("there are too many at once")
        } else {
            None
        };
        if let Some(why) = why_not {
            return Taken::Tell(pending.in_words(id, why));
        }
        let picture = Picture {
            message: id.clone(),
            name: pending.name.clone(),
            media_type: pending.media_type.clone(),
            base64: base64.to_owned(),
        };
        self.pending.insert(id, pending);
        Taken::Keep(picture)
    }

    /// The message that shows it, once.
    pub(super) fn kept(&mut self, id: &MessageId, outcome: Kept) -> Option<Message> {
        let pending = self.pending.remove(id)?;
        Some(match outcome {
            Ok(attachment) => {
                let (name, media_type) = (pending.name.clone(), Some(pending.media_type.clone()));
                let kind = "image".to_owned();
                let file = Attachment { id: attachment, name, kind, media_type };
                pending.message(id.clone(), Part::Image(file))
            }
            Err(failure) => pending.in_words(id.clone(), &failure.message),
        })
    }
}

impl Pending {
    fn message(self, id: MessageId, part: Part) -> Message {
        Message {
            id,
            author: Author::Assistant,
            parts: Content::Open(vec![part]),
            created_at: self.seen_at,
            run: self.run,
            parent: self.parent,
            digest: None,
        }
    }

    fn in_words(self, id: MessageId, why: &str) -> Message {
        let (name, kib) = (&self.name, self.size_bytes.div_ceil(1_024));
        let words = format!("[picture {name}, {kib} KiB: it is not shown because {why}]");
        self.message(id, Part::Text(words))
    }
}

/// Of what it shows, as a file may be called.
fn name(what: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let name: String = what.chars().take(NAME_CHARACTERS_MAX).map(plain).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "picture".to_owned() } else { name.to_owned() }
}

fn ending(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        _ => "image",
    }
}
