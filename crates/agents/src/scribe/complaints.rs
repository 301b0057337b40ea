//! The standard error of a program: collected, reported now and then, its end kept.

use std::collections::VecDeque;

use domain::Timestamp;

/// How long lines are gathered before they are told.
const GATHER_MS: u64 = 500;
/// Bytes that are told at once; what is more in between is left out.
const TOLD_BYTES_MAX: usize = 4 * 1024;
/// Tellings per session and program: a program that complains for ever is not recorded for ever.
const TELLINGS_MAX: u32 = 50;
/// Lines that are kept for a reason.
const KEPT_LINES_MAX: usize = 10;
/// Bytes of one line that are kept.
const LINE_BYTES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Complaints {
    waiting: String,
    told_at: Option<Timestamp>,
    tellings: u32,
    kept: VecDeque<String>,
}

impl Complaints {
    pub(super) fn hear(&mut self, line: &str, now: Timestamp) {
        let line = cut(line.trim_end(), LINE_BYTES_MAX);
        if line.is_empty() {
            return;
        }
        self.kept.push_back(line.to_owned());
        if self.kept.len() > KEPT_LINES_MAX {
            self.kept.pop_front();
        }
        if self.tellings >= TELLINGS_MAX {
            return;
        }
        if self.waiting.len() + line.len() <= TOLD_BYTES_MAX {
            if !self.waiting.is_empty() {
                self.waiting.push('\n');
            }
            self.waiting.push_str(line);
        }
        self.told_at.get_or_insert(now.plus_ms(GATHER_MS));
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.told_at
    }

    pub(super) fn due(&mut self, now: Timestamp) -> Option<String> {
        self.told_at.take_if(|at| *at <= now)?;
        self.tellings += 1;
        Some(std::mem::take(&mut self.waiting)).filter(|text| !text.is_empty())
    }

    /// None of it is a reason any more.
    pub(super) fn forgive(&mut self) {
        self.kept.clear();
    }

    pub(super) fn last(&self) -> Option<String> {
        let lines: Vec<_> = self.kept.iter().map(String::as_str).collect();
        Some(lines.join("\n")).filter(|text| !text.is_empty())
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
