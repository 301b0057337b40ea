//! Examines a panel as if it had just been found: it shows something else, and its session now
//! depends on all of it. This runs as a separate task, so that a window that hangs delays only
//! itself.

use super::Service;
use super::whose::prints;
use crate::panels::sights::{Number, Peek, Seen};
use crate::panels::watcher::whole;

/// How far the look at a panel is that is nobody's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::panels) enum Look {
    /// Nobody looks.
    #[default]
    Idle,
    /// The whole view is asked for.
    Asked,
    /// It is, and may be old when it comes.
    Outdated,
    /// It could not be had: with the next sign of life.
    Wanted,
}

impl Service {
    pub(super) fn see_anew(&mut self, number: Number) {
        let Some(panel) = self.panels.get_mut(&number) else { return };
        let Some(place) = panel.hand.place.borrow().clone() else {
            panel.look = Look::Wanted;
            return;
        };
        panel.look = Look::Asked;
        let (browser, tell) = (panel.hand.browser.clone(), self.seen.clone());
        self.tasks.spawn(async move {
            let push = whole(&browser, &place).await.ok();
            let _ = tell.send(Seen::Anew(number, push)).await;
        });
    }

    /// Whether what its observer says is for the look that goes on.
    pub(super) fn is_looked_at(&mut self, number: Number) -> bool {
        let is_opening = self.is_opening(number);
        let Some(panel) = self.panels.get_mut(&number) else { return false };
        match panel.look {
            Look::Idle => return false,
            // Whoever opens a chat in it says whose it is.
            Look::Wanted if is_opening => return false,
            Look::Asked | Look::Outdated => panel.look = Look::Outdated,
            Look::Wanted => self.see_anew(number),
        }
        true
    }

    /// The whole view came, or did not.
    pub(super) async fn seen_anew(&mut self, number: Number, push: Option<String>) {
        let is_opening = self.is_opening(number);
        let Some(panel) = self.panels.get_mut(&number) else { return };
        let look = std::mem::take(&mut panel.look);
        // Somebody else found out whose it is, or it is another document.
        if look == Look::Idle || panel.session.is_some() {
            return;
        }
        let Some(push) = push.filter(|_| !is_opening) else {
            panel.look = Look::Wanted;
            return;
        };
        if look == Look::Outdated {
            return self.see_anew(number);
        }
        let peek = Peek::read(&push);
        panel.mark.prints = prints(&peek);
        if let Some(conversation) = peek.conversation.filter(|_| peek.ready) {
            panel.mark.traits.conversation = Some(conversation);
        }
        self.identify(number, None, push).await;
    }
}
