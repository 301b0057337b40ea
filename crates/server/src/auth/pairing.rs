//! Pairing: six digits, for one use and five minutes, in exchange for a device's token.
//!
//! **Invariant**: however many addresses try, wrong tries are bounded per address and in all; what
//! is locked out is refused even when it is right, so that trying on tells nothing.
//!
//! Not here: making the code (`secret`) and the token (`auth`), HTTP (`api::pair`).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use domain::{Role, Timestamp};

/// How long a code is valid.
pub const CODE_LIFETIME_MS: u64 = 300_000;
/// Codes that are valid at once; one more ends the oldest.
pub const CODES_OPEN_MAX: usize = 16;
/// Wrong tries of one address before it is locked out.
pub const WRONG_TRIES_PER_ADDRESS_MAX: usize = 5;
/// Wrong tries of all addresses before everybody is locked out.
pub const WRONG_TRIES_MAX: usize = 40;
/// How long a wrong try counts.
pub const WRONG_TRY_COUNTS_MS: u64 = 300_000;

/// A code that waits for its device.
#[derive(Debug)]
struct Open {
    code: String,
    role: Role,
    expires_at: Timestamp,
}

/// Why a code was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairRefused {
    /// Unknown, used, or expired: who tries need not know which.
    WrongCode,
    /// Too many wrong tries, here or everywhere.
    LockedOut {
        /// When to try again.
        retry_after_ms: u64,
    },
}

/// Codes that wait, and who guessed wrong.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// Oldest first.
    open: VecDeque<Open>,
    /// When each recent wrong try was, and by whom, oldest first.
    wrong: VecDeque<(Timestamp, Neighbourhood)>,
}

/// One household: an IPv4 address, or the /64 that an IPv6 household has to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Neighbourhood(u64);

impl Pairing {
    /// A code becomes valid, until when is told; `None` when it is valid already.
    pub(crate) fn offer(&mut self, code: &str, role: Role, now: Timestamp) -> Option<Timestamp> {
        self.forget(now);
        if self.open.iter().any(|open| open.code == code) {
            return None;
        }
        if self.open.len() == CODES_OPEN_MAX {
            self.open.pop_front();
        }
        let expires_at = now.plus_ms(CODE_LIFETIME_MS);
        self.open.push_back(Open { code: code.to_owned(), role, expires_at });
        Some(expires_at)
    }

    /// A device brings a code. A right one is used up and says what the device may do.
    pub(crate) fn redeem(
        &mut self,
        code: &str,
        from: IpAddr,
        now: Timestamp,
    ) -> Result<Role, PairRefused> {
        self.forget(now);
        let from = Neighbourhood::of(from);
        if let Some(retry_after_ms) = self.locked_for_ms(from, now) {
            return Err(PairRefused::LockedOut { retry_after_ms });
        }
        let found = self.open.iter().position(|open| open.code == code);
        let taken = found.and_then(|index| self.open.remove(index));
        let Some(open) = taken else {
            self.wrong.push_back((now, from));
            return Err(PairRefused::WrongCode);
        };
        Ok(open.role)
    }

    fn forget(&mut self, now: Timestamp) {
        self.open.retain(|open| now < open.expires_at);
        self.wrong.retain(|(at, _)| now.ms_since(*at) < WRONG_TRY_COUNTS_MS);
    }

    fn locked_for_ms(&self, from: Neighbourhood, now: Timestamp) -> Option<u64> {
        let mut counts: HashMap<Neighbourhood, usize> = HashMap::new();
        for (_, by) in &self.wrong {
            *counts.entry(*by).or_default() += 1;
        }
        let here = counts.get(&from).copied().unwrap_or_default();
        let locked_here = here >= WRONG_TRIES_PER_ADDRESS_MAX;
        let locked = locked_here || self.wrong.len() >= WRONG_TRIES_MAX;
        let mut counting = self.wrong.iter().filter(|(_, by)| !locked_here || *by == from);
        let oldest = counting.next().filter(|_| locked)?;
        Some(oldest.0.plus_ms(WRONG_TRY_COUNTS_MS).ms_since(now))
    }
}

impl Neighbourhood {
    fn of(address: IpAddr) -> Self {
        let octets = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        let mapped = matches!(address, IpAddr::V4(_));
        let half = if mapped { &octets[8..] } else { &octets[..8] };
        Self(half.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn a_code_is_taken_once() {
        let mut pairing = Pairing::default();
        pairing.offer("123456", Role::Operator, NOW).unwrap();

        assert_eq!(pairing.redeem("123456", address(1), NOW), Ok(Role::Operator));
        assert_eq!(pairing.redeem("123456", address(1), NOW), Err(PairRefused::WrongCode));
    }

    #[test]
    fn a_code_ends_after_five_minutes() {
        let mut pairing = Pairing::default();
        let expires_at = pairing.offer("123456", Role::Operator, NOW).unwrap();

        assert_eq!(expires_at, NOW.plus_ms(CODE_LIFETIME_MS));
        assert_eq!(pairing.redeem("123456", address(1), expires_at), Err(PairRefused::WrongCode));
    }

    #[test]
    fn several_codes_wait_and_one_too_many_ends_the_oldest() {
        let mut pairing = Pairing::default();
        for number in 0..=CODES_OPEN_MAX {
            pairing.offer(&format!("{number:06}"), Role::Viewer, NOW).unwrap();
        }

        assert_eq!(pairing.redeem("000000", address(1), NOW), Err(PairRefused::WrongCode));
        assert_eq!(pairing.redeem("000001", address(1), NOW), Ok(Role::Viewer));
        assert_eq!(pairing.redeem("000016", address(1), NOW), Ok(Role::Viewer));
    }

    #[test]
    fn an_address_that_guesses_is_locked_out_even_from_the_right_code() {
        let mut pairing = Pairing::default();
        pairing.offer("123456", Role::Operator, NOW).unwrap();
        for _ in 0..WRONG_TRIES_PER_ADDRESS_MAX {
            assert_eq!(pairing.redeem("000000", address(1), NOW), Err(PairRefused::WrongCode));
        }

        let locked = PairRefused::LockedOut { retry_after_ms: WRONG_TRY_COUNTS_MS - 1 };
        assert_eq!(pairing.redeem("123456", address(1), NOW.plus_ms(1)), Err(locked));
        assert_eq!(pairing.redeem("123456", address(2), NOW.plus_ms(1)), Ok(Role::Operator));
    }

    #[test]
    fn a_lock_out_ends_by_itself() {
        let mut pairing = Pairing::default();
        for _ in 0..WRONG_TRIES_PER_ADDRESS_MAX {
            let _ = pairing.redeem("000000", address(1), NOW);
        }
        let later = NOW.plus_ms(WRONG_TRY_COUNTS_MS);
        pairing.offer("123456", Role::Operator, later).unwrap();

        assert_eq!(pairing.redeem("123456", address(1), later), Ok(Role::Operator));
    }

    #[test]
    fn many_addresses_that_guess_lock_everybody_out() {
        let mut pairing = Pairing::default();
        pairing.offer("123456", Role::Operator, NOW).unwrap();
        for number in 0..WRONG_TRIES_MAX {
            let from = address(u8::try_from(number).unwrap());
            assert_eq!(pairing.redeem("000000", from, NOW), Err(PairRefused::WrongCode));
        }

        let told = pairing.redeem("123456", address(200), NOW);
        assert!(matches!(told, Err(PairRefused::LockedOut { .. })), "{told:?}");
    }

    #[test]
    fn the_addresses_of_one_ipv6_household_count_as_one() {
        let mut pairing = Pairing::default();
        for number in 0..WRONG_TRIES_PER_ADDRESS_MAX {
            let from = format!("2001:db8:0:7::{number:x}").parse().unwrap();
            assert_eq!(pairing.redeem("000000", from, NOW), Err(PairRefused::WrongCode));
        }

        let told = pairing.redeem("000000", "2001:db8:0:7::ff".parse().unwrap(), NOW);
        assert!(matches!(told, Err(PairRefused::LockedOut { .. })), "{told:?}");
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 168, 1, last])
    }
}
