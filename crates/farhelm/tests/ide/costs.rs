//! What panels cost that do nothing.

use std::time::{Duration, Instant};

use crate::stage::{Stage, id};

const PANELS: usize = 20;
/// How long they are looked at.
const IDLE: Duration = Duration::from_secs(20);
/// Of a core, for each panel.
const SHARE_MAX: f64 = 0.002;

/// Seconds of processor time that a process took.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: f64 = [fields[11], fields[12]].iter().map(|it| it.parse::<f64>().unwrap()).sum();
    // Linux counts in hundredths of a second for everybody outside of the kernel.
    ticks / 100.0
}

#[test]
fn twenty_panels_are_twenty_sessions_that_cost_little_while_they_rest() {
    let Some(mut stage) = Stage::new("twenty panels") else { return };
    stage.up();
    for number in 0..PANELS {
        stage.open("opencode-web", &format!("p{number}"), "");
    }
    stage.until("twenty sessions", |sessions| {
        let healthy = sessions.iter().filter(|it| it["status"] == "healthy");
        let ids: std::collections::BTreeSet<_> = healthy.map(id).collect();
        (ids.len() == PANELS).then_some(())
    });
    let pid = stage.up.as_ref().unwrap().running.0.id();
    let (before, begun) = (cpu_seconds(pid), Instant::now());
    std::thread::sleep(IDLE);
    let share = (cpu_seconds(pid) - before) / begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "twenty")]
    let each = share / PANELS as f64;
    eprintln!("an idle panel takes {:.3} % of a core", each * 100.0);
    assert!(each <= SHARE_MAX, "an idle panel takes {:.3} % of a core", each * 100.0);
}
