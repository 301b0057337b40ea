//! The person's focus: saved before acting, restored afterwards.
//!
//! Not here: the action in between.

use cdp::Fault;

use super::around::Around;
use super::hand::Hand;

/// Where the focus was.
pub(super) struct Attention {
    around: Option<Around>,
}

impl Attention {
    /// Remembers, and lets the panel believe that it has the focus.
    pub(super) async fn take(hand: &Hand<'_>) -> Result<Self, Fault> {
        hand.call::<()>("remember", &[]).await?;
        // Where the window cannot be asked, only the panel's own focus is given back.
        let around = Around::of(hand).await;
        if let Some(around) = &around {
            around.remember_focus(&hand.actor.browser).await;
        }
        hand.emulate_focus(true).await;
        Ok(Self { around })
    }

    /// Gives it back. What is gone by now needs nothing.
    pub(super) async fn give_back(self, hand: &Hand<'_>) {
        let _ = hand.call::<()>("restore", &[]).await;
        if let Some(around) = self.around {
            around.give_focus_back(&hand.actor.browser).await;
            around.leave(&hand.actor.browser).await;
        }
        hand.emulate_focus(false).await;
    }
}
