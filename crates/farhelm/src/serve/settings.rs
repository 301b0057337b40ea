//! Converts flags into the settings of the crates below.

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
            return Err(Problem::usage(
                "--tls-cert and --tls-key must be used together: pass both",
            ));
        }
    };
    if serve.heartbeat_timeout_ms <= serve.heartbeat_interval_ms {
        let words = "--heartbeat-timeout-ms must be greater than --heartbeat-interval-ms, or \
                     every connection would time out";
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
    policies.session.prompts_open_max = serve.prompts_open;
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
        history_requests_waiting: serve.history_requests_waiting,
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

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        serve: Serve,
    }

    const SPEC: &str = include_str!("../../../../docs/spec/native.md");

    /// The rules of the specification's list of limits.
    fn listed() -> Vec<&'static str> {
        let list = SPEC.split("\n## limits\n").nth(1).unwrap().split("\n## ").next().unwrap();
        list.lines().filter(|line| line.starts_with("- **native/limits.")).collect()
    }

    fn flag_in(rule: &str) -> Option<&str> {
        rule.split('`').find_map(|word| word.strip_prefix("--"))
    }

    // spec: native/limits.7
    #[test]
    fn every_figure_among_the_limits_of_the_specification_is_a_flag_with_that_default() {
        let command = Flags::command();
        let mut figures = 0;
        for rule in listed() {
            let said = rule.split_once("** ").unwrap().1;
            // One rule lists the figures that nobody can set.
            let is_fixed = said.starts_with("Fixed figures:");
            if is_fixed || !said.contains(|letter: char| letter.is_ascii_digit()) {
                continue;
            }
            let flag = flag_in(said).unwrap_or_else(|| panic!("{rule} names no flag"));
            let known = command.get_arguments().find(|it| it.get_long() == Some(flag));
            let known = known.unwrap_or_else(|| panic!("--{flag} of {rule} is not there"));
            let default: u64 = known.get_default_values()[0].to_str().unwrap().parse().unwrap();
            let shown = match default {
                bytes if bytes % (1024 * 1024) == 0 => format!("{} MiB", bytes / 1024 / 1024),
                bytes if bytes % 1024 == 0 => format!("{} KiB", bytes / 1024),
                plain => plain.to_string(),
            };
            assert!(said.contains(&shown), "{rule} does not say {shown}");
            figures += 1;
        }
        assert_eq!(figures, 6);
    }

    #[test]
    fn every_limit_that_is_set_reaches_the_relay() {
        let flags = [
            "max-frame-bytes",
            "max-content-bytes",
            "sends-per-10s",
            "frames-per-minute",
            "prompts-open",
            "history-requests-waiting",
        ];
        assert!(listed().into_iter().filter_map(flag_in).all(|flag| flags.contains(&flag)));
        let set = (1..).zip(flags).flat_map(|(n, flag)| [format!("--{flag}"), n.to_string()]);
        let Flags { serve } = Flags::parse_from(std::iter::once("farhelm".to_owned()).chain(set));
        assert_eq!(door(&serve).unwrap().limits.max_frame_bytes, 1);
        assert_eq!(limits(&serve).max_content_bytes, 2);
        assert_eq!(rates(&serve).sends_per_10s, 3);
        assert_eq!(rates(&serve).frames_per_minute, 4);
        assert_eq!(policies(&serve).session.prompts_open_max, 5);
        assert_eq!(limits(&serve).history_requests_waiting, 6);
    }
}
