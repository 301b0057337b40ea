//! Errors while acting, for people and programs.
//!
//! Not here: errors between Farhelm and the browser (`cdp`).

use cdp::Fault;
use domain::content::Failure;

/// Something could not be done, and nothing was.
pub(super) fn failed(words: impl Into<String>) -> Failure {
    Failure::new("control_failed", words)
}

/// It is there, but a press would not come to it.
pub(super) fn hindered(what: &str, why: &str) -> Failure {
    failed(format!("Could not press the {what}: {why}"))
}

/// A press of which the panel did not hear.
pub(super) fn unheard() -> Failure {
    failed("The click did not reach the panel")
}

/// A landmark of the profile is not where it should be.
pub(super) fn missing(what: &str) -> Failure {
    let words = format!(
        "The panel has no {what} where its profile expects it. Run `farhelm doctor cdp` to find \
         out why"
    );
    Failure::new("selector_failure", words)
}

/// Nobody can tell whether it was done.
pub(super) fn unknown(words: impl Into<String>) -> Failure {
    Failure::new("delivery_unknown", words)
}

/// The message is certainly not sent.
pub(super) fn not_injected(words: impl Into<String>) -> Failure {
    Failure::new("send_injection_failed", words)
}

/// The person or the panel is in the way; later it may work.
pub(super) fn rejected(words: impl Into<String>) -> Failure {
    Failure::new("send_rejected", words)
}

/// A question is open in the panel: nothing is sent before it is answered.
pub(super) fn asked() -> Failure {
    rejected("The panel is asking a question. Answer it first")
}

/// The panel was lost before the press: nobody got the message.
pub(super) fn lost_unsent(fault: &Fault) -> Failure {
    not_injected(format!("Could not reach the panel: {fault}"))
}

/// The dialog is not the one that was answered.
pub(super) fn other_dialog() -> Failure {
    Failure::new("prompt_not_found", "The question is no longer open in the panel")
}

/// The browser did not do what everything depends on.
pub(super) fn lost(fault: &Fault) -> Failure {
    failed(format!("Could not reach the panel: {fault}"))
}
