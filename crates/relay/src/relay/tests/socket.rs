//! A socket whose other end is the test.

use bytes::Bytes;
use serde_json::Value;

use super::*;
use crate::gate::{Incoming, Transport};

/// What the relay serves.
pub(super) struct Socket {
    incoming: mpsc::UnboundedReceiver<Incoming>,
    outgoing: mpsc::UnboundedSender<Result<Value, u16>>,
}

/// What the test has of it.
pub(super) struct Peer {
    incoming: mpsc::UnboundedSender<Incoming>,
    outgoing: mpsc::UnboundedReceiver<Result<Value, u16>>,
}

pub(super) fn socket() -> (Peer, Socket) {
    let (say, incoming) = mpsc::unbounded_channel();
    let (outgoing, heard) = mpsc::unbounded_channel();
    (Peer { incoming: say, outgoing: heard }, Socket { incoming, outgoing })
}

impl Transport for Socket {
    async fn receive(&mut self) -> Incoming {
        self.incoming.recv().await.unwrap_or(Incoming::Closed)
    }

    async fn send_all(&mut self, frames: &mut Vec<Bytes>) -> Result<(), ()> {
        for frame in frames.drain(..) {
            let _ = self.outgoing.send(Ok(serde_json::from_slice(&frame).unwrap()));
        }
        Ok(())
    }

    async fn close(self, code: u16, _reason: &str) {
        let _ = self.outgoing.send(Err(code));
    }
}

impl Peer {
    pub(super) fn say(&self, frame: &Value) {
        let _ = self.incoming.send(Incoming::Text(frame.to_string().into()));
    }

    /// The next frame, or the code with which the relay closed.
    pub(super) async fn hear(&mut self) -> Result<Value, u16> {
        tokio::time::timeout(SOON, self.outgoing.recv()).await.unwrap().unwrap()
    }

    /// Everything up to a frame of this type.
    pub(super) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.hear().await.unwrap();
            if frame["type"] == kind {
                return frame;
            }
        }
    }
}
