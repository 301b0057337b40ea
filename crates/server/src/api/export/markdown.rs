//! One event as Markdown for people.
//!
//! Not here: the content of a sealed session, which only its readers can decrypt.

use std::fmt::Write as _;

use domain::content::{Author, Content, Message, Part, PlanStatus, ToolCall, ToolDetail};
use domain::session::{Event, Recorded, delivery, prompts, runs, transcript};

use crate::clock::iso8601;

const SEALED: &str = "*(sealed: only someone with its key can read this)*";

/// Empty for what is no part of the conversation.
pub(super) fn of(recorded: &Recorded) -> String {
    let at = iso8601(recorded.at);
    match &recorded.event {
        Event::Transcript(event) => match event {
            transcript::Event::Message(said) => message(said, &at),
            transcript::Event::ToolCall(call) => tool_call(call),
            transcript::Event::ToolUpdate(update) => output(&update.detail),
            transcript::Event::Plan(plan) => plan.open().map_or_else(String::new, |entries| {
                let lines = entries.iter().map(|entry| {
                    let done = entry.status == PlanStatus::Completed;
                    format!("- [{}] {}\n", if done { 'x' } else { ' ' }, entry.text)
                });
                format!("\n{}", lines.collect::<String>())
            }),
            transcript::Event::Notice(notice) => format!("\n> {}: {}\n", notice.kind, notice.text),
            transcript::Event::Context(_) | transcript::Event::Echoed(_) => String::new(),
        },
        Event::Prompt(prompts::Event::Asked(prompt)) => {
            format!("\n> Asked for permission (`{}`).\n", prompt.id)
        }
        Event::Prompt(prompts::Event::Settled { prompt, choice, .. }) => {
            let choice = choice.as_ref().map_or("no choice", |choice| choice.as_str());
            format!("\n> Permission `{prompt}`: {choice}.\n")
        }
        Event::Delivery(delivery::Event::Failed { id, failure }) => {
            format!(
                "\n> Message `{id}` was not delivered: {} ({}).\n",
                failure.message, failure.code
            )
        }
        Event::Run(runs::Event::Ended { outcome: runs::Outcome::Failed(why), .. }) => {
            format!("\n> The run failed: {why}.\n")
        }
        Event::Run(runs::Event::Ended { outcome: runs::Outcome::Cut(cut), .. }) => {
            format!("\n> The run was interrupted: {}.\n", cut.why)
        }
        Event::Run(runs::Event::Ended { outcome: runs::Outcome::Interrupted, .. }) => {
            "\n> The run was interrupted.\n".to_owned()
        }
        Event::Prompt(prompts::Event::Confirmed(_) | prompts::Event::Reopened { .. })
        | Event::Delivery(
            delivery::Event::Accepted(_)
            | delivery::Event::HandedOver { .. }
            | delivery::Event::Delivered { .. },
        )
        | Event::Run(
            runs::Event::Started { .. }
            | runs::Event::Ended { outcome: runs::Outcome::Completed, .. },
        )
        | Event::Queue(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_) => String::new(),
    }
}

fn message(message: &Message, at: &str) -> String {
    let author = match message.author {
        Author::User => "User",
        Author::Assistant => "Assistant",
        Author::System => "System",
    };
    let mut text = format!("\n## {author} · {at}\n");
    let Some(parts) = message.parts.open() else {
        let _ = write!(text, "\n{SEALED}\n");
        return text;
    };
    for part in parts {
        let _ = match part {
            Part::Text(words) => write!(text, "\n{words}\n"),
            Part::Thinking(words) => {
                write!(text, "\n> *thinking*\n>\n> {}\n", words.replace('\n', "\n> "))
            }
            Part::Image(file) | Part::File(file) => {
                write!(text, "\n[{}](/v1/uploads/{})\n", file.name, file.id)
            }
            Part::ToolCall(_) => Ok(()),
        };
    }
    text
}

fn tool_call(call: &ToolCall) -> String {
    let title = call.detail.open().and_then(|detail| detail.title.as_deref()).unwrap_or_default();
    let mut text = format!("\n### Tool: {} {title}\n", call.tool);
    if let Some(input) = call.detail.open().and_then(|detail| detail.input.as_deref()) {
        text.push_str(&fenced("json", input));
    }
    text.push_str(&output(&call.detail));
    text
}

fn output(detail: &Content<ToolDetail>) -> String {
    let Some(detail) = detail.open() else { return format!("\n{SEALED}\n") };
    let output = detail.output.as_deref().map(|output| fenced("", output));
    let diffs = detail.diffs.iter().map(|diff| {
        let new = diff.new_text.as_deref().unwrap_or_default();
        format!("\n`{}`:\n{}", diff.path, fenced("", new))
    });
    output.into_iter().chain(diffs).collect()
}

/// A fence that is longer than any inside.
fn fenced(language: &str, text: &str) -> String {
    let inside = text.lines().map(|line| line.bytes().take_while(|b| *b == b'`').count()).max();
    let fence = "`".repeat(inside.unwrap_or_default().max(2) + 1);
    format!("\n{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use domain::{Sequence, Timestamp};

    use super::*;

    #[test]
    fn a_message_is_a_heading_and_its_words() {
        let said = Message {
            id: "m".into(),
            author: Author::Assistant,
            parts: Content::Open(vec![
                Part::Thinking("hm\nwell".into()),
                Part::Text("Hello **you**".into()),
            ]),
            created_at: Timestamp(0),
            run: None,
            parent: None,
            digest: None,
        };
        let event = Event::Transcript(transcript::Event::Message(said));
        let recorded = Recorded { sequence: Sequence(1), at: Timestamp(0), position: None, event };

        let told = "\n## Assistant · 1970-01-01T00:00:00.000Z\n\
            \n> *thinking*\n>\n> hm\n> well\n\
            \nHello **you**\n";
        assert_eq!(of(&recorded), told);
    }

    #[test]
    fn a_fence_inside_does_not_end_the_fence_around_it() {
        assert_eq!(fenced("", "````\nx"), "\n`````\n````\nx\n`````\n");
    }
}
