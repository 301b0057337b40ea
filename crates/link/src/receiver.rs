//! The relay's end, one per connection.
//!
//! A connection may start at any number: everything before it was acknowledged on an earlier
//! connection, or the proxy would have sent it again.
//!
//! Not here: recognising a frame of an earlier connection (`domain::session`, by its number).

use std::collections::BTreeSet;

/// Frames that may be on their way to the disk at once. At the bound the connection is not read
/// until some are done.
pub const IN_FLIGHT_MAX: usize = 1_024;

/// What a number turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Not heard before on this connection: say [`Receiver::done`] when it is committed.
    Fresh,
    /// Not higher than its predecessor: the peer repeats itself or counts wrongly.
    Stale,
}

/// Hears numbers in rising order, and knows how far everything is committed.
#[derive(Debug, Clone, Default)]
pub struct Receiver {
    last: Option<u64>,
    in_flight: BTreeSet<u64>,
    /// The last acknowledgement; at first, what the first number implies.
    told: u64,
}

impl Receiver {
    /// A frame arrives.
    pub fn take(&mut self, number: u64) -> Taken {
        match self.last {
            Some(last) if number <= last => return Taken::Stale,
            None if number == 0 => return Taken::Stale,
            None => self.told = number - 1,
            Some(_) => {}
        }
        self.last = Some(number);
        self.in_flight.insert(number);
        Taken::Fresh
    }

    /// A frame is committed, or leads to nothing. In any order; a repeat changes nothing.
    pub fn done(&mut self, number: u64) {
        self.in_flight.remove(&number);
    }

    /// The number up to which everything is done, if anything was heard.
    pub fn watermark(&self) -> Option<u64> {
        match self.in_flight.first() {
            Some(first) => Some(first - 1),
            None => self.last,
        }
    }

    /// The acknowledgement to send now: the watermark, if it rose since the last one.
    pub fn take_ack(&mut self) -> Option<u64> {
        let rose = self.watermark().filter(|through| *through > self.told)?;
        self.told = rose;
        Some(rose)
    }

    /// Whether the connection should not be read for now.
    pub fn is_full(&self) -> bool {
        self.in_flight.len() >= IN_FLIGHT_MAX
    }
}
