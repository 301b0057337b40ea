//! A few requests to the relay's HTTP API.
//!
//! **Invariant**: every response is bounded in size and time, no matter who sends it.
//!
//! Not here: addresses and TLS (`connect`), what is requested (`commands`).

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use proxy::dial::Stream;
use serde_json::Value;

use crate::connect;
use crate::discovery::{Finder, Found};
use crate::problem::Problem;

/// A relay that answers nothing for so long is away.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// An answer that is larger is none of ours.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why there is no answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HttpFault {
    /// Nobody is there, or it is no relay.
    Silent(String),
    /// The relay said no.
    Refused {
        /// The HTTP status.
        status: u16,
        /// A stable code.
        code: String,
        /// In its own words.
        message: String,
    },
}

/// Asks the relay and takes its JSON.
pub(crate) async fn ask(
    finder: &Finder,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, Problem> {
    let found = finder.find()?;
    ask_at(&found, method, path, body).await.map_err(|fault| match fault {
        HttpFault::Silent(error) => finder.silent(&found.url, &error),
        HttpFault::Refused { message, .. } => Problem::new(message),
    })
}

/// The same, for whoever wants to tell the reasons apart.
pub(crate) async fn ask_at(
    found: &Found,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, HttpFault> {
    let asked = tokio::time::timeout(ANSWER_WITHIN, exchange(found, method, path, body));
    asked
        .await
        .unwrap_or_else(|_| Err(HttpFault::Silent("the relay did not respond in time".to_owned())))
}

async fn exchange(
    found: &Found,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, HttpFault> {
    let silent = |error: &dyn std::fmt::Display| HttpFault::Silent(error.to_string());
    let stream = connect::stream(found).await.map_err(HttpFault::Silent)?;
    let host = found.url.split_once("://").map_or(found.url.as_str(), |(_, host)| host);
    let mut request = Request::builder().method(method).uri(path).header(HOST, host);
    if !found.token.is_empty() {
        request = request.header(AUTHORIZATION, format!("Bearer {}", found.token));
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    let request = request.body(Full::new(body)).map_err(|error| silent(&error))?;
    let answered = converse(stream, request, ANSWER_BYTES_MAX).await;
    let (status, body) = answered.map_err(HttpFault::Silent)?;
    read(status, &body)
}

/// Says a request on a stream of its own and takes the answer. The caller bounds the time.
pub(crate) async fn converse(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    answer_bytes_max: usize,
) -> Result<(StatusCode, Bytes), String> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), answer_bytes_max).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok((status, body))
    };
    // The connection does the work while the answer is awaited; it ends with this request.
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        ended = connection => {
            // Whoever hangs up after the answer has answered.
            let why = ended.err().map_or_else(
                || "the relay closed the connection".to_owned(),
                |error| error.to_string(),
            );
            answer.await.map_err(|_: String| why)
        }
    }
}

fn read(status: StatusCode, body: &[u8]) -> Result<Value, HttpFault> {
    let value = serde_json::from_slice::<Value>(body);
    if status.is_success() {
        return value.map_err(|_| {
            HttpFault::Silent(
                "unexpected response: is this the address of a Farhelm relay?".to_owned(),
            )
        });
    }
    let error = value.map(|value| value["error"].clone()).unwrap_or_default();
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    let code = text("code").unwrap_or_else(|| "unknown".to_owned());
    let otherwise = || format!("the relay responded with {status}");
    let message = text("message").unwrap_or_else(otherwise);
    Err(HttpFault::Refused { status: status.as_u16(), code, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_keeps_its_code_and_words() {
        let told = read(
            StatusCode::NOT_FOUND,
            br#"{"error":{"code":"token_unknown","message":"No valid token has this id"}}"#,
        );
        let message = "No valid token has this id".to_owned();
        let code = "token_unknown".to_owned();
        assert_eq!(told, Err(HttpFault::Refused { status: 404, code, message }));
    }

    #[tokio::test]
    async fn whoever_hangs_up_right_after_the_answer_has_answered() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let (near, mut far) = tokio::io::duplex(1 << 16);
        let peer = async {
            let mut heard = [0; 1024];
            assert!(far.read(&mut heard).await.unwrap() > 0);
            far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            drop(far);
        };
        let request = Request::post("/").header(HOST, "x").body(Full::default()).unwrap();
        let (answer, ()) = tokio::join!(converse(Box::new(near), request, 1024), peer);
        assert_eq!(answer, Ok((StatusCode::OK, Bytes::from_static(b"ok"))));

        let (near, far) = tokio::io::duplex(1 << 16);
        drop(far);
        let request = Request::post("/").header(HOST, "x").body(Full::default()).unwrap();
        assert!(converse(Box::new(near), request, 1024).await.is_err());
    }

    #[test]
    fn an_answer_that_is_no_json_is_no_relays() {
        let told = read(StatusCode::OK, b"<html>");
        assert_eq!(
            told,
            Err(HttpFault::Silent(
                "unexpected response: is this the address of a Farhelm relay?".to_owned()
            ))
        );
        assert!(matches!(
            read(StatusCode::BAD_GATEWAY, b"x"),
            Err(HttpFault::Refused { status: 502, .. })
        ));
    }
}
