//! Sends on their way into the panel, and the rows that are their echoes.

use domain::content::Failure;
use domain::session::delivery::Send;
use domain::session::status::Health;
use domain::{MessageId, RunId, Sequence, Timestamp};

use super::{AWAY_MS, MODEL_NEEDED_MS, MODEL_SETTLES_MS, PanelDriver, Phase, Purpose, WARM_MS};
use crate::files::{images, with_files};
use crate::panel::identity::print_of;
use crate::panel::tellings::letters;
use crate::panel::{Task, pattern};
use crate::{File, Lookup, Output, run_id};

/// Orders that wait for the panel or for the run's end. Beyond, they are refused.
const HELD_MAX: usize = 64;
/// Sends whose rows are waited for.
const AWAITED_MAX: usize = 16;
/// How long a row may be the echo of a send.
const ECHO_MS: u64 = 120_000;
/// Letters that must agree where a row shows only a part of what was sent.
const PART_CHARACTERS_MIN: usize = 16;

/// A send that is being typed.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: MessageId,
    pub(super) attempt: Sequence,
    pub(super) run: RunId,
    letters: String,
    /// Whether the panel was at work since.
    pub(super) was_busy: bool,
}

impl Flight {
    pub(super) fn is_echo(&self, text: &str) -> bool {
        is_echo(&self.letters, text)
    }
}

/// A send whose row may still be seen.
#[derive(Debug)]
pub(super) struct Awaited {
    id: MessageId,
    attempt: Sequence,
    words: Words,
    until: Timestamp,
}

#[derive(Debug)]
enum Words {
    Letters(String),
    /// After a restart only their fingerprint is known.
    Print(String),
}

/// An order that waits.
#[derive(Debug)]
pub(super) struct Held {
    send: Send,
    attempt: Sequence,
    files: Vec<File>,
    since: Timestamp,
}

/// Whether a send can be typed now.
enum Chance {
    Now,
    Later,
    No(Failure),
}

impl PanelDriver {
    pub(super) fn deliver(
        &mut self,
        send: &Send,
        attempt: Sequence,
        files: &[File],
        now: Timestamp,
    ) {
        if self.held.len() >= HELD_MAX {
            let words = "Too many messages are already queued for this panel. Try again in a \
                         moment";
            let failure = Failure::new("send_rejected", words);
            return self.scribe.not_delivered(&send.id, attempt, failure);
        }
        self.held.push_back(Held {
            send: send.clone(),
            attempt,
            files: files.to_vec(),
            since: now,
        });
        self.serve_held(now);
    }

    /// What was never noted was never typed; of the rest nobody can tell.
    pub(super) fn look_up(&mut self, id: &MessageId, attempt: Sequence) {
        let was_written = self.notes.was_written(id, attempt);
        let found = if was_written { Lookup::Unknown } else { Lookup::Absent };
        self.scribe.push(Output::LookedUp { id: id.clone(), attempt, found });
    }

    /// Types what waits, as far as the panel is ready for it.
    pub(super) fn serve_held(&mut self, now: Timestamp) {
        while let Some(first) = self.held.front() {
            match self.chance(first.since, now) {
                Chance::Later => return,
                Chance::No(failure) => {
                    let Some(held) = self.held.pop_front() else { return };
                    self.scribe.not_delivered(&held.send.id, held.attempt, failure);
                }
                Chance::Now => {
                    let Some(held) = self.held.pop_front() else { return };
                    self.type_in(&held, now);
                }
            }
        }
    }

    pub(super) fn fail_held(&mut self, failure: &Failure) {
        for held in std::mem::take(&mut self.held) {
            self.scribe.not_delivered(&held.send.id, held.attempt, failure.clone());
        }
    }

    /// When something that waits for the panel is given up.
    pub(super) fn held_deadline(&self) -> Option<Timestamp> {
        let first = self.held.front()?;
        let is_unseen = self.phase != Phase::Attached || self.sight.last.is_none();
        if is_unseen {
            return Some(first.since.plus_ms(AWAY_MS));
        }
        Some(self.takes_at()).filter(|at| *at > self.woken_at)
    }

    /// From when on a panel that appeared takes messages, as far as its model tells.
    fn takes_at(&self) -> Timestamp {
        let Some(rules) = &self.profile.model else { return self.woken_at };
        // After that, there may be none to read.
        let longer = if rules.is_needed { MODEL_NEEDED_MS - WARM_MS } else { 0 };
        let at_last = self.warm_at.plus_ms(longer);
        let settles = if rules.is_needed { MODEL_SETTLES_MS } else { 0 };
        self.model_at.map_or(at_last, |at| at.plus_ms(settles).min(at_last))
    }

    fn chance(&self, since: Timestamp, now: Timestamp) -> Chance {
        let reason = || self.verdict.as_ref().and_then(|verdict| verdict.reason.clone());
        let reason = reason().unwrap_or_default();
        let Some(last) = self.sight.last.as_ref().filter(|_| self.phase == Phase::Attached) else {
            if now.ms_since(since) < AWAY_MS {
                return Chance::Later;
            }
            let words =
                format!("The message was not sent: {reason}. Open the panel and send it again");
            return Chance::No(Failure::new("agent_not_open", words));
        };
        match self.health() {
            Health::AgentUiChanged => {
                return Chance::No(Failure::new("selector_failure", reason));
            }
            Health::ScrapingFailed => {
                return Chance::No(Failure::new("send_injection_failed", reason));
            }
            Health::Healthy | Health::Degraded | Health::Disconnected => {}
        }
        if let Some(waiting) = &last.waiting {
            return Chance::No(Failure::new("agent_not_active", waiting.clone()));
        }
        // A panel that was just loaded may not have its model yet, and then takes nothing.
        let is_fresh = now < self.takes_at();
        let is_occupied = is_fresh
            || self.running.is_busy
            || self.scribe.run().is_some()
            || self.watch.is_missing()
            || !last.ready
            || self.is_doing(|it| matches!(it, Purpose::Send(_)));
        if is_occupied { Chance::Later } else { Chance::Now }
    }

    fn type_in(&mut self, held: &Held, now: Timestamp) {
        let (send, attempt) = (&held.send, held.attempt);
        let Some(words) = self.scribe.words_of(send, attempt) else { return };
        let takes_images = self.profile.composer.takes_images;
        let text = with_files(&words, &held.files, takes_images);
        let images: Vec<_> = images(&held.files, takes_images).cloned().collect();
        let letters = letters(&text);
        let line = self.notes.note_writing(&send.id, attempt, print_of(&letters));
        self.remember(line);
        let run = run_id(&send.id, attempt);
        let flight = Flight { id: send.id.clone(), attempt, run, letters, was_busy: false };
        self.ask(Task::Send { text, images }, Purpose::Send(Box::new(flight)), now);
    }

    /// What came of typing.
    pub(super) fn sent(&mut self, flight: Flight, failure: Option<Failure>, now: Timestamp) {
        let (id, attempt) = (flight.id.clone(), flight.attempt);
        if let Some(failure) = failure {
            self.scribe.not_delivered(&id, attempt, failure);
            return self.follow(now);
        }
        let line = self.notes.note_delivered(&id, attempt);
        self.remember(line);
        let run = flight.run.clone();
        self.running.expect(&flight, now);
        if self.running.last_ended.as_ref() != Some(&run) {
            self.scribe.begin_run(run.clone(), Some(id.clone()), now);
        }
        self.scribe.delivered(&id, attempt, Some(run));
        let words = Words::Letters(flight.letters);
        self.await_echo(Awaited { id, attempt, words, until: now.plus_ms(ECHO_MS) });
        self.follow(now);
    }

    fn await_echo(&mut self, awaited: Awaited) {
        self.awaited.push_back(awaited);
        if self.awaited.len() > AWAITED_MAX {
            self.awaited.pop_front();
        }
    }

    /// After a restart: sends whose rows were not seen before.
    pub(super) fn await_echoes(&mut self, now: Timestamp) {
        let until = now.plus_ms(ECHO_MS);
        let all: Vec<_> = self
            .notes
            .awaited()
            .filter(|(_, _, written)| written.is_delivered)
            .map(|(id, attempt, written)| {
                let words = Words::Print(written.print.clone());
                Awaited { id: id.clone(), attempt, words, until }
            })
            .collect();
        for awaited in all {
            self.await_echo(awaited);
        }
    }

    /// A row's words without what the panel puts before every message by itself.
    pub(super) fn without_habit<'a>(&self, words: &'a str) -> &'a str {
        let habit = self.profile.composer.sticky.as_deref().and_then(pattern);
        let found = habit.and_then(|habit| habit.find(words)).filter(|found| found.start() == 0);
        found.map_or(words, |found| &words[found.end()..])
    }

    /// Whether a row is the echo of a send that was delivered. Each send has one.
    pub(super) fn take_echo(&mut self, text: &str, now: Timestamp) -> bool {
        self.awaited.retain(|awaited| awaited.until > now);
        let is_it = |awaited: &Awaited| match &awaited.words {
            Words::Letters(letters) => is_echo(letters, text),
            Words::Print(print) => *print == print_of(&letters(text)),
        };
        let Some(at) = self.awaited.iter().position(is_it) else { return false };
        let Some(awaited) = self.awaited.remove(at) else { return false };
        self.notes.echoed(&awaited.id, awaited.attempt);
        true
    }
}

/// Whether a row shows what was sent: all of it, or so much of its beginning that it is no other.
fn is_echo(sent: &str, row: &str) -> bool {
    let row = letters(row);
    if row == sent {
        return true;
    }
    let enough = |part: &str| part.chars().count() >= PART_CHARACTERS_MIN;
    (enough(&row) && sent.starts_with(row.as_str()))
        || (enough(sent) && (row.starts_with(sent) || row.ends_with(sent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_may_be_rendered_cut_short_or_have_something_before_it() {
        let sent = letters("Please **mend** the `parser`, then run\n\n1. the tests");
        assert!(is_echo(&sent, "Please mend the parser, then run\n1. the tests"));
        assert!(is_echo(&sent, "Please mend the parser, then…".trim_end_matches('…')));
        assert!(is_echo(&sent, "@agent Please mend the parser, then run 1. the tests"));
        assert!(!is_echo(&sent, "Please"));
        assert!(!is_echo(&letters("ok"), "ok, and then?"));
    }
}
