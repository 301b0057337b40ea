//! Errors between Farhelm and a browser. Each says what happened and what to do.

use std::time::Duration;

/// Something that a browser did not do for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The address is not on this machine.
    #[error(
        "{0:?} is not a debug port on this machine: use 127.0.0.1, [::1] or localhost, with a port"
    )]
    NotLoopback(String),
    /// Nobody answers there.
    #[error(
        "no browser responds at {address} ({detail}): was it started with --remote-debugging-port?"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// What the system says.
        detail: String,
    },
    /// Somebody answers, but not in the words of a browser.
    #[error("{address} is not the debug port of a browser: {detail}")]
    NotABrowser {
        /// Where.
        address: String,
        /// What is wrong with the answer.
        detail: String,
    },
    /// The connection is gone, and with it whatever was asked.
    #[error("the connection to the browser was lost")]
    Closed,
    /// No answer came in time. It may still be done.
    #[error("the browser did not respond to {method} within {} ms", within.as_millis())]
    Late {
        /// What was asked.
        method: String,
        /// How long it was waited for.
        within: Duration,
    },
    /// The browser refused.
    #[error("the browser rejected {method}: {message} ({code})")]
    Refused {
        /// What was asked.
        method: String,
        /// The protocol's code.
        code: i64,
        /// The browser's words.
        message: String,
    },
    /// A script of ours threw.
    #[error("a script in the panel failed: {0}")]
    Threw(String),
    /// The frame or the world in it is not there any more: it was reloaded or closed.
    #[error("the panel was reloaded or closed")]
    Gone,
    /// There is no such frame.
    #[error("the target has no frame named {0:?}")]
    NoFrame(String),
    /// An answer lacks what the protocol promises.
    #[error("the browser's response to {method} lacks {missing}")]
    Incomplete {
        /// What was asked.
        method: String,
        /// What is missing.
        missing: &'static str,
    },
    /// Too many calls wait already.
    #[error("{0} calls to the browser are already pending")]
    Busy(usize),
}
