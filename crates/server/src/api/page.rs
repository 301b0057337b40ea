//! The page: files that are built into the binary.
//!
//! **Invariant**: a file that a browser may cache forever has a name that changes with its
//! content. All other files are requested every time, and answered 304 when they are unchanged.
//!
//! Not here: how the files are made (`build.rs`), the headers of every response (`door`).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;

/// Files whose names carry their content.
const HASHED: &str = "assets/";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_AGAIN: &str = "no-cache";
const START: &str = "index.html";

/// One file of the page.
struct File {
    path: &'static str,
    /// Of its content, as an entity tag.
    tag: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// By path, in order.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// `GET` of the page or one of its files; `None` where there is none of that name.
pub(crate) fn file(uri: &Uri, headers: &HeaderMap) -> Option<Response> {
    let path = uri.path().strip_prefix('/')?;
    let path = if path.is_empty() { START } else { path };
    let place = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    FILES.get(place).map(|file| serve(file, headers))
}

fn serve(file: &File, headers: &HeaderMap) -> Response {
    let kept = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_same = |tags: &str| tags.split(',').any(|tag| tag.trim() == file.tag);
    let (encoding, bytes) = chosen(file, kept(header::ACCEPT_ENCODING).unwrap_or_default());
    let mut response = if kept(header::IF_NONE_MATCH).is_some_and(is_same) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Body::from(Bytes::from_static(bytes)).into_response()
    };
    let cache = if file.path.starts_with(HASHED) { FOR_EVER } else { ASK_AGAIN };
    let headers = response.headers_mut();
    let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
    put(header::CONTENT_TYPE, media_type(file.path));
    put(header::CACHE_CONTROL, cache);
    put(header::ETAG, file.tag);
    put(header::VARY, "accept-encoding, origin");
    if let Some(encoding) = encoding {
        put(header::CONTENT_ENCODING, encoding);
    }
    response
}

/// The smallest form that the browser takes.
fn chosen(file: &File, accepted: &str) -> (Option<&'static str>, &'static [u8]) {
    let takes = |name: &str| {
        let mut named = accepted.split(',').map(|one| one.split(';').collect::<Vec<_>>());
        named.any(|one| {
            let refused = one.iter().skip(1).any(|weight| weight.trim() == "q=0");
            one.first().is_some_and(|word| word.trim().eq_ignore_ascii_case(name)) && !refused
        })
    };
    match (file.brotli, file.gzip) {
        (Some(bytes), _) if takes("br") => (Some("br"), bytes),
        (_, Some(bytes)) if takes("gzip") => (Some("gzip"), bytes),
        (Some(_) | None, Some(_) | None) => (None, file.plain),
    }
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("webmanifest") => "application/manifest+json",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
