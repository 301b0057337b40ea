//! `queue_update`: one change of the queue (feature `queue`).
//!
//! An accepted send has joined the queue and a failed one has left it: `message_accepted` and
//! `message_failed` say so, without a second frame. One event is one frame.

use bytes::Bytes;
use domain::session::delivery;
use domain::session::{Event, Recorded, queue};
use domain::{Content, MessageId, SessionId};

use super::envelope;
use crate::native::frames::{ChangeWord, QueueUpdate};
use crate::native::shapes::encode;

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

fn removed(id: &MessageId) -> QueueUpdate {
    QueueUpdate::new(ChangeWord::Removed, Some(id))
}

fn with_words(update: QueueUpdate, text: &Content<String>) -> QueueUpdate {
    match text {
        Content::Open(text) => QueueUpdate { content: Some(text.clone()), ..update },
        Content::Sealed(sealed) => QueueUpdate { sealed: Some(sealed.into()), ..update },
    }
}
