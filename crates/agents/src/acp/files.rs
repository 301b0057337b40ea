//! Files of the workspace that the agent asks us to read or write.
//!
//! Invariant: every request is answered once, unless its program ends first.
//!
//! Not here: whether a path stays in the workspace, and the files themselves (`proxy`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Acp;
use super::frames::lenient;
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, TheirId};
use crate::{FileDeed, FileFault, FileFaultKind, FileJob, Output};

/// Requests that wait at once. Beyond, they are refused.
const WAITING_MAX: usize = 64;
/// The protocol's code for something that is not there.
const NOT_FOUND: i64 = -32_002;

/// Requests that wait for the proxy, by the numbers of their jobs.
#[derive(Debug, Default)]
pub(super) struct Files {
    waiting: BTreeMap<u64, (TheirId, Asked)>,
    last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Read,
    Write,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Params {
    #[serde(deserialize_with = "lenient")]
    path: String,
    #[serde(deserialize_with = "lenient")]
    line: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    limit: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    content: Option<String>,
}

impl Files {
    /// The program is no more: nobody waits.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Acp {
    pub(super) fn asked_to_read(&mut self, id: &TheirId, params: Value) {
        let params: Params = super::frames::read(params);
        let deed = FileDeed::Read { line: params.line, limit: params.limit };
        self.file(id, Asked::Read, params.path, Some(deed));
    }

    pub(super) fn asked_to_write(&mut self, id: &TheirId, params: Value) {
        if self.quirks.announces_writes {
            // It does not wait for us: a write of ours could come after a later one of its own.
            let line = self.rpc.answer(id, json!({}));
            return self.write(line);
        }
        let params: Params = super::frames::read(params);
        let deed = params.content.map(FileDeed::Write);
        self.file(id, Asked::Write, params.path, deed);
    }

    fn file(&mut self, id: &TheirId, asked: Asked, path: String, deed: Option<FileDeed>) {
        let Some(deed) = deed.filter(|_| !path.is_empty()) else {
            let line = self.rpc.refusal(id, INVALID_PARAMS, "The path or the content is missing");
            return self.write(line);
        };
        if self.files.waiting.len() >= WAITING_MAX {
            let words = "Too many file requests at once; try again in a moment";
            let line = self.rpc.refusal(id, INTERNAL_ERROR, words);
            return self.write(line);
        }
        self.files.last += 1;
        let number = self.files.last;
        self.files.waiting.insert(number, (id.clone(), asked));
        self.scribe.push(Output::File(FileJob { number, path: path.into(), deed }));
    }

    /// A job was done, or not.
    pub(super) fn filed(&mut self, number: u64, outcome: Result<Option<String>, FileFault>) {
        let Some((id, asked)) = self.files.waiting.remove(&number) else { return };
        let line = match outcome {
            Ok(text) => {
                let result = match asked {
                    Asked::Read => json!({ "content": text.unwrap_or_default() }),
                    Asked::Write => json!({}),
                };
                self.rpc.answer(&id, result)
            }
            Err(fault) => self.rpc.refusal(&id, code(fault.kind), &fault.words),
        };
        self.write(line);
    }
}

fn code(kind: FileFaultKind) -> i64 {
    match kind {
        FileFaultKind::Missing => NOT_FOUND,
        FileFaultKind::Refused => INVALID_PARAMS,
        FileFaultKind::Failed => INTERNAL_ERROR,
    }
}
