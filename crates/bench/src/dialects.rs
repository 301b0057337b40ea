//! One streaming run to 1,000 watchers, 250 each of native, blob, pi and control.
//!
//! A piece of the agent's text counts as arrived when every watcher has it, in its own dialect. The
//! floor is the same run to 1,000 native watchers of a separate relay: the extra cost of the other
//! dialects shows as a ratio below one.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::clients::{SOME_TIME, STREAM_SESSION};
use super::lab::Lab;
use super::process::Relay;
use super::scenario::Contest;
use super::statistics::per_second;
use super::stub_proxy::StubProxy;
use super::swarm::Watchers;
use super::trouble::{Outcome, Trouble};

const WATCHERS: usize = 1_000;
const OUTSTANDING: u64 = 64;
const DELTAS: u64 = 3_000;
/// Deltas of one message, which is then recorded, as an agent does.
const DELTAS_A_MESSAGE: u64 = 200;
const WORDS: &str = "and then the kite flew ";
/// Joining takes watchers of some dialects a moment; how long all of them may take.
const JOINED_WITHIN: Duration = Duration::from_secs(30);
/// When nothing more arrives for so long, everything has.
const QUIET: Duration = Duration::from_millis(300);

pub(crate) struct Dialects {
    native: Crowd,
    mixed: Crowd,
}

/// A relay, a run and its watchers.
struct Crowd {
    proxy: StubProxy,
    watchers: Watchers,
    published: u64,
    /// Deltas that the last watcher to join did not hear.
    missed: u64,
    _relay: Relay,
    _data: TempDir,
}

impl Dialects {
    pub(crate) fn prepare(lab: &Lab) -> Outcome<Self> {
        let native = Crowd::gather(lab, "streaming")?;
        let mixed = Crowd::gather(lab, "mixed")?;
        Ok(Self { native, mixed })
    }
}

impl Crowd {
    fn gather(lab: &Lab, greeting: &str) -> Outcome<Self> {
        let data = lab.new_folder()?;
        let (relay, ready) = Relay::start(lab, data.path())?;
        let mut proxy = StubProxy::connect(&ready, &[STREAM_SESSION.to_owned()])?;
        // Some dialects tell words only of a run.
        let run = format!(
            "{{\"type\":\"run_started\",\"protocol_version\":1,\
             \"session_id\":\"{STREAM_SESSION}\",\"run_id\":\"bench\"}}"
        );
        proxy.writer.send_all([run.as_str()])?;
        let watchers = Watchers::of_dialects(lab, &ready, WATCHERS, greeting)?;
        let mut crowd =
            Self { proxy, watchers, published: 0, missed: 0, _relay: relay, _data: data };
        crowd.join()?;
        Ok(crowd)
    }

    /// Speaks until everybody hears it, then finds out how much the last of them missed.
    fn join(&mut self) -> Outcome<()> {
        let begun = Instant::now();
        while self.watchers.complete() == 0 {
            if begun.elapsed() > JOINED_WITHIN {
                return Err(Trouble::new("not all watchers joined the session"));
            }
            self.speak()?;
            self.watchers.wait_briefly(QUIET / 10)?;
        }
        while self.watchers.wait_briefly(QUIET)? {}
        self.missed = self.published - self.watchers.complete();
        Ok(())
    }

    /// The next words of the run.
    fn speak(&mut self) -> Outcome<()> {
        self.proxy.check()?;
        let (message, place) =
            (self.published / DELTAS_A_MESSAGE, self.published % DELTAS_A_MESSAGE);
        let offset = place * u64::try_from(WORDS.len()).unwrap_or(0);
        let delta = format!(
            "{{\"type\":\"message_delta\",\"protocol_version\":1,\
             \"session_id\":\"{STREAM_SESSION}\",\"message_id\":\"bench-{message}\",\"part\":0,\
             \"kind\":\"text\",\"offset\":{offset},\"content\":\"{WORDS}\"}}"
        );
        self.proxy.writer.send_all([delta.as_str()])?;
        if place == DELTAS_A_MESSAGE - 1 {
            let finished = format!(
                "{{\"type\":\"proxy_message\",\"protocol_version\":1,\
                 \"session_id\":\"{STREAM_SESSION}\",\"message\":{{\
                 \"message_id\":\"bench-{message}\",\"role\":\"assistant\",\
                 \"content\":\"done\",\"created_at\":\"{SOME_TIME}\"}}}}"
            );
            self.proxy.writer.send_all([finished.as_str()])?;
        }
        self.published += 1;
        Ok(())
    }

    /// A round of the run; gives the deliveries a second.
    fn run(&mut self) -> Outcome<f64> {
        let end = self.published + DELTAS;
        let begun = Instant::now();
        while self.heard() < end {
            let upto = end.min(self.heard() + OUTSTANDING);
            while self.published < upto {
                self.speak()?;
            }
            self.watchers.wait()?;
        }
        let count = u64::try_from(WATCHERS).unwrap_or(0);
        Ok(per_second(DELTAS * count, begun.elapsed()))
    }

    /// Up to which delta everybody has heard everything.
    fn heard(&self) -> u64 {
        self.watchers.complete() + self.missed
    }
}

impl Contest for Dialects {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        self.native.run().map(Some)
    }

    fn measure(&mut self) -> Outcome<f64> {
        self.mixed.run()
    }
}
