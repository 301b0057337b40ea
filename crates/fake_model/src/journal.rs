//! What the model was asked, kept for the test that asks.
//!
//! Invariant: numbers are dense and in order of arrival; only the newest [`REQUESTS_KEPT_MAX`]
//! requests are kept, the file has all of them; credentials are never written down.
//!
//! Not here: what is answered (`script`).

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

/// Requests of agents are large (their tools, all of the conversation).
const REQUESTS_KEPT_MAX: usize = 1_000;
const SECRET_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything was sent.
    Answered,
    /// The client went away first.
    Disconnected,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Seen {
    /// From 1, in order of arrival.
    pub number: u64,
    /// `GET`, `POST`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// Names in lower case; credentials are replaced.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; a string when it is none, null when there is none.
    pub body: Value,
    /// How it ended; nothing while it is being answered.
    pub end: Option<End>,
}

/// A request on its way into the journal.
pub(crate) struct Arrived {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

struct Pages {
    seen: VecDeque<Arc<Seen>>,
    arrived: u64,
    disconnected: u64,
    started: Instant,
    file: Option<File>,
}

/// The journal; its clones are the same one.
#[derive(Clone)]
pub(crate) struct Journal(Arc<watch::Sender<Pages>>);

impl Journal {
    pub(crate) fn new(file: Option<File>) -> Self {
        let started = Instant::now();
        let pages = Pages { seen: VecDeque::new(), arrived: 0, disconnected: 0, started, file };
        Self(Arc::new(watch::Sender::new(pages)))
    }

    /// Writes a request down. Its end follows from the entry.
    pub(crate) fn open(&self, mut arrived: Arrived) -> Entry {
        for name in SECRET_HEADERS {
            if let Some(value) = arrived.headers.get_mut(name) {
                "(not written down)".clone_into(value);
            }
        }
        let mut number = 0;
        self.0.send_modify(|pages| {
            pages.arrived += 1;
            number = pages.arrived;
            pages.line(&json!({
                "number": number,
                "request": format!("{} {}", arrived.method, arrived.path),
                "headers": arrived.headers,
                "body": arrived.body,
            }));
            if pages.seen.len() == REQUESTS_KEPT_MAX {
                pages.seen.pop_front();
            }
            let Arrived { method, path, headers, body } = arrived;
            let seen = Seen { number, method, path, headers, body, end: None };
            pages.seen.push_back(Arc::new(seen));
        });
        Entry { journal: self.clone(), number, end: End::Disconnected }
    }

    pub(crate) fn seen(&self) -> Vec<Arc<Seen>> {
        self.0.borrow().seen.iter().cloned().collect()
    }

    pub(crate) fn disconnected(&self) -> u64 {
        self.0.borrow().disconnected
    }

    /// The first request that fits, now or within this time.
    pub(crate) async fn wait(
        &self,
        within: Duration,
        fits: impl Fn(&Seen) -> bool,
    ) -> Option<Arc<Seen>> {
        let mut pages = self.0.subscribe();
        let first = |pages: &Pages| pages.seen.iter().find(|seen| fits(seen)).cloned();
        let found = pages.wait_for(|pages| first(pages).is_some());
        let pages = tokio::time::timeout(within, found).await.ok()?.ok()?;
        first(&pages)
    }
}

impl Pages {
    fn line(&mut self, line: &Value) {
        let Some(file) = &mut self.file else { return };
        let mut line = line.clone();
        line["at_seconds"] = self.started.elapsed().as_secs_f64().into();
        // The log helps a person; a full disk must not change what the model answers.
        let _ = writeln!(file, "{line}");
    }

    fn close(&mut self, number: u64, end: End) {
        let word = match end {
            End::Answered => "answered",
            End::Disconnected => "disconnected",
        };
        self.disconnected += u64::from(end == End::Disconnected);
        self.line(&json!({"number": number, "end": word}));
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.number == number) {
            *seen = Arc::new(Seen { end: Some(end), ..Seen::clone(seen) });
        }
    }
}

/// A request that is being answered. Dropped before it was answered, the client went away.
pub(crate) struct Entry {
    journal: Journal,
    pub(crate) number: u64,
    end: End,
}

impl Entry {
    /// The last byte was handed over.
    pub(crate) fn answered(&mut self) {
        self.end = End::Answered;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.journal.0.send_modify(|pages| pages.close(self.number, self.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(path: &str) -> Arrived {
        let headers = [("x-api-key".to_owned(), "secret".to_owned())].into();
        Arrived { method: "POST".into(), path: path.into(), headers, body: json!({"a": 1}) }
    }

    #[test]
    fn an_entry_that_is_dropped_early_was_disconnected() {
        let journal = Journal::new(None);
        let mut first = journal.open(post("/a"));
        let second = journal.open(post("/b"));
        assert_eq!(journal.seen()[0].end, None);
        first.answered();
        drop((first, second));
        let ends: Vec<_> = journal.seen().iter().map(|seen| seen.end).collect();
        assert_eq!(ends, [Some(End::Answered), Some(End::Disconnected)]);
        assert_eq!(journal.disconnected(), 1);
    }

    #[test]
    fn only_the_newest_are_kept_but_all_are_numbered() {
        let journal = Journal::new(None);
        for _ in 0..REQUESTS_KEPT_MAX + 5 {
            journal.open(post("/a")).answered();
        }
        let seen = journal.seen();
        assert_eq!((seen.len(), seen[0].number), (REQUESTS_KEPT_MAX, 6));
    }

    #[test]
    fn the_file_has_every_line_and_no_credential() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let journal = Journal::new(Some(File::create(&path).unwrap()));
        journal.open(post("/a")).answered();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["request"], "POST /a");
        assert_eq!(lines[1]["end"], "answered");
    }

    #[tokio::test]
    async fn waiting_ends_with_the_request_or_with_the_time() {
        let journal = Journal::new(None);
        let entry = journal.open(post("/a"));
        let a = |seen: &Seen| seen.path == "/a";
        assert!(journal.wait(Duration::from_secs(5), a).await.is_some());
        let ended = |seen: &Seen| seen.end == Some(End::Disconnected);
        assert!(journal.wait(Duration::from_millis(1), ended).await.is_none());
        let (waited, ()) =
            tokio::join!(journal.wait(Duration::from_secs(5), ended), async { drop(entry) });
        assert_eq!(waited.unwrap().number, 1);
    }
}
