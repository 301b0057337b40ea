//! The server: one thread with its own runtime, so that tests of any kind can use it and a busy
//! test does not slow the model down.
//!
//! Invariant: it listens on 127.0.0.1 only, and dropping it ends the thread and every connection.
//!
//! Not here: what is answered (`script`, `api`), what is remembered (`journal`).

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use crate::api::{Answer, Beat, Route, Streamed, route};
use crate::journal::{Arrived, Entry, Journal, Seen};
use crate::pace::Pace;
use crate::script::limit_percent;

/// A conversation with images stays below this.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// Answers under way at once; more are refused with 503.
const ANSWERS_OPEN_MAX: usize = 256;
/// The models that lists of models name. Any other name is answered as well.
const MODELS: [&str; 2] = ["fake-a", "fake-b"];

/// How to start a model.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// 0 picks a free port.
    pub port: u16,
    /// Where to write every request, one JSON object a line.
    pub log_file: Option<PathBuf>,
    /// How fast it speaks.
    pub pace: Pace,
}

/// A running model. It ends when this is dropped.
pub struct FakeModel {
    address: SocketAddr,
    journal: Journal,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeModel {
    /// Starts one at a free port, at [`Pace::QUICK`], without a log file.
    pub fn start() -> io::Result<Self> {
        Self::start_with(&Options::default())
    }

    /// Starts one; it answers when this returns.
    pub fn start_with(options: &Options) -> io::Result<Self> {
        let open = |path: &PathBuf| File::options().create(true).append(true).open(path);
        let journal = Journal::new(options.log_file.as_ref().map(open).transpose()?);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let shared = Arc::new(Shared {
            journal: journal.clone(),
            pace: options.pace,
            answers: Arc::new(Semaphore::new(ANSWERS_OPEN_MAX)),
        });
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let app = Router::new().fallback(receive).with_state(shared);
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, app) => {}
                    _ = stopped => {}
                }
            });
            // Dropping the runtime cuts what is still being answered.
        };
        let thread = std::thread::Builder::new().name("fake-model".into()).spawn(serve)?;
        Ok(Self { address, journal, stop: Some(stop), thread: Some(thread) })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address without a path: `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far, oldest first (the newest 1,000).
    pub fn requests(&self) -> Vec<Arc<Seen>> {
        self.journal.seen()
    }

    /// How many clients went away before their answer was complete.
    pub fn disconnected(&self) -> u64 {
        self.journal.disconnected()
    }

    /// Waits for a request that fits, among those seen and those to come. Nothing when none came
    /// in time.
    pub async fn wait_for(
        &self,
        within: Duration,
        fits: impl Fn(&Seen) -> bool,
    ) -> Option<Arc<Seen>> {
        self.journal.wait(within, fits).await
    }

    /// Waits until the thread ends, which it does not by itself: for the program, not for tests.
    pub fn serve_forever(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Shared {
    journal: Journal,
    pace: Pace,
    answers: Arc<Semaphore>,
}

async fn receive(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let Ok(body) = to_bytes(body, REQUEST_BYTES_MAX).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large, or broke off");
    };
    let parsed = parse(&body);
    let mut entry = shared.journal.open(Arrived {
        method: head.method.to_string(),
        path: path.clone(),
        headers: readable(&head.headers),
        body: parsed.clone(),
    });
    let Ok(permit) = Arc::clone(&shared.answers).try_acquire_owned() else {
        entry.answered();
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many answers under way");
    };
    let response = match head.method {
        Method::POST => match route(&path) {
            Some(Route::Generate { api, streamed }) => {
                let asked = api.asked(&path, &parsed);
                let answer = Answer {
                    number: entry.number,
                    model: asked.model.clone(),
                    now_seconds: now_seconds(),
                };
                let streams = match streamed {
                    Streamed::Yes => true,
                    Streamed::No => false,
                    Streamed::AsBodySays => parsed["stream"] == true,
                };
                match api.reply(&asked, &parsed) {
                    Err(failure) => {
                        let status = StatusCode::from_u16(failure.status);
                        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                        json_response(status, &api.failure(failure.status))
                    }
                    Ok(reply) if streams => {
                        let beats = api.stream(&answer, &reply);
                        let spoken = spoken(beats, shared.pace, entry, permit);
                        let mut response = event_stream(spoken, answer.number);
                        if let Some(percent) = limit_percent(&asked) {
                            allowance(response.headers_mut(), percent);
                        }
                        return response;
                    }
                    Ok(reply) => json_response(StatusCode::OK, &api.whole(&answer, &reply)),
                }
            }
            Some(Route::CountTokens) => {
                let counted = json!({"input_tokens": 42, "totalTokens": 42});
                json_response(StatusCode::OK, &counted)
            }
            None => refuse(StatusCode::NOT_FOUND, "no such path"),
        },
        Method::HEAD => StatusCode::OK.into_response(),
        _ if head.headers.contains_key(header::UPGRADE) => {
            refuse(StatusCode::UPGRADE_REQUIRED, "no WebSocket here")
        }
        Method::GET if path.ends_with("/models") => json_response(StatusCode::OK, &models()),
        _ => refuse(StatusCode::NOT_FOUND, "no such path"),
    };
    entry.answered();
    response
}

/// The events, each followed by its pause. The entry and the permit live as long as the stream:
/// a connection that breaks drops it.
fn spoken(
    beats: Vec<Beat>,
    pace: Pace,
    entry: Entry,
    permit: tokio::sync::OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let state = (beats.into_iter(), Duration::ZERO, entry, permit);
    stream::unfold(state, move |(mut beats, wait, mut entry, permit)| async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let Some(beat) = beats.next() else {
            entry.answered();
            return None;
        };
        let wait = pace.after(beat.pause);
        Some((Ok(Bytes::from(beat.encoded())), (beats, wait, entry, permit)))
    })
}

fn event_stream(
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
    number: u64,
) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(id) = HeaderValue::from_str(&format!("req_fake{number:04}")) {
        headers.insert("request-id", id);
    }
    response
}

/// How much of an allowance is used, in the headers of the services that say so.
fn allowance(headers: &mut HeaderMap, percent: usize) {
    let resets_at = (now_seconds() + 3_600).to_string();
    let percent = percent.to_string();
    for (name, value) in [
        ("x-codex-primary-used-percent", percent.as_str()),
        ("x-codex-primary-window-minutes", "300"),
        ("x-codex-primary-reset-at", &resets_at),
        ("anthropic-ratelimit-unified-status", "allowed_warning"),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ("anthropic-ratelimit-unified-reset", &resets_at),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn refuse(status: StatusCode, message: &str) -> Response {
    json_response(status, &json!({"error": {"type": "fake_model", "message": message}}))
}

/// One answer for all: each API reads the fields it knows.
fn models() -> Value {
    let model = |id: &str| {
        json!({
            "id": id,
            "object": "model",
            "type": "model",
            "display_name": id,
            "created_at": "2026-01-01T00:00:00Z",
            "owned_by": "fake",
        })
    };
    let data: Vec<Value> = MODELS.iter().map(|id| model(id)).collect();
    json!({"object": "list", "data": data, "models": [], "has_more": false})
}

fn parse(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let text = || String::from_utf8_lossy(body).into_owned();
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(text()))
}

fn readable(headers: &HeaderMap) -> std::collections::BTreeMap<String, String> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
