//! Rate limits, counted per credential and client id over all their connections.
//!
//! Not here: the answer when a limit is exceeded (`wire`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{ClientKey, Timestamp};
use wire::native::Throttle;

/// Clients that are counted at once; beyond it the quietest are forgotten.
const CLIENTS_MAX: usize = 10_000;
const SENDS_WINDOW_MS: u64 = 10_000;
const FRAMES_WINDOW_MS: u64 = 60_000;

/// How much is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Sends in ten seconds.
    pub sends_per_10s: u32,
    /// Frames in a minute, heartbeats apart.
    pub frames_per_minute: u32,
}

impl Default for Rates {
    fn default() -> Self {
        Self { sends_per_10s: 30, frames_per_minute: 200 }
    }
}

/// All clients' counters.
#[derive(Debug, Clone)]
pub struct Throttles {
    rates: Rates,
    counts: Arc<Mutex<BTreeMap<ClientKey, Counts>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sends: Window,
    frames: Window,
}

/// A fixed window: cheap, and at worst twice the rate across its edge.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    begun: Option<Timestamp>,
    count: u32,
}

impl Window {
    fn admit(&mut self, now: Timestamp, window_ms: u64, limit: u32) -> bool {
        // A clock that was set back begins anew as well.
        let goes_on =
            self.begun.is_some_and(|begun| now >= begun && now.ms_since(begun) < window_ms);
        if !goes_on {
            *self = Self { begun: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= limit
    }
}

impl Throttles {
    /// Nobody has said anything yet.
    pub fn new(rates: Rates) -> Self {
        Self { rates, counts: Arc::default() }
    }

    /// The counters of one client.
    pub fn of(&self, client: ClientKey) -> ClientThrottle {
        ClientThrottle { throttles: self.clone(), client }
    }

    fn count(
        &self,
        client: &ClientKey,
        now: Timestamp,
        admit: impl Fn(&mut Counts, Rates) -> bool,
    ) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = counts.get_mut(client) {
            return admit(counts, self.rates);
        }
        if counts.len() >= CLIENTS_MAX {
            counts.retain(|_, counts| {
                counts.frames.begun.is_some_and(|begun| now.ms_since(begun) < FRAMES_WINDOW_MS)
            });
        }
        admit(counts.entry(client.clone()).or_default(), self.rates)
    }
}

/// One client's counters.
#[derive(Debug, Clone)]
pub struct ClientThrottle {
    throttles: Throttles,
    client: ClientKey,
}

impl ClientThrottle {
    /// The client named itself.
    pub fn rename(&mut self, client: ClientKey) {
        self.client = client;
    }
}

impl Throttle for ClientThrottle {
    fn frame(&mut self, now: Timestamp) -> bool {
        self.throttles.count(&self.client, now, |counts, rates| {
            counts.frames.admit(now, FRAMES_WINDOW_MS, rates.frames_per_minute)
        })
    }

    fn send(&mut self, now: Timestamp) -> bool {
        self.throttles.count(&self.client, now, |counts, rates| {
            counts.sends.admit(now, SENDS_WINDOW_MS, rates.sends_per_10s)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_the_rate_is_refused_until_the_window_ends() {
        let throttles = Throttles::new(Rates { sends_per_10s: 2, frames_per_minute: 100 });
        let mut one = throttles.of(key("a"));
        assert!(one.send(Timestamp(1_000)) && one.send(Timestamp(1_000)));
        assert!(!one.send(Timestamp(10_999)));
        assert!(one.send(Timestamp(11_000)));
    }

    #[test]
    fn two_connections_of_one_client_share_its_rate_and_another_client_has_its_own() {
        let throttles = Throttles::new(Rates { sends_per_10s: 1, frames_per_minute: 100 });
        assert!(throttles.of(key("a")).send(Timestamp(0)));
        assert!(!throttles.of(key("a")).send(Timestamp(0)));
        assert!(throttles.of(key("b")).send(Timestamp(0)));
    }

    fn key(client: &str) -> ClientKey {
        ClientKey { credential: "cred".into(), client: Some(client.into()) }
    }
}
