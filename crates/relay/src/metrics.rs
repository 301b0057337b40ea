//! Counters and gauges, for `/metrics` and the diagnostics.
//!
//! Not here: how they are printed (`server`).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the commit latency buckets, in microseconds.
pub const COMMIT_BUCKETS_US: [u64; 10] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

/// What is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    commit_buckets: [AtomicU64; COMMIT_BUCKETS_US.len()],
    commit_count: AtomicU64,
    commit_us_sum: AtomicU64,
    commit_failures: AtomicU64,
    appends: AtomicU64,
    events: AtomicU64,
    /// Open client sockets.
    pub clients: AtomicI64,
    /// Open proxy sockets.
    pub proxies: AtomicI64,
    /// Sends that were accepted.
    pub sends_accepted: AtomicU64,
    /// Sends that were delivered.
    pub sends_delivered: AtomicU64,
    /// Sends that failed.
    pub sends_failed: AtomicU64,
    /// Times that a watcher fell behind and re-read the ledger.
    pub lagged: AtomicU64,
    /// Passing events that were shown.
    pub passing: AtomicU64,
    /// Session owners at work.
    pub owners: AtomicI64,
    /// Appends that wait for their commit.
    pub appends_waiting: AtomicI64,
}

/// A reading of the commit latencies.
#[derive(Debug, Clone)]
pub struct CommitLatency {
    /// How many commits took at most [`COMMIT_BUCKETS_US`] of the same index (cumulative).
    pub buckets: Vec<u64>,
    /// All commits.
    pub count: u64,
    /// Their time together.
    pub us_sum: u64,
    /// Those that failed.
    pub failures: u64,
    /// Appends that they held.
    pub appends: u64,
    /// Events that they held.
    pub events: u64,
}

impl Metrics {
    pub(crate) fn committed(&self, took: Duration, appends: usize, events: usize) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        for (bucket, bound) in self.commit_buckets.iter().zip(COMMIT_BUCKETS_US) {
            if us <= bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.commit_count.fetch_add(1, Ordering::Relaxed);
        self.commit_us_sum.fetch_add(us, Ordering::Relaxed);
        self.appends.fetch_add(appends as u64, Ordering::Relaxed);
        self.events.fetch_add(events as u64, Ordering::Relaxed);
    }

    pub(crate) fn commit_failed(&self) {
        self.commit_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The commit latencies so far.
    pub fn commit_latency(&self) -> CommitLatency {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CommitLatency {
            buckets: self.commit_buckets.iter().map(read).collect(),
            count: read(&self.commit_count),
            us_sum: read(&self.commit_us_sum),
            failures: read(&self.commit_failures),
            appends: read(&self.appends),
            events: read(&self.events),
        }
    }
}

/// Counts one thing for as long as it is held.
#[derive(Debug)]
pub struct Held<'a>(&'a AtomicI64);

impl<'a> Held<'a> {
    /// One more.
    pub fn new(gauge: &'a AtomicI64) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
