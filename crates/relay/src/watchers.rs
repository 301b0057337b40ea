//! Tracks which sessions are being watched, so that notifications can be suppressed.
//!
//! **Invariant**: a watcher is counted until its connection is gone, however it ends.
//!
//! Not here: what watchers are shown (`gate`), whom to notify when nobody watches (`farhelm`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::SessionId;

/// The connections of people. As many entries as sessions that somebody looks at.
#[derive(Debug, Default)]
pub struct Watchers(Mutex<Looking>);

#[derive(Debug, Default)]
struct Looking {
    at_all: usize,
    at_one: BTreeMap<SessionId, usize>,
}

/// One who looks, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Watching {
    watchers: Arc<Watchers>,
    session: Option<SessionId>,
}

impl Watchers {
    /// Somebody is shown every session.
    pub(crate) fn all(self: &Arc<Self>) -> Watching {
        self.lock().at_all += 1;
        Watching { watchers: self.clone(), session: None }
    }

    /// Somebody is shown this session alone.
    pub(crate) fn one(self: &Arc<Self>, session: &SessionId) -> Watching {
        *self.lock().at_one.entry(session.clone()).or_default() += 1;
        Watching { watchers: self.clone(), session: Some(session.clone()) }
    }

    /// Whether anybody is shown this session.
    pub fn see(&self, session: &SessionId) -> bool {
        let looking = self.lock();
        looking.at_all > 0 || looking.at_one.contains_key(session)
    }

    fn lock(&self) -> MutexGuard<'_, Looking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut looking = self.watchers.lock();
        let Some(session) = &self.session else {
            looking.at_all = looking.at_all.saturating_sub(1);
            return;
        };
        if let Some(count) = looking.at_one.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                looking.at_one.remove(session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_seen_until_the_last_one_who_looks_at_it_has_left() {
        let watchers = Arc::new(Watchers::default());
        let (kite, boat) = (SessionId::from("kite"), SessionId::from("boat"));
        let first = watchers.one(&kite);
        let second = watchers.one(&kite);
        drop(first);
        assert!(watchers.see(&kite) && !watchers.see(&boat));
        drop(second);
        assert!(!watchers.see(&kite));
        assert!(watchers.lock().at_one.is_empty(), "nothing is kept of those who left");
    }

    #[test]
    fn whoever_sees_everything_sees_each_session() {
        let watchers = Arc::new(Watchers::default());
        let desk = watchers.all();
        assert!(watchers.see(&"kite".into()));
        drop(desk);
        assert!(!watchers.see(&"kite".into()));
    }
}
