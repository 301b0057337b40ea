//! What must be true at the end of every run, whatever broke on the way.

use std::collections::{BTreeMap, BTreeSet};

use domain::content::Author;
use domain::session::delivery::{self, DELIVERY_UNKNOWN, State};
use domain::session::{Event, Recorded, prompts, runs, transcript};
use domain::{MessageId, Sequence, SessionId};
use store::{Ledger, MemoryDisk};
use wire::native::{Form, encode_event};

use crate::client_node::Seen;

/// A session's ledger, read back.
pub(crate) struct History {
    /// Whose.
    pub(crate) session: SessionId,
    /// All of it.
    pub(crate) events: Vec<Recorded>,
}

/// Reads every session's ledger. The relay must be down.
pub(crate) fn read(disk: &MemoryDisk, sessions: &[SessionId]) -> Result<Vec<History>, String> {
    let ledger = disk.open().map_err(|fault| fault.to_string())?;
    let mut reader = ledger.reader().map_err(|fault| fault.to_string())?;
    let mut histories = vec![];
    for session in sessions {
        let page = reader
            .events(session, Sequence(0), None, usize::MAX, usize::MAX)
            .map_err(|fault| fault.to_string())?;
        let events: Result<Vec<_>, _> =
            page.entries.iter().map(|entry| store::codec::decode_event(&entry.body)).collect();
        let events = events.map_err(|fault| fault.to_string())?;
        histories.push(History { session: session.clone(), events });
    }
    Ok(histories)
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
        if fate.state == State::Accepted {
            wrong.push(format!("{session}: send {id} was accepted and came to nothing"));
        }
    }
    wrong.extend(check_prompts(history));
    wrong.extend(check_messages(history));
    wrong.extend(check_answers(history));
    wrong
}

/// The ledger against the agent's own record of what reached it.
pub(crate) fn check_agent(history: &History, received: &[MessageId]) -> Vec<String> {
    let session = &history.session;
    let mut times: BTreeMap<&MessageId, usize> = BTreeMap::new();
    for id in received {
        *times.entry(id).or_default() += 1;
    }
    let mut wrong = vec![];
    for (id, count) in &times {
        if *count > 1 {
            wrong.push(format!("{session}: send {id} reached the agent {count} times"));
        }
    }
    let fates = fates(history);
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
    for id in times.keys() {
        if !fates.contains_key(*id) {
            wrong.push(format!("{session}: the agent has {id}, of which the ledger knows nothing"));
        }
    }
    wrong
}

/// What a client was shown against the ledger: each event once, in order, none missing.
pub(crate) fn check_client(name: &str, history: &History, seen: &Seen) -> Vec<String> {
    let session = &history.session;
    let shown: Vec<u64> = seen
        .events
        .get(session.as_str())
        .map(|events| events.iter().map(|event| event.sequence).collect())
        .unwrap_or_default();
    let due: Vec<u64> = history
        .events
        .iter()
        .filter(|recorded| encode_event(session, recorded, Form::Full).is_some())
        .map(|recorded| recorded.sequence.0)
        .collect();
    let mut wrong = vec![];
    if shown.windows(2).any(|pair| pair[0] >= pair[1]) {
        wrong.push(format!("{name}: events of {session} were shown twice or out of order"));
    }
    let (shown_set, due_set): (BTreeSet<_>, BTreeSet<_>) =
        (shown.iter().copied().collect(), due.iter().copied().collect());
    let missing: Vec<_> = due_set.difference(&shown_set).collect();
    if !missing.is_empty() {
        wrong.push(format!("{name}: was never shown {missing:?} of {session}"));
    }
    let invented: Vec<_> = shown_set.difference(&due_set).collect();
    if !invented.is_empty() {
        wrong.push(format!("{name}: was shown {invented:?} of {session}, not in the ledger"));
    }
    wrong.extend(check_words(name, history, seen));
    wrong
}

/// What was shown under a number is what the ledger has under it.
fn check_words(name: &str, history: &History, seen: &Seen) -> Vec<String> {
    let session = &history.session;
    let mut wrong = vec![];
    for event in seen.events.get(session.as_str()).into_iter().flatten() {
        let index = usize::try_from(event.sequence).unwrap_or_default().saturating_sub(1);
        let Some(recorded) = history.events.get(index) else { continue };
        let Some(bytes) = encode_event(session, recorded, Form::Full) else { continue };
        let due: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let same = due["type"] == event.frame["type"]
            && due["client_message_id"] == event.frame["client_message_id"]
            && due["message"]["message_id"] == event.frame["message"]["message_id"];
        if !same {
            let (told, kept) = (&event.frame["type"], &due["type"]);
            let n = event.sequence;
            wrong.push(format!("{name}: {session} {n} was told as {told}, the ledger has {kept}"));
        }
    }
    wrong
}

struct Fate {
    state: State,
}

fn fates(history: &History) -> BTreeMap<MessageId, Fate> {
    let mut fates = BTreeMap::new();
    for recorded in &history.events {
        let Event::Delivery(event) = &recorded.event else { continue };
        let (id, state) = match event {
            delivery::Event::Accepted(send) => (&send.id, State::Accepted),
            delivery::Event::HandedOver { .. } => continue,
            delivery::Event::Delivered { id, .. } => (id, State::Delivered),
            delivery::Event::Failed { id, failure } => (id, State::Failed(failure.clone())),
        };
        fates.insert(id.clone(), Fate { state });
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
