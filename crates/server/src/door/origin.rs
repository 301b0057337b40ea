//! Origins: which pages may connect, and by which host names this relay may be addressed.
//!
//! A page of another site runs in the person's browser and can reach loopback, but the browser
//! sends its origin. A site that points its own host name at loopback is recognised by the host
//! name in its requests.
//!
//! Not here: which headers carry them (`door`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use domain::Timestamp;

use crate::config::Config;

/// Scheme, host and port of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    secure: bool,
    authority: Authority,
}

/// Host and port, the port always said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Authority {
    /// Lower case; an IPv6 address without its brackets.
    host: String,
    port: u16,
}

/// Not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an origin; give a scheme and a host only, like https://board.example.org")]
pub struct NotAnOrigin(String);

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(raw: &str) -> Result<Self, NotAnOrigin> {
        let parse = || {
            let (scheme, rest) = raw.split_once("://")?;
            let secure = match scheme.to_ascii_lowercase().as_str() {
                "https" => true,
                "http" => false,
                _ => return None,
            };
            Some(Self { secure, authority: Authority::parse(rest, secure)? })
        };
        parse().ok_or_else(|| NotAnOrigin(raw.to_owned()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.secure { ("https", 443) } else { ("http", 80) };
        let Authority { host, port } = &self.authority;
        match (host.contains(':'), *port == default) {
            (true, true) => write!(f, "{scheme}://[{host}]"),
            (true, false) => write!(f, "{scheme}://[{host}]:{port}"),
            (false, true) => write!(f, "{scheme}://{host}"),
            (false, false) => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

impl Authority {
    fn parse(raw: &str, secure: bool) -> Option<Self> {
        let default = if secure { 443 } else { 80 };
        let (host, port) = match raw.strip_prefix('[') {
            Some(bracketed) => {
                let (address, after) = bracketed.split_once(']')?;
                address.parse::<std::net::Ipv6Addr>().ok()?;
                (address, after.strip_prefix(':').or(after.is_empty().then_some(""))?)
            }
            None => raw.split_once(':').unwrap_or((raw, "")),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
        let fits = !host.is_empty() && host.bytes().all(plain);
        let port = if port.is_empty() { default } else { port.parse().ok()? };
        fits.then(|| Self { host: host.to_ascii_lowercase(), port })
    }

    fn is_loopback(&self) -> bool {
        let host = self.host.as_str();
        let address = host.parse::<IpAddr>();
        host == "localhost"
            || host.ends_with(".localhost")
            || address.is_ok_and(|address| address.is_loopback())
    }
}

/// Which origins and names are welcome.
#[derive(Debug, Clone)]
pub(crate) struct Welcome {
    named: Vec<Origin>,
    /// Only this computer can reach the relay, so only its own names are plausible.
    loopback_only: bool,
}

/// Why a request may not come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unwelcome {
    Host,
    /// The page's origin; `None` for a page that has none that could be named.
    Origin(Option<Origin>),
}

/// How often refused pages of an origin are logged. A page tries again for ever, and anybody's may.
const LOGGED_EVERY_MS: u64 = 60_000;

/// Origins whose refused pages are logged apart from each other; those beyond share one line.
/// A stranger may have pages of many origins.
const ORIGINS_MAX: usize = 64;

/// Log lines about refused pages: each origin has its own, so that a stranger's page that tries
/// again all the time does not hide the page that a person wants to let in.
#[derive(Debug, Default)]
pub(crate) struct RefusedPages(Mutex<LogLines>);

#[derive(Debug, Default)]
struct LogLines {
    /// `None`: pages without an origin.
    by_origin: BTreeMap<Option<Origin>, LogLine>,
    /// Pages of origins beyond the bound.
    of_others: Option<LogLine>,
}

/// The last line about pages of an origin.
#[derive(Debug)]
struct LogLine {
    at: Timestamp,
    /// Refusals since that line.
    unlogged: u64,
}

impl RefusedPages {
    /// Logs that a page was refused, and what would let it in.
    pub(crate) fn log(&self, unwelcome: &Unwelcome, now: Timestamp) {
        let Unwelcome::Origin(origin) = unwelcome else { return };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unlogged) = lines.take_unlogged(origin.as_ref(), now) else { return };
        drop(lines);
        if let Some(origin) = origin {
            tracing::warn!(
                unlogged,
                "refused a page from {origin}; to allow it, start the relay with --allow-origin \
                 {origin}"
            );
        } else {
            tracing::warn!(
                unlogged,
                "refused a page without an origin (a local file, or sandboxed)"
            );
        }
    }
}

impl LogLines {
    /// How many refusals had no line of their own, if a line is due now.
    fn take_unlogged(&mut self, origin: Option<&Origin>, now: Timestamp) -> Option<u64> {
        let origin = origin.cloned();
        if !self.by_origin.contains_key(&origin) && self.by_origin.len() >= ORIGINS_MAX {
            self.by_origin.retain(|_, line| !line.is_old(now));
        }
        let has_room = self.by_origin.len() < ORIGINS_MAX;
        if let Some(line) = self.by_origin.get_mut(&origin) {
            return line.take_unlogged(now);
        }
        if has_room {
            self.by_origin.insert(origin, LogLine { at: now, unlogged: 0 });
            return Some(0);
        }
        if let Some(line) = &mut self.of_others {
            return line.take_unlogged(now);
        }
        self.of_others = Some(LogLine { at: now, unlogged: 0 });
        Some(0)
    }
}

impl LogLine {
    fn is_old(&self, now: Timestamp) -> bool {
        now >= self.at.plus_ms(LOGGED_EVERY_MS)
    }

    fn take_unlogged(&mut self, now: Timestamp) -> Option<u64> {
        if !self.is_old(now) {
            self.unlogged += 1;
            return None;
        }
        self.at = now;
        Some(std::mem::take(&mut self.unlogged))
    }
}

/// What a welcome page's origin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// No browser, or the relay's own page.
    Own,
    /// A page served elsewhere, by a welcome origin.
    Elsewhere,
}

impl Welcome {
    pub(crate) fn new(config: &Config, address: SocketAddr) -> Self {
        let public = config.public_url.iter().map(|url| url.origin().clone());
        let named = public.chain(config.allow_origins.iter().cloned()).collect();
        Self { named, loopback_only: address.ip().is_loopback() }
    }

    /// Looks at the name that was called and at the page that calls.
    pub(crate) fn judge(
        &self,
        host: Option<&str>,
        origin: Option<&str>,
        secure: bool,
    ) -> Result<Page, Unwelcome> {
        let called = host.and_then(|host| Authority::parse(host, secure));
        if self.loopback_only && host.is_some() {
            let called = called.as_ref().ok_or(Unwelcome::Host)?;
            let known = |named: &Origin| named.authority.host == called.host;
            if !called.is_loopback() && !self.named.iter().any(known) {
                return Err(Unwelcome::Host);
            }
        }
        let Some(origin) = origin else { return Ok(Page::Own) };
        let origin: Origin = origin.parse().map_err(|_| Unwelcome::Origin(None))?;
        if origin.secure == secure && Some(&origin.authority) == called.as_ref() {
            return Ok(Page::Own);
        }
        let named = self.named.contains(&origin);
        if named { Ok(Page::Elsewhere) } else { Err(Unwelcome::Origin(Some(origin))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that are logged when pages of these origins are refused at these times.
    fn logged(refused: &[(&str, u64)]) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let pages = RefusedPages::default();
            for (origin, at_ms) in refused {
                pages.log(&Unwelcome::Origin(origin.parse().ok()), Timestamp(*at_ms));
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[derive(Clone, Default)]
    struct Lines(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_refused_page_is_logged_once_a_minute_and_does_not_hide_another() {
        let (evil, own) = ("https://evil.example", "http://localhost:5173");
        let lines = logged(&[
            (evil, 1_000),
            (evil, 2_000),
            (own, 3_000),
            ("null", 4_000),
            (evil, 60_999),
            (evil, 61_000),
            (own, 62_999),
        ]);
        let about = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert_eq!(about(&format!("--allow-origin {own}")), 1, "{lines:#?}");
        assert_eq!(about("without an origin"), 1, "{lines:#?}");
        assert_eq!(about(&format!("--allow-origin {evil}")), 2, "{lines:#?}");
        assert!(lines[3].contains("unlogged=2"), "{lines:#?}");
    }

    #[test]
    fn pages_of_too_many_origins_share_one_line_a_minute() {
        let many: Vec<String> =
            (0..ORIGINS_MAX + 10).map(|n| format!("https://s{n}.example")).collect();
        let mut refused: Vec<(&str, u64)> = many.iter().map(|it| (it.as_str(), 1_000)).collect();
        assert_eq!(logged(&refused).len(), ORIGINS_MAX + 1);
        // Later there is room again.
        refused.push((&many[ORIGINS_MAX + 5], 61_000));
        let lines = logged(&refused);
        assert!(lines.last().unwrap().contains(&many[ORIGINS_MAX + 5]), "{lines:#?}");
        assert_eq!(lines.len(), ORIGINS_MAX + 2);
    }

    fn welcome(listen: &str, public: Option<&str>, allowed: &[&str]) -> Welcome {
        let public_url = public.map(|url| url.parse().unwrap());
        let allow_origins = allowed.iter().map(|origin| origin.parse().unwrap()).collect();
        let config = Config { public_url, allow_origins, ..Config::default() };
        Welcome::new(&config, listen.parse().unwrap())
    }

    #[test]
    fn an_origin_is_compared_with_its_port_and_without_its_case() {
        let origin = |raw: &str| raw.parse::<Origin>().unwrap();

        assert_eq!(origin("https://Example.org"), origin("https://example.org:443"));
        assert_ne!(origin("http://example.org"), origin("https://example.org"));
        assert_eq!(origin("http://[::1]:4780").to_string(), "http://[::1]:4780");
        for refused in ["null", "example.org", "https://a/b", "https://a:x", "https://[zz]", ""] {
            assert!(refused.parse::<Origin>().is_err(), "{refused}");
        }
    }

    #[test]
    fn the_relays_own_page_and_no_page_at_all_are_welcome() {
        let welcome = welcome("127.0.0.1:4780", None, &[]);
        let own = Some("http://localhost:4780");

        assert_eq!(welcome.judge(Some("localhost:4780"), own, false), Ok(Page::Own));
        assert_eq!(welcome.judge(Some("127.0.0.1:4780"), None, false), Ok(Page::Own));
        assert_eq!(welcome.judge(None, None, false), Ok(Page::Own));
    }

    #[test]
    fn another_sites_page_is_not_welcome() {
        let welcome = welcome("127.0.0.1:4780", None, &[]);
        let host = Some("127.0.0.1:4780");

        for origin in
            ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:4780"]
        {
            assert_eq!(
                welcome.judge(host, Some(origin), false),
                Err(Unwelcome::Origin(origin.parse().ok())),
                "{origin}"
            );
        }
    }

    #[test]
    fn a_name_that_was_pointed_at_loopback_is_not_welcome() {
        let welcome = welcome("127.0.0.1:4780", None, &[]);
        let rebound = Some("evil.example:4780");

        let told = welcome.judge(rebound, Some("http://evil.example:4780"), false);
        assert_eq!(told, Err(Unwelcome::Host));
        assert_eq!(welcome.judge(rebound, None, false), Err(Unwelcome::Host));
    }

    #[test]
    fn the_public_url_and_allowed_origins_are_welcome() {
        let welcome =
            welcome("127.0.0.1:4780", Some("https://far.example"), &["https://board.example"]);

        let called = Some("far.example");
        assert_eq!(welcome.judge(called, Some("https://far.example"), true), Ok(Page::Own));
        let elsewhere = welcome.judge(called, Some("https://board.example"), true);
        assert_eq!(elsewhere, Ok(Page::Elsewhere));
        // Behind a proxy whose headers are not believed, the scheme is not known to be secure.
        assert_eq!(welcome.judge(called, Some("https://far.example"), false), Ok(Page::Elsewhere));
    }

    #[test]
    fn on_the_network_the_relay_answers_to_any_name() {
        let welcome = welcome("0.0.0.0:4780", None, &[]);
        let own = Some("http://attic.lan:4780");

        assert_eq!(welcome.judge(Some("attic.lan:4780"), own, false), Ok(Page::Own));
        let other = welcome.judge(Some("attic.lan:4780"), Some("http://other.lan"), false);
        assert_eq!(other, Err(Unwelcome::Origin("http://other.lan".parse().ok())));
    }
}
