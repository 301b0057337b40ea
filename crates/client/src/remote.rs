//! A client over real sockets: it dials, sends the hello, keeps the connection alive, and redials.
//!
//! **Invariant**: [`Remote::next`] may be dropped at any moment without losing or repeating
//! anything. Sends wait for the relay; anything else that is sent before its hello is dropped.
//!
//! Not here: what frames mean (`machine`), TLS and addresses (the dialler).

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use domain::Timestamp;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use serde_json::Value;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::machine::{Happening, Machine};

/// The pause before the second attempt; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// An attempt that takes longer has failed.
const DIAL_WITHIN: Duration = Duration::from_secs(15);
/// Heartbeat intervals of silence after which a socket is taken for dead.
const SILENT_INTERVALS_MAX: u32 = 4;
/// Frames that wait to be written; beyond it the oldest is dropped (the machine repeats sends).
const OUTGOING_MAX: usize = 20_000;
/// The relay revoked the credential, or forbids.
const CLOSED_FORBIDDEN: u16 = 4003;

/// A socket, dialled and upgraded.
pub trait Socket:
    Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Unpin + Send
{
}

impl<S> Socket for S where
    S: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Unpin + Send
{
}

/// Opens sockets to one relay.
pub trait Dial: Send {
    /// What it opens.
    type Socket: Socket;
    /// Opens one. Must be safe to drop before it is ready.
    fn dial(&mut self) -> impl Future<Output = Result<Self::Socket, DialFault>> + Send;
}

/// There is no socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialFault {
    /// Worth another try.
    #[error("{0}")]
    Away(String),
    /// Another try would end the same.
    #[error("{0}")]
    Refused(String),
}

/// What the remote brings.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// From the relay.
    Happening(Happening),
    /// The connection is gone, or could not be made; it is tried again by itself.
    Lost {
        /// Why.
        words: String,
        /// Attempts that failed in a row; 0 when a connection that worked was lost.
        failures: u32,
    },
    /// The relay does not want this client; nothing is tried again.
    Refused(String),
}

/// A client over real sockets.
#[derive(Debug)]
pub struct Remote<D: Dial> {
    machine: Machine,
    dial: D,
    socket: Option<D::Socket>,
    outgoing: VecDeque<String>,
    heard: VecDeque<Happening>,
    begun: Instant,
    last_word: Instant,
    /// Whether a send was unconfirmed at the last heartbeat of this connection.
    waited_at_heartbeat: bool,
    failures: u32,
    not_before: Instant,
    refused: Option<String>,
}

impl<D: Dial> Remote<D> {
    /// A client that has not dialled yet.
    pub fn new(machine: Machine, dial: D) -> Self {
        let now = Instant::now();
        Self {
            machine,
            dial,
            socket: None,
            outgoing: VecDeque::new(),
            heard: VecDeque::new(),
            begun: now,
            last_word: now,
            waited_at_heartbeat: false,
            failures: 0,
            not_before: now,
            refused: None,
        }
    }

    /// The machine, to follow sessions and look at cursors.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// Sends a message. It is repeated until the relay has it.
    pub fn send(&mut self, session: &str, id: &str, text: &str, created_at: &str) {
        self.send_in_mode(session, id, text, None, created_at);
    }

    /// The same with a word for what to do while the agent runs: `steer` or `follow_up`.
    pub fn send_in_mode(
        &mut self,
        session: &str,
        id: &str,
        text: &str,
        mode: Option<&str>,
        created_at: &str,
    ) {
        if let Some(frame) = self.machine.send_in_mode(session, id, text, mode, created_at) {
            self.say(&frame);
        }
    }

    /// Says something once, on the connection that is open when it is next written.
    pub fn say(&mut self, frame: &Value) {
        if self.outgoing.len() == OUTGOING_MAX {
            self.outgoing.pop_front();
        }
        self.outgoing.push_back(frame.to_string());
    }

    /// The next thing that happens.
    pub async fn next(&mut self) -> Heard {
        loop {
            if let Some(happening) = self.heard.pop_front() {
                return Heard::Happening(happening);
            }
            if let Some(words) = &self.refused {
                return Heard::Refused(words.clone());
            }
            let step = match self.socket {
                Some(_) => self.converse().await,
                None => self.connect().await,
            };
            if let Err(fault) = step {
                return self.lose(fault);
            }
        }
    }

    async fn connect(&mut self) -> Result<(), DialFault> {
        tokio::time::sleep_until(self.not_before).await;
        let dialled = tokio::time::timeout(DIAL_WITHIN, self.dial.dial()).await;
        let took_long = || DialFault::Away("no answer in time".to_owned());
        self.socket = Some(dialled.map_err(|_| took_long())??);
        // What was said before the hello would be refused; sends are repeated after it.
        self.outgoing.clear();
        self.waited_at_heartbeat = false;
        self.say(&self.machine.hello());
        self.last_word = Instant::now();
        Ok(())
    }

    /// Writes what waits, then takes one frame or lets one heartbeat pass.
    async fn converse(&mut self) -> Result<(), DialFault> {
        let Self { socket: Some(socket), outgoing, .. } = self else { return Ok(()) };
        while let Some(frame) = outgoing.front() {
            // Kept until it is taken: this may be dropped while it waits.
            socket.feed(Message::text(frame.clone())).await.map_err(|error| away(&error))?;
            outgoing.pop_front();
        }
        socket.flush().await.map_err(|error| away(&error))?;
        let interval = Duration::from_millis(self.machine.heartbeat_interval_ms());
        let frame = tokio::select! {
            frame = socket.next() => frame,
            () = tokio::time::sleep(interval) => return self.keep_alive(interval),
        };
        self.last_word = Instant::now();
        match frame {
            Some(Ok(Message::Text(text))) => {
                let (happened, answers) = self.machine.on_text(text.as_str());
                if happened.iter().any(|it| matches!(it, Happening::Connected(_))) {
                    self.failures = 0;
                }
                self.heard.extend(happened);
                for frame in &answers {
                    self.say(frame);
                }
                self.keep_alive(interval)
            }
            Some(Ok(Message::Close(Some(close)))) => {
                let words = close.reason.to_string();
                if u16::from(close.code) == CLOSED_FORBIDDEN {
                    return Err(DialFault::Refused(words));
                }
                Err(DialFault::Away(words))
            }
            Some(Ok(Message::Close(None))) | None => {
                Err(DialFault::Away("the connection ended".to_owned()))
            }
            Some(Ok(
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_),
            )) => Ok(()),
            Some(Err(error)) => Err(away(&error)),
        }
    }

    fn keep_alive(&mut self, interval: Duration) -> Result<(), DialFault> {
        if self.last_word.elapsed() > interval * SILENT_INTERVALS_MAX {
            return Err(DialFault::Away("the relay stopped responding".to_owned()));
        }
        // Not the wall clock: that may jump, and heartbeats would stop.
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(heartbeat) = self.machine.heartbeat(Timestamp(elapsed_ms)) {
            self.say(&heartbeat);
            // The relay may have been unable to record what waits since the last heartbeat. Not
            // at the first: what waited was said a moment ago, after the hello.
            if self.waited_at_heartbeat {
                for send in self.machine.again() {
                    self.say(&send);
                }
            }
            self.waited_at_heartbeat = self.machine.unconfirmed() > 0;
        }
        Ok(())
    }

    fn lose(&mut self, fault: DialFault) -> Heard {
        let had_one = self.socket.take().is_some();
        self.machine.on_disconnected();
        match fault {
            DialFault::Refused(words) => {
                self.refused = Some(words.clone());
                Heard::Refused(words)
            }
            DialFault::Away(words) => {
                let doubled = PAUSE_FIRST * 2_u32.saturating_pow(self.failures.min(16));
                self.not_before = Instant::now() + spread(doubled.min(PAUSE_MAX));
                self.failures += 1;
                let failures = if had_one { 0 } else { self.failures };
                Heard::Lost { words, failures }
            }
        }
    }
}

/// Half to all of it: clients that lost their relay together do not come back together.
fn spread(pause: Duration) -> Duration {
    let mut chance = [0];
    let drawn = getrandom::fill(&mut chance).map_or(0.0, |()| f64::from(chance[0]) / 255.0);
    pause.mul_f64(0.5 + drawn / 2.0)
}

fn away(error: &Error) -> DialFault {
    DialFault::Away(error.to_string())
}

#[cfg(test)]
mod tests;
