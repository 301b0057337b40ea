//! Credentials and uploads: small rows beside the ledger.
//!
//! **Invariant**: no secret is stored, only its hash; a revoked credential stays listed.
//!
//! Not here: making, hashing and checking secrets (`server`), the bytes of uploads (`server`).

use domain::{AttachmentId, CredentialId, Role, Timestamp};

use crate::Fault;

/// How a credential came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKind {
    /// Made on the command line.
    Token,
    /// Made by pairing.
    Device,
    /// Made by webchannel pairing.
    Webchannel,
}

/// A credential, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// What lists and events call it.
    pub id: CredentialId,
    /// How it came to be.
    pub kind: CredentialKind,
    /// What it allows.
    pub role: Role,
    /// What people call it.
    pub name: String,
    /// Of the secret. Unique.
    pub secret_hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last opened something.
    pub last_used_at: Option<Timestamp>,
    /// Since when it opens nothing.
    pub revoked_at: Option<Timestamp>,
}

/// An uploaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// What messages refer to.
    pub id: AttachmentId,
    /// As the person's file was called.
    pub name: String,
    /// Its length.
    pub size_bytes: u64,
    /// Of its content.
    pub sha256: [u8; 32],
    /// As the client declared it.
    pub media_type: String,
    /// When it was complete.
    pub created_at: Timestamp,
    /// Who uploaded it.
    pub by: CredentialId,
}

/// Rows that change rarely. May be used beside the ledger's writer; every change is durable when
/// the call returns.
pub trait Vault: Send {
    /// Refused as [`Fault::Exists`] when the id or the hash is taken.
    fn insert_credential(&mut self, credential: &Credential) -> Result<(), Fault>;
    /// Revoked ones are found too: the caller says why it refuses.
    fn credential_by_hash(&mut self, secret_hash: &[u8; 32]) -> Result<Option<Credential>, Fault>;
    /// All of them, by age, then id.
    fn credentials(&mut self) -> Result<Vec<Credential>, Fault>;
    /// True when it was valid until now. The first revocation's time stands.
    fn revoke_credential(&mut self, id: &CredentialId, at: Timestamp) -> Result<bool, Fault>;
    /// Notes a use; an unknown id changes nothing.
    fn touch_credential(&mut self, id: &CredentialId, at: Timestamp) -> Result<(), Fault>;

    /// Refused as [`Fault::Exists`] when the id is taken.
    fn insert_upload(&mut self, upload: &Upload) -> Result<(), Fault>;
    /// By id.
    fn upload(&mut self, id: &AttachmentId) -> Result<Option<Upload>, Fault>;
    /// All of them, by age, then id.
    fn uploads(&mut self) -> Result<Vec<Upload>, Fault>;
    /// True when it was there.
    fn remove_upload(&mut self, id: &AttachmentId) -> Result<bool, Fault>;

    /// A remembered value.
    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault>;
    /// Remembers a value in place of the older one.
    fn set_meta(&mut self, key: &str, value: &[u8]) -> Result<(), Fault>;
}
