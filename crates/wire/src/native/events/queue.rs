//! `queue_update`: one change of the queue (feature `queue`).
//!
//! Some changes are events of their own. Others lie in what happens to a send: an accepted send
//! joins the queue and a failed one has left it, and both are told as the send's state already.
//! For those, `queue_update` is a second frame about the same event: the same `sequence`, and an
//! `event_id` that ends in `_q`.

use bytes::Bytes;
use domain::session::delivery::{self, Send};
use domain::session::{Event, Recorded, queue};
use domain::{Content, MessageId, SessionId};

use super::{envelope, event_id};
use crate::native::frames::{ChangeWord, QueueUpdate};
use crate::native::shapes::{Envelope, encode};

/// The second frame of an event that also changes the queue.
pub fn encode_queue(session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
    let body = match &recorded.event {
        Event::Delivery(delivery::Event::Accepted(send)) => added(send),
        Event::Delivery(delivery::Event::Failed { id, .. }) => removed(id),
        Event::Delivery(delivery::Event::HandedOver { .. } | delivery::Event::Delivered { .. })
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Run(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_)
        | Event::Transcript(_) => return None,
    };
    let event_id = format!("{}_q", event_id(session, recorded.sequence));
    let envelope = envelope(session, recorded, "queue_update");
    Some(encode(&Envelope { event_id: Some(event_id), ..envelope }, &body))
}

/// The frame of an event that is about the queue alone.
pub(super) fn primary(session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
    let body = match &recorded.event {
        Event::Delivery(delivery::Event::HandedOver { id, .. }) => removed(id),
        Event::Queue(queue::Event::Held) => QueueUpdate::new(ChangeWord::Held, None),
        Event::Queue(queue::Event::Resumed) => QueueUpdate::new(ChangeWord::Resumed, None),
        Event::Queue(queue::Event::Edited { id, text }) => {
            with_words(QueueUpdate::new(ChangeWord::Edited, Some(id)), text)
        }
        Event::Queue(queue::Event::Moved { id, to }) => QueueUpdate {
            position: Some(u32::try_from(*to).unwrap_or(u32::MAX)),
            ..QueueUpdate::new(ChangeWord::Moved, Some(id))
        },
        Event::Delivery(
            delivery::Event::Accepted(_)
            | delivery::Event::Failed { .. }
            | delivery::Event::Delivered { .. },
        )
        | Event::Prompt(_)
        | Event::Run(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(_)
        | Event::Transcript(_) => return None,
    };
    Some(encode(&envelope(session, recorded, "queue_update"), &body))
}

fn added(send: &Send) -> QueueUpdate {
    let mode = send.mode.map(Into::into);
    let update = QueueUpdate::new(ChangeWord::Added, Some(&send.id));
    with_words(QueueUpdate { mode, ..update }, &send.text)
}

fn removed(id: &MessageId) -> QueueUpdate {
    QueueUpdate::new(ChangeWord::Removed, Some(id))
}

fn with_words(update: QueueUpdate, text: &Content<String>) -> QueueUpdate {
    match text {
        Content::Open(text) => QueueUpdate { content: Some(text.clone()), ..update },
        Content::Sealed(sealed) => QueueUpdate { sealed: Some(sealed.into()), ..update },
    }
}
