//! A connection: the relay's end and the test's end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::frames::{heartbeat, report};
use super::{PATIENCE, SESSION};
use crate::gate::{Incoming, Transport};
use crate::routes::Kick;

/// The code with which a socket ends whose credential is revoked.
const REVOKED: u16 = 4003;

/// The test's end of a connection.
pub(in crate::tests) struct Peer {
    to: mpsc::UnboundedSender<Incoming>,
    from: mpsc::UnboundedReceiver<Vec<Bytes>>,
    closed: oneshot::Receiver<(u16, String)>,
    reads: watch::Sender<bool>,
    taken_bytes: Arc<AtomicUsize>,
    unread: VecDeque<Value>,
    /// Ends the connection from the relay's side.
    pub(in crate::tests) kick: Arc<Kick>,
    /// Times that the connection has written.
    pub(in crate::tests) writes: usize,
}

/// The relay's end.
pub(super) struct Near {
    from: mpsc::UnboundedReceiver<Incoming>,
    to: mpsc::UnboundedSender<Vec<Bytes>>,
    closed: Option<oneshot::Sender<(u16, String)>>,
    reads: watch::Receiver<bool>,
    /// Ends the socket by itself, as the server's sockets do.
    revoked: Option<watch::Receiver<bool>>,
    taken_bytes: Arc<AtomicUsize>,
}

/// A connection that ends by itself once `revoked` says so.
pub(super) fn connect(revoked: Option<watch::Receiver<bool>>) -> (Near, Peer) {
    let (inward, from_peer) = mpsc::unbounded_channel();
    let (outward, from_relay) = mpsc::unbounded_channel();
    let (closing, closed) = oneshot::channel();
    let (reads, is_read) = watch::channel(true);
    let taken_bytes = Arc::new(AtomicUsize::new(0));
    let near = Near {
        from: from_peer,
        to: outward,
        closed: Some(closing),
        reads: is_read,
        revoked,
        taken_bytes: taken_bytes.clone(),
    };
    let far = Peer {
        to: inward,
        from: from_relay,
        closed,
        reads,
        taken_bytes,
        unread: VecDeque::new(),
        kick: Arc::default(),
        writes: 0,
    };
    (near, far)
}

impl Near {
    fn say_goodbye(&mut self, code: u16, reason: &str) {
        if let Some(closed) = self.closed.take() {
            let _ = closed.send((code, reason.to_owned()));
        }
    }
}

async fn revocation(revoked: Option<&mut watch::Receiver<bool>>) {
    match revoked {
        Some(revoked) => drop(revoked.wait_for(|revoked| *revoked).await),
        None => std::future::pending().await,
    }
}

impl Transport for Near {
    async fn receive(&mut self) -> Incoming {
        let incoming = tokio::select! {
            biased;
            () = revocation(self.revoked.as_mut()) => {
                self.say_goodbye(REVOKED, "the token was revoked");
                return Incoming::Closed;
            }
            incoming = self.from.recv() => incoming,
        };
        let Some(incoming) = incoming else { return Incoming::Closed };
        if let Incoming::Text(text) = &incoming {
            self.taken_bytes.fetch_add(text.len(), Ordering::Relaxed);
        }
        incoming
    }

    async fn send_all(&mut self, frames: &mut Vec<Bytes>) -> Result<(), ()> {
        let Self { reads, revoked, .. } = self;
        tokio::select! {
            biased;
            // Perhaps in the middle of a frame: the peer could not read a goodbye.
            () = revocation(revoked.as_mut()) => return Err(()),
            is_read = reads.wait_for(|reads| *reads) => drop(is_read.map_err(drop)?),
        }
        self.to.send(std::mem::take(frames)).map_err(drop)
    }

    async fn close(mut self, code: u16, reason: &str) {
        self.say_goodbye(code, reason);
    }
}

impl Peer {
    pub(in crate::tests) async fn say(&mut self, frame: &Value) {
        self.bring(Incoming::Text(Bytes::from(frame.to_string()))).await;
    }

    #[expect(clippy::unused_async, reason = "saying is a step of a conversation like the others")]
    pub(in crate::tests) async fn bring(&mut self, incoming: Incoming) {
        let _ = self.to.send(incoming);
    }

    /// What the connection writes waits until [`Peer::read_again`].
    pub(in crate::tests) fn stop_reading(&self) {
        self.reads.send_replace(false);
    }

    pub(in crate::tests) fn read_again(&self) {
        self.reads.send_replace(true);
    }

    /// The bytes that the connection took from its socket.
    pub(in crate::tests) fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Ordering::Relaxed)
    }

    fn take_in(&mut self, frames: &[Bytes]) {
        self.writes += 1;
        self.unread.extend(frames.iter().map(|frame| {
            let frame: Value = serde_json::from_slice(frame).expect("every frame is JSON");
            frame
        }));
    }

    /// The next frame.
    pub(in crate::tests) async fn next(&mut self) -> Value {
        loop {
            if let Some(frame) = self.unread.pop_front() {
                return frame;
            }
            let written = tokio::time::timeout(PATIENCE, self.from.recv()).await;
            let written = written.expect("nothing is said").expect("the connection is gone");
            self.take_in(&written);
        }
    }

    /// The next frame that fits; what came before it is passed over.
    pub(in crate::tests) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut passed_over = vec![];
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let frame = self.next().await;
                if fits(&frame) {
                    return frame;
                }
                passed_over.push(frame.to_string().chars().take(300).collect::<String>());
            }
        });
        match found.await {
            Ok(frame) => frame,
            Err(late) => panic!("it never came ({late}); what came: {passed_over:#?}"),
        }
    }

    /// The next frame of this type.
    pub(in crate::tests) async fn hear(&mut self, kind: &str) -> Value {
        self.until(|frame| frame["type"] == kind).await
    }

    /// A proxy waits until everything up to this number is recorded.
    pub(in crate::tests) async fn is_acknowledged(&mut self, through: u64) {
        self.until(|frame| frame["type"] == "link_ack" && frame["through"] == through).await;
    }

    /// Everything that is said without anything more happening.
    pub(in crate::tests) async fn rest(&mut self) -> Vec<Value> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        while let Ok(written) = self.from.try_recv() {
            self.take_in(&written);
        }
        self.unread.drain(..).collect()
    }

    /// How the connection was closed.
    pub(in crate::tests) async fn close_code(&mut self) -> u16 {
        let closed = tokio::time::timeout(PATIENCE, &mut self.closed).await;
        closed.expect("it was not closed").expect("it ended without a word").0
    }

    pub(in crate::tests) fn is_open(&mut self) -> bool {
        matches!(self.closed.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// Says that it is alive, for so long.
    pub(in crate::tests) async fn lives_on_ms(&mut self, ms: u64) {
        let mut left_ms = ms;
        while left_ms > 0 {
            let step_ms = left_ms.min(10_000);
            tokio::time::sleep(Duration::from_millis(step_ms)).await;
            self.say(&heartbeat()).await;
            left_ms -= step_ms;
        }
    }

    /// A proxy names its sessions.
    pub(in crate::tests) async fn name(&mut self, sessions: &[&str]) {
        let named = |session: &&str| json!({ "session_id": session, "agent_type": "demo", "status": "healthy" });
        let sessions: Vec<_> = sessions.iter().map(named).collect();
        let kind = "proxy_session_snapshot";
        self.say(&json!({ "type": kind, "protocol_version": 1, "sessions": sessions })).await;
    }

    /// A proxy reports what an agent said.
    pub(in crate::tests) async fn reports(&mut self, number: u64, text: &str) {
        self.say(&report(number, text)).await;
    }

    /// A proxy reports something else of the session.
    pub(in crate::tests) async fn tells(&mut self, number: u64, kind: &str, what: &Value) {
        let mut frame = json!({
            "type": kind, "protocol_version": 1, "session_id": SESSION, "link_number": number,
        });
        let what = what.as_object().unwrap().clone();
        frame.as_object_mut().unwrap().extend(what);
        self.say(&frame).await;
    }
}
