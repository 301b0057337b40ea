//! A panel in a browser, its observer, and somebody who acts in it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agents::panel::profile::built_in;
use agents::panel::{Done, OBSERVER, Profile, Task};
use cdp::{Browser, Place, SessionId};
use domain::content::Failure;
use fake_panels::{Chromium, Entry, Panels};
use proxy::panels::acting::Actor;
use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The profile of the panels that are there for one editor alone.
pub(crate) fn plain_profile(editor: &str) -> Profile {
    let text = format!(
        r#"
id = "plain-{editor}"
revision = 1
display_name = "Plain"
[target]
kind = "page"
scope = [".panel"]
[composer]
any = [".composer", ".box .native-edit-context", ".box textarea"]
read = [".box .view-lines", ".box"]
editor = "{editor}"
takes_images = true
[send]
any = ["button.send"]
ladder = ["mouse", "dom"]
refusal = {{ matches = ".toast", text = "^Not yet" }}
[stop]
any = ["button.stop"]
[transcript]
root = [".rows"]
row = ".row"
roles = [{{ matches = ".user", role = "user" }}, {{ matches = ".assistant", role = "assistant" }}]
id_attribute = "data-id"
[prompt]
root = [".dialog"]
text = [".question"]
buttons = "button"
choices = [
    {{ id = "allow", label = "^Allow$", effect = "allow_once" }},
    {{ id = "allow_always", label = "^Allow always$", effect = "allow_always" }},
    {{ id = "deny", label = "^Deny$", effect = "reject" }},
]
[model]
read = ["button.model"]
open = ["button.model"]
option = ".menu .entry"
[[waiting]]
matches = ".login"
reason = "Log in"
[[new_chat]]
click = [".new-chat"]
"#
    );
    Profile::read(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// The profile of a panel, by the panel's name.
pub(crate) fn profile(panel: &str) -> Profile {
    if let Some(profile) = built_in().into_iter().find(|profile| profile.id == panel) {
        return profile;
    }
    plain_profile(panel.split('-').next().unwrap())
}

pub(crate) fn panels() -> &'static Panels {
    static PANELS: OnceLock<Panels> = OnceLock::new();
    PANELS.get_or_init(|| Panels::start().unwrap())
}

static OPENED: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Stage {
    pub(crate) instance: String,
    pub(crate) actor: Actor,
    pub(crate) target: String,
    /// The test's own part of the browser; it ends with the actor's connection.
    context: Value,
    /// Another session of the same target, as the person's own hands.
    pub(crate) person: SessionId,
}

/// Opens a panel as its agent shows it.
pub(crate) async fn open(test: &str, panel: &str, switches: &str) -> Option<Stage> {
    Some(open_in(Chromium::shared_or_told(test)?, panel, switches).await)
}

/// The same in this browser.
pub(crate) async fn open_in(chromium: &Chromium, panel: &str, switches: &str) -> Stage {
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    // Other programs have panels in the same browser.
    let instance = format!("{panel}-{}-{number}", std::process::id());
    let url = panels().url(panel, &instance, switches);
    let ends = json!({"disposeOnDetach": true});
    let context = browser.call(None, "Target.createBrowserContext", ends).await.unwrap();
    let context = context["browserContextId"].clone();
    // A window of its own: only then is its page awake beside those of other tests.
    let params = json!({"url": url, "newWindow": true, "browserContextId": context});
    let made = browser.call(None, "Target.createTarget", params).await.unwrap();
    let page = made["targetId"].as_str().unwrap().to_owned();
    let is_ready =
        |entries: &[Entry]| entries.iter().any(|entry| entry["kind"] == "ready").then_some(());
    panels().wait_for(&instance, PATIENCE, is_ready).await.expect("the panel is ready");
    let profile = Arc::new(profile(panel));
    let target = match profile.target.frame {
        None => page.clone(),
        Some(_) => webview(&browser, &format!("instance={instance}&")).await,
    };
    let session = browser.attach(&target).await.unwrap();
    let person = browser.attach(&target).await.unwrap();
    let place = observe(&browser, &session, &profile).await;
    let actor = Actor { browser, place, page: session, profile };
    actor.prepare().await.unwrap();
    Stage { instance, actor, target: page, context, person }
}

/// Our world with the observer in it.
pub(crate) async fn observe(browser: &Browser, session: &SessionId, profile: &Profile) -> Place {
    let name = profile.target.frame.as_deref();
    let frame = cdp::frames::find(browser, session, name).await.unwrap();
    let place = cdp::world(browser, session, &frame).await.unwrap();
    let start = format!("(...all) => {{ ({OBSERVER})(...all); }}");
    let args = [serde_json::to_value(profile).unwrap(), json!("farhelmPush"), json!("1")];
    browser.call_function(&place, &start, &args).await.unwrap();
    place
}

async fn webview(browser: &Browser, part: &str) -> String {
    let found = async {
        loop {
            let targets = browser.call(None, "Target.getTargets", json!({})).await.unwrap();
            for target in targets["targetInfos"].as_array().unwrap() {
                let is_it = target["url"].as_str().unwrap().contains(part);
                if target["type"] == "iframe" && is_it {
                    return target["targetId"].as_str().unwrap().to_owned();
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("a webview")
}

impl Stage {
    /// An empty tab in front of the panel's own. Gives its target.
    pub(crate) async fn open_in_front(&self) -> Value {
        let blank = json!({"url": "about:blank", "newWindow": false,
            "browserContextId": self.context});
        let browser = &self.actor.browser;
        let other = browser.call(None, "Target.createTarget", blank).await.unwrap();
        browser.call(None, "Target.activateTarget", other.clone()).await.unwrap();
        other
    }

    pub(crate) async fn perform(&self, task: Task) -> Result<Done, Failure> {
        self.actor.perform(&task).await
    }

    pub(crate) async fn send(&self, text: &str) -> Result<Done, Failure> {
        self.perform(Task::Send { text: text.to_owned(), images: Vec::new() }).await
    }

    pub(crate) async fn evaluate(&self, expression: &str) -> Value {
        self.actor.browser.evaluate(&self.actor.place, expression, true).await.unwrap()
    }

    /// Has the panel do something.
    pub(crate) async fn make(&self, order: Value) {
        let function = "order => void document.dispatchEvent(
            new CustomEvent('panel:do', { detail: JSON.stringify(order) }))";
        let (browser, place) = (&self.actor.browser, &self.actor.place);
        browser.call_function(place, function, &[order]).await.unwrap();
    }

    /// What happened of this kind.
    pub(crate) fn journal(&self, kind: &str) -> Vec<Entry> {
        let mut entries = panels().journal(&self.instance);
        entries.retain(|entry| entry["kind"] == kind);
        entries
    }

    /// Waits for the number of entries of a kind.
    pub(crate) async fn wait_for(&self, kind: &str, count: usize) -> Vec<Entry> {
        let found = |entries: &[Entry]| {
            let mut entries = entries.to_vec();
            entries.retain(|entry| entry["kind"] == kind);
            (entries.len() >= count).then_some(entries)
        };
        let found = panels().wait_for(&self.instance, PATIENCE, found).await;
        found.unwrap_or_else(|| panic!("{kind}: {:?}", panels().journal(&self.instance)))
    }

    /// The dialogs, as the observer tells them.
    pub(crate) async fn dialogs(&self) -> Vec<Value> {
        let told = self.evaluate("JSON.parse(__farhelm.snapshot()).dialogs").await;
        told.as_array().unwrap().clone()
    }

    /// The composer's text, as the page itself would send it.
    pub(crate) async fn composed(&self) -> String {
        let params = json!({"expression": "window.panel.editor.text()"});
        let (browser, page) = (&self.actor.browser, &self.actor.page);
        let answer = browser.call(Some(page), "Runtime.evaluate", params).await.unwrap();
        answer["result"]["value"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn close(self) {
        let params = json!({"targetId": self.target});
        self.actor.browser.call(None, "Target.closeTarget", params).await.unwrap();
    }
}

/// The code of a failure.
pub(crate) fn code(outcome: Result<Done, Failure>) -> String {
    match outcome {
        Ok(done) => format!("{done:?}"),
        Err(failure) => failure.code.as_str().to_owned(),
    }
}
