//! Tokens of this computer: in the data folder, readable only by its owner, unchanged by restarts.
//!
//! Not here: tokens that people create (`auth`).

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use domain::{Role, Timestamp};
use store::CredentialKind;

use super::{Auth, Issued};
use crate::records::RecordsFault;

impl Auth {
    /// The secret in this file, or a new one that is written there when there is none, or the one
    /// there no longer opens anything.
    pub async fn local_token(
        &self,
        path: &Path,
        role: Role,
        name: &str,
        now: Timestamp,
    ) -> Result<Issued, RecordsFault> {
        let fault = |error: std::io::Error| RecordsFault::TokenFile {
            path: path.display().to_string(),
            detail: error.to_string(),
        };
        let kept = match std::fs::read_to_string(path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(fault(error)),
        };
        let known = kept.and_then(|token| {
            let principal = self.check(&token, now).filter(|it| it.role == role)?;
            Some(Issued { id: principal.credential, token, role, name: principal.name })
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self.create(CredentialKind::Token, role, name, now).await?;
        write_privately(path, &made.token).map_err(fault)?;
        Ok(made)
    }
}

/// Written whole or not at all, and never readable by others, not even for a moment.
fn write_privately(path: &Path, secret: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use store::Ledger as _;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[tokio::test]
    async fn a_local_token_is_private_and_the_same_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner.token");
        let disk = store::MemoryDisk::default();
        let open = || Auth::open(disk.open().unwrap().vault().unwrap()).unwrap();

        let first = open().local_token(&path, Role::Owner, "owner", NOW).await.unwrap();
        let again = open().local_token(&path, Role::Owner, "owner", NOW).await.unwrap();

        assert_eq!((first.id, &first.token), (again.id.clone(), &again.token));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let auth = open();
        auth.revoke(&again.id, NOW).await.unwrap();
        let replaced = auth.local_token(&path, Role::Owner, "owner", NOW).await.unwrap();
        assert_ne!(replaced.token, again.token);
        assert!(auth.check(std::fs::read_to_string(&path).unwrap().trim(), NOW).is_some());
    }
}
