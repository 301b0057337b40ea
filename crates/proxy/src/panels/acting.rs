//! Acts in a panel that a person may be using: types, sends, answers, stops, chooses a model, opens
//! a new chat.
//!
//! **Invariants:** text that a person typed or is typing is not lost. Only the requested element is
//! pressed, and it is checked again at the moment of the press. A message counts as delivered only
//! when the composer was seen to empty, as failed only when it certainly did not arrive, and as
//! `delivery_unknown` otherwise. Nothing is done twice.
//!
//! Not here: exclusive access to a window (the caller), choosing the panel (`panels`), the format
//! of jobs (`agents`).

mod around;
mod attention;
mod fault;
mod hand;
mod input;
mod models;
mod pressing;
mod sending;
mod steps;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use agents::panel::profile::Step;
use agents::panel::{Done, Profile, Task};
use domain::content::Failure;
use serde_json::json;

use fault::{failed, lost};
use hand::Hand;

/// A button that is not in sight by then is hidden.
const BUTTON_WITHIN: Duration = Duration::from_secs(1);

/// Acts in one panel.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The browser.
    pub browser: cdp::Browser,
    /// Our world in the panel's frame.
    pub place: cdp::Place,
    /// The session that takes the mouse and the keys: that of the target which holds the frame.
    pub page: cdp::SessionId,
    /// How the panel looks and is used.
    pub profile: Arc<Profile>,
}

impl Actor {
    /// Gets ready: from here on it is known when the person types.
    pub async fn prepare(&self) -> Result<(), Failure> {
        let hand = Hand::new(self).await?;
        // Whoever was here before may have been killed while typing.
        hand.call::<()>("finish", &[]).await.map_err(|fault| fault::lost(&fault))
    }

    /// Does one thing, from beginning to end.
    pub async fn perform(&self, task: &Task) -> Result<Done, Failure> {
        let hand = Hand::new(self).await?;
        match task {
            Task::Send { text, images } => sending::send(&hand, text, images).await,
            Task::Press { dialog, label } => pressing::answer(&hand, dialog, label).await,
            Task::Stop => pressing::stop(&hand).await,
            Task::SetModel(name) => models::choose(&hand, name).await,
            Task::ReadModels => models::read(&hand).await,
            Task::Open { .. } => {
                if self.profile.new_chat.is_empty() {
                    let words = "Farhelm does not know how to open a new chat in this panel";
                    return Err(Failure::new("launch_not_supported", words));
                }
                waiting::undisturbed(&hand).await?;
                steps::take(&hand, self.way_to_new_chat(&hand).await?).await?;
                Ok(Done::Plainly)
            }
            Task::Find | Task::Look | Task::Close | Task::LetGo => {
                Err(failed("This is not done inside the panel"))
            }
        }
    }

    /// The steps for a new chat that can be taken now.
    async fn way_to_new_chat(&self, hand: &Hand<'_>) -> Result<&[Step], Failure> {
        let Profile { new_chat, new_chat_otherwise, .. } = self.profile.as_ref();
        let is_there = match new_chat.first() {
            Some(Step::Click(any) | Step::Focus(any)) if !new_chat_otherwise.is_empty() => {
                let check = json!({"wanted": {"kind": "any", "any": any}});
                let there = hand.until("there", check, BUTTON_WITHIN).await;
                there.map_err(|fault| lost(&fault))?
            }
            Some(_) | None => true,
        };
        Ok(if is_there { new_chat } else { new_chat_otherwise })
    }

    /// Takes steps in the target, as a profile's `open_panel` has them.
    pub async fn take_steps(&self, steps: &[Step]) -> Result<(), Failure> {
        let hand = Hand::new(self).await?;
        steps::take(&hand, steps).await
    }
}
