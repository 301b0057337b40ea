//! Launches, each begun once however often it is asked for.

use std::path::{Component, Path};

use domain::content::Failure;
use domain::{RequestId, SessionId};
use wire::native::proxy_frames::{self, LaunchOrder};

use super::{Engine, SESSIONS_MAX};
use crate::journal::{Opened, Record};

impl Engine {
    pub(super) fn launch(&mut self, launch: LaunchOrder) {
        if let Some(session) = self.book.launched(&launch.request).cloned() {
            self.tell_launched(&launch.request, &session, &launch.agent);
            return;
        }
        if let Some(failure) = self.refuse_launch(&launch) {
            let number = self.book.outbox.next_number();
            let request = &launch.request;
            let frame =
                proxy_frames::encode_launch_failed(request, &launch.agent, &failure, Some(number));
            self.post(number, frame, None);
            return;
        }
        let opened = Opened {
            agent: launch.agent.clone(),
            display_name: launch
                .window_title
                .clone()
                .or_else(|| Some(title(launch.agent.as_str()))),
            workspace_path: launch.workspace_path,
            window_title: launch.window_title,
            model: launch.model,
            launch: Some(launch.request.clone()),
        };
        let session = self.new_session();
        self.persist(Record::Opened(session.clone(), opened.clone()));
        self.begin(session.clone(), opened);
        // The session is the relay's before the launch is answered with it.
        self.send_snapshot(false);
        self.tell_launched(&launch.request, &session, &launch.agent);
    }

    fn tell_launched(
        &mut self,
        request: &RequestId,
        session: &SessionId,
        agent: &domain::AgentType,
    ) {
        let number = self.book.outbox.next_number();
        let frame = proxy_frames::encode_launched(request, session, agent, Some(number));
        self.post(number, frame, None);
    }

    fn refuse_launch(&self, launch: &LaunchOrder) -> Option<Failure> {
        if !self.settings.agents.contains(&launch.agent) {
            let words = format!("This machine has no driver for {}", launch.agent);
            return Some(Failure::new("launch_not_supported", words));
        }
        if self.book.sessions.len() >= SESSIONS_MAX {
            let words = format!("This machine has {SESSIONS_MAX} sessions already: close some");
            return Some(Failure::new("launch_not_supported", words));
        }
        let path = launch.workspace_path.as_deref()?;
        if is_allowed(path, &self.settings.allowed_roots) {
            return None;
        }
        let words = format!("{path} is not in a folder where agents may be started");
        Some(Failure::new("path_not_allowed", words))
    }
}

/// Inside one of the roots, by its name alone. `..` is never allowed where roots are given.
fn is_allowed(path: &str, roots: &[String]) -> bool {
    let climbs = Path::new(path).components().any(|part| part == Component::ParentDir);
    roots.is_empty() || (!climbs && roots.iter().any(|root| Path::new(path).starts_with(root)))
}

/// `demo` → `Demo`.
fn title(agent: &str) -> String {
    let mut letters = agent.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_allowed_inside_a_root_and_anywhere_without_roots() {
        let roots = ["/home/ada".to_owned()];
        assert!(is_allowed("/home/ada/kite", &roots));
        assert!(!is_allowed("/home/adam", &roots));
        assert!(!is_allowed("/home/ada/../eve", &roots));
        assert!(is_allowed("/anywhere", &[]));
    }
}
