//! Imports an earlier conversation in its order, with its pictures in place.
//!
//! A message whose pictures the relay does not have yet waits, and everything behind it waits too,
//! but all of them together only for a short time, because a person is waiting for the session.
//!
//! Invariant: every piece is reported once and in order; a picture that is not kept is replaced by
//! a text.
//!
//! Not here: reading an agent's own record (`<agent>::stored`), new pictures (`pictures`).

use std::collections::VecDeque;

use domain::content::{Failure, Message, Part, ToolCall};
use domain::session::Report;
use domain::{Content, MessageId, Timestamp};

use super::pictures::{self, Drawing, Look};
use crate::{Kept, Output, Picture};

/// Pictures of one conversation that are kept, the newest. Others are told in words.
const PICTURES_MAX: usize = 64;
/// Characters of base64 of all of them. Older pictures beyond are told in words.
const BASE64_CHARACTERS_MAX: usize = 48 << 20;
/// How long all pictures together may take: a launch waits for them.
const WITHIN_MS: u64 = 8_000;

/// One thing of an earlier conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Somebody said something, and showed these pictures with it.
    Message(Message, Vec<Drawing>),
    /// The agent used a tool, with what came of it.
    Tool(ToolCall),
}

/// A conversation that is being told.
#[derive(Debug)]
pub(super) struct Retelling {
    pieces: VecDeque<Piece>,
    making: Option<Making>,
    /// Pictures beside the newest, which come first and are not kept.
    unkept: usize,
    until: Timestamp,
    /// Whether the time for pictures is over.
    is_late: bool,
}

/// A message that waits for its pictures.
#[derive(Debug)]
struct Making {
    message: Message,
    drawings: VecDeque<Drawing>,
    awaited: Option<Awaited>,
    count: usize,
}

#[derive(Debug)]
struct Awaited {
    id: MessageId,
    name: String,
    media_type: String,
    size_bytes: usize,
}

impl Retelling {
    pub(super) fn new(pieces: Vec<Piece>, now: Timestamp) -> Self {
        let sizes = pieces.iter().flat_map(|piece| match piece {
            Piece::Message(_, drawings) => drawings.as_slice(),
            Piece::Tool(_) => &[],
        });
        let sizes: Vec<usize> = sizes.map(|drawing| drawing.base64.len()).collect();
        let mut characters = 0;
        let newest = sizes.iter().rev().take(PICTURES_MAX).take_while(|size| {
            characters += **size;
            characters <= BASE64_CHARACTERS_MAX
        });
        let unkept = sizes.len() - newest.count();
        let until = now.plus_ms(WITHIN_MS);
        Self { pieces: pieces.into(), making: None, unkept, until, is_late: false }
    }

    /// Whether all is told.
    pub(super) fn is_over(&self) -> bool {
        self.pieces.is_empty() && self.making.is_none()
    }

    /// Tells as far as it can.
    pub(super) fn go_on(&mut self) -> Vec<Output> {
        let mut outputs = vec![];
        loop {
            if let Some(mut making) = self.making.take() {
                if making.awaited.is_none() {
                    outputs.extend(self.next_picture(&mut making).map(Output::Keep));
                }
                if making.awaited.is_some() {
                    self.making = Some(making);
                    return outputs;
                }
                let message = making.message;
                let report = Report::Message { message, has_own_id: true, echo: None };
                outputs.push(Output::Report(report));
            }
            match self.pieces.pop_front() {
                Some(Piece::Message(message, drawings)) => {
                    let drawings = drawings.into();
                    self.making = Some(Making { message, drawings, awaited: None, count: 0 });
                }
                Some(Piece::Tool(call)) => {
                    outputs.push(Output::Report(Report::ToolCall(call)));
                }
                None => return outputs,
            }
        }
    }

    /// The picture that a message is to wait for next.
    fn next_picture(&mut self, making: &mut Making) -> Option<Picture> {
        while let Some(drawing) = making.drawings.pop_front() {
            let Drawing { what, media_type, base64 } = drawing;
            let Look { name, media_type, size_bytes, why_not } =
                pictures::look(&what, &media_type, &base64);
            let is_old = self.unkept > 0;
            self.unkept = self.unkept.saturating_sub(1);
            let why_not = why_not
                .or(is_old.then_some("the conversation has too many pictures"))
                .or(self.is_late.then_some("the relay did not store it in time"));
            if let Some(why) = why_not {
                making.add(Part::Text(pictures::in_words(&name, size_bytes, why)));
                continue;
            }
            making.count += 1;
            let id: MessageId = format!("{}-picture-{}", making.message.id, making.count).into();
            let picture = Picture {
                message: id.clone(),
                name: name.clone(),
                media_type: media_type.clone(),
                base64,
                place: None,
            };
            making.awaited = Some(Awaited { id, name, media_type, size_bytes });
            return Some(picture);
        }
        None
    }

    pub(super) fn awaits(&self, picture: &MessageId) -> bool {
        let awaited = self.making.as_ref().and_then(|making| making.awaited.as_ref());
        awaited.is_some_and(|awaited| awaited.id == *picture)
    }

    /// What became of the picture that is awaited.
    pub(super) fn kept(&mut self, outcome: Kept) {
        let Some(making) = &mut self.making else { return };
        let Some(Awaited { name, media_type, size_bytes, .. }) = making.awaited.take() else {
            return;
        };
        making.add(match outcome {
            Ok(id) => pictures::part(id, &name, &media_type),
            Err(failure) => Part::Text(pictures::in_words(&name, size_bytes, &failure.message)),
        });
    }

    /// Pictures are waited for no longer. Whether that is so since now.
    pub(super) fn give_up_waiting(&mut self, now: Timestamp) -> bool {
        if self.is_late || now < self.until {
            return false;
        }
        self.is_late = true;
        self.kept(Err(Failure::new("timeout", "the relay did not store it in time")));
        true
    }

    pub(super) fn deadline(&self) -> Timestamp {
        self.until
    }
}

impl Making {
    fn add(&mut self, part: Part) {
        if let Content::Open(parts) = &mut self.message.parts {
            parts.push(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::content::Author;

    use super::*;
    use crate::Scribe;

    fn message(id: &str, words: &str) -> Message {
        Message {
            id: id.into(),
            author: Author::User,
            parts: Content::Open(vec![Part::Text(words.to_owned())]),
            created_at: Timestamp(1),
            run: None,
            parent: None,
            digest: None,
        }
    }

    fn drawing(media_type: &str) -> Drawing {
        let (what, media_type) = ("seen".to_owned(), media_type.to_owned());
        Drawing { what, media_type, base64: "UElY".to_owned() }
    }

    /// What was told, a line each.
    fn told(outputs: &[Output]) -> Vec<String> {
        let line = |output: &Output| {
            if let Output::Keep(picture) = output {
                format!("keep {}", picture.message)
            } else if let Output::Report(Report::Message { message, .. }) = output {
                let parts = message.parts.open().unwrap().iter().map(|part| match part {
                    Part::Text(text) => text.clone(),
                    Part::Image(file) => format!("<{} {}>", file.id, file.name),
                    Part::Thinking(_) | Part::File(_) | Part::ToolCall(_) => panic!("{part:?}"),
                });
                format!("{}: {}", message.id, parts.collect::<Vec<_>>().join(" "))
            } else {
                panic!("{output:?}")
            }
        };
        outputs.iter().map(line).collect()
    }

    #[test]
    fn a_picture_stands_in_its_message_and_what_follows_waits_for_it() {
        let mut scribe = Scribe::default();
        let pieces = vec![
            Piece::Message(message("a", "look"), vec![drawing("image/png"), drawing("text/html")]),
            Piece::Message(message("b", "and?"), vec![]),
        ];
        scribe.retell(pieces, Timestamp(0));
        assert_eq!(told(&scribe.take()), ["keep a-picture-1"]);
        assert!(!scribe.take_retold());
        scribe.kept(&"somebody-else".into(), Ok("upl_0".into()));
        assert_eq!(told(&scribe.take()), Vec::<String>::new());
        scribe.kept(&"a-picture-1".into(), Ok("upl_1".into()));
        let words = "[picture seen.image (1 KiB) not shown: its type is not a picture type]";
        assert_eq!(told(&scribe.take()), [&format!("a: look <upl_1 seen.png> {words}"), "b: and?"]);
        assert!(scribe.take_retold());
        assert!(!scribe.take_retold(), "told once");
        assert_eq!(scribe.deadline(), None);
    }

    #[test]
    fn pictures_that_the_relay_does_not_take_are_told_in_words_and_nobody_waits_for_long() {
        let mut scribe = Scribe::default();
        let two = vec![drawing("image/png"), drawing("image/gif")];
        scribe.retell(vec![Piece::Message(message("a", "look"), two)], Timestamp(0));
        scribe.take();
        let until = scribe.deadline().unwrap();
        scribe.on_deadline(Timestamp(until.0 - 1));
        assert!(!scribe.take_retold());
        scribe.on_deadline(until);
        assert!(scribe.take_retold());
        let said = told(&scribe.take()).join("\n");
        assert_eq!(said.matches("the relay did not store it in time").count(), 2, "{said}");
        scribe.kept(&"a-picture-1".into(), Ok("upl_1".into()));
        assert_eq!(told(&scribe.take()), Vec::<String>::new(), "too late");
    }

    #[test]
    fn of_too_many_pictures_the_newest_are_kept() {
        let mut scribe = Scribe::default();
        let pieces = (0..=PICTURES_MAX).map(|number| {
            Piece::Message(message(&format!("m{number}"), "look"), vec![drawing("image/png")])
        });
        scribe.retell(pieces.collect(), Timestamp(0));
        let first = told(&scribe.take());
        assert!(first[0].contains("the conversation has too many pictures"), "{first:?}");
        assert_eq!(first[1], "keep m1-picture-1");
        for number in 1..=PICTURES_MAX {
            let id = format!("m{number}-picture-1");
            scribe.kept(&id.as_str().into(), Ok("upl".into()));
        }
        let rest = told(&scribe.take());
        assert!(rest.iter().all(|line| line.starts_with("keep ") || line.contains("<upl ")));
        assert!(scribe.take_retold());
    }
}
