//! Which tests took longest and which failed, read from the runners' reports (`JUnit`).
//!
//! Invariant: only reports of this run are read: older files are deleted first.

use std::fs;
use std::path::PathBuf;

/// So many are told.
const TOLD_MAX: usize = 20;

/// One test that ran.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    seconds: f64,
    pub(crate) name: String,
    has_failed: bool,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>8.1} s  {}", self.seconds, self.name)
    }
}

/// Takes away what earlier runs left.
pub(crate) fn forget(files: &[PathBuf]) {
    for file in files {
        // Usually there is none.
        let _ = fs::remove_file(file);
    }
}

/// All tests of these files, the slowest first.
pub(crate) fn read(files: &[PathBuf]) -> Vec<Case> {
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let mut all: Vec<Case> = texts.flat_map(|text| cases(&text)).collect();
    all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    all
}

/// Of all tests, the slowest first, those that are told.
pub(crate) fn slowest(all: &[Case]) -> &[Case] {
    &all[..all.len().min(TOLD_MAX)]
}

/// Those that failed.
pub(crate) fn failed(all: &[Case]) -> impl Iterator<Item = &Case> {
    all.iter().filter(|case| case.has_failed)
}

fn cases(junit: &str) -> Vec<Case> {
    let cases = junit.split("<testcase ").skip(1);
    let case = |text: &str| {
        let head = text.split('>').next()?;
        let seconds = attribute(head, "time")?.parse().ok()?;
        let (program, name) = (attribute(head, "classname")?, attribute(head, "name")?);
        // What a test printed is coded, so these are only there where they are meant.
        let has_failed = text.contains("<failure") || text.contains("<error");
        Some(Case { seconds, name: format!("{program} {name}"), has_failed })
    };
    cases.filter_map(case).collect()
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let opening = format!("{name}=\"");
    let at = head.match_indices(&opening).map(|(at, _)| at);
    // `name` is also the end of `classname`.
    let mut own = at.filter(|at| *at == 0 || head[..*at].ends_with(char::is_whitespace));
    let rest = &head[own.next()? + opening.len()..];
    let value = rest.split('"').next()?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Some(plain.iter().fold(value.to_owned(), |text, (coded, plain)| text.replace(coded, plain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNIT: &str = r#"<?xml version="1.0"?>
<testsuites><testsuite name="wire::all" tests="2">
<testcase name="native::a" classname="wire::all" timestamp="x" time="0.250">
</testcase>
<testcase classname="j.ts" name="words &gt; &quot;b&quot;" time="12.5"><failure>time="99"</failure></testcase>
</testsuite></testsuites>"#;

    #[test]
    fn each_test_is_read_with_its_program_and_time() {
        let told: Vec<String> = cases(JUNIT).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["     0.2 s  wire::all native::a", "    12.5 s  j.ts words > \"b\""]);
    }

    #[test]
    fn a_test_that_failed_is_named() {
        let all = cases(JUNIT);
        let names: Vec<&str> = failed(&all).map(|case| &*case.name).collect();
        assert_eq!(names, ["j.ts words > \"b\""]);
    }

    #[test]
    fn the_slowest_of_all_files_come_first_and_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, times: std::ops::Range<u32>| {
            let case = |n: u32| format!("<testcase name=\"t{n}\" classname=\"c\" time=\"{n}\"/>");
            let path = folder.path().join(name);
            fs::write(&path, times.map(case).collect::<String>()).unwrap();
            path
        };
        let files = [file("one", 0..15), file("other", 15..30), folder.path().join("none")];
        let all = read(&files);
        let names: Vec<&str> = slowest(&all).iter().map(|case| &*case.name).collect();
        assert_eq!((all.len(), names.len()), (30, TOLD_MAX));
        assert_eq!(names[..2], ["c t29", "c t28"]);
        forget(&files);
        assert_eq!(read(&files), []);
    }
}
