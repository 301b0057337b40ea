//! A plain version 1 proxy without agents: it has sessions, and sends what it is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::clients::{self, SOME_TIME};
use super::process::Ready;
use super::trouble::{Outcome, Trouble};
use super::websocket::{SILENCE_MAX, Socket, Writer};

const PROXY_PATH: &str = "/ws/proxy";
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A send, as the relay orders it.
#[derive(Deserialize)]
struct Order<'a> {
    #[serde(borrow)]
    session_id: &'a str,
    #[serde(borrow)]
    client_message_id: &'a str,
    attempt: Option<u64>,
}

/// Answers every send `delivered` at once, on a thread of its own.
pub(crate) struct StubProxy {
    pub(crate) writer: Writer,
    answered: Arc<AtomicU64>,
    thread: Option<JoinHandle<Outcome<()>>>,
}

impl StubProxy {
    /// Connects, names its sessions, and waits until clients see them.
    pub(crate) fn connect(ready: &Ready, sessions: &[String]) -> Outcome<Self> {
        let mut socket = Socket::connect(ready.address()?, PROXY_PATH, &ready.proxy_token)?;
        let hello = json!({
            "type": "connection_hello", "protocol_version": 1, "peer_role": "proxy",
            "client_name": "farhelm-bench", "machine_label": "bench",
        });
        socket.send(&hello.to_string())?;
        socket.next_of("connection_ack")?;
        let named = sessions.iter().map(|session| {
            json!({"session_id": session, "agent_type": "bench", "status": "healthy",
                   "target_signature": session})
        });
        let snapshot = json!({
            "type": "proxy_session_snapshot", "protocol_version": 1,
            "sessions": named.collect::<Vec<_>>(),
        });
        socket.send(&snapshot.to_string())?;
        let (writer, answering) = (socket.writer()?, socket.writer()?);
        let answered = Arc::new(AtomicU64::new(0));
        let counter = answered.clone();
        let thread = thread::Builder::new().name("stub-proxy".to_owned());
        let thread = thread.spawn(move || answer(socket, answering, &counter))?;
        clients::wait_for_sessions(ready, sessions)?;
        Ok(Self { writer, answered, thread: Some(thread) })
    }

    /// Waits until it has answered this many sends, from its beginning.
    pub(crate) fn wait_for_answers(&mut self, count: u64) -> Outcome<()> {
        let begun = Instant::now();
        while self.answered.load(Ordering::Acquire) < count {
            self.check()?;
            if begun.elapsed() > SILENCE_MAX {
                return Err(Trouble::new("the relay did not forward all accepted sends"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether it still listens; what ended it, if it does not.
    pub(crate) fn check(&mut self) -> Outcome<()> {
        if self.thread.as_ref().is_none_or(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(Err(trouble))) => Err(trouble),
            Some(Ok(Ok(())) | Err(_)) | None => Err(Trouble::new("the stub proxy stopped")),
        }
    }
}

impl Drop for StubProxy {
    fn drop(&mut self) {
        self.writer.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Until the connection ends. What arrived together is answered together.
fn answer(mut socket: Socket, mut writer: Writer, answered: &AtomicU64) -> Outcome<()> {
    let mut answers: Vec<String> = vec![];
    loop {
        answers.extend(answer_to(socket.next_patiently()?)?);
        while let Some(frame) = socket.next_held()? {
            answers.extend(answer_to(frame)?);
        }
        if !answers.is_empty() {
            writer.send_all(answers.iter().map(String::as_str))?;
            let count = u64::try_from(answers.len()).unwrap_or(u64::MAX);
            answered.fetch_add(count, Ordering::Release);
            answers.clear();
        }
    }
}

fn answer_to(frame: &[u8]) -> Outcome<Option<String>> {
    if frame.starts_with(b"{\"type\":\"connection_error\"") {
        return Err(Trouble::new(format!(
            "the relay reported an error: {}",
            String::from_utf8_lossy(frame)
        )));
    }
    if !frame.starts_with(b"{\"type\":\"send_message\"") {
        return Ok(None);
    }
    let Order { session_id, client_message_id, attempt } = serde_json::from_slice(frame)?;
    let attempt = attempt.map_or(String::new(), |attempt| format!("\"attempt\":{attempt},"));
    Ok(Some(format!(
        "{{\"type\":\"proxy_send_result\",\"protocol_version\":1,\"session_id\":\"{session_id}\",\
         \"client_message_id\":\"{client_message_id}\",{attempt}\"result\":\"delivered\",\
         \"delivered_at\":\"{SOME_TIME}\"}}"
    )))
}
