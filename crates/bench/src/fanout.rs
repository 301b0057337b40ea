//! Recorded events to 1,000 watchers in another process, 64 in flight at a time.
//!
//! An event counts as arrived when every watcher has it. The floor is a server that sends what it
//! reads with send(2) in a loop over as many sockets: the same frames, the same publisher, the same
//! kind of readers. The publisher writes each message separately, as proxies do.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Instant;

use tempfile::TempDir;

use super::clients::{self, SOME_TIME, WORDS};
use super::lab::Lab;
use super::process::Relay;
use super::scenario::Contest;
use super::statistics::per_second;
use super::stub_proxy::StubProxy;
use super::swarm::{Server, Watchers};
use super::trouble::Outcome;
use super::websocket;

const WATCHERS: usize = 1_000;
const OUTSTANDING: u64 = 64;
const EVENTS: u64 = 3_000;
const SESSION: &str = "bench-fanout";

pub(crate) struct Fanout {
    floor: Floor,
    proxy: StubProxy,
    watchers: Watchers,
    published: u64,
    _relay: Relay,
    _data: TempDir,
}

struct Floor {
    publisher: TcpStream,
    watchers: Watchers,
    frame: Vec<u8>,
    published: u64,
    _server: Server,
}

impl Fanout {
    pub(crate) fn prepare(lab: &Lab) -> Outcome<Self> {
        let data = lab.new_folder()?;
        let (relay, ready) = Relay::start(lab, data.path())?;
        let mut proxy = StubProxy::connect(&ready, &[SESSION.to_owned()])?;
        // The floor sends exactly what the relay sends: one of its frames is taken as the model.
        let mut client = clients::connect(&ready, "bench-model", &[])?;
        proxy.writer.send_all([message(0).as_str()])?;
        let mut frame = vec![];
        websocket::write_server_text(client.next_of("message_event")?, &mut frame);
        drop(client);
        let floor = Floor::prepare(lab, frame)?;
        let watchers = Watchers::of_relay(lab, &ready, WATCHERS)?;
        Ok(Self { floor, proxy, watchers, published: 0, _relay: relay, _data: data })
    }
}

impl Floor {
    fn prepare(lab: &Lab, frame: Vec<u8>) -> Outcome<Self> {
        let server = Server::repeater(lab, WATCHERS)?;
        let watchers = Watchers::plain(lab, server.address, WATCHERS)?;
        let publisher = TcpStream::connect(server.address)?;
        publisher.set_nodelay(true)?;
        Ok(Self { publisher, watchers, frame, published: 0, _server: server })
    }
}

/// Publishes a round's events as the window allows; gives the deliveries a second.
fn publish(
    watchers: &mut Watchers,
    published: &mut u64,
    mut publish_one: impl FnMut() -> Outcome<()>,
) -> Outcome<f64> {
    let end = *published + EVENTS;
    let begun = Instant::now();
    while watchers.complete() < end {
        let upto = end.min(watchers.complete() + OUTSTANDING);
        for _ in *published..upto {
            publish_one()?;
        }
        *published = upto;
        watchers.wait()?;
    }
    let count = u64::try_from(WATCHERS).unwrap_or(0);
    Ok(per_second(EVENTS * count, begun.elapsed()))
}

fn message(number: u64) -> String {
    format!(
        "{{\"type\":\"proxy_message\",\"protocol_version\":1,\"session_id\":\"{SESSION}\",\
         \"message\":{{\"message_id\":\"bench-{number:08}\",\"role\":\"assistant\",\
         \"content\":\"{WORDS}\",\"created_at\":\"{SOME_TIME}\"}}}}"
    )
}

impl Contest for Fanout {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        let Floor { publisher, watchers, frame, published, .. } = &mut self.floor;
        publish(watchers, published, || Ok(publisher.write_all(frame)?)).map(Some)
    }

    fn measure(&mut self) -> Outcome<f64> {
        let numbers = self.published + 1..=self.published + EVENTS;
        let mut waiting = numbers.map(message).collect::<Vec<_>>().into_iter();
        publish(&mut self.watchers, &mut self.published, || {
            self.proxy.check()?;
            self.proxy.writer.send_all(waiting.next().as_deref())
        })
    }
}
