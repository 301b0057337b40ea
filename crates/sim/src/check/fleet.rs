//! Launches: each request comes to one end, each session comes from one request, and whoever asked
//! was told what the fleet's ledger says.

use std::collections::{BTreeMap, BTreeSet};

use domain::RequestId;
use domain::fleet::launches::{self, LAUNCH_TIMEOUT, Launch, Outcome};
use domain::fleet::{Event, Recorded};
use domain::{Sequence, SessionId};
use store::Reader;

use crate::archive::{self, Archive};
use crate::client_node::Seen;

/// The fleet's ledger, read back, with what was taken from it.
pub(crate) struct Fleet {
    pub(crate) events: Vec<Recorded>,
}

/// Reads the fleet's ledger back.
pub(crate) fn read(reader: &mut dyn Reader, archive: &Archive) -> Result<Fleet, store::Fault> {
    let kept = archive::read_fleet(reader, Sequence(0))?;
    let first_kept = kept.first().map_or(u64::MAX, |first| first.sequence.0);
    let mut events = archive.fleet_before(first_kept);
    events.extend(kept);
    Ok(Fleet { events })
}

impl Fleet {
    /// How many launches led to a session, and how many to nothing.
    pub(crate) fn outcomes(&self) -> (u64, u64) {
        let (mut launched, mut failed) = (0, 0);
        for (_, outcome) in self.requests().into_values() {
            match outcome {
                Some(Outcome::Launched(_)) => launched += 1,
                Some(Outcome::Failed(_)) => failed += 1,
                None => {}
            }
        }
        (launched, failed)
    }

    /// Every launch with what came of it in the end.
    fn requests(&self) -> BTreeMap<&RequestId, (&Launch, Option<&Outcome>)> {
        let mut requests = BTreeMap::new();
        for event in self.launches() {
            match event {
                launches::Event::Requested(launch) => {
                    requests.insert(&launch.request, (&**launch, None));
                }
                launches::Event::Settled { request, outcome, .. } => {
                    if let Some((_, settled)) = requests.get_mut(request) {
                        *settled = Some(outcome);
                    }
                }
                launches::Event::Forgotten { .. } => {}
            }
        }
        requests
    }

    fn launches(&self) -> impl Iterator<Item = &launches::Event> {
        self.events.iter().filter_map(|recorded| match &recorded.event {
            Event::Launch(event) => Some(event),
            Event::Machine(_) => None,
        })
    }
}

/// The fleet's ledger by itself, and the sessions that machines have because of it.
pub(crate) fn check(fleet: &Fleet, sessions: &BTreeSet<&str>) -> Vec<String> {
    let mut wrong = vec![];
    for (index, recorded) in fleet.events.iter().enumerate() {
        if recorded.sequence.0 != index as u64 + 1 {
            wrong.push(format!("fleet: {} stands at place {}", recorded.sequence, index + 1));
            break;
        }
    }
    let mut open: BTreeMap<&RequestId, Option<&Outcome>> = BTreeMap::new();
    let mut from: BTreeMap<&SessionId, &RequestId> = BTreeMap::new();
    for event in fleet.launches() {
        match event {
            launches::Event::Requested(launch) => {
                if open.insert(&launch.request, None).is_some() {
                    wrong.push(format!("fleet: {} was launched twice", launch.request));
                }
            }
            launches::Event::Settled { request, outcome, .. } => {
                match open.get_mut(request) {
                    None => wrong.push(format!("fleet: {request} was settled and never asked")),
                    Some(settled) if may_follow(*settled, outcome) => *settled = Some(outcome),
                    Some(settled) => {
                        wrong.push(format!("fleet: {request}: {outcome:?} came after {settled:?}"));
                    }
                }
                if let Outcome::Launched(session) = outcome
                    && let Some(earlier) = from.insert(session, request)
                {
                    wrong.push(format!("fleet: {session} came from {earlier} and {request}"));
                }
            }
            launches::Event::Forgotten { request } => {
                if open.get(request).is_none_or(Option::is_none) {
                    wrong.push(format!("fleet: {request} was forgotten before it was settled"));
                }
            }
        }
    }
    let unsettled = open.iter().filter(|(_, settled)| settled.is_none());
    wrong.extend(unsettled.map(|(request, _)| format!("fleet: {request} came to nothing")));
    let known: BTreeSet<_> = from.keys().map(|session| session.as_str()).collect();
    let unknown = sessions.difference(&known);
    wrong.extend(unknown.map(|session| format!("fleet: nobody launched {session}")));
    let missing = known.difference(sessions);
    wrong.extend(missing.map(|session| format!("fleet: no machine ever had {session}")));
    wrong
}

/// A launch is settled once. A machine that answers after the time was up is still believed.
fn may_follow(settled: Option<&Outcome>, outcome: &Outcome) -> bool {
    match (settled, outcome) {
        (None, _) => true,
        (Some(Outcome::Failed(failure)), Outcome::Launched(_)) => {
            failure.code.as_str() == LAUNCH_TIMEOUT
        }
        (Some(_), _) => false,
    }
}

/// What one person was told of their launches. With `to_the_end` set, nothing may be missing.
pub(crate) fn check_launcher(
    name: &str,
    fleet: &Fleet,
    seen: &Seen,
    to_the_end: bool,
) -> Vec<String> {
    let requests = fleet.requests();
    let mut wrong = vec![];
    for (request, told) in &seen.launches {
        let id = RequestId::from(request.as_str());
        match (requests.get(&id), told) {
            (None, Ok(session)) => {
                wrong.push(format!("{name}: {request} led to {session}, the ledger knows nothing"));
            }
            (Some((launch, _)), _) if launch.by.credential.as_str() != name => {
                wrong.push(format!("{name}: was told of {request}, which is another's"));
            }
            (None, Err(_)) | (Some(_), _) => {}
        }
    }
    for (request, (launch, outcome)) in requests {
        let is_own = launch.by.credential.as_str() == name;
        let Some(outcome) = outcome.filter(|_| is_own && to_the_end) else { continue };
        let due = match outcome {
            Outcome::Launched(session) => Ok(session.to_string()),
            Outcome::Failed(failure) => Err(failure.code.to_string()),
        };
        let told = seen.launches.get(request.as_str());
        if told != Some(&due) {
            wrong.push(format!("{name}: {request} was told as {told:?}, not {due:?}"));
        }
    }
    wrong
}
