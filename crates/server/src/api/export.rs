//! `GET /v1/sessions/{id}/export`: a whole conversation, streamed page by page.
//!
//! `json` is the history as the API returns it; `md` is for people to read.
//!
//! Not here: single pages (`sessions`).

mod markdown;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{BufMut as _, Bytes, BytesMut};
use domain::session::Recorded;
use domain::{Sequence, SessionId};
use futures_util::stream;

use super::Problem;
use super::sessions::{PAGE_EVENTS_MAX, session};
use crate::door::{Visitor, parameter};
use crate::house::House;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Markdown,
    Json,
}

/// Where an export is.
struct Export {
    house: House,
    session: SessionId,
    format: Format,
    after: Sequence,
    /// What the session had when the export began: it ends there, however much is added.
    upto: Sequence,
    written: usize,
    done: bool,
}

/// `GET /v1/sessions/{id}/export?format=md|json`
pub(super) async fn export(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    visitor.watcher()?;
    let session = session(&id)?;
    let format = match parameter(query.as_deref(), "format").as_deref() {
        None | Some("md") => Format::Markdown,
        Some("json") => Format::Json,
        Some(_) => return Err(Problem::invalid("format must be md or json")),
    };
    // Asked before the answer begins, so that an unknown session is still a clean error.
    let first = house.inside.history(&session, Sequence(0), 1).await?;
    let (upto, after) = (first.head, Sequence(0));
    let export = Export { house, session, format, after, upto, written: 0, done: false };
    let start = export.start();
    let pages = stream::unfold(export, |mut export| async move {
        let piece = export.next().await?;
        Some((piece, export))
    });
    let start = stream::once(async move { Ok::<_, std::io::Error>(start) });
    let body = Body::from_stream(futures_util::StreamExt::chain(start, pages));
    let (media_type, end) = match format {
        Format::Markdown => ("text/markdown; charset=utf-8", "md"),
        Format::Json => ("application/json", "json"),
    };
    let mut response = ([(header::CONTENT_TYPE, media_type)], body).into_response();
    let disposition = format!("attachment; filename=\"{id}.{end}\"");
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

impl Export {
    fn start(&self) -> Bytes {
        match self.format {
            Format::Markdown => format!("# Session {}\n", self.session).into(),
            Format::Json => {
                let session = &self.session;
                format!(r#"{{"session_id":"{session}","last_sequence":{},"events":["#, self.upto)
                    .into()
            }
        }
    }

    /// The next piece; an error cuts the answer off, so that nobody takes a part for the whole.
    async fn next(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        if self.done {
            return None;
        }
        let page = self.house.inside.history(&self.session, self.after, PAGE_EVENTS_MAX).await;
        let page = match page {
            Ok(page) => page,
            Err(denied) => {
                self.done = true;
                return Some(Err(std::io::Error::other(format!("{denied:?}"))));
            }
        };
        let (mut piece, upto) = (BytesMut::new(), self.upto);
        for event in page.events.iter().filter(|event| event.sequence <= upto) {
            self.write(&mut piece, event);
        }
        self.after = page.events.last().map_or(self.upto, |event| event.sequence);
        if self.after >= self.upto || !page.has_more {
            self.done = true;
            if self.format == Format::Json {
                piece.put_slice(b"]}\n");
            }
        }
        Some(Ok(piece.freeze()))
    }

    fn write(&mut self, piece: &mut BytesMut, event: &Recorded) {
        match self.format {
            Format::Markdown => piece.put_slice(markdown::of(event).as_bytes()),
            Format::Json => {
                let Some(json) = self.house.inside.encode_whole(&self.session, event) else {
                    return;
                };
                if self.written > 0 {
                    piece.put_u8(b',');
                }
                piece.put(json);
                self.written += 1;
            }
        }
    }
}
