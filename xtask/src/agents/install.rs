//! Fetches one agent with npm, and checks that it starts.
//!
//! Invariant: no script of a package runs during installation, whatever the npm version does by
//! default. Programs are called where their packages hold them.
//!
//! Not here: which versions (`pins`), what counts as complete (`cache`).

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::cache::Cache;
use super::installed::Installed;
use super::pins::{Agent, Node, numbers};
use super::platform::Platform;
use crate::shell;

/// The largest of them is 440 MB.
const NPM_SECONDS_MAX: u64 = 600;
/// The first start of a program that was never read from disk.
const ANSWER_SECONDS_MAX: u64 = 60;
const POLL_MS: u64 = 20;
/// Lines of npm's log that are shown when it failed.
const LOG_LINES_SHOWN: usize = 6;

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Everything that installing needs.
pub(super) struct Workshop<'a> {
    pub(super) cache: &'a Cache,
    pub(super) platform: Platform,
    pub(super) before: &'a str,
}

/// The Node that scripts run on.
#[derive(Debug, Clone)]
pub(super) struct NodeFound {
    program: PathBuf,
    folder: PathBuf,
}

impl Workshop<'_> {
    /// What an earlier run completed.
    pub(super) fn finished(&self, agent: &Agent) -> Option<Installed> {
        self.cache.stamp(&agent.name, &agent.version)
    }

    /// Installs an agent that is not there. The error is a sentence for the person.
    pub(super) fn agent(
        &self,
        agent: &Agent,
        pinned: &Node,
        node: &mut Option<NodeFound>,
    ) -> Result<(), String> {
        if self.finished(agent).is_some() {
            return Ok(());
        }
        let Agent { name, version, .. } = agent;
        let started = Instant::now();
        self.place(agent, pinned, node)
            .map_err(|sentence| format!("{name} {version} is not installed: {sentence}"))?;
        shell::say(&format!("{name} {version}: ready after {:.1} s", seconds(started)));
        Ok(())
    }

    fn place(
        &self,
        agent: &Agent,
        pinned: &Node,
        node: &mut Option<NodeFound>,
    ) -> Result<(), String> {
        let (name, version) = (agent.name.clone(), agent.version.clone());
        let installed = if let Some(script) = &agent.script {
            let node = match agent.own_node(pinned) {
                Some(own) => self.node(&own, &mut None)?,
                None => self.node(pinned, node)?,
            };
            let modules = self.fetch(&name, &agent.package, &version)?;
            for folder in &agent.also {
                self.fetch_into(&name, &version, &modules.join(folder), &["--omit=dev".into()])?;
            }
            let args_prefix = vec![modules.join(script).to_string_lossy().into_owned()];
            let node_bin = Some(node.folder);
            Installed { name, version, program: node.program, args_prefix, node_bin }
        } else {
            let modules = self.fetch(&name, &agent.package, &version)?;
            let program = self.program(&modules, &agent.programs, &version)?;
            Installed { name, version, program, args_prefix: vec![], node_bin: None }
        };
        self.answers(&installed)?;
        self.cache.finish(&installed)
    }

    /// The system's Node where it is new enough, the pinned one elsewhere.
    fn node(&self, pinned: &Node, known: &mut Option<NodeFound>) -> Result<NodeFound, String> {
        if let Some(node) = known {
            return Ok(node.clone());
        }
        let found = match on_path("node").filter(|program| is_at_least(program, &pinned.at_least)) {
            Some(program) => program,
            None => self.pinned_node(pinned)?,
        };
        let folder = found.parent().unwrap_or(Path::new("")).to_owned();
        Ok(known.insert(NodeFound { program: found, folder }).clone())
    }

    fn pinned_node(&self, pinned: &Node) -> Result<PathBuf, String> {
        let version = &pinned.version;
        if let Some(installed) = self.cache.stamp("node", version) {
            return Ok(installed.program);
        }
        let told = |sentence| format!("Node {} or newer is required: {sentence}", pinned.at_least);
        let package = pinned.package(self.platform);
        let modules = self.fetch("node", &package, version).map_err(told)?;
        let programs = [pinned.program(self.platform)];
        let program = self.program(&modules, &programs, version).map_err(told)?;
        self.cache.finish(&Installed {
            name: "node".into(),
            version: version.clone(),
            program: program.clone(),
            args_prefix: vec![],
            node_bin: None,
        })?;
        Ok(program)
    }

    /// Has npm fill the folder of this version; gives its `node_modules`.
    fn fetch(&self, name: &str, package: &str, version: &str) -> Result<PathBuf, String> {
        let folder = self.cache.begin(name, version)?;
        shell::say(&format!("{name} {version}: fetching {package} with npm"));
        let wanted = [
            format!("{package}@{version}").into(),
            format!("--before={}", self.before).into(),
            "--no-package-lock".into(),
        ];
        self.fetch_into(name, version, &folder, &wanted)?;
        Ok(folder.join("node_modules"))
    }

    /// Has npm fill a folder.
    fn fetch_into(
        &self,
        name: &str,
        version: &str,
        folder: &Path,
        wanted: &[OsString],
    ) -> Result<(), String> {
        let log = self.cache.log(name, version);
        let told = |error: std::io::Error| format!("{}: {error}", log.display());
        let out = File::create(&log).map_err(told)?;
        let err = out.try_clone().map_err(told)?;
        let started = Instant::now();
        let mut npm = Command::new(NPM);
        npm.arg("install")
            .args(wanted)
            .args([OsString::from("--prefix"), folder.into()])
            .args([OsString::from("--cache"), self.cache.npm().into()])
            .args(["--ignore-scripts", "--no-audit", "--no-fund", "--engine-strict=false"])
            .args(["--global=false", "--update-notifier=false"])
            // Not the checkout, whose settings are not meant for this.
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        match within(npm, Duration::from_secs(NPM_SECONDS_MAX)) {
            Ended::Well => {}
            Ended::NotStarted(error) => {
                return Err(format!("could not start npm ({error}): install Node with npm"));
            }
            Ended::Badly(how) => {
                let last = last_lines(&log);
                return Err(format!("npm {how}; the end of its log, {}:\n{last}", log.display()));
            }
        }
        shell::say(&format!("{name} {version}: fetched in {:.1} s", seconds(started)));
        Ok(())
    }

    /// The first of these programs that answers with the version.
    fn program(
        &self,
        modules: &Path,
        candidates: &[String],
        version: &str,
    ) -> Result<PathBuf, String> {
        let mut tried = Vec::new();
        for candidate in candidates {
            let program = modules.join(self.platform.fill(candidate));
            if !program.is_file() {
                tried.push(format!("{} does not exist", program.display()));
                continue;
            }
            match self.says_version(Command::new(&program), version) {
                Ok(()) => return Ok(program),
                Err(sentence) => tried.push(sentence),
            }
        }
        Err(tried.join("; "))
    }

    fn answers(&self, installed: &Installed) -> Result<(), String> {
        let mut command = Command::new(&installed.program);
        command.args(&installed.args_prefix);
        self.says_version(command, &installed.version)
    }

    /// Asks a program for its version, in a home where it finds and leaves nothing.
    fn says_version(&self, mut command: Command, version: &str) -> Result<(), String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let home = self.cache.folder("home", "empty");
        let said = home.join("said");
        let told = |error: std::io::Error| format!("{}: {error}", home.display());
        fs::create_dir_all(&home).map_err(told)?;
        let out = File::create(&said).map_err(told)?;
        let err = out.try_clone().map_err(told)?;
        command.arg("--version").env_clear().env("HOME", &home).current_dir(&home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let ended = within(command, Duration::from_secs(ANSWER_SECONDS_MAX));
        let text = fs::read_to_string(&said).unwrap_or_default();
        let removed = fs::remove_dir_all(&home);
        match ended {
            Ended::Well if text.contains(version) => removed.map_err(told),
            Ended::Well => Err(format!("{name} --version printed {:?}", text.trim())),
            Ended::NotStarted(error) => Err(format!("could not start {name}: {error}")),
            Ended::Badly(how) => Err(format!("{name} --version {how}: {}", text.trim())),
        }
    }
}

enum Ended {
    Well,
    NotStarted(std::io::Error),
    /// It failed, or was ended because it took too long; says which.
    Badly(String),
}

/// Runs a program, but not for ever.
fn within(mut command: Command, limit: Duration) -> Ended {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(error),
    };
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ended::Well,
            Ok(Some(status)) => return Ended::Badly(format!("failed ({status})")),
            Ok(None) if started.elapsed() < limit => {
                thread::sleep(Duration::from_millis(POLL_MS));
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ended::Badly(format!("took longer than {} s", limit.as_secs()));
            }
            Err(error) => return Ended::Badly(format!("could not be waited on ({error})")),
        }
    }
}

fn is_at_least(node: &Path, at_least: &str) -> bool {
    let said = Command::new(node).arg("--version").stdin(Stdio::null()).output();
    let version = said.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.as_deref().and_then(numbers);
    version.is_some() && version >= numbers(at_least)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(&file)).find(|found| found.is_file())
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}

fn seconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn shell_command(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let started = Instant::now();
        let ended = within(shell_command("exec sleep 60"), Duration::from_millis(50));
        assert!(matches!(ended, Ended::Badly(how) if how.contains("longer")));
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn success_failure_and_absence_are_told_apart() {
        let limit = Duration::from_secs(30);
        assert!(matches!(within(shell_command("exit 0"), limit), Ended::Well));
        assert!(matches!(within(shell_command("exit 3"), limit), Ended::Badly(_)));
        let absent = Command::new("no-such-program-anywhere");
        assert!(matches!(within(absent, limit), Ended::NotStarted(_)));
    }

    #[test]
    fn only_the_end_of_a_log_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "1\n2\n\n3\n4\n5\n6\n7\n8\n").unwrap();
        assert_eq!(last_lines(&log), "3\n4\n5\n6\n7\n8");
        assert_eq!(last_lines(&folder.path().join("none")), "");
    }
}
