//! A visitor's position in the session it follows.
//!
//! **Invariant**: every recorded event after the join is shown once and in order; a passing event
//! is shown only if it continues what was shown.

use domain::passing::{Delta, Drafts, Passing};
use domain::session::{Event, Recorded, runs, transcript};
use domain::{Live, Sequence, SessionId, Tail};

/// A visitor's place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) session: SessionId,
    /// `None` until it is known where to begin.
    tail: Option<Tail>,
    /// The newest event that is known of, shown or not.
    known: Sequence,
    /// What was known when the read that is on its way began.
    known_before: Sequence,
    /// How far words in the making were shown; the words themselves are the relay's to keep.
    drafts: Drafts,
    /// Passing events from before are in the drafts that came with the join.
    joined_at: Sequence,
    is_reading: bool,
    /// Passing events may have been missed: how things stand is to be asked for.
    is_unsure: bool,
    /// It was asked for, and has not come.
    is_asking: bool,
    /// The last event that was shown when it was asked for.
    asked_at: Sequence,
}

impl Place {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            tail: None,
            known: Sequence(0),
            known_before: Sequence(0),
            drafts: Drafts::without_words(),
            joined_at: Sequence(0),
            is_reading: false,
            is_unsure: false,
            is_asking: true,
            asked_at: Sequence(0),
        }
    }

    /// It is known where to begin, or how things stand after catching up. Whether that may be told:
    /// words in the making follow events. Where those are still to be shown, or later ones were
    /// shown already, which may have ended the words, how things stand is asked for again.
    pub(super) fn joined(&mut self, head: Sequence, drafts: &[Delta]) -> bool {
        self.is_asking = false;
        if head < self.asked_at {
            // Erased and made again: no answer will ever be as new as what was shown of the old
            // session. Events of the new one were taken for repeats, so one more look is needed.
            (self.known, self.tail) = (head, Some(Tail::new(head)));
            self.is_unsure = true;
        }
        self.known = self.known.max(head);
        let is_first = self.tail.is_none();
        let tail = self.tail.get_or_insert(Tail::new(head));
        tail.on_lag(self.known);
        if !is_first && (tail.is_behind() || head < tail.cursor()) {
            self.is_unsure = true;
            return false;
        }
        self.drafts = Drafts::without_words();
        for delta in drafts {
            self.drafts.take(delta);
        }
        self.joined_at = head;
        true
    }

    /// A live event. Whether to show it now.
    pub(super) fn shows(&mut self, recorded: &Recorded) -> bool {
        self.known = self.known.max(recorded.sequence);
        let Some(tail) = &mut self.tail else { return false };
        match tail.on_live(recorded.sequence) {
            Live::Show => {
                self.follow_drafts(&recorded.event);
                true
            }
            Live::Skip | Live::Read => false,
        }
    }

    /// An event from the ledger. Whether to show it.
    pub(super) fn reads(&mut self, recorded: &Recorded) -> bool {
        let shows = self.tail.as_mut().is_some_and(|tail| tail.on_read(recorded.sequence));
        if shows {
            self.follow_drafts(&recorded.event);
        }
        shows
    }

    /// Everything up to `head`, the ledger's last event, was read.
    pub(super) fn reached(&mut self, head: Sequence) {
        let Some(tail) = &mut self.tail else { return };
        // Retention may have left nothing to read up to it.
        tail.on_read(head);
        if head < self.known && self.known == self.known_before {
            // What was known before this read began, and is not there, will not come: to wait for
            // it would be to read for ever.
            self.known = head;
            *tail = Tail::new(tail.cursor());
        }
    }

    /// A passing event. Whether it goes on from what was shown.
    pub(super) fn takes(&mut self, passing: &Passing) -> bool {
        let Some(tail) = self.tail.as_ref().filter(|tail| !tail.is_behind()) else { return false };
        if passing.after < self.joined_at {
            return false;
        }
        if passing.delta.offset == 0 && passing.after < tail.cursor() {
            // The events were shown ahead of the ring, and may have ended what begins here.
            self.is_unsure = true;
            return false;
        }
        self.drafts.take(&passing.delta)
    }

    pub(super) fn lagged(&mut self, head: Sequence) {
        self.known = self.known.max(head);
        self.is_unsure = true;
        if let Some(tail) = &mut self.tail {
            tail.on_lag(self.known);
        }
    }

    /// Whether to ask how things stand: once every recorded event is shown, and one at a time.
    pub(super) fn asks(&mut self) -> bool {
        let asks = self.is_unsure && !self.is_asking && !self.is_behind();
        if asks {
            (self.is_unsure, self.is_asking) = (false, true);
            self.asked_at = self.tail.as_ref().map_or(Sequence(0), Tail::cursor);
        }
        asks
    }

    pub(super) fn is_behind(&self) -> bool {
        self.tail.as_ref().is_some_and(Tail::is_behind)
    }

    /// After which event to read, if anything is to be read and nobody does.
    pub(super) fn wants(&mut self) -> Option<(SessionId, Sequence)> {
        let tail = self.tail.as_ref().filter(|tail| tail.is_behind() && !self.is_reading)?;
        let after = tail.cursor();
        (self.is_reading, self.known_before) = (true, self.known);
        Some((self.session.clone(), after))
    }

    pub(super) fn has_read(&mut self) {
        self.is_reading = false;
        self.is_unsure = true;
    }

    fn follow_drafts(&mut self, event: &Event) {
        match event {
            Event::Transcript(transcript::Event::Message(message)) => {
                self.drafts.finish(&message.id);
            }
            Event::Run(runs::Event::Ended { .. }) => self.drafts.clear(),
            Event::Transcript(_)
            | Event::Run(_)
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::passing::Voice;
    use domain::{Content, Timestamp};

    use super::*;

    fn event(number: u64) -> Recorded {
        let event = Event::Queue(domain::session::queue::Event::Held);
        Recorded { sequence: Sequence(number), at: Timestamp(0), position: None, event }
    }

    fn passing(after: u64, offset: u64, words: &str) -> Passing {
        let words = Content::Open(words.to_owned());
        let (message, voice) = ("a1".into(), Voice::Text);
        Passing { after: Sequence(after), delta: Delta { message, part: 0, voice, offset, words } }
    }

    #[test]
    fn what_went_by_before_the_join_was_answered_is_read() {
        let mut place = Place::new("s".into());
        assert!(!place.shows(&event(5)) && !place.shows(&event(6)));
        place.joined(Sequence(5), &[]);
        assert_eq!(place.wants(), Some(("s".into(), Sequence(5))));
        assert_eq!(place.wants(), None, "one read at a time");
        place.has_read();
        assert!(!place.reads(&event(5)) && place.reads(&event(6)));
        assert!(!place.is_behind());
        assert!(place.shows(&event(7)));
    }

    #[test]
    fn what_retention_took_is_not_waited_for() {
        let mut place = Place::new("s".into());
        place.joined(Sequence(5), &[]);
        place.lagged(Sequence(9));
        assert_eq!(place.wants(), Some(("s".into(), Sequence(5))));
        place.has_read();
        place.reached(Sequence(9));
        assert!(!place.is_behind() && place.wants().is_none());
        assert!(place.shows(&event(10)));
    }

    #[test]
    fn what_is_not_in_the_ledger_is_read_for_once() {
        let mut place = Place::new("s".into());
        place.joined(Sequence(5), &[]);
        place.lagged(Sequence(9));
        assert_eq!(place.wants(), Some(("s".into(), Sequence(5))));
        assert!(!place.shows(&event(10)), "told while the ledger is read: it may be there by now");
        place.has_read();
        place.reached(Sequence(7));
        assert_eq!(place.wants(), Some(("s".into(), Sequence(7))));
        place.has_read();
        place.reached(Sequence(7));
        assert!(!place.is_behind() && place.wants().is_none());
        assert!(place.shows(&event(8)));
    }

    #[test]
    fn words_in_the_making_are_not_told_before_the_events_that_they_follow() {
        let mut place = Place::new("s".into());
        assert!(place.joined(Sequence(5), &[]));
        place.lagged(Sequence(5));
        assert!(place.asks());
        let words = passing(7, 0, "so far").delta;
        assert!(!place.joined(Sequence(7), std::slice::from_ref(&words)), "6 and 7 come first");
        assert_eq!(place.wants(), Some(("s".into(), Sequence(5))));
        place.has_read();
        assert!(place.reads(&event(6)) && place.reads(&event(7)));
        place.reached(Sequence(7));
        assert!(!place.takes(&passing(7, 6, " and on")), "nobody was told how it begins");
        assert!(place.asks());
        assert!(place.joined(Sequence(7), &[words]));
        assert!(place.takes(&passing(7, 6, " and on")));
    }

    #[test]
    fn words_that_began_before_what_was_shown_may_be_over() {
        let mut place = Place::new("s".into());
        assert!(place.joined(Sequence(5), &[]));
        assert!(place.shows(&event(6)), "shown ahead of the ring");
        assert!(!place.takes(&passing(5, 0, "so far")));
        assert!(place.asks());
        assert!(place.joined(Sequence(6), &[]));
        assert!(place.takes(&passing(6, 0, "new")));
    }

    #[test]
    fn how_things_stood_before_what_was_shown_since_is_not_told() {
        let mut place = Place::new("s".into());
        assert!(place.joined(Sequence(5), &[]));
        place.lagged(Sequence(5));
        assert!(place.asks());
        assert!(place.shows(&event(6)), "it may have ended what was in the making");
        assert!(!place.joined(Sequence(5), &[passing(5, 0, "so far").delta]));
        assert!(place.asks());
        assert!(place.joined(Sequence(6), &[]));
    }

    #[test]
    fn a_session_that_was_erased_and_made_again_is_followed_from_its_new_head() {
        let mut place = Place::new("s".into());
        assert!(place.joined(Sequence(500), &[passing(500, 0, "old").delta]));
        assert!(!place.shows(&event(1)), "it could be a repeat");
        place.lagged(Sequence(3));
        assert!(place.asks());
        assert!(place.joined(Sequence(3), &[]));
        assert!(place.asks(), "what came meanwhile looked like a repeat too");
        assert!(place.joined(Sequence(3), &[]));
        assert!(!place.asks(), "asked once more, not for ever");
        assert!(place.takes(&passing(3, 0, "new")) && place.shows(&event(4)));
    }

    #[test]
    fn what_a_session_that_was_made_again_recorded_during_a_look_is_read() {
        let mut place = Place::new("s".into());
        assert!(place.joined(Sequence(500), &[]));
        place.lagged(Sequence(3));
        assert!(place.asks());
        assert!(!place.shows(&event(4)));
        assert!(place.joined(Sequence(3), &[]));
        assert!(place.asks());
        assert!(!place.joined(Sequence(4), &[]));
        assert_eq!(place.wants(), Some(("s".into(), Sequence(3))));
        place.has_read();
        assert!(place.reads(&event(4)) && place.asks());
        assert!(place.joined(Sequence(4), &[]) && !place.asks());
    }

    #[test]
    fn how_things_stand_is_asked_for_once_however_often_it_lags() {
        let mut place = Place::new("s".into());
        place.lagged(Sequence(5));
        assert!(!place.asks(), "the join that is on its way may be older");
        place.joined(Sequence(5), &[]);
        assert!(place.asks() && !place.asks());
        place.lagged(Sequence(5));
        assert!(!place.asks(), "the first answer has not come");
        place.joined(Sequence(5), &[]);
        assert!(place.asks(), "it lagged after it had asked");
        place.joined(Sequence(5), &[]);
        place.lagged(Sequence(6));
        assert!(!place.asks(), "recorded events come first");
        assert!(place.reads(&event(6)) && place.asks());
    }

    #[test]
    fn passing_words_that_the_join_already_had_are_not_shown_again() {
        let mut place = Place::new("s".into());
        assert!(!place.takes(&passing(5, 0, "early")), "not joined");
        place.joined(Sequence(5), &[passing(5, 0, "hello").delta]);
        assert!(!place.takes(&passing(4, 0, "old")));
        assert!(!place.takes(&passing(5, 3, "lo")));
        assert!(place.takes(&passing(5, 5, " there")));
    }
}
