//! Flags, as the crates below want them.

use relay::Policies;
use relay::gate::Rates;
use server::{Config, Limits, TlsFiles};
use store::Retention;

use crate::arguments::Serve;
use crate::problem::Problem;

/// A socket that says nothing is closed after this, whatever the heartbeats are.
const HELLO_TIMEOUT_MS: u64 = 10_000;
const DAY_MS: u64 = 86_400_000;

/// The door.
pub(super) fn door(serve: &Serve) -> Result<Config, Problem> {
    let tls = match (&serve.tls_cert, &serve.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
        }
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(Problem::usage("--tls-cert and --tls-key belong together: name both"));
        }
    };
    if serve.heartbeat_timeout_ms <= serve.heartbeat_interval_ms {
        let words = "--heartbeat-timeout-ms must be more than --heartbeat-interval-ms, or every \
                     connection would be stale";
        return Err(Problem::usage(words));
    }
    let public_url = serve.public_url.as_deref().map(str::parse).transpose();
    let allow_origins = serve.allow_origin.iter().map(|origin| origin.parse()).collect();
    let limits = Limits {
        max_frame_bytes: serve.max_frame_bytes,
        max_content_bytes: serve.max_content_bytes,
        max_upload_bytes: serve.max_upload_bytes,
        ..Limits::default()
    };
    Ok(Config {
        listen: serve.listen,
        tls,
        public_url: public_url.map_err(Problem::usage)?,
        allow_origins: Result::<_, server::NotAnOrigin>::map_err(allow_origins, Problem::usage)?,
        trusted_proxies: serve.trusted_proxy.clone(),
        limits,
    })
}

/// Times of sessions and launches.
pub(super) fn policies(serve: &Serve) -> Policies {
    let mut policies = Policies::default();
    policies.session.send_grace_ms = serve.send_grace_ms;
    policies.fleet.launch_timeout_ms = serve.launch_timeout_ms;
    policies
}

/// Times and limits of connections.
pub(super) fn limits(serve: &Serve) -> wire::native::Limits {
    wire::native::Limits {
        max_content_bytes: serve.max_content_bytes,
        heartbeat_interval_ms: serve.heartbeat_interval_ms,
        heartbeat_timeout_ms: serve.heartbeat_timeout_ms,
        hello_timeout_ms: HELLO_TIMEOUT_MS,
    }
}

/// How much a client may say.
pub(super) fn rates(serve: &Serve) -> Rates {
    Rates { sends_per_10s: serve.sends_per_10s, frames_per_minute: serve.frames_per_minute }
}

/// What may be forgotten.
pub(super) fn retention(serve: &Serve) -> Retention {
    Retention {
        age_ms_max: serve.keep_days.map(|days| days.saturating_mul(DAY_MS)),
        size_bytes_max: serve.keep_bytes,
    }
}
