//! Finds the session that a person means.
//!
//! Not here: printing the list (`commands::sessions`).

use hyper::Method;
use serde_json::Value;

use crate::discovery::Finder;
use crate::problem::Problem;
use crate::{http, output};

/// Characters of the beginning of an id that name a session. Fewer match by accident.
const PREFIX_CHARACTERS_MIN: usize = 4;
/// Events at the end of a history among which its end is looked for.
const LAST_EVENTS: u64 = 50;

/// A session of the relay's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its id.
    pub(crate) id: String,
    /// What people call it.
    pub(crate) name: Option<String>,
    /// Its last event.
    pub(crate) last_sequence: u64,
}

/// Asks the relay for all sessions.
pub(crate) async fn list(finder: &Finder) -> Result<Vec<Value>, Problem> {
    let answer = http::ask(finder, Method::GET, "/v1/sessions", None).await?;
    Ok(answer["sessions"].as_array().cloned().unwrap_or_default())
}

/// The session that a person means.
pub(crate) async fn find(finder: &Finder, meant: &str) -> Result<Listed, Problem> {
    choose(&list(finder).await?, meant)
}

/// The session that a person means, for a command that acts on it: prints which one that is.
pub(crate) async fn find_to_act(finder: &Finder, meant: &str) -> Result<Listed, Problem> {
    let session = find(finder, meant).await?;
    tell_chosen(&session);
    Ok(session)
}

/// Prints which session a command acts on.
pub(crate) fn tell_chosen(session: &Listed) {
    let id = output::tame(&session.id);
    match &session.name {
        Some(name) => output::aside(format_args!("session {id} ({})", output::tame(name))),
        None => output::aside(format_args!("session {id}")),
    }
}

/// Whether a session was closed, so that nothing more happens in it.
pub(crate) async fn is_closed(finder: &Finder, session: &Listed) -> Result<bool, Problem> {
    let after = session.last_sequence.saturating_sub(LAST_EVENTS);
    let path = format!("/v1/sessions/{}/history?after={after}&limit={LAST_EVENTS}", session.id);
    let history = http::ask(finder, Method::GET, &path, None).await?;
    let mut events = history["events"].as_array().into_iter().flatten().rev();
    let end =
        events.find(|event| event["type"] == "session_closed" || event["type"] == "session_up");
    Ok(end.is_some_and(|event| event["type"] == "session_closed"))
}

/// By id, else by the beginning of an id, else by a name; whatever it is, it must be one.
fn choose(sessions: &[Value], meant: &str) -> Result<Listed, Problem> {
    let id = |session: &Value| session["session_id"].as_str().unwrap_or_default().to_owned();
    let by_id = |session: &&Value| id(session) == meant;
    let is_prefix = meant.chars().count() >= PREFIX_CHARACTERS_MIN;
    let by_prefix = |session: &&Value| is_prefix && id(session).starts_with(meant);
    let by_name = |session: &&Value| {
        ["title", "display_name", "agent_type", "workspace_name"].iter().any(|name| {
            session[*name].as_str().is_some_and(|name| name.eq_ignore_ascii_case(meant))
        })
    };
    let ways: [&dyn Fn(&&Value) -> bool; 3] = [&by_id, &by_prefix, &by_name];
    for way in ways {
        let all: Vec<&Value> = sessions.iter().filter(|session| way(session)).collect();
        // A name also means the one of several that is there.
        let there: Vec<&Value> = all.iter().copied().filter(|session| is_there(session)).collect();
        match (all.as_slice(), there.as_slice()) {
            ([], _) => {}
            ([one], _) | (_, [one]) => {
                let last_sequence = one["last_sequence"].as_u64().unwrap_or_default();
                let name = ["title", "display_name"].iter().find_map(|name| one[*name].as_str());
                return Ok(Listed { id: id(one), name: name.map(str::to_owned), last_sequence });
            }
            (several, _) => {
                let ids: Vec<String> = several.iter().map(|session| id(session)).collect();
                let ids = ids.join(", ");
                return Err(Problem::new(format!(
                    "{meant:?} matches several sessions: {ids}. Use more of the id"
                )));
            }
        }
    }
    let is_short = !is_prefix && sessions.iter().any(|it| id(it).starts_with(meant));
    let least = format!(" (a shortened id needs at least {PREFIX_CHARACTERS_MIN} characters)");
    let hint = if is_short && !meant.is_empty() { least } else { String::new() };
    Err(Problem::new(format!(
        "no session {meant:?}{hint}; list the sessions with: farhelm sessions"
    )))
}

fn is_there(session: &Value) -> bool {
    session["status"].as_str().is_some_and(|status| !matches!(status, "disconnected" | "closed"))
        && session["archived"].as_bool() != Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(sessions: &Value, meant: &str) -> Result<String, String> {
        let sessions = sessions.as_array().unwrap();
        choose(sessions, meant).map(|it| it.id).map_err(|problem| problem.words().to_owned())
    }

    #[test]
    fn a_session_is_meant_by_its_id_the_beginning_of_it_or_its_name() {
        let sessions = json!([
            {"session_id": "abcde", "display_name": "Demo", "status": "healthy"},
            {"session_id": "abcdef", "agent_type": "codex", "status": "healthy"},
            {"session_id": "uvwxyz", "display_name": "demo", "status": "disconnected"},
            {"session_id": "7", "display_name": "c3", "status": "healthy"},
        ]);

        assert_eq!(chosen(&sessions, "abcde").as_deref(), Ok("abcde"));
        assert_eq!(chosen(&sessions, "uvwx").as_deref(), Ok("uvwxyz"));
        assert_eq!(chosen(&sessions, "CODEX").as_deref(), Ok("abcdef"));
        assert_eq!(chosen(&sessions, "demo").as_deref(), Ok("abcde"), "the one that is there");
        assert!(chosen(&sessions, "abcd").unwrap_err().contains("abcde, abcdef"));
        // A whole id and a whole name may be as short as they like.
        assert_eq!(chosen(&sessions, "7").as_deref(), Ok("7"));
        assert_eq!(chosen(&sessions, "C3").as_deref(), Ok("7"));
        for short in ["u", "uv", "uvw"] {
            let words = chosen(&sessions, short).unwrap_err();
            assert!(words.contains("at least 4 characters"), "{words}");
        }
        assert!(chosen(&sessions, "other").unwrap_err().contains("farhelm sessions"));
        assert!(chosen(&sessions, "").is_err());
    }
}
