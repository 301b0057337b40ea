//! Pictures that the agent made, from their detection to the message that shows them.
//!
//! A picture is a separate message, reported when the relay has its bytes. A picture that cannot be
//! kept is replaced by a text, so that nobody wonders what the agent refers to.
//!
//! Invariant: every picture is reported once, as itself or as a text.
//!
//! Not here: pictures of an earlier conversation (`retelling`), which are part of its messages.

use std::collections::BTreeMap;

use domain::content::{Attachment, Author, Message, Part};
use domain::{AttachmentId, Content, MessageId, RunId, Timestamp, ToolCallId};

use crate::{Kept, Picture, Place};

/// Bytes of a picture. A larger one is told in words.
const PICTURE_BYTES_MAX: usize = 10 << 20;
/// Pictures on their way at once. What is more is told in words.
const PENDING_MAX: usize = 16;
/// Characters of a picture's name, without its ending.
const NAME_CHARACTERS_MAX: usize = 60;
/// Characters of a media type.
const TYPE_CHARACTERS_MAX: usize = 60;

/// A picture as an agent gives it.
#[derive(Clone, PartialEq, Eq)]
pub struct Drawing {
    /// What it shows, or who made it: its name is made of this.
    pub what: String,
    /// `image/png`, … as the agent says.
    pub media_type: String,
    /// Its bytes.
    pub base64: String,
}

/// Without the picture: it is long.
impl std::fmt::Debug for Drawing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Drawing({}, {}, {} characters)", self.what, self.media_type, self.base64.len())
    }
}

/// What people are told of a picture, and whether it can be kept.
pub(super) struct Look {
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) size_bytes: usize,
    pub(super) why_not: Option<&'static str>,
}

/// Looks at a picture before anybody is asked to keep it.
pub(super) fn look(what: &str, media_type: &str, base64: &str) -> Look {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
    let media_type: String = media_type.chars().take(TYPE_CHARACTERS_MAX).collect();
    let is_picture = media_type.starts_with("image/") && media_type.chars().all(is_plain);
    let size_bytes = base64.len() / 4 * 3;
    let why_not = if base64.is_empty() {
        Some("there are too many pictures")
    } else if !is_picture {
        Some("its type is not a picture type")
    } else if size_bytes > PICTURE_BYTES_MAX {
        Some("it is larger than 10 MiB")
    } else {
        None
    };
    let name = format!("{}.{}", name(what), ending(&media_type));
    Look { name, media_type, size_bytes, why_not }
}

/// What stands where a picture should be.
pub(super) fn in_words(name: &str, size_bytes: usize, why: &str) -> String {
    let kib = size_bytes.div_ceil(1_024);
    format!("[picture {name} ({kib} KiB) not shown: {why}]")
}

/// The picture in a message.
pub(super) fn part(id: AttachmentId, name: &str, media_type: &str) -> Part {
    let (name, media_type) = (name.to_owned(), Some(media_type.to_owned()));
    Part::Image(Attachment { id, name, kind: "image".to_owned(), media_type })
}

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
    place: Place,
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
        let Look { name, media_type, size_bytes, why_not } = look(what, media_type, base64);
        let place = Place { run, parent, seen_at: now };
        let pending = Pending { name, media_type, size_bytes, place };
        let is_full = self.pending.len() >= PENDING_MAX;
        let why_not = why_not.or(is_full.then_some("there are too many pictures at once"));
        if let Some(why) = why_not {
            return Taken::Tell(pending.in_words(id, why));
        }
        let picture = Picture {
            message: id.clone(),
            name: pending.name.clone(),
            media_type: pending.media_type.clone(),
            base64: base64.to_owned(),
            place: Some(pending.place.clone()),
        };
        self.pending.insert(id, pending);
        Taken::Keep(picture)
    }

    /// Takes up a picture that was on its way when the proxy died. One that belongs to no message
    /// of its own is none.
    pub(super) fn held(&mut self, picture: &Picture) -> bool {
        let Some(place) = picture.place.clone() else { return false };
        let (name, media_type) = (picture.name.clone(), picture.media_type.clone());
        let size_bytes = picture.base64.len() / 4 * 3;
        let pending = Pending { name, media_type, size_bytes, place };
        self.pending.insert(picture.message.clone(), pending).is_none()
    }

    /// The message that shows it, once.
    pub(super) fn kept(&mut self, id: &MessageId, outcome: Kept) -> Option<Message> {
        let pending = self.pending.remove(id)?;
        Some(match outcome {
            Ok(attachment) => {
                let part = part(attachment, &pending.name, &pending.media_type);
                pending.message(id.clone(), part)
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
            created_at: self.place.seen_at,
            run: self.place.run,
            parent: self.place.parent,
            digest: None,
        }
    }

    fn in_words(self, id: MessageId, why: &str) -> Message {
        let words = in_words(&self.name, self.size_bytes, why);
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
