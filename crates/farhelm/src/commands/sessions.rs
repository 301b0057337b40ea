//! `farhelm sessions`: the list.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::arguments::Sessions;
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::{output, sessions};

/// Prints it.
pub(super) async fn run(asked: Sessions) -> Result<ExitCode, Problem> {
    let finder = Finder::new(&asked.reach)?;
    let mut sessions = sessions::list(&finder).await?;
    if !asked.all {
        sessions.retain(|session| session["archived"].as_bool() != Some(true));
    }
    if asked.json {
        output::json(&json!({ "sessions": sessions }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if sessions.is_empty() {
        output::aside("No sessions yet. Start one with: farhelm launch demo");
        return Ok(ExitCode::SUCCESS);
    }
    let heading = ["SESSION", "AGENT", "STATUS", "ACTIVITY", "MACHINE", "EVENTS", "NAME"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(sessions.iter().map(row));
    output::raw(&output::table(&rows))?;
    for session in &sessions {
        if let (Some(id), Some(why)) =
            (session["session_id"].as_str(), session["status_reason"].as_str())
        {
            output::aside(format!("{}: {}", output::tame(id), output::tame(why)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(session: &Value) -> Vec<String> {
    let text = |name: &str| session[name].as_str().map(output::tame);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    // Panels of one IDE are all called alike; their windows are not.
    let name = text("title").or_else(|| text("window_title")).or_else(|| text("display_name"));
    vec![
        or_dash(text("session_id")),
        or_dash(text("agent_type")),
        or_dash(text("status")),
        or_dash(session["activity"]["kind"].as_str().map(output::tame)),
        or_dash(text("machine_label")),
        session["last_sequence"].to_string(),
        or_dash(name),
    ]
}
