//! The steps of a profile: click, focus, key, type, wait.
//!
//! Not here: when a profile's steps run (`panels`).

use std::time::Duration;

use agents::panel::profile::Step;
use domain::content::Failure;
use serde_json::json;

use super::fault::{failed, lost, missing};
use super::hand::Hand;
use super::input::Chord;
use super::pressing::click_first;

/// How long a step waits for what it clicks or waits for.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes the steps one after the other; the first that fails ends it. What was opened to be
/// typed into is closed then.
pub(super) async fn take(hand: &Hand<'_>, steps: &[Step]) -> Result<(), Failure> {
    hand.emulate_focus(true).await;
    let outcome = take_all(hand, steps).await;
    let has_typed = steps.iter().any(|step| matches!(step, Step::Type(_)));
    if let Some(escape) = Chord::parse("Escape").filter(|_| has_typed && outcome.is_err()) {
        // Somebody will close it by hand if this fails.
        let _ = hand.key(&escape).await;
    }
    hand.emulate_focus(false).await;
    outcome
}

async fn take_all(hand: &Hand<'_>, steps: &[Step]) -> Result<(), Failure> {
    for step in steps {
        match step {
            Step::Click(any) => {
                let wanted = json!({"kind": "any", "any": any});
                wait(hand, any).await?;
                click_first(hand, &wanted, &format!("{:?}", first(any))).await?;
            }
            Step::Focus(any) => {
                let wanted = json!({"kind": "any", "any": any});
                wait(hand, any).await?;
                let is_in: bool =
                    hand.call("focus", &[wanted]).await.map_err(|fault| lost(&fault))?;
                if !is_in {
                    let field = first(any);
                    return Err(failed(format!("The field {field:?} cannot be focused")));
                }
            }
            Step::Key(name) => {
                let state = hand.state().await.map_err(|fault| lost(&fault))?;
                let primary = if state.is_mac { "Meta" } else { "Control" };
                let chord = Chord::parse(&name.replace("Primary", primary));
                let chord = chord.ok_or_else(|| failed(format!("{name:?} is not a key")))?;
                hand.key(&chord).await.map_err(|fault| lost(&fault))?;
            }
            Step::Type(text) => hand.insert(text).await.map_err(|fault| lost(&fault))?,
            Step::Wait(any) => wait(hand, any).await?,
        }
    }
    Ok(())
}

/// What people know a step's element by.
fn first(any: &[String]) -> &str {
    any.first().map_or("", String::as_str)
}

async fn wait(hand: &Hand<'_>, any: &[String]) -> Result<(), Failure> {
    let check = json!({"wanted": {"kind": "any", "any": any}});
    let came = hand.until("there", check, STEP_TIMEOUT).await.map_err(|fault| lost(&fault))?;
    if came { Ok(()) } else { Err(missing(&format!("{:?}", first(any)))) }
}
