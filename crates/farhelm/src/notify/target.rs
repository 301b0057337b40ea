//! The receivers of notifications: an ntfy topic, a webhook, a command. One attempt per
//! notification.
//!
//! **Invariant**: no text from here contains a secret or an address, which may be all that protects
//! a topic. An attempt is bounded in time.
//!
//! Not here: trying again (`line`), the text (`notice`).

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use proxy::dial::Dialer;
use serde_json::json;

use super::notice::{Kind, Notice};
use super::{program, sign};
use crate::{connect, http};

/// How long one attempt may take.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(10);
/// Nobody reads the answer; one that is longer is a mistake.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// When a signature was made, in seconds since 1970.
const TIMESTAMP_HEADER: &str = "x-farhelm-timestamp";
/// `v1=` and the signature of timestamp, a dot, and the body.
const SIGNATURE_HEADER: &str = "x-farhelm-signature";
/// How ntfy ranks what cannot wait; 3 is its normal.
const NTFY_PRIORITY_HIGH: u8 = 4;

/// Somebody to call.
pub(super) enum Target {
    /// A topic at an ntfy server.
    Ntfy { server: Place, topic: String, token: Option<String> },
    /// Anything that takes JSON.
    Webhook { place: Place, secret: Vec<u8> },
    /// A program of this computer.
    Command(String),
}

/// Where to post.
pub(super) struct Place {
    dialer: Dialer,
    host: String,
    path: String,
}

/// Why an attempt failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// It may be better later.
    Later(String),
    /// It will be the same next time.
    Never(String),
}

impl Target {
    /// A topic's address is the server's with the topic behind it.
    pub(super) fn ntfy(url: &str, token: Option<String>) -> Option<Self> {
        let (server, topic) = url.trim_end_matches('/').rsplit_once('/')?;
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
        if topic.is_empty() || !topic.chars().all(is_plain) {
            return None;
        }
        let server = Place::new(&format!("{server}/"))?;
        Some(Self::Ntfy { server, topic: topic.to_owned(), token })
    }

    /// A webhook, with what signs for it.
    pub(super) fn webhook(url: &str, secret: Vec<u8>) -> Option<Self> {
        Some(Self::Webhook { place: Place::new(url)?, secret })
    }

    /// What people call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ntfy { .. } => "the ntfy topic",
            Self::Webhook { .. } => "the webhook",
            Self::Command(_) => "the command",
        }
    }

    /// Tells it once.
    pub(super) async fn tell(&self, notice: &Notice, now_s: u64) -> Result<(), Miss> {
        let attempt = async {
            match self {
                Self::Ntfy { server, topic, token } => {
                    let body = Bytes::from(ntfy_body(notice, topic).to_string());
                    let bearer = token.as_ref().map(|token| format!("Bearer {token}"));
                    let headers = bearer.map(|it| (AUTHORIZATION.as_str(), it));
                    server.post(body, headers.as_slice()).await
                }
                Self::Webhook { place, secret } => {
                    let body = webhook_body(notice)?;
                    let signature = format!("v1={}", sign::signature(secret, now_s, &body));
                    let headers =
                        [(TIMESTAMP_HEADER, now_s.to_string()), (SIGNATURE_HEADER, signature)];
                    place.post(body, &headers).await
                }
                Self::Command(command) => {
                    let body = webhook_body(notice)?;
                    program::run(command, notice, &body).await.map_err(Miss::Later)
                }
            }
        };
        let late = || Err(Miss::Later("no response in time".to_owned()));
        tokio::time::timeout(ATTEMPT_WITHIN, attempt).await.unwrap_or_else(|_| late())
    }
}

impl Place {
    fn new(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let host = uri.authority()?.as_str().to_owned();
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        // What stands before an @ would have to go into a header; nobody would expect it there.
        if !is_http || host.contains('@') {
            return None;
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let dialer = Dialer::new(url, "", None).ok()?;
        Some(Self { dialer, host, path })
    }

    async fn post(&self, body: Bytes, headers: &[(&str, String)]) -> Result<(), Miss> {
        let stream = connect::open(&self.dialer).await.map_err(Miss::Later)?;
        let mut request = Request::post(&self.path).header(HOST, &self.host);
        request = request.header(CONTENT_TYPE, "application/json");
        request = request.header(USER_AGENT, concat!("farhelm/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body));
        let request = request
            .map_err(|_| Miss::Never("its token cannot be sent in an HTTP header".to_owned()))?;
        let (status, _) =
            http::converse(stream, request, ANSWER_BYTES_MAX).await.map_err(Miss::Later)?;
        let words = format!("it responded with {}", status.as_u16());
        match status.as_u16() {
            200..300 => Ok(()),
            408 | 425 | 429 => Err(Miss::Later(words)),
            // A redirect is not followed: it would carry the call to somebody nobody named.
            300..500 => Err(Miss::Never(words)),
            _ => Err(Miss::Later(words)),
        }
    }
}

fn webhook_body(notice: &Notice) -> Result<Bytes, Miss> {
    serde_json::to_vec(notice).map(Bytes::from).map_err(|error| Miss::Never(error.to_string()))
}

/// As JSON to the server itself: headers would not take every letter.
fn ntfy_body(notice: &Notice, topic: &str) -> serde_json::Value {
    let (priority, tag) = match notice.kind {
        Kind::PromptWaits => (NTFY_PRIORITY_HIGH, "question"),
        Kind::SendFailed => (NTFY_PRIORITY_HIGH, "warning"),
        Kind::RunEnded => (3, "white_check_mark"),
    };
    json!({
        "topic": topic, "title": notice.title, "message": notice.text, "priority": priority,
        "tags": [tag], "click": notice.link,
    })
}

/// Without addresses and secrets.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_called_is_none() {
        for wrong in ["ntfy.sh/topic", "https://ntfy.sh", "https://ntfy.sh/a b", "ftp://x/y", ""] {
            assert!(Target::ntfy(wrong, None).is_none(), "{wrong}");
        }
        for wrong in ["hooks.example.org", "https://user:password@x/y", "ws://x/y"] {
            assert!(Target::webhook(wrong, vec![]).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_topic_is_posted_to_the_root_of_its_server() {
        let Some(Target::Ntfy { server, topic, .. }) =
            Target::ntfy("http://127.0.0.1:9/kite-7", None)
        else {
            panic!("it is a topic");
        };
        assert_eq!((server.host.as_str(), server.path.as_str()), ("127.0.0.1:9", "/"));
        assert_eq!(topic, "kite-7");
    }

    #[test]
    fn what_is_printed_of_a_target_is_not_its_address() {
        let target = Target::ntfy("http://127.0.0.1:9/kite-7", Some("tk_1".to_owned())).unwrap();
        assert_eq!(format!("{target:?}"), "the ntfy topic");
    }
}
