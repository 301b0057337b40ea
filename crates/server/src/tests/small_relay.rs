//! A minimal relay of one session: `domain` decides, nothing is on disk, and sockets receive their
//! own frames back.

use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use domain::session::{Command, Policy, Recorded, ReplayCursor, Session};
use domain::{ClientKey, Refusal, Sequence, SessionId, ToolCallId};
use relay::EventPage;
use relay::gate::{Incoming, Transport as _, close};
use serde_json::json;
use wire::native::Denied;

use super::SESSION;
use crate::socket::Socket;
use crate::{Figures, Inside, Opening, Work};

#[derive(Default)]
pub(crate) struct SmallRelay(Mutex<State>);

#[derive(Default)]
pub(crate) struct State {
    session: Session,
    cursor: ReplayCursor,
    history: Vec<Recorded>,
    pub(crate) erased: bool,
    pub(crate) openings: Vec<Opening>,
    pub(crate) sends_refused: bool,
    pub(crate) unreadable: bool,
    /// Events that are added after each look at the history.
    pub(crate) grows_by: usize,
}

impl State {
    fn grow(&mut self) {
        for _ in 0..self.grows_by {
            let Some(last) = self.history.last() else { return };
            let again = Recorded { sequence: last.sequence.next(), ..last.clone() };
            self.session.apply(&again);
            self.history.push(again);
        }
    }
}

impl SmallRelay {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn known(&self, session: &SessionId) -> Result<MutexGuard<'_, State>, Denied> {
        let state = self.state();
        let known = session.as_str() == SESSION && !state.erased;
        known.then_some(state).ok_or(Denied::Refused(Refusal::SessionUnknown))
    }
}

impl Inside for SmallRelay {
    fn attend(&self, mut socket: Socket, opening: Opening) -> Work<'static, ()> {
        self.state().openings.push(opening);
        Box::pin(async move {
            loop {
                match socket.receive().await {
                    Incoming::Text(text) => {
                        if socket.send_all(&mut vec![text]).await.is_err() {
                            return;
                        }
                    }
                    Incoming::Binary => return socket.close(close::BINARY, "text only").await,
                    Incoming::TooLarge => return socket.close(close::TOO_LARGE, "too large").await,
                    Incoming::Closed => return,
                }
            }
        })
    }

    fn sessions(&self) -> Vec<Bytes> {
        vec![
            json!({ "session_id": SESSION, "title": self.state().session.status().title })
                .to_string()
                .into(),
        ]
    }

    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        after: Sequence,
        limit: usize,
    ) -> Work<'a, Result<EventPage, Denied>> {
        Box::pin(async move {
            let mut state = self.known(session)?;
            let later = state.history.iter().filter(|event| event.sequence > after);
            let mut events: Vec<_> = later.cloned().collect();
            let has_more = events.len() > limit;
            events.truncate(limit);
            let (head, first_kept) = (state.session.head(), Sequence(1));
            state.grow();
            Ok(EventPage { events, head, first_kept, has_more })
        })
    }

    fn encode(&self, _session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
        Some(json!({ "sequence": recorded.sequence.0 }).to_string().into())
    }

    fn encode_whole(&self, session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
        self.encode(session, recorded)
    }

    fn tool_output<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a ToolCallId,
    ) -> Work<'a, Result<String, Denied>> {
        Box::pin(async move {
            drop(self.known(session)?);
            match call.as_str() {
                "t 1" => Ok("printed <b>ä</b>".to_owned()),
                _ => Err(Denied::Code("tool_output_unknown".into(), "No such call".to_owned())),
            }
        })
    }

    fn command<'a>(
        &'a self,
        session: &'a SessionId,
        command: Command,
    ) -> Work<'a, Result<Vec<Recorded>, Denied>> {
        Box::pin(async move {
            let mut known = self.known(session)?;
            let (state, now) = (&mut *known, crate::clock::now());
            let performed =
                state.session.perform(&command, &mut state.cursor, Policy::default(), now);
            state.history.extend(performed.overdue);
            let recorded = performed.outcome.map_err(Denied::Refused)?;
            state.history.extend(recorded.iter().cloned());
            Ok(recorded)
        })
    }

    fn erase<'a>(&'a self, session: &'a SessionId) -> Work<'a, Result<(), Denied>> {
        Box::pin(async move {
            self.known(session)?.erased = true;
            Ok(())
        })
    }

    fn may_send(&self, _client: &ClientKey) -> bool {
        !self.state().sends_refused
    }

    fn figures(&self) -> Figures {
        Figures { sessions: 1, ..Figures::default() }
    }

    fn ready(&self) -> Work<'_, Result<(), String>> {
        let told = if self.state().unreadable { Err("unreadable".to_owned()) } else { Ok(()) };
        Box::pin(async move { told })
    }
}
