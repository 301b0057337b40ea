//! Checks debug port addresses and finds the browser's WebSocket.
//!
//! **Invariant:** only this machine is contacted. The host is checked by name, and again by the
//! peer address of the connection.
//!
//! Not here: talking over the socket (`connection`).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Fault;

/// How long a browser may take to say where its socket is.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// The answer is a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A debug port of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Reads `127.0.0.1:9222`, `[::1]:9222` or `localhost:9222`.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = || Fault::NotLoopback(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_here = bare.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_here || (bare == host && host.contains(':')) {
            return Err(wrong());
        }
        Ok(Self { host: bare.to_owned(), port })
    }

    /// As it is written in an address.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            return format!("[{}]:{}", self.host, self.port);
        }
        format!("{}:{}", self.host, self.port)
    }

    /// A connection to it, which is certainly to this machine.
    pub(crate) async fn open(&self) -> Result<TcpStream, Fault> {
        let unreachable = |error: std::io::Error| self.unreachable(&error);
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(ASK_TIMEOUT, connecting)
            .await
            .map_err(|_| self.unreachable(&"connecting took too long"))?
            .map_err(unreachable)?;
        // `localhost` is only a name, which the system's list of hosts may give to anybody.
        let peer = stream.peer_addr().map_err(unreachable)?;
        if !peer.ip().is_loopback() {
            return Err(Fault::NotLoopback(SocketAddr::to_string(&peer)));
        }
        stream.set_nodelay(true).map_err(unreachable)?;
        Ok(stream)
    }

    /// The path of the browser's own socket.
    pub(crate) async fn socket_path(&self) -> Result<String, Fault> {
        let asked = timeout(ASK_TIMEOUT, self.ask_version()).await;
        let body = asked.map_err(|_| self.unreachable(&"it took too long to answer"))??;
        let version: Value =
            serde_json::from_str(&body).map_err(|_| self.strange("the response is not JSON"))?;
        let url = version["webSocketDebuggerUrl"].as_str();
        let url = url.ok_or_else(|| self.strange("the response has no webSocketDebuggerUrl"))?;
        // Only the path is taken: the rest is where we are connected to already.
        let after = url.split_once("://").map_or(url, |(_, after)| after);
        let path = after.find('/').map(|at| &after[at..]);
        let is_path = |path: &&str| path.bytes().all(|byte| byte.is_ascii_graphic());
        let path = path
            .filter(is_path)
            .ok_or_else(|| self.strange("its WebSocket address has no path"))?;
        Ok(path.to_owned())
    }

    async fn ask_version(&self) -> Result<String, Fault> {
        let mut stream = self.open().await?;
        let request = format!(
            "GET /json/version HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.authority()
        );
        let unreachable = |error: std::io::Error| self.unreachable(&error);
        stream.write_all(request.as_bytes()).await.map_err(unreachable)?;
        let mut answer = Vec::new();
        loop {
            let count = stream.read_buf(&mut answer).await.map_err(unreachable)?;
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                if !head.lines().next().is_some_and(|line| line.contains(" 200")) {
                    return Err(self.strange(head.lines().next().unwrap_or_default()));
                }
                let length = content_length(head);
                if length.is_some_and(|length| body.len() >= length) || count == 0 {
                    return Ok(body.to_owned());
                }
            } else if count == 0 {
                return Err(self.strange("the response is incomplete"));
            }
            if answer.len() > ANSWER_BYTES_MAX {
                return Err(self.strange("the response is too large"));
            }
        }
    }

    /// Nobody answers here.
    pub(crate) fn unreachable(&self, detail: &dyn std::fmt::Display) -> Fault {
        Fault::Unreachable { address: self.authority(), detail: detail.to_string() }
    }

    /// Somebody else answers here.
    pub(crate) fn strange(&self, detail: &str) -> Fault {
        Fault::NotABrowser { address: self.authority(), detail: detail.to_owned() }
    }
}

fn content_length(head: &str) -> Option<usize> {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    head.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn only_ports_of_this_machine_are_taken() {
        for fine in ["127.0.0.1:9222", "127.0.0.9:1", "localhost:9222", "[::1]:9222"] {
            assert_eq!(Address::parse(fine).unwrap().authority(), fine);
        }
        let refused = [
            "192.168.0.2:9222",
            "example.org:9222",
            "127.0.0.1",
            "127.0.0.1:0",
            "::1:9222",
            "127.0.0.1:99999",
            "127.0.0.1.example.org:9222",
            "0.0.0.0:9222",
            "",
            "[::]:9222",
            "user@localhost:9222",
        ];
        for other in refused {
            assert_eq!(Address::parse(other), Err(Fault::NotLoopback(other.to_owned())), "{other}");
        }
    }

    async fn answered(answer: &'static str) -> Result<String, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let count = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..count]).to_ascii_lowercase();
            assert!(!request.contains("origin:"), "{request}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        tokio::join!(address.socket_path(), serve).0
    }

    #[tokio::test]
    async fn the_socket_of_an_answer_is_taken_by_its_path_alone() {
        let path = answered(
            "HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n\
             {\"webSocketDebuggerUrl\":\"ws://example.org:1/devtools/browser/abc\"}",
        );
        assert_eq!(path.await.as_deref(), Ok("/devtools/browser/abc"));
    }

    #[tokio::test]
    async fn other_programs_are_told_from_browsers() {
        for answer in
            ["HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n{}", "220 hello\r\n"]
        {
            assert!(matches!(answered(answer).await, Err(Fault::NotABrowser { .. })), "{answer}");
        }
    }
}
