//! The real binaries under SIGKILL: traffic from several clients while relay and proxy are killed
//! at random moments. Afterwards every accepted send reached the agent exactly once or is told as
//! failed, no sequence has a gap, and a client that resumed from its cursor has exactly the ledger.
//!
//! `FARHELM_KILL_TIMES` kills more often, `FARHELM_KILL_SEED` repeats the choices of a run.

mod clients;
mod processes;
mod verdict;

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use processes::{Chance, Fleet};

const TIMES: u64 = 100;
const CLIENTS: usize = 4;

#[test]
fn killed_at_any_moment_nothing_is_lost_and_nothing_happens_twice() {
    let times = number("FARHELM_KILL_TIMES").unwrap_or(TIMES);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let seed = number("FARHELM_KILL_SEED").unwrap_or(u64::from(now.subsec_nanos()));
    say(&format!("FARHELM_KILL_SEED={seed} FARHELM_KILL_TIMES={times}"));
    let mut chance = Chance(seed);
    let mut fleet = Fleet::start();
    let session = fleet.demo_session();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let people: Vec<_> = (0..CLIENTS)
        .map(|n| clients::Person::start(&runtime, n, &session, fleet.ws_url(), seed))
        .collect();

    for kill in 1..=times {
        std::thread::sleep(Duration::from_millis(10 + chance.below(150)));
        match chance.below(5) {
            0 | 1 => fleet.kill_relay(),
            2 | 3 => fleet.kill_proxy(),
            _ => {
                fleet.kill_proxy();
                fleet.kill_relay();
            }
        }
        std::thread::sleep(Duration::from_millis(chance.below(40)));
        fleet.revive();
        if kill.is_multiple_of(25) {
            say(&format!("{kill} of {times} kills"));
        }
    }

    people.iter().for_each(clients::Person::fall_silent);
    let views: Vec<_> = people.into_iter().map(|person| person.finish(&runtime)).collect();
    let ledger = fleet.end_and_read(&session);
    let received = fleet.received(&session);
    verdict::check(&ledger, &received, &views);
    let sends: usize = views.iter().map(|view| view.sent.len()).sum();
    say(&format!("{times} kills, {sends} sends, {} events: all well", ledger.len()));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
