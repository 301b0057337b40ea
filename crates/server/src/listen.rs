//! Listening: the port, TLS, and each connection's HTTP.
//!
//! **Invariant**: a peer that connects and sends nothing, or sends slowly, takes up a connection
//! for a bounded time only.
//!
//! Not here: what requests ask for (`api`), open sockets (`socket`).

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt as _;

use crate::door::Accepted;
use crate::house::{self, Guests};
use crate::stream::Stream;
use crate::tls::Tls;

/// The headers of a request must be whole by then.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// TLS must be agreed on by then.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// A pause after the system had no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The bytes that HTTP reads ahead of a request.
const HTTP_BUFFER_BYTES: usize = 64 * 1024;

/// The port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenFault {
    /// Somebody else has it.
    #[error(
        "{0} is in use by another program; stop that program, or choose another port with \
         --listen (port 0 picks a free one)"
    )]
    Busy(SocketAddr),
    /// This computer has no such address.
    #[error("{0} is not an address of this computer; choose another with --listen")]
    NotOurs(SocketAddr),
    /// The system reserves it.
    #[error("this user may not listen on {0}; choose a port above 1023 with --listen")]
    NotAllowed(SocketAddr),
    /// Something else.
    #[error("cannot listen on {address} ({detail}); choose another address with --listen")]
    Other {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        detail: String,
    },
}

/// Takes the port.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, ListenFault> {
    TcpListener::bind(address).await.map_err(|error| {
        let known = [
            (io::ErrorKind::AddrInUse, ListenFault::Busy(address)),
            (io::ErrorKind::AddrNotAvailable, ListenFault::NotOurs(address)),
            (io::ErrorKind::PermissionDenied, ListenFault::NotAllowed(address)),
        ];
        let fault = known.into_iter().find(|(kind, _)| *kind == error.kind());
        let other = || ListenFault::Other { address, detail: error.to_string() };
        fault.map_or_else(other, |(_, fault)| fault)
    })
}

/// This computer's address on its network, as far as it has one. Sends nothing.
pub(crate) fn lan_address() -> Option<IpAddr> {
    // Connecting a datagram socket only looks the route up; the address is one for documentation.
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    socket.connect(("192.0.2.1", 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified() && !address.is_loopback()).then_some(address)
}

/// Everything that accepting needs.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<Tls>,
    pub(crate) router: Router,
    pub(crate) guests: Arc<Guests>,
    pub(crate) closing: watch::Receiver<bool>,
    pub(crate) places: Arc<Semaphore>,
}

impl Listening {
    /// Accepts connections until the relay stops.
    pub(crate) async fn run(mut self) {
        loop {
            let next = async {
                let place = self.places.clone().acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((self.listener.accept().await?, place))
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                () = house::closed(&mut self.closing) => return,
            };
            let ((stream, peer), place) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Frames are small and flushed together: waiting for more only delays them.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection closed at once");
                continue;
            }
            let acceptor = self.tls.as_mut().map(|tls| tls.acceptor(Instant::now()));
            let guest = Arc::new(self.guests.enter(place));
            let (router, closing) = (self.router.clone(), self.closing.clone());
            tokio::spawn(async move {
                let accepted = Accepted { peer, secure: acceptor.is_some(), guest };
                let stream = match acceptor {
                    None => Some(Stream::Plain(stream)),
                    Some(acceptor) => handshake(&acceptor, stream).await,
                };
                if let Some(stream) = stream {
                    serve(stream, accepted, router, closing).await;
                }
            });
        }
    }
}

async fn handshake(acceptor: &tokio_rustls::TlsAcceptor, stream: TcpStream) -> Option<Stream> {
    match tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(Stream::Tls(Box::new(stream))),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

async fn serve(
    stream: Stream,
    accepted: Accepted,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(accepted.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HTTP_BUFFER_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = house::closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        // Of the peer's making, as a rule. The error names no path and no query.
        tracing::debug!(%error, "a connection ended with an error");
    }
}
