//! Reads the most frequent stored form without a general parser.
//!
//! A message of a transcript is recognised by the exact bytes that this release writes. Anything
//! else is `None` and is left to the general parser.
//!
//! **Invariant**: what is read here equals what the general parser would read (a test compares
//! them).
//!
//! Not here: versions and the other kinds (`codec`).

use domain::content::{Author, Digest, Message, Part};
use domain::session::{Event, Recorded, transcript};
use domain::{Content, LinkPosition, Sequence, Timestamp};
use memchr::memchr2;

/// A transcript message, if it is one in the form that is expected.
pub(super) fn message(body: &[u8]) -> Option<Recorded> {
    let mut rest = Rest(std::str::from_utf8(body).ok()?);
    rest.skip(r#"{"v":1,"n":"#)?;
    let sequence = Sequence(rest.number()?);
    rest.skip(r#","at":"#)?;
    let at = Timestamp(rest.number()?);
    let mut position = None;
    if rest.skip(r#","from":{"link":"#).is_some() {
        let link = rest.id()?;
        rest.skip(r#","number":"#)?;
        position = Some(LinkPosition { link, number: rest.number()? });
        rest.skip("}")?;
    }
    rest.skip(r#","e":{"transcript":{"message":{"id":"#)?;
    let id = rest.id()?;
    rest.skip(r#","author":""#)?;
    let author = rest.author()?;
    rest.skip(r#","parts":{"open":["#)?;
    let parts = rest.parts()?;
    rest.skip(r#"},"created_at":"#)?;
    let created_at = Timestamp(rest.number()?);
    let run = if rest.skip(r#","run":"#).is_some() { Some(rest.id()?) } else { None };
    let parent = if rest.skip(r#","parent":"#).is_some() { Some(rest.id()?) } else { None };
    let digest = if rest.skip(r#","digest":"#).is_some() { Some(rest.number()?) } else { None };
    if rest.0 != "}}}}" {
        return None;
    }
    let parts = Content::Open(parts);
    let digest = digest.map(Digest);
    let message = Message { id, author, parts, created_at, run, parent, digest };
    let event = Event::Transcript(transcript::Event::Message(message));
    Some(Recorded { sequence, at, position, event })
}

/// What is not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip(&mut self, expected: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let count = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(count);
        if count > 1 && digits.starts_with('0') {
            return None;
        }
        self.0 = rest;
        digits.parse().ok()
    }

    fn author(&mut self) -> Option<Author> {
        let words = [
            (r#"assistant""#, Author::Assistant),
            (r#"user""#, Author::User),
            (r#"system""#, Author::System),
        ];
        words.into_iter().find_map(|(word, author)| self.skip(word).map(|()| author))
    }

    fn parts(&mut self) -> Option<Vec<Part>> {
        let mut parts = vec![];
        loop {
            parts.push(if self.skip(r#"{"text":"#).is_some() {
                Part::Text(self.string()?)
            } else if self.skip(r#"{"thinking":"#).is_some() {
                Part::Thinking(self.string()?)
            } else {
                self.skip(r#"{"tool_call":"#)?;
                Part::ToolCall(self.id()?)
            });
            self.skip("}")?;
            if self.skip("]").is_some() {
                return Some(parts);
            }
            self.skip(",")?;
        }
    }

    /// Ids have nothing to escape, in practice.
    fn id<T: From<&'a str>>(&mut self) -> Option<T> {
        let (text, is_plain) = self.quoted()?;
        is_plain.then(|| text.into())
    }

    fn string(&mut self) -> Option<String> {
        let before = self.0;
        let (text, is_plain) = self.quoted()?;
        if is_plain {
            return Some(text.to_owned());
        }
        let quoted = before.get(..text.len() + 2)?;
        serde_json::from_str(quoted).ok()
    }

    /// What stands between two quotes, and whether it stands for itself.
    fn quoted(&mut self) -> Option<(&'a str, bool)> {
        let inner = self.0.strip_prefix('"')?;
        let bytes = inner.as_bytes();
        let (mut end, mut is_plain) = (0, true);
        loop {
            end += memchr2(b'"', b'\\', bytes.get(end..)?)?;
            if bytes.get(end) == Some(&b'"') {
                break;
            }
            is_plain = false;
            end += 2;
        }
        let (text, rest) = (inner.get(..end)?, inner.get(end + 1..)?);
        // JSON has none of these inside of strings; the general way says so.
        // Without an early end, so that it is done many bytes at a time.
        let lowest = text.bytes().min().unwrap_or(b' ');
        self.0 = rest;
        (lowest >= b' ').then_some((text, is_plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURES: &str = include_str!("../../../../fixtures/ledger/session-v1.jsonl");

    fn stored(message: &str) -> String {
        let head = r#"{"v":1,"n":7,"at":1790000000000,"e":{"transcript":{"message":"#;
        format!("{head}{message}}}}}}}")
    }

    fn with_text(text: &str) -> String {
        stored(&format!(
            r#"{{"id":"m1","author":"assistant","parts":{{"open":[{{"text":{text}}}]}},"created_at":5}}"#
        ))
    }

    fn same(body: &str) -> bool {
        let quick = message(body.as_bytes());
        let general = super::super::decode_general(body.as_bytes());
        if let Some(quick) = &quick {
            assert_eq!(general.as_ref(), Ok(quick), "{body}");
        }
        quick.is_some()
    }

    #[test]
    fn what_is_read_quickly_is_what_the_general_way_reads() {
        let quick: Vec<_> = FIXTURES.lines().filter(|line| same(line)).collect();
        assert!(quick.iter().all(|line| line.contains(r#""message""#)), "{quick:?}");
        for text in [
            r#""""#,
            r#""plain words""#,
            r#""two\nlines, a \"quote\" and a backslash \\""#,
            r#""ends with a backslash\\""#,
            r#""\u00e9\ud83d\ude00 é 😀""#,
        ] {
            assert!(same(&with_text(text)), "{text}");
        }
        assert!(same(&stored(
            r#"{"id":"m","author":"user","parts":{"open":[{"thinking":"a"},{"tool_call":"t"},{"text":"b"}]},"created_at":0,"run":"r","parent":"p","digest":18446744073709551615}"#
        )));
        let from =
            with_text(r#""x""#).replace(r#","e":"#, r#","from":{"link":"l","number":12},"e":"#);
        assert!(same(&from));
    }

    #[test]
    fn what_is_odd_is_left_to_the_general_way() {
        let good = with_text(r#""x""#);
        for odd in [
            with_text(r#""\ud800""#),
            with_text(r#""\x""#),
            with_text("\"a\tb\""),
            with_text(r#""x"#),
            with_text(r#""x\"#),
            good.replace(r#""v":1"#, r#""v":2"#),
            good.replace(r#""n":7"#, r#""n":07"#),
            good.replace(r#""n":7"#, r#""n":"#),
            good.replace(r#""n":7"#, r#""n":99999999999999999999"#),
            good.replace("assistant", "robot"),
            good.replace(r#"[{"text":"x"}]"#, "[]"),
            good.replace(
                r#"{"open":[{"text":"x"}]}"#,
                r#"{"sealed":{"key":"k","nonce":"n","body":"b"}}"#,
            ),
            good.replace(r#""id":"m1""#, r#""id":"m\"1""#),
            format!("{good} "),
            good[..good.len() - 1].to_owned(),
            String::new(),
        ] {
            assert!(!same(&odd), "{odd}");
        }
        for end in 0..good.len() {
            assert!(!same(&good[..end]));
        }
    }
}
