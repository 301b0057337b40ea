//! Notifies a person who is not watching: a question is open, a run ended, a message failed.
//!
//! A watcher of the relay like any other: it receives recorded events, holds them for a moment, and
//! notifies the configured targets if nobody is watching that session. The relay never waits for
//! it.
//!
//! | module | |
//! |---|---|
//! | `desk` | what is notified, and when; has no clock and no sockets |
//! | `words`, `notice` | the text |
//! | `line` | queue and attempts, per target |
//! | `memory` | which questions were notified, across restarts |
//! | `target`, `program`, `sign` | one attempt |
//!
//! Not here: who is watching (`relay::Watchers`), flags (`arguments`).

mod desk;
mod line;
mod memory;
mod notice;
mod program;
mod sign;
mod target;
mod words;

use std::path::Path;
use std::time::Duration;

use domain::SessionId;
use relay::Relay;
use relay::hub::{Burst, Live, Missing, Watch};
use store::Vault;
use tokio::sync::mpsc;

use self::desk::{Asked, Attention, Desk, REST_MS, RETURN_MS};
use self::line::Line;
use self::memory::Memory;
use self::notice::Notice;
use self::target::Target;
use self::words::Question;
use crate::arguments::Notify;
use crate::problem::{Context as _, Problem};

/// How often matters that rest are looked at, while there are any.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Answers of targets that wait to be noted. One that finds no room is told again after a restart.
const ANSWERS_WAITING_MAX: usize = 64;
/// A secret that is shorter can be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// Checked settings: whom to call, and for what.
#[derive(Debug)]
pub(crate) struct Plan {
    targets: Vec<Target>,
    desk: Desk,
}

impl Plan {
    /// Reads files and checks addresses.
    pub(crate) fn new(notify: &Notify) -> Result<Self, Problem> {
        let mut targets = vec![];
        if let Some(url) = &notify.ntfy {
            let token = notify.ntfy_token_file.as_deref().map(secret).transpose()?;
            targets.push(Target::ntfy(url, token).ok_or_else(|| {
                Problem::usage(
                    "--notify-ntfy must be the URL of a topic, like https://ntfy.sh/my-topic",
                )
            })?);
        }
        if let Some(url) = &notify.webhook {
            let Some(file) = &notify.secret_file else {
                let words = "--notify-webhook needs --notify-secret-file FILE with the secret \
                             that signs each request (`openssl rand -hex 32 > FILE`)";
                return Err(Problem::usage(words));
            };
            let secret = secret(file)?;
            if secret.len() < SECRET_BYTES_MIN {
                let file = file.display();
                return Err(Problem::usage(format!(
                    "the secret in {file} is shorter than {SECRET_BYTES_MIN} characters; create \
                     one with `openssl rand -hex 32`"
                )));
            }
            targets.push(Target::webhook(url, secret.into_bytes()).ok_or_else(|| {
                Problem::usage("--notify-webhook must be an http:// or https:// URL")
            })?);
        }
        if let Some(command) = &notify.command {
            targets.push(Target::Command(command.clone()));
        }
        Ok(Self { targets, desk: Desk::new(notify.on.clone()) })
    }

    /// Begins, if anybody is to be called. `base` is the address that people use; in the vault it
    /// is remembered what was told.
    pub(crate) fn start(
        self,
        relay: &Relay,
        base: &str,
        vault: Box<dyn Vault>,
    ) -> Result<(), Problem> {
        let Self { targets, mut desk } = self;
        if targets.is_empty() {
            return Ok(());
        }
        let tasks = &relay.ports().tasks;
        let (memory, told) = Memory::open(vault, tasks).map_err(Problem::new)?;
        desk.remember(told);
        let (tell, answers) = mpsc::channel(ANSWERS_WAITING_MAX);
        let lines =
            targets.into_iter().map(|target| Line::open(target, tell.clone(), tasks)).collect();
        let (relay, base) = (relay.clone(), base.to_owned());
        let live = relay.watch();
        let mut caller = Caller { relay: relay.clone(), desk, lines, memory, base };
        caller.catch_up(RETURN_MS);
        tasks.spawn("notify", caller.work(live, answers));
        Ok(())
    }
}

fn secret(file: &Path) -> Result<String, Problem> {
    let text = std::fs::read_to_string(file);
    let text = text.context(format_args!("could not read {}", file.display()))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::new(format!("{} is empty", file.display())));
    }
    Ok(text.to_owned())
}

/// Hears everything, and tells what is due.
struct Caller {
    relay: Relay,
    desk: Desk,
    lines: Vec<Line>,
    memory: Memory,
    base: String,
}

impl Caller {
    async fn work(mut self, mut live: Watch, mut answers: mpsc::Receiver<Asked>) {
        loop {
            tokio::select! {
                burst = live.recv() => match burst {
                    Ok(burst) => self.hear(&burst),
                    Err(Missing::Lagged) => self.catch_up(REST_MS),
                    Err(Missing::Closed) => return,
                },
                Some(asked) = answers.recv() => self.desk.confirm(&asked),
                () = tokio::time::sleep(LOOK_EVERY), if self.desk.is_waiting() => {}
            }
            self.tell();
            self.memory.keep(self.desk.confirmed());
        }
    }

    fn hear(&mut self, burst: &Burst) {
        for live in burst.iter() {
            match live {
                Live::Session(event) => self.desk.hear(&event.session, &event.recorded),
                Live::Fleet(_) | Live::Passing(_) => {}
            }
        }
    }

    /// The ledger says what waits; nothing of that has to be remembered here.
    fn catch_up(&mut self, rest_ms: u64) {
        let mut open = vec![];
        for listing in self.relay.listings() {
            let questions = listing.card.prompts.iter().map(Question::new);
            open.extend(questions.map(|it| (listing.id.clone(), listing.head, it)));
        }
        self.desk.catch_up(open, self.relay.ports().clock.now(), rest_ms);
    }

    fn tell(&mut self) {
        if !self.desk.is_waiting() {
            return;
        }
        let relay = &self.relay;
        let attention = |session: &SessionId| {
            if !relay.directory().knows(session) {
                Attention::Gone
            } else if relay.watchers().see(session) {
                Attention::Watched
            } else {
                Attention::Alone
            }
        };
        for call in self.desk.due(relay.ports().clock.now(), attention) {
            let Some(listing) = relay.directory().get(&call.session) else { continue };
            let notice = Notice::new(&call, &listing.card, &self.base);
            for line in &mut self.lines {
                line.leave(notice.clone());
            }
        }
    }
}
