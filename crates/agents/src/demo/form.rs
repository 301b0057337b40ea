//! Questions with options: several at once, with one choice, several choices, or free text.
//!
//! Not here: when it is asked and what follows (`run`).

use domain::session::prompts::{Choice, Detail, Effect, Prompt};
use domain::{Content, PromptId, RunId, Timestamp};
use serde_json::{Value, json};

/// The button that sends what was filled in.
pub(super) const ANSWER: &str = "answer";

/// Three questions about a matter: one of several, some of several, and words.
pub(super) fn prompt(id: PromptId, matter: &str, run: RunId, now: Timestamp) -> Prompt {
    let questions = json!([
        {
            "question": format!("Which {matter} first?"), "header": "First",
            "options": [
                { "label": "The small one", "description": "Done today" },
                { "label": "The large one", "description": "Takes a week" },
            ],
        },
        {
            "question": "What belongs to it?", "header": "With", "multiSelect": true,
            "options": [{ "label": "Tests" }, { "label": "Documents" }, { "label": "A picture" }],
        },
        { "question": "What is it called?", "header": "Name" },
    ]);
    let choice = |id: &str, label: &str, effect| Choice {
        id: id.into(),
        label: label.to_owned(),
        is_default: false,
        effect: Some(effect),
        wants_answers: false,
    };
    Prompt {
        id,
        text: Content::Open(format!("Three questions about the {matter}")),
        choices: vec![
            choice(ANSWER, "Answer", Effect::AllowOnce),
            choice("no", "Skip", Effect::Reject),
        ],
        // People take their time over questions; only commands run out of it.
        expiry: None,
        detected_at: now,
        run: Some(run),
        detail: Some(Content::Open(Detail {
            tool: Some("AskUserQuestion".to_owned()),
            questions: Some(questions.to_string()),
            ..Detail::default()
        })),
    }
}

/// What was answered, one line for each question, in the order of their words.
pub(super) fn said(answers: Option<&str>) -> String {
    let answers = answers.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let lines: Vec<String> = match answers {
        Some(Value::Object(answers)) => answers
            .iter()
            .map(|(question, answer)| format!("{question} {}", words(answer)))
            .collect(),
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        )
        | None => vec![],
    };
    if lines.is_empty() {
        "answered: nothing".to_owned()
    } else {
        format!("answered: {}", lines.join("; "))
    }
}

fn words(answer: &Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}
