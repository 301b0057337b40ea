//! Calls to the script inside the panel.
//!
//! **Invariant:** every call ends in time and runs in the document that it was made for.
//!
//! Not here: what the script does (`hand.js`), trusted input (`input`).

use std::time::Duration;

use cdp::Fault;
use domain::content::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Actor;
use super::fault::{failed, lost};

const SCRIPT: &str = include_str!("hand.js");
/// What is asked of a panel, or done to it, ends within this time. A busy machine takes long to lay
/// out a long text, and what is given up in the middle is told as unknown.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How the panel stands.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that is seen")]
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct State {
    pub(super) has_scope: bool,
    pub(super) has_composer: bool,
    /// What is in the composer and nobody's habit.
    pub(super) text: Option<String>,
    /// What stands before it by the panel's habit.
    pub(super) sticky: String,
    /// Whether there is more in it than text.
    pub(super) has_chips: bool,
    pub(super) is_focused: bool,
    /// Into the composer, by the person.
    pub(super) typed_ms_ago: Option<f64>,
    /// Anywhere else in the panel's document.
    pub(super) typed_beside_ms_ago: Option<f64>,
    /// The person typed into the composer while we did.
    pub(super) typed_meanwhile: bool,
    pub(super) is_asking: bool,
    pub(super) is_busy: bool,
    pub(super) waiting: Option<String>,
    pub(super) user_rows: usize,
    pub(super) is_mac: bool,
}

/// What came of a press that sends.
#[derive(Debug, Deserialize)]
pub(super) struct Given {
    pub(super) is_sent: bool,
    /// The panel's words, where it holds the text still and says that it does not take it.
    pub(super) refusal: Option<String>,
}

/// Our script in the panel.
pub(super) struct Hand<'a> {
    pub(super) actor: &'a Actor,
}

impl<'a> Hand<'a> {
    /// Puts the script there if it is not there yet.
    pub(super) async fn new(actor: &'a Actor) -> Result<Self, Failure> {
        let profile = serde_json::to_value(&*actor.profile);
        let profile = profile
            .map_err(|error| failed(format!("The profile could not be converted: {error}")))?;
        let install = actor.browser.call_function(&actor.place, SCRIPT, &[profile]).await;
        install.map_err(|fault| lost(&fault))?;
        Ok(Self { actor })
    }

    /// Calls a function of the script.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        name: &str,
        args: &[Value],
    ) -> Result<T, Fault> {
        self.call_within(CALL_TIMEOUT, name, args).await
    }

    async fn call_within<T: DeserializeOwned>(
        &self,
        within: Duration,
        name: &str,
        args: &[Value],
    ) -> Result<T, Fault> {
        let function = "(name, args) => globalThis.__farhelmHand[name](...args)";
        let arguments = [json!(name), json!(args)];
        let Actor { browser, place, .. } = self.actor;
        let value = browser.call_function_within(within, place, function, &arguments).await?;
        let odd = |error| Fault::Threw(format!("unexpected result from {name}: {error}"));
        serde_json::from_value(value).map_err(odd)
    }

    /// How the panel stands now.
    pub(super) async fn state(&self) -> Result<State, Fault> {
        self.call("state", &[]).await
    }

    /// Waits inside of the panel until something holds; whether it does.
    pub(super) async fn until(
        &self,
        check: &str,
        rest: Value,
        within: Duration,
    ) -> Result<bool, Fault> {
        let args = [json!(check), rest, json!(ms(within))];
        self.call_within(within + CALL_TIMEOUT, "until", &args).await
    }

    /// Waits inside of the panel for what comes of a press that sends.
    pub(super) async fn given(&self, check: Value, within: Duration) -> Result<Given, Fault> {
        let args = [check, json!(ms(within))];
        self.call_within(within + CALL_TIMEOUT, "given", &args).await
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
