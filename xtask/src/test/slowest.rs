//! The tests that took longest, read from what runners leave behind (JUnit).
//!
//! Invariant: a run's table holds only what that run left: older files go first.

use std::fs;
use std::path::PathBuf;

/// So many are told.
const TOLD_MAX: usize = 20;

/// One test and its time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timed {
    seconds: f64,
    name: String,
}

impl std::fmt::Display for Timed {
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

/// The slowest of all these files.
pub(crate) fn read(files: &[PathBuf]) -> Vec<Timed> {
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let mut all: Vec<Timed> = texts.flat_map(|text| timed(&text)).collect();
    all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    all.truncate(TOLD_MAX);
    all
}

fn timed(junit: &str) -> Vec<Timed> {
    let cases = junit.split("<testcase ").skip(1);
    let case = |text: &str| {
        let head = text.split('>').next()?;
        let seconds = attribute(head, "time")?.parse().ok()?;
        let (program, name) = (attribute(head, "classname")?, attribute(head, "name")?);
        Some(Timed { seconds, name: format!("{program} {name}") })
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
        let told: Vec<String> = timed(JUNIT).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["     0.2 s  wire::all native::a", "    12.5 s  j.ts words > \"b\""]);
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
        let read_names = || read(&files).into_iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(read_names().len(), TOLD_MAX);
        assert_eq!(read_names()[..2], ["c t29", "c t28"]);
        forget(&files);
        assert_eq!(read_names(), Vec::<String>::new());
    }
}
