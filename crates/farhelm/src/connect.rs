//! The way to the relay, for requests and for sockets.
//!
//! Not here: which relay (`discovery`). Not here yet: TLS. The proxy dials `https://` relays; these
//! commands say that they cannot.

use client::{Dial, DialFault};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::discovery::Finder;
use crate::ready::socket_url;

const PORT: u16 = 80;

/// Opens a connection for HTTP.
pub(crate) async fn stream(url: &str) -> Result<TcpStream, String> {
    let Some(("http", authority)) = url.split_once("://") else {
        return Err("this command speaks plain http only; run it where the relay runs".to_owned());
    };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { authority.to_owned() } else { format!("{authority}:{PORT}") };
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Opens native sockets to wherever the relay is by then.
#[derive(Debug)]
pub(crate) struct NativeDial {
    finder: Finder,
}

impl NativeDial {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder }
    }
}

impl Dial for NativeDial {
    type Socket = WebSocketStream<TcpStream>;

    async fn dial(&mut self) -> Result<Self::Socket, DialFault> {
        // A relay that is being restarted has no relay.json for a moment.
        let found = self.finder.find();
        let found = found.map_err(|problem| DialFault::Away(problem.words().to_owned()))?;
        let refused = |words: String| DialFault::Refused(words);
        let request = socket_url(&found.url, "/ws/native").into_client_request();
        let mut request = request.map_err(|error| refused(error.to_string()))?;
        let bearer = HeaderValue::from_str(&format!("Bearer {}", found.token));
        let bearer = bearer.map_err(|_| refused("the token is not one".to_owned()))?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let stream = stream(&found.url).await.map_err(DialFault::Away)?;
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(answer)) if matches!(answer.status().as_u16(), 401 | 403) => {
                let status = answer.status().as_u16();
                Err(refused(format!("the relay at {} refused the token ({status})", found.url)))
            }
            Err(error) => Err(DialFault::Away(error.to_string())),
        }
    }
}
