//! `GET /metrics`: metrics in Prometheus format.
//!
//! Not here: counting (`relay::metrics`).

use std::fmt::{Display, Write as _};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::house::House;
use crate::inside::Figures;

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const US_PER_S: u64 = 1_000_000;

/// `GET /metrics`
pub(crate) async fn metrics(State(house): State<House>) -> Response {
    let limits = &house.limits;
    let taken = |limit: usize, free: usize| limit.saturating_sub(free);
    let door = Door {
        connections: house.guests.present(),
        silent_strangers: taken(
            limits.max_silent_strangers,
            house.silent_strangers.available_permits(),
        ),
        silent_friends: taken(limits.max_silent_friends, house.silent_friends.available_permits()),
        uploads: taken(limits.max_uploads_at_once, house.uploads_at_once.available_permits()),
        uptime_s: house.started.elapsed().as_secs(),
    };
    let text = text(&house.inside.figures(), &door);
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], text).into_response()
}

/// What is counted at the door itself.
#[derive(Default)]
struct Door {
    connections: usize,
    silent_strangers: usize,
    silent_friends: usize,
    uploads: usize,
    uptime_s: u64,
}

fn text(figures: &Figures, door: &Door) -> String {
    let mut page = Page(String::with_capacity(4_096));
    page.one("farhelm_uptime_seconds", "gauge", "Seconds since the start.", door.uptime_s);
    page.family("farhelm_connections", "gauge", "Open connections.");
    page.sample("farhelm_connections", "kind=\"client\"", figures.clients);
    page.sample("farhelm_connections", "kind=\"proxy\"", figures.proxies);
    page.sample("farhelm_connections", "kind=\"all\"", door.connections);
    page.family("farhelm_sessions", "gauge", "Sessions by state.");
    page.sample("farhelm_sessions", "state=\"connected\"", figures.sessions_connected);
    let away = figures.sessions.saturating_sub(figures.sessions_connected);
    page.sample("farhelm_sessions", "state=\"away\"", away);
    page.one("farhelm_session_owners", "gauge", "Sessions held in memory.", figures.owners);
    page.family("farhelm_sends_total", "counter", "Sends by the state they reached.");
    for (state, count) in ["accepted", "delivered", "failed"].iter().zip(figures.sends) {
        page.sample("farhelm_sends_total", &format!("state=\"{state}\""), count);
    }
    page.one("farhelm_events_total", "counter", "Recorded events.", figures.events);
    page.one("farhelm_passing_events_total", "counter", "Live-only events shown.", figures.passing);
    let lagging = "Times a watcher fell behind and reread the ledger.";
    page.one("farhelm_lagging_watchers_total", "counter", lagging, figures.lagged);
    page.family("farhelm_queue_depth", "gauge", "Items waiting, by queue.");
    page.sample("farhelm_queue_depth", "queue=\"commit\"", figures.appends_waiting);
    page.sample("farhelm_queue_depth", "queue=\"hello_stranger\"", door.silent_strangers);
    page.sample("farhelm_queue_depth", "queue=\"hello_friend\"", door.silent_friends);
    page.sample("farhelm_queue_depth", "queue=\"upload\"", door.uploads);
    let failures = figures.commit_failures;
    page.one("farhelm_commit_failures_total", "counter", "Failed commits.", failures);
    page.histogram(figures);
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn histogram(&mut self, figures: &Figures) {
        let name = "farhelm_commit_seconds";
        self.family(name, "histogram", "Seconds that a commit takes.");
        let bucket = format!("{name}_bucket");
        for (bound_us, count) in &figures.commit_buckets_us {
            self.sample(&bucket, &format!("le=\"{}\"", seconds(*bound_us)), count);
        }
        self.sample(&bucket, "le=\"+Inf\"", figures.commits);
        let _ = writeln!(self.0, "{name}_sum {}", seconds(figures.commits_us));
        let _ = writeln!(self.0, "{name}_count {}", figures.commits);
    }
}

/// Exact, without the noise of a float.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / US_PER_S, us % US_PER_S);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_prometheus_reads_them() {
        let figures = Figures {
            clients: 3,
            sessions: 5,
            sessions_connected: 2,
            sends: [7, 6, 1],
            commit_buckets_us: vec![(250, 1), (1_000_000, 4)],
            commits: 5,
            commits_us: 1_234_500,
            ..Figures::default()
        };

        let text = text(&figures, &Door::default());

        for line in [
            "# TYPE farhelm_commit_seconds histogram",
            "farhelm_connections{kind=\"client\"} 3",
            "farhelm_sessions{state=\"away\"} 3",
            "farhelm_sends_total{state=\"failed\"} 1",
            "farhelm_commit_seconds_bucket{le=\"0.00025\"} 1",
            "farhelm_commit_seconds_bucket{le=\"1\"} 4",
            "farhelm_commit_seconds_bucket{le=\"+Inf\"} 5",
            "farhelm_commit_seconds_sum 1.2345",
            "farhelm_commit_seconds_count 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
