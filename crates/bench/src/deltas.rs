//! An agent's text on its way from proxy to client, 1,000 deltas a second, p50.
//!
//! The words carry the time at which they left; both ends are in this process, on one clock. The
//! floor sends the same frames at the same rate to an axum server that echoes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::clients::{self, SOME_TIME};
use super::lab::Lab;
use super::process::Relay;
use super::scenario::Contest;
use super::statistics::percentile;
use super::stub_proxy::StubProxy;
use super::swarm::Server;
use super::trouble::{Outcome, Trouble};
use super::websocket::{Socket, Writer};

const DELTAS: u32 = 2_000;
const EVERY: Duration = Duration::from_millis(1);
/// The first ones find everything cold.
const UNCOUNTED: usize = 100;
/// Deltas of one message, which is then recorded, as an agent does.
const DELTAS_A_MESSAGE: u32 = 200;
const SESSION: &str = "bench-deltas";
/// The length of [`words`] in UTF-16 units.
const WORDS_UNITS: u32 = 24;

pub(crate) struct Deltas {
    echoed: Option<Socket>,
    client: Option<Socket>,
    proxy: StubProxy,
    round: u32,
    p99_micros: f64,
    _echo: Server,
    _relay: Relay,
    _data: TempDir,
}

impl Deltas {
    pub(crate) fn prepare(lab: &Lab) -> Outcome<Self> {
        let data = lab.new_folder()?;
        let (relay, ready) = Relay::start(lab, data.path())?;
        let proxy = StubProxy::connect(&ready, &[SESSION.to_owned()])?;
        let client = clients::connect(&ready, "bench-reader", &["deltas"])?;
        let echo = Server::echo(lab)?;
        let echoed = Socket::connect(echo.address, "/", "")?;
        Ok(Self {
            echoed: Some(echoed),
            client: Some(client),
            proxy,
            round: 0,
            p99_micros: 0.0,
            _echo: echo,
            _relay: relay,
            _data: data,
        })
    }
}

/// Nanoseconds since the base, in a fixed number of digits between marks.
fn words(base: Instant) -> String {
    format!("at={:020};", base.elapsed().as_nanos())
}

/// When the words of this frame left.
fn left_nanos(frame: &[u8]) -> Option<u64> {
    let place = memchr::memmem::find(frame, b"at=")? + 3;
    std::str::from_utf8(frame.get(place..place + 20)?).ok()?.parse().ok()
}

fn delta(round: u32, number: u32, base: Instant) -> String {
    let (message, place) = (number / DELTAS_A_MESSAGE, number % DELTAS_A_MESSAGE);
    let offset = place * WORDS_UNITS;
    format!(
        "{{\"type\":\"message_delta\",\"protocol_version\":1,\"session_id\":\"{SESSION}\",\
         \"message_id\":\"bench-{round}-{message}\",\"part\":0,\"kind\":\"text\",\
         \"offset\":{offset},\"content\":\"{}\"}}",
        words(base)
    )
}

/// The recorded message that ends a draft.
fn finished(round: u32, number: u32) -> String {
    let message = number / DELTAS_A_MESSAGE;
    format!(
        "{{\"type\":\"proxy_message\",\"protocol_version\":1,\"session_id\":\"{SESSION}\",\
         \"message\":{{\"message_id\":\"bench-{round}-{message}\",\"role\":\"assistant\",\
         \"content\":\"done\",\"created_at\":\"{SOME_TIME}\"}}}}"
    )
}

/// Sends at the rate, whatever happens at the other end.
fn pace(writer: &mut Writer, round: u32, base: Instant, ends_messages: bool) -> Outcome<()> {
    let begun = Instant::now();
    for number in 0..DELTAS {
        let due = begun + EVERY * number;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        writer.send_all([delta(round, number, base).as_str()])?;
        if ends_messages && number % DELTAS_A_MESSAGE == DELTAS_A_MESSAGE - 1 {
            writer.send_all([finished(round, number).as_str()])?;
        }
    }
    Ok(())
}

/// Reads deltas until all are there; gives the socket back with the times on the way, in µs.
fn receive(mut socket: Socket, base: Instant, stopped: &AtomicBool) -> Outcome<(Socket, Vec<f64>)> {
    let mut times = vec![];
    while times.len() < usize::try_from(DELTAS).unwrap_or(0) {
        let frame = socket.next_of("message_delta")?;
        let arrived = base.elapsed();
        let left = left_nanos(frame).ok_or_else(|| Trouble::new("a delta has no timestamp"))?;
        times.push(arrived.saturating_sub(Duration::from_nanos(left)).as_secs_f64() * 1e6);
        if stopped.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok((socket, times.split_off(UNCOUNTED.min(times.len()))))
}

/// One turn: sends through `writer`, receives on `socket`.
fn turn(
    slot: &mut Option<Socket>,
    writer: &mut Writer,
    round: u32,
    ends_messages: bool,
) -> Outcome<Vec<f64>> {
    let socket = slot.take().ok_or_else(|| Trouble::new("an earlier turn failed"))?;
    let base = Instant::now();
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = stopped.clone();
    let reading = thread::Builder::new().name("receiver".to_owned());
    let reading = reading.spawn(move || receive(socket, base, &stop))?;
    let sent = pace(writer, round, base, ends_messages);
    if sent.is_err() {
        stopped.store(true, Ordering::Relaxed);
    }
    let received = reading.join().map_err(|_| Trouble::new("the receiver stopped"))?;
    sent?;
    let (socket, times) = received?;
    *slot = Some(socket);
    Ok(times)
}

impl Contest for Deltas {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        let socket = self.echoed.as_ref();
        let mut writer = socket.ok_or_else(|| Trouble::new("an earlier turn failed"))?.writer()?;
        let times = turn(&mut self.echoed, &mut writer, self.round, false)?;
        Ok(Some(percentile(&times, 50)))
    }

    fn measure(&mut self) -> Outcome<f64> {
        self.round += 1;
        let times = turn(&mut self.client, &mut self.proxy.writer, self.round, true)?;
        self.proxy.check()?;
        self.p99_micros = percentile(&times, 99);
        Ok(percentile(&times, 50))
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        vec![("p99_us", self.p99_micros)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_delta_carry_their_time_in_a_fixed_length() {
        let base = Instant::now();
        let words = words(base);
        assert_eq!(words.len(), usize::try_from(WORDS_UNITS).unwrap());
        let left = left_nanos(delta(1, 2, base).as_bytes()).unwrap();
        assert!(u128::from(left) <= base.elapsed().as_nanos());
    }
}
