//! Connects to a relay, plain or over TLS: for proxies, and for any other program of this
//! workspace.
//!
//! **Invariant**: over TLS the relay's name is checked against the system's certificates and those
//! passed with `--tls-ca`; nothing turns the check off.
//!
//! Not here: when to retry (`shell`), the messages (`engine`).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::Method;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HOST, HeaderValue};
use tokio_tungstenite::tungstenite::http::uri::{Parts, PathAndQuery, Scheme, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, handshake::client::Request};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::Fault;

/// How long reaching the relay may take, all in all.
const DIAL_TIMEOUT: Duration = Duration::from_secs(15);
/// The relay's frames are small; one of this size is a mistake.
const FRAME_BYTES_MAX: usize = 8 << 20;
/// The path of proxies.
const PROXY_PATH: &str = "/ws/proxy";

/// Any stream that bytes go both ways on.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An open connection.
pub type Socket = WebSocketStream<Box<dyn Stream>>;

/// Knows the way to the relay.
pub struct Dialer {
    request: Request,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// Checks the address and, where they are needed, reads the certificates: the system's, and
    /// those in the PEM file `tls_ca`. An empty token is not shown.
    pub fn new(relay: &str, token: &str, tls_ca: Option<&Path>) -> Result<Self, Fault> {
        let wrong = || Fault::Address(relay.to_owned());
        let uri = address(relay).ok_or_else(wrong)?;
        let secure = uri.scheme_str() == Some("wss");
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let mut request = uri.into_client_request().map_err(|_| wrong())?;
        if !token.is_empty() {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
            request.headers_mut().insert(AUTHORIZATION, bearer.map_err(|_| Fault::NotAToken)?);
        }
        let tls = if secure { Some(connector(tls_ca)?) } else { None };
        Ok(Self { request, host, port, tls })
    }

    /// Where the relay is.
    pub fn address(&self) -> String {
        self.request.uri().to_string()
    }

    /// Opens a connection. Only a refused token is final.
    pub async fn dial(&self) -> Result<Socket, Fault> {
        let late = io::Error::new(io::ErrorKind::TimedOut, "the relay did not respond in time");
        let failed = |error| Fault::disk(format!("connecting to {}", self.address()), error);
        timeout(DIAL_TIMEOUT, self.connect()).await.unwrap_or_else(|_| Err(failed(late)))
    }

    /// A request of the relay's HTTP API with the token, for a stream of [`Dialer::open`]; `None`
    /// if it is no path.
    pub fn get(&self, path: &str) -> Option<Request> {
        self.ask(Method::GET, path)
    }

    /// The same, to hand something over.
    pub fn post(&self, path: &str) -> Option<Request> {
        self.ask(Method::POST, path)
    }

    fn ask(&self, method: Method, path: &str) -> Option<Request> {
        // Behind a reverse proxy everything may lie below a path of its own.
        let own = self.request.uri().path();
        let below = own.rfind("/ws").map_or("", |at| &own[..at]);
        let mut request = Request::builder().method(method).uri(format!("{below}{path}"));
        for name in [HOST, AUTHORIZATION] {
            if let Some(value) = self.request.headers().get(&name) {
                request = request.header(name, value);
            }
        }
        request.body(()).ok()
    }

    /// The bytes alone, for plain HTTP requests. The caller bounds the time.
    pub async fn open(&self) -> Result<Box<dyn Stream>, Fault> {
        let failed = |error| Fault::disk(format!("connecting to {}", self.address()), error);
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        tcp.set_nodelay(true).map_err(failed)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(tcp)) };
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|_| Fault::Address(self.address()))?;
        let opened = tls.connect(name, tcp).await;
        Ok(Box::new(opened.map_err(|error| failed(advised(error)))?))
    }

    async fn connect(&self) -> Result<Socket, Fault> {
        let failed = |error| Fault::disk(format!("connecting to {}", self.address()), error);
        let stream = self.open().await?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        match client_async_with_config(self.request.clone(), stream, Some(limits)).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) if matches!(response.status().as_u16(), 401 | 403) => {
                let status = response.status().as_u16();
                Err(Fault::Refused { address: self.address(), status })
            }
            Err(error) => Err(failed(io::Error::other(error))),
        }
    }
}

/// Without the token.
impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// `http` is `ws`, `https` is `wss`, no path is the path of proxies.
fn address(relay: &str) -> Option<Uri> {
    let uri: Uri = relay.parse().ok()?;
    let scheme = match uri.scheme_str()? {
        "ws" | "http" => "ws",
        "wss" | "https" => "wss",
        _ => return None,
    };
    let mut parts = Parts::from(uri);
    parts.authority.as_ref()?;
    parts.scheme = Some(Scheme::try_from(scheme).ok()?);
    if parts.path_and_query.as_ref().is_none_or(|path| path == "/") {
        parts.path_and_query = Some(PathAndQuery::from_static(PROXY_PATH));
    }
    Uri::from_parts(parts).ok()
}

fn connector(tls_ca: Option<&Path>) -> Result<TlsConnector, Fault> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = tls_ca {
        for certificate in named(path)? {
            let added = roots.add(certificate);
            added.map_err(|error| Fault::trust_file(path, &error))?;
        }
    }
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let told: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(Fault::Certificates(told.join("; ")));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::Certificates(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificates of a file that somebody named: at least one, and all of them whole.
fn named(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| Fault::trust_file(path, &error))?;
    if read.is_empty() {
        return Err(Fault::trust_file(path, &"it contains no certificate"));
    }
    Ok(read)
}

/// What to do about a certificate that nobody here trusts.
fn advised(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let is_stranger =
        matches!(inner, Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)));
    if is_stranger {
        let words = "certificate signed by an unknown authority; if it is self-signed, pass it \
                     with --tls-ca FILE";
        return io::Error::new(error.kind(), words);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_given_as_people_know_it() {
        for (given, meant) in [
            ("http://127.0.0.1:4780", "ws://127.0.0.1:4780/ws/proxy"),
            ("https://relay.example/", "wss://relay.example/ws/proxy"),
            ("ws://[::1]:4780/ws", "ws://[::1]:4780/ws"),
            ("wss://relay.example/far/ws/proxy", "wss://relay.example/far/ws/proxy"),
        ] {
            assert_eq!(address(given).unwrap().to_string(), meant);
        }
        for wrong in ["relay.example", "ftp://relay.example", "", "ws://"] {
            assert!(address(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "no certificate").unwrap();
        for path in [empty, folder.path().join("missing.pem")] {
            let fault = Dialer::new("https://relay.example", "", Some(&path)).unwrap_err();
            assert!(fault.to_string().contains(path.to_str().unwrap()), "{fault}");
        }
    }

    #[test]
    fn requests_lie_beside_the_socket_and_show_the_token() {
        for (relay, meant) in [
            ("http://relay.example", "/v1/uploads/u"),
            ("ws://relay.example/far/ws/proxy", "/far/v1/uploads/u"),
            ("ws://relay.example:81/ws", "/v1/uploads/u"),
        ] {
            let request = Dialer::new(relay, "t", None).unwrap().get("/v1/uploads/u").unwrap();
            assert_eq!(request.uri(), meant);
            assert_eq!(request.headers()[AUTHORIZATION], "Bearer t");
            assert!(request.headers()[HOST].to_str().unwrap().starts_with("relay.example"));
        }
    }

    #[test]
    fn the_token_is_not_shown() {
        let dialer = Dialer::new("http://relay.example", "s3cret", None).unwrap();
        assert!(!format!("{dialer:?}").contains("s3cret"));
    }
}
