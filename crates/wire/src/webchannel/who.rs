//! The sender of a frame: identified by the frame's token, otherwise by the socket's credential.
//!
//! Not here: whose token it is (`server`), how a client gets one (`pairing`).

use domain::Timestamp;

use super::envelope::Frame;
use super::{Asked, Connection, Known};
use crate::visitor::{Act, Recognised};

/// Who says a frame.
pub(super) enum Speaker {
    Known,
    /// This will tell.
    Asked(Act),
    Nobody(&'static str),
}

impl Connection {
    /// Who says a frame.
    pub(super) fn identify(&mut self, frame: &Frame, now: Timestamp) -> Speaker {
        let Some(token) = &frame.token else {
            return match (&self.known, &self.opener) {
                (None, Some(_)) => Speaker::Known,
                (Some(_) | None, _) => Speaker::Nobody("access_token is required"),
            };
        };
        match &self.known {
            Some(known) if known.token == *token => match known.expires_at {
                Some(at) if at <= now => Speaker::Nobody("access_token is invalid or expired"),
                Some(_) | None => Speaker::Known,
            },
            Some(_) | None => Speaker::Asked(self.recognise(token.clone())),
        }
    }

    pub(super) fn recognise(&mut self, token: String) -> Act {
        let ticket = self.ticket(Asked::Recognise(token.clone()));
        self.busy = Some(ticket);
        Act::Recognise { token, ticket }
    }

    pub(super) fn on_recognised(&mut self, token: String, known: Option<Recognised>) -> Vec<Act> {
        let Some(Recognised { principal, key, expires_at }) = known else {
            let request = self.waiting.pop_front().and_then(|frame| frame.request);
            return vec![
                self.unauthorized(request.as_deref(), "access_token is invalid or expired"),
            ];
        };
        self.strange_frames = 0;
        self.known = Some(Known { token, principal, key: key.map(Into::into), expires_at });
        if self.session.is_none() && self.waiting.is_empty() {
            return self.find_session();
        }
        vec![]
    }
}
