//! The code of each refusal in this dialect.

use domain::Refusal;

/// `None` where the refusal is no error but the answer to a repeat.
pub(crate) fn code(refusal: &Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::Unauthorized
        | Refusal::OwnerOnly
        | Refusal::NotThisProxy
        | Refusal::OtherMachine => "unauthorized",
        Refusal::SessionUnknown => "session_unknown",
        Refusal::SessionClosed => "session_not_connected",
        Refusal::NoProxyConnected => "no_proxy_connected",
        Refusal::PromptNotOpen(_) => "prompt_not_found",
        Refusal::NoSuchChoice { .. } => "invalid_choice",
        Refusal::AnswersMissing(_) => "answers_missing",
        Refusal::TooManyPrompts { .. }
        | Refusal::QueueFull { .. }
        | Refusal::TooManyRequests { .. } => "rate_limited",
        Refusal::AgentAtWork => "agent_at_work",
        Refusal::NotQueued(_) => "message_not_queued",
        Refusal::RequestInUse(_) => "invalid_message",
        Refusal::NotSupported => "control_not_supported",
        Refusal::SendRepeated(_) | Refusal::RequestRepeated(_) | Refusal::LaunchRepeated(_) => {
            return None;
        }
    })
}
