//! Queries, which change nothing: what can be started, resumed and read.
//!
//! Not here: who waits for the answer (`gate`), how it is encoded (`wire`).

use domain::{MachineLabel, Principal, Refusal, Sequence, SessionId, ToolCallId};
use tokio::sync::oneshot;
use wire::native::frames::{ResumableListRequest, ResumableSessions, ToolOutput};
use wire::native::{Answer, Denied, Question, known};

use crate::Relay;
use crate::routes::Errand;

/// Events that are read at once when an output is looked for.
const LOOKED_THROUGH_AT_ONCE: usize = 2_048;

impl Relay {
    /// Answers a question in this principal's name.
    pub async fn answer(
        &self,
        principal: &Principal,
        question: &Question,
    ) -> Result<Answer, Denied> {
        match question {
            Question::Catalog => {
                let fleet = self.look_at_fleet().await?;
                Ok(Answer::Catalog(known::catalog(&fleet, &self.listings())))
            }
            Question::Resumable(asked) => {
                // Their titles are a person's words, and nobody shared them yet.
                if !principal.may_steer() {
                    return Err(Denied::Refused(Refusal::Unauthorized));
                }
                self.resumable(asked).await.map(Answer::Resumable)
            }
            Question::ToolOutput { session, asked } => {
                let call = &asked.tool_call_id;
                let whole = self.tool_output(session, call, asked.at_sequence).await?;
                let (offset, limit) = (asked.offset, asked.limit);
                Ok(Answer::ToolOutput(ToolOutput::stretch(call.clone(), &whole, offset, limit)))
            }
        }
    }

    async fn resumable(&self, asked: &ResumableListRequest) -> Result<ResumableSessions, Denied> {
        let fleet = self.look_at_fleet().await?;
        let machines = fleet.machines();
        let away = || Denied::Refused(Refusal::NoProxyConnected);
        let active_last = || -> Option<MachineLabel> {
            let there = machines.all().filter(|(_, machine)| machine.via.is_some());
            there.max_by_key(|(_, machine)| machine.active_at).map(|(label, _)| label.clone())
        };
        let machine_label = asked.machine_label.clone().or_else(active_last).ok_or_else(away)?;
        let via = machines.via(&machine_label).ok_or_else(away)?;
        let route = self.routes().to(&via.connection).ok_or_else(away)?;
        let (reply, answer) = oneshot::channel();
        route.send(Errand::Ask(asked.list.clone(), reply));
        match tokio::time::timeout(self.machine_answers_within(), answer).await {
            Ok(Ok(Ok(page))) => Ok(ResumableSessions { machine_label, page }),
            Ok(Ok(Err(failure))) => Err(Denied::Code(failure.code, failure.message)),
            Ok(Err(_)) => Err(away()),
            Err(_) => {
                let words = format!("{machine_label} did not answer in time");
                Err(Denied::Code("machine_silent".into(), words))
            }
        }
    }

    /// What a tool printed, whole, as this event told it, or else the last that told any.
    pub async fn tool_output(
        &self,
        session: &SessionId,
        call: &ToolCallId,
        at: Option<Sequence>,
    ) -> Result<String, Denied> {
        let mut after = Sequence(at.map_or(0, |at| at.0.saturating_sub(1)));
        let mut found = None;
        loop {
            let page = self.history(session, after, at, LOOKED_THROUGH_AT_ONCE).await?;
            for recorded in &page.events {
                if let Some(output) = known::output_in(&recorded.event, call) {
                    found = Some(output.to_owned());
                }
            }
            match page.events.last() {
                Some(last) if page.has_more && at.is_none() => after = last.sequence,
                Some(_) | None => break,
            }
        }
        found.ok_or_else(|| {
            let words = format!("No output is recorded for {call} in this session");
            Denied::Code("tool_output_unknown".into(), words)
        })
    }
}
