//! The driver, fed with the observer's pushes.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind among all")]
#![expect(clippy::needless_pass_by_value, reason = "pushes are written where they are used")]

mod life;
mod prompts;
mod rows;
mod sends;

use domain::content::{Message, Part};
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::{Content, Sequence};
use serde_json::{Value, json};

use super::*;
use crate::panel::profile::built_in;
use crate::{Launcher, Order};

/// A session, its notes as they lie on disk, and what it asked to be done.
struct Bench {
    driver: PanelDriver,
    profile: &'static str,
    notes: String,
    now: Timestamp,
    epoch: u64,
    n: u64,
    /// Everything it told since [`Bench::take`].
    told: Vec<Output>,
    jobs: Vec<Job>,
}

impl Bench {
    fn start(profile: &'static str, notes: String, origin: Origin, now: Timestamp) -> Self {
        let found = built_in().into_iter().find(|it| it.id == profile).unwrap();
        let setup = Setup {
            session: SessionId::from("sess_1"),
            notes: notes.clone(),
            launcher: Launcher::default(),
            workspace: "/w".into(),
            model: None,
            mode: None,
            earlier: None,
            ready_by: None,
            variables: BTreeMap::new(),
        };
        let driver = PanelDriver::new(Arc::new(found), setup, origin);
        let (told, jobs) = (vec![], vec![]);
        let mut bench = Self { driver, profile, notes, now, epoch: 1, n: 0, told, jobs };
        let outputs = bench.driver.start(now);
        bench.hear(outputs);
        bench
    }

    /// A session whose panel is there and shows nothing yet.
    fn attached() -> Self {
        Self::attached_as("claude-vscode")
    }

    fn attached_as(profile: &'static str) -> Self {
        let mut bench = Self::start(profile, String::new(), Origin::Found, Timestamp(1_000_000));
        bench.attach();
        bench.push(json!({}));
        bench.take();
        bench
    }

    /// The proxy died and comes back; the panel is found again.
    fn restart(&self) -> Self {
        let mut bench =
            Self::start(self.profile, self.notes.clone(), Origin::Found, self.now.plus_ms(1_000));
        bench.epoch = self.epoch + 1;
        bench.attach();
        bench
    }

    fn hear(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match &output {
                Output::Remember(line) => {
                    self.notes.push_str(line);
                    self.notes.push('\n');
                }
                Output::Panel(job) => self.jobs.push(job.clone()),
                _ => {}
            }
            self.told.push(output);
        }
    }

    fn news(&mut self, news: News) {
        let outputs = self.driver.on_input(Input::Panel(news), self.now);
        self.hear(outputs);
    }

    fn attach(&mut self) {
        let found = built_in().into_iter().find(|it| it.id == self.profile).unwrap();
        self.attach_as(found);
    }

    fn attach_as(&mut self, profile: Profile) {
        let (profile, signature) = (Arc::new(profile), "panel-1".to_owned());
        let (window_title, workspace_path) = (None, None);
        let attached = Attached { profile, window_title, workspace_path, signature };
        self.news(News::Attached(attached));
        // Whoever looks is told by the pushes that follow.
        self.answer_looks();
    }

    fn answer_looks(&mut self) {
        let all = std::mem::take(&mut self.jobs);
        let (looks, others) = all.into_iter().partition(|job| job.task == Task::Look);
        self.jobs = others;
        let looks: Vec<Job> = looks;
        for job in looks {
            self.news(News::Done { job: job.number, outcome: Ok(Done::Plainly) });
        }
    }

    /// A push of a panel that is well, with this besides.
    fn push(&mut self, with: Value) {
        self.n += 1;
        let mut push = json!({
            "epoch": format!("e{}", self.epoch), "n": self.n, "kind": "change", "rows": [],
            "count": 1, "composer": {"alternative": 0, "is_empty": true, "is_focused": false},
            "send": {"alternative": 0, "is_enabled": true}, "busy": false, "dialogs": [],
            "model": "opus", "ready": true,
            "landmarks": {"scope": 0, "composer": 0, "send": 0, "root": 0, "model": 0},
        });
        for (key, value) in with.as_object().unwrap() {
            push[key] = value.clone();
        }
        if push["busy"] == true {
            push["landmarks"]["stop"] = json!(0);
        }
        self.news(News::Pushed(push.to_string()));
    }

    /// Rows as the observer tells them: keys by role and count.
    fn rows(rows: &[(&str, &str)]) -> Value {
        let mut counts = BTreeMap::<&str, usize>::new();
        let rows = rows.iter().enumerate().map(|(ordinal, (role, text))| {
            let count = counts.entry(role).or_default();
            let key = format!("{role}#{count}");
            *count += 1;
            json!({"key": key, "ordinal": ordinal, "role": role, "text": text, "hash": "h"})
        });
        rows.collect()
    }

    fn show(&mut self, rows: &[(&str, &str)]) {
        self.push(json!({"rows": Self::rows(rows)}));
    }

    fn show_busy(&mut self, rows: &[(&str, &str)]) {
        self.push(json!({"rows": Self::rows(rows), "busy": true}));
    }

    /// Time passes, and the driver is woken as it wants to be.
    fn pass(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        for _ in 0..1_000 {
            let Some(due) = self.driver.deadline().filter(|due| *due <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            let outputs = self.driver.on_deadline(self.now);
            self.hear(outputs);
            self.answer_looks();
        }
        panic!("it wants to be woken without end: {:?}", self.driver);
    }

    fn order(&mut self, order: Order) {
        let outputs = self.driver.on_order(&order, self.now);
        self.hear(outputs);
    }

    fn deliver(&mut self, id: &str, text: &str) {
        let send = Send {
            id: id.into(),
            text: Content::Open(text.to_owned()),
            attachments: vec![],
            mode: None,
            by: "ada".to_owned(),
            created_at: Timestamp(1),
            digest: None,
        };
        self.order(Order::Deliver { send, attempt: Sequence(1), files: vec![] });
    }

    fn control(&mut self, request: &str, control: Control) {
        self.order(Order::Control { request: request.into(), control });
    }

    fn done(&mut self, is_it: impl Fn(&Task) -> bool, outcome: Result<Done, Failure>) {
        let at = self.jobs.iter().position(|job| is_it(&job.task));
        let at = at.unwrap_or_else(|| panic!("nothing like it was asked: {:?}", self.jobs));
        let job = self.jobs.remove(at).number;
        self.news(News::Done { job, outcome });
    }

    fn sent(&mut self) {
        self.done(|task| matches!(task, Task::Send { .. }), Ok(Done::Plainly));
    }

    fn tasks(&self) -> Vec<&Task> {
        self.jobs.iter().map(|job| &job.task).filter(|task| **task != Task::Find).collect()
    }

    fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.told)
    }

    fn reports(&self) -> Vec<&Report> {
        let mut reports = vec![];
        for output in &self.told {
            if let Output::Report(report) = output {
                reports.push(report);
            }
        }
        reports
    }

    /// Who said what, as it was recorded.
    fn messages(&self) -> Vec<String> {
        let message = |report: &Report| match report {
            Report::Message { message, .. } => Some(words(message)),
            _ => None,
        };
        self.reports().into_iter().filter_map(message).collect()
    }

    fn live_words(&self) -> String {
        let words = |output: &Output| match output {
            Output::Passing(delta, _) => delta.words.open().cloned(),
            _ => None,
        };
        self.told.iter().filter_map(words).collect()
    }

    fn last_health(&self) -> Option<(Health, Option<String>)> {
        let status = |report: &&Report| match report {
            Report::Status { health, reason, .. } => Some((*health, reason.clone())),
            _ => None,
        };
        self.reports().iter().rev().find_map(status)
    }
}

fn words(message: &Message) -> String {
    let parts = message.parts.open().unwrap();
    let words: Vec<_> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Thinking(text) => format!("({text})"),
            other => panic!("{other:?}"),
        })
        .collect();
    let author = match message.author {
        domain::content::Author::User => "user",
        domain::content::Author::Assistant => "agent",
        domain::content::Author::System => "system",
    };
    format!("{author}: {}", words.join("+"))
}
