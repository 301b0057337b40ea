//! Settings of the server: its address, who may connect, and its limits.
//!
//! Not here: flags and files that set it (`farhelm`), times of sessions (`domain`).

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::door::Origin;

/// Where the relay listens, unless told otherwise.
pub const DEFAULT_PORT: u16 = 4780;

/// Everything that can be set. By default: loopback, no TLS, no other origins.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// HTTPS from these files.
    pub tls: Option<TlsFiles>,
    /// The address that people use, when it is not the one listened on.
    pub public_url: Option<PublicUrl>,
    /// Further origins whose pages may connect.
    pub allow_origins: Vec<Origin>,
    /// Whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// How much fits through.
    pub limits: Limits,
}

/// A certificate chain and its key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The chain, leaf first.
    pub certificate: PathBuf,
    /// The key of the leaf.
    pub key: PathBuf,
}

/// Named bounds of the door. What happens at each is said there.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// One WebSocket frame or message; more closes the socket, 1009.
    pub max_frame_bytes: usize,
    /// The words of one send; more is refused `message_too_large`.
    pub max_content_bytes: usize,
    /// One upload; more is refused 413.
    pub max_upload_bytes: u64,
    /// Connections of any kind; more wait in the system's backlog.
    pub max_connections: usize,
    /// Sockets without a credential that have not said anything; more are refused 503.
    pub max_silent_strangers: usize,
    /// Sockets with a credential that have not said anything; more are refused 503.
    pub max_silent_friends: usize,
    /// Uploads at the same time; more are refused 503.
    pub max_uploads_at_once: usize,
    /// How long a stop waits for what is under way.
    pub stop_within_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_frame_bytes: 5 * 1024 * 1024,
            max_content_bytes: 100 * 1024,
            max_upload_bytes: 50 * 1024 * 1024,
            max_connections: 65_536,
            max_silent_strangers: 2_048,
            max_silent_friends: 16_384,
            max_uploads_at_once: 16,
            stop_within_ms: 5_000,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)),
            tls: None,
            public_url: None,
            allow_origins: vec![],
            trusted_proxies: vec![],
            limits: Limits::default(),
        }
    }
}

/// An `http://` or `https://` address without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: Origin,
    text: String,
}

/// Not such an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an address like https://farhelm.example.org: it needs http:// or https://, a host, \
     and no path"
)]
pub struct NotAPublicUrl(String);

impl PublicUrl {
    /// The origin of pages served there.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl std::str::FromStr for PublicUrl {
    type Err = NotAPublicUrl;

    fn from_str(raw: &str) -> Result<Self, NotAPublicUrl> {
        let text = raw.trim().trim_end_matches('/');
        let origin = text.parse().map_err(|_| NotAPublicUrl(raw.to_owned()))?;
        Ok(Self { origin, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_address_without_a_path() {
        let url: PublicUrl = "https://farhelm.example.org/".parse().unwrap();

        assert_eq!(url.as_str(), "https://farhelm.example.org");
        for refused in ["farhelm.example.org", "ftp://x", "https://", "https://x/y", "https://u@x"]
        {
            assert!(refused.parse::<PublicUrl>().is_err(), "{refused}");
        }
    }
}
