//! The relay's memory growth for each of 9,000 native clients that said hello and are silent, in
//! another process. Each round has a relay of its own, because memory that the allocator kept from
//! the last round would hide the growth.

use std::time::Duration;

use super::lab::Lab;
use super::process::Relay;
use super::scenario::Contest;
use super::statistics::number;
use super::stub_proxy::StubProxy;
use super::swarm::Watchers;
use super::trouble::Outcome;

const CONNECTIONS: usize = 9_000;
/// One client comes and goes first: what the first one brings into memory is not per connection.
const WARM_UP: usize = 16;
/// What the greeting left behind is freed by then.
const SETTLE: Duration = Duration::from_millis(500);

pub(crate) struct Idle<'a> {
    lab: &'a Lab,
}

impl<'a> Idle<'a> {
    pub(crate) fn prepare(lab: &'a Lab) -> Self {
        Self { lab }
    }
}

impl Contest for Idle<'_> {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        Ok(None)
    }

    fn measure(&mut self) -> Outcome<f64> {
        let data = self.lab.new_folder()?;
        let (relay, ready) = Relay::start(self.lab, data.path())?;
        let proxy = StubProxy::connect(&ready, &["bench-idle".to_owned()])?;
        drop(Watchers::of_relay(self.lab, &ready, WARM_UP)?);
        std::thread::sleep(SETTLE);
        let before = relay.resident_bytes()?;
        let watchers = Watchers::of_relay(self.lab, &ready, CONNECTIONS)?;
        std::thread::sleep(SETTLE);
        let grown = relay.resident_bytes()?.saturating_sub(before);
        drop((watchers, proxy, relay));
        Ok(number(grown) / 1024.0 / number(u64::try_from(CONNECTIONS).unwrap_or(1)))
    }
}
