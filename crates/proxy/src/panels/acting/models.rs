//! Lists the models of a panel and chooses one. This opens a menu, so it is done only on request.
//!
//! **Invariant:** a menu that was opened is closed again, and only the entry with exactly the
//! requested name is pressed. If a notification covers the menu button or an entry, the element is
//! pressed by script instead, never what covers it.
//!
//! Not here: reading the current model without opening anything (the observer).

use std::time::Duration;

use agents::panel::Done;
use agents::panel::profile::{ModelRules, Press};
use domain::content::Failure;
use serde_json::{Value, json};

use super::attention::Attention;
use super::fault::{failed, hindered, lost, unheard};
use super::hand::Hand;
use super::input::Chord;
use super::pressing::{Pressed, clicked};

/// A menu opens within this time.
const MENU_TIMEOUT: Duration = Duration::from_secs(5);
/// A menu whose entries stay the same for so long is whole: some come after the first.
const REST: Duration = Duration::from_millis(250);
/// How often a menu that grows is looked at again.
const LOOKS_MAX: usize = 8;
/// What is chosen is shown within this time.
const SHOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Who typed so short a while ago may go on, and no menu comes between.
const AT_IT_MS: f64 = 30_000.0;
/// Entries of a menu that are told.
const MODELS_MAX: usize = 200;

/// Reads the menu; not while somebody is at the keyboard.
pub(super) async fn read(hand: &Hand<'_>) -> Result<Done, Failure> {
    let rules = rules(hand)?;
    let state = hand.state().await.map_err(|fault| lost(&fault))?;
    if state.typed_ms_ago.is_some_and(|ago| ago < AT_IT_MS) {
        return Ok(Done::Plainly);
    }
    let attention = Attention::take(hand).await.map_err(|fault| lost(&fault))?;
    let outcome = listed(hand, rules).await;
    close(hand).await;
    attention.give_back(hand).await;
    outcome.map(Done::Models)
}

/// Chooses one by its name in the menu.
pub(super) async fn choose(hand: &Hand<'_>, name: &str) -> Result<Done, Failure> {
    let rules = rules(hand)?;
    let present: Option<String> = hand.call("model", &[]).await.map_err(|fault| lost(&fault))?;
    if present.as_deref() == Some(name) {
        return Ok(Done::Plainly);
    }
    let attention = Attention::take(hand).await.map_err(|fault| lost(&fault))?;
    let outcome = chosen(hand, rules, name).await;
    close(hand).await;
    attention.give_back(hand).await;
    outcome
}

fn rules<'a>(hand: &Hand<'a>) -> Result<&'a ModelRules, Failure> {
    let rules = hand.actor.profile.model.as_ref();
    let usable = rules.filter(|rules| !rules.open.is_empty() && rules.option.is_some());
    let words = "Farhelm does not know how to choose a model in this panel";
    usable.ok_or_else(|| Failure::new("control_not_supported", words))
}

/// The menu away, if it is still open.
async fn close(hand: &Hand<'_>) {
    let is_open = hand.until("listed", json!({}), Duration::ZERO).await.unwrap_or(false);
    if let Some(escape) = Chord::parse("Escape").filter(|_| is_open) {
        // Somebody will close it by hand if this fails.
        let _ = hand.key(&escape).await;
    }
}

async fn listed(hand: &Hand<'_>, rules: &ModelRules) -> Result<Vec<String>, Failure> {
    open(hand, rules).await?;
    show_more(hand, rules).await?;
    let mut names = at_rest(hand).await?;
    names.truncate(MODELS_MAX);
    Ok(names)
}

async fn entries(hand: &Hand<'_>) -> Result<Vec<String>, Failure> {
    hand.call("options", &[]).await.map_err(|fault| lost(&fault))
}

/// The entries once no more of them come.
async fn at_rest(hand: &Hand<'_>) -> Result<Vec<String>, Failure> {
    let mut last = entries(hand).await?;
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(REST).await;
        let now = entries(hand).await?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(last)
}

async fn open(hand: &Hand<'_>, rules: &ModelRules) -> Result<(), Failure> {
    let button = json!({"kind": "scoped", "any": rules.open});
    let mut is_open = false;
    // A menu that takes only a press by script is opened by one.
    for how in [Press::Mouse, Press::Pointer] {
        match hand.press(&button, how).await.map_err(|fault| lost(&fault))? {
            Pressed::Landed => {}
            Pressed::Hindered(_) if how == Press::Mouse => continue,
            Pressed::Absent => {
                let words = "The panel has no model menu";
                return Err(Failure::new("control_not_supported", words));
            }
            Pressed::Disabled => return Err(failed("The model cannot be changed right now")),
            Pressed::Hindered(why) => return Err(hindered("model menu", &why)),
            Pressed::Astray => return Err(unheard()),
            Pressed::Unknown(fault) => return Err(lost(&fault)),
        }
        let opened = hand.until("listed", json!({}), MENU_TIMEOUT).await;
        is_open = opened.map_err(|fault| lost(&fault))?;
        if is_open {
            break;
        }
    }
    if is_open { Ok(()) } else { Err(failed("The panel's model menu did not open")) }
}

async fn show_more(hand: &Hand<'_>, rules: &ModelRules) -> Result<(), Failure> {
    let more = json!({"kind": "any", "any": rules.more});
    if rules.more.is_empty() {
        return Ok(());
    }
    let is_there: bool =
        hand.call("isThere", std::slice::from_ref(&more)).await.map_err(|fault| lost(&fault))?;
    if is_there {
        let shown = entries(hand).await?;
        press_entry(hand, &more, "full list of models").await?;
        // What opened the rest goes in some panels and stays in others.
        let check = json!({"wanted": more, "shown": shown});
        let unfolded = hand.until("unfolded", check, MENU_TIMEOUT).await;
        unfolded.map_err(|fault| lost(&fault))?;
    }
    Ok(())
}

/// Presses something in the open menu.
async fn press_entry(hand: &Hand<'_>, wanted: &Value, what: &str) -> Result<(), Failure> {
    let by_mouse = hand.press(wanted, Press::Mouse).await.map_err(|fault| lost(&fault))?;
    let pressed = match by_mouse {
        Pressed::Hindered(_) => {
            hand.press(wanted, Press::Pointer).await.map_err(|fault| lost(&fault))?
        }
        Pressed::Landed
        | Pressed::Absent
        | Pressed::Disabled
        | Pressed::Astray
        | Pressed::Unknown(_) => by_mouse,
    };
    clicked(pressed, what)
}

async fn chosen(hand: &Hand<'_>, rules: &ModelRules, name: &str) -> Result<Done, Failure> {
    let wanted = json!({"kind": "option", "name": name});
    open(hand, rules).await?;
    at_rest(hand).await?;
    let is_there = |there: Result<bool, cdp::Fault>| there.map_err(|fault| lost(&fault));
    if !is_there(hand.call("isThere", std::slice::from_ref(&wanted)).await)? {
        show_more(hand, rules).await?;
        at_rest(hand).await?;
    }
    if !is_there(hand.call("isThere", std::slice::from_ref(&wanted)).await)? {
        let words = format!("The panel's model menu has no model named {name:?}");
        return Err(Failure::new("model_not_available", words));
    }
    press_entry(hand, &wanted, "menu entry of the model").await?;
    let shown = hand.until("model", json!({"name": name}), SHOWN_TIMEOUT).await;
    if shown.map_err(|fault| lost(&fault))? {
        return Ok(Done::Plainly);
    }
    Err(failed("The model was selected, but the panel does not show it"))
}
