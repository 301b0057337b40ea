//! Whether a session that a proxy names is one we know.
//!
//! A proxy names its sessions by id. One that knows only a target's signature is matched to the
//! one session of its machine that carries it; two candidates match nothing, because a guess
//! would put one person's words into another conversation.
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
}

/// What a proxy's words about its sessions come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its own.
    pub accepted: Vec<(SessionId, Named)>,
    /// Another machine's.
    pub refused: Vec<SessionId>,
    /// Named without an id, and not to be told by signature.
    pub unmatched: usize,
    /// Its own until now, and no longer named.
    pub dropped: Vec<SessionId>,
}

pub(super) fn claim(machines: &Machines, machine: &MachineLabel, named: Vec<Named>) -> Claim {
    let mut claim = Claim::default();
    for mut named in named {
        named.meta.machine = Some(machine.clone());
        let Some(session) =
            named.session.clone().or_else(|| by_signature(machines, machine, &named))
        else {
            claim.unmatched += 1;
            continue;
        };
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

fn by_signature(machines: &Machines, machine: &MachineLabel, named: &Named) -> Option<SessionId> {
    let signature = named.meta.signature.as_ref()?;
    let mut same = machines.sessions().filter(|(_, registered)| {
        registered.machine == *machine && registered.signature.as_ref() == Some(signature)
    });
    let only = same.next()?;
    same.next().is_none().then(|| only.0.clone())
}
