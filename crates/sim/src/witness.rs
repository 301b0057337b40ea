//! Between the relay's gate and a dialect: notes what the gate shows and what the dialect makes of
//! it, for the check at the end.
//!
//! Not here: what it should have been (`check`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::passing::Passing;
use domain::session::Recorded;
use domain::{Principal, PromptId, Sequence, SessionId, Timestamp};
use wire::port::Throttle;
use wire::visitor::{Act, Answer, Encoded, Followed, Visitor};

use crate::effects::{Effect, Effects};

/// What one connection was shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Testimony(Arc<Mutex<Noted>>);

/// What was noted.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// One session after the other.
    pub(crate) views: Vec<View>,
    /// The frames for the client, in order.
    pub(crate) said: Vec<Bytes>,
}

/// What was shown of one session.
#[derive(Debug)]
pub(crate) struct View {
    /// Which.
    pub(crate) session: SessionId,
    /// The last event when it was joined.
    pub(crate) head: Sequence,
    /// Everything after it, as it was shown.
    pub(crate) events: Vec<Recorded>,
    /// How many frames had been said before it was joined.
    pub(crate) said_before: usize,
    /// The questions that were open then.
    pub(crate) open: Vec<PromptId>,
}

impl Testimony {
    /// Looks at it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A dialect's connection that is overheard.
pub(crate) struct Witness<V> {
    visitor: V,
    testimony: Testimony,
    /// Once in so many, the gate shows an event twice.
    twice_in: Option<u64>,
    events: u64,
    effects: Effects,
}

impl<V: Visitor> Witness<V> {
    /// Notes everything in this testimony.
    pub(crate) fn new(
        visitor: V,
        testimony: Testimony,
        twice_in: Option<u64>,
        effects: Effects,
    ) -> Self {
        Self { visitor, testimony, twice_in, events: 0, effects }
    }

    fn note(&self, acts: Vec<Act>) -> Vec<Act> {
        let mut noted = self.testimony.lock();
        for act in &acts {
            if let Act::Send(frame) = act {
                noted.said.push(frame.clone());
            }
        }
        acts
    }

    fn note_from(&self, acts: &[Act]) {
        let mut noted = self.testimony.lock();
        for act in acts {
            if let Act::Send(frame) = act {
                noted.said.push(frame.clone());
            }
        }
    }

    fn show(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        if let Some(view) = self.testimony.lock().views.last_mut() {
            view.events.push(recorded.clone());
        }
        let before = acts.len();
        self.visitor.on_event(recorded, encoded, acts);
        self.note_from(acts.get(before..).unwrap_or_default());
    }
}

impl<V: Visitor> Visitor for Witness<V> {
    fn principal(&self) -> Option<&Principal> {
        self.visitor.principal()
    }

    fn on_open(&mut self, now: Timestamp) -> Vec<Act> {
        let acts = self.visitor.on_open(now);
        self.note(acts)
    }

    fn on_text(&mut self, text: &str, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        let acts = self.visitor.on_text(text, throttle, now);
        self.note(acts)
    }

    fn on_answer(&mut self, ticket: u64, answer: Answer, now: Timestamp) -> Vec<Act> {
        if let Answer::Followed(Some(followed)) = &answer {
            let (session, head) = (followed.session.clone(), followed.head);
            let open =
                followed.glance.card.prompts.iter().map(|prompt| prompt.id.clone()).collect();
            let mut noted = self.testimony.lock();
            let said_before = noted.said.len();
            noted.views.push(View { session, head, events: vec![], said_before, open });
        }
        let acts = self.visitor.on_answer(ticket, answer, now);
        self.note(acts)
    }

    fn on_known(&mut self, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        let acts = self.visitor.on_known(throttle, now);
        self.note(acts)
    }

    fn on_event(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        self.events += 1;
        self.show(recorded, encoded, acts);
        if self.twice_in.is_some_and(|times| self.events.is_multiple_of(times)) {
            self.show(recorded, encoded, acts);
        }
    }

    fn on_passing(&mut self, passing: &Passing, encoded: &Encoded, acts: &mut Vec<Act>) {
        let before = acts.len();
        self.visitor.on_passing(passing, encoded, acts);
        self.note_from(acts.get(before..).unwrap_or_default());
    }

    fn on_caught_up(&mut self, followed: Followed, now: Timestamp) -> Vec<Act> {
        self.effects.count(Effect::CaughtUp);
        let acts = self.visitor.on_caught_up(followed, now);
        self.note(acts)
    }

    fn on_revoked(&mut self) -> Vec<Act> {
        let acts = self.visitor.on_revoked();
        self.note(acts)
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Act> {
        let acts = self.visitor.on_tick(now);
        self.note(acts)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.visitor.deadline()
    }
}
