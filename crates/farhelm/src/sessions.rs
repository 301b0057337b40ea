//! Which session a person means.
//!
//! Not here: printing the list (`commands::sessions`).

use hyper::Method;
use serde_json::Value;

use crate::discovery::Finder;
use crate::http;
use crate::problem::Problem;

/// A session of the relay's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its id.
    pub(crate) id: String,
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

/// By id, else by the beginning of an id, else by a name; whatever it is, it must be one.
fn choose(sessions: &[Value], meant: &str) -> Result<Listed, Problem> {
    let id = |session: &Value| session["session_id"].as_str().unwrap_or_default().to_owned();
    let by_id = |session: &&Value| id(session) == meant;
    let by_prefix = |session: &&Value| !meant.is_empty() && id(session).starts_with(meant);
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
                return Ok(Listed { id: id(one), last_sequence });
            }
            (several, _) => {
                let ids: Vec<String> = several.iter().map(|session| id(session)).collect();
                let ids = ids.join(", ");
                return Err(Problem::new(format!("{meant:?} may be any of {ids}; say more of it")));
            }
        }
    }
    Err(Problem::new(format!("no session is {meant:?}; list them with: farhelm sessions")))
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
            {"session_id": "abc", "display_name": "Demo", "status": "healthy"},
            {"session_id": "abcd", "agent_type": "codex", "status": "healthy"},
            {"session_id": "xyz", "display_name": "demo", "status": "disconnected"},
        ]);

        assert_eq!(chosen(&sessions, "abc").as_deref(), Ok("abc"));
        assert_eq!(chosen(&sessions, "x").as_deref(), Ok("xyz"));
        assert_eq!(chosen(&sessions, "CODEX").as_deref(), Ok("abcd"));
        assert_eq!(chosen(&sessions, "demo").as_deref(), Ok("abc"), "the one that is there");
        assert!(chosen(&sessions, "ab").unwrap_err().contains("abc, abcd"));
        assert!(chosen(&sessions, "other").unwrap_err().contains("farhelm sessions"));
        assert!(chosen(&sessions, "").is_err());
    }
}
