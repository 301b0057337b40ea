//! The host with a real disk, a real clock and a real socket.
//!
//! One thread holds the host and syncs the journal; it takes everything that is pending, so that
//! one sync serves all of it. One task holds the socket. They communicate through two bounded
//! queues. If the relay does not read, the connection is dropped; nothing waits for it.
//!
//! Not here: the content of messages (`engine`), how the relay is reached (`dial`).

mod asides;
mod backoff;
mod fetch;
mod folder;
mod keep;
mod outgoing;
mod teller;
mod worker;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::dial::{Dialer, Socket};
use crate::{Fault, ProxyConfig};
use backoff::Backoff;
use worker::{Errands, Event, Worker};

/// Events that may wait for the host. At the bound the socket is not read.
const EVENTS_MAX: usize = 1_024;
/// Frames that may wait for the socket. At the bound the host keeps them, and does not wait.
const FRAMES_MAX: usize = 1_024;
/// Fetches that may wait. At the bound they are put off.
const FETCHES_MAX: usize = 256;
/// Pictures that may wait. At the bound they are told in words.
const PICTURES_MAX: usize = 32;
/// A relay that takes nothing for so long is as good as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a goodbye may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a connection ended.
enum End {
    Lost,
    Shutdown,
}

/// Runs a proxy until `shutdown` comes or something breaks that waiting cannot mend. Sessions
/// come back with the next start, so none is closed here.
pub async fn run(config: ProxyConfig, shutdown: impl Future<Output = ()>) -> Result<(), Fault> {
    let dialer = Dialer::new(&config.relay, &config.token, config.tls_ca.as_deref())?;
    let dialer = Arc::new(dialer);
    let greeted = Arc::new(AtomicBool::new(false));
    let (events, inbox) = mpsc::channel(EVENTS_MAX);
    let (fetches, asked) = mpsc::channel(FETCHES_MAX);
    let (pictures, to_keep) = mpsc::channel(PICTURES_MAX);
    let errands = Errands { fetches, pictures };
    let mut worker = Worker::spawn(&config, inbox, errands, Arc::clone(&greeted))?;
    // Ended with this function, whichever way that ends.
    let mut fetching = JoinSet::new();
    let folder = fetch::folder(&config.data)?;
    fetching.spawn(fetch::serve(asked, events.clone(), Arc::clone(&dialer), folder));
    fetching.spawn(keep::serve(to_keep, events.clone(), Arc::clone(&dialer)));
    let mut shutdown = pin!(shutdown);
    let mut backoff = Backoff::default();
    let outcome = loop {
        let attempt = tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            fault = worker.ended() => break fault,
            attempt = dialer.dial() => attempt,
        };
        match attempt {
            Ok(socket) => {
                greeted.store(false, Ordering::Relaxed);
                if matches!(converse(socket, &events, shutdown.as_mut()).await, End::Shutdown) {
                    break Ok(());
                }
                if events.send(Event::Disconnected).await.is_err() {
                    break worker.ended().await;
                }
                if greeted.load(Ordering::Relaxed) {
                    backoff = Backoff::default();
                }
                tracing::info!(relay = %dialer.address(), "lost the relay; trying again");
            }
            Err(Fault::Refused { address, status }) => {
                break Err(Fault::Refused { address, status });
            }
            // Told once: it is tried again and again, for as long as it takes.
            Err(fault) if backoff.is_first() => {
                tracing::warn!(%fault, "could not reach the relay; trying until it responds");
            }
            Err(fault) => tracing::debug!(%fault, "could not reach the relay; trying again"),
        }
        let pause = backoff.next();
        tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            fault = worker.ended() => break fault,
            () = tokio::time::sleep(pause) => {}
        }
    };
    fetching.shutdown().await;
    drop(events);
    let last = worker.ended().await;
    outcome.and(last)
}

/// Carries frames both ways until either side has enough. Neither way waits for the other: each
/// end of a flooded connection would otherwise wait for the other one to read.
async fn converse(
    socket: Socket,
    events: &mpsc::Sender<Event>,
    shutdown: Pin<&mut impl Future<Output = ()>>,
) -> End {
    let (mut to_relay, from_relay) = socket.split();
    let (frames, outgoing) = mpsc::channel::<Bytes>(FRAMES_MAX);
    if events.send(Event::Connected(frames)).await.is_err() {
        return End::Lost;
    }
    let goodbye_code = tokio::select! {
        () = shutdown => Some(CloseCode::Away),
        () = listen(from_relay, events) => None,
        code = speak(&mut to_relay, outgoing) => code,
    };
    let Some(code) = goodbye_code else { return End::Lost };
    goodbye(&mut to_relay, code).await;
    if code == CloseCode::Away { End::Shutdown } else { End::Lost }
}

/// Passes on what the relay says, until it says no more.
async fn listen(mut from_relay: SplitStream<Socket>, events: &mpsc::Sender<Event>) {
    while let Some(heard) = from_relay.next().await {
        match heard {
            Ok(Message::Text(text)) => {
                if events.send(Event::Text(text.as_str().to_owned())).await.is_err() {
                    return;
                }
            }
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Ok(Message::Close(frame)) => {
                let told = frame.map(|frame| (u16::from(frame.code), frame.reason.to_string()));
                tracing::info!(?told, "the relay closed the connection");
                return;
            }
            Ok(Message::Binary(_)) => {
                tracing::warn!("the relay sent a binary message");
                return;
            }
            Err(error) => {
                tracing::debug!(%error, "the connection broke");
                return;
            }
        }
    }
}

/// Sends what the host says: all that waits, then one flush. Ends with a code when the host has
/// enough of this connection, without one when the connection broke.
async fn speak(
    to_relay: &mut SplitSink<Socket, Message>,
    mut outgoing: mpsc::Receiver<Bytes>,
) -> Option<CloseCode> {
    let mut waiting = Vec::new();
    while outgoing.recv_many(&mut waiting, FRAMES_MAX).await > 0 {
        let write = async {
            for frame in waiting.drain(..) {
                let Ok(text) = Utf8Bytes::try_from(frame) else { continue };
                to_relay.feed(Message::Text(text)).await?;
            }
            to_relay.flush().await
        };
        match timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "the connection broke");
                return None;
            }
            Err(_) => {
                tracing::warn!("the relay does not read; dropping the connection");
                return None;
            }
        }
    }
    Some(CloseCode::Normal)
}

/// Best effort: a peer that does not hear it will notice the silence.
async fn goodbye(to_relay: &mut SplitSink<Socket, Message>, code: CloseCode) {
    let frame = CloseFrame { code, reason: Utf8Bytes::default() };
    let _ = timeout(CLOSE_TIMEOUT, to_relay.send(Message::Close(Some(frame)))).await;
}

#[cfg(test)]
mod tests;
