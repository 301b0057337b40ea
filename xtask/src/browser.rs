//! The browser of every test that needs one: Debian's Chromium, installed where it can be.
//!
//! Not here: what is done in it (`page`, `ide`, and the workspace's own tests).

use std::path::PathBuf;
use std::process::Command;

use crate::shell;

/// Tells a test which browser to use, and that it may not do without.
pub(crate) const NAMED_BY: &str = "FARHELM_CHROMIUM";

/// Names under which Chromium is found.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Chromium, installed if need be. The error says what stays untried without it.
pub(crate) fn find_or_fetch(untried: &str) -> Result<PathBuf, String> {
    find().or_else(fetch).ok_or_else(|| {
        format!(
            "{untried}: no Chromium was found and none could be installed; try `apt install \
             chromium`"
        )
    })
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(NAMED_BY) {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let places = NAMES.iter().flat_map(|name| folders.iter().map(move |dir| dir.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// Debian's, where this account may install it.
fn fetch() -> Option<PathBuf> {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        shell::answers(command)
    };
    shell::say("Chromium is not here; trying apt-get install chromium");
    let packages = ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"];
    let installs = apt(&packages) || (apt(&["update"]) && apt(&packages));
    installs.then(find).flatten()
}
