//! Recognises the sessions that a proxy names.
//!
//! A proxy names its sessions by id. A proxy that knows only a target's signature is matched to
//! the one session of its machine with that signature. If two sessions or two targets could match,
//! none does: a guess would put one person's messages into another conversation.
//!
//! Not here: recording the result (`machines`).

use super::Machines;
use crate::session::status::{Activity, Health, Meta};
use crate::{MachineLabel, SessionId};

/// A session as a proxy names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its id; `None` where the proxy knows only the signature in `meta`.
    pub session: Option<SessionId>,
    /// As the proxy describes it.
    pub meta: Meta,
    /// As the proxy finds it.
    pub health: Health,
    /// What its agent is doing.
    pub activity: Option<Activity>,
    /// It is over, and named because the relay has not acknowledged that yet.
    pub is_over: bool,
}

/// What a proxy's words about its sessions come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its own.
    pub accepted: Vec<(SessionId, Named)>,
    /// Another machine's.
    pub refused: Vec<SessionId>,
    /// Over and erased: what their machine still tells of them is for nobody.
    pub erased: Vec<SessionId>,
    /// Named without an id, and not to be told by signature.
    pub unmatched: usize,
    /// Its own until now, and no longer named.
    pub dropped: Vec<SessionId>,
}

pub(super) fn claim(machines: &Machines, machine: &MachineLabel, named: Vec<Named>) -> Claim {
    let mut claim = Claim::default();
    let resolved: Vec<_> =
        named.iter().map(|one| resolve(machines, machine, one, &named)).collect();
    for (mut named, session) in named.into_iter().zip(resolved) {
        named.meta.machine = Some(machine.clone());
        let Some(session) = session else {
            claim.unmatched += 1;
            continue;
        };
        if claim.accepted.iter().any(|(known, _)| *known == session) {
            continue;
        }
        if named.is_over && machines.is_erased(&session) {
            claim.erased.push(session);
            continue;
        }
        match machines.registered(&session) {
            Some(registered) if registered.machine != *machine => claim.refused.push(session),
            Some(_) | None => claim.accepted.push((session, named)),
        }
    }
    let own = machines.sessions().filter(|(_, registered)| registered.machine == *machine);
    let dropped = own.filter(|(id, _)| !claim.accepted.iter().any(|(named, _)| named == *id));
    claim.dropped = dropped.map(|(id, _)| id.clone()).collect();
    claim
}

/// The session that is meant by `one` of those that are `named` together.
fn resolve(
    machines: &Machines,
    machine: &MachineLabel,
    one: &Named,
    named: &[Named],
) -> Option<SessionId> {
    if one.session.is_some() {
        return one.session.clone();
    }
    let signature = one.meta.signature.as_ref()?;
    let alike = |other: &&Named| {
        other.session.is_none() && other.meta.signature.as_ref() == Some(signature)
    };
    if named.iter().filter(alike).count() > 1 {
        return None;
    }
    let mut same = machines.sessions().filter(|(_, registered)| {
        registered.machine == *machine && registered.signature.as_ref() == Some(signature)
    });
    let (only, _) = same.next().filter(|_| same.next().is_none())?;
    let is_named = named.iter().any(|other| other.session.as_ref() == Some(only));
    (!is_named).then(|| only.clone())
}
