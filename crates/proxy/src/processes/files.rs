//! Files of a workspace, read and written for an agent.
//!
//! A path is resolved first (following every link) and must then be in the workspace. It is then
//! opened step by step from the workspace folder without following any link: if a link is put in
//! the way in between, the result is an error, not a file elsewhere.
//!
//! **Invariant**: nothing outside the workspace is opened, whatever changes meanwhile.
//!
//! Not here: permission (the agent asked in its own way), who waits for the answer (`agents`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use agents::{FileDeed, FileFault, FileFaultKind, FileJob};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// Bytes of text that are handed out at once, or written.
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Bytes that are read on the way to the lines that are wanted.
const SKIPPED_BYTES_MAX: u64 = 512 << 20;
/// Folders that are made on the way to a file.
const NEW_FOLDERS_MAX: usize = 32;

/// Never over a link, never handed on to other programs.
const FIXED: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(FIXED);

type Outcome<T> = Result<T, FileFault>;

/// A workspace, as it was when its program was started: whatever is put in its place later is
/// another one.
#[derive(Debug)]
pub(super) struct Root {
    /// As everybody calls it.
    named: PathBuf,
    /// With every link followed.
    real: PathBuf,
    folder: OwnedFd,
}

impl Root {
    pub(super) fn open(named: &Path) -> io::Result<Self> {
        let real = named.canonicalize()?;
        let folder = openat(CWD, &real, FOLDER, Mode::empty())?;
        Ok(Self { named: named.to_owned(), real, folder })
    }

    /// A folder within the workspace, as it really is.
    pub(super) fn folder_within(&self, folder: &Path) -> Outcome<PathBuf> {
        let place = Place::find(self, folder)?;
        if !place.new.is_empty() {
            return Err(missing(folder));
        }
        place.open(OFlags::RDONLY | OFlags::DIRECTORY).map_err(|errno| fault(folder, errno))?;
        Ok(place.steps.iter().fold(self.real.clone(), |path, step| path.join(step)))
    }
}

/// Does what is asked. Takes as long as the disk does.
pub(super) fn carry_out(root: &Root, job: &FileJob) -> Outcome<Option<String>> {
    let path = &job.path;
    let place = Place::find(root, path)?;
    match &job.deed {
        FileDeed::Read { line, limit } => {
            if !place.new.is_empty() {
                return Err(missing(path));
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let file = place.open(flags).map_err(|errno| fault(path, errno))?;
            read(file, path, *line, *limit).map(Some)
        }
        FileDeed::Write(text) => {
            if text.len() > TEXT_BYTES_MAX {
                return Err(refused(format!(
                    "The text has {} bytes. The limit is {TEXT_BYTES_MAX} bytes",
                    text.len()
                )));
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK;
            let file = place.open(flags).map_err(|errno| fault(path, errno))?;
            write(file, path, text).map(|()| None)
        }
    }
}

/// Where a path leads within a folder.
#[derive(Debug)]
struct Place<'a> {
    root: &'a Root,
    /// What is there already, without any link.
    steps: Vec<OsString>,
    /// What is not there yet.
    new: Vec<OsString>,
}

impl<'a> Place<'a> {
    fn find(root: &'a Root, path: &Path) -> Outcome<Self> {
        if path.components().any(|component| component == Component::ParentDir) {
            return Err(refused(format!(
                "{} contains \"..\", which is not allowed",
                path.display()
            )));
        }
        let wanted = root.named.join(path);
        let mut there = wanted.clone();
        let mut new = vec![];
        let real = loop {
            match there.canonicalize() {
                Ok(real) => break real,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A link that leads nowhere is there, and is not followed.
                    if there.symlink_metadata().is_ok() {
                        return Err(refused(format!("{} is a broken link", there.display())));
                    }
                    let name = there.file_name().map(OsStr::to_owned);
                    let name = name.ok_or_else(|| failed(path, &error))?;
                    new.push(name);
                    if new.len() > NEW_FOLDERS_MAX || !there.pop() {
                        return Err(refused(format!("{} is nested too deeply", path.display())));
                    }
                }
                Err(error) => return Err(failed(path, &error)),
            }
        };
        new.reverse();
        let Ok(steps) = real.strip_prefix(&root.real) else {
            return Err(refused(format!(
                "{} is outside the workspace {}. Only files in the workspace can be used",
                path.display(),
                root.named.display()
            )));
        };
        let steps = steps.components().map(|step| step.as_os_str().to_owned()).collect();
        Ok(Self { root, steps, new })
    }

    /// Opens it, one step after the other. Folders are made only where a file is to be.
    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names: Vec<_> = self.steps.iter().map(|name| (name, false)).collect();
        names.extend(self.new.iter().map(|name| (name, true)));
        let Some(((last, _), way)) = names.split_last() else {
            return openat(&self.root.folder, ".", flags | FIXED, Mode::empty());
        };
        let mut below: Option<OwnedFd> = None;
        for (name, is_new) in way {
            let at = below.as_ref().unwrap_or(&self.root.folder);
            if *is_new {
                match mkdirat(at, *name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
            }
            below = Some(openat(at, *name, FOLDER, Mode::empty())?);
        }
        let at = below.as_ref().unwrap_or(&self.root.folder);
        openat(at, *last, flags | FIXED, Mode::from_raw_mode(0o666))
    }
}

fn read(file: OwnedFd, path: &Path, line: Option<u64>, limit: Option<u64>) -> Outcome<String> {
    let file = plain_file(file, path)?;
    let length = file.metadata().map_err(|error| failed(path, &error))?.len();
    let is_whole = line.unwrap_or(1) <= 1 && limit.is_none();
    let too_long = || {
        refused(format!(
            "{} has {length} bytes, more than the limit of {TEXT_BYTES_MAX} bytes. Read it in \
             parts with line and limit",
            path.display()
        ))
    };
    if is_whole && length > TEXT_BYTES_MAX as u64 {
        return Err(too_long());
    }
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    skip(&mut reader, line.unwrap_or(1).saturating_sub(1), path)?;
    let mut text = vec![];
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 {
        let room = (TEXT_BYTES_MAX + 1 - text.len()) as u64;
        let taken = reader.by_ref().take(room).read_until(b'\n', &mut text);
        if taken.map_err(|error| failed(path, &error))? == 0 {
            break;
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        left -= 1;
    }
    String::from_utf8(text).map_err(|_| refused(format!("{} is not UTF-8 text", path.display())))
}

fn skip(reader: &mut BufReader<File>, lines: u64, path: &Path) -> Outcome<()> {
    let mut bytes = 0_u64;
    for _ in 0..lines {
        let room = SKIPPED_BYTES_MAX - bytes;
        let skipped = reader.by_ref().take(room).skip_until(b'\n');
        let skipped = skipped.map_err(|error| failed(path, &error))?;
        bytes += skipped as u64;
        if skipped == 0 {
            return Ok(());
        }
        if bytes >= SKIPPED_BYTES_MAX {
            return Err(refused(format!("{} is too long to be read by line", path.display())));
        }
    }
    Ok(())
}

fn write(file: OwnedFd, path: &Path, text: &str) -> Outcome<()> {
    let mut file = plain_file(file, path)?;
    let cut = file.set_len(0);
    let written = cut.and_then(|()| file.write_all(text.as_bytes()));
    written.map_err(|error| failed(path, &error))
}

/// Not a folder, a pipe or a device: those may never end, or do something.
fn plain_file(file: OwnedFd, path: &Path) -> Outcome<File> {
    let file = File::from(file);
    let found = file.metadata().map_err(|error| failed(path, &error))?;
    if found.is_file() {
        return Ok(file);
    }
    let what = if found.is_dir() { "a folder" } else { "not a regular file" };
    Err(refused(format!("{} is {what}", path.display())))
}

fn fault(path: &Path, errno: Errno) -> FileFault {
    match errno {
        Errno::NOENT => missing(path),
        Errno::LOOP | Errno::NOTDIR => refused(format!(
            "The path {} contains a link, or a file where a folder is expected",
            path.display()
        )),
        Errno::ISDIR => refused(format!("{} is a folder", path.display())),
        errno => failed(path, &errno.into()),
    }
}

/// In the words by which agents recognise it.
fn missing(path: &Path) -> FileFault {
    let words = format!("Resource not found: {}", path.display());
    FileFault { kind: FileFaultKind::Missing, words }
}

fn refused(words: String) -> FileFault {
    FileFault { kind: FileFaultKind::Refused, words }
}

fn failed(path: &Path, error: &io::Error) -> FileFault {
    let words = format!("{}: {error}", path.display());
    FileFault { kind: FileFaultKind::Failed, words }
}

#[cfg(test)]
mod tests;
