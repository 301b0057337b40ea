//! `farhelm cdp`: what Farhelm sees in IDEs and browsers.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use proxy::panels::{ProfileSet, SeenPanel, SeenPort, look};
use serde_json::json;

use crate::arguments::{CdpTask, Inspect};
use crate::output;
use crate::problem::Problem;

/// How often `--watch` looks.
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// Characters of a title or an address that are shown.
const SHOWN_MAX: usize = 100;

pub(super) async fn run(task: CdpTask) -> Result<ExitCode, Problem> {
    match task {
        CdpTask::Inspect(inspect) => show(inspect).await,
    }
}

async fn show(inspect: Inspect) -> Result<ExitCode, Problem> {
    let config = inspect.ide.config();
    let ports = config.all_ports();
    if ports.is_empty() {
        return Err(Problem::usage(
            "no debug port given: pass one with --ide-ports PORT, or set ports under [ide] in \
             farhelm.toml. docs/ide.md explains how to open one",
        ));
    }
    let mut before = String::new();
    loop {
        let profiles = ProfileSet::load(config.profiles.as_deref());
        let mut seen = vec![];
        for port in &ports {
            seen.push(look(port, &profiles, false).await);
        }
        let is_there = seen.iter().any(|port| port.fault.is_none());
        let faults = profiles.faults.iter();
        let faults: Vec<_> =
            faults.map(|(file, fault)| format!("{}: {fault}", file.display())).collect();
        let text = if inspect.json {
            json!({"ports": seen, "faults": faults}).to_string() + "\n"
        } else {
            words(&seen, &faults)
        };
        if text != before {
            output::raw(&text)?;
            before = text;
        }
        if !inspect.watch {
            return Ok(if is_there { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

fn words(ports: &[SeenPort], faults: &[String]) -> String {
    let mut text = String::new();
    for fault in faults {
        let _ = writeln!(text, "ignored profile: {fault}");
    }
    for port in ports {
        if let Some(fault) = &port.fault {
            let _ = writeln!(text, "{}  {fault}", port.address);
            continue;
        }
        let _ = writeln!(text, "{}  {} targets", port.address, port.targets.len());
        for target in &port.targets {
            let _ = writeln!(
                text,
                "  {:<6}  {}  {}",
                target.kind,
                short(&target.title),
                short(&target.url)
            );
            for panel in &target.panels {
                text.push_str(&of_panel(panel));
            }
        }
    }
    text
}

fn of_panel(panel: &SeenPanel) -> String {
    let mut text = format!("    {} (revision {})", panel.profile, panel.revision);
    let _ = write!(text, ", {} rows", panel.rows);
    if let Some(model) = &panel.model {
        let _ = write!(text, ", model {}", short(model));
    }
    if panel.is_busy {
        text.push_str(", running");
    }
    if let Some(waiting) = &panel.waiting {
        let _ = write!(text, ", waiting: {}", short(waiting));
    }
    if let Some(error) = &panel.error {
        let _ = write!(text, ", script failed: {}", short(error));
    }
    text.push('\n');
    for landmark in &panel.landmarks {
        let found = match (&landmark.found_by, landmark.alternative) {
            (Some(selector), Some(0)) => format!("ok        {selector}"),
            (Some(selector), Some(at)) => format!("fallback  {selector} (alternative {at})"),
            (None, _) | (_, None) if landmark.is_required => "MISSING".to_owned(),
            (None, _) | (_, None) => "not found".to_owned(),
        };
        let _ = writeln!(text, "      {:<10}  {found}", landmark.name);
    }
    text
}

/// A line's worth of somebody else's words.
fn short(text: &str) -> String {
    let tame: String = output::tame(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match tame.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &tame[..at]),
        None => tame,
    }
}
