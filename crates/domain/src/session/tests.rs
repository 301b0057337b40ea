//! Tests of one session: who sends what when, and what is recorded.
//!
//! A story performs commands as the owner does and keeps the recorded events. Events are compared
//! in a short form, so that a test reads like the ledger.

mod config;
mod controls;
mod delivery;
mod interrupts;
mod prompts;
mod properties;
mod queue;
mod runs;
mod status;
mod transcript;

use super::command::{Change, Command, Report, Wish, Word};
use super::controls::Control;
use super::delivery::{Mode, Send};
use super::prompts::{Choice, Expiry, Prompt, Settled};
use super::runs::Outcome;
use super::status::{Activity, DownReason, Health, Meta, Via};
use super::{Event, Order, Performed, Policy, Recorded, ReplayCursor, Session};
use crate::content::{Author, Digest, Failure, Message, Part};
use crate::{
    ClientId, Content, LinkPosition, Principal, Refusal, RequestId, Role, Sequence, Timestamp,
};

/// The time at which every story begins.
const START: Timestamp = Timestamp(1_000_000);
/// The journal of the proxy with the feature `link`.
const JOURNAL: &str = "journal-1";

struct Story {
    session: Session,
    cursor: ReplayCursor,
    history: Vec<Recorded>,
    now: Timestamp,
}

/// What was recorded in the short form, or why nothing was.
type Told = Result<Vec<String>, Refusal>;

impl Story {
    /// Nobody has seen the session.
    fn unseen() -> Self {
        Self { session: Session::default(), cursor: <_>::default(), history: vec![], now: START }
    }

    /// Reached through a proxy with the feature `link`.
    fn linked() -> Self {
        let mut story = Self::unseen();
        story.up("socket-1", Some(JOURNAL));
        story
    }

    /// Reached through a plain proxy.
    fn plain() -> Self {
        let mut story = Self::unseen();
        story.up("socket-1", None);
        story
    }

    fn perform(&mut self, command: &Command) -> Told {
        let policy = Policy::default();
        let Performed { overdue, outcome } =
            self.session.perform(command, &mut self.cursor, policy, self.now);
        self.history.extend(overdue.clone());
        let recorded = outcome?;
        self.history.extend(recorded.clone());
        let all = overdue.iter().chain(&recorded);
        Ok(all.map(|recorded| brief(&recorded.event)).collect())
    }

    fn wish(&mut self, who: &Principal, wish: Wish) -> Told {
        self.perform(&Command::Person(who.clone(), wish))
    }

    fn change(&mut self, change: Change) -> Vec<String> {
        self.perform(&Command::Relay(change)).unwrap()
    }

    fn tick(&mut self) -> Vec<String> {
        self.change(Change::Tick)
    }

    fn wait_ms(&mut self, duration_ms: u64) -> Vec<String> {
        self.now = self.now.plus_ms(duration_ms);
        self.tick()
    }

    fn up(&mut self, connection: &str, link: Option<&str>) -> Vec<String> {
        let via = Via { connection: connection.into(), link: link.map(Into::into) };
        let meta = Box::new(Meta::of_agent("demo".into()));
        self.change(Change::Up { via, meta, health: Health::Healthy, activity: None })
    }

    fn down(&mut self) -> Vec<String> {
        self.change(Change::Down { connection: None, reason: DownReason::ProxyDisconnected })
    }

    /// The connected proxy says something.
    fn report(&mut self, report: Report) -> Told {
        self.report_at(None, report)
    }

    fn report_at(&mut self, number: Option<u64>, report: Report) -> Told {
        let via = self.session.status().via().expect("a proxy is connected").clone();
        let position =
            number.map(|number| LinkPosition { link: via.link.clone().unwrap(), number });
        self.perform(&Command::Proxy(Word { connection: via.connection, position, report }))
    }

    fn send(&mut self, id: &str) -> Told {
        self.wish(&ada(), Wish::Send { send: send(id), earlier: None })
    }

    fn steer(&mut self, id: &str) -> Told {
        let send = Send { mode: Some(Mode::Steer), ..send(id) };
        self.wish(&ada(), Wish::Send { send, earlier: None })
    }

    fn delivered(&mut self, id: &str) -> Vec<String> {
        self.report(Report::SendDelivered { id: id.into(), attempt: None, run: None }).unwrap()
    }

    fn failed(&mut self, id: &str, code: &str) -> Vec<String> {
        let failure = Failure::new(code, "words");
        self.report(Report::SendFailed { id: id.into(), attempt: None, failure }).unwrap()
    }

    fn run_starts(&mut self, run: &str) -> Vec<String> {
        self.report(Report::RunStarted { run: run.into(), cause: None }).unwrap()
    }

    fn run_ends(&mut self, run: &str, outcome: Outcome) -> Vec<String> {
        self.report(Report::RunEnded { run: run.into(), outcome, usage: None }).unwrap()
    }

    fn asked(&mut self, prompt: Prompt) -> Told {
        self.report(Report::Asked(prompt))
    }

    fn answer(&mut self, who: &Principal, request: Option<&str>, choice: &str) -> Told {
        let request = request.map(Into::into);
        let (prompt, choice) = ("p1".into(), choice.into());
        self.wish(who, Wish::Answer { request, prompt, choice, detail: None })
    }

    fn control(&mut self, who: &Principal, request: &str, control: Control) -> Told {
        self.wish(who, Wish::Control { request: request.into(), control })
    }

    fn interrupt(&mut self, request: &str) -> Told {
        self.control(&ada(), request, Control::Interrupt { run: None })
    }

    fn result(&mut self, request: &str, failure: Option<&str>) -> Vec<String> {
        let failure = failure.map(|code| Failure::new(code, "words"));
        self.report(Report::ControlResult { request: request.into(), failure }).unwrap()
    }

    fn resumed(&mut self, prompts: &[&str], run: Option<&str>) -> Vec<String> {
        let prompts = prompts.iter().map(|id| (*id).into()).collect();
        self.report(Report::Resumed { prompts, run: run.map(Into::into) }).unwrap()
    }

    /// The orders that the proxy must be told, in the short form.
    fn owed(&self) -> Vec<String> {
        self.session.owed().iter().map(brief_order).collect()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.session.deadline(Policy::default())
    }

    fn head(&self) -> Sequence {
        self.session.head()
    }
}

fn ada() -> Principal {
    person("ada", Role::Operator)
}

fn bob() -> Principal {
    person("bob", Role::Owner)
}

fn person(name: &str, role: Role) -> Principal {
    let client = Some(ClientId::from(format!("{name}'s phone")));
    Principal { credential: name.into(), role, client, name: name.to_owned() }
}

fn send(id: &str) -> Send {
    Send {
        id: id.into(),
        text: Content::Open(format!("words of {id}")),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: START,
        digest: None,
    }
}

fn prompt(id: &str, expiry: Option<(u64, Option<&str>)>) -> Prompt {
    let choice = |id: &str, is_default| Choice {
        id: id.into(),
        label: id.to_uppercase(),
        is_default,
        effect: None,
        wants_answers: false,
    };
    Prompt {
        id: id.into(),
        text: Content::Open("Delete build/?".to_owned()),
        choices: vec![choice("yes", false), choice("no", true)],
        expiry: expiry.map(|(timeout_ms, choice)| Expiry {
            at: START.plus_ms(timeout_ms),
            timeout_ms,
            choice: choice.map(Into::into),
        }),
        detected_at: START,
        run: None,
        detail: None,
    }
}

fn message(id: &str, author: Author, digest: Option<u64>) -> Message {
    Message {
        id: id.into(),
        author,
        parts: Content::Open(vec![Part::Text("words".to_owned())]),
        created_at: START,
        run: None,
        parent: None,
        digest: digest.map(Digest),
    }
}

fn activity(kind: &str, updated_at: u64) -> Activity {
    Activity { kind: kind.to_owned(), label: None, updated_at: Timestamp(updated_at) }
}

fn nothing() -> Vec<String> {
    vec![]
}

/// An event as a test names it.
fn brief(event: &Event) -> String {
    use super::{controls, delivery, queue, runs, status, transcript};
    match event {
        Event::Delivery(event) => match event {
            delivery::Event::Accepted(send) => format!("accepted {}", send.id),
            delivery::Event::HandedOver { id, .. } => format!("handed over {id}"),
            delivery::Event::Delivered { id, .. } => format!("delivered {id}"),
            delivery::Event::Failed { id, failure } => format!("failed {id}: {}", failure.code),
        },
        Event::Queue(event) => match event {
            queue::Event::Held => "held".to_owned(),
            queue::Event::Resumed => "resumed".to_owned(),
            queue::Event::Edited { id, .. } => format!("edited {id}"),
            queue::Event::Moved { id, to } => format!("moved {id} to {to}"),
        },
        Event::Prompt(event) => brief_prompt(event),
        Event::Run(event) => match event {
            runs::Event::Started { run, .. } => format!("{run} started"),
            runs::Event::Ended { run, outcome, .. } => match outcome {
                Outcome::Completed => format!("{run} completed"),
                Outcome::Interrupted => format!("{run} interrupted"),
                Outcome::Cut(_) => format!("{run} cut off"),
                Outcome::Failed(_) => format!("{run} failed"),
            },
        },
        Event::Control(event) => match event {
            controls::Event::Requested { request, .. } => format!("requested {request}"),
            controls::Event::Settled { request, failure, .. } => {
                let how = failure.as_ref().map_or("ok", |failure| failure.code.as_str());
                format!("settled {request}: {how}")
            }
        },
        Event::Config(config) => format!("config {}", config.model),
        Event::Status(event) => match event {
            status::Event::Up { via, .. } => format!("up through {}", via.connection),
            status::Event::Down { reason, .. } => format!("down: {reason:?}"),
            status::Event::Changed { health, activity, .. } => {
                let doing = activity.as_ref().map_or("-", |activity| activity.kind.as_str());
                format!("changed: {health:?} {doing}")
            }
            status::Event::Closed { reason, .. } => format!("closed: {reason:?}"),
            status::Event::Renamed(title) => format!("renamed {title}"),
            status::Event::Archived(archived) => format!("archived {archived}"),
        },
        Event::Transcript(event) => match event {
            transcript::Event::Message(message) => format!("message {}", message.id),
            transcript::Event::ToolCall(call) => format!("tool call {}", call.id),
            transcript::Event::ToolUpdate(update) => {
                format!("tool {}: {:?}", update.id, update.status)
            }
            transcript::Event::Plan(_) => "plan".to_owned(),
            transcript::Event::Notice(notice) => format!("notice {}", notice.kind),
            transcript::Event::Context(context) => format!("context {}", context.used_tokens),
            transcript::Event::Echoed(_) => "echoed".to_owned(),
        },
    }
}

fn brief_prompt(event: &super::prompts::Event) -> String {
    use super::prompts::Event;
    match event {
        Event::Asked(prompt) => format!("asked {}", prompt.id),
        Event::Settled { prompt, choice, settled, .. } => {
            let choice = choice.as_ref().map_or("nothing", |choice| choice.as_str());
            match settled {
                Settled::ByPerson { name } => format!("{prompt}: {choice}, says {name}"),
                Settled::ByExpiry => format!("{prompt}: {choice}, says the clock"),
                Settled::Withdrawn => format!("{prompt}: withdrawn"),
            }
        }
        Event::Confirmed(prompt) => format!("{prompt}: confirmed"),
        Event::Reopened { prompt, failure } => {
            format!("{}: reopened, {}", prompt.id, failure.code)
        }
    }
}

fn brief_order(order: &Order) -> String {
    match order {
        Order::Deliver { send, .. } => format!("deliver {}", send.id),
        Order::Answer { prompt, choice, by_person, .. } => {
            let choice = choice.as_ref().map_or("nothing", |choice| choice.as_str());
            let who = if *by_person { "a person" } else { "the clock" };
            format!("answer {prompt}: {choice}, says {who}")
        }
        Order::Control { request, control } => format!("{request}: {:?}", control.kind()),
    }
}
