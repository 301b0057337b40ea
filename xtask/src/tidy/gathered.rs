//! The integration tests of a crate are one program, `tests/all.rs`, because each program links
//! the whole product again. A file that is not a module of it would be skipped silently.

use super::{File, Problem};

/// Checks every file of tests, and the manifests that have to name the one program.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let mut problems = Vec::new();
    for file in files {
        let Some((package, name)) = parts(&file.path) else { continue };
        let root = format!("{package}/tests/all.rs");
        if name == "all" {
            let manifest = text(&format!("{package}/Cargo.toml")).unwrap_or_default();
            if !manifest.lines().any(|line| line.trim() == "autotests = false") {
                problems.push(Problem(format!(
                    "{package}/Cargo.toml: needs `autotests = false` and a [[test]] named \
                     \"all\", or each test file becomes a separate program"
                )));
            }
        } else if !text(&root).unwrap_or_default().lines().any(|line| declares(line, name)) {
            problems.push(Problem(format!("{}: make it a module of {root}", file.path)));
        }
    }
    problems
}

/// The package and the name of a file of tests, those in folders aside.
fn parts(path: &str) -> Option<(&str, &str)> {
    let (package, rest) = path.split_once("/tests/")?;
    let name = rest.strip_suffix(".rs")?;
    let is_package = package.starts_with("crates/") && package.matches('/').count() == 1;
    (is_package && !name.contains('/')).then_some((package, name))
}

fn declares(line: &str, name: &str) -> bool {
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn crate_with(all: &str, manifest: &str) -> Vec<File> {
        vec![
            file("crates/a/Cargo.toml", manifest),
            file("crates/a/tests/all.rs", all),
            file("crates/a/tests/b.rs", ""),
            file("crates/a/tests/b/c.rs", ""),
            file("crates/a/src/x/tests/d.rs", ""),
        ]
    }

    #[test]
    fn a_file_of_tests_that_nothing_compiles_is_a_problem() {
        let manifest = "[package]\nautotests = false\n";
        assert_eq!(check(&crate_with("mod b;\n", manifest)), []);
        let problems = check(&crate_with("mod bee;\n", manifest));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].0.starts_with("crates/a/tests/b.rs: "), "{problems:?}");
    }

    #[test]
    fn a_file_of_tests_beside_no_program_is_a_problem() {
        assert_eq!(check(&[file("crates/a/tests/b.rs", "")]).len(), 1);
    }

    #[test]
    fn a_manifest_that_makes_each_file_a_program_is_a_problem() {
        let problems = check(&crate_with("mod b;\n", "[package]\n"));
        assert!(problems[0].0.starts_with("crates/a/Cargo.toml: "), "{problems:?}");
    }
}
