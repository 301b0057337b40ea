//! Reaching the relay: plain or over TLS with the system's certificates.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
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
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An open connection.
pub(super) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Knows the way to the relay.
pub(super) struct Dialer {
    request: Request,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// Checks the address, and reads the system's certificates where they are needed.
    pub(super) fn new(relay: &str, token: &str) -> Result<Self, Fault> {
        let wrong = || Fault::Address(relay.to_owned());
        let uri = address(relay).ok_or_else(wrong)?;
        let secure = uri.scheme_str() == Some("wss");
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let mut request = uri.into_client_request().map_err(|_| wrong())?;
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| wrong())?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let tls = if secure { Some(connector()?) } else { None };
        Ok(Self { request, host, port, tls })
    }

    /// Where the relay is.
    pub(super) fn address(&self) -> String {
        self.request.uri().to_string()
    }

    /// Opens a connection. Only a refused token is final.
    pub(super) async fn dial(&self) -> Result<Socket, Fault> {
        let late = io::Error::new(io::ErrorKind::TimedOut, "the relay did not answer");
        let failed = |error| Fault::disk(format!("connecting to {}", self.address()), error);
        timeout(DIAL_TIMEOUT, self.connect()).await.unwrap_or_else(|_| Err(failed(late)))
    }

    async fn connect(&self) -> Result<Socket, Fault> {
        let failed = |error| Fault::disk(format!("connecting to {}", self.address()), error);
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        tcp.set_nodelay(true).map_err(failed)?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone());
                let name = name.map_err(|_| Fault::Address(self.address()))?;
                Box::new(tls.connect(name, tcp).await.map_err(failed)?)
            }
        };
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

fn connector() -> Result<TlsConnector, Fault> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
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
}
