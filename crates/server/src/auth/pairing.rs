//! Pairing: six digits, valid once and for five minutes, in exchange for a device's token.
//!
//! **Invariant**: wrong codes are limited per address and in total, however many addresses try. A
//! locked-out address is refused even with the right code, so further guesses reveal nothing.
//!
//! Not here: making the code (`secret`) and the token (`auth`), HTTP (`api::pair`).

use std::collections::VecDeque;
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
/// How long a wrong try counts, and how long a lock-out lasts from the last of them.
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
    /// Who is locked out (`None`: everybody) and until when. Each takes several wrong tries, of
    /// which only so many are taken at once.
    locked: Vec<(Option<Neighbourhood>, Timestamp)>,
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
            self.note_wrong(from, now);
            return Err(PairRefused::WrongCode);
        };
        Ok(open.role)
    }

    fn forget(&mut self, now: Timestamp) {
        self.open.retain(|open| now < open.expires_at);
        self.wrong.retain(|(at, _)| now.ms_since(*at) < WRONG_TRY_COUNTS_MS);
        self.locked.retain(|(_, until)| now < *until);
    }

    fn note_wrong(&mut self, from: Neighbourhood, now: Timestamp) {
        self.wrong.push_back((now, from));
        let here = self.wrong.iter().filter(|(_, by)| *by == from).count();
        let until = now.plus_ms(WRONG_TRY_COUNTS_MS);
        if here >= WRONG_TRIES_PER_ADDRESS_MAX {
            self.locked.push((Some(from), until));
        }
        if self.wrong.len() >= WRONG_TRIES_MAX {
            self.locked.push((None, until));
        }
    }

    fn locked_for_ms(&self, from: Neighbourhood, now: Timestamp) -> Option<u64> {
        let concerned = self.locked.iter().filter(|(who, _)| who.is_none_or(|who| who == from));
        concerned.map(|(_, until)| until.ms_since(now)).max()
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
    fn a_lock_out_lasts_five_minutes_from_the_last_wrong_try() {
        let mut pairing = Pairing::default();
        let minute = |number: u64| NOW.plus_ms(number * 60_000);
        for number in 0..WRONG_TRIES_PER_ADDRESS_MAX as u64 {
            let _ = pairing.redeem("000000", address(1), minute(number));
        }
        for number in 5..9 {
            pairing.offer("123456", Role::Operator, minute(number));
            let told = pairing.redeem("123456", address(1), minute(number));
            let locked = PairRefused::LockedOut { retry_after_ms: (9 - number) * 60_000 };
            assert_eq!(told, Err(locked), "minute {number}");
        }
        pairing.offer("654321", Role::Operator, minute(9)).unwrap();
        assert_eq!(pairing.redeem("654321", address(1), minute(9)), Ok(Role::Operator));
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
