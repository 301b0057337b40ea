//! Which rows of a transcript were reported, so that none is reported twice.
//!
//! A panel may show several chats one after the other; each is a chapter. A row with an id is
//! identified by it; a row without one by its text and how often the text occurred.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::identity::print_of;

/// Tellings that are remembered; older ones are forgotten.
pub(super) const TELLINGS_MAX: usize = 20_000;

/// A row that was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Telling {
    /// Of which chat.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) chapter: String,
    /// Its name in the document.
    pub(super) key: String,
    /// Where the same words count as the same: its own name, or its role.
    pub(super) slot: String,
    /// The fingerprint of its words.
    pub(super) print: String,
    /// The fingerprint of its letters and digits alone.
    pub(super) letters: String,
    /// How long its words were, in bytes.
    pub(super) bytes: usize,
    /// Its place in the list.
    #[serde(default)]
    pub(super) ordinal: u64,
    /// Which telling of this key it was, from 1.
    pub(super) number: u32,
}

impl Telling {
    pub(super) fn new(
        chapter: &str,
        key: &str,
        slot: &str,
        text: &str,
        ordinal: u64,
        number: u32,
    ) -> Self {
        Self {
            chapter: chapter.to_owned(),
            key: key.to_owned(),
            slot: slot.to_owned(),
            print: print_of(text),
            letters: print_of(&letters(text)),
            bytes: text.len(),
            ordinal,
            number,
        }
    }

    /// Whether a text is this one and more; then where the rest begins.
    pub(super) fn rest(&self, text: &str) -> Option<usize> {
        let is_longer = text.len() > self.bytes && text.is_char_boundary(self.bytes);
        (is_longer && print_of(&text[..self.bytes]) == self.print).then_some(self.bytes)
    }

    /// Whether a text differs from this one in its make-up alone.
    pub(super) fn is_like(&self, text: &str) -> bool {
        self.letters == print_of(&letters(text))
    }
}

/// The letters and digits of a text, and what is neither of them nor plain ASCII: what is left
/// when it is written, rendered and read back. Words without any stay as they are.
pub(super) fn letters(text: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || !(c.is_ascii() || c.is_whitespace());
    let kept: String = text.chars().filter(is_kept).collect();
    if kept.is_empty() { text.split_whitespace().collect() } else { kept }
}

/// The rows that were told.
#[derive(Debug, Default)]
pub(super) struct Tellings {
    /// The chat that is shown.
    pub(super) chapter: String,
    /// How many chats were shown that have no name of their own.
    pub(super) chapters: u32,
    /// How often something was told: by chapter, slot and print.
    counts: BTreeMap<(String, String, String), usize>,
    /// The last telling of each row: by chapter and key.
    last: BTreeMap<(String, String), Telling>,
    /// The highest place that was told of each chapter.
    top: BTreeMap<String, u64>,
    /// Oldest first.
    order: VecDeque<(String, String, String)>,
}

impl Tellings {
    pub(super) fn turn_to(&mut self, chapter: String) {
        if self.chapter != chapter {
            self.chapters += 1;
        }
        self.chapter = chapter;
    }

    /// The chat that is shown got a name of its own: what was told of it is its.
    pub(super) fn rename(&mut self, name: String) {
        let old = std::mem::replace(&mut self.chapter, name.clone());
        let chapter = |of: String| if of == old { name.clone() } else { of };
        self.counts = std::mem::take(&mut self.counts)
            .into_iter()
            .map(|((of, slot, print), count)| ((chapter(of), slot, print), count))
            .collect();
        self.last = std::mem::take(&mut self.last)
            .into_iter()
            .map(|((of, key), telling)| {
                let of = chapter(of);
                ((of.clone(), key), Telling { chapter: of, ..telling })
            })
            .collect();
        for key in self.order.iter_mut().filter(|key| key.0 == old) {
            key.0.clone_from(&name);
        }
        if let Some(top) = self.top.remove(&old) {
            self.top.insert(name, top);
        }
    }

    pub(super) fn add(&mut self, telling: Telling) {
        let count = (telling.chapter.clone(), telling.slot.clone(), telling.print.clone());
        *self.counts.entry(count.clone()).or_default() += 1;
        self.order.push_back(count);
        let top = self.top.entry(telling.chapter.clone()).or_default();
        *top = (*top).max(telling.ordinal);
        self.last.insert((telling.chapter.clone(), telling.key.clone()), telling);
        if self.order.len() > TELLINGS_MAX
            && let Some(oldest) = self.order.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
                self.last.retain(|key, last| key.0 != oldest.0 || last.print != oldest.2);
            }
        }
    }

    /// How often these words were told of this slot, in the chat that is shown.
    pub(super) fn count(&self, slot: &str, print: &str) -> usize {
        self.count_in(&self.chapter, slot, print)
    }

    fn count_in(&self, chapter: &str, slot: &str, print: &str) -> usize {
        let key = (chapter.to_owned(), slot.to_owned(), print.to_owned());
        self.counts.get(&key).copied().unwrap_or(0)
    }

    /// The last telling of a row of the chat that is shown.
    pub(super) fn last(&self, key: &str) -> Option<&Telling> {
        self.last.get(&(self.chapter.clone(), key.to_owned()))
    }

    /// The highest place that was told of the chat that is shown.
    pub(super) fn top(&self) -> Option<u64> {
        self.top.get(&self.chapter).copied()
    }

    /// Whether anything was told of a chat.
    pub(super) fn knows(&self, chapter: &str) -> bool {
        self.top.contains_key(chapter)
    }

    /// The chat in which all of this was told, where there is one.
    pub(super) fn chapter_of(&self, rows: &[(String, String)]) -> Option<String> {
        let has_all = |chapter: &&String| {
            rows.iter().all(|(slot, print)| self.count_in(chapter, slot, print) > 0)
        };
        self.top.keys().find(has_all).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_go_on_are_told_from_where_they_stopped() {
        let telling = Telling::new("", "a", "a", "One. ", 0, 1);
        assert_eq!(telling.rest("One. Two."), Some(5));
        assert_eq!(telling.rest("Uno. Two."), None);
        assert_eq!(telling.rest("One. "), None);
    }

    #[test]
    fn make_up_is_no_difference() {
        let telling = Telling::new("", "a", "a", "**Hello**, `x` 😀", 0, 1);
        assert!(telling.is_like("Hello, x😀"));
        assert!(!telling.is_like("Hello, y😀"));
        assert_eq!(letters("???"), "???");
    }

    #[test]
    fn a_chat_that_gets_a_name_keeps_what_was_told_of_it() {
        let mut tellings = Tellings::default();
        let telling = Telling::new("", "a", "a", "hello", 3, 1);
        tellings.add(telling.clone());
        tellings.rename("c1".to_owned());
        assert_eq!(tellings.count("a", &telling.print), 1);
        assert_eq!((tellings.top(), tellings.last("a").unwrap().number), (Some(3), 1));
        assert!(!tellings.knows(""));
    }

    #[test]
    fn more_than_the_bound_forgets_the_oldest() {
        let mut tellings = Tellings::default();
        for n in 0..=TELLINGS_MAX {
            tellings.add(Telling::new("", &format!("k{n}"), "user", &format!("t{n}"), 0, 1));
        }
        assert_eq!(tellings.count("user", &print_of("t0")), 0);
        assert_eq!(tellings.count("user", &print_of("t1")), 1);
    }
}
