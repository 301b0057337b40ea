//! Encode once: one frame per event and form, shared by all recipients.

use std::sync::OnceLock;

use bytes::Bytes;
use domain::SessionId;
use domain::passing::Passing;
use domain::session::Recorded;

use super::{Form, encode_delta, encode_event};

/// The frames of one published event. Made empty; filled by the first who needs a form.
#[derive(Debug, Default)]
pub struct Cache {
    plain: OnceLock<Option<Bytes>>,
    full: OnceLock<Option<Bytes>>,
}

impl Cache {
    /// See [`encode_event`].
    pub fn event(&self, session: &SessionId, recorded: &Recorded, form: Form) -> Option<Bytes> {
        let slot = match form {
            Form::Plain => &self.plain,
            Form::Full => &self.full,
        };
        slot.get_or_init(|| encode_event(session, recorded, form)).clone()
    }

    /// See [`encode_delta`].
    pub fn passing(&self, session: &SessionId, passing: &Passing) -> Bytes {
        let encoded = || Some(encode_delta(session, passing.after, &passing.delta));
        self.full.get_or_init(encoded).clone().unwrap_or_default()
    }
}
