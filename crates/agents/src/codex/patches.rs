//! File changes from Codex, converted to old and new text.
//!
//! A new or deleted file comes as a whole. A changed file comes as hunks of a unified diff; each
//! hunk becomes the text before and after, as far as it reaches.
//!
//! Not here: which tool call a change belongs to (`items`).

use domain::content::{Diff, Location};

use super::frames::{Change, ChangeKind};

/// The changes as differences, in their order.
pub(super) fn diffs(changes: &[Change]) -> Vec<Diff> {
    changes.iter().flat_map(diffs_of).collect()
}

/// The files that change, with the first changed line where it is known.
pub(super) fn locations(changes: &[Change]) -> Vec<Location> {
    changes
        .iter()
        .map(|change| Location { path: change.path.clone(), line: first_line(&change.diff) })
        .collect()
}

fn diffs_of(change: &Change) -> Vec<Diff> {
    let whole = |old_text, new_text| vec![Diff { path: change.path.clone(), old_text, new_text }];
    match &change.kind {
        ChangeKind::Add => whole(None, Some(change.diff.clone())),
        ChangeKind::Delete => whole(Some(change.diff.clone()), None),
        ChangeKind::Update { move_path } => {
            let path = move_path.as_ref().unwrap_or(&change.path);
            hunks(&change.diff)
                .into_iter()
                .map(|(old, new)| Diff {
                    path: path.clone(),
                    old_text: Some(old),
                    new_text: Some(new),
                })
                .collect()
        }
    }
}

fn hunks(diff: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = vec![];
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push((String::new(), String::new()));
            continue;
        }
        // Names of files and the like stand before the first hunk.
        let Some((old, new)) = hunks.last_mut() else { continue };
        match line.as_bytes().first() {
            Some(b'-') => old.push_str(&line[1..]),
            Some(b'+') => new.push_str(&line[1..]),
            Some(b' ') => {
                old.push_str(&line[1..]);
                new.push_str(&line[1..]);
            }
            // An empty line of context that lost its space.
            Some(b'\n') => {
                old.push('\n');
                new.push('\n');
            }
            // "\ No newline at end of file", and anything else.
            Some(_) | None => {}
        }
    }
    hunks
}

/// The line that the first hunk begins at in the new text.
fn first_line(diff: &str) -> Option<u32> {
    let header = diff.lines().find(|line| line.starts_with("@@"))?;
    let new = header.split(' ').find_map(|word| word.strip_prefix('+'))?;
    new.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: ChangeKind, diff: &str) -> Change {
        Change { path: "/w/a.txt".into(), kind, diff: diff.into() }
    }

    #[test]
    fn a_new_file_is_whole_and_a_deleted_one_has_no_new_text() {
        let added = &diffs(&[change(ChangeKind::Add, "hello\n")])[0];
        assert_eq!((&added.old_text, added.new_text.as_deref()), (&None, Some("hello\n")));
        let deleted = &diffs(&[change(ChangeKind::Delete, "bye\n")])[0];
        assert_eq!((deleted.old_text.as_deref(), &deleted.new_text), (Some("bye\n"), &None));
    }

    #[test]
    fn each_hunk_is_a_difference_with_its_context() {
        let diff = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n@@ -9 +9,2 @@\n nine\n+ten\n";
        let change = change(ChangeKind::Update { move_path: None }, diff);
        let told = diffs(std::slice::from_ref(&change));
        assert_eq!(told.len(), 2);
        assert_eq!(told[0].old_text.as_deref(), Some("one\ntwo\nthree\n"));
        assert_eq!(told[0].new_text.as_deref(), Some("one\nTWO\nthree\n"));
        assert_eq!(told[1].old_text.as_deref(), Some("nine\n"));
        assert_eq!(told[1].new_text.as_deref(), Some("nine\nten\n"));
        assert_eq!(locations(&[change])[0].line, Some(1));
    }

    #[test]
    fn a_moved_file_is_told_under_its_new_name() {
        let kind = ChangeKind::Update { move_path: Some("/w/b.txt".into()) };
        assert_eq!(diffs(&[change(kind, "@@ -1 +1 @@\n-a\n+b\n")])[0].path, "/w/b.txt");
    }
}
