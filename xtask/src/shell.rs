//! Printing, and running other programs.
//!
//! Invariant: a program's output is shown as it arrives; reading its summary never hides a line.
//! When lanes run side by side, each line begins with the name of its lane.
//!
//! Not here: which programs make up a test run (`test`).

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// The name of a lane of work.
type Lane = Option<&'static str>;

thread_local! {
    /// The lane that this thread works in.
    static LANE: Cell<Lane> = const { Cell::new(None) };
}

/// Does this work on this thread; each line that it or its programs print begins with the name.
pub(crate) fn in_lane<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let before = LANE.replace(Some(name));
    let outcome = work();
    LANE.set(before);
    outcome
}

/// One line to standard output. A closed pipe is the reader's choice, not an error.
pub(crate) fn say(line: &str) {
    say_in(LANE.get(), line);
}

fn say_in(lane: Lane, text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", labelled(lane, text));
    let _ = out.flush();
}

/// One line to standard error.
pub(crate) fn complain(line: &str) {
    complain_in(LANE.get(), line);
}

fn complain_in(lane: Lane, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", labelled(lane, text));
}

/// Wide enough for the longest name, so that lines of all lanes stand in one column.
fn labelled(lane: Lane, text: &str) -> String {
    match lane {
        Some(lane) => format!("{lane:<8}| {text}"),
        None => text.to_owned(),
    }
}

/// The root of this checkout. Read when running, not when compiling: compiled artefacts may be
/// shared between checkouts.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let parent = package.as_deref().and_then(Path::parent).map(Path::to_owned);
    parent.unwrap_or_else(|| PathBuf::from("."))
}

/// `cargo`, at the root of the checkout, the same one that started us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // With these, build scripts that look at them run again, and what hangs on them is compiled
    // again, whenever a command is given with `cargo xtask` after one that was given without.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_this_program(name)) {
        command.env_remove(name);
    }
    command
}

/// The platform that programs are built for.
pub(crate) fn host() -> Result<String, String> {
    let version = Command::new("rustc").arg("-vV").output();
    let version = version.map_err(|error| format!("could not start rustc: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV does not print a host".to_owned())
}

/// Whether `cargo run` says this of the program that it runs.
fn is_about_this_program(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Whether this program exists and answers. Says nothing.
pub(crate) fn answers(mut command: Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(target.unwrap_or_else(|| PathBuf::from("target")))
}

/// The same program, so much nicer: others that want the processor get more of it.
pub(crate) fn behind_others(command: &Command, niceness: u8) -> Command {
    let niceness = niceness.to_string();
    let mut probe = Command::new("nice");
    probe.args(["-n", &niceness, "true"]);
    let program = command.get_program();
    let mut behind = Command::new(if answers(probe) { "nice".as_ref() } else { program });
    if behind.get_program() != program {
        behind.args(["-n", &niceness]).arg(program);
    }
    behind.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => behind.env(name, value),
            None => behind.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        behind.current_dir(folder);
    }
    behind
}

/// Runs a program with our own output. `false` when it failed, an error when it never ran.
pub(crate) fn succeeds(mut command: Command) -> Result<bool, String> {
    if LANE.get().is_some() {
        return watch(command).map(|(well, _)| well);
    }
    match command.status() {
        Ok(status) => Ok(status.success()),
        Err(error) => Err(format!("could not start {}: {error}", name(&command))),
    }
}

/// Runs a program, shows what it says on standard error, and hands back its standard output.
pub(crate) fn output(mut command: Command) -> Result<(bool, Vec<u8>), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = name(&command);
    let failed = |error: io::Error| format!("could not run {name}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let lane = LANE.get();
    let complain = move |text: &str| complain_in(lane, text);
    let err = child.stderr.take().map(|pipe| thread::spawn(move || echo(pipe, complain)));
    let mut bytes = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut bytes).map_err(failed)?;
    }
    if let Some(reader) = err {
        let _ = reader.join();
    }
    let status = child.wait().map_err(failed)?;
    Ok((status.success(), bytes))
}

/// Runs a program, shows each line as it comes, and hands back all of them.
pub(crate) fn watch(mut command: Command) -> Result<(bool, Vec<String>), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = name(&command);
    let failed = |error: io::Error| format!("could not run {name}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let lane = LANE.get();
    let say = move |text: &str| say_in(lane, text);
    let complain = move |text: &str| complain_in(lane, text);
    let out = child.stdout.take().map(|pipe| thread::spawn(move || echo(pipe, say)));
    let err = child.stderr.take().map(|pipe| thread::spawn(move || echo(pipe, complain)));
    let mut lines = Vec::new();
    for reader in [out, err].into_iter().flatten() {
        lines.extend(reader.join().unwrap_or_default());
    }
    let status = child.wait().map_err(failed)?;
    Ok((status.success(), lines))
}

fn echo(pipe: impl io::Read, show: impl Fn(&str)) -> Vec<String> {
    let mut reader = BufReader::new(pipe);
    let (mut lines, mut raw) = (Vec::new(), Vec::new());
    // By bytes: a test may print what is not UTF-8, and the rest must still be seen.
    while reader.read_until(b'\n', &mut raw).is_ok_and(|length| length > 0) {
        let line = String::from_utf8_lossy(&raw).trim_end_matches(['\n', '\r']).to_owned();
        show(&line);
        lines.push(line);
        raw.clear();
    }
    lines
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_does_not_answer() {
        assert!(!answers(Command::new("no-such-program-anywhere")));
        let error = succeeds(Command::new("no-such-program-anywhere")).unwrap_err();
        assert!(error.starts_with("could not start no-such-program-anywhere"), "{error}");
    }

    #[test]
    fn each_line_of_a_lane_begins_with_its_name_and_other_lines_are_plain() {
        assert_eq!(labelled(Some("tests"), "one"), "tests   | one");
        assert_eq!(labelled(None, "one"), "one");
        let within = in_lane("tests", || in_lane("page", || LANE.get()));
        assert_eq!((within, LANE.get()), (Some("page"), None));
    }

    #[test]
    fn a_program_behind_others_does_the_same_in_the_same_place() {
        let mut command = Command::new("pwd");
        command.current_dir("/").env("A", "b");
        let behind = behind_others(&command, 10);
        assert!(behind.get_envs().any(|(name, value)| name == "A" && value == Some("b".as_ref())));
        let (well, bytes) = output(behind).unwrap();
        assert_eq!((well, &*bytes), (true, &b"/\n"[..]));
    }

    #[test]
    fn cargo_is_not_told_which_program_calls_it() {
        let told = ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"].map(OsStr::new);
        assert!(told.into_iter().all(is_about_this_program));
        let kept = ["CARGO", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "PATH"].map(OsStr::new);
        assert!(!kept.into_iter().any(is_about_this_program));
        // This test runs under cargo too.
        let removed = |(name, value): (&OsStr, Option<&OsStr>)| {
            name == "CARGO_MANIFEST_DIR" && value.is_none()
        };
        assert!(cargo().get_envs().any(removed));
    }

    #[test]
    fn lines_are_kept_even_when_they_are_not_utf8() {
        let lines = echo(&b"one\n\xff two\r\nthree"[..], |_| {});
        assert_eq!(lines, ["one", "\u{fffd} two", "three"]);
    }
}
