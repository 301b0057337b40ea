//! Starts and stops the server.
//!
//! **Invariant**: a stop closes every open socket (1001) and finishes within a bounded time.
//!
//! Not here: each connection (`listen`), each request (`api`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::auth::Auth;
use crate::config::Config;
use crate::door::{RefusedPages, Welcome};
use crate::house::{Guests, House, Rooms};
use crate::inside::Inside;
use crate::listen::{self, ListenFault, Listening};
use crate::shelf::Shelf;
use crate::tls::{Tls, TlsFault};

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The port.
    #[error(transparent)]
    Listen(#[from] ListenFault),
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsFault),
}

/// A server that has its port and does not serve yet.
pub struct Bound {
    config: Config,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

/// A server that serves.
pub struct Running {
    address: SocketAddr,
    base: String,
    guests: Arc<Guests>,
    closing: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    stop_within: Duration,
}

/// The link that a person opens on the device to pair. The code is in the fragment, which no
/// server and no log ever sees.
pub fn pairing_link(base: &str, code: &str) -> String {
    format!("{base}/#pair={code}")
}

/// Takes the port and reads the certificate: what can go wrong about a start goes wrong here.
pub async fn bind(config: Config) -> Result<Bound, StartFault> {
    let tls = config.tls.clone().map(Tls::open).transpose()?;
    let listener = listen::bind(config.listen).await?;
    let address = listener.local_addr().map_err(|error| ListenFault::Other {
        address: config.listen,
        detail: error.to_string(),
    })?;
    Ok(Bound { config, listener, address, tls })
}

impl Bound {
    /// Where it listens, with the port that was picked.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether other computers can reach it.
    pub fn is_exposed(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    /// The address for programs on this computer, without a slash at its end.
    pub fn local_url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        self.url_at(ip)
    }

    /// The address that people use: the public one, else that on the network, else the local one.
    pub fn public_url(&self) -> String {
        if let Some(url) = &self.config.public_url {
            return url.as_str().to_owned();
        }
        let lan = listen::lan_address().filter(|_| self.address.ip().is_unspecified());
        lan.map_or_else(|| self.local_url(), |ip| self.url_at(ip))
    }

    /// What a person must know before others can reach the relay; `None` on loopback.
    pub fn warning(&self) -> Option<String> {
        let reach = format!("Other computers can reach this relay at {}", self.public_url());
        let secret = self.tls.is_some()
            || self
                .config
                .public_url
                .as_ref()
                .is_some_and(|url| url.as_str().starts_with("https:"));
        let words = if secret {
            format!("{reach}. Every device still needs a token.")
        } else {
            format!(
                "{reach}, without encryption: anyone on that network can read the traffic. Use \
                 --tls-cert and --tls-key, or a private network."
            )
        };
        self.is_exposed().then_some(words)
    }

    /// Serves until it is stopped.
    pub fn serve(self, auth: Auth, uploads: Shelf, inside: Arc<dyn Inside>) -> Running {
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
        let base = self.public_url();
        let (closing, closed) = watch::channel(false);
        let limits = self.config.limits;
        let guests = Arc::new(Guests::default());
        let house = House::new(Rooms {
            auth,
            inside,
            shelf: uploads,
            welcome: Welcome::new(&self.config, self.address),
            refused_pages: RefusedPages::default(),
            trusted_proxies: self.config.trusted_proxies.clone(),
            limits,
            base: base.clone(),
            silent_strangers: Arc::new(Semaphore::new(limits.max_silent_strangers)),
            silent_friends: Arc::new(Semaphore::new(limits.max_silent_friends)),
            uploads_at_once: Arc::new(Semaphore::new(limits.max_uploads_at_once)),
            guests: guests.clone(),
            closing: closed.clone(),
            started: Instant::now(),
        });
        let listening = Listening {
            listener: self.listener,
            tls: self.tls,
            router: crate::api::router(house),
            guests: guests.clone(),
            closing: closed,
            places: Arc::new(Semaphore::new(limits.max_connections)),
        };
        let accepting = tokio::spawn(listening.run());
        let stop_within = Duration::from_millis(limits.stop_within_ms);
        Running { address: self.address, base, guests, closing, accepting, stop_within }
    }

    fn url_at(&self, ip: IpAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(ip, self.address.port()))
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that people use, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Takes no more connections, tells every open socket, and waits a bounded time for what is
    /// under way. True when everything ended by itself.
    pub async fn stop(self) -> bool {
        self.closing.send_replace(true);
        let _ = self.accepting.await;
        tokio::time::timeout(self.stop_within, self.guests.gone()).await.is_ok()
    }
}
