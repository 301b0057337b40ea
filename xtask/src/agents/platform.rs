//! The name that packages use for this computer's platform.

use std::env::consts::{ARCH, EXE_SUFFIX, OS};

/// The words that stand in the names of packages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Platform {
    os: &'static str,
    cpu: &'static str,
    triple: &'static str,
}

impl Platform {
    /// This computer, or a sentence where the agents do not run on it.
    pub(super) fn here() -> Result<Self, String> {
        Self::named(OS, ARCH)
            .ok_or_else(|| format!("there are no agent packages for {OS} on {ARCH}"))
    }

    pub(super) fn named(os: &str, cpu: &str) -> Option<Self> {
        let (os, cpu, triple) = match (os, cpu) {
            ("linux", "x86_64") => ("linux", "x64", "x86_64-unknown-linux-musl"),
            ("linux", "aarch64") => ("linux", "arm64", "aarch64-unknown-linux-musl"),
            ("macos", "x86_64") => ("darwin", "x64", "x86_64-apple-darwin"),
            ("macos", "aarch64") => ("darwin", "arm64", "aarch64-apple-darwin"),
            ("windows", "x86_64") => ("win32", "x64", "x86_64-pc-windows-msvc"),
            ("windows", "aarch64") => ("win32", "arm64", "aarch64-pc-windows-msvc"),
            _ => return None,
        };
        Some(Self { os, cpu, triple })
    }

    /// Puts the words into a name.
    pub(super) fn fill(self, name: &str) -> String {
        name.replace("{os}", self.os)
            .replace("{cpu}", self.cpu)
            .replace("{triple}", self.triple)
            .replace("{exe}", EXE_SUFFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_for_each_platform() {
        let linux = Platform::named("linux", "aarch64").unwrap();
        assert_eq!(linux.fill("a-{os}-{cpu}/{triple}"), "a-linux-arm64/aarch64-unknown-linux-musl");
        let mac = Platform::named("macos", "x86_64").unwrap();
        assert_eq!(mac.fill("a-{os}-{cpu}"), "a-darwin-x64");
        assert!(Platform::named("plan9", "x86_64").is_none());
    }
}
