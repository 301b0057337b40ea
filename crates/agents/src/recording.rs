//! Recordings of a driver's input and its program's output, as text, so that tests can replay a
//! real conversation.
//!
//! One entry per line: `==` an order of the proxy, `>>` a line to the program, `<<` a line of its
//! output, `!!` of its standard error, `--` its end. A line that begins with `#` names the recorded
//! agent.
//!
//! Not here: making one (`proxy`, on request), the recordings themselves (`fixtures/agents`).

use domain::content::Failure;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::prompts::AnswerDetail;
use domain::{ChoiceId, Content, MessageId, PromptId, RequestId, Sequence, SessionId};
use serde::{Deserialize, Serialize};

use crate::{Ended, Order};

/// Whose recording it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The agent's name.
    pub agent: String,
    /// Its program's version, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Names that drivers derive depend on it.
    pub session: SessionId,
    /// The version of the recording driver's crate does not matter, the folder does.
    pub workspace: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Whose recording it is.
    Head(Head),
    /// The proxy asked something. Attached files are not recorded.
    Order(Order),
    /// The driver wrote a line to its program.
    Wrote(String),
    /// The program printed a line.
    Said(String),
    /// The program printed a line to its standard error.
    Complained(String),
    /// The program ended.
    Ended(Ended),
}

/// An order as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Given {
    Deliver {
        send: Send,
        attempt: Sequence,
    },
    LookUp {
        id: MessageId,
        attempt: Sequence,
    },
    Answer {
        request: RequestId,
        prompt: PromptId,
        choice: Option<ChoiceId>,
        detail: Option<Content<AnswerDetail>>,
    },
    Control {
        request: RequestId,
        control: Control,
    },
    Rest,
}

/// An end as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Left {
    NotStarted(Failure),
    Exited(i32),
    Killed(i32),
    Guarded(Failure),
}

impl Entry {
    /// As a line, without its end.
    pub fn line(&self) -> String {
        let json = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        match self {
            Self::Head(head) => format!("# {}", json(serde_json::to_string(head))),
            Self::Order(order) => format!("== {}", json(serde_json::to_string(&given(order)))),
            Self::Wrote(line) => format!(">> {line}"),
            Self::Said(line) => format!("<< {line}"),
            Self::Complained(line) => format!("!! {line}"),
            Self::Ended(ended) => format!("-- {}", json(serde_json::to_string(&left(ended)))),
        }
    }

    /// A line that was written like this; `None` for any other.
    pub fn read(line: &str) -> Option<Self> {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        match sign {
            "#" => serde_json::from_str(rest).ok().map(Self::Head),
            "==" => serde_json::from_str(rest).ok().map(taken).map(Self::Order),
            ">>" => Some(Self::Wrote(rest.to_owned())),
            "<<" => Some(Self::Said(rest.to_owned())),
            "!!" => Some(Self::Complained(rest.to_owned())),
            "--" => serde_json::from_str(rest).ok().map(ended).map(Self::Ended),
            _ => None,
        }
    }
}

fn given(order: &Order) -> Given {
    match order.clone() {
        Order::Deliver { send, attempt, files: _ } => Given::Deliver { send, attempt },
        Order::LookUp { id, attempt } => Given::LookUp { id, attempt },
        Order::Answer { request, prompt, choice, detail } => {
            Given::Answer { request, prompt, choice, detail }
        }
        Order::Control { request, control } => Given::Control { request, control },
        Order::Rest => Given::Rest,
    }
}

fn taken(given: Given) -> Order {
    match given {
        Given::Deliver { send, attempt } => Order::Deliver { send, attempt, files: vec![] },
        Given::LookUp { id, attempt } => Order::LookUp { id, attempt },
        Given::Answer { request, prompt, choice, detail } => {
            Order::Answer { request, prompt, choice, detail }
        }
        Given::Control { request, control } => Order::Control { request, control },
        Given::Rest => Order::Rest,
    }
}

fn left(ended: &Ended) -> Left {
    match ended.clone() {
        Ended::NotStarted(failure) => Left::NotStarted(failure),
        Ended::Exited(code) => Left::Exited(code),
        Ended::Killed(signal) => Left::Killed(signal),
        Ended::Guarded(failure) => Left::Guarded(failure),
    }
}

fn ended(left: Left) -> Ended {
    match left {
        Left::NotStarted(failure) => Ended::NotStarted(failure),
        Left::Exited(code) => Ended::Exited(code),
        Left::Killed(signal) => Ended::Killed(signal),
        Left::Guarded(failure) => Ended::Guarded(failure),
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    #[test]
    fn every_entry_is_read_as_it_was_written() {
        let send = Send {
            id: "m1".into(),
            text: Content::Open("hello\nthere".to_owned()),
            attachments: vec![],
            mode: None,
            by: "ada".to_owned(),
            created_at: Timestamp(7),
            digest: None,
        };
        let head = Head {
            agent: "claude".to_owned(),
            version: Some("1.2.3".to_owned()),
            session: "s".into(),
            workspace: "<WORK>".to_owned(),
        };
        let entries = [
            Entry::Head(head),
            Entry::Order(Order::Deliver { send, attempt: Sequence(3), files: vec![] }),
            Entry::Order(Order::Control { request: "r".into(), control: Control::ReadConfig }),
            Entry::Order(Order::Rest),
            Entry::Wrote("{\"a\": 1}".to_owned()),
            Entry::Said(String::new()),
            Entry::Complained("a warning".to_owned()),
            Entry::Ended(Ended::Killed(9)),
        ];
        for entry in entries {
            let line = entry.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Entry::read(&line), Some(entry));
        }
        assert_eq!(Entry::read("something else"), None);
    }
}
