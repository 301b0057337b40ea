//! Downloads attachments from the relay into a folder of this machine, each under its id.
//!
//! **Invariant**: a file with its final name is complete. The relay names the files, so a name that
//! could lead out of the folder is rejected.
//!
//! Not here: when to ask again (`engine::attachments`), connecting to the relay (`dial`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agents::{File, Image};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use domain::content::{Attachment, Failure};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::worker::Event;
use crate::Fault;
use crate::dial::Dialer;
use crate::engine::{Fetch, FetchFault};

/// Pictures that models take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// A larger picture is handed over as a file.
const IMAGE_BYTES_MAX: u64 = 10 << 20;
/// Sends whose files are being got at once; others wait.
const FETCHES_AT_ONCE_MAX: usize = 4;
/// All files of one send, in all.
const FETCH_TIMEOUT: Duration = Duration::from_secs(300);
/// The largest attachment. A larger one fails its send.
const ATTACHMENT_BYTES_MAX: u64 = 256 << 20;
/// Bytes of an upload's id.
const ID_BYTES_MAX: usize = 128;
/// Files that nobody asked for in so long go at the next start.
const KEPT_FOR: Duration = Duration::from_secs(30 * 86_400);
/// How the names of unfinished files begin; no id does.
const UNFINISHED: &str = ".";

/// The folder of attachments, made if need be, without what is old or unfinished.
pub(super) fn folder(data: &Path) -> Result<PathBuf, Fault> {
    let folder = data.join("proxy").join("attachments");
    let failed = |error| Fault::disk(format!("creating {}", folder.display()), error);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(failed)?;
    let now = SystemTime::now();
    for entry in fs::read_dir(&folder).map_err(failed)?.flatten() {
        let is_unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let changed = entry.metadata().and_then(|found| found.modified());
        let age = changed.ok().and_then(|changed| now.duration_since(changed).ok());
        if is_unfinished || age.is_some_and(|age| age > KEPT_FOR) {
            // One that stays is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(folder)
}

/// Gets what is asked for until nobody asks any more.
pub(super) async fn serve(
    mut asked: mpsc::Receiver<Fetch>,
    events: mpsc::Sender<Event>,
    dialer: Arc<Dialer>,
    folder: PathBuf,
) {
    let mut tasks = JoinSet::new();
    let mut number = 0_u64;
    loop {
        tokio::select! {
            fetch = asked.recv(), if tasks.len() < FETCHES_AT_ONCE_MAX => {
                let Some(Fetch { attempt, files }) = fetch else { return };
                number += 1;
                let (events, dialer, folder) = (events.clone(), Arc::clone(&dialer), folder.clone());
                tasks.spawn(async move {
                    let all = fetch_all(&dialer, &folder, number, &files);
                    let outcome = timeout(FETCH_TIMEOUT, all).await;
                    let outcome = outcome.unwrap_or(Err(FetchFault::Away));
                    let _ = events.send(Event::Fetched(attempt, outcome)).await;
                });
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn fetch_all(
    dialer: &Dialer,
    folder: &Path,
    number: u64,
    wanted: &[Attachment],
) -> Result<Vec<File>, FetchFault> {
    let mut files = vec![];
    for attachment in wanted {
        let id = attachment.id.as_str();
        if !is_name(id) {
            return Err(unknown(attachment));
        }
        let path = folder.join(id);
        // What an id names never changes.
        let size_bytes = if let Ok(found) = tokio::fs::metadata(&path).await {
            found.len()
        } else {
            let unfinished = folder.join(format!("{UNFINISHED}{number}-{id}"));
            let got = fetch(dialer, attachment, &unfinished, &path).await;
            if got.is_err() {
                let _ = tokio::fs::remove_file(&unfinished).await;
            }
            got?
        };
        let image = image(attachment, &path, size_bytes).await;
        files.push(File { name: attachment.name.clone(), path, size_bytes, image });
    }
    Ok(files)
}

/// The picture itself, where it is one that models can look at.
async fn image(attachment: &Attachment, path: &Path, size_bytes: u64) -> Option<Image> {
    let media_type = attachment.media_type.as_deref()?;
    if !IMAGES.contains(&media_type) || size_bytes > IMAGE_BYTES_MAX {
        return None;
    }
    let bytes = tokio::fs::read(path).await.ok()?;
    Some(Image { media_type: media_type.to_owned(), base64: BASE64_STANDARD.encode(bytes) })
}

async fn fetch(
    dialer: &Dialer,
    attachment: &Attachment,
    unfinished: &Path,
    path: &Path,
) -> Result<u64, FetchFault> {
    let request = dialer.get(&format!("/v1/uploads/{}", attachment.id));
    let request = request.ok_or_else(|| unknown(attachment))?;
    let stream = dialer.open().await.map_err(away)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(away)?;
    let taken = async {
        let asked = sender.send_request(request.map(|()| Empty::<Bytes>::new()));
        let response = asked.await.map_err(away)?;
        match response.status() {
            StatusCode::OK => keep(response, attachment, unfinished, path).await,
            StatusCode::NOT_FOUND => Err(unknown(attachment)),
            status => Err(away(format_args!("the relay answered {status}"))),
        }
    };
    let mut taken = std::pin::pin!(taken);
    tokio::select! {
        biased;
        taken = &mut taken => taken,
        // The connection may end before the last of what came over it is taken.
        _ = connection => taken.await,
    }
}

/// Writes a file as it comes, and names it when it is whole.
async fn keep(
    response: Response<Incoming>,
    attachment: &Attachment,
    unfinished: &Path,
    path: &Path,
) -> Result<u64, FetchFault> {
    let mut body = response.into_body();
    let mut file = tokio::fs::File::create(unfinished).await.map_err(|error| unsaved(&error))?;
    let mut size_bytes = 0_u64;
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(away)?.into_data() else { continue };
        size_bytes += chunk.len() as u64;
        if size_bytes > ATTACHMENT_BYTES_MAX {
            let words = format!("{} is larger than this machine accepts", attachment.name);
            return Err(FetchFault::Failed(Failure::new("attachment_too_large", words)));
        }
        file.write_all(&chunk).await.map_err(|error| unsaved(&error))?;
    }
    file.sync_all().await.map_err(|error| unsaved(&error))?;
    drop(file);
    tokio::fs::rename(unfinished, path).await.map_err(|error| unsaved(&error))?;
    Ok(size_bytes)
}

/// A plain name: it cannot lead anywhere else, nor begin like an unfinished file.
fn is_name(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.len() <= ID_BYTES_MAX && id.bytes().all(is_plain)
}

fn unknown(attachment: &Attachment) -> FetchFault {
    let words = format!("The relay no longer has {}. Attach it again", attachment.name);
    FetchFault::Failed(Failure::new("attachment_unknown", words))
}

fn unsaved(error: &io::Error) -> FetchFault {
    let words = format!("The machine could not save an attachment: {error}");
    FetchFault::Failed(Failure::new("attachment_not_saved", words))
}

fn away(error: impl std::fmt::Display) -> FetchFault {
    tracing::debug!(%error, "could not download an attachment; trying again");
    FetchFault::Away
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_lead_out_of_the_folder() {
        for name in ["upl_0123456789abcdef", "0f-A"] {
            assert!(is_name(name), "{name}");
        }
        for wrong in ["", "..", ".1-a", "a/b", "a\\b", "a b", &"a".repeat(ID_BYTES_MAX + 1)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_folder_is_rid_of_what_is_unfinished_or_old() {
        let data = tempfile::tempdir().unwrap();
        let made = folder(data.path()).unwrap();
        for name in ["whole", ".1-cut", "old"] {
            fs::write(made.join(name), "x").unwrap();
        }
        let long_ago = SystemTime::now() - KEPT_FOR - Duration::from_secs(60);
        fs::File::options()
            .write(true)
            .open(made.join("old"))
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        folder(data.path()).unwrap();
        let left: Vec<_> = fs::read_dir(&made).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["whole"]);
    }
}
