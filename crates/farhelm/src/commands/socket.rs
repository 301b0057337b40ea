//! A socket of any dialect that reconnects as often as needed.
//!
//! Not here: the messages on it.

use std::time::Duration;

use client::{Dial as _, DialFault};
use futures_util::{SinkExt as _, StreamExt as _};
use proxy::dial::Socket;
use tokio_tungstenite::tungstenite::Message;

use crate::connect::SocketDial;
use crate::discovery::Finder;
use crate::problem::Problem;

/// The pause before the second attempt; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The relay forbids, or has no such session: another try would end the same.
const FINAL_CODES: [u16; 2] = [4003, 4004];

/// What the socket brings.
pub(super) enum Heard {
    Text(String),
    Nothing,
    /// It is gone; with these words for good.
    Gone(Option<String>),
}

/// The way to the relay, and the socket while there is one.
pub(super) struct Line {
    dial: SocketDial,
    socket: Option<Socket>,
}

impl Line {
    pub(super) fn new(finder: Finder) -> Self {
        Self { dial: SocketDial::new(finder), socket: None }
    }

    /// Opens a socket to this path, however often it takes.
    pub(super) async fn open(&mut self, path: &str) -> Result<(), Problem> {
        let mut pause = PAUSE_FIRST;
        self.dial.aim(path);
        loop {
            match self.dial.dial().await {
                Ok(socket) => {
                    self.socket = Some(socket);
                    return Ok(());
                }
                Err(DialFault::Refused(words)) => return Err(Problem::new(words)),
                Err(DialFault::Away(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    pub(super) async fn hear(&mut self) -> Heard {
        let Some(socket) = &mut self.socket else { return Heard::Gone(None) };
        match socket.next().await {
            Some(Ok(Message::Text(text))) => Heard::Text(text.to_string()),
            Some(Ok(Message::Close(Some(close)))) => {
                self.socket = None;
                let is_final = FINAL_CODES.contains(&u16::from(close.code));
                Heard::Gone(is_final.then(|| close.reason.to_string()))
            }
            Some(Ok(Message::Close(None)) | Err(_)) | None => {
                self.socket = None;
                Heard::Gone(None)
            }
            Some(Ok(
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_),
            )) => Heard::Nothing,
        }
    }

    /// What cannot be written is for the next socket, if it is to be said at all.
    pub(super) async fn write(&mut self, text: String) {
        let Some(socket) = &mut self.socket else { return };
        if socket.send(Message::text(text)).await.is_err() {
            self.socket = None;
        }
    }
}
