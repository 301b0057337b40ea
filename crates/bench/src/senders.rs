//! 64 senders on 64 sessions, each with one send in flight: accepted sends per second.
//!
//! The stub proxy answers each send `delivered` at once; that is part of the measurement. Each
//! client watches its own session and receives of the others what a list shows. The cost when each
//! client receives everything of all 64 is measured as well.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet};

use super::clients;
use super::disk::Preallocated;
use super::lab::Lab;
use super::process::{Ready, Relay};
use super::scenario::Contest;
use super::statistics::{micros, per_second, percentile};
use super::stub_proxy::StubProxy;
use super::trouble::{Outcome, Trouble};
use super::websocket::{self, Frames, SILENCE_MAX};

const SENDERS: usize = 64;
const ROUND: Duration = Duration::from_secs(2);
const BUFFER_BYTES: usize = 256 * 1024;
const ACCEPTED: &[u8] = b"{\"type\":\"message_accepted\"";
const REFUSED: [&[u8]; 2] = [b"{\"type\":\"connection_error\"", b"{\"type\":\"message_failed\""];

pub(crate) struct Senders {
    disk: Preallocated,
    runtime: Runtime,
    ready: Ready,
    round: u32,
    accepted: u64,
    p99_micros: f64,
    /// Accepted a second when everyone hears everything, each round.
    all_hear_all: Vec<f64>,
    proxy: StubProxy,
    _relay: Relay,
    _data: TempDir,
}

impl Senders {
    pub(crate) fn prepare(lab: &Lab) -> Outcome<Self> {
        let data = lab.new_folder()?;
        let disk = Preallocated::pages(lab.folder())?;
        let (relay, ready) = Relay::start(lab, data.path())?;
        let sessions: Vec<String> = (0..SENDERS).map(session).collect();
        let proxy = StubProxy::connect(&ready, &sessions)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            disk,
            runtime,
            ready,
            round: 0,
            accepted: 0,
            p99_micros: 0.0,
            all_hear_all: vec![],
            proxy,
            _relay: relay,
            _data: data,
        })
    }
}

fn session(number: usize) -> String {
    format!("bench-{number:03}")
}

/// What each client hears of the sessions that it does not send to.
#[derive(Clone, Copy)]
enum Hears {
    Cards,
    Everything,
}

impl Senders {
    /// Accepted a second.
    fn send(&mut self, hears: Hears) -> Outcome<f64> {
        self.round += 1;
        let tasks = LocalSet::new();
        let sending = send_from_all(&self.ready, self.round, hears);
        let (times, took) = tasks.block_on(&self.runtime, sending)?;
        let accepted = u64::try_from(times.len()).unwrap_or(u64::MAX);
        if let Hears::Cards = hears {
            self.p99_micros = percentile(&times, 99);
        }
        // The next one is not to be measured while these are still being delivered.
        self.accepted += accepted;
        self.proxy.wait_for_answers(self.accepted)?;
        Ok(per_second(accepted, took))
    }
}

impl Contest for Senders {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        let (count, time) = self.disk.syncs_within(ROUND)?;
        Ok(Some(per_second(count, time)))
    }

    fn measure(&mut self) -> Outcome<f64> {
        let everything = self.send(Hears::Everything)?;
        self.all_hear_all.push(everything);
        self.send(Hears::Cards)
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        vec![("p99_us", self.p99_micros), ("all_hear_all", percentile(&self.all_hear_all, 50))]
    }
}

/// The time of each send, in µs, and how long they took together.
async fn send_from_all(ready: &Ready, round: u32, hears: Hears) -> Outcome<(Vec<f64>, Duration)> {
    let buffer = Rc::new(RefCell::new(vec![0; BUFFER_BYTES]));
    let mut senders = vec![];
    for number in 0..SENDERS {
        senders.push(Sender::connect(ready, number, round, hears, buffer.clone()).await?);
    }
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for sender in senders {
        tasks.spawn_local(sender.send_until(begun + ROUND));
    }
    let mut times = vec![];
    while let Some(ended) = tasks.join_next().await {
        times.extend(ended.map_err(Trouble::new)??);
    }
    Ok((times, begun.elapsed()))
}

struct Sender {
    stream: TcpStream,
    frames: Frames,
    buffer: Rc<RefCell<Vec<u8>>>,
    session: String,
    round: u32,
}

impl Sender {
    async fn connect(
        ready: &Ready,
        number: usize,
        round: u32,
        hears: Hears,
        buffer: Rc<RefCell<Vec<u8>>>,
    ) -> Outcome<Self> {
        let stream = TcpStream::connect(ready.address()?).await?;
        stream.set_nodelay(true)?;
        let (frames, session) = (Frames::default(), session(number));
        let mut sender = Self { stream, frames, buffer, session, round };
        let opening = websocket::handshake(clients::CLIENT_PATH, &ready.token);
        sender.stream.write_all(opening.as_bytes()).await?;
        let mut answer = vec![];
        let end = loop {
            sender.stream.readable().await?;
            let read = sender.stream.try_read_buf(&mut answer);
            if read.is_ok_and(|count| count == 0) {
                return Err(Trouble::new("the relay closed a sender's connection"));
            }
            if let Some(end) = websocket::handshake_end(&answer)? {
                break end;
            }
        };
        sender.frames.feed(&answer[end..], |_| {})?;
        let features: &[&str] = match hears {
            Hears::Cards => &["watch"],
            Hears::Everything => &[],
        };
        sender.write(&clients::hello(&format!("bench-{number}"), features, &[])).await?;
        sender.wait_for(b"{\"type\":\"session_snapshot\"", b"").await?;
        if let Hears::Cards = hears {
            sender.write(&clients::watch_only(&sender.session)).await?;
        }
        Ok(sender)
    }

    async fn send_until(mut self, end: Instant) -> Outcome<Vec<f64>> {
        // The id of the event names the session, and no other send of it is on its way.
        let mine = format!("\"evt_{}_", self.session).into_bytes();
        let mut times = vec![];
        for number in 0_u32.. {
            let id = format!("{}-{}-{number}", self.session, self.round);
            let frame = clients::send_message(&self.session, &id);
            let begun = Instant::now();
            if begun >= end {
                break;
            }
            self.write(&frame).await?;
            self.wait_for(ACCEPTED, &mine).await?;
            times.push(micros(begun.elapsed()));
        }
        Ok(times)
    }

    async fn write(&mut self, text: &str) -> Outcome<()> {
        let mut frame = vec![];
        websocket::write_text(text, &mut frame);
        Ok(self.stream.write_all(&frame).await?)
    }

    /// Reads until a frame begins so and contains this.
    async fn wait_for(&mut self, begin: &[u8], part: &[u8]) -> Outcome<()> {
        let mut found = false;
        let mut refused = None;
        while !found {
            let readable = tokio::time::timeout(SILENCE_MAX, self.stream.readable()).await;
            readable.map_err(|_| Trouble::new("the senders no longer receive anything"))??;
            let buffer = &mut *self.buffer.borrow_mut();
            let count = match self.stream.try_read(buffer) {
                Ok(0) => return Err(Trouble::new("the relay closed a sender's connection")),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            self.frames.feed(&buffer[..count], |frame| {
                found |= frame.starts_with(begin) && memchr::memmem::find(frame, part).is_some();
                if REFUSED.iter().any(|refusal| frame.starts_with(refusal)) {
                    refused = Some(String::from_utf8_lossy(frame).into_owned());
                }
            })?;
            if let Some(refusal) = refused {
                return Err(Trouble::new(format!("the relay rejected a send: {refusal}")));
            }
        }
        Ok(())
    }
}
