//! The text files of a checkout, and which of their lines are test code.
//!
//! Not here: the rules themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that hold what is built or fetched; looked at only where git cannot say.
const NOT_OURS: [&str; 4] = [".git", "target", "node_modules", "dist"];

/// A text file of the checkout; the path is relative to its root, with `/`.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What git tracks or would track; without git, everything outside of the folders that are built.
pub(crate) fn list(root: &Path) -> Vec<File> {
    let paths = tracked(root).unwrap_or_else(|| walked(root));
    let read = |path: String| {
        // Deleted but not yet committed, or not text: nothing to check.
        let text = fs::read_to_string(root.join(&path)).ok()?;
        Some(File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn tracked(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| list.split_terminator('\0').map(str::to_owned).collect())
}

fn walked(root: &Path) -> Vec<String> {
    let (mut paths, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = waiting.pop() {
        let entries = fs::read_dir(root.join(&folder)).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let path = folder.join(&name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !NOT_OURS.iter().any(|built| name == *built) => {
                    waiting.push(path);
                }
                Ok(kind) if kind.is_file() => {
                    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                    paths.push(parts.join("/"));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    paths.sort();
    paths
}

impl File {
    /// Whether all of this file is test code.
    pub(crate) fn is_test(&self) -> bool {
        let in_tests = self.path.split('/').any(|part| part == "tests");
        in_tests || self.path.ends_with("tests.rs")
    }

    /// Whether this is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// The lines before the test module, if the file ends in one. A `#[cfg(test)]` on something
    /// else (an import, a `mod tests;`) ends nothing.
    pub(crate) fn code_lines(&self) -> usize {
        if self.is_test() {
            return 0;
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let starts_tests = |at: &usize| {
            lines[*at] == "#[cfg(test)]"
                && lines[at + 1..]
                    .iter()
                    .find(|line| !line.starts_with("#["))
                    .is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
        };
        (0..lines.len()).find(starts_tests).unwrap_or(lines.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;
    use crate::tidy::file;

    #[test]
    fn code_ends_where_the_test_module_begins() {
        let code = "use x;\n#[cfg(test)]\nmod helpers;\nfn a() {}\n";
        let tests = "#[cfg(test)]\n#[expect(dead_code)]\nmod tests {\n}\n";
        assert_eq!(file("crates/a/src/b.rs", &format!("{code}{tests}")).code_lines(), 4);
        assert_eq!(file("crates/a/src/b.rs", code).code_lines(), 4);
        assert_eq!(file("crates/a/src/b/tests.rs", code).code_lines(), 0);
        assert_eq!(file("crates/a/tests/b.rs", code).code_lines(), 0);
    }

    #[test]
    fn without_git_the_same_sources_are_found() {
        let walked = walked(&shell::root());
        for path in ["Cargo.toml", "xtask/src/tidy/files.rs", "crates/domain/src/lib.rs"] {
            assert!(walked.iter().any(|found| found == path), "{path}");
        }
        assert!(!walked.iter().any(|path| path.starts_with("target/")));
    }
}
