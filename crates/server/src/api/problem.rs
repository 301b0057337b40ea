//! Errors of the HTTP API.
//!
//! Not here: refusals in the dialects (`wire`).

use std::borrow::Cow;
use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::session::delivery::{self, Told};
use domain::{Refusal, Role};
use serde_json::json;
use wire::native::Denied;

use crate::door::{Unwelcome, cookie_cleared};
use crate::records::RecordsFault;

/// How soon a busy relay is worth another try.
const BUSY_RETRY_AFTER_S: u64 = 1;

/// An error answer.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    retry_after_s: Option<u64>,
    /// The browser should forget its cookie: it would send the wrong token for ever.
    forget_cookie: bool,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { status, code, message, retry_after_s: None, forget_cookie: false }
    }

    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_message", message)
    }

    pub(crate) fn credential_missing() -> Self {
        let words = "Token required: pair this device, or send Authorization: Bearer";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", words)
    }

    pub(crate) fn credential_wrong() -> Self {
        let words = "The token is invalid or was revoked; pair this device again";
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", words);
        Self { forget_cookie: true, ..problem }
    }

    pub(crate) fn webchannel_only() -> Self {
        let words = "This is a webchannel token; it works only on /ws/webchannel";
        Self::new(StatusCode::FORBIDDEN, "forbidden", words)
    }

    pub(crate) fn role(has: Role, needs: &[Role]) -> Self {
        let needs: Vec<_> = needs.iter().map(|role| role_word(*role)).collect();
        let needs = needs.join(" or ");
        let words = format!("This needs a token with role {needs}; this one is {}", role_word(has));
        Self::new(StatusCode::FORBIDDEN, "unauthorized", words)
    }

    pub(crate) fn unwelcome(unwelcome: &Unwelcome) -> Self {
        let (code, words) = match unwelcome {
            Unwelcome::Host => (
                "host_not_allowed",
                "This relay does not accept this host name; to allow it, start the relay with \
                 --public-url"
                    .to_owned(),
            ),
            Unwelcome::Origin(Some(origin)) => (
                "origin_not_allowed",
                format!(
                    "Pages from {origin} may not connect; to allow them, start the relay with \
                     --allow-origin {origin}"
                ),
            ),
            Unwelcome::Origin(None) => (
                "origin_not_allowed",
                "This page has no origin (it is a local file, or sandboxed), so it cannot \
                 connect; serve it over HTTP"
                    .to_owned(),
            ),
        };
        Self::new(StatusCode::FORBIDDEN, code, words)
    }

    pub(crate) fn upgrade_required() -> Self {
        let words = "This endpoint accepts only WebSocket (version 13)";
        Self::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", words)
    }

    pub(crate) fn busy(words: &'static str) -> Self {
        let words = format!("{words}; try again in a moment");
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", words);
        Self { retry_after_s: Some(BUSY_RETRY_AFTER_S), ..problem }
    }

    pub(crate) fn too_many(words: impl Into<Cow<'static, str>>, retry_after_ms: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", words);
        Self { retry_after_s: Some(retry_after_ms.div_ceil(1_000).max(1)), ..problem }
    }

    pub(crate) fn body_too_large(limit_bytes: u64) -> Self {
        let words = format!("The body is larger than {limit_bytes} bytes or was cut off");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", words)
    }

    pub(crate) fn too_slow() -> Self {
        let words = "No data arrived for a while; send the request again";
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", words)
    }

    pub(crate) fn session_unknown() -> Self {
        Self::from(Denied::Refused(Refusal::SessionUnknown))
    }

    /// Something that a person cannot mend; the log knows more.
    pub(crate) fn internal(error: &dyn Display) -> Self {
        tracing::error!(%error, "request failed");
        let words = "The relay failed to do this; see its log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", words)
    }

    /// Something that cannot happen.
    pub(crate) fn defect() -> Self {
        Self::internal(&"a request bypassed the listener")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut response = (self.status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.forget_cookie {
            headers.insert(header::SET_COOKIE, cookie_cleared());
        }
        response
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Refused(refusal) => {
                let (status, code) = code(&refusal);
                Self::new(status, code, sentence(&refusal.to_string()))
            }
            Denied::Code(code, message) => {
                Self::new(StatusCode::CONFLICT, code.to_string(), message)
            }
            Denied::Failed(words) => {
                tracing::error!(error = words, "could not carry out a request");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "internal", sentence(&words))
            }
        }
    }
}

impl From<RecordsFault> for Problem {
    fn from(fault: RecordsFault) -> Self {
        use store::Fault;
        match &fault {
            RecordsFault::Store(Fault::Full) => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk_full",
                sentence(&fault.to_string()),
            ),
            RecordsFault::TooManyCredentials { .. } => {
                Self::new(StatusCode::CONFLICT, "too_many_tokens", sentence(&fault.to_string()))
            }
            RecordsFault::Store(
                Fault::Locked { .. }
                | Fault::NewerVersion { .. }
                | Fault::NotALedger { .. }
                | Fault::Corrupt { .. }
                | Fault::Io { .. }
                | Fault::NeedsReopen
                | Fault::Exists { .. },
            )
            | RecordsFault::Closed
            | RecordsFault::Thread(_)
            | RecordsFault::Randomness(_)
            | RecordsFault::TokenFile { .. } => Self::internal(&fault),
        }
    }
}

/// The word for a role, in both directions.
pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Owner => "owner",
        Role::Proxy => "proxy",
    }
}

/// How a send that was sent before stands; an error only where it can never succeed.
pub(crate) fn sent_before(told: &Told) -> Result<&'static str, Problem> {
    match &told.state {
        delivery::State::Accepted => Ok("accepted"),
        delivery::State::Delivered => Ok("delivered"),
        delivery::State::Failed(failure) => {
            let (code, words) = (failure.code.to_string(), sentence(&failure.message));
            Err(Problem::new(StatusCode::CONFLICT, code, words))
        }
    }
}

fn code(refusal: &Refusal) -> (StatusCode, &'static str) {
    match refusal {
        Refusal::Unauthorized
        | Refusal::OwnerOnly
        | Refusal::NotThisProxy
        | Refusal::OtherMachine => (StatusCode::FORBIDDEN, "unauthorized"),
        Refusal::SessionUnknown => (StatusCode::NOT_FOUND, "session_unknown"),
        Refusal::SessionClosed => (StatusCode::CONFLICT, "session_not_connected"),
        Refusal::NoProxyConnected => (StatusCode::CONFLICT, "no_proxy_connected"),
        Refusal::PromptNotOpen(_) => (StatusCode::CONFLICT, "prompt_not_found"),
        Refusal::NoSuchChoice { .. } => (StatusCode::BAD_REQUEST, "invalid_choice"),
        Refusal::AnswersMissing(_) => (StatusCode::BAD_REQUEST, "answers_missing"),
        Refusal::TooManyPrompts { .. }
        | Refusal::QueueFull { .. }
        | Refusal::TooManyRequests { .. } => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        Refusal::AgentAtWork => (StatusCode::CONFLICT, "agent_at_work"),
        Refusal::NotQueued(_) => (StatusCode::CONFLICT, "message_not_queued"),
        Refusal::SendRepeated(_) | Refusal::RequestRepeated(_) | Refusal::LaunchRepeated(_) => {
            (StatusCode::CONFLICT, "repeated")
        }
        Refusal::RequestInUse(_) => (StatusCode::CONFLICT, "invalid_message"),
        Refusal::NotSupported => (StatusCode::CONFLICT, "control_not_supported"),
    }
}

/// Refusals and faults are worded as clauses.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
