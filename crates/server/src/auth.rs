//! Authentication: secrets, credentials, pairing.
//!
//! **Invariant**: only hashes are stored; a secret is shown once, to the person it was made for. A
//! revoked credential opens nothing, and the connections that it opened are closed at once.
//!
//! Not here: what a principal may do (`domain`), where a request carries its secret (`door`).

mod book;
mod channel;
mod local;
mod pairing;
mod secret;

use std::net::IpAddr;
use std::sync::Arc;

use domain::{CredentialId, Principal, Role, Timestamp};
use store::{Credential, CredentialKind, Vault};
use tokio::sync::watch;

pub use pairing::{
    CODE_LIFETIME_MS, CODES_OPEN_MAX, PairRefused, WRONG_TRIES_MAX, WRONG_TRIES_PER_ADDRESS_MAX,
    WRONG_TRY_COUNTS_MS,
};
pub use secret::{NoRandomness, SECRET_PREFIX};

pub(crate) use book::Book;
pub(crate) use channel::is_valid;
pub(crate) use pairing::Pairing;
pub(crate) use secret::{hex, id, seed};

use crate::records::{Office, Records, RecordsFault};

/// Credentials that are valid at once.
pub const CREDENTIALS_MAX: usize = 4_096;
/// The name of a credential, in characters; more is cut.
pub const CREDENTIAL_NAME_MAX: usize = 100;

/// The keeper of credentials. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Auth {
    records: Records,
    book: watch::Receiver<Arc<Book>>,
}

/// A new credential, with its secret: shown here and never again.
#[derive(Clone)]
pub struct Issued {
    /// What lists call it.
    pub id: CredentialId,
    /// The secret.
    pub token: String,
    /// What it allows.
    pub role: Role,
    /// What people call it.
    pub name: String,
}

/// A code that a device can be paired with.
#[derive(Clone)]
pub struct PairingCode {
    /// Six digits.
    pub code: String,
    /// Until when.
    pub expires_at: Timestamp,
}

impl Auth {
    /// Takes the vault over and reads the credentials.
    pub fn open(vault: Box<dyn Vault>) -> Result<Self, RecordsFault> {
        let (records, book) = Records::open(vault)?;
        Ok(Self { records, book })
    }

    /// Who shows this secret. Waits for nothing.
    pub fn check(&self, secret: &str, now: Timestamp) -> Option<Principal> {
        let book = self.book.borrow().clone();
        let entry = book.find(&secret::hash(secret)).filter(|entry| entry.is_good(now))?;
        if entry.touch(now) {
            let id = entry.id().clone();
            // Left out when the disk is busy: it is a hint for people, not a fact.
            self.records.mention(move |office| {
                if let Err(fault) = office.vault.touch_credential(&id, now) {
                    tracing::warn!(%fault, "could not record the last use of a credential");
                }
            });
        }
        Some(entry.principal())
    }

    /// Makes a credential.
    pub async fn create(
        &self,
        kind: CredentialKind,
        role: Role,
        name: &str,
        now: Timestamp,
    ) -> Result<Issued, RecordsFault> {
        let name = plain_name(name);
        self.records.ask(move |office| issue(office, kind, role, name, now)).await
    }

    /// Every credential, revoked ones too, by age.
    pub async fn list(&self) -> Result<Vec<Credential>, RecordsFault> {
        self.records.ask(|office| Ok(office.vault.credentials()?)).await
    }

    /// Ends a credential; what it opened closes at once. False when it was not valid.
    pub async fn revoke(&self, id: &CredentialId, now: Timestamp) -> Result<bool, RecordsFault> {
        let id = id.clone();
        let job = move |office: &mut Office| {
            let revoked = office.vault.revoke_credential(&id, now)?;
            if revoked {
                channel::forget(office, &id)?;
            }
            office.book.send_modify(|book| Arc::make_mut(book).remove(&id));
            Ok(revoked)
        };
        self.records.ask(job).await
    }

    /// Makes a code with which a device can get a token of this role.
    pub async fn offer_code(
        &self,
        role: Role,
        now: Timestamp,
    ) -> Result<PairingCode, RecordsFault> {
        let job = move |office: &mut Office| {
            // A few of a million codes are taken: the first draw is free, or the second.
            loop {
                let code = secret::six_digits()?;
                if let Some(expires_at) = office.pairing.offer(&code, role, now) {
                    return Ok(PairingCode { code, expires_at });
                }
            }
        };
        self.records.ask(job).await
    }

    /// Exchanges a code for a device's token.
    pub async fn redeem_code(
        &self,
        code: &str,
        device_name: &str,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<Result<Issued, PairRefused>, RecordsFault> {
        let (code, name) = (code.to_owned(), plain_name(device_name));
        let job = move |office: &mut Office| match office.pairing.redeem(&code, from, now) {
            Ok(role) => issue(office, CredentialKind::Device, role, name, now).map(Ok),
            Err(refused) => Ok(Err(refused)),
        };
        self.records.ask(job).await
    }

    /// Tells an open socket when its credential is revoked.
    pub(crate) fn leash(&self, credential: &CredentialId) -> Leash {
        let mut book = self.book.clone();
        // It may have been revoked since it was checked: the first look is always due.
        book.mark_changed();
        Leash { credential: credential.clone(), book }
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }
}

/// What ties an open socket to its credential.
#[derive(Debug)]
pub(crate) struct Leash {
    credential: CredentialId,
    book: watch::Receiver<Arc<Book>>,
}

impl Leash {
    /// Whether the credential is still valid; cheap while nobody changed any.
    pub(crate) fn holds(&mut self) -> bool {
        match self.book.has_changed() {
            Ok(false) => true,
            Ok(true) | Err(_) => self.book.borrow_and_update().has(&self.credential),
        }
    }

    /// Ends when the credential is revoked. Cancel-safe.
    pub(crate) async fn broken(&mut self) {
        while self.book.changed().await.is_ok() {
            if !self.book.borrow_and_update().has(&self.credential) {
                return;
            }
        }
        // The keeper ends with the relay, which closes its sockets by itself.
        std::future::pending::<()>().await;
    }
}

fn issue(
    office: &mut Office,
    kind: CredentialKind,
    role: Role,
    name: String,
    now: Timestamp,
) -> Result<Issued, RecordsFault> {
    if office.book.borrow().len() >= CREDENTIALS_MAX {
        return Err(RecordsFault::TooManyCredentials { limit: CREDENTIALS_MAX });
    }
    let token = secret::secret()?;
    let prefix = match kind {
        CredentialKind::Token => "tok",
        CredentialKind::Device => "dev",
        CredentialKind::Webchannel => wire::webchannel::CREDENTIAL_PREFIX,
    };
    let credential = Credential {
        id: id(prefix)?.into(),
        kind,
        role,
        name: name.clone(),
        secret_hash: secret::hash(&token),
        created_at: now,
        last_used_at: None,
        revoked_at: None,
    };
    office.vault.insert_credential(&credential)?;
    office.book.send_modify(|book| Arc::make_mut(book).insert(&credential));
    Ok(Issued { id: credential.id, token, role, name })
}

/// One line that a list can show.
fn plain_name(raw: &str) -> String {
    let plain: String = raw.chars().filter(|c| !c.is_control()).take(CREDENTIAL_NAME_MAX).collect();
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn auth() -> (Auth, store::MemoryDisk) {
        let disk = store::MemoryDisk::default();
        (reopened(&disk), disk)
    }

    fn reopened(disk: &store::MemoryDisk) -> Auth {
        use store::Ledger as _;
        Auth::open(disk.open().unwrap().vault().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_secret_opens_until_it_is_revoked_and_over_a_restart() {
        let (auth, disk) = auth();
        let made = auth.create(CredentialKind::Token, Role::Viewer, "wall", NOW).await.unwrap();

        let principal = reopened(&disk).check(&made.token, NOW).unwrap();
        assert_eq!((principal.role, principal.name.as_str()), (Role::Viewer, "wall"));
        assert!(auth.revoke(&made.id, NOW).await.unwrap());
        assert_eq!(auth.check(&made.token, NOW), None);
        assert_eq!(reopened(&disk).check(&made.token, NOW), None);
        assert!(!auth.revoke(&made.id, NOW).await.unwrap());
    }

    #[tokio::test]
    async fn the_secret_itself_is_nowhere_in_the_store() {
        let (auth, _disk) = auth();
        let made = auth.create(CredentialKind::Token, Role::Owner, "o", NOW).await.unwrap();

        let stored = format!("{:?}", auth.list().await.unwrap());
        assert!(!stored.contains(&made.token) && stored.contains(made.id.as_str()));
    }

    #[tokio::test]
    async fn a_leash_breaks_with_its_own_credential_and_no_other() {
        let (auth, _disk) = auth();
        let mine = auth.create(CredentialKind::Token, Role::Viewer, "mine", NOW).await.unwrap();
        let other = auth.create(CredentialKind::Token, Role::Viewer, "other", NOW).await.unwrap();
        let mut leash = auth.leash(&mine.id);

        auth.revoke(&other.id, NOW).await.unwrap();
        assert!(leash.holds());
        let mut waiting = auth.leash(&mine.id);
        auth.revoke(&mine.id, NOW).await.unwrap();
        assert!(!leash.holds());
        waiting.broken().await;
        auth.leash(&mine.id).broken().await;
    }

    #[tokio::test]
    async fn the_last_use_is_noted() {
        let (auth, _disk) = auth();
        let made = auth.create(CredentialKind::Token, Role::Viewer, "v", NOW).await.unwrap();

        auth.check(&made.token, NOW.plus_ms(7)).unwrap();

        // The list is asked of the same task, after the note.
        let listed = auth.list().await.unwrap();
        assert_eq!(listed[0].last_used_at, Some(NOW.plus_ms(7)));
    }

    #[test]
    fn a_name_is_one_line_and_bounded() {
        assert_eq!(plain_name(" my\n phone\u{7} "), "my phone");
        assert_eq!(plain_name(&"x".repeat(500)).len(), CREDENTIAL_NAME_MAX);
    }
}
