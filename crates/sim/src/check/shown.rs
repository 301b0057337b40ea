//! What people were shown against the ledger: every event once, in order, as it was recorded.

use std::collections::{BTreeMap, BTreeSet};

use domain::SessionId;
use domain::session::{Event, Recorded, delivery};
use serde_json::Value;
use wire::native::{Form, encode_event};

use super::{History, words};
use crate::client_node::{Anew, Seen};
use crate::visitor_node::{Dialect, Life};

/// Of a long list of what is wrong, so many are told.
const TOLD_MAX: usize = 3;

/// The frames that a native client must have been shown of a history.
pub(crate) fn due(history: &History, form: Form) -> Vec<(u64, Value)> {
    let frame = |recorded: &Recorded| {
        let frame = encode_event(&history.session, recorded, form)?;
        Some((recorded.sequence.0, serde_json::from_slice(&frame).unwrap_or_default()))
    };
    history.events.iter().filter_map(frame).collect()
}

/// What a native client was shown. With `to_the_end` set, nothing may be missing at the end.
pub(crate) fn check_client(
    name: &str,
    history: &History,
    due: &[(u64, Value)],
    seen: &Seen,
    to_the_end: bool,
) -> Vec<String> {
    let session = &history.session;
    let nothing = vec![];
    let shown = seen.events.get(session.as_str()).unwrap_or(&nothing);
    let nowhere = vec![];
    let unread = seen.unread.get(session.as_str()).unwrap_or(&nowhere);
    let anew: Vec<&Anew> =
        seen.anew.iter().filter(|anew| anew.session == session.as_str()).collect();
    let mut wrong = vec![];
    let (mut after, mut place) = (0, 0);
    for next in anew.iter().map(Some).chain([None]) {
        let end = next.map_or(shown.len(), |anew| anew.place);
        let due = due.iter().skip_while(|(sequence, _)| *sequence <= after);
        let is_last = next.is_none();
        // Damage costs a client what it missed, and it was told so at this place.
        let may_skip = |index: usize| history.was_damaged && unread.contains(&(place + index));
        let shown = &shown[place..end];
        wrong.extend(compare(name, session, shown, due, is_last && to_the_end, may_skip));
        let Some(anew) = next else { break };
        (after, place) = (anew.last_sequence, end);
    }
    wrong.truncate(TOLD_MAX);
    wrong
}

fn compare<'a>(
    name: &str,
    session: &SessionId,
    shown: &[client::Event],
    due: impl Iterator<Item = &'a (u64, Value)>,
    to_the_end: bool,
    may_skip: impl Fn(usize) -> bool,
) -> Vec<String> {
    let (mut wrong, mut due) = (vec![], due.peekable());
    for (index, event) in shown.iter().enumerate() {
        if may_skip(index) {
            while due.next_if(|(sequence, _)| *sequence < event.sequence).is_some() {}
        }
        let Some((sequence, frame)) = due.next() else {
            let n = event.sequence;
            wrong.push(format!("{name}: was shown {n} of {session}, which is not there"));
            break;
        };
        if *sequence != event.sequence {
            let n = event.sequence;
            wrong.push(format!("{name}: was shown {n} of {session} where {sequence} was due"));
            break;
        }
        if *frame != event.frame {
            let told = &event.frame;
            wrong.push(format!("{name}: {session} {sequence} was told as {told}, not {frame}"));
        }
    }
    if to_the_end
        && wrong.is_empty()
        && let Some((sequence, _)) = due.next()
    {
        wrong.push(format!("{name}: was never shown {sequence} of {session}"));
    }
    wrong
}

/// A send that was refused was not recorded, unless anybody sent it more than once: then it may
/// have been accepted another time.
pub(crate) fn check_refused(
    name: &str,
    history: &History,
    seen: &Seen,
    times_sent: &BTreeMap<String, usize>,
) -> Vec<String> {
    let session = history.session.as_str();
    let accepted: BTreeSet<&str> = history.events.iter().filter_map(accepted_id).collect();
    let refused = seen.refused.iter().filter(|((of, id), _)| {
        of == session && accepted.contains(id.as_str()) && times_sent.get(id) == Some(&1)
    });
    let told = |((_, id), code): (&(String, String), &String)| {
        format!("{name}: {id} was refused as {code} and is in the ledger of {session}")
    };
    refused.map(told).collect()
}

fn accepted_id(recorded: &Recorded) -> Option<&str> {
    let Event::Delivery(delivery::Event::Accepted(send)) = &recorded.event else { return None };
    Some(send.id.as_str())
}

/// What a client said, each time once, against what the ledger has of it; and every answer that it
/// was taken.
pub(crate) fn check_said(
    name: &str,
    history: &History,
    said: &[String],
    lives: &[Life],
) -> Vec<String> {
    let mut left: Vec<&String> = said.iter().collect();
    let (mut known, mut wrong) = (BTreeSet::new(), vec![]);
    for recorded in &history.events {
        let Event::Delivery(delivery::Event::Accepted(send)) = &recorded.event else { continue };
        // One that failed may be tried again, under its own id.
        let text = send.text.open().filter(|_| send.by == name && known.insert(send.id.as_str()));
        let Some(text) = text else { continue };
        match left.iter().position(|said| *said == text) {
            Some(place) => drop(left.remove(place)),
            None => wrong.push(format!("{name}: {text:?} is recorded more often than said")),
        }
    }
    let mut taken = 0;
    for frame in lives.iter().flat_map(|life| &life.frames) {
        let frame: Value = serde_json::from_slice(frame).unwrap_or_default();
        match frame["type"].as_str() {
            // One dialect tells under which id, ...
            Some("res") if frame["ok"] == true => {
                let (run, status) = (&frame["payload"]["runId"], &frame["payload"]["status"]);
                if let (Some(id), true) = (run.as_str(), status.is_string())
                    && !known.contains(id)
                {
                    wrong.push(format!("{name}: {id} was taken and is not in the ledger"));
                }
            }
            // ... another only that it was.
            Some("response") if frame["command"] == "prompt" && frame["success"] == true => {
                taken += 1;
            }
            Some(_) | None => {}
        }
    }
    if taken > known.len() {
        let recorded = known.len();
        wrong.push(format!("{name}: {taken} messages were taken, {recorded} are in the ledger"));
    }
    wrong
}

/// What a client of another dialect was shown. With `to_the_end` set, its last connection is
/// alive, and nothing may be missing on it.
pub(crate) fn check_visitor(
    name: &str,
    dialect: Dialect,
    history: &History,
    lives: &[Life],
    to_the_end: bool,
) -> Vec<String> {
    let mut wrong = vec![];
    for (number, life) in lives.iter().enumerate() {
        let is_whole = to_the_end && number + 1 == lives.len();
        let noted = life.testimony.lock();
        let name = format!("{name} ({dialect:?}), connection {number}");
        let is_prefix = life.frames.len() <= noted.said.len()
            && life.frames.iter().eq(noted.said.iter().take(life.frames.len()));
        if !is_prefix {
            wrong.push(format!("{name}: heard something else than was said"));
        }
        if is_whole && life.frames.len() != noted.said.len() {
            let (heard, said) = (life.frames.len(), noted.said.len());
            wrong.push(format!("{name}: heard {heard} of {said} frames"));
        }
        for view in noted.views.iter().filter(|view| view.session == history.session) {
            let is_last = is_whole && std::ptr::eq(view, noted.views.last().unwrap_or(view));
            wrong.extend(check_events(&name, history, view.head.0, &view.events, is_last));
        }
        wrong.extend(words::check(&name, dialect, history, life, &noted, is_whole));
    }
    wrong.truncate(TOLD_MAX);
    wrong
}

/// The events after a join: the ledger's, none twice, none missing but what retention took before
/// a slow client read it.
fn check_events(
    name: &str,
    history: &History,
    head: u64,
    shown: &[Recorded],
    to_the_end: bool,
) -> Option<String> {
    let session = &history.session;
    let mut due = history.events.iter().filter(|recorded| recorded.sequence.0 > head).peekable();
    for event in shown {
        let is_gone =
            |due: &&Recorded| due.sequence < event.sequence && due.sequence.0 < history.first_kept;
        while due.next_if(is_gone).is_some() {}
        match due.next() {
            None => {
                let n = event.sequence;
                return Some(format!("{name}: was shown {n} of {session}, which is not there"));
            }
            Some(recorded) if recorded != event => {
                let (n, due) = (event.sequence, recorded.sequence);
                return Some(format!("{name}: was shown {n} of {session} where {due} was due"));
            }
            Some(_) => {}
        }
    }
    let is_left = |due: &&Recorded| to_the_end && due.sequence.0 >= history.first_kept;
    let missing = due.find(is_left)?;
    Some(format!("{name}: was never shown {} of {session}", missing.sequence))
}
