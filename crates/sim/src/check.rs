//! What must be true at the end of every run, whatever broke on the way.

mod fleet;
mod pages;
mod past;
mod shown;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use domain::content::{Author, Part};
use domain::session::delivery::{self, DELIVERY_UNKNOWN, State};
use domain::session::{Event, Recorded, prompts, runs, status, transcript};
use domain::{MessageId, Sequence, SessionId, Timestamp};
use store::Reader;

use crate::archive::Archive;
use crate::plain_proxy::Style;

pub(crate) use fleet::{Fleet, check as check_fleet, check_launcher, read as read_fleet};
pub(crate) use pages::check_pages;
pub(crate) use shown::{check_client, check_refused, check_said, check_visitor, due};

/// How much later than its deadline a send may be settled: the relay wakes every few seconds, a
/// commit may fail and be tried again, and the process may have stood still.
const LATE_MS_MAX: u64 = 30_000;

/// A session's ledger, read back, with what was taken from it.
pub(crate) struct History {
    /// Whose.
    pub(crate) session: SessionId,
    /// All of it.
    pub(crate) events: Vec<Recorded>,
    /// Whether it was erased: then some of what led to it may be missing.
    pub(crate) is_erased: bool,
    /// The oldest event that retention left.
    pub(crate) first_kept: u64,
    /// Whether a reader of the ledger failed in this world.
    pub(crate) has_unread: bool,
    /// Whether a bit of it was flipped, wherever that is by now.
    pub(crate) was_damaged: bool,
}

/// Reads a session's ledger back.
pub(crate) fn read(
    reader: &mut dyn Reader,
    archive: &Archive,
    session: &SessionId,
) -> Result<History, store::Fault> {
    let is_erased = reader.stream(session)?.is_none();
    let (kept, page) = reader.recorded(session, Sequence(0), None, usize::MAX, usize::MAX)?;
    let first_kept = if is_erased { u64::MAX } else { page.first_kept.0 };
    let mut events = archive.before(session, first_kept);
    events.extend(kept);
    let first_kept = page.first_kept.0;
    let session = session.clone();
    let (has_unread, was_damaged) = (false, false);
    Ok(History { session, events, is_erased, first_kept, has_unread, was_damaged })
}

/// The ledger by itself.
pub(crate) fn check_ledger(history: &History) -> Vec<String> {
    let session = &history.session;
    let mut wrong = vec![];
    for (index, recorded) in history.events.iter().enumerate() {
        if recorded.sequence.0 != index as u64 + 1 {
            wrong.push(format!("{session}: {} stands at place {}", recorded.sequence, index + 1));
            break;
        }
    }
    for (id, fate) in fates(history) {
        if fate.state == State::Accepted && !history.is_erased {
            wrong.push(format!("{session}: send {id} was accepted and came to nothing"));
        }
    }
    wrong.extend(check_prompts(history));
    wrong.extend(check_messages(history));
    wrong.extend(check_answers(history));
    wrong.extend(check_files(history));
    wrong
}

/// The ledger against what reached the agent, by the agent's own record.
pub(crate) fn check_agent(history: &History, received: &[(MessageId, String)]) -> Vec<String> {
    let session = &history.session;
    let fates = fates(history);
    let mut times: BTreeMap<&MessageId, usize> = BTreeMap::new();
    let mut wrong = vec![];
    for (id, text) in received {
        *times.entry(id).or_default() += 1;
        match fates.get(id) {
            None => wrong.push(format!("{session}: the agent has {id}, the ledger does not")),
            Some(fate) if fate.text != *text => {
                wrong.push(format!("{session}: {id} reached the agent as {text:?}"));
            }
            Some(_) => {}
        }
    }
    for (id, count) in &times {
        if *count > 1 {
            wrong.push(format!("{session}: send {id} reached the agent {count} times"));
        }
    }
    for (id, fate) in &fates {
        let reached = times.get(id).copied().unwrap_or_default();
        match &fate.state {
            State::Delivered if reached != 1 => {
                wrong.push(format!("{session}: {id} told delivered, reached it {reached} times"));
            }
            State::Failed(failure) if failure.code.as_str() != DELIVERY_UNKNOWN && reached > 0 => {
                wrong.push(format!("{session}: {id} told failed ({}), reached it", failure.code));
            }
            State::Delivered | State::Failed(_) | State::Accepted => {}
        }
    }
    wrong.extend(check_order(history, received));
    wrong
}

/// Sends reach the agent in the order in which they were handed over.
fn check_order(history: &History, received: &[(MessageId, String)]) -> Option<String> {
    let mut handed = history.events.iter().filter_map(|recorded| match &recorded.event {
        Event::Delivery(delivery::Event::HandedOver { id, .. }) => Some(id),
        Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Control(_)
        | Event::Run(_)
        | Event::Config(_)
        | Event::Transcript(_)
        | Event::Status(_) => None,
    });
    let (overtaken, _) = received.iter().find(|(id, _)| !handed.any(|it| it == id))?;
    Some(format!("{}: {overtaken} did not reach the agent in its turn", history.session))
}

/// A send that its machine does not come for fails when its grace time is over, also when the
/// relay was restarted meanwhile. Only for worlds in which the clock was not set.
pub(crate) fn check_deadlines(history: &History, grace_ms: u64) -> Vec<String> {
    let session = &history.session;
    let (mut waiting, mut down_since) = (BTreeMap::new(), Some(Timestamp(0)));
    let mut wrong = vec![];
    for recorded in &history.events {
        let now = recorded.at;
        match &recorded.event {
            Event::Status(status::Event::Up { .. }) => {
                if let Some(since) = down_since.take() {
                    for (id, accepted) in &waiting {
                        let since: Timestamp = since.max(*accepted);
                        let waited_ms = now.ms_since(since);
                        if waited_ms > grace_ms + LATE_MS_MAX {
                            wrong.push(format!("{session}: {id} waited for {waited_ms} ms"));
                        }
                    }
                }
            }
            Event::Status(status::Event::Down { since, .. }) => {
                down_since.get_or_insert(since.unwrap_or(now));
            }
            Event::Status(status::Event::Closed { .. }) => {
                down_since.get_or_insert(now);
            }
            Event::Delivery(delivery::Event::Accepted(send)) => {
                waiting.insert(send.id.clone(), now);
            }
            Event::Delivery(delivery::Event::Failed { id, .. }) => {
                if let (Some(accepted), Some(since)) = (waiting.remove(id), down_since) {
                    let waited_ms = now.ms_since(since.max(accepted));
                    if waited_ms > grace_ms + LATE_MS_MAX {
                        wrong.push(format!("{session}: {id} failed after {waited_ms} ms"));
                    }
                }
            }
            Event::Delivery(
                delivery::Event::HandedOver { id, .. } | delivery::Event::Delivered { id, .. },
            ) => {
                waiting.remove(id);
            }
            Event::Status(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Transcript(_) => {}
        }
    }
    wrong
}

struct Fate {
    state: State,
    text: String,
}

fn fates(history: &History) -> BTreeMap<MessageId, Fate> {
    let mut fates: BTreeMap<MessageId, Fate> = BTreeMap::new();
    for recorded in &history.events {
        let Event::Delivery(event) = &recorded.event else { continue };
        let (id, state) = match event {
            delivery::Event::Accepted(send) => {
                let text = send.text.open().cloned().unwrap_or_default();
                fates.insert(send.id.clone(), Fate { state: State::Accepted, text });
                continue;
            }
            delivery::Event::HandedOver { .. } => continue,
            delivery::Event::Delivered { id, .. } => (id, State::Delivered),
            delivery::Event::Failed { id, failure } => (id, State::Failed(failure.clone())),
        };
        if let Some(fate) = fates.get_mut(id) {
            fate.state = state;
        }
    }
    fates
}

/// A prompt settles once each time it opens.
fn check_prompts(history: &History) -> Vec<String> {
    let mut open = BTreeSet::new();
    let mut wrong = vec![];
    for recorded in &history.events {
        let Event::Prompt(event) = &recorded.event else { continue };
        let session = &history.session;
        match event {
            prompts::Event::Asked(prompt) => {
                open.insert(prompt.id.clone());
            }
            prompts::Event::Reopened { prompt, .. } => {
                open.insert(prompt.id.clone());
            }
            prompts::Event::Settled { prompt, .. } => {
                if !open.remove(prompt) {
                    wrong.push(format!("{session}: prompt {prompt} was settled twice"));
                }
            }
            prompts::Event::Confirmed(_) => {}
        }
    }
    wrong
}

/// A message is recorded once, a run starts once and ends once.
fn check_messages(history: &History) -> Vec<String> {
    let (mut messages, mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut wrong = vec![];
    let session = &history.session;
    for recorded in &history.events {
        let once = match &recorded.event {
            Event::Transcript(transcript::Event::Message(message)) => {
                messages.insert(message.id.clone())
            }
            Event::Run(runs::Event::Started { run, .. }) => begun.insert(run.clone()),
            Event::Run(runs::Event::Ended { run, .. }) => ended.insert(run.clone()),
            Event::Transcript(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => true,
        };
        if !once {
            wrong.push(format!("{session}: {} repeats something", recorded.sequence));
        }
    }
    wrong
}

/// A run that the agent completed left its words: the demo agent never ends one in silence.
fn check_answers(history: &History) -> Vec<String> {
    let session = &history.session;
    let mut answered = BTreeSet::new();
    let mut wrong = vec![];
    for recorded in &history.events {
        match &recorded.event {
            Event::Transcript(transcript::Event::Message(message))
                if message.author == Author::Assistant =>
            {
                answered.extend(message.run.clone());
            }
            Event::Run(runs::Event::Ended { run, outcome: runs::Outcome::Completed, .. })
                if !answered.contains(run) =>
            {
                wrong.push(format!("{session}: {run} was completed and its words are missing"));
            }
            Event::Transcript(_)
            | Event::Run(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }
    wrong
}

/// What the agent said of a file is what was sent with the message, and the transcript names it.
fn check_files(history: &History) -> Vec<String> {
    let session = &history.session;
    let mut files_of: BTreeMap<&MessageId, Vec<&str>> = BTreeMap::new();
    let mut wrong = vec![];
    for recorded in &history.events {
        match &recorded.event {
            Event::Delivery(delivery::Event::Accepted(send)) => {
                let names = send.attachments.iter().map(|file| file.name.as_str()).collect();
                files_of.insert(&send.id, names);
            }
            Event::Transcript(transcript::Event::Message(message)) => {
                let parts = message.parts.open().into_iter().flatten();
                let (mut text, mut files) = (String::new(), vec![]);
                for part in parts {
                    match part {
                        Part::Text(words) => text.push_str(words),
                        Part::File(file) => files.push(file.name.as_str()),
                        Part::Thinking(_) | Part::Image(_) | Part::ToolCall(_) => {}
                    }
                }
                if files_of.get(&message.id).is_some_and(|due| *due != files) {
                    let due = &files_of[&message.id];
                    wrong.push(format!("{session}: {} has {files:?}, not {due:?}", message.id));
                }
                if let Some(said) = text.strip_prefix("echo: look m")
                    && message.author == Author::Assistant
                {
                    let step = said.split(' ').next().unwrap_or_default();
                    let due = format!("{step} [notes-{step}.txt, {step} bytes]");
                    if said != due {
                        wrong.push(format!("{session}: the agent saw {said:?}, not {due:?}"));
                    }
                }
            }
            Event::Transcript(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }
    wrong
}

/// What a plain proxy told, perhaps many times, against the transcript: nothing is recorded more
/// often than it was said, where that can be told, and nothing that is told again is missing.
pub(crate) fn check_told(history: &History, said: &[String], style: Style) -> Vec<String> {
    let session = &history.session;
    let mut left: Vec<&String> = said.iter().collect();
    let (mut people, mut wrong) = (vec![], vec![]);
    for recorded in &history.events {
        match &recorded.event {
            Event::Delivery(delivery::Event::Accepted(send)) => people.extend(send.text.open()),
            Event::Transcript(transcript::Event::Message(message)) => {
                let parts = message.parts.open().into_iter().flatten();
                let text = parts.filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::ToolCall(_) => None,
                });
                let text: String = text.collect();
                let left = if message.author == Author::User { &mut people } else { &mut left };
                match left.iter().position(|said| **said == text) {
                    Some(place) => drop(left.remove(place)),
                    None if !style.is_recognised() => {}
                    None => wrong.push(format!("{session}: {text:?} is told more often than said")),
                }
            }
            Event::Transcript(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }
    if style.retells && !left.is_empty() {
        wrong.push(format!("{session}: {left:?} was said and is not told"));
    }
    wrong
}
