//! For systems on which files and terminals are not available: agents are not offered any, so no
//! requests come.

use std::sync::Arc;

use agents::TerminalJob;
use tokio::sync::watch;

use super::serve::Teller;

pub(super) mod files {
    use agents::{FileFault, FileFaultKind, FileJob};

    pub(in super::super) struct Root;

    impl Root {
        pub(in super::super) fn open(_named: &std::path::Path) -> std::io::Result<Self> {
            Ok(Self)
        }
    }

    pub(in super::super) fn carry_out(
        _root: &Root,
        _job: &FileJob,
    ) -> Result<Option<String>, FileFault> {
        let words = "Farhelm cannot provide files to agents on this system".to_owned();
        Err(FileFault { kind: FileFaultKind::Refused, words })
    }
}

pub(super) struct Terminals;

impl Terminals {
    pub(super) fn new(
        _teller: Teller,
        _root: Arc<files::Root>,
        _leaders: watch::Sender<Vec<u32>>,
    ) -> Self {
        Self
    }

    pub(super) fn carry_out(&mut self, _job: TerminalJob) {}

    pub(super) async fn next_end(&mut self) {
        std::future::pending().await
    }

    pub(super) async fn end(self) {}
}
