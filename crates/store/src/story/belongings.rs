//! Credentials, uploads and values beside the ledger.
//!
//! Not here: the streams themselves (`appending`, `keeping`).

use domain::{Role, Timestamp};

use super::{Backend, acquire, append};
use crate::{Credential, CredentialKind, Fault, Ledger as _, Upload};

fn credential(id: &str, fill: u8, at: u64) -> Credential {
    Credential {
        id: id.into(),
        kind: CredentialKind::Device,
        role: Role::Operator,
        name: format!("the phone {id}"),
        secret_hash: [fill; 32],
        created_at: Timestamp(at),
        last_used_at: None,
        revoked_at: None,
    }
}

pub(crate) fn credentials_are_found_until_and_after_they_are_revoked<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let mut vault = ledger.vault().unwrap();
    vault.insert_credential(&credential("c1", 1, 20)).unwrap();
    vault.insert_credential(&credential("c2", 2, 10)).unwrap();
    for taken in [credential("c1", 3, 30), credential("c3", 1, 30)] {
        assert!(matches!(vault.insert_credential(&taken), Err(Fault::Exists { .. })));
    }
    assert_eq!(vault.credential_by_hash(&[1; 32]).unwrap(), Some(credential("c1", 1, 20)));
    assert_eq!(vault.credential_by_hash(&[9; 32]).unwrap(), None);
    vault.touch_credential(&"c1".into(), Timestamp(40)).unwrap();
    assert!(vault.revoke_credential(&"c1".into(), Timestamp(50)).unwrap());
    assert!(!vault.revoke_credential(&"c1".into(), Timestamp(60)).unwrap());
    assert!(!vault.revoke_credential(&"c9".into(), Timestamp(60)).unwrap());
    // Beside the writer.
    let epoch = acquire(&mut ledger, "one");
    ledger.commit(&[append("one", epoch, 1..=1)]).unwrap();
    drop((vault, ledger));
    let ledger = disk.open().unwrap();
    let mut vault = ledger.vault().unwrap();
    let revoked = Credential {
        last_used_at: Some(Timestamp(40)),
        revoked_at: Some(Timestamp(50)),
        ..credential("c1", 1, 20)
    };
    assert_eq!(vault.credentials().unwrap(), [credential("c2", 2, 10), revoked.clone()]);
    assert_eq!(vault.credential_by_hash(&[1; 32]).unwrap(), Some(revoked));
}

pub(crate) fn uploads_and_values_are_kept<B: Backend>() {
    let disk = B::new();
    let ledger = disk.open().unwrap();
    let mut vault = ledger.vault().unwrap();
    let upload = Upload {
        id: "u1".into(),
        name: "plan.pdf".into(),
        size_bytes: 1 << 40,
        sha256: [5; 32],
        media_type: "application/pdf".into(),
        created_at: Timestamp(7),
        by: "c1".into(),
    };
    vault.insert_upload(&upload).unwrap();
    assert!(matches!(vault.insert_upload(&upload), Err(Fault::Exists { .. })));
    assert_eq!(vault.upload(&"u1".into()).unwrap(), Some(upload.clone()));
    assert_eq!(vault.uploads().unwrap(), [upload]);
    assert!(vault.remove_upload(&"u1".into()).unwrap());
    assert!(!vault.remove_upload(&"u1".into()).unwrap());
    assert_eq!(vault.upload(&"u1".into()).unwrap(), None);
    vault.set_meta("key", b"old").unwrap();
    vault.set_meta("key", b"new").unwrap();
    assert_eq!(vault.meta("key").unwrap().unwrap(), b"new");
    assert_eq!(vault.meta("other").unwrap(), None);
}
