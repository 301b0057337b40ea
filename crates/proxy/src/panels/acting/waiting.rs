//! Waits for the right moment to act: nobody is typing, no question is open, and an input field
//! exists.
//!
//! **Invariant:** Farhelm waits for a person who types in the panel or its window, but not forever.
//!
//! Not here: the action that follows (`sending`, `steps`).

use std::time::{Duration, Instant};

use domain::content::Failure;

use super::around::Around;
use super::fault::{asked, failed, lost_unsent as lost, missing, rejected};
use super::hand::{Hand, State};

/// Somebody who typed within this time is still typing.
const TYPING_MS: f64 = 3_000.0;
/// The same for somebody who types elsewhere in the window: only their focus would be taken.
const TYPING_BESIDE_MS: f64 = 1_000.0;
/// How long the end of their typing is waited for.
const TYPING_WAIT_MAX: Duration = Duration::from_secs(30);
const TYPING_STEP: Duration = Duration::from_millis(500);
/// How often it is begun anew because somebody typed in the last moment.
const BEGINNINGS_MAX: usize = 3;
/// How long it is listened whether somebody types in the window around a webview.
const LISTEN_MS: u64 = 700;
/// How long a new chat waits for somebody who types.
const UNDISTURBED_WAIT_MAX: Duration = Duration::from_secs(10);

/// Waits for the moment, and begins.
pub(super) async fn begun(hand: &Hand<'_>) -> Result<State, Failure> {
    for _ in 0..BEGINNINGS_MAX {
        ready(hand).await?;
        let state: State = hand.call("begin", &[]).await.map_err(|fault| lost(&fault))?;
        if !is_typing(&state) {
            return Ok(state);
        }
        let _ = hand.call::<()>("finish", &[]).await;
    }
    Err(rejected("Somebody is typing in the panel"))
}

/// Waits for the panel to be one that may be typed into.
async fn ready(hand: &Hand<'_>) -> Result<(), Failure> {
    let around = Around::of(hand).await;
    let outcome = ready_within(hand, around.as_ref()).await;
    if let Some(around) = around {
        around.leave(&hand.actor.browser).await;
    }
    outcome
}

async fn ready_within(hand: &Hand<'_>, around: Option<&Around>) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let state = hand.state().await.map_err(|fault| lost(&fault))?;
        if let (false, Some(reason)) = (state.has_composer, &state.waiting) {
            return Err(Failure::new("agent_not_active", reason.clone()));
        }
        if state.is_asking {
            return Err(asked());
        }
        if !state.has_scope || !state.has_composer {
            return Err(missing("input field"));
        }
        if state.has_chips {
            let words = "Somebody is writing a message with attachments in the panel";
            return Err(rejected(words));
        }
        if !is_typing(&state) && !is_typed_around(hand, around).await {
            return Ok(());
        }
        if begun.elapsed() > TYPING_WAIT_MAX {
            return Err(rejected("Somebody is typing in the panel or its window"));
        }
        tokio::time::sleep(TYPING_STEP).await;
    }
}

fn is_typing(state: &State) -> bool {
    let within = |ago: Option<f64>, limit: f64| ago.is_some_and(|ago| ago < limit);
    within(state.typed_ms_ago, TYPING_MS) && state.is_focused
        || within(state.typed_beside_ms_ago, TYPING_BESIDE_MS)
}

async fn is_typed_around(hand: &Hand<'_>, around: Option<&Around>) -> bool {
    let Some(around) = around else { return false };
    let mut typing = around.typing(&hand.actor.browser).await;
    if typing.may_type {
        // It is not known yet.
        tokio::time::sleep(Duration::from_millis(LISTEN_MS)).await;
        typing = around.typing(&hand.actor.browser).await;
    }
    typing.typed_ms_ago.is_some_and(|ago| ago < TYPING_BESIDE_MS)
}

/// Waits until nobody would lose anything by another chat in the panel.
pub(super) async fn undisturbed(hand: &Hand<'_>) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let state = hand.state().await.map_err(|fault| lost(&fault))?;
        let has_draft =
            state.has_chips || state.text.as_deref().is_some_and(|it| !it.trim().is_empty());
        if has_draft {
            let words = "Somebody is writing a message in the panel. A new chat would discard it";
            return Err(failed(words));
        }
        if !is_typing(&state) {
            return Ok(());
        }
        if begun.elapsed() > UNDISTURBED_WAIT_MAX {
            return Err(failed("Somebody is typing in the panel or its window"));
        }
        tokio::time::sleep(TYPING_STEP).await;
    }
}
