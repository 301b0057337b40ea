//! The pages of histories that a native client was told against the ledger: each holds exactly
//! what is recorded between its first and its last event, and the pages of one answer follow each
//! other.
//!
//! A client drops the events of a page that it knows already, so what it shows (`shown`) says
//! nothing about them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::History;
use crate::client_node::{Content, Page, Seen};

/// The pages that one client was told of this history.
pub(crate) fn check_pages(
    name: &str,
    history: &History,
    due: &[(u64, Value)],
    seen: &Seen,
) -> Vec<String> {
    let session = history.session.as_str();
    let mut wrong = vec![];
    let mut answered_to = BTreeMap::new();
    let pages: Vec<&Page> = seen.pages.iter().filter(|page| page.session == session).collect();
    for (place, page) in pages.iter().enumerate() {
        wrong.extend(match &page.content {
            Content::Events { from, events } => check_events(name, page, due, *from, events),
            Content::Messages(messages) => check_messages(name, history, page, due, messages),
        });
        if page.has_more == Some(false) && page.last < page.shown_before {
            let (last, shown) = (page.last, page.shown_before);
            wrong.push(format!(
                "{name}: the history of {session} ended at {last} after {shown} had been shown"
            ));
        }
        let Some(request) = &page.request else { continue };
        // The network may bring a page twice.
        let is_repeat = place > 0 && pages[place - 1].content == page.content;
        if let (Content::Events { from, .. }, false) = (&page.content, is_repeat) {
            let end = answered_to.get(request).copied();
            if Some(*from) != end && Some(*from) != page.asked_after {
                wrong.push(format!(
                    "{name}: {request} went on after {from} of {session}, not after {end:?}"
                ));
            }
        }
        answered_to.insert(request, page.last);
    }
    wrong
}

/// Every event of the stretch as it was or would have been shown live.
fn check_events(
    name: &str,
    page: &Page,
    due: &[(u64, Value)],
    from: u64,
    events: &[Value],
) -> Option<String> {
    let stretch = due.iter().filter(|(sequence, _)| (from + 1..=page.last).contains(sequence));
    let stretch: Vec<&Value> = stretch.map(|(_, frame)| frame).collect();
    if stretch.iter().copied().eq(events) {
        return None;
    }
    let place = stretch.iter().zip(events).take_while(|(due, told)| **due == *told).count();
    let (told, due) = (events.get(place), stretch.get(place));
    let (session, request, last) = (&page.session, &page.request, page.last);
    Some(format!(
        "{name}: the history of {session} from {from} to {last} ({request:?}) told {told:?} where \
         {due:?} was due"
    ))
}

/// Every message up to an event, but for what retention had taken by then.
fn check_messages(
    name: &str,
    history: &History,
    page: &Page,
    due: &[(u64, Value)],
    messages: &[Value],
) -> Option<String> {
    let upto: Vec<(u64, &Value)> = due
        .iter()
        .filter(|(sequence, frame)| *sequence <= page.last && frame["type"] == "message_event")
        .map(|(sequence, frame)| (*sequence, &frame["message"]))
        .collect();
    // Nobody knows what retention had left of a session that was erased later.
    let is_kept =
        |(sequence, _): &&(u64, &Value)| !history.is_erased && *sequence >= history.first_kept;
    let kept = upto.iter().filter(is_kept).count();
    let begin = upto.len().checked_sub(messages.len());
    let is_end =
        begin.is_some_and(|begin| upto[begin..].iter().map(|(_, message)| *message).eq(messages));
    let is_good = is_end && messages.len() >= kept;
    (!is_good).then(|| {
        let (session, last) = (&history.session, page.last);
        format!("{name}: the messages of {session} up to {last} were {messages:?}, not {upto:?}")
    })
}
