//! What a client of another dialect could read: the words of people and of the agent, each once,
//! in order, as they are in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use client::webchannel;
use domain::RunId;
use domain::content::{Author, Message, Part};
use domain::session::{Event, Recorded, delivery, runs, transcript};
use serde_json::Value;

use super::{History, past};
use crate::credentials::KEY;
use crate::visitor_node::{Dialect, Life};
use crate::witness::{Noted, View};

/// What a client hears that asks for more than retention left.
const NO_LONGER_KEPT: &str = "Earlier messages are no longer stored";

/// Somebody said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    by_agent: bool,
    text: String,
}

/// What one connection could read while it looked at this session. With `is_whole` set it heard
/// everything.
pub(super) fn check(
    name: &str,
    dialect: Dialect,
    history: &History,
    life: &Life,
    noted: &Noted,
    is_whole: bool,
) -> Vec<String> {
    let mut wrong = vec![];
    for (number, view) in noted.views.iter().enumerate() {
        // Where the session that it named is not there, one of these dialects goes to another.
        if view.session != history.session || has_gap(view) {
            continue;
        }
        let next = noted.views.get(number + 1);
        let heard = life.frames.len();
        let begin = if number == 0 { 0 } else { view.said_before.min(heard) };
        let end = next.map_or(heard, |next| next.said_before.min(heard));
        let frames = &life.frames[begin..end];
        let is_whole = is_whole && next.is_none();
        let after = life.after.filter(|_| dialect == Dialect::Control && number == 0);
        wrong.extend(check_view(name, dialect, history, (view, after), frames, is_whole));
        if noted.views.len() == 1 {
            wrong.extend(past::check_questions(name, dialect, view, life, is_whole));
        }
    }
    wrong
}

/// Whether retention took events before this client, which was slow, had read them. What was being
/// said then has no end that it could be held against; the events themselves are (`shown`).
fn has_gap(view: &View) -> bool {
    let events = view.events.iter().map(|it| it.sequence.0);
    !events.eq((view.head.0 + 1..).take(view.events.len()))
}

fn check_view(
    name: &str,
    dialect: Dialect,
    history: &History,
    (view, after): (&View, Option<u64>),
    raw: &[Bytes],
    is_whole: bool,
) -> Vec<String> {
    let frames: Vec<Value> =
        raw.iter().filter_map(|frame| serde_json::from_slice(frame).ok()).collect();
    let mut wrong = past::check_histories(name, dialect, history, view, &frames);
    let read: Vec<Said> = match dialect {
        Dialect::Blob => {
            wrong.extend(check_blob(name, view, &frames, is_whole));
            return wrong;
        }
        Dialect::Control => frames.iter().filter_map(control).collect(),
        Dialect::Pi => frames.iter().filter_map(pi).collect(),
        Dialect::Webchannel => webchannel(raw),
    };
    let begin = after.unwrap_or(view.head.0);
    let before = history.events.iter();
    let due: Vec<(u64, Said)> = before
        .filter(|it| it.sequence.0 > begin && it.sequence <= view.head)
        .chain(&view.events)
        .filter_map(|it| Some((it.sequence.0, said(dialect, it)?)))
        .collect();
    // A client that is told that more was said earlier misses what is really gone, and no more.
    let is_cut = frames.iter().any(|frame| frame["content"] == NO_LONGER_KEPT);
    let is_gone = |(sequence, _): &&(u64, Said)| is_cut && *sequence < history.first_kept;
    let gone = due.iter().take_while(is_gone).count();
    // The words that begin a run are told with its beginning.
    let held = usize::from(dialect == Dialect::Pi);
    let fits = |skipped: usize| {
        let due = &due[skipped..];
        let is_begin =
            read.len() <= due.len() && read.iter().zip(due).all(|(it, due)| *it == due.1);
        is_begin && (!is_whole || read.len() + held >= due.len())
    };
    if (0..=gone).any(fits) {
        return wrong;
    }
    let differs = read.iter().zip(&due).position(|(read, due)| *read != due.1);
    let place = differs.unwrap_or(read.len().min(due.len()));
    let (read, due) = (read.get(place), due.get(place));
    wrong.push(format!("{name}: read {read:?} where {due:?} was due"));
    wrong
}

/// What an event says in words.
pub(super) fn said(dialect: Dialect, recorded: &Recorded) -> Option<Said> {
    let Event::Transcript(transcript::Event::Message(message)) = &recorded.event else {
        return None;
    };
    let by_agent = match message.author {
        Author::User => false,
        Author::Assistant => true,
        Author::System => return None,
    };
    let text = text(dialect, message);
    (!text.is_empty()).then_some(Said { by_agent, text })
}

pub(super) fn text(dialect: Dialect, message: &Message) -> String {
    let between = match dialect {
        Dialect::Webchannel => "\n\n",
        Dialect::Blob => "\n",
        Dialect::Pi | Dialect::Control => "",
    };
    // The command line of blob takes square brackets for markup.
    let named = |name: &str| match dialect {
        Dialect::Blob => format!("(file: {name})"),
        Dialect::Pi | Dialect::Control | Dialect::Webchannel => format!("[file: {name}]"),
    };
    let parts = message.parts.open().into_iter().flatten();
    let texts = parts.filter_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::File(file) => Some(named(&file.name)),
        Part::Thinking(_) | Part::Image(_) | Part::ToolCall(_) => None,
    });
    texts.collect::<Vec<_>>().join(between)
}

fn texts_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn control(frame: &Value) -> Option<Said> {
    let by_agent = match frame["type"].as_str()? {
        // One that is no event is the answer to a send that was repeated.
        "user" if frame["sequence_num"].is_null() => return None,
        "user" => false,
        "assistant" => true,
        _ => return None,
    };
    let text = texts_of(&frame["message"]["content"]);
    (!text.is_empty()).then_some(Said { by_agent, text })
}

fn pi(frame: &Value) -> Option<Said> {
    if frame["type"] == "message_end" { pi_message(&frame["message"]) } else { None }
}

/// A message of the agent that has no id is the end of a run that went wrong, not words.
pub(super) fn pi_message(message: &Value) -> Option<Said> {
    let by_agent = match message["role"].as_str()? {
        "user" => false,
        "assistant" if message["responseId"].is_string() => true,
        _ => return None,
    };
    let text = texts_of(&message["content"]);
    (!text.is_empty()).then_some(Said { by_agent, text })
}

fn webchannel(frames: &[Bytes]) -> Vec<Said> {
    let (access_token, key, expires_in_s) = (String::new(), Some(KEY), 1);
    let auth = webchannel::Auth { access_token, key, expires_in_s };
    let mut reader = webchannel::Machine::new("reader", Some(auth), [0; 32]);
    let mut said = vec![];
    // Without the pieces, a message that was cut is an end without words.
    for frame in frames.iter().filter(|frame| !is_piece(frame)) {
        for happening in reader.on_frame(&String::from_utf8_lossy(frame)) {
            match happening {
                webchannel::Happening::Person(text) => said.push(Said { by_agent: false, text }),
                webchannel::Happening::Final(Some(text)) => {
                    said.push(Said { by_agent: true, text });
                }
                webchannel::Happening::Paired(_)
                | webchannel::Happening::Chunk(_)
                | webchannel::Happening::Final(_)
                | webchannel::Happening::ToolCall { .. }
                | webchannel::Happening::ToolResult { .. }
                | webchannel::Happening::Asked { .. }
                | webchannel::Happening::Decided { .. }
                | webchannel::Happening::Error { .. }
                | webchannel::Happening::LoggedOut => {}
            }
        }
    }
    said
}

fn is_piece(frame: &[u8]) -> bool {
    let kind = serde_json::from_slice::<Value>(frame).map(|frame| frame["type"].clone());
    kind.is_ok_and(|kind| kind == "assistant_chunk")
}

/// The runs that a crash of their machine cut off.
fn cut_runs(view: &View) -> BTreeSet<&RunId> {
    let ends = view.events.iter().filter_map(|recorded| match &recorded.event {
        Event::Run(runs::Event::Ended { run, outcome: runs::Outcome::Cut(_), .. }) => Some(run),
        Event::Run(_)
        | Event::Transcript(_)
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_) => None,
    });
    ends.collect()
}

/// People's words come when they are accepted, the agent's in pieces.
fn check_blob(name: &str, view: &View, frames: &[Value], is_whole: bool) -> Vec<String> {
    let mut wrong = vec![];
    let (mut people, mut agent) = (vec![], BTreeMap::<String, String>::new());
    for frame in frames.iter().filter(|frame| frame["type"] == "event") {
        let payload = &frame["payload"];
        let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
        match (frame["event"].as_str(), payload["role"].as_str()) {
            (Some("message"), Some("user")) => people.push(text("content")),
            (Some("token"), _) | (Some("message"), Some("assistant")) => {
                agent.entry(text("messageId")).or_default().push_str(&text("content"));
            }
            _ => {}
        }
    }
    let cut = cut_runs(view);
    let (mut due, mut echoed) = (vec![], BTreeSet::new());
    for recorded in &view.events {
        match &recorded.event {
            Event::Delivery(delivery::Event::Accepted(send)) => {
                echoed.insert(send.id.clone());
                due.push(send.text.open().cloned().unwrap_or_default());
            }
            Event::Delivery(delivery::Event::Failed { id, .. }) => {
                echoed.remove(id);
            }
            Event::Transcript(transcript::Event::Message(message)) => {
                let whole = text(Dialect::Blob, message);
                match message.author {
                    Author::User if !echoed.remove(&message.id) => due.push(whole),
                    Author::Assistant => {
                        let read = agent.get(message.id.as_str()).map_or("", String::as_str);
                        // The proxy writes what is being said without waiting for its disk: where
                        // the power fails, less of it is recorded than was read.
                        let is_cut = message.run.as_ref().is_some_and(|run| cut.contains(run));
                        let is_good = match (is_whole, is_cut) {
                            (_, true) => whole.starts_with(read) || read.starts_with(&whole),
                            (true, false) => whole == read,
                            (false, false) => whole.starts_with(read),
                        };
                        if !is_good {
                            let id = &message.id;
                            wrong.push(format!("{name}: read {id} as {read:?}, not {whole:?}"));
                        }
                    }
                    Author::User | Author::System => {}
                }
            }
            Event::Delivery(_)
            | Event::Transcript(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }
    // Files are told by their names, after the words.
    let is_it = |(read, due): (&String, &String)| read.starts_with(due.as_str());
    if people.len() > due.len() || !people.iter().zip(&due).all(is_it) {
        wrong.push(format!("{name}: read {people:?} of people, not {due:?}"));
    } else if is_whole && people.len() != due.len() {
        wrong.push(format!("{name}: never read {:?}", due[people.len()]));
    }
    wrong
}
