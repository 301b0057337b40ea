//! What is looked at when a world has ended: every ledger, what each client was shown, and what
//! each agent received.
//!
//! Not here: the comparisons themselves (`check`), what is counted (`counts`).

use std::collections::BTreeMap;

use domain::SessionId;
use wire::native::Form;

use super::{Outcome, World};
use crate::check::{self, Fleet, History};
use crate::effects::Effect;

/// A session's history, or what is wrong about its not being there.
type Read = Result<History, Option<String>>;

impl World {
    pub(super) async fn judge(mut self, tells_ledgers: bool) -> Outcome {
        self.relay.kill();
        let mut outcome = Outcome { wrong: std::mem::take(&mut self.wrong), ..Outcome::default() };
        outcome.sends = self.sent.len() as u64;
        match self.read_ledgers().await {
            Err(fault) => outcome.wrong.push(format!("the ledger cannot be read: {fault}")),
            Ok((fleet, read)) => {
                let mut histories = vec![];
                for history in read {
                    match history {
                        Ok(history) => {
                            let has_unread = self.effects.met().times(Effect::ReadFailed) > 0;
                            let was_damaged = self.damaged.as_ref() == Some(&history.session);
                            histories.push(History { has_unread, was_damaged, ..history });
                        }
                        Err(wrong) => outcome.wrong.extend(wrong),
                    }
                }
                outcome.wrong.extend(histories.iter().flat_map(|history| self.check(history)));
                outcome.wrong.extend(self.check_people());
                outcome.wrong.extend(self.check_launches(&fleet));
                outcome.events = histories.iter().map(|history| history.events.len()).sum();
                self.count(&fleet, &histories);
                if tells_ledgers || !outcome.wrong.is_empty() {
                    let lines = |it: &History| {
                        let session = it.session.clone();
                        let line = move |event| format!("{session}: {event:?}");
                        it.events.iter().map(line).collect::<Vec<_>>()
                    };
                    let fleet = fleet.events.iter().map(|event| format!("fleet: {event:?}"));
                    outcome.ledger = fleet.chain(histories.iter().flat_map(lines)).collect();
                    outcome.shown = self.shown();
                }
            }
        }
        outcome.met = self.effects.met();
        outcome.trace = self.trace;
        outcome
    }

    /// The fleet's history and every session's, or what is wrong about its not being there.
    async fn read_ledgers(&self) -> Result<(Fleet, Vec<Read>), store::Fault> {
        let ledger = loop {
            match self.disk.open() {
                Err(store::Fault::Locked { .. }) => tokio::task::yield_now().await,
                opened => break opened?,
            }
        };
        let mut reader = ledger.reader()?;
        let fleet = check::read_fleet(reader.as_mut(), &self.archive)?;
        let mut histories = vec![];
        for id in self.sessions.iter().chain(&self.launched) {
            let session = SessionId::from(id.as_str());
            let read = check::read(reader.as_mut(), &self.archive, &session);
            let is_damaged = self.damaged.as_ref() == Some(&session);
            histories.push(match read {
                Ok(history) if is_damaged && !self.is_as_before(&history) => {
                    Err(Some(format!("{session}: a flipped bit was not noticed")))
                }
                // What it holds can be read, and it refuses: what waited in it stays where it is.
                Ok(_) if is_damaged && self.is_refused(&session) => Err(None),
                Ok(history) => Ok(history),
                Err(store::Fault::Corrupt { stream, .. })
                    if is_damaged && stream.as_ref() == Some(&session) =>
                {
                    let is_good = self.is_refused(&session);
                    Err((!is_good).then(|| format!("{session}: is damaged and does not refuse")))
                }
                Err(fault) => Err(Some(format!("{session} cannot be read: {fault}"))),
            });
        }
        Ok((fleet, histories))
    }

    /// Whether a history begins with all that it held before a bit of it was flipped.
    fn is_as_before(&self, history: &History) -> bool {
        let before = self.archive.before(&history.session, u64::MAX);
        history.events.starts_with(&before)
    }

    fn check(&self, history: &History) -> Vec<String> {
        let session = &history.session;
        if self.erased.contains(session.as_str()) && !history.is_erased {
            let first = history.events.first();
            return vec![format!("{session}: was erased and is there, with {first:?}")];
        }
        let mut wrong = check::check_ledger(history);
        wrong.extend(check::check_agent(history, &self.received(&history.session)));
        if let Some(plain) = self.plain.iter().find(|plain| plain.session() == session) {
            wrong.extend(check::check_told(history, &plain.said(), plain.style));
        }
        if !self.clock_jumps {
            let grace_ms = self.policies.session.send_grace_ms;
            wrong.extend(check::check_deadlines(history, grace_ms));
        }
        let due = [Form::Full, Form::Plain].map(|form| check::due(history, form));
        let sent = self.times_sent(session);
        for person in &self.people {
            let name = person.principal.name.as_str();
            let to_the_end = !person.is_revoked && !history.is_erased;
            let (due, check) = (&due[usize::from(!person.is_full)], check::check_client);
            wrong.extend(person.look(|seen| check(name, history, due, seen, to_the_end)));
            wrong.extend(person.look(|seen| check::check_pages(name, history, due, seen)));
            wrong.extend(person.look(|seen| check::check_refused(name, history, seen, &sent)));
        }
        for visitor in &self.visitors {
            let (name, dialect) = (visitor.principal.name.as_str(), visitor.dialect);
            let to_the_end = !visitor.is_revoked;
            let state = visitor.lock();
            wrong.extend(check::check_visitor(name, dialect, history, &state.lives, to_the_end));
            if visitor.session != session.as_str() {
                continue;
            }
            wrong.extend(check::check_said(name, history, &state.said, &state.lives));
            let view = state.lives.last().and_then(|life| {
                let noted = life.testimony.lock();
                noted.views.last().map(|view| view.session.clone())
            });
            if to_the_end && view.as_ref() != Some(session) {
                wrong.push(format!("{name} ({dialect:?}): looks at {view:?}, not at {session}"));
            }
        }
        wrong
    }

    /// How often each message to this session left for the relay, by whomever.
    fn times_sent(&self, session: &SessionId) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for person in &self.people {
            person.look(|seen| {
                for ((of, id), sent) in &seen.sent {
                    if of == session.as_str() {
                        *times.entry(id.clone()).or_default() += sent;
                    }
                }
            });
        }
        times
    }

    fn check_launches(&self, fleet: &Fleet) -> Vec<String> {
        let sessions = self.launched.iter().map(String::as_str).collect();
        let mut wrong = check::check_fleet(fleet, &sessions);
        for person in &self.people {
            let name = &person.principal.name;
            let told = |seen: &_| check::check_launcher(name, fleet, seen, !person.is_revoked);
            wrong.extend(person.look(told));
        }
        wrong
    }

    /// What each visitor heard, for whoever looks for what went wrong.
    fn shown(&self) -> Vec<String> {
        let mut shown = vec![];
        for visitor in &self.visitors {
            let name = &visitor.principal.name;
            for (number, life) in visitor.lock().lives.iter().enumerate() {
                shown.push(format!("{name}, connection {number}, after {:?}", life.after));
                let frames = life.frames.iter().map(|frame| String::from_utf8_lossy(frame));
                shown.extend(frames.map(|frame| format!("    {frame}")));
            }
        }
        shown
    }

    fn received(&self, session: &SessionId) -> Vec<(domain::MessageId, String)> {
        let plain = self.plain.iter().find(|plain| plain.session() == session);
        if let Some(plain) = plain {
            return plain.received();
        }
        let lines = self.proxies.iter().flat_map(|proxy| proxy.received(session));
        lines.map(|line| (line.id, line.text)).collect()
    }

    fn check_people(&self) -> Vec<String> {
        let mut wrong = vec![];
        for person in &self.people {
            let name = &person.principal.name;
            let (open, too_much) = person.look(|seen| (seen.unconfirmed, seen.heard_too_much));
            if open > 0 && !person.is_revoked {
                wrong.push(format!("{name}: {open} sends were never answered"));
            }
            if too_much > 0 {
                wrong.push(format!("{name}: heard {too_much} frames after its revocation"));
            }
        }
        for visitor in &self.visitors {
            let (name, too_much) = (&visitor.principal.name, visitor.lock().heard_too_much);
            if too_much > 0 {
                wrong.push(format!("{name}: heard {too_much} frames after its revocation"));
            }
        }
        wrong
    }
}
