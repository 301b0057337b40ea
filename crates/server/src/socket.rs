//! Sockets: the upgrade, and a socket as the relay's gates use it.
//!
//! **Invariant**: a socket closes on its own when its credential is revoked (4003), when the relay
//! stops (1001), and when its peer does not accept data in time. Its user need not watch for any
//! of these.
//!
//! The upgrade is done here rather than by axum, because a socket can then read and write its
//! connection directly, and an idle one costs half the memory.
//!
//! Not here: what the frames mean (`wire`), who uses the socket (`relay::gate`).

mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use relay::gate::{Incoming, Transport};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

pub(crate) use upgrade::{any, blob, control, native, pi, proxy, webchannel};

use crate::auth::Leash;
use crate::house::{self, Guest};
use crate::stream::Stream;

/// Most frames of clients are small, and most sockets idle: the default would be 128 KiB each.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Frames that are written together.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
/// A peer that takes nothing for so long is gone.
const SEND_WITHIN: Duration = Duration::from_secs(30);
/// The bytes before a frame's payload, at most.
const FRAME_HEADER_BYTES_MAX: usize = 10;
/// Frames are copied together up to this; what is larger is written from where it lies, which
/// all watchers share. So a peer that takes nothing costs no copy of what waits for it.
const TOGETHER_BYTES_MAX: usize = 64 * 1024;
/// How long, and how much, a closing peer may still talk.
const LINGER_WITHIN: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Close codes that a socket gives by itself.
pub mod close {
    /// The relay goes down.
    pub const GOING_DOWN: u16 = 1001;
    /// The peer broke the rules of the protocol.
    pub const PROTOCOL: u16 = 1002;
    /// A text frame that is no text.
    pub const NOT_TEXT: u16 = 1007;
    /// The credential was revoked.
    pub const REVOKED: u16 = 4003;
}

/// An open socket.
#[derive(Debug)]
pub struct Socket {
    frames: WebSocketStream<Stream>,
    leash: Option<Leash>,
    closing: watch::Receiver<bool>,
    /// Held until the first frame: sockets that say nothing are bounded.
    silent: Option<OwnedSemaphorePermit>,
    /// Why it ends, once that is decided: a caller may drop us while we say so.
    ending: Option<(u16, &'static str)>,
    _guest: Arc<Guest>,
}

/// What happened while something else was awaited.
enum Interruption {
    Revoked,
    GoingDown,
}

impl Transport for Socket {
    async fn receive(&mut self) -> Incoming {
        if self.ending.is_none() {
            match self.listen().await {
                Ok(incoming) => return incoming,
                Err((code, reason)) => self.ending = Some((code, reason)),
            }
        }
        if let Some((code, reason)) = self.ending {
            self.say_goodbye(code, reason).await;
        }
        Incoming::Closed
    }

    async fn send_all(&mut self, frames: &mut Vec<Bytes>) -> Result<(), ()> {
        if self.ending.is_some() {
            return Err(());
        }
        let Self { frames: sink, leash, closing, .. } = self;
        let write = async {
            // Whatever the library has to say for itself (a pong) goes first and goes whole.
            sink.flush().await?;
            write_frames(sink.get_mut(), frames).await?;
            Ok::<_, Error>(())
        };
        let written = tokio::select! {
            biased;
            written = tokio::time::timeout(SEND_WITHIN, write) => written,
            interruption = interrupted(leash.as_mut(), closing) => {
                // Perhaps in the middle of a frame: the peer could not read a goodbye.
                self.ending = Some(interruption.words());
                return Err(());
            }
        };
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(()),
        }
    }

    async fn close(mut self, code: u16, reason: &str) {
        // A reason that was decided here came first.
        let (code, reason) = self.ending.unwrap_or((code, reason));
        self.say_goodbye(code, reason).await;
    }
}

impl Socket {
    /// For whoever watches the credential themselves.
    pub(crate) fn unleashed(mut self) -> Self {
        self.leash = None;
        self
    }

    async fn listen(&mut self) -> Result<Incoming, (u16, &'static str)> {
        loop {
            // A peer that never pauses must not outrun its revocation.
            if !self.leash.as_mut().is_none_or(Leash::holds) {
                return Err(Interruption::Revoked.words());
            }
            let message = tokio::select! {
                biased;
                message = self.frames.next() => message,
                interruption = interrupted(self.leash.as_mut(), &mut self.closing) => {
                    return Err(interruption.words());
                }
            };
            let incoming = match message {
                Some(Ok(Message::Text(text))) => Incoming::Text(text.into()),
                Some(Ok(Message::Binary(_))) => Incoming::Binary,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_))) => {
                    // The library has the answer ready; unsaid, the peer takes it for a breakdown.
                    let _ = tokio::time::timeout(LINGER_WITHIN, self.frames.flush()).await;
                    Incoming::Closed
                }
                None => Incoming::Closed,
                Some(Err(error)) => return judge(&error),
            };
            self.silent = None;
            return Ok(incoming);
        }
    }

    /// Sends the close frame, then waits a little for the peer to take it: a connection that is
    /// cut while the peer still talks loses the frame with the reason.
    async fn say_goodbye(&mut self, code: u16, reason: &str) {
        let goodbye = async {
            let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
            self.frames.send(Message::Close(Some(frame))).await.ok()?;
            let stream = self.frames.get_mut();
            stream.shutdown().await.ok()?;
            let mut rest = stream.take(LINGER_BYTES_MAX);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.ok()
        };
        let _ = tokio::time::timeout(LINGER_WITHIN, goodbye).await;
    }
}

impl Interruption {
    fn words(&self) -> (u16, &'static str) {
        match self {
            Self::Revoked => (close::REVOKED, "the token was revoked"),
            Self::GoingDown => (close::GOING_DOWN, "the relay is shutting down"),
        }
    }
}

async fn interrupted(
    leash: Option<&mut Leash>,
    closing: &mut watch::Receiver<bool>,
) -> Interruption {
    let broken = async {
        match leash {
            Some(leash) => leash.broken().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = broken => Interruption::Revoked,
        () = house::closed(closing) => Interruption::GoingDown,
    }
}

fn judge(error: &Error) -> Result<Incoming, (u16, &'static str)> {
    match error {
        Error::Capacity(_) => Ok(Incoming::TooLarge),
        Error::Utf8(_) => Err((close::NOT_TEXT, "the frame is not UTF-8")),
        Error::Protocol(_) => Err((close::PROTOCOL, "not a WebSocket frame")),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Io(_)
        | Error::Tls(_)
        | Error::WriteBufferFull(_)
        | Error::AttackAttempt
        | Error::Url(_)
        | Error::Http(_)
        | Error::HttpFormat(_) => Ok(Incoming::Closed),
    }
}

/// Text frames as a server sends them, one behind the other. They are UTF-8 already and need not
/// be looked at again for each watcher.
async fn write_frames(stream: &mut Stream, frames: &mut Vec<Bytes>) -> std::io::Result<()> {
    let size: usize = frames.iter().map(|frame| frame.len() + FRAME_HEADER_BYTES_MAX).sum();
    let mut together = Vec::with_capacity(size.min(TOGETHER_BYTES_MAX));
    for frame in frames.drain(..) {
        if together.len() + FRAME_HEADER_BYTES_MAX + frame.len() > TOGETHER_BYTES_MAX {
            stream.write_all(&together).await?;
            together.clear();
        }
        put_header(&mut together, frame.len());
        if together.len() + frame.len() > TOGETHER_BYTES_MAX {
            stream.write_all(&together).await?;
            together.clear();
            stream.write_all(&frame).await?;
        } else {
            together.extend_from_slice(&frame);
        }
    }
    stream.write_all(&together).await?;
    stream.flush().await
}

fn put_header(bytes: &mut Vec<u8>, length: usize) {
    const FINAL_TEXT: u8 = 0x81;
    bytes.push(FINAL_TEXT);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ 0..=125), _) => bytes.push(length),
        (_, Ok(length)) => {
            bytes.push(126);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
        (_, Err(_)) => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

fn socket_config(max_frame_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(max_frame_bytes))
        .max_frame_size(Some(max_frame_bytes))
}
