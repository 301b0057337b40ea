//! Uploads over HTTP: streamed to disk, and served in a form that no browser runs.
//!
//! Not here: files on disk (`shelf`).

use std::time::Duration;

use axum::Extension;
use axum::body::{Body, BodyDataStream};
use axum::extract::multipart::Field;
use axum::extract::{FromRequest as _, Multipart, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use domain::Role;
use futures_util::StreamExt as _;
use serde_json::json as object;
use store::Upload;
use tokio::io::AsyncReadExt as _;

use super::{Problem, told};
use crate::auth::hex;
use crate::clock;
use crate::door::{Visitor, parameter};
use crate::house::House;
use crate::shelf::{Arriving, ShelfFault};

/// What a file without a name is called.
const UNNAMED_FILE: &str = "file";
/// Bytes of a file's name; more is cut.
const FILE_NAME_BYTES_MAX: usize = 200;
/// What a file is when nobody says.
const UNKNOWN_MEDIA_TYPE: &str = "application/octet-stream";
/// Bytes of a media type; a longer one is not believed.
const MEDIA_TYPE_BYTES_MAX: usize = 127;
/// A sender that pauses for so long is gone.
const NEXT_CHUNK_WITHIN: Duration = Duration::from_secs(30);
/// How much, and how long, a sender that was refused may still send: one that is cut off before
/// it looks would miss the reason.
const REFUSED_REST_BYTES_MAX: u64 = 64 * 1024 * 1024;
const REFUSED_REST_WITHIN: Duration = Duration::from_secs(5);
/// What is read from disk at once.
const READ_BYTES: usize = 64 * 1024;

/// `POST /v1/uploads`
pub(super) async fn put(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let by = visitor.with_role(&[Role::Operator, Role::Owner, Role::Proxy])?.credential.clone();
    let place = house.uploads_at_once.clone().try_acquire_owned();
    let _place = place.map_err(|_| Problem::busy("Too many uploads in progress"))?;
    let limit_bytes = house.limits.max_upload_bytes;
    let named = parameter(query.as_deref(), "name");
    let arriving = house.shelf.begin(limit_bytes).await?;
    let (arriving, name, media_type) = if is_multipart(request.headers()) {
        multipart(&house, arriving, request).await?
    } else {
        let media_type = text(request.headers(), header::CONTENT_TYPE);
        let declared = text(request.headers(), header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.parse::<u64>().ok());
        let mut chunks = request.into_body().into_data_stream();
        let taken = if declared.is_some_and(|length| length > limit_bytes) {
            Err(ShelfFault::TooLarge { limit_bytes }.into())
        } else {
            raw(arriving, &mut chunks).await
        };
        if taken.is_err() {
            let _ = tokio::time::timeout(REFUSED_REST_WITHIN, discard(&mut chunks)).await;
        }
        (taken?, None, media_type)
    };
    let name = plain_name(named.or(name).as_deref().unwrap_or_default());
    let media_type = plain_media_type(media_type.as_deref());
    let upload = arriving.finish(name, media_type, by, clock::now()).await?;
    Ok(told(StatusCode::CREATED, &describe(&upload)))
}

/// `GET /v1/uploads/{id}`
pub(super) async fn get(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    visitor.known()?;
    let id = id.as_str().into();
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "attachment_unknown", "No upload has this id");
    let item = house.shelf.find(&id).ok_or_else(unknown)?;
    let file = house.shelf.read(&id).await.map_err(|error| Problem::internal(&error))?;
    let chunks = futures_util::stream::unfold(file, |mut file| async move {
        let mut chunk = BytesMut::with_capacity(READ_BYTES);
        match file.read_buf(&mut chunk).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(chunk.freeze()), file)),
            Err(error) => Some((Err(error), file)),
        }
    });
    let mut response = Body::from_stream(chunks).into_response();
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_str(&item.media_type);
    let unknown = HeaderValue::from_static(UNKNOWN_MEDIA_TYPE);
    headers.insert(header::CONTENT_TYPE, media_type.unwrap_or(unknown));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(item.size_bytes));
    let disposition = format!("attachment; filename*=UTF-8''{}", percent(&item.name));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", hex(&item.sha256))) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox; default-src 'none'"),
    );
    Ok(response)
}

async fn raw(mut arriving: Arriving, chunks: &mut BodyDataStream) -> Result<Arriving, Problem> {
    loop {
        let next = tokio::time::timeout(NEXT_CHUNK_WITHIN, chunks.next()).await;
        match next.map_err(|_| Problem::too_slow())? {
            None => return Ok(arriving),
            Some(Ok(chunk)) => arriving.take(&chunk).await?,
            Some(Err(_)) => return Err(Problem::invalid("The body was cut off")),
        }
    }
}

/// The first field that is a file, with its name and type.
async fn multipart(
    house: &House,
    arriving: Arriving,
    request: Request,
) -> Result<(Arriving, Option<String>, Option<String>), Problem> {
    let broken = |words: String| Problem::invalid(format!("Invalid form: {words}"));
    let form = Multipart::from_request(request, house).await;
    let mut form = form.map_err(|error| broken(error.body_text()))?;
    loop {
        let next = tokio::time::timeout(NEXT_CHUNK_WITHIN, form.next_field()).await;
        let field =
            next.map_err(|_| Problem::too_slow())?.map_err(|error| broken(error.body_text()))?;
        let field = field.ok_or_else(|| Problem::invalid("The form contains no file"))?;
        if field.file_name().is_none() && field.name() != Some("file") {
            continue;
        }
        let name = field.file_name().map(str::to_owned);
        let media_type = field.content_type().map(str::to_owned);
        return Ok((take_field(arriving, field).await?, name, media_type));
    }
}

async fn take_field(mut arriving: Arriving, mut field: Field<'_>) -> Result<Arriving, Problem> {
    let mut refused: Option<Problem> = None;
    let mut rest_bytes = 0;
    let deadline = tokio::time::Instant::now() + REFUSED_REST_WITHIN;
    loop {
        let within = match &refused {
            Some(_) => deadline.saturating_duration_since(tokio::time::Instant::now()),
            None => NEXT_CHUNK_WITHIN,
        };
        let next = match (tokio::time::timeout(within, field.chunk()).await, refused.take()) {
            (Ok(Ok(next)), None) => next,
            (Ok(Ok(Some(chunk))), Some(problem)) if rest_bytes < REFUSED_REST_BYTES_MAX => {
                rest_bytes += chunk.len() as u64;
                refused = Some(problem);
                continue;
            }
            (_, Some(problem)) => return Err(problem),
            (Err(_), None) => return Err(Problem::too_slow()),
            (Ok(Err(_)), None) => return Err(Problem::invalid("The body was cut off")),
        };
        let Some(chunk) = next else { return Ok(arriving) };
        refused = arriving.take(&chunk).await.err().map(Problem::from);
    }
}

async fn discard(chunks: &mut BodyDataStream) {
    let mut rest_bytes = 0;
    while let Some(Ok(chunk)) = chunks.next().await {
        let chunk: Bytes = chunk;
        rest_bytes += chunk.len() as u64;
        if rest_bytes > REFUSED_REST_BYTES_MAX {
            return;
        }
    }
}

fn describe(upload: &Upload) -> serde_json::Value {
    object!({
        "attachment_id": upload.id,
        "name": upload.name,
        "size": upload.size_bytes,
        "sha256": hex(&upload.sha256),
        "media_type": upload.media_type,
    })
}

fn is_multipart(headers: &HeaderMap) -> bool {
    let declared = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    declared.to_ascii_lowercase().starts_with("multipart/form-data")
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The last part of a path, on one line. It is only ever shown, never used as a path.
fn plain_name(raw: &str) -> String {
    let last = raw.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name: String = last.chars().filter(|c| !c.is_control()).collect();
    while name.len() > FILE_NAME_BYTES_MAX {
        name.pop();
    }
    let name = name.trim();
    if matches!(name, "" | "." | "..") { UNNAMED_FILE.to_owned() } else { name.to_owned() }
}

fn plain_media_type(raw: Option<&str>) -> String {
    let plain = |b: u8| b.is_ascii_graphic() || b == b' ';
    let fits = |text: &&str| {
        text.len() <= MEDIA_TYPE_BYTES_MAX && text.contains('/') && text.bytes().all(plain)
    };
    raw.map(str::trim).filter(fits).unwrap_or(UNKNOWN_MEDIA_TYPE).to_owned()
}

fn percent(name: &str) -> String {
    use std::fmt::Write as _;
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

impl From<ShelfFault> for Problem {
    fn from(fault: ShelfFault) -> Self {
        match fault {
            ShelfFault::Full => {
                let words = "The relay's disk is full; free some space and try again";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", words)
            }
            ShelfFault::TooLarge { limit_bytes } => Self::body_too_large(limit_bytes),
            ShelfFault::Io(error) => Self::internal(&error),
            ShelfFault::Records(fault) => fault.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_the_last_part_of_a_path_on_one_line() {
        assert_eq!(plain_name("../../etc/passwd"), "passwd");
        assert_eq!(plain_name("C:\\x\\notes\n.txt"), "notes.txt");
        assert_eq!(plain_name(".."), UNNAMED_FILE);
        assert_eq!(plain_name(&"ä".repeat(500)).len(), FILE_NAME_BYTES_MAX);
    }

    #[test]
    fn a_media_type_that_could_not_be_a_header_is_not_believed() {
        assert_eq!(plain_media_type(Some("image/png")), "image/png");
        for refused in [None, Some("png"), Some("text/\r\nx: y"), Some("")] {
            assert_eq!(plain_media_type(refused), UNKNOWN_MEDIA_TYPE);
        }
    }
}
