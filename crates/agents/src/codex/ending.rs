//! What follows when the program has ended.
//!
//! Not here: ending it on purpose (`codex`, which then no longer listens).

use domain::Timestamp;
use domain::content::Failure;
use domain::session::runs::Outcome;
use domain::session::status::Health;

use super::{Codex, Phase, Todo, Why};
use crate::Ended;

impl Codex {
    pub(super) fn ended(&mut self, ended: Ended, now: Timestamp) {
        let failure = match ended {
            Ended::NotStarted(failure) | Ended::Guarded(failure) => failure,
            Ended::Exited(_) | Ended::Killed(_) => {
                let mut words = format!("Codex stopped: {}", ended.words());
                if let Some(complaints) = self.scribe.last_complaints() {
                    words = format!("{words}\n{complaints}");
                }
                Failure::new("agent_not_open", words)
            }
        };
        if matches!(self.phase, Phase::Starting(_)) {
            self.not_up(failure, now);
        } else {
            self.died(&failure, now);
        }
    }

    fn died(&mut self, failure: &Failure, now: Timestamp) {
        let was_stopped = self.is_being_stopped();
        let outcome = if was_stopped {
            Outcome::Interrupted
        } else {
            Outcome::Failed(failure.message.clone())
        };
        let unshown = self.turn.as_mut().map(super::Turn::take_all_unshown);
        self.end_turn(outcome, now);
        let (doubts, others): (Vec<_>, Vec<_>) = self
            .rpc
            .reset()
            .into_iter()
            .partition(|why| matches!(why, Why::Start(_) | Why::Steer(_)));
        for why in others {
            self.unanswered(why, failure);
        }
        self.give_up(failure);
        self.phase = Phase::Asleep;
        if !was_stopped {
            let reason = format!("{}. Send a message to start it again", failure.message);
            self.scribe.health(Health::Degraded, Some(reason), now);
        }
        self.waiting.extend(unshown.into_iter().flatten().map(Todo::Doubt));
        for why in doubts {
            if let Why::Start(sent) | Why::Steer(sent) = why {
                self.waiting.push_back(Todo::Doubt(sent));
            }
        }
        if !self.waiting.is_empty() {
            self.wake(now);
        }
    }
}
