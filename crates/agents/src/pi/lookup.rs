//! The outcome of messages that pi or the proxy held when it died.
//!
//! Invariant: a message that is reported as failed was not written, or is not in pi's record. If
//! the outcome cannot be known, it is reported as unknown.
//!
//! Not here: reading pi's record (`stored`), writing messages (`delivery`).

use std::path::{Path, PathBuf};

use domain::content::Failure;
use domain::session::delivery::DELIVERY_UNKNOWN;
use domain::{MessageId, Sequence};

use super::{Pi, stored};
use crate::{Lookup, Output};

/// Something that is looked for in pi's record.
#[derive(Debug)]
pub(super) struct Sought {
    file: PathBuf,
    id: MessageId,
    attempt: Sequence,
    /// Whether the proxy asks; else pi died with it in its hands.
    is_ordered: bool,
}

impl Pi {
    /// The program died: what was not written failed, the rest is looked for.
    pub(super) fn lost_deliveries(&mut self, failure: &Failure) {
        let (written, unwritten) = self.deliveries.take_all();
        for (id, attempt) in unwritten {
            self.scribe.not_delivered(&id, attempt, failure.clone());
        }
        for (id, attempt) in written {
            let Some(file) = self.known.file.clone() else {
                self.scribe.not_delivered(&id, attempt, unknown());
                continue;
            };
            self.lookups.push(Sought { file: file.clone(), id, attempt, is_ordered: false });
            self.scribe.push(Output::Read(file));
        }
    }

    /// Did pi get this before the proxy was cut off?
    pub(super) fn look_up(&mut self, id: &MessageId, attempt: Sequence) {
        // Nothing is written before it is noted.
        if self.notes.attempt(id, attempt).is_none() {
            self.looked_up(id, attempt, Lookup::Absent);
            return;
        }
        let Some(file) = self.known.file.clone() else {
            self.looked_up(id, attempt, Lookup::Unknown);
            return;
        };
        let id = id.clone();
        self.lookups.push(Sought { file: file.clone(), id, attempt, is_ordered: true });
        self.scribe.push(Output::Read(file));
    }

    fn looked_up(&mut self, id: &MessageId, attempt: Sequence, found: Lookup) {
        self.scribe.push(Output::LookedUp { id: id.clone(), attempt, found });
    }

    /// pi's record was read.
    pub(super) fn look(&mut self, path: &Path, text: Option<&str>) {
        let (sought, rest) =
            std::mem::take(&mut self.lookups).into_iter().partition(|sought| sought.file == path);
        self.lookups = rest;
        let sought: Vec<Sought> = sought;
        for Sought { id, attempt, is_ordered, .. } in sought {
            let before = self.notes.attempt(&id, attempt);
            let has_answered = self.notes.has_answered;
            let found =
                before.map_or(Lookup::Absent, |before| stored::look_up(before, text, has_answered));
            match (is_ordered, found) {
                (true, found) => self.looked_up(&id, attempt, found),
                (false, Lookup::Found) => {
                    self.scribe.delivered_and_cut_off(&id, attempt, "pi");
                }
                (false, Lookup::Absent) => {
                    let words = "pi stopped before it received this message. Send it again";
                    let failure = Failure::new("agent_not_open", words);
                    self.scribe.not_delivered(&id, attempt, failure);
                }
                (false, Lookup::Unknown) => {
                    let failure = unknown();
                    self.scribe.not_delivered(&id, attempt, failure);
                }
            }
        }
    }
}

fn unknown() -> Failure {
    Failure::new(
        DELIVERY_UNKNOWN,
        "pi stopped while the message was being delivered. It may have arrived",
    )
}
