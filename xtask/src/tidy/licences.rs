//! Every dependency must have a licence that requires no more than notices (or, for MPL-2.0,
//! publishing changes to its own files).

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::Problem;
use crate::shell;

/// SPDX names that are fine. An exception only adds permissions.
const ALLOWED: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "MPL-2.0",
    "Zlib",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
];

/// What cargo knows about every package, for all platforms where it can, else for this one.
pub(crate) fn metadata(root: &Path) -> Result<Value, String> {
    let everywhere = ask(root, &[])?;
    let output = if everywhere.status.success() {
        everywhere
    } else {
        // Offline, what other platforms need was never downloaded.
        ask(root, &["--offline", "--filter-platform", &shell::host()?])?
    };
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {}", reason.trim().replace('\n', " ")));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn ask(root: &Path, options: &[&str]) -> Result<Output, String> {
    let mut command = shell::cargo();
    command.args(["metadata", "--format-version", "1"]).args(options).current_dir(root);
    command.output().map_err(|error| format!("could not start cargo metadata: {error}"))
}

/// Checks every package that is not ours.
pub(crate) fn check(metadata: &Value) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    // Ours have no source: they are this checkout.
    let foreign = packages.filter(|package| !package["source"].is_null());
    let mut problems = Vec::new();
    for package in foreign {
        let name = package["name"].as_str().unwrap_or("?");
        match package["license"].as_str() {
            Some(expression) if allows(expression) => {}
            Some(expression) => problems.push(Problem(format!(
                "dependency {name}: licence {expression:?} is not allowed; allowed: {}",
                ALLOWED.join(", ")
            ))),
            None => problems.push(Problem(format!("dependency {name}: states no licence"))),
        }
    }
    problems
}

/// Evaluates an SPDX expression; `/` is how older manifests write OR.
fn allows(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    let allowed = any(&mut rest);
    allowed && rest.is_empty()
}

fn any(rest: &mut &[&str]) -> bool {
    let mut allowed = all(rest);
    while take(rest, "OR") {
        allowed |= all(rest);
    }
    allowed
}

fn all(rest: &mut &[&str]) -> bool {
    let mut allowed = one(rest);
    while take(rest, "AND") {
        allowed &= one(rest);
    }
    allowed
}

fn one(rest: &mut &[&str]) -> bool {
    if take(rest, "(") {
        let allowed = any(rest);
        return take(rest, ")") && allowed;
    }
    let Some((licence, others)) = rest.split_first() else { return false };
    *rest = others;
    if take(rest, "WITH") {
        *rest = rest.get(1..).unwrap_or_default();
    }
    ALLOWED.contains(licence)
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let found = rest.first() == Some(&word);
    if found {
        *rest = &rest[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_choice_needs_one_allowed_licence() {
        for fine in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception"] {
            assert!(allows(fine), "{fine}");
        }
        assert!(!allows("GPL-3.0 OR LGPL-3.0"));
    }

    #[test]
    fn a_sum_needs_all_of_them() {
        assert!(allows("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(allows("Apache-2.0 AND ISC AND (MIT OR GPL-2.0)"));
        assert!(!allows("(MIT OR Apache-2.0) AND GPL-3.0"));
        assert!(!allows("MIT AND"));
        assert!(!allows("(MIT"));
        assert!(!allows("MIT Apache-2.0"));
        assert!(!allows(""));
    }

    #[test]
    fn foreign_packages_are_named_with_their_licence() {
        let metadata = json!({ "packages": [
            { "name": "ours", "source": null, "license": "Anything" },
            { "name": "fine", "source": "registry", "license": "ISC" },
            { "name": "copyleft", "source": "registry", "license": "AGPL-3.0" },
            { "name": "silent", "source": "registry", "license": null },
        ]});
        let problems: Vec<_> = check(&metadata).into_iter().map(|problem| problem.0).collect();
        assert_eq!(problems.len(), 2);
        assert!(problems[0].starts_with("dependency copyleft"), "{problems:?}");
        assert!(problems[1].starts_with("dependency silent"), "{problems:?}");
    }
}
