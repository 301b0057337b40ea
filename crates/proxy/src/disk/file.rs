//! A real file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Disk;

/// A file on a real disk.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    file: File,
}

impl FileDisk {
    /// Opens or creates the file; its folder must be there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        sync_folder(path)?;
        Ok(Self { path: path.to_owned(), file })
    }
}

impl Disk for FileDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        fs::read(&self.path)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file = write_anew(&self.path, bytes)?;
        Ok(())
    }
}

/// Puts these bytes in place of a file, all or nothing, and synced. What is written to the file
/// that is given back comes after them.
pub(crate) fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)?;
    OpenOptions::new().append(true).open(path)
}

/// A new name survives a crash only when its folder does.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_and_replaced_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut disk = FileDisk::open(&path).unwrap();
        disk.append(b"one").unwrap();
        disk.sync().unwrap();
        disk.replace(b"two").unwrap();
        disk.append(b"three").unwrap();
        disk.sync().unwrap();
        assert_eq!(FileDisk::open(&path).unwrap().read().unwrap(), b"twothree");
    }
}
