//! Transcripts: `name> frame` in, `name< frame` out, `~ word …` for what the machine side does.
//!
//! An expected frame names the fields that matter: each must be there and equal, `"*"` stands for
//! any value and `null` for a field that must be absent. Every frame that a client hears must be
//! expected, in order; a line `name< close 4000` expects the end.

use domain::Content;
use domain::content::{Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus};
use domain::session::config::AgentConfig;
use domain::session::prompts::{Choice, Expiry, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{Activity, CloseReason, DownReason, Health};
use domain::session::{Change, Report};
use serde_json::Value;

use crate::native::relay::Relay;

pub(crate) fn run(script: &str) -> Relay {
    let mut relay = Relay::new();
    for (index, line) in script.lines().enumerate() {
        let place = format!("line {}: {line}", index + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(words) = line.strip_prefix("~ ") {
            act(&mut relay, words);
        } else if let Some((name, frame)) = line.split_once("> ").filter(|(n, _)| n.len() <= 2) {
            settle(&relay, &place);
            relay.text(name_of(name), frame);
        } else if let Some((name, frame)) = line.split_once("< ").filter(|(n, _)| n.len() <= 2) {
            expect(&mut relay, name_of(name), frame, &place);
        } else {
            panic!("{place}: not a line of a transcript");
        }
    }
    settle(&relay, "the end");
    relay
}

fn name_of(name: &str) -> &str {
    if name.is_empty() { "a" } else { name }
}

/// Nobody has heard anything that was not expected.
fn settle(relay: &Relay, place: &str) {
    for (name, client) in &relay.clients {
        assert!(client.heard.is_empty(), "before {place}: {name} heard {:#?}", client.heard);
    }
}

fn expect(relay: &mut Relay, name: &str, frame: &str, place: &str) {
    let client = relay.clients.get_mut(name).expect("this client said something before");
    if let Some(code) = frame.strip_prefix("close ") {
        assert_eq!(client.closed, Some(code.parse().unwrap()), "{place}");
        return;
    }
    let expected: Value = serde_json::from_str(frame).expect(place);
    assert!(!client.heard.is_empty(), "{place}: nothing was heard");
    let heard = client.heard.remove(0);
    assert!(covers(&expected, &heard), "{place}\nheard {heard}");
}

/// Whether `heard` has everything that `expected` names.
pub(crate) fn covers(expected: &Value, heard: &Value) -> bool {
    match (expected, heard) {
        (Value::String(any), _) if any == "*" => true,
        (Value::Object(expected), Value::Object(heard)) => {
            expected.iter().all(|(key, value)| match (value, heard.get(key)) {
                (Value::Null, found) => found.is_none(),
                (value, Some(found)) => covers(value, found),
                (_, None) => false,
            })
        }
        (Value::Array(expected), Value::Array(heard)) => {
            expected.len() == heard.len() && expected.iter().zip(heard).all(|(e, h)| covers(e, h))
        }
        (expected, heard) => expected == heard,
    }
}

fn act(relay: &mut Relay, words: &str) {
    let mut words = words.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let verb = next();
    let subject = next();
    match verb {
        "machine" => relay.machine_up(),
        "offers" => relay.offers(subject, next(), next()),
        "up" => relay.session_up(subject, next()),
        "down" => {
            let down = Change::Down { connection: None, reason: DownReason::ProxyDisconnected };
            relay.change(subject, down);
        }
        "pass" => relay.pass(subject.parse().unwrap()),
        "open" => relay.open(subject),
        "lag" => relay.lag(subject),
        "slow-reads" => relay.slow_reads = true,
        "read-now" => relay.read_now(),
        "broken-store" => relay.broken_store = true,
        "forget-before" => relay.forget_before(subject, next().parse().unwrap()),
        "frames-left" => {
            let client = relay.clients.get_mut(subject).unwrap();
            client.gauge.frames_left = Some(next().parse().unwrap());
        }
        "sends-left" => {
            let client = relay.clients.get_mut(subject).unwrap();
            client.gauge.sends_left = Some(next().parse().unwrap());
        }
        "launched" => relay.launched(subject, next()),
        "launch-failed" => relay.launch_failed(subject, next()),
        "unheard-by" => {
            let (session, id) = (next(), next());
            relay.report_unheard(session, said(id), subject);
        }
        report => {
            let report = report_of(report, &mut next);
            relay.report(subject, report);
        }
    }
}

fn report_of<'a>(verb: &str, next: &mut impl FnMut() -> &'a str) -> Report {
    match verb {
        "delivered" => Report::SendDelivered { id: next().into(), attempt: None, run: None },
        "failed" => {
            let (id, failure) = (next().into(), Failure::new(next(), "in words"));
            Report::SendFailed { id, attempt: None, failure }
        }
        "said" => said(next()),
        "typed" => said_by(Author::User, next()),
        "still" => Report::Resumed { prompts: vec![next().into()], run: None },
        "asked" => Report::Asked(prompt(next(), next().parse().ok())),
        "gone" => Report::PromptGone(next().into()),
        "ok" => Report::ControlResult { request: next().into(), failure: None },
        "not-ok" => {
            let (request, failure) = (next().into(), Failure::new(next(), "in words"));
            Report::ControlResult { request, failure: Some(failure) }
        }
        "config" => Report::Config(AgentConfig {
            model: next().into(),
            permission_mode: Some("default".to_owned()),
            file_access_scope: None,
            available_models: None,
            available_modes: Some(vec!["plan".to_owned()]),
            effort: Some("high".to_owned()),
            available_efforts: None,
            session_file: None,
            commands: None,
            capabilities: [("interrupt".to_owned(), true)].into(),
            read_at: crate::native::relay::START,
        }),
        "status" => Report::Status {
            health: if next() == "degraded" { Health::Degraded } else { Health::Healthy },
            activity: Some(Activity {
                kind: next().to_owned(),
                label: None,
                updated_at: crate::native::relay::START,
            }),
            reason: None,
        },
        "printed" => {
            let (id, bytes) = (next().into(), next().parse().unwrap());
            let output = Some("x".repeat(bytes));
            let detail = Content::Open(ToolDetail { output, ..ToolDetail::default() });
            let (status, run, parent) = (ToolStatus::Completed, None, None);
            let (tool, kind) = ("bash".to_owned(), ToolKind::Execute);
            Report::ToolCall(ToolCall { id, tool, kind, status, detail, run, parent })
        }
        "run" => Report::RunStarted { run: next().into(), cause: None },
        "run-ended" => {
            Report::RunEnded { run: next().into(), outcome: Outcome::Interrupted, usage: None }
        }
        "closed" => {
            let request = Some(next()).filter(|id| !id.is_empty()).map(Into::into);
            let reason = if request.is_some() {
                CloseReason::UserRequested
            } else {
                CloseReason::TargetClosed
            };
            Report::Closed { reason, request }
        }
        unknown => panic!("{unknown} is no word of a transcript"),
    }
}

pub(crate) fn said(id: &str) -> Report {
    said_by(Author::Assistant, id)
}

fn said_by(author: Author, id: &str) -> Report {
    let message = Message {
        id: id.into(),
        author,
        parts: Content::Open(vec![Part::Text(format!("words of {id}"))]),
        created_at: crate::native::relay::START,
        run: None,
        parent: None,
        digest: None,
    };
    Report::Message { message, has_own_id: true, echo: None }
}

fn prompt(id: &str, timeout_ms: Option<u64>) -> Prompt {
    let choice = |id: &str, is_default| Choice {
        id: id.into(),
        label: id.to_uppercase(),
        is_default,
        effect: None,
        wants_answers: false,
    };
    Prompt {
        id: id.into(),
        text: Content::Open("May I?".to_owned()),
        choices: vec![choice("yes", false), choice("no", true)],
        expiry: timeout_ms.map(|timeout_ms| Expiry {
            at: crate::native::relay::START.plus_ms(timeout_ms),
            timeout_ms,
            choice: Some("no".into()),
        }),
        detected_at: crate::native::relay::START,
        run: None,
        detail: None,
    }
}
