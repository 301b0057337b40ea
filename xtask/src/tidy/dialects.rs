//! No dialect imports another: shared code belongs in the domain, or is written twice.

use super::{File, Problem};

const DIALECTS: [&str; 5] = ["native", "blob", "pi", "control", "webchannel"];

/// Checks `crates/wire/src/<dialect>.rs` and `crates/wire/src/<dialect>/`.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some(own) = dialect(&file.path) else { continue };
        for other in imports(&file.text).into_iter().filter(|other| *other != own) {
            problems.push(Problem(format!(
                "{}: the {own} dialect must not use {other}: move what they share to the domain",
                file.path
            )));
        }
    }
    problems
}

fn dialect(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("crates/wire/src/")?;
    let name = inside.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    DIALECTS.into_iter().find(|dialect| *dialect == name)
}

/// The dialects that follow `crate::` or `super::`, alone or in braces. Comments may name any.
fn imports(text: &str) -> Vec<&'static str> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.chars().filter(|c| !c.is_whitespace()))
        .collect();
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let rest = &code[at + root.len()..];
            let names = if rest.starts_with('{') { first_names(rest) } else { vec![name(rest)] };
            found.extend(DIALECTS.into_iter().filter(|dialect| names.contains(dialect)));
        }
    }
    found
}

/// `{native::x,blob::{y,z},pi}` → native, blob, pi.
fn first_names(group: &str) -> Vec<&str> {
    let (mut depth, mut names) = (0_u32, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' => {}
            _ => continue,
        }
        match depth {
            0 => break,
            1 if character != '}' => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

fn name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn a_dialect_may_use_itself_and_what_is_no_dialect() {
        let text = "use crate::native::frames;\nuse crate::{limits, native};\n// crate::blob is other\nuse crate::pipes::Pi;";
        assert_eq!(check(&[file("crates/wire/src/native/send.rs", text)]), []);
    }

    #[test]
    fn another_dialect_is_a_problem_however_it_is_spelled() {
        for text in [
            "use crate::blob::Frame;",
            "use crate::{limits, native::{a, b}, blob::Frame};",
            "use crate::{\n    limits,\n    blob,\n};",
            "fn f() -> crate::blob::Frame {}",
            "use super::super::blob;",
        ] {
            for path in ["crates/wire/src/native/send.rs", "crates/wire/src/native.rs"] {
                assert_eq!(check(&[file(path, text)]).len(), 1, "{path}: {text}");
            }
        }
    }

    #[test]
    fn files_outside_the_dialects_may_name_all_of_them() {
        assert_eq!(check(&[file("crates/wire/src/lib.rs", "use crate::{blob, native};")]), []);
    }
}
