//! How long a launch may take.

use agents::Driver;

use super::sessions::LAUNCH;
use super::*;

/// Never gets ready; says so when it is told to be, or stays silent for ever.
#[derive(Debug)]
struct Late {
    ready_by: Option<Timestamp>,
    is_silent: bool,
}

impl Driver for Late {
    fn ready_by(&mut self, at: Timestamp) {
        self.ready_by = Some(at);
    }

    fn start(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_order(&mut self, _: &AgentOrder, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_input(&mut self, _: AgentInput, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        let is_late = self.ready_by.is_some_and(|at| at <= now);
        if !is_late {
            return vec![];
        }
        vec![Output::Unusable(Failure::new("launch_timeout", "It waits for its model"))]
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.ready_by.filter(|_| !self.is_silent)
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

fn late() -> Drivers {
    Box::new(|_, _, _| Box::new(Late { ready_by: None, is_silent: false }))
}

fn silent() -> Drivers {
    Box::new(|_, _, _| Box::new(Late { ready_by: None, is_silent: true }))
}

/// Launches, and waits for as long. Gives what is told of it, and after how long.
fn waited(drivers: fn() -> Drivers, timeout_ms: Option<u64>) -> (String, u64) {
    let mut world = World::driven_by(drivers);
    world.connect();
    let launch = match timeout_ms {
        Some(timeout_ms) => LAUNCH.replacen('{', &format!("{{\"timeout_ms\":{timeout_ms},"), 1),
        None => LAUNCH.to_owned(),
    };
    let since = world.now;
    world.say(&launch).unwrap();
    while world.of("session_launch_failed").is_empty() {
        assert!(world.now < since + 600_000, "never told");
        world.pass(100);
    }
    let failed = world.of("session_launch_failed")[0];
    assert_eq!(failed["error_code"], "launch_timeout");
    (failed.to_string(), world.now - since)
}

// spec: native/proxy_launch_behavior.5
#[test]
fn a_launch_may_take_as_long_as_the_relay_waits_and_its_driver_says_why_it_failed() {
    for (timeout_ms, expected_ms) in
        [(None, 28_000), (Some(30_000), 28_000), (Some(90_000), 88_000), (Some(5_000), 4_500)]
    {
        let (words, after_ms) = waited(late, timeout_ms);
        assert!(words.contains("It waits for its model"), "{words}");
        assert_eq!(after_ms, expected_ms);
    }
}

#[test]
fn a_driver_that_says_nothing_does_not_hold_a_launch_up() {
    for (timeout_ms, expected_ms) in [(None, 29_000), (Some(90_000), 89_000), (Some(5_000), 4_800)]
    {
        let (words, after_ms) = waited(silent, timeout_ms);
        assert!(words.contains("was not ready in time"), "{words}");
        assert_eq!(after_ms, expected_ms);
    }
}
