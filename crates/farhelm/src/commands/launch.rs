//! `farhelm launch` and `farhelm resume`: list agents and earlier conversations, and start or
//! resume them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::new_id;
use super::steer::{exchange, print};
use crate::arguments::{Launch, Resume};
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::{output, sessions};

/// How long a launched session may take to be listed, and how often to look.
const LISTED_WITHIN: Duration = Duration::from_secs(10);
const LISTED_PAUSE: Duration = Duration::from_millis(10);

/// Starts a session, or lists what can be started.
pub(super) async fn launch(launch: Launch) -> Result<ExitCode, Problem> {
    let finder = Finder::new(&launch.reach)?;
    let Some(agent) = &launch.agent else {
        let catalog = catalog(&finder).await?;
        if launch.json {
            return print(true, &catalog, "");
        }
        return show_agents(&catalog);
    };
    let request = new_id("launch")?;
    let mut frame = json!({ "type": "launch_session", "protocol_version": 1,
        "request_id": request, "agent_type": agent });
    let workspace = launch.workspace.as_deref().map(absolute);
    let more = [
        ("workspace_path", workspace),
        ("machine_label", launch.machine),
        ("model_id", launch.model),
        ("permission_mode", launch.mode),
    ];
    set(&mut frame, more);
    if launch.worktree {
        frame["worktree"] = json!(true);
    }
    show_session(&launched(&finder, &request, &frame).await?, launch.json)
}

/// Goes on with a conversation, or lists them.
pub(super) async fn resume(resume: Resume) -> Result<ExitCode, Problem> {
    let finder = Finder::new(&resume.reach)?;
    let Some(conversation) = &resume.conversation else {
        let listed = conversations(&finder, &resume, resume.limit).await?;
        if resume.json {
            return print(true, &listed, "");
        }
        return show_conversations(&listed);
    };
    let agent = match &resume.agent {
        Some(agent) => agent.clone(),
        None => agent_of(&conversations(&finder, &resume, u32::MAX).await?, conversation)?,
    };
    let request = new_id("resume")?;
    let mut frame = json!({ "type": "resume_session", "protocol_version": 1,
        "request_id": request, "agent_type": agent, "conversation_id": conversation,
        "fork": resume.fork });
    set(&mut frame, [("machine_label", resume.machine)]);
    show_session(&launched(&finder, &request, &frame).await?, resume.json)
}

fn set<const N: usize>(frame: &mut Value, more: [(&str, Option<String>); N]) {
    for (name, value) in more {
        if let Some(value) = value {
            frame[name] = json!(value);
        }
    }
}

/// A path that begins here begins somewhere else for a machine.
fn absolute(path: &str) -> String {
    if path.starts_with('~') {
        return path.to_owned();
    }
    let whole = std::path::absolute(path).map(|whole| whole.to_string_lossy().into_owned());
    whole.unwrap_or_else(|_| path.to_owned())
}

async fn catalog(finder: &Finder) -> Result<Value, Problem> {
    let request = new_id("catalog")?;
    let frame = json!({ "type": "catalog_request", "protocol_version": 1, "request_id": request });
    exchange(finder.clone(), &request, "", &frame).await
}

async fn conversations(finder: &Finder, resume: &Resume, limit: u32) -> Result<Value, Problem> {
    let request = new_id("resumable")?;
    let mut frame = json!({ "type": "resumable_list", "protocol_version": 1,
        "request_id": request, "limit": limit });
    let more = [("agent_type", resume.agent.clone()), ("machine_label", resume.machine.clone())];
    set(&mut frame, more);
    match exchange(finder.clone(), &request, "", &frame).await {
        Ok(listed) => Ok(listed),
        Err(problem) => Err(with_choice(problem, finder, &frame).await),
    }
}

/// Which agent keeps a conversation.
fn agent_of(listed: &Value, conversation: &str) -> Result<String, Problem> {
    let all = listed["conversations"].as_array().into_iter().flatten();
    let mut found = all.filter(|it| it["conversation_id"] == *conversation);
    let agent = found.next().and_then(|it| it["agent_type"].as_str());
    agent.map(str::to_owned).ok_or_else(|| {
        let words = "not found among the newest conversations; name its agent with --agent NAME";
        Problem::new(words)
    })
}

/// For a frame that names a machine or an agent that is not there: what is.
async fn with_choice(problem: Problem, finder: &Finder, frame: &Value) -> Problem {
    let Ok(catalog) = catalog(finder).await else { return problem };
    if let Some(machine) = frame["machine_label"].as_str() {
        let machines = catalog["machines"].as_array().into_iter().flatten();
        let labels: Vec<_> = machines.filter_map(|it| it["machine_label"].as_str()).collect();
        if !labels.contains(&machine) {
            let labels = labels.iter().map(|label| output::tame(label)).collect::<Vec<_>>();
            let (machine, labels) = (output::tame(machine), labels.join(", "));
            return Problem::new(format!("no machine named {machine}; available: {labels}"));
        }
    }
    let Some(agent) = frame["agent_type"].as_str() else { return problem };
    let offered: Vec<String> = agents(&catalog)
        .filter(|(_, it)| it["installed"] == true)
        .filter_map(|(_, it)| it["agent_type"].as_str().map(output::tame))
        .collect();
    if offered.is_empty() || offered.iter().any(|name| name == agent) {
        return problem;
    }
    let words = problem.words();
    Problem::new(format!("{words}\nAvailable agents: {}", offered.join(", ")))
}

/// Every agent with its machine.
fn agents(catalog: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let machines = catalog["machines"].as_array().into_iter().flatten();
    machines.flat_map(|machine| {
        machine["agents"].as_array().into_iter().flatten().map(move |agent| (machine, agent))
    })
}

fn show_agents(catalog: &Value) -> Result<ExitCode, Problem> {
    let text = |value: &Value| value.as_str().map_or_else(|| "-".to_owned(), output::tame);
    let heading = ["AGENT", "VERSION", "MACHINE", "STATE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for (machine, agent) in agents(catalog) {
        let state = if machine["connected"] != true {
            "machine offline".to_owned()
        } else if agent["installed"] != true {
            format!("not installed. {}", text(&agent["install"]))
        } else if agent["logged_in"] == false {
            "not logged in; start it once in a terminal and log in".to_owned()
        } else {
            "ready".to_owned()
        };
        let label = text(&machine["machine_label"]);
        rows.push(vec![text(&agent["agent_type"]), text(&agent["version"]), label, state]);
    }
    if rows.len() == 1 {
        return Err(Problem::new("no machine is connected; start Farhelm with: farhelm up"));
    }
    output::raw(&output::table(&rows))?;
    for machine in catalog["machines"].as_array().into_iter().flatten() {
        if let Some(words) = limits(&machine["limits"]) {
            let label = text(&machine["machine_label"]);
            output::aside(format_args!("{label}: {words}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How much the agents of a machine may take, in words; nothing where it sets no bound.
fn limits(limits: &Value) -> Option<String> {
    let number = |field: &str| limits[field].as_u64();
    let words = [
        number("agents_max").map(|count| format!("up to {count} agents run at a time")),
        number("idle_stop_ms").map(|ms| {
            let minutes = ms.div_ceil(60_000);
            format!("an idle agent stops after {minutes} minutes and restarts on its next message")
        }),
        number("memory_bytes_max").map(|bytes| {
            let mib = bytes >> 20;
            format!("an agent that uses more than {mib} MiB is stopped")
        }),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn show_conversations(listed: &Value) -> Result<ExitCode, Problem> {
    let text = |value: &Value| value.as_str().map_or_else(|| "-".to_owned(), output::tame);
    let heading = ["CONVERSATION", "AGENT", "LAST USED", "WORKSPACE", "TITLE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for it in listed["conversations"].as_array().into_iter().flatten() {
        let name = match it["session_id"].as_str() {
            Some(session) => format!("(session {}) {}", output::tame(session), text(&it["title"])),
            None => text(&it["title"]),
        };
        let fields = ["conversation_id", "agent_type", "updated_at", "workspace_path"];
        rows.push(fields.iter().map(|field| text(&it[*field])).chain([name]).collect());
    }
    if rows.len() == 1 {
        let label = text(&listed["machine_label"]);
        output::aside(format_args!("No earlier conversations on {label}"));
        return Ok(ExitCode::SUCCESS);
    }
    output::raw(&output::table(&rows))?;
    Ok(ExitCode::SUCCESS)
}

fn show_session(told: &Value, is_json: bool) -> Result<ExitCode, Problem> {
    if is_json {
        return print(true, told, "");
    }
    output::line(told["session_id"].as_str().unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}

/// Launches, and waits until the session can be used. What is not there is named as what it is.
pub(super) async fn launched(
    finder: &Finder,
    request: &str,
    frame: &Value,
) -> Result<Value, Problem> {
    let told = match exchange(finder.clone(), request, "", frame).await {
        Ok(told) => told,
        Err(problem) => return Err(with_choice(problem, finder, frame).await),
    };
    let session = told["session_id"].as_str().unwrap_or_default();
    until_listed(finder, session).await?;
    Ok(told)
}

/// The relay may tell of a launch a moment before its session is in the list. Whoever prints its id
/// promises that it can be used.
async fn until_listed(finder: &Finder, session: &str) -> Result<(), Problem> {
    let begun = Instant::now();
    loop {
        let listed = sessions::list(finder).await?;
        if listed.iter().any(|it| it["session_id"] == *session) {
            return Ok(());
        }
        if begun.elapsed() > LISTED_WITHIN {
            let words = format!("session {session} was launched, but its machine does not list it");
            return Err(Problem::new(words));
        }
        tokio::time::sleep(LISTED_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_allows_is_said_in_words_and_no_bound_is_none() {
        let all = json!({"agents_max": 16, "idle_stop_ms": 1_800_000, "memory_bytes_max": 1 << 30});
        let words = "up to 16 agents run at a time; an idle agent stops after 30 minutes and \
                     restarts on its next message; an agent that uses more than 1024 MiB is \
                     stopped";
        assert_eq!(limits(&all).as_deref(), Some(words));
        assert_eq!(limits(&json!({})), None);
        assert_eq!(limits(&Value::Null), None);
    }
}
