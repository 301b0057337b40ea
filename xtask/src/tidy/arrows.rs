//! Dependencies between the crates: they point up one list, and `server` and `proxy` meet only in
//! `farhelm` (and in the simulation, which runs everything). Test support is outside the list: it
//! depends on no crate of the product, and only tests depend on it.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Problem};

/// A crate may depend on those before it.
const ROOMS: [&str; 13] = [
    "domain", "wire", "link", "agents", "cdp", "store", "relay", "server", "proxy", "client",
    "farhelm", "sim", "bench",
];

/// What only tests may use (dev-dependencies, and `xtask`); it depends on no room.
const TEST_SUPPORT: [&str; 2] = ["fake_model", "fake_panels"];

/// Where `server` and `proxy` may be under one roof.
const MEETING_ROOMS: [&str; 2] = ["farhelm", "sim"];

const SHIPPED: [&str; 2] = ["dependencies", "build-dependencies"];
const FOR_TESTS: [&str; 1] = ["dev-dependencies"];

/// Checks every `crates/*/Cargo.toml`.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut arrows = BTreeMap::new();
    for file in files {
        let Some(room) = room(&file.path) else { continue };
        match file.text.parse::<toml::Table>() {
            Ok(manifest) => {
                let shipped = dependencies(&manifest, &SHIPPED);
                let for_tests = dependencies(&manifest, &FOR_TESTS);
                if shipped.iter().any(|name| TEST_SUPPORT.contains(&name.as_str())) {
                    problems.push(Problem(format!(
                        "{}: test support belongs in dev-dependencies",
                        file.path
                    )));
                }
                let mut named: BTreeSet<String> = shipped.union(&for_tests).cloned().collect();
                named.retain(|name| !TEST_SUPPORT.contains(&name.as_str()));
                arrows.insert(room, named);
            }
            Err(error) => problems.push(Problem(format!("{}: {error}", file.path))),
        }
    }
    for (room, targets) in &arrows {
        if TEST_SUPPORT.contains(&room.as_str()) {
            if !targets.is_empty() {
                let named: Vec<&str> = targets.iter().map(String::as_str).collect();
                problems.push(Problem(format!(
                    "crates/{room}/Cargo.toml: test support must not depend on crates of the \
                     product, but names {}",
                    named.join(", ")
                )));
            }
            continue;
        }
        let Some(height) = height(room) else {
            problems.push(Problem(format!(
                "crates/{room}: unknown crate: add it to the list in {} and to ARCHITECTURE.md, \
                 with a decision page",
                file!()
            )));
            continue;
        };
        for target in targets {
            let upward = self::height(target).is_some_and(|target| target < height);
            let apart = room == "proxy" && target == "server";
            if !upward || apart {
                problems.push(Problem(format!(
                    "crates/{room}/Cargo.toml: {room} must not depend on {target} (dependencies \
                     point up the list of crates in ARCHITECTURE.md)"
                )));
            }
        }
        let reached = reach(room, &arrows);
        let meets = reached.contains("server") && reached.contains("proxy");
        if meets && !MEETING_ROOMS.contains(&room.as_str()) {
            problems.push(Problem(format!(
                "crates/{room}/Cargo.toml: server and proxy meet in {room}, but may meet only in \
                 farhelm"
            )));
        }
    }
    problems
}

fn room(path: &str) -> Option<String> {
    let room = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!room.contains('/')).then(|| room.to_owned())
}

fn height(room: &str) -> Option<usize> {
    ROOMS.iter().position(|known| *known == room)
}

/// The rooms that a manifest names in these tables, also under a different name and per target.
fn dependencies(manifest: &toml::Table, kinds: &[&str]) -> BTreeSet<String> {
    let per_target = manifest.get("target").and_then(toml::Value::as_table);
    let targets = per_target.into_iter().flat_map(|table| table.values());
    let tables = targets.filter_map(toml::Value::as_table).chain([manifest]);
    let mut named = BTreeSet::new();
    for table in tables {
        for kind in kinds {
            let Some(entries) = table.get(*kind).and_then(toml::Value::as_table) else { continue };
            for (key, entry) in entries {
                let renamed = entry.get("package").and_then(toml::Value::as_str);
                let local = entry.get("path").is_some();
                let name = renamed.unwrap_or(key.as_str());
                let support = TEST_SUPPORT.contains(&name);
                if local || support || height(name).is_some() || name == "xtask" {
                    named.insert(name.to_owned());
                }
            }
        }
    }
    named
}

fn reach<'a>(room: &'a str, arrows: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![room]);
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(arrows.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn upward_arrows_are_fine() {
        let files = [
            manifest("wire", "[dependencies]\ndomain.workspace = true\nserde = \"1\""),
            manifest("farhelm", "[dependencies]\nserver.workspace = true\nproxy.workspace = true"),
            manifest("sim", "[dependencies]\nrelay.workspace = true\nclient.workspace = true"),
        ];
        assert_eq!(check(&files), []);
    }

    #[test]
    fn a_downward_arrow_is_a_problem_in_every_kind_of_table() {
        for table in [
            "[dependencies]\nwire.workspace = true",
            "[dev-dependencies]\nwire = { path = \"../wire\" }",
            "[build-dependencies]\nw = { package = \"wire\", path = \"../wire\" }",
            "[target.'cfg(unix)'.dependencies]\nwire.workspace = true",
        ] {
            let problems = check(&[manifest("domain", table)]);
            assert_eq!(problems.len(), 1, "{table}");
            assert!(problems[0].0.contains("domain must not depend on wire"), "{problems:?}");
        }
    }

    #[test]
    fn proxy_does_not_know_server() {
        let problems = check(&[manifest("proxy", "[dependencies]\nserver.workspace = true")]);
        assert!(problems[0].0.contains("proxy must not depend on server"), "{problems:?}");
    }

    #[test]
    fn server_and_proxy_meet_nowhere_else_not_even_by_detour() {
        let direct = "[dependencies]\nserver.workspace = true\nproxy.workspace = true";
        assert_eq!(check(&[manifest("client", direct)]).len(), 1);

        let detour = [
            manifest("relay", "[dependencies]\nproxy.workspace = true"),
            manifest("client", "[dependencies]\nserver.workspace = true\nrelay.workspace = true"),
        ];
        let problems = check(&detour);
        assert!(problems.iter().any(|p| p.0.contains("meet in client")), "{problems:?}");
    }

    #[test]
    fn test_support_is_for_tests_and_knows_nobody() {
        let used = manifest("agents", "[dev-dependencies]\nfake_model.workspace = true");
        assert_eq!(check(&[used, manifest("fake_model", "[dependencies]\naxum = \"1\"")]), []);
        let shipped = manifest("farhelm", "[dependencies]\nfake_model.workspace = true");
        assert_eq!(check(&[shipped]).len(), 1);
        let knowing = manifest("fake_model", "[dev-dependencies]\nwire.workspace = true");
        assert_eq!(check(&[knowing]).len(), 1);
    }

    #[test]
    fn a_crate_that_nobody_drew_is_a_problem() {
        assert_eq!(check(&[manifest("helpers", "[dependencies]")]).len(), 1);
        assert_eq!(check(&[manifest("sim", "[dependencies]\nxtask = { path = \"x\" }")]).len(), 1);
        assert_eq!(check(&[manifest("wire", "not toml")]).len(), 1);
    }

    fn manifest(room: &str, text: &str) -> File {
        file(&format!("crates/{room}/Cargo.toml"), text)
    }
}
