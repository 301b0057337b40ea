//! The floor of everything durable: a preallocated file, written in place and synced.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::statistics::{micros, percentile};
use super::trouble::Outcome;

/// What is written before each sync where only the sync matters.
const PAGE_BYTES: usize = 4096;
const PAGES: u64 = 4096;
const SYNCS: usize = 400;

/// A file whose blocks are all written already, so that a sync has no metadata to save.
pub(crate) struct Preallocated {
    file: File,
    block: Vec<u8>,
    blocks: u64,
    next: u64,
}

impl Preallocated {
    /// For writes of `block_bytes`, `blocks` of them before the file is written again from its
    /// start.
    pub(crate) fn make(path: &Path, block_bytes: usize, blocks: u64) -> Outcome<Self> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        let block = vec![7; block_bytes];
        for _ in 0..blocks {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        Ok(Self { file, block, blocks, next: 0 })
    }

    /// A file of pages.
    pub(crate) fn pages(folder: &Path) -> Outcome<Self> {
        Self::make(&folder.join("floor.pages"), PAGE_BYTES, PAGES)
    }

    /// Writes the next block in place; it is durable when this returns.
    pub(crate) fn write_durably(&mut self) -> Outcome<()> {
        let block_bytes = u64::try_from(self.block.len()).unwrap_or(u64::MAX);
        self.file.seek(SeekFrom::Start(self.next * block_bytes))?;
        self.file.write_all(&self.block)?;
        self.file.sync_data()?;
        self.next = (self.next + 1) % self.blocks;
        Ok(())
    }

    /// How long a durable write takes, in µs, p50.
    pub(crate) fn sync_micros(&mut self) -> Outcome<f64> {
        let mut times = vec![];
        for _ in 0..SYNCS {
            let begun = Instant::now();
            self.write_durably()?;
            times.push(micros(begun.elapsed()));
        }
        Ok(percentile(&times, 50))
    }

    /// How many durable writes fit, one at a time, into this time.
    pub(crate) fn syncs_within(&mut self, time: Duration) -> Outcome<(u64, Duration)> {
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < time {
            self.write_durably()?;
            count += 1;
        }
        Ok((count, begun.elapsed()))
    }
}
