//! Nothing runs the examples in documentation comments, so there must be none: an example that is
//! never compiled goes stale. Write a test instead.

use super::{File, Problem};

/// Words after a fence that make rustdoc take the block for no Rust.
const NOT_RUST: [&str; 4] = ["json", "jsonl", "text", "toml"];

/// Checks the documentation comments of every Rust file.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut is_open = false;
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(fence) = comment.and_then(|text| text.trim_start().strip_prefix("```")) else {
                continue;
            };
            is_open = !is_open;
            if is_open && !NOT_RUST.contains(&fence.trim()) {
                problems.push(Problem(format!(
                    "{}:{}: documentation examples are not run: write a test, or name another \
                     language after the fence ({})",
                    file.path,
                    index + 1,
                    NOT_RUST.join(", ")
                )));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn an_example_in_rust_is_a_problem_with_its_line() {
        for opening in ["```", "```rust", "```no_run", "```ignore"] {
            let text = format!("/// Adds.\n///\n/// {opening}\n/// f();\n/// ```\nfn f() {{}}\n");
            let problems = check(&[file("crates/a/src/b.rs", &text)]);
            assert_eq!(problems.len(), 1, "{opening}");
            assert!(problems[0].0.starts_with("crates/a/src/b.rs:3:"), "{problems:?}");
        }
    }

    #[test]
    fn another_language_and_a_string_are_none() {
        let text = "//! ```json\n//! {}\n//! ```\nconst X: &str = \"```\";\n// ```\n";
        assert_eq!(check(&[file("crates/a/src/b.rs", text)]), []);
    }
}
