//! What the panel shows now, assembled from the observer's pushes.
//!
//! Invariant: a late push changes nothing; a missing one is noticed.
//!
//! Not here: how the rows are reported (`rows`).

use super::frames::{Push, PushKind, Row};

/// Rows that are held at once. Of more, the first are forgotten.
const ROWS_MAX: usize = 4_000;

/// What the panel shows now.
#[derive(Debug, Default)]
pub(super) struct Sight {
    epoch: Option<String>,
    n: u64,
    /// The last push, without its rows.
    pub(super) last: Option<Push>,
    /// In their order.
    pub(super) rows: Vec<Row>,
}

/// What came of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was taken in.
    Whole,
    /// It was taken in, and something before it is missing: the whole view is needed.
    Gap,
    /// It is older than what is known.
    Late,
}

impl Sight {
    /// Takes in a push.
    pub(super) fn take(&mut self, mut push: Push) -> Taken {
        let is_same = self.epoch.as_ref() == Some(&push.epoch);
        if is_same && push.n <= self.n {
            return Taken::Late;
        }
        // The first push of an observer tells everything that there is.
        let is_whole = push.kind == PushKind::Whole || push.n == 1;
        let has_gap = !is_whole && (!is_same || push.n != self.n + 1);
        self.epoch = Some(push.epoch.clone());
        self.n = push.n;
        let (rows, gone) = (std::mem::take(&mut push.rows), std::mem::take(&mut push.gone));
        if push.error.is_none() {
            if is_whole {
                self.rows.clear();
                self.rows.reserve(rows.len());
            }
            self.rows.retain(|row| !gone.contains(&row.key));
            for row in rows {
                if is_whole {
                    self.rows.push(row);
                    continue;
                }
                match self.rows.iter_mut().find(|known| known.key == row.key) {
                    Some(known) => *known = row,
                    None => self.rows.push(row),
                }
            }
            if push.order.is_empty() {
                self.rows.sort_by_key(|row| row.ordinal);
            } else {
                self.arrange(&push.order);
            }
            let surplus = self.rows.len().saturating_sub(ROWS_MAX);
            self.rows.drain(..surplus);
        }
        self.last = Some(push);
        if has_gap { Taken::Gap } else { Taken::Whole }
    }

    /// What a virtual list shows now, in its order. What it took out is forgotten when it was told.
    fn arrange(&mut self, order: &[String]) {
        let place = |row: &Row| order.iter().position(|key| *key == row.key);
        self.rows.retain(|row| !row.is_done || place(row).is_some());
        self.rows.sort_by_cached_key(|row| place(row).map_or(0, |place| place + 1));
    }

    /// The panel is gone: what comes next begins anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn push(epoch: &str, n: u64, rows: &[(&str, u64, &str)]) -> Push {
        let rows: Vec<_> = rows
            .iter()
            .map(|(key, ordinal, text)| {
                json!({"key": key, "ordinal": ordinal, "role": "user", "text": text, "hash": "h"})
            })
            .collect();
        let push = json!({"epoch": epoch, "n": n, "kind": "change", "rows": rows});
        Push::read(&push.to_string()).unwrap()
    }

    fn texts(sight: &Sight) -> Vec<&str> {
        sight.rows.iter().map(|row| row.text.as_str()).collect()
    }

    #[test]
    fn changes_are_put_together_in_the_order_of_the_rows() {
        let mut sight = Sight::default();
        assert_eq!(sight.take(push("e", 1, &[("a", 0, "one"), ("b", 1, "two")])), Taken::Whole);
        assert_eq!(sight.take(push("e", 2, &[("b", 1, "two more")])), Taken::Whole);
        assert_eq!(texts(&sight), ["one", "two more"]);
    }

    #[test]
    fn a_missing_push_is_noticed_and_a_late_one_changes_nothing() {
        let mut sight = Sight::default();
        sight.take(push("e", 1, &[("a", 0, "one")]));
        assert_eq!(sight.take(push("e", 3, &[("a", 0, "three")])), Taken::Gap);
        assert_eq!(sight.take(push("e", 2, &[("a", 0, "two")])), Taken::Late);
        assert_eq!(texts(&sight), ["three"]);
    }

    #[test]
    fn a_new_epoch_begins_with_everything_and_one_in_its_middle_is_a_gap() {
        let mut sight = Sight::default();
        sight.take(push("e", 1, &[("a", 0, "old")]));
        assert_eq!(sight.take(push("f", 1, &[("b", 0, "new")])), Taken::Whole);
        assert_eq!(texts(&sight), ["new"]);
        assert_eq!(sight.take(push("g", 4, &[])), Taken::Gap);
    }

    #[test]
    fn a_virtual_list_says_which_rows_it_shows_and_one_that_was_not_told_stays() {
        let mut sight = Sight::default();
        let order = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let rows = push("e", 1, &[("a", 0, "one"), ("b", 0, "two"), ("c", 0, "three")]);
        sight.take(Push { order: order(&["c", "a", "b"]), ..rows });
        assert_eq!(texts(&sight), ["three", "one", "two"]);
        sight.rows[0].is_done = true;
        let rows = push("e", 2, &[("d", 0, "four")]);
        sight.take(Push { order: order(&["b", "d"]), ..rows });
        assert_eq!(texts(&sight), ["one", "two", "four"]);
    }

    #[test]
    fn rows_that_are_gone_leave_and_an_error_changes_no_row() {
        let mut sight = Sight::default();
        sight.take(push("e", 1, &[("a", 0, "one"), ("b", 1, "two")]));
        sight.take(Push { gone: vec!["a".to_owned()], ..push("e", 2, &[]) });
        assert_eq!(texts(&sight), ["two"]);
        let error = Some("bad".to_owned());
        sight.take(Push { error, kind: PushKind::Whole, ..push("e", 3, &[]) });
        assert_eq!(texts(&sight), ["two"]);
    }
}
