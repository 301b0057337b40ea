//! The known execution contexts of each session: a value that is fed with events.
//!
//! **Invariant:** a context listed here has not been reported as destroyed.
//!
//! Not here: creating a context (`place`).

use std::collections::HashMap;

use crate::{Event, SessionId};

/// Contexts remembered of one session; the oldest are forgotten.
const CONTEXTS_MAX: usize = 512;
/// Sessions remembered; further ones are not tracked.
const SESSIONS_MAX: usize = 512;

/// A place where scripts run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) number: i64,
    /// Never used twice, unlike the number.
    pub(crate) unique: String,
    pub(crate) frame: String,
    /// The world's name; empty for the page's own.
    pub(crate) world: String,
}

#[derive(Debug, Default)]
pub(crate) struct Contexts(HashMap<SessionId, Vec<Context>>);

impl Contexts {
    pub(crate) fn of(&self, session: &SessionId) -> Vec<Context> {
        self.0.get(session).cloned().unwrap_or_default()
    }

    pub(crate) fn heard(&mut self, event: &Event) {
        let Some(session) = &event.session else {
            if event.method == "Target.detachedFromTarget" {
                self.detached(event);
            }
            return;
        };
        match event.method.as_str() {
            "Runtime.executionContextCreated" => self.created(session, event),
            "Runtime.executionContextDestroyed" => {
                let number = event.params["executionContextId"].as_i64();
                let unique = event.params["executionContextUniqueId"].as_str();
                if let Some(contexts) = self.0.get_mut(session) {
                    contexts.retain(|context| match unique {
                        Some(unique) => context.unique != unique,
                        None => Some(context.number) != number,
                    });
                }
            }
            "Runtime.executionContextsCleared" => {
                self.0.remove(session);
            }
            // A session may have sessions of its own.
            "Target.detachedFromTarget" => self.detached(event),
            _ => {}
        }
    }

    fn created(&mut self, session: &SessionId, event: &Event) {
        let context = &event.params["context"];
        let (Some(number), Some(frame)) =
            (context["id"].as_i64(), context["auxData"]["frameId"].as_str())
        else {
            return;
        };
        if self.0.len() >= SESSIONS_MAX && !self.0.contains_key(session) {
            return;
        }
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let contexts = self.0.entry(session.clone()).or_default();
        if contexts.len() >= CONTEXTS_MAX {
            contexts.remove(0);
        }
        contexts.push(Context {
            number,
            unique: text(&context["uniqueId"]),
            frame: frame.to_owned(),
            world: text(&context["name"]),
        });
    }

    fn detached(&mut self, event: &Event) {
        if let Some(id) = event.params["sessionId"].as_str() {
            self.0.remove(&SessionId(id.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(contexts: &mut Contexts, session: Option<&str>, method: &str, params: Value) {
        let session = session.map(|id| SessionId(id.to_owned()));
        contexts.heard(&Event { session, method: method.to_owned(), params });
    }

    fn created(contexts: &mut Contexts, session: &str, number: i64) {
        let params = json!({"context": {"id": number, "uniqueId": format!("u{number}"),
            "name": "farhelm", "auxData": {"frameId": "F"}}});
        told(contexts, Some(session), "Runtime.executionContextCreated", params);
    }

    fn numbers(contexts: &Contexts, session: &str) -> Vec<i64> {
        let of = contexts.of(&SessionId(session.to_owned()));
        of.iter().map(|context| context.number).collect()
    }

    #[test]
    fn contexts_come_and_go_with_what_is_heard() {
        let mut contexts = Contexts::default();
        created(&mut contexts, "a", 1);
        created(&mut contexts, "a", 2);
        created(&mut contexts, "b", 1);
        let gone = json!({"executionContextId": 1, "executionContextUniqueId": "u1"});
        told(&mut contexts, Some("a"), "Runtime.executionContextDestroyed", gone);
        assert_eq!((numbers(&contexts, "a"), numbers(&contexts, "b")), (vec![2], vec![1]));
        told(&mut contexts, Some("a"), "Runtime.executionContextsCleared", Value::Null);
        assert_eq!((numbers(&contexts, "a"), numbers(&contexts, "b")), (vec![], vec![1]));
        told(&mut contexts, None, "Target.detachedFromTarget", json!({"sessionId": "b"}));
        assert!(numbers(&contexts, "b").is_empty());
    }

    #[test]
    fn a_page_that_makes_contexts_without_end_is_bounded() {
        let mut contexts = Contexts::default();
        for number in 0..2000 {
            created(&mut contexts, "a", number);
        }
        let numbers = numbers(&contexts, "a");
        assert_eq!((numbers.len(), numbers.last()), (CONTEXTS_MAX, Some(&1999)));
    }
}
