//! Credentials and uploads on a memory disk.
//!
//! Not here: the ledger (`memory`).

use domain::{AttachmentId, CredentialId, Timestamp};

use super::MemoryDisk;
use crate::{Credential, Fault, Upload, Vault};

pub(super) struct MemoryVault {
    pub(super) disk: MemoryDisk,
}

impl Vault for MemoryVault {
    fn insert_credential(&mut self, credential: &Credential) -> Result<(), Fault> {
        let mut state = self.disk.state();
        state.room()?;
        let taken = state
            .credentials
            .values()
            .any(|known| known.id == credential.id || known.secret_hash == credential.secret_hash);
        if taken {
            return Err(Fault::Exists { what: format!("credential {}", credential.id) });
        }
        state.credentials.insert(credential.id.to_string(), credential.clone());
        Ok(())
    }

    fn credential_by_hash(&mut self, secret_hash: &[u8; 32]) -> Result<Option<Credential>, Fault> {
        let state = self.disk.state();
        Ok(state.credentials.values().find(|known| known.secret_hash == *secret_hash).cloned())
    }

    fn credentials(&mut self) -> Result<Vec<Credential>, Fault> {
        let mut all: Vec<_> = self.disk.state().credentials.values().cloned().collect();
        all.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(all)
    }

    fn revoke_credential(&mut self, id: &CredentialId, at: Timestamp) -> Result<bool, Fault> {
        let mut state = self.disk.state();
        state.room()?;
        let valid = state.credentials.get_mut(id.as_str()).filter(|it| it.revoked_at.is_none());
        Ok(valid.map(|credential| credential.revoked_at = Some(at)).is_some())
    }

    fn touch_credential(&mut self, id: &CredentialId, at: Timestamp) -> Result<(), Fault> {
        let mut state = self.disk.state();
        state.room()?;
        if let Some(credential) = state.credentials.get_mut(id.as_str()) {
            credential.last_used_at = Some(at);
        }
        Ok(())
    }

    fn insert_upload(&mut self, upload: &Upload) -> Result<(), Fault> {
        let mut state = self.disk.state();
        state.room()?;
        if state.uploads.contains_key(upload.id.as_str()) {
            return Err(Fault::Exists { what: format!("upload {}", upload.id) });
        }
        state.uploads.insert(upload.id.to_string(), upload.clone());
        Ok(())
    }

    fn upload(&mut self, id: &AttachmentId) -> Result<Option<Upload>, Fault> {
        Ok(self.disk.state().uploads.get(id.as_str()).cloned())
    }

    fn uploads(&mut self) -> Result<Vec<Upload>, Fault> {
        let mut all: Vec<_> = self.disk.state().uploads.values().cloned().collect();
        all.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(all)
    }

    fn remove_upload(&mut self, id: &AttachmentId) -> Result<bool, Fault> {
        Ok(self.disk.state().uploads.remove(id.as_str()).is_some())
    }

    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.disk.state().meta.get(key).cloned())
    }

    fn set_meta(&mut self, key: &str, value: &[u8]) -> Result<(), Fault> {
        let mut state = self.disk.state();
        state.room()?;
        state.meta.insert(key.to_owned(), value.to_vec());
        Ok(())
    }
}
