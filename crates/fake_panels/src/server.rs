//! The server of the panels: two loopback origins, so that a webview is a frame of another site,
//! and so of another process, as in a real IDE.
//!
//! **Invariant:** it listens on 127.0.0.1 only, and ends when it is dropped.
//!
//! Not here: what the pages do (`pages/`), bundling them (`editors`).

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::editors;

/// A journal's entry holds at most a long message.
const ENTRY_BYTES_MAX: usize = 16 << 20;
/// Entries that are kept; the oldest go.
const ENTRIES_MAX: usize = 20_000;

/// How a panel is reached: by a page of its own, or in a webview of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A page at this path; `{}` stands for the instance.
    Page(&'static str),
    /// A webview of this extension.
    Webview(&'static str),
}

/// Every panel: one for each built-in profile, and one for each editor alone.
pub const PANELS: [&str; 14] = [
    "claude-vscode",
    "codex-vscode",
    "gemini-code-assist",
    "continue-vscode",
    "antigravity",
    "cursor",
    "vscode-chat",
    "opencode-web",
    "textarea",
    "plaintext",
    "lexical",
    "lexical-rich",
    "prosemirror",
    "monaco",
];

fn kind(panel: &str) -> Kind {
    match panel {
        "claude-vscode" => Kind::Webview("Anthropic.claude-code"),
        "codex-vscode" => Kind::Webview("openai.chatgpt"),
        "gemini-code-assist" => Kind::Webview("Google.geminicodeassist"),
        "continue-vscode" => Kind::Webview("Continue.continue"),
        "antigravity" | "cursor" | "vscode-chat" => Kind::Page("/workbench/"),
        "opencode-web" => Kind::Page("/session/"),
        _ => Kind::Page("/panel/"),
    }
}

/// Something that happened in a panel: `instance`, `kind`, and what belongs to it.
pub type Entry = Value;

/// Served panels. They end when this is dropped.
pub struct Panels {
    /// Of pages and windows: `127.0.0.1`.
    port: u16,
    journal: watch::Sender<Vec<Entry>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    bundles: PathBuf,
    webview_port: u16,
    journal: watch::Sender<Vec<Entry>>,
}

impl Panels {
    /// Starts at free ports; it answers when this returns. The first time, the editors are
    /// fetched and bundled.
    pub fn start() -> Result<Self, String> {
        Self::start_at(0)
    }

    /// The same, with the pages at this port.
    pub fn start_at(port: u16) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("the panels could not be served: {error}");
        let bundles = editors::built()?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(told)?;
        let bind = |port: u16| {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            let _entered = runtime.enter();
            TcpListener::from_std(listener)
        };
        let (pages, webviews) = (bind(port).map_err(told)?, bind(0).map_err(told)?);
        let port = pages.local_addr().map_err(told)?.port();
        let webview_port = webviews.local_addr().map_err(told)?.port();
        let journal = watch::Sender::new(Vec::new());
        let shared = Arc::new(Shared { bundles, webview_port, journal: journal.clone() });
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let app = Router::new()
                .route("/bundle/{file}", get(bundle))
                .route("/clock.js", get(clock))
                .route("/journal", post(noted))
                .route("/panel/{panel}", get(panel))
                .route("/workbench/{panel}", get(panel))
                .route("/session/{conversation}", get(opencode))
                .route("/window/{panel}", get(window))
                .route("/webview/index.html", get(webview))
                .layer(DefaultBodyLimit::max(ENTRY_BYTES_MAX))
                .with_state(shared);
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(pages, app.clone()) => {}
                    _ = axum::serve(webviews, app) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("fake-panels".into()).spawn(serve);
        Ok(Self { port, journal, stop: Some(stop), thread: Some(thread.map_err(told)?) })
    }

    /// The address of a panel as its agent shows it: a page, or a window with a webview.
    /// `switches` are joined by `&`; `instance` is what the journal calls it.
    pub fn url(&self, panel: &str, instance: &str, switches: &str) -> String {
        let port = self.port;
        let query = format!("instance={instance}&{switches}");
        match kind(panel) {
            Kind::Webview(_) => format!("http://127.0.0.1:{port}/window/{panel}?{query}"),
            Kind::Page("/session/") => {
                format!("http://127.0.0.1:{port}/session/ses_{instance}?{query}")
            }
            Kind::Page(path) => format!("http://127.0.0.1:{port}{path}{panel}?{query}"),
        }
    }

    /// The address of the panel's document alone, without a window around it.
    pub fn bare_url(&self, panel: &str, instance: &str, switches: &str) -> String {
        format!("http://127.0.0.1:{}/panel/{panel}?instance={instance}&{switches}", self.port)
    }

    /// What happened so far in one panel, oldest first.
    pub fn journal(&self, instance: &str) -> Vec<Entry> {
        of(&self.journal.borrow(), instance)
    }

    /// Waits until a panel's journal is as wanted, and gives what was found in it; `None` after
    /// `patience`.
    pub async fn wait_for<T>(
        &self,
        instance: &str,
        patience: Duration,
        mut wanted: impl FnMut(&[Entry]) -> Option<T>,
    ) -> Option<T> {
        let mut journal = self.journal.subscribe();
        let found = async {
            loop {
                let entries = of(&journal.borrow_and_update(), instance);
                if let Some(found) = wanted(&entries) {
                    return Some(found);
                }
                journal.changed().await.ok()?;
            }
        };
        tokio::time::timeout(patience, found).await.ok().flatten()
    }

    /// Serves until the process is ended.
    pub fn serve_forever(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Panels {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn of(entries: &[Entry], instance: &str) -> Vec<Entry> {
    entries.iter().filter(|entry| entry["instance"] == instance).cloned().collect()
}

async fn noted(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    let Ok(entry) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    shared.journal.send_modify(|entries| {
        if entries.len() >= ENTRIES_MAX {
            entries.remove(0);
        }
        entries.push(entry);
    });
    StatusCode::NO_CONTENT
}

async fn bundle(State(shared): State<Arc<Shared>>, Path(file): Path<String>) -> Response {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if file.starts_with('.') || !file.chars().all(is_name) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let kind = match file.rsplit('.').next() {
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        _ => "application/octet-stream",
    };
    match tokio::fs::read(shared.bundles.join(&file)).await {
        Ok(bytes) => ([(header::CONTENT_TYPE, kind)], bytes).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A worker that ticks, in a thread that no browser slows.
async fn clock() -> Response {
    let script = "const pause = Number(new URLSearchParams(location.search).get('pause')); \
                  setInterval(() => postMessage(null), pause);";
    ([(header::CONTENT_TYPE, "text/javascript")], script).into_response()
}

async fn panel(State(shared): State<Arc<Shared>>, Path(panel): Path<String>) -> Response {
    document(&shared, &panel)
}

async fn opencode(State(shared): State<Arc<Shared>>) -> Response {
    document(&shared, "opencode-web")
}

/// A panel's own document, under a rule for its content as strict as those of real webviews.
fn document(shared: &Shared, panel: &str) -> Response {
    if !PANELS.contains(&panel) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let has_style = shared.bundles.join(format!("{panel}.css")).is_file();
    let style = format!("<link rel=stylesheet href=/bundle/{panel}.css>");
    let style = if has_style { style.as_str() } else { "" };
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{panel}</title>\
         <style>[hidden] {{ display: none !important }} body {{ margin: 0 }}</style>{style}\
         <body><script type=module src=/bundle/{panel}.js></script></body></html>"
    );
    html(
        page,
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' \
         data:; img-src 'self' data: blob:; connect-src 'self'",
    )
}

/// A window of an IDE: some code, and beside it a webview of another site.
async fn window(
    State(shared): State<Arc<Shared>>,
    Path(panel): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let Kind::Webview(extension) = kind(&panel) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (port, query) = (shared.webview_port, query.unwrap_or_default());
    let title = query.split('&').find_map(|part| part.strip_prefix("title="));
    let title = title.unwrap_or("main.rs%20-%20workspace%20-%20Visual%20Studio%20Code");
    let title = escaped(&title.replace("%20", " ").replace('+', " "));
    let source = escaped(&format!(
        "http://localhost:{port}/webview/index.html?id=11111111-2222&parentId=1&origin=here&\
         extensionId={extension}&panel={panel}&{query}"
    ));
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <body style='margin: 0'><div class=monaco-workbench><textarea class=code \
         aria-label=Code>fn main() {{}}</textarea><button class=menu-run>Run</button>\
         <iframe class=webview style='display: block; width: 700px; height: 750px; margin: 7px 0 \
         0 31px' src=\"{source}\"></iframe></div></body></html>"
    );
    html(
        page,
        &format!(
            "default-src 'none'; style-src 'unsafe-inline'; frame-src http://localhost:{port}"
        ),
    )
}

/// The outer document of a webview; the panel is in its frame named `active-frame`.
async fn webview(RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let panel = query.split('&').find_map(|part| part.strip_prefix("panel="));
    let Some(panel) = panel.filter(|panel| PANELS.contains(panel)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let source = escaped(&format!("/panel/{panel}?{query}"));
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>webview</title>\
         <body style='margin: 0'><iframe id=active-frame style='border: 0; display: block; \
         width: 100%; height: 700px; margin-top: 13px' src=\"{source}\"></iframe></body></html>"
    );
    html(page, "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'")
}

fn html(page: String, policy: &str) -> Response {
    let mut response = axum::response::Html(page).into_response();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}
