//! One sender on one session: from `send_message` to `message_accepted`, which is durable.
//!
//! The stub proxy answers each send `delivered` at once, and the sender waits for that before it
//! sends again, so that exactly one send is measured at a time.

use std::time::Instant;

use tempfile::TempDir;

use super::clients;
use super::disk::Preallocated;
use super::lab::Lab;
use super::process::Relay;
use super::scenario::Contest;
use super::statistics::{micros, percentile};
use super::stub_proxy::StubProxy;
use super::trouble::Outcome;
use super::websocket::Socket;

const SENDS: usize = 400;
const SESSION: &str = "bench-sends";

pub(crate) struct SendAccept {
    disk: Preallocated,
    client: Socket,
    sent: usize,
    p99: f64,
    _proxy: StubProxy,
    _relay: Relay,
    _data: TempDir,
}

impl SendAccept {
    pub(crate) fn prepare(lab: &Lab) -> Outcome<Self> {
        let data = lab.new_folder()?;
        let disk = Preallocated::pages(lab.folder())?;
        let (relay, ready) = Relay::start(lab, data.path())?;
        let proxy = StubProxy::connect(&ready, &[SESSION.to_owned()])?;
        let client = clients::connect(&ready, "bench-sender", &[])?;
        Ok(Self { disk, client, sent: 0, p99: 0.0, _proxy: proxy, _relay: relay, _data: data })
    }

    fn wait_for(&mut self, kind: &str, id: &str) -> Outcome<()> {
        while memchr::memmem::find(self.client.next_of(kind)?, id.as_bytes()).is_none() {}
        Ok(())
    }
}

impl Contest for SendAccept {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        self.disk.sync_micros().map(Some)
    }

    fn measure(&mut self) -> Outcome<f64> {
        let mut times = vec![];
        for _ in 0..SENDS {
            self.sent += 1;
            let id = format!("bench-{:08}", self.sent);
            let frame = clients::send_message(SESSION, &id);
            let begun = Instant::now();
            self.client.send(&frame)?;
            self.wait_for("message_accepted", &id)?;
            times.push(micros(begun.elapsed()));
            self.wait_for("message_delivered", &id)?;
        }
        self.p99 = percentile(&times, 99);
        Ok(percentile(&times, 50))
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        vec![("p99_us", self.p99)]
    }
}
