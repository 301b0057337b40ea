//! Decides what is worth a notification, and when. Events and the time go in, matters come out.
//!
//! A matter is first held for [`REST_MS`]: a page that is reloading, or a command that is about to
//! end, does not mean that nobody is watching. Then a run that ended or a message that failed is
//! notified if nobody is watching its session, and dropped otherwise. A question is kept for as
//! long as it is open: it is notified as soon as nobody is watching, and never after it was
//! answered. After a restart, open questions that were not notified yet are held for [`RETURN_MS`],
//! so that watchers can reconnect first.
//!
//! **Invariant**: at most [`SESSION_CALLS_MAX`] notifications about one session and [`CALLS_MAX`]
//! in all within [`WINDOW_MS`]. Questions wait for their turn. Other matters that exceed the limit
//! are counted, and the next notification says how many there were.
//!
//! Not here: the text (`notice`), the receiver (`target`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::session::runs::{self, Outcome};
use domain::session::{Event, Recorded, delivery, prompts, status};
use domain::{PromptId, Sequence, SessionId, Timestamp};

use super::words::{self, Question};
use crate::arguments::Occasion;

/// How long a matter rests before it is told.
pub(super) const REST_MS: u64 = 2_000;
/// The same after a restart of the relay.
pub(super) const RETURN_MS: u64 = 5_000;
/// Over how long calls are counted.
pub(super) const WINDOW_MS: u64 = 60_000;
/// Calls about one session within the window.
pub(super) const SESSION_CALLS_MAX: usize = 3;
/// All calls within the window.
pub(super) const CALLS_MAX: usize = 20;
/// Matters that rest or wait. What is beyond is counted as left out.
const MATTERS_MAX: usize = 256;
/// Questions that were told and still wait, as far as they are remembered.
const TOLD_MAX: usize = 1_024;

/// A question by its names.
pub(super) type Asked = (SessionId, PromptId);

/// Something worth a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Matter {
    /// A question waits.
    Asked(Question),
    /// The agent rests.
    Ended(Outcome),
    /// A message did not reach the agent, for this reason.
    Failed(String),
}

/// A matter that is to be told now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) session: SessionId,
    pub(super) matter: Matter,
    /// The event that told it.
    pub(super) sequence: Sequence,
    pub(super) at: Timestamp,
    /// How many were not told since the last call.
    pub(super) left_out: u64,
}

/// Whether a call about a session would tell anybody anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attention {
    /// Somebody is shown it anyway.
    Watched,
    /// Nobody is.
    Alone,
    /// There is no such session any more.
    Gone,
}

#[derive(Debug)]
struct Resting {
    session: SessionId,
    matter: Matter,
    sequence: Sequence,
    at: Timestamp,
    /// Until when it rests.
    until: Timestamp,
}

/// How far a call about a question got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It is on its way.
    Leaving,
    /// Somebody's target took it.
    Arrived,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Desk {
    wanted: Vec<Occasion>,
    resting: VecDeque<Resting>,
    told: BTreeMap<Asked, Told>,
    /// The calls of the window, oldest first.
    calls: VecDeque<(Timestamp, SessionId)>,
    left_out: u64,
}

impl Desk {
    /// For these occasions.
    pub(super) fn new(wanted: Vec<Occasion>) -> Self {
        let (resting, calls) = (VecDeque::new(), VecDeque::new());
        Self { wanted, resting, told: BTreeMap::new(), calls, left_out: 0 }
    }

    /// These were told before, as far as they still wait.
    pub(super) fn remember(&mut self, told: impl IntoIterator<Item = Asked>) {
        let told = told.into_iter().take(TOLD_MAX);
        self.told.extend(told.map(|asked| (asked, Told::Arrived)));
    }

    /// A target took the call about this question.
    pub(super) fn confirm(&mut self, asked: &Asked) {
        if let Some(told) = self.told.get_mut(asked) {
            *told = Told::Arrived;
        }
    }

    /// The questions that wait and of which somebody was told.
    pub(super) fn confirmed(&self) -> impl Iterator<Item = &Asked> + Clone {
        self.told.iter().filter(|(_, told)| **told == Told::Arrived).map(|(asked, _)| asked)
    }

    /// Something was recorded.
    pub(super) fn hear(&mut self, session: &SessionId, recorded: &Recorded) {
        let matter = match &recorded.event {
            Event::Prompt(prompts::Event::Asked(prompt)) => Matter::Asked(Question::new(prompt)),
            Event::Prompt(prompts::Event::Reopened { prompt, .. }) => {
                Matter::Asked(Question::new(prompt))
            }
            Event::Prompt(prompts::Event::Settled { prompt, .. }) => {
                return self.settle(session, prompt);
            }
            Event::Run(runs::Event::Ended { outcome, .. }) => Matter::Ended(match outcome {
                Outcome::Failed(why) => Outcome::Failed(words::clean(why)),
                Outcome::Cut(cut) => {
                    Outcome::Cut(runs::Cut { why: words::clean(&cut.why), ..*cut })
                }
                Outcome::Completed | Outcome::Interrupted => outcome.clone(),
            }),
            Event::Delivery(delivery::Event::Failed { failure, .. }) => {
                Matter::Failed(words::clean(&failure.message))
            }
            Event::Status(status::Event::Closed { .. }) => return self.close(session),
            Event::Prompt(prompts::Event::Confirmed(_))
            | Event::Run(runs::Event::Started { .. })
            | Event::Delivery(
                delivery::Event::Accepted(_)
                | delivery::Event::HandedOver { .. }
                | delivery::Event::Delivered { .. },
            )
            | Event::Status(
                status::Event::Up { .. }
                | status::Event::Down { .. }
                | status::Event::Changed { .. }
                | status::Event::Renamed(_)
                | status::Event::Archived(_),
            )
            | Event::Queue(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Transcript(_) => return,
        };
        self.rest(session, matter, recorded.sequence, recorded.at, REST_MS);
    }

    /// Events were missed. These are the questions that wait now: what was answered meanwhile is
    /// not told, what is new is.
    pub(super) fn catch_up(
        &mut self,
        open: Vec<(SessionId, Sequence, Question)>,
        now: Timestamp,
        rest_ms: u64,
    ) {
        let waits: BTreeSet<Asked> =
            open.iter().map(|(session, _, it)| (session.clone(), it.id.clone())).collect();
        self.told.retain(|known, _| waits.contains(known));
        self.resting.retain(|it| it.prompt().is_none_or(|known| waits.contains(&known)));
        for (session, sequence, question) in open {
            self.rest(&session, Matter::Asked(question), sequence, now, rest_ms);
        }
    }

    /// Whether time alone may lead to a call.
    pub(super) fn is_waiting(&self) -> bool {
        !self.resting.is_empty()
    }

    /// What is to be told now.
    pub(super) fn due(
        &mut self,
        now: Timestamp,
        attention: impl Fn(&SessionId) -> Attention,
    ) -> Vec<Call> {
        while self.calls.front().is_some_and(|(at, _)| now.ms_since(*at) >= WINDOW_MS) {
            self.calls.pop_front();
        }
        let mut calls = vec![];
        for it in std::mem::take(&mut self.resting) {
            if now < it.until {
                self.resting.push_back(it);
                continue;
            }
            let is_question = matches!(it.matter, Matter::Asked(_));
            match attention(&it.session) {
                Attention::Watched if is_question => self.resting.push_back(it),
                Attention::Watched | Attention::Gone => {}
                Attention::Alone if self.has_room(&it.session) => calls.push(self.tell(it, now)),
                Attention::Alone if is_question => self.resting.push_back(it),
                Attention::Alone => self.left_out += 1,
            }
        }
        calls
    }

    fn tell(&mut self, it: Resting, now: Timestamp) -> Call {
        self.calls.push_back((now, it.session.clone()));
        if let Some(key) = it.prompt() {
            if self.told.len() >= TOLD_MAX {
                self.told.pop_first();
            }
            self.told.insert(key, Told::Leaving);
        }
        let Resting { session, matter, sequence, at, until: _ } = it;
        let left_out = std::mem::take(&mut self.left_out);
        Call { session, matter, sequence, at, left_out }
    }

    fn has_room(&self, session: &SessionId) -> bool {
        let of_session = self.calls.iter().filter(|(_, whose)| whose == session).count();
        self.calls.len() < CALLS_MAX && of_session < SESSION_CALLS_MAX
    }

    fn rest(
        &mut self,
        session: &SessionId,
        matter: Matter,
        sequence: Sequence,
        at: Timestamp,
        rest_ms: u64,
    ) {
        let until = at.plus_ms(rest_ms);
        let it = Resting { session: session.clone(), matter, sequence, at, until };
        if !self.wanted.contains(&occasion(&it.matter)) || self.knows(&it) {
            return;
        }
        if self.resting.len() >= MATTERS_MAX {
            self.left_out += 1;
            return;
        }
        self.resting.push_back(it);
    }

    /// What was caught up with may be heard as well.
    fn knows(&self, it: &Resting) -> bool {
        it.prompt().is_some_and(|asked| {
            let rests = self.resting.iter().any(|it| it.prompt().as_ref() == Some(&asked));
            rests || self.told.contains_key(&asked)
        })
    }

    fn settle(&mut self, session: &SessionId, prompt: &PromptId) {
        let key = (session.clone(), prompt.clone());
        self.told.remove(&key);
        self.resting.retain(|it| it.prompt().as_ref() != Some(&key));
    }

    /// Nobody can answer any more; how the last run ended is still worth telling.
    fn close(&mut self, session: &SessionId) {
        self.told.retain(|(whose, _), _| whose != session);
        self.resting.retain(|it| it.session != *session || it.prompt().is_none());
    }
}

impl Resting {
    fn prompt(&self) -> Option<Asked> {
        match &self.matter {
            Matter::Asked(question) => Some((self.session.clone(), question.id.clone())),
            Matter::Ended(_) | Matter::Failed(_) => None,
        }
    }
}

fn occasion(matter: &Matter) -> Occasion {
    match matter {
        Matter::Asked(_) => Occasion::Prompt,
        Matter::Ended(_) => Occasion::Run,
        Matter::Failed(_) => Occasion::Failure,
    }
}

#[cfg(test)]
mod tests;
