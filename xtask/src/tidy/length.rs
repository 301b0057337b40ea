//! Files stay readable: one concern each, no `mod.rs`.

use super::{File, Problem};

/// Lines of a Rust file, its tests aside.
const CODE_LINES_MAX: usize = 600;

/// Checks every Rust file.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = file.code_lines();
        if lines > CODE_LINES_MAX {
            problems.push(Problem(format!(
                "{}: {lines} lines excluding tests, the limit is {CODE_LINES_MAX}: split it by \
                 concern",
                file.path
            )));
        }
        if file.path.rsplit('/').next() == Some("mod.rs") {
            problems.push(Problem(format!("{}: name it after its folder, not mod.rs", file.path)));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn the_last_line_that_fits_and_the_first_that_does_not() {
        let lines = |count: usize| file("crates/a/src/b.rs", &"fn x() {}\n".repeat(count));
        assert_eq!(check(&[lines(CODE_LINES_MAX)]), []);
        assert_eq!(check(&[lines(CODE_LINES_MAX + 1)]).len(), 1);
    }

    #[test]
    fn tests_are_not_counted() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    // x\n".repeat(700));
        assert_eq!(check(&[file("crates/a/src/b.rs", &tests)]), []);
    }

    #[test]
    fn a_mod_rs_is_a_problem() {
        assert_eq!(check(&[file("crates/a/src/b/mod.rs", "")]).len(), 1);
        assert_eq!(check(&[file("crates/a/src/b/gizmod.rs", "")]), []);
    }
}
