//! Jobs that drivers request.

use std::sync::Arc;

use agents::panel::{Done, Job, News, Task};
use domain::SessionId;
use domain::content::Failure;
use serde_json::json;

use super::Service;
use crate::host::PanelJob;
use crate::panels::acting::Actor;
use crate::panels::sights::{Hand, Number, Seen};
use crate::panels::skeletons::Bones;
use crate::panels::watcher::whole;

/// The session's panel is not there.
pub(super) fn not_open(words: &str) -> Failure {
    Failure::new("agent_not_open", words.to_owned())
}

impl Service {
    pub(super) async fn job(&mut self, PanelJob { session, agent, signature, job }: PanelJob) {
        match &job.task {
            // Nothing more is known of it where the book was lost.
            Task::Find => {
                if let (None, Some(signature)) = (self.book.get(&session), signature) {
                    self.book.note_lost(&session, agent.as_str(), signature);
                }
            }
            Task::Open { workspace_path } => {
                let workspace = workspace_path.clone();
                self.open_chat(session, agent.as_str(), job.number, workspace).await;
            }
            Task::Look => self.look_now(session, job).await,
            Task::Close => self.close(session, job).await,
            Task::LetGo => self.book.remove(&session),
            Task::Send { .. }
            | Task::Press { .. }
            | Task::Stop
            | Task::SetModel(_)
            | Task::ReadModels => self.act(session, job).await,
        }
    }

    /// Does something in the session's panel when it is its window's turn.
    async fn act(&mut self, session: SessionId, job: Job) {
        let number = self.shown.get(&session).copied();
        let Some(panel) = number.and_then(|number| self.panels.get(&number)) else {
            let words = "The panel is not open. Open it in the IDE";
            return self.answer(&session, &job, Err(not_open(words))).await;
        };
        let (hand, profile) = (panel.hand.clone(), Arc::clone(&panel.profile));
        let (tell, of) = (self.seen.clone(), session.clone());
        let Job { number, task } = job.clone();
        let queue = hand.queue.clone();
        let deed = async move {
            let outcome = match actor(&hand, profile) {
                Ok(actor) => actor.perform(&task).await,
                Err(failure) => Err(failure),
            };
            let _ = tell.send(Seen::Did { session: of, job: number, outcome }).await;
        };
        if queue.try_send(Box::pin(deed)).is_err() {
            let words = "There are too many requests for the panel's window, or it was just closed";
            self.answer(&session, &job, Err(Failure::new("rate_limited", words))).await;
        }
    }

    /// The whole view, now. It waits for nobody: it only reads.
    async fn look_now(&mut self, session: SessionId, job: Job) {
        let number = self.shown.get(&session).copied();
        let found = number.and_then(|number| Some((number, self.panels.get(&number)?)));
        let place = found.and_then(|(number, panel)| {
            let place = panel.hand.place.borrow().clone()?;
            Some((number, panel.hand.browser.clone(), place))
        });
        let Some((number, browser, place)) = place else {
            let words = "The panel is not open. Open it in the IDE";
            return self.answer(&session, &job, Err(not_open(words))).await;
        };
        let tell = self.seen.clone();
        self.tasks.spawn(async move {
            let seen = match whole(&browser, &place).await {
                Ok(push) => Seen::Pushed(number, push),
                Err(fault) => Seen::Blind(number, fault.to_string()),
            };
            let _ = tell.send(seen).await;
            let outcome = Ok(Done::Plainly);
            let _ = tell.send(Seen::Did { session, job: job.number, outcome }).await;
        });
    }

    /// Closes a page that is nothing but the chat. A window that holds more than the chat is a
    /// person's: it stays, and only the session is over.
    async fn close(&mut self, session: SessionId, job: Job) {
        let number = self.shown.get(&session).copied();
        let Some(panel) = number.and_then(|number| self.panels.get(&number)) else {
            return self.answer(&session, &job, Ok(Done::Plainly)).await;
        };
        if !is_whole_page(&panel.profile) {
            return self.answer(&session, &job, Ok(Done::Plainly)).await;
        }
        let (browser, target, tell) =
            (panel.hand.browser.clone(), panel.target.clone(), self.seen.clone());
        self.tasks.spawn(async move {
            let closed =
                browser.call(None, "Target.closeTarget", json!({"targetId": target})).await;
            let outcome = match closed {
                Ok(_) => Ok(Done::Plainly),
                Err(fault) => Err(Failure::new("control_failed", fault.to_string())),
            };
            let _ = tell.send(Seen::Did { session, job: job.number, outcome }).await;
        });
    }

    /// The session is over. Its panel is left alone until something new is said in it, whether it
    /// is there now or is opened again later.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.launches.remove(session);
        let number: Option<Number> = self.shown.remove(session);
        if let Some(panel) = number.and_then(|number| self.panels.get_mut(&number)) {
            if let Some(entry) = self.book.get(session) {
                panel.mark.prints.clone_from(&entry.mark.prints);
            }
            panel.session = None;
        }
        self.book.put_away(session);
        self.book.save();
    }

    /// Keeps the bones of a panel that changed.
    pub(super) fn take_skeleton(&mut self, session: &SessionId) {
        let number = self.shown.get(session).copied();
        let Some(panel) = number.and_then(|number| self.panels.get(&number)) else { return };
        let Some(place) = panel.hand.place.borrow().clone() else { return };
        let (browser, profile) = (panel.hand.browser.clone(), Arc::clone(&panel.profile));
        let (tell, session) = (self.seen.clone(), session.clone());
        self.tasks.spawn(async move {
            let both = "[globalThis.__farhelm.snapshot(), globalThis.__farhelm.skeleton()]";
            let Ok(seen) = browser.evaluate(&place, both, false).await else { return };
            let text = |at: usize| seen[at].as_str().unwrap_or_default();
            if let Some(bones) = Bones::read(text(0), text(1)) {
                let _ = tell.send(Seen::Skeleton(session, profile, bones)).await;
            }
        });
    }

    async fn answer(&self, session: &SessionId, job: &Job, outcome: Result<Done, Failure>) {
        self.tell(session, News::Done { job: job.number, outcome }).await;
    }
}

/// Who acts in a panel, if it is there.
pub(super) fn actor(hand: &Hand, profile: Arc<agents::panel::Profile>) -> Result<Actor, Failure> {
    let place = hand.place.borrow().clone();
    let place = place.ok_or_else(|| not_open("The panel is loading or is not open"))?;
    Ok(Actor { browser: hand.browser.clone(), place, page: hand.page.clone(), profile })
}

/// Whether a panel is all that its page shows: it is in no workspace, and is not opened in a
/// window that was there before it.
fn is_whole_page(profile: &agents::panel::Profile) -> bool {
    let (target, identity) = (&profile.target, &profile.identity);
    target.kind == agents::panel::profile::TargetKind::Page
        && !target.url_contains.is_empty()
        && profile.open_panel.is_empty()
        && identity.workspace_title.is_none()
}
