//! Who may come in: the credentials of the simulated world, which outlive the relay.
//!
//! Not here: how a connection ends when its credential is revoked (`relay_node`, `relay::gate`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::content::Failure;
use domain::{CredentialId, Principal, Role};
use relay::ports::{Door, Work};
use tokio::sync::Notify;
use wire::visitor::Recognised;
use wire::webchannel;

/// The key of every webchannel client that was paired.
pub(crate) const KEY: [u8; 32] = [7; 32];

/// A handle; clones see the same credentials.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    ignores_revocations: bool,
}

#[derive(Debug, Default)]
struct State {
    revoked: BTreeSet<CredentialId>,
    spent: BTreeSet<(CredentialId, [u8; 12])>,
    paired: BTreeMap<String, Principal>,
}

impl Credentials {
    /// With this set, nobody learns of a revocation.
    pub(crate) fn new(ignores_revocations: bool) -> Self {
        Self { ignores_revocations, ..Self::default() }
    }

    /// The principal of a credential that is called like its bearer.
    pub(crate) fn principal(name: &str, role: Role) -> Principal {
        Principal { credential: name.into(), role, client: None, name: name.to_owned() }
    }

    /// A webchannel client that was paired earlier. Gives its principal and its token.
    pub(crate) fn pair(&self, name: &str) -> (Principal, String) {
        let credential = format!("{}_{name}", webchannel::CREDENTIAL_PREFIX);
        let principal = Self::principal(&credential, Role::Operator);
        let token = format!("token-{name}");
        self.lock().paired.insert(token.clone(), principal.clone());
        (principal, token)
    }

    /// From here on its bearer is shown nothing.
    pub(crate) fn revoke(&self, credential: &str) {
        self.lock().revoked.insert(credential.into());
        self.changed.notify_waiters();
    }

    /// Whether the relay still lets it in.
    pub(crate) fn admits(&self, credential: &CredentialId) -> bool {
        self.ignores_revocations || !self.lock().revoked.contains(credential)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door for Credentials {
    fn pair(
        &self,
        _code: String,
        _name: String,
        _key: Option<[u8; 32]>,
    ) -> Work<Result<(Principal, String), Failure>> {
        Box::pin(async { Err(Failure::new("pairing_failed", "Nobody pairs here")) })
    }

    fn recognise(&self, token: String) -> Work<Option<Recognised>> {
        let known = self.lock().paired.get(&token).cloned();
        let known = known.filter(|principal| self.admits(&principal.credential));
        Box::pin(async move {
            known.map(|principal| Recognised { principal, key: Some(KEY), expires_at: None })
        })
    }

    fn spend(&self, credential: CredentialId, nonce: [u8; 12]) -> Work<bool> {
        let is_new = self.lock().spent.insert((credential, nonce));
        Box::pin(async move { is_new })
    }

    fn revoked(&self, credential: &CredentialId) -> Work<()> {
        let (credentials, credential) = (self.clone(), credential.clone());
        Box::pin(async move {
            loop {
                let changed = credentials.changed.notified();
                if !credentials.admits(&credential) {
                    return;
                }
                changed.await;
            }
        })
    }

    fn identify(&self, _token: String) -> Work<Option<Principal>> {
        Box::pin(async { None })
    }
}
