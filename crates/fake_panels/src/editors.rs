//! The pages' scripts: fetched with npm and bundled once, then kept in the person's cache folder.
//!
//! **Invariant:** a folder of the cache is complete or not there: it gets its name last, and its
//! name follows from everything that it is made of.
//!
//! Not here: serving them (`server`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pages");
/// The bundler, by hand: its npm package would start a script to find it.
const ESBUILD: &str = "node_modules/esbuild/bin/esbuild";

/// The folder with the bundles. The error says what to do.
pub(crate) fn built() -> Result<PathBuf, String> {
    let cache = cache()?;
    let sources = sources()?;
    let built = cache.join(format!("pages-{}", name_of(&sources)));
    if built.is_dir() {
        return Ok(built);
    }
    let told = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let lock_path = cache.join("lock");
    let lock = File::create(&lock_path).map_err(|error| told(&lock_path, error))?;
    lock.lock().map_err(|error| told(&lock_path, error))?;
    if built.is_dir() {
        return Ok(built);
    }
    let workshop = workshop(&cache)?;
    let source = workshop.join("src");
    let _ = fs::remove_dir_all(&source);
    for (path, text) in &sources {
        let place = workshop.join(path);
        let folder = place.parent().unwrap_or(&workshop);
        fs::create_dir_all(folder).map_err(|error| told(folder, error))?;
        fs::write(&place, text).map_err(|error| told(&place, error))?;
    }
    let fresh = cache.join("pages-new");
    let _ = fs::remove_dir_all(&fresh);
    let panels = source.join("panels");
    let entries = fs::read_dir(&panels).map_err(|error| told(&panels, error))?;
    let mut esbuild = Command::new("node");
    esbuild.current_dir(&workshop).arg(ESBUILD).args(entries.flatten().map(|entry| entry.path()));
    esbuild.args([
        "--bundle",
        "--splitting",
        "--format=esm",
        "--loader:.ttf=file",
        "--define:process.env.NODE_ENV=\"production\"",
        "--log-level=warning",
    ]);
    esbuild.arg(format!("--outdir={}", fresh.display()));
    run(esbuild, "the test panels' pages could not be bundled")?;
    fs::rename(&fresh, &built).map_err(|error| told(&built, error))?;
    Ok(built)
}

/// The folder with the npm packages that the lock file names.
fn workshop(cache: &Path) -> Result<PathBuf, String> {
    let mut files = Vec::new();
    for name in ["package.json", "package-lock.json"] {
        files.push((PathBuf::from(name), read(&Path::new(PAGES).join(name))?));
    }
    let workshop = cache.join(format!("modules-{}", name_of(&files)));
    let stamp = workshop.join("node_modules/.farhelm-installed");
    if stamp.is_file() {
        return Ok(workshop);
    }
    let told = |error: std::io::Error| format!("{}: {error}", workshop.display());
    fs::create_dir_all(&workshop).map_err(told)?;
    for (name, text) in &files {
        fs::write(workshop.join(name), text).map_err(told)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
    npm.current_dir(&workshop);
    run(npm, "npm could not fetch the editors of the test panels (is there a network?)")?;
    fs::write(&stamp, "").map_err(told)?;
    Ok(workshop)
}

fn run(mut command: Command, sentence: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{sentence}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{sentence}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// `$XDG_CACHE_HOME/farhelm/panels`, or below `~/.cache`.
fn cache() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".cache"));
    // XDG: a relative path is to be ignored.
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home);
    let base = base.ok_or("no folder for the editors: set XDG_CACHE_HOME or HOME")?;
    let folder = base.join("farhelm").join("panels");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Everything below `pages`, by its path there.
fn sources() -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let root = Path::new(PAGES);
    let mut files =
        vec![(PathBuf::from("package-lock.json"), read(&root.join("package-lock.json"))?)];
    for folder in ["src", "src/editors", "src/panels"] {
        let place = root.join(folder);
        let entries =
            fs::read_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
            let below = path.strip_prefix(root).unwrap_or(&path).to_owned();
            files.push((below, read(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn name_of(files: &[(PathBuf, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    for (path, bytes) in files {
        hash.update(path.to_string_lossy().as_bytes());
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    }
    let first = hash.finalize().iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{first:016x}")
}
