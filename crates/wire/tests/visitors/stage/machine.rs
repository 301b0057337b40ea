//! What the machine of a session says and does.

use domain::content::{
    Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate,
};
use domain::passing::{Delta, Passing, Voice};
use domain::session::prompts::{Choice, Detail, Effect, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{DownReason, Health, Via};
use domain::session::{Change, Command, Order, Report, Word};
use domain::{Content, Timestamp};
use wire::visitor::Encoded;

use super::{Shell, Stage};

/// The buttons of most questions.
pub(crate) const YES_NO: [(&str, Option<Effect>); 2] =
    [("yes", Some(Effect::AllowOnce)), ("no", Some(Effect::Reject))];

/// A question with these buttons. Each says in capitals what it is; `default` is the agent's own.
pub(crate) fn prompt(
    id: &str,
    choices: &[(&str, Option<Effect>)],
    default: &str,
    detail: Option<Detail>,
    detected_at: Timestamp,
) -> Prompt {
    let choice = |(id, effect): &(&str, Option<Effect>)| Choice {
        id: (*id).into(),
        label: id.to_uppercase(),
        is_default: *id == default,
        effect: *effect,
        wants_answers: false,
    };
    wire::questions::marked(Prompt {
        id: id.into(),
        text: Content::Open("Run this command? ls".to_owned()),
        choices: choices.iter().map(choice).collect(),
        expiry: None,
        detected_at,
        run: None,
        detail: detail.map(Content::Open),
    })
}

impl<S: Shell> Stage<S> {
    pub(crate) fn report(&mut self, report: Report) {
        let (connection, position) = ("proxy_1".into(), None);
        self.say(&Command::Proxy(Word { connection, position, report })).unwrap();
    }

    /// The machine does everything that it is owed; deliveries begin this run.
    pub(crate) fn obey(&mut self, run: Option<&str>) {
        for order in self.room().session.owed() {
            self.report(match order {
                Order::Deliver { send, attempt } => Report::SendDelivered {
                    id: send.id,
                    attempt: Some(attempt),
                    run: run.map(Into::into),
                },
                Order::Answer { request, .. } | Order::Control { request, .. } => {
                    Report::ControlResult { request, failure: None }
                }
            });
        }
    }

    /// The machine cannot do any of it.
    pub(crate) fn refuse(&mut self, code: &str) {
        for order in self.room().session.owed() {
            let failure = Failure::new(code, "it could not");
            self.report(match order {
                Order::Deliver { send, attempt } => {
                    Report::SendFailed { id: send.id, attempt: Some(attempt), failure }
                }
                Order::Answer { request, .. } | Order::Control { request, .. } => {
                    Report::ControlResult { request, failure: Some(failure) }
                }
            });
        }
    }

    /// The machine is no longer reached.
    pub(crate) fn down(&mut self) {
        let reason = DownReason::ProxyDisconnected;
        self.say(&Command::Relay(Change::Down { connection: None, reason })).unwrap();
    }

    /// The machine is reached, by a proxy with a journal or by a plain one.
    pub(crate) fn up(&mut self, link: Option<&str>) {
        let via = Via { connection: "proxy_1".into(), link: link.map(Into::into) };
        let meta = Box::new(self.room().session.status().meta.clone());
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.say(&Command::Relay(up)).unwrap();
    }

    pub(crate) fn starts(&mut self, run: &str) {
        self.report(Report::RunStarted { run: run.into(), cause: None });
    }

    pub(crate) fn ends(&mut self, run: &str, outcome: Outcome) {
        self.report(Report::RunEnded { run: run.into(), outcome, usage: S::usage() });
    }

    /// A message of the run that goes on.
    pub(crate) fn tells(&mut self, id: &str, author: Author, parts: Content<Vec<Part>>) {
        self.room_mut().drafts.finish(&id.into());
        let run = self.room().session.glance().run.map(|(run, _)| run);
        let (created_at, parent, digest) = (S::START, None, None);
        let message = Message { id: id.into(), author, parts, created_at, run, parent, digest };
        self.report(Report::Message { message, has_own_id: true, echo: None });
    }

    /// The agent says something, whole.
    pub(crate) fn says(&mut self, id: &str, parts: Vec<Part>) {
        self.tells(id, Author::Assistant, Content::Open(parts));
    }

    pub(crate) fn says_text(&mut self, id: &str, text: &str) {
        self.says(id, vec![Part::Text(text.to_owned())]);
    }

    pub(crate) fn calls_tool(&mut self, id: &str, tool: &str, input: Option<&str>) {
        let detail = ToolDetail { input: input.map(str::to_owned), ..ToolDetail::default() };
        self.report(Report::ToolCall(ToolCall {
            id: id.into(),
            tool: tool.to_owned(),
            kind: ToolKind::Execute,
            status: ToolStatus::Running,
            detail: Content::Open(detail),
            run: None,
            parent: None,
        }));
    }

    /// A tool call goes on, or ends.
    pub(crate) fn tool(&mut self, id: &str, status: ToolStatus, output: Option<&str>) {
        let output = output.map(str::to_owned);
        let detail = Content::Open(ToolDetail { output, ..ToolDetail::default() });
        self.report(Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail }));
    }

    /// A few words of a message's only part.
    pub(crate) fn streams(&mut self, message: &str, at: u64, words: &str) {
        self.passes(message, 0, Voice::Text, at, words);
    }

    pub(crate) fn passes(&mut self, message: &str, part: u32, voice: Voice, at: u64, words: &str) {
        let words = Content::Open(words.to_owned());
        let delta = Delta { message: message.into(), part, voice, offset: at, words };
        self.room_mut().drafts.take(&delta);
        let passing = Passing { after: self.room().session.head(), delta };
        let encoded = Encoded::default();
        for name in self.watchers(&self.here) {
            let mut acts = vec![];
            self.client(&name).machine.on_passing(&passing, &encoded, &mut acts);
            self.carry_out(&name, acts);
        }
    }
}
