//! Compacts a driver's notes: lines that a newer one replaces are removed.
//!
//! Invariant: reading the remaining lines gives the same result as reading all of them. Lines keep
//! their order, and a line that cannot be read stays: a later version may have written it.
//!
//! Not here: what a line says (the drivers), where the lines are stored (`proxy`).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

/// Which lines of a kind still count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Every one.
    All,
    /// The newest of this kind.
    Newest(&'static str),
    /// So many of the newest of this kind.
    Last(&'static str, usize),
}

/// The lines that still count. `kept` is asked from the newest line to the oldest.
pub(crate) fn shortened<N: DeserializeOwned>(
    text: &str,
    mut kept: impl FnMut(&N) -> Kept,
) -> String {
    let mut seen: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut lines: Vec<&str> = vec![];
    for line in text.lines().rev().filter(|line| !line.is_empty()) {
        let kept = serde_json::from_str(line).map_or(Kept::All, |note| kept(&note));
        let (kind, max) = match kept {
            Kept::All => {
                lines.push(line);
                continue;
            }
            Kept::Newest(kind) => (kind, 1),
            Kept::Last(kind, max) => (kind, max),
        };
        let count = seen.entry(kind).or_default();
        *count += 1;
        if *count <= max {
            lines.push(line);
        }
    }
    lines.iter().rev().flat_map(|line| [*line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn lines_that_count_stay_in_their_order_with_those_that_cannot_be_read() {
        let kept = |value: &Value| match value.as_str() {
            Some("config 1" | "config 2" | "config 3") => Kept::Newest("config"),
            Some("try 1" | "try 2" | "try 3") => Kept::Last("try", 2),
            _ => Kept::All,
        };
        let text = ["config 1", "ready", "try 1", "config 2", "try 2", "try 3", "config 3", "bye"]
            .map(|word| format!("\"{word}\"\n"))
            .concat();
        let text = format!("{text}strange\n");
        let short = shortened(&text, kept);
        let left = ["ready", "try 2", "try 3", "config 3", "bye"]
            .map(|word| format!("\"{word}\"\n"))
            .concat();
        assert_eq!(short, format!("{left}strange\n"));
        assert_eq!(shortened(&short, kept), short, "there is nothing left to leave out");
    }
}
