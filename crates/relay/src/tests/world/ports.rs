//! The clock, the names and the credentials of a test's relay.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::content::Failure;
use domain::{ConnectionId, CredentialId, Principal, Role, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;
use wire::visitor::Recognised;

use crate::ports::{Clock, Door, Ids, Work};

/// When a test's wall clock starts.
pub(in crate::tests) const BEGINNING_MS: u64 = 1_790_000_000_000;

/// A wall clock that follows the paused time and can be set.
#[derive(Debug, Clone)]
pub(in crate::tests) struct TestClock {
    begun: Instant,
    jumped_ms: Arc<AtomicI64>,
}

impl TestClock {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), jumped_ms: Arc::default() }
    }

    pub(in crate::tests) fn jump(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        let now = BEGINNING_MS + elapsed_ms;
        Timestamp(now.saturating_add_signed(self.jumped_ms.load(Ordering::Relaxed)))
    }
}

#[derive(Debug, Clone, Default)]
pub(in crate::tests) struct TestIds(Arc<AtomicU64>);

impl Ids for TestIds {
    fn connection(&self) -> ConnectionId {
        format!("conn_{}", self.0.fetch_add(1, Ordering::Relaxed)).into()
    }
}

/// Credentials that tests hand out and revoke. A token is its owner's name.
#[derive(Debug, Clone, Default)]
pub(in crate::tests) struct Credentials(Arc<Mutex<BTreeMap<CredentialId, watch::Sender<bool>>>>);

impl Credentials {
    /// Whether this credential is revoked.
    pub(super) fn of(&self, credential: &CredentialId) -> watch::Receiver<bool> {
        let mut all = self.0.lock().unwrap();
        all.entry(credential.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe()
    }

    pub(in crate::tests) fn revoke(&self, name: &str) {
        let mut revoked = self.of(&name.into());
        self.0.lock().unwrap()[&CredentialId::from(name)].send_replace(true);
        assert!(*revoked.borrow_and_update());
    }
}

impl Door for Credentials {
    fn pair(
        &self,
        _code: String,
        _name: String,
        _key: Option<[u8; 32]>,
    ) -> Work<Result<(Principal, String), Failure>> {
        Box::pin(async { Err(Failure::new("pairing_failed", "not in these tests")) })
    }

    fn recognise(&self, token: String) -> Work<Option<Recognised>> {
        let principal = person(&token);
        Box::pin(async { Some(Recognised { principal, key: None, expires_at: None }) })
    }

    fn spend(&self, _credential: CredentialId, _nonce: [u8; 12]) -> Work<bool> {
        Box::pin(async { false })
    }

    fn revoked(&self, credential: &CredentialId) -> Work<()> {
        let mut revoked = self.of(credential);
        Box::pin(async move {
            let _ = revoked.wait_for(|revoked| *revoked).await;
        })
    }

    fn identify(&self, token: String) -> Work<Option<Principal>> {
        let principal = person(&token);
        Box::pin(async { Some(principal) })
    }
}

pub(in crate::tests) fn person(name: &str) -> Principal {
    Principal { credential: name.into(), role: Role::Operator, client: None, name: name.to_owned() }
}
