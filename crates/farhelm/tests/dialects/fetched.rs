//! Public packages that tests run: fetched once, each at a pinned version, into the cache folder
//! of the person. Where one cannot be (no Node, no network), its test says so and checks nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Place, ended};

/// A package of the npm registry.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The file of it that is wanted.
    pub(crate) main: &'static str,
    pub(crate) with: With,
}

/// What is fetched with a package.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    /// What it needs to run.
    Dependencies,
    /// Nothing: the wanted file needs none of it.
    Nothing,
}

/// The package's file; `None` where it cannot be had, which is told.
pub(crate) fn fetched(package: &Package) -> Option<PathBuf> {
    fetch(package)
        .inspect_err(|sentence| {
            fake_panels::untried(package.name, &format!("it cannot be fetched: {sentence}"));
        })
        .ok()
}

/// What a script that uses one tells, as JSON. Of the machine it sees only its programs: no
/// person's settings, no key.
pub(crate) fn told(place: &Place, mut node: Command) -> Value {
    let programs = std::env::var_os("PATH").unwrap_or_default();
    node.env_clear().env("PATH", programs).env("HOME", place.path("")).stdin(Stdio::null());
    node.env("FARHELM_DATA", place.data());
    node.env("NODE_OPTIONS", "--experimental-websocket --no-warnings");
    let output = ended(node);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

fn fetch(package: &Package) -> Result<PathBuf, String> {
    let Package { name, version, main, with } = package;
    let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home);
    let base = base.ok_or("no cache folder: set HOME")?.join("farhelm").join("sdk");
    std::fs::create_dir_all(&base).map_err(|error| error.to_string())?;
    let lock = std::fs::File::create(base.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let short = name.rsplit('/').next().unwrap_or(name);
    let folder = base.join(format!("{short}-{version}"));
    let within = match with {
        With::Dependencies => folder.join("node_modules").join(name),
        With::Nothing => folder.join("package"),
    };
    let main = within.join(main);
    if main.exists() {
        return Ok(main);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let wanted = format!("{name}@{version}");
    match with {
        With::Dependencies => {
            let flags = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"];
            run(Command::new("npm")
                .arg("install")
                .args(flags)
                .arg("--prefix")
                .arg(&folder)
                .arg(wanted))?;
        }
        With::Nothing => {
            let packed = run(Command::new("npm")
                .args(["pack", "--silent"])
                .arg(wanted)
                .current_dir(&folder))?;
            let packed = packed.lines().last().ok_or("npm packed nothing")?.to_owned();
            run(Command::new("tar").arg("-xzf").arg(Path::new(&packed)).current_dir(&folder))?;
        }
    }
    if main.exists() { Ok(main) } else { Err(format!("{} is not in it", main.display())) }
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
