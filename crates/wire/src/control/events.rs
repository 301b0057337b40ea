//! How each recorded event is shown to a client of this dialect.
//!
//! Not here: answers to a client's own requests (`requests`), which only that client receives.

use bytes::Bytes;
use domain::PromptId;
use domain::session::{Event, Recorded, config, prompts, runs, status, transcript};
use serde_json::{Value, json};

use super::messages::{self, Frames, informational};
use super::view::View;
use super::{names, prompts as permission, system};

/// The frames of an event that are the same for everybody, made before the view takes it in.
pub(super) fn shared(view: &View, recorded: &Recorded) -> Vec<Bytes> {
    let mut frames = Frames::of(view, recorded);
    match &recorded.event {
        Event::Transcript(event) => said(&mut frames, view, event),
        Event::Prompt(event) => asked(&mut frames, view, event),
        Event::Run(runs::Event::Started { .. }) => {
            let mut running = system::state("running");
            // The first is that of the `init`, which is made for each connection.
            running["uuid"] = json!(names::of_event(&view.session, recorded.sequence, 1));
            frames.push(running);
        }
        // The result is made for each connection; this comes after it.
        Event::Run(runs::Event::Ended { .. }) => frames.push(system::state("idle")),
        Event::Config(config) => configured(&mut frames, view, config),
        Event::Status(event) => {
            if let Some((words, level)) = status(event) {
                frames.push(informational(&words, level));
            }
            let work = view.work_after(event);
            // With a question open the state stays `requires_action`; its end brings the next.
            if work != view.work() && view.prompts.is_empty() {
                frames.push(system::state(work));
            }
        }
        Event::Delivery(_) | Event::Queue(_) | Event::Control(_) => {}
    }
    frames.bytes()
}

/// The frames of an event that is long past: what was said, and the results.
pub(super) fn past(view: &View, recorded: &Recorded) -> Vec<Bytes> {
    let mut frames = Frames::of(view, recorded);
    match &recorded.event {
        Event::Transcript(transcript::Event::Message(message)) => {
            messages::message(&mut frames, view, message, true);
        }
        Event::Transcript(event) => said(&mut frames, view, event),
        Event::Run(runs::Event::Ended { outcome, usage, .. }) => {
            frames.push(system::recorded_result(view, outcome, usage.as_ref(), recorded));
        }
        // Whoever was asked before it went away need not ask its person any more.
        Event::Prompt(prompts::Event::Settled { prompt, .. }) => {
            frames.push_plain(cancelled(prompt));
        }
        Event::Run(runs::Event::Started { .. })
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_) => {}
    }
    frames.bytes()
}

fn cancelled(prompt: &PromptId) -> Value {
    json!({ "type": "control_cancel_request", "request_id": prompt })
}

fn said(frames: &mut Frames<'_>, view: &View, event: &transcript::Event) {
    match event {
        transcript::Event::Message(message) => messages::message(frames, view, message, false),
        transcript::Event::ToolCall(call) => messages::tool_call(frames, view, call),
        transcript::Event::ToolUpdate(update) => {
            if let Some(frame) = messages::tool_end(view, update, None) {
                frames.push(frame);
            }
        }
        transcript::Event::Notice(notice) => {
            let level = if notice.kind == "error" { "warning" } else { "notice" };
            frames.push(informational(&notice.text, level));
        }
        transcript::Event::Plan(_)
        | transcript::Event::Context(_)
        | transcript::Event::Echoed(_) => {}
    }
}

fn asked(frames: &mut Frames<'_>, view: &View, event: &prompts::Event) {
    match event {
        prompts::Event::Asked(prompt) => {
            frames.push_plain(permission::request(prompt));
            frames.push(system::state("requires_action"));
        }
        prompts::Event::Reopened { prompt, failure } => {
            let words = format!("The answer could not be applied: {}", failure.message);
            frames.push(informational(&words, "warning"));
            frames.push_plain(permission::request(prompt));
            frames.push(system::state("requires_action"));
        }
        // Whoever answered is spared the first of these two.
        prompts::Event::Settled { prompt, .. } => {
            frames.push_plain(cancelled(prompt));
            if view.prompts.keys().all(|open| open == prompt) {
                frames.push(system::state(view.work()));
            }
        }
        prompts::Event::Confirmed(_) => {}
    }
}

fn configured(frames: &mut Frames<'_>, view: &View, config: &config::AgentConfig) {
    let before = view.mode();
    if before.is_some() && config.permission_mode.as_deref() != before {
        let mut next = View::new(view.session.clone());
        next.config = Some(config.clone());
        frames.push(system::mode_changed(&next));
    }
}

fn status(event: &status::Event) -> Option<(String, &'static str)> {
    match event {
        status::Event::Up { .. } => Some(("The session's machine is connected".to_owned(), "info")),
        status::Event::Down { .. } => {
            Some(("The session's machine is offline".to_owned(), "warning"))
        }
        status::Event::Changed { reason, .. } => reason.clone().map(|words| (words, "notice")),
        status::Event::Closed { .. } => Some(("The session was closed".to_owned(), "warning")),
        status::Event::Renamed(_) | status::Event::Archived(_) => None,
    }
}
