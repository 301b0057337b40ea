//! Builds the page and puts it into the binary.
//!
//! The page is built by Node, in this script's own output folder, and only when one of its files
//! changed. `FARHELM_WITHOUT_PAGE=1` leaves it out: the relay then serves one that says so.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What the page is made of; nothing else in its folder makes a new build.
const SOURCES: [&str; 9] = [
    "src",
    "public",
    "build",
    "index.html",
    "package.json",
    "package-lock.json",
    "svelte.config.js",
    "tsconfig.json",
    "vite.config.ts",
];
const NODE_MISSING: &str = "the page needs Node 20.19 or newer and npm to be built: install them \
    (https://nodejs.org, or `apt install nodejs npm`), or set FARHELM_WITHOUT_PAGE=1 to build \
    Farhelm without its page";

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=FARHELM_WITHOUT_PAGE");
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            println!("cargo::error={sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let without = std::env::var("FARHELM_WITHOUT_PAGE").is_ok_and(|value| value != "0");
    let folder = if without {
        manifest.join("src/without_page")
    } else {
        let web = manifest.join("../../web");
        for source in SOURCES {
            println!("cargo::rerun-if-changed={}", web.join(source).display());
        }
        built(&web, &out)?
    };
    let mut files = vec![];
    collect(&folder, &folder, &mut files)?;
    files.sort();
    write(&out.join("page_files.rs"), table(&folder, &files)?.as_bytes())
}

/// The folder of the built page. It is built anew when a source changed since.
fn built(web: &Path, out: &Path) -> Result<PathBuf, String> {
    let (page, stamp) = (out.join("page"), out.join("page.stamp"));
    let hash = hash_of(web, &SOURCES)?;
    if fs::read_to_string(&stamp).is_ok_and(|kept| kept == hash) && page.is_dir() {
        return Ok(page);
    }
    node()?;
    install(web)?;
    let _ = fs::remove_file(&stamp);
    let vite = web.join("node_modules/vite/bin/vite.js");
    let mut build = Command::new("node");
    build.arg(vite).args(["build", "--logLevel", "warn", "--emptyOutDir", "--outDir"]).arg(&page);
    perform(build.current_dir(web), "the page could not be built")?;
    write(&stamp, hash.as_bytes())?;
    Ok(page)
}

fn node() -> Result<(), String> {
    let answers = |program: &str| {
        let mut command = Command::new(program);
        let silent = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    };
    if answers("node") && answers("npm") { Ok(()) } else { Err(NODE_MISSING.to_owned()) }
}

/// Fetches what the lock file names, once for each lock file. `cargo xtask` looks at the same
/// stamp, which holds the lock file that was followed.
fn install(web: &Path) -> Result<(), String> {
    let stamp = web.join("node_modules/.farhelm-installed");
    let path = web.join("package-lock.json");
    // Held until this returns: two that fetch at once spoil each other's folder.
    let held = fs::File::open(&path).and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|error| format!("{} cannot be locked: {error}", path.display()))?;
    let lock = read(&path)?;
    if fs::read(&stamp).is_ok_and(|kept| kept == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]);
    let failed = "npm could not fetch what the page is built with (is there a network?)";
    perform(npm.current_dir(web), failed)?;
    write(&stamp, &lock)
}

fn perform(command: &mut Command, failed: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{failed}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    // Cargo shows an error line by line.
    for line in told.lines() {
        println!("cargo::error={line}");
    }
    Err(failed.to_owned())
}

fn hash_of(web: &Path, sources: &[&str]) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        let path = web.join(source);
        let mut files = vec![];
        if path.is_dir() {
            collect(&path, &path, &mut files)?;
        } else {
            files.push(String::new());
        }
        files.sort();
        for file in files {
            let path = if file.is_empty() { path.clone() } else { path.join(&file) };
            (source, &file, read(&path)?).hash(&mut hasher);
        }
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// The files under a folder, by their paths within it.
fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), String> {
    let failed = |error| format!("{} cannot be read: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Ok(within) = path.strip_prefix(root) {
            files.push(within.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// The Rust source of the table of files: path, tag, and the bytes plain and compressed.
fn table(folder: &Path, files: &[String]) -> Result<String, String> {
    let mut source = String::from("&[\n");
    // Each of these belongs to the file beside it.
    let is_compressed =
        |file: &&String| Path::new(file).extension().is_some_and(|end| end == "br" || end == "gz");
    for file in files.iter().filter(|file| !is_compressed(file)) {
        let mut hasher = DefaultHasher::new();
        read(&folder.join(file))?.hash(&mut hasher);
        let tag = hasher.finish();
        let include = |suffix: &str| {
            let name = format!("{file}{suffix}");
            let path = folder.join(&name);
            let known = files.contains(&name);
            known.then(|| format!("Some(include_bytes!({:?}))", path.display().to_string()))
        };
        let absent = || "None".to_owned();
        let plain = folder.join(file).display().to_string();
        let (brotli, gzip) = (include(".br"), include(".gz"));
        let _ = writeln!(
            source,
            "    File {{ path: {file:?}, tag: \"\\\"{tag:016x}\\\"\", plain: include_bytes!({plain:?}), \
             brotli: {}, gzip: {} }},",
            brotli.unwrap_or_else(absent),
            gzip.unwrap_or_else(absent),
        );
    }
    source.push(']');
    Ok(source)
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set; this runs under cargo"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
