//! One client's questions, answered to that client alone.

use domain::{RequestId, SessionId, Timestamp};

use super::answers::failure_of;
use super::{Answer, ClientConnection, Denied, Output, Question, error};
use crate::native::frames::RelayFrame;
use crate::native::shapes::Envelope;

impl ClientConnection {
    /// What came of [`Output::Ask`].
    pub fn on_answer(
        &self,
        question: &Question,
        request_id: Option<RequestId>,
        answer: Result<Answer, Denied>,
        now: Timestamp,
    ) -> Vec<Output> {
        let session_id = session_of(question);
        match answer {
            Ok(answer) => {
                let server_ts = Some(now.into());
                let envelope = Envelope { request_id, session_id, server_ts, ..Envelope::new("") };
                let frame = match answer {
                    Answer::Catalog(catalog) => RelayFrame::Catalog(catalog),
                    Answer::Resumable(sessions) => RelayFrame::ResumableSessions(sessions),
                    Answer::ToolOutput(output) => RelayFrame::ToolOutput(output),
                };
                vec![Output::Send(frame.encode(envelope))]
            }
            Err(denied) => {
                let failure = failure_of(&denied);
                let (code, words) = (failure.code.as_str(), failure.message.as_str());
                vec![error(code, words, request_id, None, session_id, now)]
            }
        }
    }
}

fn session_of(question: &Question) -> Option<SessionId> {
    match question {
        Question::Catalog | Question::Resumable(_) => None,
        Question::ToolOutput { session, .. } => Some(session.clone()),
    }
}
