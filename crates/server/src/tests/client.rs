//! A minimal HTTP client for the tests.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) struct Ask {
    address: SocketAddr,
    head: String,
    host: String,
    body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Ask {
    pub(crate) fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        let head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        Self { address, head, host: address.to_string(), body: vec![] }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.extend([name, ": ", value, "\r\n"]);
        self
    }

    pub(crate) fn host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    pub(crate) async fn send(self) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        self.send_over(stream).await
    }

    pub(crate) async fn send_over(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Reply {
        let Self { head, host, body, .. } = self;
        let mut bytes = format!("{head}host: {host}\r\ncontent-length: {}\r\n\r\n", body.len());
        bytes.shrink_to_fit();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = vec![];
        // A TLS peer may end without saying so; the answer's length tells whether it is whole.
        let _ = stream.read_to_end(&mut answer).await;
        Reply::parse(&answer)
    }
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("no answer");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut reply = Self { status, headers, body: bytes[end + 4..].to_vec() };
        if reply.header("transfer-encoding") == Some("chunked") {
            reply.body = unchunk(&reply.body);
        }
        reply
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Status and code of an error, after a look at its shape.
    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        let error = &body["error"];
        assert!(error["message"].as_str().is_some_and(|words| words.len() > 8), "{body}");
        (self.status, error["code"].as_str().unwrap().to_owned())
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = vec![];
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").expect("cut off");
        let length = std::str::from_utf8(&rest[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 2 + length + 2..];
    }
}
