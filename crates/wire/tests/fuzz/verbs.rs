//! What a line that begins with `~` makes happen, so that an input can tell a story.
//!
//! A line is a verb, the session if it is not the first one, and the rest. The verbs are those of
//! the transcripts in `fixtures`.
//!
//! | verbs | |
//! |---|---|
//! | `starts RUN`, `ends RUN`, `stops RUN`, `fails RUN TEXT` | a run |
//! | `says ID TEXT`, `types ID TEXT`, `streams ID OFFSET TEXT` | words of the agent, of its own user, in the making |
//! | `calls ID TOOL INPUT`, `prints`, `returns`, `breaks ID OUTPUT` | a tool |
//! | `asks ID [TIMEOUT_MS]`, `confirms ID`, `wonders ID QUESTIONS` | a prompt: with three buttons, with two, with questions that a yes must answer |
//! | `drops ID`, `keeps ID` | a prompt goes away; a machine that came back still has it |
//! | `obeys [RUN]`, `refuses CODE` | the machine does what it is owed, or cannot |
//! | `sends ID TEXT`, `answers PROMPT CHOICE`, `interrupts ID` | somebody at another client |
//! | `configures MODEL`, `worsens`, `recovers`, `closes [ID]`, `down`, `up` | the session and its machine |
//! | `pass MS` | time |
//!
//! Not here: events by chance (`world`), lines that are frames (`lines`).

use domain::content::{Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus};
use domain::content::{ToolUpdate, Usage};
use domain::passing::{Delta, Voice};
use domain::session::config::AgentConfig;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::prompts::{Choice, Detail, Effect, Expiry, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{CloseReason, DownReason, Health};
use domain::session::{Change, Command, Order, Report, Wish};
use domain::{Content, SessionId, Timestamp};

use crate::fuzz::world::{Peer, SESSIONS, World};

/// All of them.
#[cfg(test)]
pub(crate) const VERBS: [&str; 28] = [
    "starts",
    "ends",
    "stops",
    "fails",
    "says",
    "types",
    "streams",
    "calls",
    "prints",
    "returns",
    "breaks",
    "asks",
    "confirms",
    "wonders",
    "drops",
    "keeps",
    "obeys",
    "refuses",
    "sends",
    "answers",
    "interrupts",
    "configures",
    "worsens",
    "recovers",
    "closes",
    "down",
    "up",
    "pass",
];

/// What is left of a line.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a str {
        let (first, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        first
    }

    fn rest(&mut self) -> String {
        std::mem::take(&mut self.0).to_owned()
    }
}

/// Makes it happen; `false` when the line has no verb.
pub(crate) fn does(world: &mut World, peer: &mut dyn Peer, line: &str) -> bool {
    let mut words = Words(line);
    let verb = words.next();
    let mut session = SessionId::from(SESSIONS[0]);
    let after = Words(words.0).next();
    if let Some(named) = world.rooms.keys().find(|id| id.as_str() == after) {
        session = named.clone();
        words.next();
    }
    match verb {
        "pass" => world.waits(words.next().parse().unwrap_or(0), peer),
        "streams" => {
            let (message, offset) = (words.next().into(), words.next().parse().unwrap_or(0));
            let (part, voice, text) = (0, Voice::Text, Content::Open(words.rest()));
            world.passes(&session, Delta { message, part, voice, offset, words: text }, peer);
        }
        "obeys" => {
            let run = Some(words.next()).filter(|run| !run.is_empty());
            settle(world, peer, &session, run, None);
        }
        "refuses" => {
            let failure = Failure::new(words.next(), "it could not");
            settle(world, peer, &session, None, Some(&failure));
        }
        "down" => {
            let reason = DownReason::ProxyDisconnected;
            let down = Command::Relay(Change::Down { connection: None, reason });
            world.tell(&session, &down, peer);
        }
        "up" => world.comes_up(&session, peer),
        "sends" | "answers" | "interrupts" => {
            let wish = wish(verb, &mut words, world.now);
            world.tell(&session, &Command::Person(World::person(), wish), peer);
        }
        reported => match report(reported, &mut words, world.now) {
            Some(report) => {
                if let (Report::Message { message, .. }, Some(room)) =
                    (&report, world.rooms.get_mut(&session))
                {
                    room.drafts.finish(&message.id);
                }
                world.reports(&session, report, peer);
            }
            None => return false,
        },
    }
    true
}

fn wish(verb: &str, words: &mut Words<'_>, now: Timestamp) -> Wish {
    let id = words.next();
    match verb {
        "sends" => {
            let (text, by) = (Content::Open(words.rest()), "b".to_owned());
            let (attachments, mode, digest) = (vec![], None, None);
            let send = Send { id: id.into(), text, attachments, mode, by, created_at: now, digest };
            Wish::Send { send, earlier: None }
        }
        "answers" => {
            let (prompt, choice) = (id.into(), words.next().into());
            Wish::Answer { request: Some("elsewhere".into()), prompt, choice, detail: None }
        }
        _ => Wish::Control { request: id.into(), control: Control::Interrupt { run: None } },
    }
}

fn report(verb: &str, words: &mut Words<'_>, now: Timestamp) -> Option<Report> {
    let tool = |id: &str, status, output: String| {
        let detail = ToolDetail { output: Some(output), ..ToolDetail::default() };
        Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail: Content::Open(detail) })
    };
    let ended = |run: &str, outcome| {
        let usage = Usage { input_tokens: Some(900), output_tokens: Some(80), ..Usage::default() };
        Report::RunEnded { run: run.into(), outcome, usage: Some(usage) }
    };
    Some(match verb {
        "starts" => Report::RunStarted { run: words.next().into(), cause: None },
        "ends" => ended(words.next(), Outcome::Completed),
        "stops" => ended(words.next(), Outcome::Interrupted),
        "fails" => ended(words.next(), Outcome::Failed(words.rest())),
        "says" => message(words, Author::Assistant, now),
        "types" => message(words, Author::User, now),
        "calls" => {
            let (id, tool) = (words.next().into(), words.next().to_owned());
            let detail = ToolDetail { input: Some(words.rest()), ..ToolDetail::default() };
            let (kind, status, detail) =
                (ToolKind::Execute, ToolStatus::Running, Content::Open(detail));
            Report::ToolCall(ToolCall { id, tool, kind, status, detail, run: None, parent: None })
        }
        "prints" => tool(words.next(), ToolStatus::Running, words.rest()),
        "returns" => tool(words.next(), ToolStatus::Completed, words.rest()),
        "breaks" => tool(words.next(), ToolStatus::Failed, words.rest()),
        "asks" => {
            let (id, timeout_ms) = (words.next(), words.next().parse().ok());
            Report::Asked(prompt(id, timeout_ms, None, now))
        }
        "confirms" => {
            let mut prompt = prompt(words.next(), None, None, now);
            prompt.choices.pop();
            Report::Asked(prompt)
        }
        "wonders" => {
            let id = words.next();
            let mut prompt = prompt(id, None, Some(words.rest()), now);
            prompt.choices.pop();
            Report::Asked(prompt)
        }
        "drops" => Report::PromptGone(words.next().into()),
        "keeps" => Report::Resumed { prompts: vec![words.next().into()], run: None },
        "configures" => Report::Config(config(words.next(), now)),
        "worsens" => status(Health::Degraded),
        "recovers" => status(Health::Healthy),
        "closes" => {
            let request = Some(words.next()).filter(|id| !id.is_empty()).map(Into::into);
            Report::Closed { reason: CloseReason::UserRequested, request }
        }
        _ => return None,
    })
}

/// Settles everything that the machine owes, one way or the other.
fn settle(
    world: &mut World,
    peer: &mut dyn Peer,
    session: &SessionId,
    run: Option<&str>,
    failure: Option<&Failure>,
) {
    let owed = world.rooms.get(session).map(|room| room.session.owed()).unwrap_or_default();
    for order in owed {
        let report = match (order, failure.cloned()) {
            (Order::Deliver { send, attempt }, None) => {
                let run = run.map(Into::into);
                Report::SendDelivered { id: send.id, attempt: Some(attempt), run }
            }
            (Order::Deliver { send, attempt }, Some(failure)) => {
                Report::SendFailed { id: send.id, attempt: Some(attempt), failure }
            }
            (Order::Answer { request, .. } | Order::Control { request, .. }, failure) => {
                Report::ControlResult { request, failure }
            }
        };
        world.reports(session, report, peer);
    }
}

fn message(words: &mut Words<'_>, author: Author, now: Timestamp) -> Report {
    let (id, created_at) = (words.next().into(), now);
    let parts = Content::Open(vec![Part::Text(words.rest())]);
    let (run, parent, digest) = (None, None, None);
    let message = Message { id, author, parts, created_at, run, parent, digest };
    Report::Message { message, has_own_id: true, echo: None }
}

fn prompt(
    id: &str,
    timeout_ms: Option<u64>,
    questions: Option<String>,
    detected_at: Timestamp,
) -> Prompt {
    let has_questions = questions.is_some();
    let choice = |id: &str, effect| Choice {
        id: id.into(),
        label: id.to_uppercase(),
        is_default: id == "no",
        effect: Some(effect),
        wants_answers: has_questions && effect == Effect::AllowOnce,
    };
    let detail = Detail {
        tool: Some("Bash".to_owned()),
        input: Some(r#"{"command":"ls"}"#.to_owned()),
        questions,
        ..Detail::default()
    };
    Prompt {
        id: id.into(),
        text: Content::Open("Run this command? ls".to_owned()),
        choices: vec![
            choice("yes", Effect::AllowOnce),
            choice("no", Effect::Reject),
            choice("always", Effect::AllowAlways),
        ],
        expiry: timeout_ms.map(|timeout_ms| Expiry {
            at: detected_at.plus_ms(timeout_ms),
            timeout_ms,
            choice: Some("no".into()),
        }),
        detected_at,
        run: None,
        detail: Some(Content::Open(detail)),
    }
}

fn config(model: &str, now: Timestamp) -> AgentConfig {
    AgentConfig {
        model: model.into(),
        permission_mode: Some("default".to_owned()),
        file_access_scope: None,
        available_models: Some(vec![model.into(), "small".into()]),
        available_modes: Some(vec!["default".to_owned(), "plan".to_owned()]),
        effort: Some("high".to_owned()),
        available_efforts: Some(vec!["low".to_owned(), "high".to_owned()]),
        commands: None,
        session_file: None,
        capabilities: [("interrupt".to_owned(), true)].into(),
        read_at: now,
    }
}

fn status(health: Health) -> Report {
    Report::Status { health, activity: None, reason: Some("slow".to_owned()) }
}
