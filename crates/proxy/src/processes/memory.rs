//! Measures the memory of a program and of everything that it started.
//!
//! Not here: ending them (`serve`).

use domain::content::Failure;
use tokio::sync::watch;

/// Ends when a program takes more than it may, with words that say so. Never without a bound, and
/// never where the system does not show what programs take.
#[cfg(target_os = "linux")]
pub(super) async fn over(
    process: Option<u32>,
    terminals: watch::Receiver<Vec<u32>>,
    limit: Option<u64>,
) -> Failure {
    let (Some(process), Some(limit)) = (process, limit) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(linux::LOOK_EVERY).await;
        let mut leaders = terminals.borrow().clone();
        leaders.push(process);
        let used = tokio::task::spawn_blocking(move || linux::tree_bytes(&leaders)).await;
        if let Some(used) = used.ok().filter(|used| *used > limit) {
            let (used, limit) = (used >> 20, limit >> 20);
            let words = format!(
                "it and the programs it started used {used} MiB of memory, more than the limit \
                 of {limit} MiB (--agent-memory-mib)"
            );
            return Failure::new("agent_memory", words);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) async fn over(
    _process: Option<u32>,
    _terminals: watch::Receiver<Vec<u32>>,
    _limit: Option<u64>,
) -> Failure {
    std::future::pending().await
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    /// How often it is looked at.
    pub(super) const LOOK_EVERY: Duration =
        if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(5) };

    /// What one process says of itself.
    struct Stat {
        parent: u32,
        group: u32,
        resident_pages: u64,
    }

    /// Resident bytes of the groups' processes, and of all that descend from their leaders.
    pub(super) fn tree_bytes(leaders: &[u32]) -> u64 {
        let all = processes();
        let mut tree: BTreeSet<u32> = all
            .iter()
            .filter(|(_, stat)| leaders.contains(&stat.group))
            .map(|(number, _)| *number)
            .collect();
        tree.extend(leaders);
        // Children may have lower numbers than their parents: until nothing is added.
        loop {
            let before = tree.len();
            let children = all.iter().filter(|(_, stat)| tree.contains(&stat.parent));
            let children: Vec<u32> = children.map(|(number, _)| *number).collect();
            tree.extend(children);
            if tree.len() == before {
                break;
            }
        }
        let pages = tree.iter().filter_map(|number| all.get(number));
        let pages: u64 = pages.map(|stat| stat.resident_pages).sum();
        pages.saturating_mul(u64::try_from(rustix::param::page_size()).unwrap_or(4_096))
    }

    fn processes() -> BTreeMap<u32, Stat> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
        let numbers =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter_map(|number| Some((number, stat(number)?))).collect()
    }

    /// The name may hold anything, so what follows it is read.
    fn stat(number: u32) -> Option<Stat> {
        let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let (_, after_name) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let field = |place: usize| fields.get(place)?.parse::<u64>().ok();
        Some(Stat {
            parent: u32::try_from(field(1)?).ok()?,
            group: u32::try_from(field(2)?).ok()?,
            resident_pages: field(21)?,
        })
    }
}
