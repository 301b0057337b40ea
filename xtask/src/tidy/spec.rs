//! Every rule of `docs/spec/*.md` has a test with its mark, and every mark names a rule.
//!
//! A rule is a line `- **native/launch_session.2** …`. A mark is a comment in test code,
//! `// spec: native/launch_session.2`, with several rules separated by commas.

use std::collections::BTreeMap;

use super::{File, Problem};

const MARK: &str = concat!("// spec", ": ");

/// Checks the spec pages against the marks in `crates/` and `web/`.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut rules: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for file in files.iter().filter(|file| is_page(&file.path)) {
        for rule in file.text.lines().filter_map(rule) {
            if rules.insert(rule, (&file.path, 0)).is_some() {
                problems.push(Problem(format!("{}: rule {rule} is defined twice", file.path)));
            }
        }
    }
    for file in files.iter().filter(|file| may_carry_marks(file)) {
        // The simulation is a test as a whole.
        let code = file.is_rust() && !file.path.starts_with("crates/sim/");
        let code_lines = if code { file.code_lines() } else { 0 };
        for (index, line) in file.text.lines().enumerate() {
            let Some((_, marks)) = line.split_once(MARK) else { continue };
            let place = format!("{}:{}", file.path, index + 1);
            if index < code_lines {
                problems.push(Problem(format!("{place}: a spec mark belongs in test code")));
                continue;
            }
            for mark in marks.split(',').map(str::trim).filter(|mark| !mark.is_empty()) {
                match rules.get_mut(mark) {
                    Some((_, tests)) => *tests += 1,
                    None => problems.push(Problem(format!("{place}: unknown rule {mark}"))),
                }
            }
        }
    }
    let untested = rules.iter().filter(|(_, (_, tests))| *tests == 0);
    problems.extend(untested.map(|(rule, (page, _))| {
        Problem(format!("{page}: rule {rule} has no test (`{MARK}{rule}` in a test)"))
    }));
    problems
}

fn is_page(path: &str) -> bool {
    path.strip_prefix("docs/spec/").and_then(|name| name.strip_suffix(".md")).is_some()
}

fn may_carry_marks(file: &File) -> bool {
    (file.path.starts_with("crates/") && file.is_rust()) || is_web_test(&file.path)
}

fn is_web_test(path: &str) -> bool {
    path.starts_with("web/") && path.ends_with(".test.ts")
}

fn rule(line: &str) -> Option<&str> {
    let (rule, _) = line.strip_prefix("- **")?.split_once("**")?;
    let (_, numbered) = rule.split_once('/')?;
    let (_, number) = numbered.rsplit_once('.')?;
    number.parse::<u32>().is_ok().then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    const PAGE: &str = "# Native\n- **native/a.1** One.\n- **native/a.2** Two.\n- **bold** none\n";

    #[test]
    fn a_rule_with_a_mark_is_tested() {
        assert_eq!(checked("native/a.1, native/a.2"), [""; 0]);
    }

    #[test]
    fn a_rule_without_a_mark_is_listed() {
        assert_eq!(
            checked("native/a.1"),
            ["docs/spec/native.md: rule native/a.2 has no test (`// spec: native/a.2` in a test)"]
        );
    }

    #[test]
    fn a_mark_that_names_no_rule_is_listed() {
        assert_eq!(
            checked("native/a.1, native/a.2, native/a.3"),
            ["crates/wire/tests/a.rs:1: unknown rule native/a.3"]
        );
    }

    #[test]
    fn a_mark_outside_test_code_proves_nothing() {
        let mark = format!("{MARK}native/a.1\nfn code() {{}}\n");
        let code = file("crates/wire/src/a.rs", &mark);
        let problems = check(&[file("docs/spec/native.md", "- **native/a.1** One."), code]);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn a_rule_that_is_there_twice_is_listed() {
        let page = file("docs/spec/native.md", &format!("{PAGE}- **native/a.1** Again.\n"));
        assert!(check(&[page])[0].0.contains("native/a.1 is defined twice"));
    }

    fn checked(marks: &str) -> Vec<String> {
        let test = file("crates/wire/tests/a.rs", &format!("{MARK}{marks}\n#[test]\n"));
        let page = file("docs/spec/native.md", PAGE);
        check(&[page, test]).into_iter().map(|problem| problem.0).collect()
    }
}
