//! Recorded and passing events of each session, as this client receives them.

use std::collections::VecDeque;

use domain::passing::{Delta, Passing};
use domain::session::delivery::Told;
use domain::session::{Card, Event, Recorded, controls};
use domain::{Live, Sequence, SessionId, Tail, Timestamp};

use super::history::Ask;
use super::{ClientConnection, Output, Purpose, Stage};
use crate::native::events::{Cache, encode_delta, encode_event};

/// This client's place in one session.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) tail: Tail,
    /// The newest event that is known of, told or not.
    pub(super) known: Sequence,
    /// The read that is on its way; live events wait for it.
    pub(super) reading: Option<u64>,
    /// What was known when that read began.
    pub(super) known_before: Sequence,
    /// Where the client was, if that read repeats what it was told before.
    pub(super) was_at: Option<Sequence>,
    /// History that was asked for meanwhile.
    pub(super) asks: VecDeque<Ask>,
    /// States to tell again once nothing is being read.
    pub(super) repeated: Vec<Told>,
    /// Words in the making went by untold.
    pub(super) wants_drafts: bool,
    /// The last event up to which every one was told, where some later ones were not: the client
    /// does not look at this session.
    pub(super) told_all_to: Option<Sequence>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            tail: Tail::new(Sequence(0)),
            known: Sequence(0),
            reading: None,
            known_before: Sequence(0),
            was_at: None,
            asks: VecDeque::new(),
            repeated: vec![],
            wants_drafts: false,
            told_all_to: None,
        }
    }
}

impl Feed {
    /// Whether a read is on its way.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Everything up to `head` counts as seen; what is known beyond must be read.
    pub(super) fn start(&mut self, head: Sequence) {
        self.tail = Tail::new(head);
        self.hear(head);
    }

    /// An event is known to be in the ledger.
    pub(super) fn hear(&mut self, sequence: Sequence) {
        self.known = self.known.max(sequence);
        self.tail.on_lag(self.known);
    }
}

impl ClientConnection {
    /// A recorded event went by.
    pub fn on_event(
        &mut self,
        session: &SessionId,
        recorded: &Recorded,
        cache: &Cache,
    ) -> Vec<Output> {
        let mut outputs = vec![];
        self.on_event_into(session, recorded, cache, &mut outputs);
        outputs
    }

    /// The same, for whoever hears many of them: the outputs join those that are there.
    pub fn on_event_into(
        &mut self,
        session: &SessionId,
        recorded: &Recorded,
        cache: &Cache,
        outputs: &mut Vec<Output>,
    ) {
        if self.principal.is_none() || self.stage == Stage::Opened {
            return;
        }
        let joined = self.stage == Stage::Joined;
        let feed = match self.feeds.get_mut(session) {
            Some(feed) => feed,
            None => self.feeds.entry(session.clone()).or_default(),
        };
        if !joined || feed.is_reading() {
            feed.hear(recorded.sequence);
            return;
        }
        let shown = feed.tail.on_live(recorded.sequence);
        feed.known = feed.known.max(recorded.sequence);
        match shown {
            // Most events of a busy relay, for a client that looks at one session.
            Live::Show if feed.told_all_to.is_some() && is_for_watchers(&recorded.event) => {}
            Live::Show => self.show(session, recorded, Some(cache), outputs),
            // An earlier read failed: this is the time to try again.
            Live::Skip if !feed.tail.is_behind() => {}
            Live::Skip | Live::Read => {
                let after = feed.tail.cursor();
                outputs.push(self.begin(session, Purpose::CatchUp, after));
            }
        }
    }

    /// Words in the making.
    pub fn on_passing(
        &mut self,
        session: &SessionId,
        passing: &Passing,
        cache: &Cache,
    ) -> Vec<Output> {
        if self.stage != Stage::Joined || !self.hears_passing(session) {
            return vec![];
        }
        let Some(feed) = self.feeds.get_mut(session) else { return vec![] };
        // Never before the events that it follows.
        if feed.is_reading() || feed.tail.is_behind() || feed.tail.cursor() < passing.after {
            feed.wants_drafts = true;
            return vec![];
        }
        vec![Output::Send(cache.passing(session, passing))]
    }

    /// Everything in the making, as of the event `after`; see [`Output::Drafts`].
    pub fn on_drafts(
        &mut self,
        session: &SessionId,
        after: Sequence,
        deltas: Vec<Delta>,
    ) -> Vec<Output> {
        if deltas.is_empty() || self.stage != Stage::Joined || !self.hears_passing(session) {
            return vec![];
        }
        let Some(feed) = self.feeds.get_mut(session) else { return vec![] };
        // Ahead of the events that were told: asked for again when those are.
        if feed.is_reading() || feed.tail.is_behind() || feed.tail.cursor() < after {
            feed.wants_drafts = true;
            return vec![];
        }
        let cursor = feed.tail.cursor();
        if cursor > after {
            // A message may have ended meanwhile: ask how it stands now. Reading first, because the
            // session may have been erased and made again: no answer would ever be new enough.
            feed.wants_drafts = true;
            return vec![self.begin(session, Purpose::CatchUp, cursor)];
        }
        let told = deltas.into_iter().map(|delta| encode_delta(session, after, &delta));
        told.map(Output::Send).collect()
    }

    /// Live events were missed.
    pub fn on_lag(&mut self, _now: Timestamp) -> Vec<Output> {
        match self.stage {
            // The welcome that is on its way may be older than what was missed.
            Stage::Joining | Stage::Joined if self.principal.is_some() => vec![Output::Join],
            Stage::Opened | Stage::Joining | Stage::Joined => vec![],
        }
    }

    /// Tells one event by itself.
    pub(super) fn show(
        &mut self,
        session: &SessionId,
        recorded: &Recorded,
        cache: Option<&Cache>,
        outputs: &mut Vec<Output>,
    ) {
        if let Event::Control(controls::Event::Settled { request, by, failure, .. }) =
            &recorded.event
        {
            outputs.extend(self.settle(session, request, by, failure.as_ref(), recorded.at));
            return;
        }
        if !self.hears(session, &recorded.event, recorded.sequence) {
            return;
        }
        let Some(form) = self.features.form_of(&recorded.event) else { return };
        let frame = match cache {
            Some(cache) => cache.event(session, recorded, form),
            None => encode_event(session, recorded, form),
        };
        outputs.extend(frame.map(Output::Send));
    }
}

/// Whether only who looks at a session is told this.
fn is_for_watchers(event: &Event) -> bool {
    !Card::shows(event) && !matches!(event, Event::Control(_))
}
