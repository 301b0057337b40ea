//! What a client of another dialect was shown when it joined: the messages so far, and the
//! questions that were open; and the questions that were asked later.
//!
//! Not here: the words that came live (`words`).

use std::collections::BTreeSet;

use bytes::Bytes;
use domain::PromptId;
use domain::session::{Event, Recorded, prompts, transcript};
use serde_json::Value;

use super::History;
use super::words::{Said, pi_message, said, text};
use crate::visitor_node::{Dialect, Life};
use crate::witness::View;

/// Messages that come with a session in the blob dialect.
const RECENT: usize = 20;

/// What the ids of a dialect's own questions begin with.
const AGAIN: &str = "again-";

/// The histories that one view was shown.
pub(super) fn check_histories(
    name: &str,
    dialect: Dialect,
    history: &History,
    view: &View,
    frames: &[Value],
) -> Vec<String> {
    match dialect {
        Dialect::Pi => frames.iter().filter_map(|frame| pi(name, history, view, frame)).collect(),
        Dialect::Blob => {
            frames.iter().filter_map(|frame| blob(name, history, view, frame)).collect()
        }
        // They are told what comes after an event as events.
        Dialect::Control | Dialect::Webchannel => vec![],
    }
}

/// `get_messages`: everything that is kept, up to an event that this client was shown.
fn pi(name: &str, history: &History, view: &View, frame: &Value) -> Option<String> {
    if frame["type"] != "response" || frame["command"] != "get_messages" {
        return None;
    }
    let messages = frame["data"]["messages"].as_array()?;
    let read: Vec<Said> = messages.iter().filter_map(pi_message).collect();
    let end = view.events.last().map_or(view.head, |last| last.sequence).0;
    let all = |it: &&Recorded| it.sequence.0 <= end;
    let due: Vec<(u64, Said)> = history
        .events
        .iter()
        .filter(all)
        .filter_map(|it| Some((it.sequence.0, said(Dialect::Pi, it)?)))
        .collect();
    let gone = due.iter().take_while(|(sequence, _)| *sequence < history.first_kept).count();
    let joined = due.iter().take_while(|(sequence, _)| *sequence <= view.head.0).count();
    let fits = |begin: usize| {
        let part = due.get(begin..begin + read.len()).unwrap_or_default();
        let is_whole = begin + read.len() >= joined;
        is_whole && part.len() == read.len() && part.iter().map(|(_, it)| it).eq(&read)
    };
    let is_good = (0..=gone).any(fits);
    (!is_good).then(|| format!("{name}: its history was {read:?}, and {due:?} was due"))
}

/// The last messages before the client came.
fn blob(name: &str, history: &History, view: &View, frame: &Value) -> Option<String> {
    if frame["event"] != "session_changed" {
        return None;
    }
    let rows = frame["payload"]["messages"].as_array()?;
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("id"), text("content"))
    };
    let read: Vec<_> = rows.iter().map(row).collect();
    let messages = history.events.iter().filter(|it| it.sequence <= view.head).filter_map(|it| {
        let Event::Transcript(transcript::Event::Message(message)) = &it.event else { return None };
        let content = text(Dialect::Blob, message);
        let is_shown = message.parent.is_none() && !content.is_empty();
        is_shown.then(|| (it.sequence.0, (message.id.to_string(), content)))
    });
    let due: Vec<_> = messages.collect();
    let gone = due.iter().take_while(|(sequence, _)| *sequence < history.first_kept).count();
    let begin = due.len().checked_sub(read.len());
    let is_end = begin.is_some_and(|begin| due[begin..].iter().map(|(_, it)| it).eq(&read));
    // "What was said is not to be had; what happens is": a client comes in without the past.
    let is_unread = history.has_unread && read.is_empty();
    let is_whole = read.len() == RECENT || is_unread || begin.is_some_and(|begin| begin <= gone);
    let is_good = is_end && is_whole;
    (!is_good).then(|| format!("{name}: the last messages were {read:?}, and {due:?} was due"))
}

/// The questions that one connection was asked.
pub(super) fn check_questions(
    name: &str,
    dialect: Dialect,
    view: &View,
    life: &Life,
    is_whole: bool,
) -> Option<String> {
    let asked = view.events.iter().filter_map(|recorded| match &recorded.event {
        Event::Prompt(prompts::Event::Asked(prompt)) => Some(&prompt.id),
        Event::Prompt(prompts::Event::Reopened { prompt, .. }) => Some(&prompt.id),
        Event::Prompt(prompts::Event::Settled { .. } | prompts::Event::Confirmed(_))
        | Event::Transcript(_)
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Control(_)
        | Event::Run(_)
        | Event::Config(_)
        | Event::Status(_) => None,
    });
    let due: BTreeSet<&str> = view.open.iter().chain(asked).map(PromptId::as_str).collect();
    // A client that kept its questions over a connection takes no notice of the same ones.
    let frames = life.frames.iter().filter(|_| dialect == Dialect::Control);
    let kept: Vec<_> = frames.filter_map(control_request).collect();
    // This dialect's own: whether a message that may have arrived is to be said again.
    let own = |id: &&str| dialect == Dialect::Pi && id.starts_with(AGAIN);
    let read = life.asked.iter().chain(&kept).map(String::as_str);
    let read: BTreeSet<&str> = read.filter(|id| !own(id)).collect();
    let is_good = read.is_subset(&due) && (!is_whole || read == due);
    (!is_good).then(|| format!("{name}: was asked {read:?}, and {due:?} was due"))
}

fn control_request(frame: &Bytes) -> Option<String> {
    let frame: Value = serde_json::from_slice(frame).ok()?;
    let is_question = frame["type"] == "control_request";
    is_question.then(|| frame["request_id"].as_str().map(str::to_owned)).flatten()
}
