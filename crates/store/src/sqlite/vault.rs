//! Credentials and uploads in the same database file, on a separate connection.
//!
//! Not here: the ledger's tables.

use std::path::Path;

use domain::{AttachmentId, CredentialId, Role, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::{self, READER_CACHE_KIB};
use crate::{Credential, CredentialKind, Fault, Upload, Vault};

const CREDENTIAL: &str = "SELECT id, kind, role, name, secret_hash, created_at, last_used_at, revoked_at FROM credentials";
const UPLOAD: &str =
    "SELECT id, name, size_bytes, sha256, media_type, created_at, credential FROM uploads";

const KINDS: [(CredentialKind, &str); 3] = [
    (CredentialKind::Token, "token"),
    (CredentialKind::Device, "device"),
    (CredentialKind::Webchannel, "webchannel"),
];
const ROLES: [(Role, &str); 4] = [
    (Role::Viewer, "viewer"),
    (Role::Operator, "operator"),
    (Role::Owner, "owner"),
    (Role::Proxy, "proxy"),
];

pub(super) struct SqliteVault {
    connection: Connection,
}

impl SqliteVault {
    pub(super) fn open(path: &Path) -> Result<Self, Fault> {
        Ok(Self { connection: schema::connect(path, READER_CACHE_KIB)? })
    }
}

impl Vault for SqliteVault {
    fn insert_credential(&mut self, credential: &Credential) -> Result<(), Fault> {
        let inserted = self.connection.execute(
            "INSERT INTO credentials
             (id, kind, role, name, secret_hash, created_at, last_used_at, revoked_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                credential.id.as_str(),
                word_of(&KINDS, credential.kind),
                word_of(&ROLES, credential.role),
                credential.name,
                credential.secret_hash,
                time(credential.created_at),
                credential.last_used_at.map(time),
                credential.revoked_at.map(time),
            ],
        );
        refuse_repeat(inserted, || format!("credential {}", credential.id))
    }

    fn credential_by_hash(&mut self, secret_hash: &[u8; 32]) -> Result<Option<Credential>, Fault> {
        let sql = format!("{CREDENTIAL} WHERE secret_hash = ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row([secret_hash], read_credential).optional()?)
    }

    fn credentials(&mut self) -> Result<Vec<Credential>, Fault> {
        let sql = format!("{CREDENTIAL} ORDER BY created_at, id");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_map([], read_credential)?.collect::<Result<_, _>>()?)
    }

    fn revoke_credential(&mut self, id: &CredentialId, at: Timestamp) -> Result<bool, Fault> {
        let changed = self.connection.execute(
            "UPDATE credentials SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
            params![time(at), id.as_str()],
        )?;
        Ok(changed > 0)
    }

    fn touch_credential(&mut self, id: &CredentialId, at: Timestamp) -> Result<(), Fault> {
        self.connection.execute(
            "UPDATE credentials SET last_used_at = ? WHERE id = ?",
            params![time(at), id.as_str()],
        )?;
        Ok(())
    }

    fn insert_upload(&mut self, upload: &Upload) -> Result<(), Fault> {
        let inserted = self.connection.execute(
            "INSERT INTO uploads
             (id, name, size_bytes, sha256, media_type, created_at, credential)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![
                upload.id.as_str(),
                upload.name,
                upload.size_bytes.cast_signed(),
                upload.sha256,
                upload.media_type,
                time(upload.created_at),
                upload.by.as_str(),
            ],
        );
        refuse_repeat(inserted, || format!("upload {}", upload.id))
    }

    fn upload(&mut self, id: &AttachmentId) -> Result<Option<Upload>, Fault> {
        let sql = format!("{UPLOAD} WHERE id = ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row([id.as_str()], read_upload).optional()?)
    }

    fn uploads(&mut self) -> Result<Vec<Upload>, Fault> {
        let sql = format!("{UPLOAD} ORDER BY created_at, id");
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_map([], read_upload)?.collect::<Result<_, _>>()?)
    }

    fn remove_upload(&mut self, id: &AttachmentId) -> Result<bool, Fault> {
        let changed = self.connection.execute("DELETE FROM uploads WHERE id = ?", [id.as_str()])?;
        Ok(changed > 0)
    }

    fn meta(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        let mut statement =
            self.connection.prepare_cached("SELECT value FROM meta WHERE key = ?")?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    fn set_meta(&mut self, key: &str, value: &[u8]) -> Result<(), Fault> {
        self.connection.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            params![key, value],
        )?;
        Ok(())
    }
}

fn read_credential(row: &Row<'_>) -> rusqlite::Result<Credential> {
    Ok(Credential {
        id: row.get::<_, String>(0)?.into(),
        kind: meant_by(&KINDS, row, 1)?,
        role: meant_by(&ROLES, row, 2)?,
        name: row.get(3)?,
        secret_hash: row.get(4)?,
        created_at: timestamp(row.get(5)?),
        last_used_at: row.get::<_, Option<i64>>(6)?.map(timestamp),
        revoked_at: row.get::<_, Option<i64>>(7)?.map(timestamp),
    })
}

fn read_upload(row: &Row<'_>) -> rusqlite::Result<Upload> {
    Ok(Upload {
        id: row.get::<_, String>(0)?.into(),
        name: row.get(1)?,
        size_bytes: row.get::<_, i64>(2)?.cast_unsigned(),
        sha256: row.get(3)?,
        media_type: row.get(4)?,
        created_at: timestamp(row.get(5)?),
        by: row.get::<_, String>(6)?.into(),
    })
}

fn time(at: Timestamp) -> i64 {
    at.0.cast_signed()
}

fn timestamp(stored: i64) -> Timestamp {
    Timestamp(stored.cast_unsigned())
}

fn word_of<T: Copy + PartialEq>(words: &[(T, &'static str)], meaning: T) -> &'static str {
    words.iter().find(|(known, _)| *known == meaning).map_or("", |(_, word)| word)
}

fn meant_by<T: Copy>(
    words: &[(T, &'static str)],
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    let word: String = row.get(column)?;
    let meaning = words.iter().find(|(_, known)| *known == word).map(|(meaning, _)| *meaning);
    meaning.ok_or_else(|| {
        let unknown = format!("unknown value {word:?}");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, unknown.into())
    })
}

fn refuse_repeat(
    inserted: rusqlite::Result<usize>,
    what: impl Fn() -> String,
) -> Result<(), Fault> {
    match inserted {
        Ok(_) => Ok(()),
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
        {
            Err(Fault::Exists { what: what() })
        }
        Err(error) => Err(error.into()),
    }
}
