//! The machine that the figures were measured on. If the system does not report a value, its field
//! is empty.

use std::fs;
use std::path::Path;

use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    memory_bytes: u64,
    system: String,
    filesystem: String,
    build: &'static str,
    version: &'static str,
}

impl Machine {
    pub(crate) fn look(folder: &Path) -> Self {
        let memory_kib = field("/proc/meminfo", "MemTotal");
        let memory_kib = memory_kib.split_whitespace().next().and_then(|kib| kib.parse().ok());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: memory_kib.unwrap_or(0_u64) * 1024,
            system: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            filesystem: filesystem(folder),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Whether what is written there survives nothing.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.filesystem.as_str(), "tmpfs" | "ramfs")
    }

    pub(crate) fn line(&self) -> String {
        let Self { cpu, cores, system, filesystem, build, version, .. } = self;
        let memory_gib = self.memory_bytes >> 30;
        format!(
            "{cpu}, {cores} cores, {memory_gib} GiB, {system}, {filesystem}; farhelm {version} ({build} build)"
        )
    }
}

/// The value of the first line `name : value`.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let named = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = named.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    values.next().unwrap_or_default().to_owned()
}

/// The kind of the mount with the longest fitting path.
fn filesystem(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let mut best = (0, "");
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(place), Some(kind)) = (words.next(), words.next()) else { continue };
        if folder.starts_with(place) && place.len() >= best.0 {
            best = (place.len(), kind);
        }
    }
    best.1.to_owned()
}
