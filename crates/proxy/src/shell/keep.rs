//! Uploads pictures that agents made to the relay, where every client can get them.
//!
//! **Invariant**: each picture is answered once: with the name that the relay gave it, or with the
//! reason why it has none. If the relay is offline, the upload is retried for a while, not forever.
//!
//! Not here: what is shown instead (`agents`), connecting to the relay (`dial`).

use std::sync::Arc;
use std::time::Duration;

use agents::{Kept, Picture};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use domain::SessionId;
use domain::content::Failure;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::StatusCode;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::worker::Event;
use crate::dial::Dialer;

/// Pictures that are handed over at once; others wait.
const AT_ONCE_MAX: usize = 4;
/// One try.
const TRY_TIMEOUT: Duration = Duration::from_secs(60);
/// Tries, and the pause after the first; each further one is twice as long, up to the longest:
/// about ten minutes in all.
const TRIES_MAX: u32 = 24;
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Bytes of the relay's answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why a try came to nothing.
enum Miss {
    /// Worth another.
    Away(String),
    Failed(Failure),
}

/// Hands over what comes until nothing comes any more.
pub(super) async fn serve(
    mut asked: mpsc::Receiver<(SessionId, Picture)>,
    events: mpsc::Sender<Event>,
    dialer: Arc<Dialer>,
) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            next = asked.recv(), if tasks.len() < AT_ONCE_MAX => {
                let Some((session, picture)) = next else { return };
                let (events, dialer) = (events.clone(), Arc::clone(&dialer));
                tasks.spawn(async move {
                    let outcome = keep(&dialer, &picture).await;
                    let _ = events.send(Event::Kept(session, picture.message, outcome)).await;
                });
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn keep(dialer: &Dialer, picture: &Picture) -> Kept {
    let Ok(bytes) = BASE64_STANDARD.decode(&picture.base64) else {
        return Err(Failure::new("invalid_request", "its data is not valid base64"));
    };
    let bytes = Bytes::from(bytes);
    let mut pause = PAUSE_FIRST;
    let mut last = String::new();
    for _ in 0..TRIES_MAX {
        let tried = timeout(TRY_TIMEOUT, hand_over(dialer, picture, bytes.clone())).await;
        match tried.unwrap_or_else(|_| Err(Miss::Away("the upload took too long".to_owned()))) {
            Ok(id) => return Ok(id),
            Err(Miss::Failed(failure)) => return Err(failure),
            Err(Miss::Away(words)) => last = words,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Err(Failure::new("internal", format!("it could not be uploaded to the relay: {last}")))
}

async fn hand_over(
    dialer: &Dialer,
    picture: &Picture,
    bytes: Bytes,
) -> Result<domain::AttachmentId, Miss> {
    let away = |error: &dyn std::fmt::Display| Miss::Away(error.to_string());
    let name = encoded(&picture.name);
    let Some(mut request) = dialer.post(&format!("/v1/uploads?name={name}")) else {
        return Err(Miss::Failed(Failure::new("internal", "its name is not valid")));
    };
    if let Ok(media_type) = HeaderValue::from_str(&picture.media_type) {
        request.headers_mut().insert(CONTENT_TYPE, media_type);
    }
    let stream = dialer.open().await.map_err(|error| away(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| away(&error))?;
    let taken = async {
        let response = sender.send_request(request.map(|()| Full::new(bytes))).await;
        let response = response.map_err(|error| away(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| away(&error))?.to_bytes();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        match (status, answer["attachment_id"].as_str()) {
            (StatusCode::CREATED, Some(id)) => Ok(id.into()),
            // Full, busy or broken: that may pass.
            (status, _) if status.is_server_error() || status.as_u16() == 429 => {
                Err(Miss::Away(format!("the relay answered {status}")))
            }
            (status, _) => {
                let words = answer["error"]["message"].as_str();
                let words =
                    words.map_or_else(|| format!("the relay answered {status}"), str::to_owned);
                Err(Miss::Failed(Failure::new("send_rejected", words)))
            }
        }
    };
    let mut taken = std::pin::pin!(taken);
    tokio::select! {
        biased;
        taken = &mut taken => taken,
        // The connection may end before the last of what came over it is taken.
        _ = connection => taken.await,
    }
}

/// As it may stand in a query.
fn encoded(name: &str) -> String {
    use std::fmt::Write as _;
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request each with these, and gives what was asked.
    async fn relay(listener: TcpListener, answers: &[(&str, &str)]) -> Vec<String> {
        let mut asked = vec![];
        for (status, body) in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![];
            while !request.ends_with(b"PICTURE") {
                assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0);
            }
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
            socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            asked.push(String::from_utf8(request).unwrap());
        }
        asked
    }

    fn picture(base64: &str) -> Picture {
        Picture {
            message: "p1".into(),
            name: "a b.png".to_owned(),
            media_type: "image/png".to_owned(),
            base64: base64.to_owned(),
            place: None,
        }
    }

    async fn told(base64: &str, answers: &'static [(&str, &str)]) -> (Kept, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let dialer = Arc::new(Dialer::new(&address, "token-1", None).unwrap());
        let (events, mut heard) = mpsc::channel(1);
        let (asks, asked) = mpsc::channel(1);
        let serving = tokio::spawn(serve(asked, events, dialer));
        asks.send(("s1".into(), picture(base64))).await.unwrap();
        let asked = timeout(Duration::from_secs(20), relay(listener, answers)).await.unwrap();
        let told = timeout(Duration::from_secs(20), heard.recv()).await.unwrap();
        serving.abort();
        let Some(Event::Kept(session, message, outcome)) = told else { panic!("nothing told") };
        assert_eq!((session.as_str(), message.as_str()), ("s1", "p1"));
        (outcome, asked)
    }

    const REFUSED: (&str, &str) =
        ("413 Payload Too Large", r#"{"error":{"code":"too_large","message":"too large for us"}}"#);
    const KEPT: (&str, &str) = ("201 Created", r#"{"attachment_id":"upl_1"}"#);

    #[tokio::test]
    async fn a_picture_is_handed_over_with_its_name_and_type_also_at_the_second_try() {
        let picture = BASE64_STANDARD.encode("the PICTURE");
        let (outcome, asked) = told(&picture, &[("503 Service Unavailable", "{}"), KEPT]).await;
        assert_eq!(outcome, Ok("upl_1".into()));
        let head = asked[1].to_lowercase();
        assert!(head.starts_with("post /v1/uploads?name=a%20b.png http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: image/png\r\n"), "{head}");
        assert!(head.contains("authorization: bearer token-1\r\n"), "{head}");
        assert!(asked[1].ends_with("the PICTURE"));
    }

    #[tokio::test]
    async fn one_that_the_relay_refuses_is_told_in_its_words_and_not_tried_again() {
        let picture = BASE64_STANDARD.encode("PICTURE");
        let (outcome, _) = told(&picture, &[REFUSED]).await;
        assert_eq!(outcome.unwrap_err().message, "too large for us");
    }

    #[tokio::test]
    async fn what_is_no_picture_is_not_sent_at_all() {
        let (outcome, asked) = told("%%%", &[]).await;
        assert!(outcome.is_err());
        assert_eq!(asked.len(), 0);
    }
}
