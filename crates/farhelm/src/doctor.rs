//! `farhelm doctor`: checks everything that commonly goes wrong, and says what to do.
//!
//! **Invariant**: it changes nothing.
//!
//! Not here: the single checks (`agents`, `cdp`, `disk`, `relay`).

mod agents;
mod cdp;
mod disk;
mod relay;

use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::arguments::{self, DoctorTopic};
use crate::problem::Problem;
use crate::{folders, output};

/// How a look ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Needs fixing.
    Wrong,
}

/// One look.
#[derive(Debug, Serialize)]
struct Look {
    name: &'static str,
    verdict: Verdict,
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Look {
    fn ok(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, words: words.into(), advice: None }
    }

    fn note(name: &'static str, words: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Note, words: words.into(), advice: None }
    }

    fn wrong(name: &'static str, words: impl Into<String>, advice: impl Into<String>) -> Self {
        let (words, advice) = (words.into(), Some(advice.into()));
        Self { name, verdict: Verdict::Wrong, words, advice }
    }
}

/// What a check is called in the terminal. Programs read its `name`.
fn label(name: &str) -> &str {
    match name {
        "rights" => "permissions",
        "guards" => "limits",
        "skeleton" => "old panel",
        other => other,
    }
}

/// Looks, prints, and ends with 1 when something needs fixing.
pub(crate) async fn run(asked: arguments::Doctor) -> Result<ExitCode, Problem> {
    let mut looks = vec![];
    let data = || folders::data(asked.reach.data.data.as_deref());
    match asked.topic {
        Some(DoctorTopic::Cdp) => looks.extend(cdp::look(&asked.agents.ide, &data()?, true).await),
        None => {
            if asked.reach.relay.is_none() {
                let data = data()?;
                looks.extend(disk::look(&data));
                looks.extend(agents::look(&asked.agents).await);
                looks.extend(cdp::look(&asked.agents.ide, &data, false).await);
            }
            looks.extend(relay::look(&asked).await?);
        }
    }
    let well = looks.iter().all(|look| look.verdict != Verdict::Wrong);
    if asked.json {
        output::json(&json!({ "ok": well, "checks": looks }))?;
    } else {
        for look in &looks {
            let mark = match look.verdict {
                Verdict::Ok => "ok  ",
                Verdict::Note => "note",
                Verdict::Wrong => "FAIL",
            };
            output::line(format_args!("{mark}  {:<12} {}", label(look.name), look.words))?;
            if let Some(advice) = &look.advice {
                output::line(format_args!("                   {advice}"))?;
            }
        }
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
