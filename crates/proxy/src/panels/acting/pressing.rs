//! Presses an element of the panel: finds it, aims, checks again, presses.
//!
//! **Invariant:** the press lands on exactly the element that was found for the request, or
//! nowhere. A trusted press that would hit another element is stopped inside the panel before the
//! page sees it.
//!
//! Not here: the mouse (`input`), what happens after a message was sent (`sending`).

use std::time::Duration;

use agents::panel::Done;
use agents::panel::profile::{Control, Press};
use cdp::Fault;
use domain::content::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

use super::around::Around;
use super::attention::Attention;
use super::fault::{failed, hindered, lost, missing, other_dialog, unheard, unknown};
use super::hand::Hand;
use super::input::Chord;

/// A dialog that was answered goes within this time.
const DIALOG_GONE_TIMEOUT: Duration = Duration::from_secs(5);
/// A run that has just begun shows its stop button within this time.
const STOPPABLE_TIMEOUT: Duration = Duration::from_secs(3);
/// A run that was stopped is over within this time.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(10);
/// A radio button lets its submit button come to life.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a press may take to come to the panel: as long as it is guarded there.
const GUARDED: Duration = Duration::from_secs(4);
/// How often something that moves or is covered is aimed at.
const AIMS_MAX: u32 = 7;
/// Longer each time: a tooltip takes its time to go, and stays when the mouse comes back before.
const AIM_STEP: Duration = Duration::from_millis(100);

/// What came of a press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pressed {
    /// It was pressed.
    Landed,
    /// It is not there: nothing was pressed.
    Absent,
    /// It is there, but cannot be pressed now: nothing was.
    Disabled,
    /// Something else is where it was, and nothing was pressed: why.
    Hindered(String),
    /// The panel did not hear of it.
    Astray,
    /// The browser was lost in the middle: it may have been pressed.
    Unknown(Fault),
}

#[derive(Deserialize)]
struct Aim {
    found: bool,
    #[serde(default)]
    is_disabled: bool,
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
}

#[derive(Deserialize)]
struct Verdict {
    landed: bool,
    missed: bool,
    /// It came so late that it could be anybody's.
    late: bool,
    /// What it would have come to.
    hit: Option<String>,
}

impl Hand<'_> {
    /// Presses beside somebody who may be using the window: the focus goes back to where it was,
    /// and a page that nobody sees is awake for it (else it takes seconds for each move of the
    /// mouse).
    async fn press_aside(&self, wanted: &Value, how: Press) -> Result<Pressed, Fault> {
        let attention = Attention::take(self).await?;
        let pressed = self.press(wanted, how).await;
        attention.give_back(self).await;
        pressed
    }

    /// Presses in one way. `wanted` is what the script inside looks for. An error means that
    /// nothing was pressed.
    pub(super) async fn press(&self, wanted: &Value, how: Press) -> Result<Pressed, Fault> {
        match how {
            Press::Mouse => self.press_by_mouse(wanted).await,
            Press::Dom | Press::Pointer => {
                let how = if how == Press::Dom { "dom" } else { "pointer" };
                if !self.call::<bool>("isThere", std::slice::from_ref(wanted)).await? {
                    return Ok(Pressed::Absent);
                }
                match self.call::<bool>("pressByScript", &[wanted.clone(), json!(how)]).await {
                    Ok(true) => Ok(Pressed::Landed),
                    Ok(false) => Ok(Pressed::Disabled),
                    Err(fault) => Ok(Pressed::Unknown(fault)),
                }
            }
            Press::Enter => {
                if !self.call::<bool>("focusComposer", &[]).await? {
                    return Ok(Pressed::Absent);
                }
                let Some(enter) = Chord::parse("Enter") else { return Ok(Pressed::Absent) };
                self.before_key(&enter, true).await?;
                if let Err(fault) = self.key(&enter).await {
                    return Ok(Pressed::Unknown(fault));
                }
                Ok(match self.after_key().await {
                    Ok(true) => Pressed::Landed,
                    Ok(false) => Pressed::Astray,
                    Err(fault) => Pressed::Unknown(fault),
                })
            }
        }
    }

    /// Panels move: what is not where it was a moment ago is aimed at again.
    async fn press_by_mouse(&self, wanted: &Value) -> Result<Pressed, Fault> {
        for aims in 1..AIMS_MAX {
            let pressed = self.press_and_go(wanted).await?;
            let Pressed::Hindered(why) = &pressed else { return Ok(pressed) };
            tracing::debug!(%why, "trying the click again");
            tokio::time::sleep(AIM_STEP * aims).await;
        }
        self.press_and_go(wanted).await
    }

    /// Leaves no mouse behind: tooltips open where one rests, and stay for as long as it is in
    /// them, over whatever is pressed next.
    async fn press_and_go(&self, wanted: &Value) -> Result<Pressed, Fault> {
        let pressed = self.press_once(wanted).await;
        self.take_mouse_away().await;
        pressed
    }

    async fn press_once(&self, wanted: &Value) -> Result<Pressed, Fault> {
        let aim: Aim = self.call("aim", std::slice::from_ref(wanted)).await?;
        if !aim.found {
            return Ok(Pressed::Absent);
        }
        if aim.is_disabled {
            return Ok(Pressed::Disabled);
        }
        // Panels replace their buttons: what is gone by now is aimed at again.
        let Some(point) = self.in_target((aim.x, aim.y)).await? else {
            return Ok(Pressed::Hindered("it is moving".to_owned()));
        };
        if let Some(why) = self.hindrance_around(point).await {
            return Ok(Pressed::Hindered(why));
        }
        // Even where something lies over it: a tooltip goes as soon as the mouse was there and left.
        self.move_to(point).await?;
        // The mouse alone may have changed what is there.
        if let Some(why) = self.call::<Option<String>>("hindrance", &[]).await? {
            let is_there = self.call::<bool>("isThere", std::slice::from_ref(wanted)).await?;
            return Ok(if is_there { Pressed::Hindered(why) } else { Pressed::Absent });
        }
        if let Err(fault) = self.click(point).await {
            return Ok(Pressed::Unknown(fault));
        }
        match self.call::<Verdict>("verdict", &[]).await {
            Ok(Verdict { landed: true, .. }) => Ok(Pressed::Landed),
            Ok(Verdict { late: true, .. }) => {
                let method = "the click".to_owned();
                Ok(Pressed::Unknown(Fault::Late { method, within: GUARDED }))
            }
            Ok(Verdict { missed: true, hit, .. }) => {
                let hit = hit.unwrap_or_default();
                Ok(Pressed::Hindered(format!("{hit} appeared in its place")))
            }
            Ok(Verdict { .. }) => Ok(Pressed::Astray),
            Err(fault) => Ok(Pressed::Unknown(fault)),
        }
    }

    /// Whether the window around a webview shows something else there: a notification, a menu.
    async fn hindrance_around(&self, point: (f64, f64)) -> Option<String> {
        let around = Around::of(self).await?;
        let why = around.hindrance(&self.actor.browser, point).await;
        around.leave(&self.actor.browser).await;
        why.unwrap_or_else(|fault| {
            tracing::debug!(%fault, "could not tell whether something covers a panel");
            None
        })
    }

    /// Where a point of the panel's frame is in the target that holds the frame; nothing where
    /// what is aimed at has just been moved or taken away.
    async fn in_target(&self, (x, y): (f64, f64)) -> Result<Option<(f64, f64)>, Fault> {
        let (browser, place) = (&self.actor.browser, &self.actor.place);
        let aimed = "() => globalThis.__farhelmHand.aimed()";
        let Some(object) = browser.call_for_object(place, aimed, &[]).await? else {
            return Ok(None);
        };
        let params = json!({"objectId": object});
        let quads = || {
            let (session, params) = (Some(&place.session), params.clone());
            browser.call(session, "DOM.getContentQuads", params)
        };
        let before = quads().await;
        let within = browser
            .call_function(
                place,
                "() => {
            const box = globalThis.__farhelmHand.aimed()?.getClientRects()[0];
            return box ? [box.left, box.top] : null;
        }",
                &[],
            )
            .await;
        let after = quads().await;
        browser.release(place, &object).await?;
        let (quads, after) = match (before, after) {
            // An element that is not in the document any more has none.
            (Err(Fault::Refused { .. }), _) | (_, Err(Fault::Refused { .. })) => return Ok(None),
            (before, after) => (before?, after?),
        };
        // One that moves just now would be pressed beside it.
        if quads != after {
            return Ok(None);
        }
        let within = within?;
        let corner = |value: &Value| Some((value.get(0)?.as_f64()?, value.get(1)?.as_f64()?));
        let (outer, inner) = (quads["quads"].get(0).and_then(corner), corner(&within));
        let (Some(outer), Some(inner)) = (outer, inner) else { return Ok(None) };
        Ok(Some((x + outer.0 - inner.0, y + outer.1 - inner.1)))
    }
}

/// Presses this button of this dialog.
pub(super) async fn answer(hand: &Hand<'_>, dialog: &str, label: &str) -> Result<Done, Failure> {
    let Some(rules) = &hand.actor.profile.prompt else { return Err(other_dialog()) };
    let button = json!({"kind": "button", "dialog": dialog, "label": label});
    let pressed = hand.press_aside(&button, rules.press).await.map_err(|fault| lost(&fault))?;
    landed(pressed, "button")?;
    if rules.submit.is_some() {
        submit(hand, dialog, rules.press).await?;
    }
    let gone = hand.until("dialogGone", json!({"dialog": dialog}), DIALOG_GONE_TIMEOUT).await;
    match gone {
        Ok(true) => Ok(Done::Plainly),
        Ok(false) => Err(failed("The question stayed open after its button was clicked")),
        Err(fault) => {
            Err(unknown(format!("The answer was clicked, but its result is unknown: {fault}")))
        }
    }
}

/// The button that sends what was chosen, where the dialog has one.
async fn submit(hand: &Hand<'_>, dialog: &str, how: Press) -> Result<(), Failure> {
    let wanted = json!({"kind": "submit", "dialog": dialog});
    let check = json!({"wanted": wanted});
    // Where the choice alone was enough, there is nothing to submit.
    let is_ready = hand.until("enabled", check, SUBMIT_TIMEOUT).await;
    if !is_ready.map_err(|fault| {
        unknown(format!("The choice was selected, but its result is unknown: {fault}"))
    })? {
        return Ok(());
    }
    match hand.press_aside(&wanted, how).await {
        Ok(Pressed::Absent | Pressed::Landed) => Ok(()),
        Ok(pressed) => landed(pressed, "submit button"),
        Err(fault) => {
            Err(unknown(format!("The choice was selected, but its result is unknown: {fault}")))
        }
    }
}

fn landed(pressed: Pressed, what: &str) -> Result<(), Failure> {
    match pressed {
        Pressed::Landed => Ok(()),
        Pressed::Absent => Err(other_dialog()),
        Pressed::Disabled => Err(failed(format!("The question's {what} is disabled"))),
        Pressed::Hindered(why) => Err(hindered(&format!("question's {what}"), &why)),
        Pressed::Astray => Err(unheard()),
        Pressed::Unknown(fault) => {
            Err(unknown(format!("It is unknown whether the {what} was clicked: {fault}")))
        }
    }
}

/// Presses the stop button.
pub(super) async fn stop(hand: &Hand<'_>) -> Result<Done, Failure> {
    let Some(Control { ladder, .. }) = &hand.actor.profile.stop else {
        return Err(Failure::new(
            "control_not_supported",
            "Farhelm knows no stop button for this panel",
        ));
    };
    let wanted = json!({"kind": "control", "name": "stop"});
    let idle =
        || Failure::new("agent_not_active", "The panel shows no stop button: nothing is running");
    // The driver knows of a run: its button may only be slow.
    let there = hand.until("there", json!({"wanted": wanted}), STOPPABLE_TIMEOUT).await;
    if !there.map_err(|fault| lost(&fault))? {
        return Err(idle());
    }
    let mut failure = missing("stop button");
    let mut has_landed = false;
    for how in ladder {
        match hand.press_aside(&wanted, *how).await.map_err(|fault| lost(&fault))? {
            Pressed::Landed => has_landed = true,
            // It only took its time.
            Pressed::Absent if has_landed => return Ok(Done::Plainly),
            Pressed::Absent => return Err(idle()),
            Pressed::Disabled => return Err(failed("The stop button is disabled")),
            // Nothing was pressed: the next way.
            Pressed::Hindered(why) => {
                failure = hindered("stop button", &why);
                continue;
            }
            Pressed::Astray => {
                failure = unheard();
                continue;
            }
            Pressed::Unknown(fault) => {
                return Err(unknown(format!("It is unknown whether the run was stopped: {fault}")));
            }
        }
        let gone = hand.until("gone", json!({"wanted": wanted}), STOPPED_TIMEOUT).await;
        if gone.map_err(|fault| {
            unknown(format!("The stop button was clicked, but its result is unknown: {fault}"))
        })? {
            return Ok(Done::Plainly);
        }
        failure = failed("The stop button was clicked, but the run continues");
    }
    Err(failure)
}

/// Clicks what a step names, by mouse.
pub(super) async fn click_first(
    hand: &Hand<'_>,
    wanted: &Value,
    what: &str,
) -> Result<(), Failure> {
    clicked(hand.press(wanted, Press::Mouse).await.map_err(|fault| lost(&fault))?, what)
}

/// What came of clicking something that belongs to no question and no run.
pub(super) fn clicked(pressed: Pressed, what: &str) -> Result<(), Failure> {
    match pressed {
        Pressed::Landed => Ok(()),
        Pressed::Absent => Err(missing(what)),
        Pressed::Disabled => Err(failed(format!("The {what} is disabled"))),
        Pressed::Hindered(why) => Err(hindered(what, &why)),
        Pressed::Astray => Err(unheard()),
        Pressed::Unknown(fault) => Err(lost(&fault)),
    }
}
