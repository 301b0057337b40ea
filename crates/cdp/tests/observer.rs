//! The observer's script in a real Chromium: what it tells of each panel, and that it only reads.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::panel::OBSERVER;
use agents::panel::frames::{Push, PushKind};
use agents::panel::profile::{BUILT_IN, Profile, Role, built_in};
use cdp::{Browser, Events, Heard, Place, SessionId};
use fake_panels::{Chromium, Panels};
use serde_json::{Value, json};

use crate::tab;

const PATIENCE: Duration = Duration::from_secs(120);

/// A panel in a browser with its observer at work.
struct Watched {
    browser: Browser,
    events: Events,
    place: Place,
    page: SessionId,
    target: String,
    profile: Profile,
    epoch: String,
    n: u64,
    rows: BTreeMap<String, (u64, Role, String)>,
    /// How often it asked to be woken.
    dues: u32,
}

impl Watched {
    async fn open(panels: &Panels, chromium: &Chromium, id: &str, switches: &str) -> Self {
        let name = format!("{id}-{}", switches.replace(['=', '&', ','], "-"));
        let url = panels.url(id, &name, switches);
        let browser = Browser::connect(&chromium.address()).await.unwrap();
        let target = tab::open(&browser, &url).await;
        let ready = panels.wait_for(&name, PATIENCE, |entries| {
            entries.iter().find(|entry| entry["kind"] == "ready").cloned()
        });
        ready.await.unwrap_or_else(|| panic!("{name} is not ready"));
        let page = browser.attach(&target).await.unwrap();
        let (session, frame) = if url.contains("/window/") {
            let webview = webview(&browser, &target).await;
            (browser.attach(&webview).await.unwrap(), Some("active-frame"))
        } else {
            (page.clone(), None)
        };
        let profile = built_in().into_iter().find(|profile| profile.id == id).unwrap();
        let watched = Self::at(browser, session, page, target, frame, profile).await;
        watched.installed().await
    }

    /// A page of our own, looked at with a profile of our own.
    async fn html(chromium: &Chromium, html: &str, profile: Profile) -> Self {
        let browser = Browser::connect(&chromium.address()).await.unwrap();
        let target = tab::open(&browser, "about:blank").await;
        let page = browser.attach(&target).await.unwrap();
        let session = page.clone();
        let watched = Self::at(browser, session, page, target, None, profile).await;
        let write = format!("document.body.innerHTML = {}", json!(html));
        watched.browser.evaluate(&watched.place, &write, false).await.unwrap();
        watched.installed().await
    }

    async fn at(
        browser: Browser,
        session: SessionId,
        page: SessionId,
        target: String,
        frame: Option<&str>,
        profile: Profile,
    ) -> Self {
        let frame = cdp::frames::find(&browser, &session, frame).await.unwrap();
        let place = cdp::world(&browser, &session, &frame).await.unwrap();
        let events = browser.events().await.unwrap();
        let binding = json!({"name": "farhelmPush", "executionContextName": cdp::WORLD});
        browser.call(Some(&session), "Runtime.addBinding", binding).await.unwrap();
        let (epoch, rows) = (String::new(), BTreeMap::new());
        Self { browser, events, place, page, target, profile, epoch, n: 0, rows, dues: 0 }
    }

    async fn installed(self) -> Self {
        let script = self.script("e1");
        self.browser.evaluate(&self.place, &script, false).await.unwrap();
        self
    }

    fn script(&self, epoch: &str) -> String {
        let profile = serde_json::to_string(&self.profile).unwrap();
        format!("void ({OBSERVER})({profile}, 'farhelmPush', '{epoch}')")
    }

    /// The next push that is told.
    async fn next(&mut self) -> Push {
        let next = async {
            loop {
                let heard = self.events.next().await.expect("the connection is there");
                let Heard::Event(event) = heard else { panic!("events were lost") };
                let is_ours = event.session.as_ref() == Some(&self.place.session);
                if event.method == "Runtime.bindingCalled" && is_ours {
                    let payload = event.params["payload"].as_str().unwrap();
                    if payload.contains("\"due_ms\"") {
                        self.dues += 1;
                        // Its document may be another one by now.
                        let due = self.browser.evaluate(&self.place, "__farhelm.due()", false);
                        let _ = due.await;
                        continue;
                    }
                    return Push::read(payload).unwrap();
                }
            }
        };
        let push = tokio::time::timeout(PATIENCE, next).await.expect("a push");
        self.take(&push);
        push
    }

    fn take(&mut self, push: &Push) {
        assert_eq!(push.error, None);
        if push.epoch == self.epoch {
            assert_eq!(push.n, self.n + 1, "none is missing");
        } else {
            assert_eq!(push.n, 1);
            self.rows.clear();
        }
        (self.epoch, self.n) = (push.epoch.clone(), push.n);
        for key in &push.gone {
            self.rows.remove(key);
        }
        for row in &push.rows {
            self.rows.insert(row.key.clone(), (row.ordinal, row.role, row.text.clone()));
        }
    }

    /// The first push that is so.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Self, &Push) -> bool) -> Push {
        for _ in 0..400 {
            let push = self.next().await;
            if is_so(self, &push) {
                return push;
            }
        }
        panic!("it never was so: {what}");
    }

    /// The conversation as it is known, in its order.
    fn said(&self) -> Vec<String> {
        let mut rows: Vec<_> = self.rows.values().collect();
        rows.sort_by_key(|row| row.0);
        rows.iter().map(|(_, role, text)| format!("{role:?}: {text}")).collect()
    }

    async fn does(&self, what: Value) {
        let script = format!(
            "document.dispatchEvent(new CustomEvent('panel:do', {{ detail: {} }}))",
            json!(what.to_string())
        );
        self.browser.evaluate(&self.place, &script, false).await.unwrap();
    }

    async fn asks(&self, script: &str) -> Value {
        self.browser.evaluate(&self.place, script, false).await.unwrap()
    }

    async fn close(self) {
        let close = json!({"targetId": self.target});
        self.browser.call(None, "Target.closeTarget", close).await.unwrap();
    }
}

/// The frame of another process inside a window.
async fn webview(browser: &Browser, window: &str) -> String {
    let found = async {
        loop {
            let targets = browser.call(None, "Target.getTargets", json!({})).await.unwrap();
            let all = targets["targetInfos"].as_array().unwrap();
            let is_it = |it: &&Value| {
                it["type"] == "iframe" && it["parentFrameId"].as_str() == Some(window)
            };
            if let Some(found) = all.iter().find(is_it) {
                return found["targetId"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("a webview")
}

const IDS: [&str; 8] = [
    "claude-vscode",
    "codex-vscode",
    "gemini-code-assist",
    "continue-vscode",
    "antigravity",
    "cursor",
    "vscode-chat",
    "opencode-web",
];

#[tokio::test]
async fn every_panel_is_read_with_its_profile() {
    let Some(chromium) = Chromium::shared_or_told("reading every panel") else { return };
    let panels = Panels::start().unwrap();
    for id in IDS {
        let mut watched = Watched::open(&panels, chromium, id, "rows=4").await;
        let push = watched.until("ready", |_, push| push.ready && push.composer.is_some()).await;
        assert_eq!(push.waiting, None, "{id}");
        assert!(push.composer.is_some_and(|composer| composer.is_empty), "{id}");
        let found = [push.landmarks.composer, push.landmarks.root];
        assert!(found.iter().all(Option::is_some), "{id}: {found:?}");
        assert!(push.send.is_some(), "{id}");
        assert!(!push.busy && push.dialogs.is_empty(), "{id}: {:?}", push.activity);
        assert_eq!(push.model.as_deref(), Some("alpha-1"), "{id}");
        assert_eq!(
            watched.said(),
            [
                "User: earlier row 0",
                "Assistant: earlier row 1",
                "User: earlier row 2",
                "Assistant: earlier row 3"
            ],
            "{id}"
        );
        watched.does(json!({"do": "say", "role": "assistant", "text": "and more"})).await;
        watched.until("a new row", |this, _| this.rows.len() == 5).await;
        assert_eq!(watched.said().last().unwrap(), "Assistant: and more", "{id}");
        watched.does(json!({"do": "busy", "busy": true})).await;
        let busy = watched.until("busy", |_, push| push.busy).await;
        assert!(busy.stop.is_some(), "{id}: no stop button");
        watched.does(json!({"do": "busy", "busy": false})).await;
        watched.until("idle", |_, push| !push.busy).await;
        watched.does(json!({"do": "ask", "text": "Run the thing?"})).await;
        let asked = watched.until("a dialog", |_, push| !push.dialogs.is_empty()).await;
        assert_eq!(asked.dialogs.len(), 1, "{id}: {:?}", asked.dialogs);
        assert!(asked.dialogs[0].text.contains("Run the thing?"), "{id}: {:?}", asked.dialogs);
        assert!(asked.dialogs[0].buttons.len() >= 2, "{id}: {:?}", asked.dialogs);
        watched.does(json!({"do": "withdraw"})).await;
        watched.until("no dialog", |_, push| push.dialogs.is_empty()).await;
        watched.close().await;
    }
}

#[tokio::test]
async fn observing_leaves_focus_scroll_and_the_document_as_they_were() {
    let Some(chromium) = Chromium::shared_or_told("only reading") else { return };
    let panels = Panels::start().unwrap();
    for (id, _) in BUILT_IN {
        let mut watched = Watched::open(&panels, chromium, id, "rows=80").await;
        watched.until("rows", |this, _| !this.rows.is_empty()).await;
        // Other tests open windows beside this one.
        for session in [&watched.page, &watched.place.session] {
            let focus = json!({"enabled": true});
            let method = "Emulation.setFocusEmulationEnabled";
            watched.browser.call(Some(session), method, focus).await.unwrap();
        }
        // Somebody has the composer's focus and reads in the middle of the list.
        watched
            .asks(
                "globalThis.heard = [];
                 for (const type of ['focusin', 'focusout', 'scroll', 'click', 'pointerdown', 'keydown'])
                   document.addEventListener(type, (event) => heard.push(event.type), true);
                 globalThis.state = () => {
                   const moved = [...document.querySelectorAll('*')].filter((it) => it.scrollTop);
                   const places = moved.map((it) => [it.className, it.scrollTop]);
                   return JSON.stringify([document.activeElement.className, places, getSelection().toString()]);
                 };
                 for (const it of document.querySelectorAll('*')) if (it.scrollHeight > it.clientHeight + 50) it.scrollTop = 37;
                 __farhelm.composer().focus()",
            )
            .await;
        let settled = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => { heard.length = 0; done(state()); })))";
        let before = watched.browser.evaluate(&watched.place, settled, true).await.unwrap();
        for _ in 0..20 {
            watched.asks("__farhelm.snapshot().length").await;
        }
        let after = watched.asks("JSON.stringify([state(), heard])").await;
        let after: Value = serde_json::from_str(after.as_str().unwrap()).unwrap();
        assert_eq!(after[0], before, "{id}");
        assert_eq!(after[1], json!([]), "{id}");
        watched.close().await;
    }
}

#[tokio::test]
async fn growing_words_are_told_with_only_the_row_that_changed() {
    let Some(chromium) = Chromium::shared_or_told("growing words") else { return };
    let panels = Panels::start().unwrap();
    let mut watched = Watched::open(&panels, chromium, "antigravity", "rows=30").await;
    watched.until("rows", |this, _| this.rows.len() == 30).await;
    watched.does(json!({"do": "busy", "busy": true})).await;
    watched.until("busy", |_, push| push.busy).await;
    watched.does(json!({"do": "say", "role": "assistant", "text": "one"})).await;
    let push = watched.until("the row", |this, _| this.rows.len() == 31).await;
    // The last of before is told again: it is no longer the one in the making.
    assert!(push.rows.len() <= 2, "{:?}", push.rows);
    assert!(push.rows.iter().any(|row| row.is_streaming && row.text == "one"));
    for round in 0..10 {
        let word = format!("word-{round}");
        let grow = format!(
            "[...document.querySelectorAll('[data-message-role]')].at(-1).append(' {word}')"
        );
        watched.asks(&grow).await;
        let push =
            watched.until(&word, |_, push| push.rows.iter().any(|row| row.text.ends_with(&word)));
        assert_eq!(push.await.rows.len(), 1);
    }
    watched.close().await;
}

#[tokio::test]
async fn in_a_window_that_nobody_sees_it_asks_to_be_woken() {
    let Some(chromium) = Chromium::shared_or_told("a hidden window") else { return };
    let panels = Panels::start().unwrap();
    let mut watched = Watched::open(&panels, chromium, "antigravity", "rows=1").await;
    watched.until("its row", |this, _| this.rows.len() == 1).await;
    // As a browser sees a window behind others, without a race for the front with other tests.
    let hidden = "Object.defineProperty(document, 'hidden', { value: true }), document.hidden";
    assert_eq!(watched.asks(hidden).await, true);
    let before = watched.dues;
    watched.does(json!({"do": "say", "role": "user", "text": "seen by nobody"})).await;
    watched.until("the row", |this, _| this.rows.len() == 2).await;
    assert!(watched.dues > before);
    watched.close().await;
}

#[tokio::test]
async fn in_a_frame_out_of_sight_it_asks_to_be_woken_though_its_window_is_seen() {
    let Some(chromium) = Chromium::shared_or_told("a frame out of sight") else { return };
    let panels = Panels::start().unwrap();
    let mut watched = Watched::open(&panels, chromium, "claude-vscode", "rows=1").await;
    watched.until("its row", |this, _| this.rows.len() == 1).await;
    watched.asks("frameElement.style = 'position: fixed; left: -9000px'").await;
    // Other tests' windows may be before this one.
    watched.asks("Object.defineProperty(document, 'hidden', { value: false }), 0").await;
    let before = watched.dues;
    for round in 0..6 {
        let text = format!("out of sight {round}");
        watched.does(json!({"do": "say", "role": "user", "text": text})).await;
        watched.until("the row", |this, _| this.said().join(" ").contains(&text)).await;
    }
    // Not at once: the browser slows a frame's timers a moment after it left.
    assert!(watched.dues >= before + 3, "{before} {}", watched.dues);
    assert_eq!(watched.asks("document.hidden").await, false);
    watched.close().await;
}

#[tokio::test]
async fn rows_that_a_virtual_list_takes_out_are_not_told_as_gone() {
    let Some(chromium) = Chromium::shared_or_told("virtual lists") else { return };
    let panels = Panels::start().unwrap();
    let mut watched =
        Watched::open(&panels, chromium, "vscode-chat", "rows=10&mutate=virtual").await;
    watched.until("rows", |this, _| !this.rows.is_empty()).await;
    assert_eq!(watched.rows.len(), 6);
    for round in 0..4 {
        let text = format!("new {round}");
        watched.does(json!({"do": "say", "role": "user", "text": text})).await;
        let push = watched.until("it", |this, _| this.said().join(" ").contains(&text)).await;
        assert_eq!(push.gone, Vec::<String>::new());
        assert_eq!(push.rows.len(), 1, "{:?}", push.rows);
    }
    assert_eq!(watched.rows.len(), 10);
    watched.close().await;
}

#[tokio::test]
async fn a_dialog_has_one_id_though_it_is_there_twice_and_another_when_it_changes_or_comes_again() {
    let Some(chromium) = Chromium::shared_or_told("dialogs") else { return };
    let panels = Panels::start().unwrap();
    for id in ["vscode-chat", "claude-vscode", "opencode-web"] {
        let mut watched = Watched::open(&panels, chromium, id, "mutate=dup-dialog").await;
        watched.until("ready", |_, push| push.composer.is_some()).await;
        let mut ids = vec![];
        for text in ["Run it?", "Run it?", "Run that?"] {
            watched.does(json!({"do": "ask", "text": text})).await;
            let push = watched.until("asked", |_, push| !push.dialogs.is_empty()).await;
            assert_eq!(push.dialogs.len(), 1, "{id}: {:?}", push.dialogs);
            let dialog = push.dialogs[0].clone();
            let live = format!("__farhelm.dialog({}) !== null", json!(dialog.id));
            assert_eq!(watched.asks(&live).await, true, "{id}");
            let label = &dialog.buttons[0].label;
            let button =
                format!("__farhelm.button({}, {}) !== null", json!(dialog.id), json!(label));
            assert_eq!(watched.asks(&button).await, true, "{id}");
            watched.does(json!({"do": "swap", "text": "Delete everything?"})).await;
            // Nobody told it yet, and still it is not the one that was asked about.
            assert_eq!(watched.asks(&live).await, false, "{id}");
            watched.does(json!({"do": "withdraw"})).await;
            watched.until("withdrawn", |_, push| push.dialogs.is_empty()).await;
            ids.push(dialog.id);
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "{id}");
        watched.close().await;
    }
}

#[tokio::test]
async fn a_login_page_waits_and_a_changed_panel_lacks_its_landmarks() {
    let Some(chromium) = Chromium::shared_or_told("login and changes") else { return };
    let panels = Panels::start().unwrap();
    for id in IDS {
        let mut watched = Watched::open(&panels, chromium, id, "mutate=login").await;
        let push = watched.until("loaded", |_, push| push.ready).await;
        assert!(push.waiting.is_some(), "{id}: {:?}", push.landmarks);
        watched.close().await;
    }
    let mut watched = Watched::open(&panels, chromium, "claude-vscode", "").await;
    let push = watched.until("ready", |_, push| push.ready).await;
    assert_eq!((push.landmarks.composer, push.landmarks.send), (Some(0), Some(0)));
    watched.does(json!({"do": "rename-send"})).await;
    watched.until("renamed", |_, push| push.landmarks.send != Some(0)).await;
    watched.does(json!({"do": "drop-composer"})).await;
    watched.until("dropped", |_, push| push.landmarks.composer.is_none()).await;
    watched.close().await;
}

#[tokio::test]
async fn after_a_reload_it_begins_again_by_itself_with_a_new_epoch() {
    let Some(chromium) = Chromium::shared_or_told("reloading") else { return };
    let panels = Panels::start().unwrap();
    for id in ["opencode-web", "claude-vscode"] {
        let mut watched = Watched::open(&panels, chromium, id, "rows=3").await;
        watched.until("rows", |this, _| this.rows.len() == 3).await;
        let (first, session) = (watched.epoch.clone(), watched.place.session.clone());
        let again = json!({"source": watched.script("e1"), "worldName": cdp::WORLD});
        let method = "Page.addScriptToEvaluateOnNewDocument";
        watched.browser.call(Some(&session), method, again).await.unwrap();
        watched.browser.call(Some(&session), "Page.enable", json!({})).await.unwrap();
        watched.does(json!({"do": "reload"})).await;
        let others = |this: &Watched, push: &Push| push.epoch != first && this.rows.len() == 3;
        let push = watched.until("the rows again", others).await;
        assert_ne!(push.epoch, first, "{id}");
        watched.close().await;
    }
}

#[tokio::test]
async fn the_same_epoch_is_installed_once_and_a_stopped_one_tells_nothing_until_it_is_asked() {
    let Some(chromium) = Chromium::shared_or_told("installing twice") else { return };
    let panels = Panels::start().unwrap();
    let mut watched = Watched::open(&panels, chromium, "antigravity", "rows=2").await;
    watched.until("rows", |this, _| this.rows.len() == 2).await;
    let again = watched.script("e1");
    assert_eq!(
        watched.asks(&format!("{{ const it = __farhelm; {again}; it === __farhelm }}")).await,
        true
    );
    watched.asks("__farhelm.stop()").await;
    watched.does(json!({"do": "say", "role": "user", "text": "unheard"})).await;
    let whole = watched.asks("__farhelm.snapshot()").await;
    let whole = Push::read(whole.as_str().unwrap()).unwrap();
    assert_eq!((whole.kind, whole.rows.len()), (PushKind::Whole, 3));
    assert_eq!(whole.n, watched.n + 1, "nothing was told meanwhile");
    watched.take(&whole);
    watched.does(json!({"do": "say", "role": "user", "text": "heard"})).await;
    watched.until("it tells again", |this, _| this.rows.len() == 4).await;
    // A proxy that came back takes over, and the dialogs keep their numbers.
    let other = watched.script("e2");
    watched.asks(&other).await;
    watched.until("the new one", |this, _| this.epoch.starts_with("e2.")).await;
    watched.close().await;
}

fn plain_profile() -> Profile {
    Profile::read(
        r##"
        id = "plain"
        revision = 1
        display_name = "Plain"
        [target]
        kind = "page"
        scope = ["#panel"]
        [composer]
        any = ["textarea"]
        editor = "textarea"
        [send]
        any = ["#send"]
        ladder = ["mouse"]
        [transcript]
        root = ["#rows"]
        row = ".row"
        exclude = [".copy"]
        roles = [
            { matches = ".user", role = "user" },
            { matches = ".tool", role = "tool" },
            { matches = ".agent", role = "assistant" },
        ]
        [[activity]]
        matches = ".spinner"
        text = "(?i)^thinking"
        kind = "thinking"
        "##,
    )
    .unwrap()
}

#[tokio::test]
async fn rendered_words_are_read_as_the_markdown_they_were() {
    let Some(chromium) = Chromium::shared_or_told("markdown") else { return };
    let html = r#"<div id=panel><textarea></textarea><button id=send>Send</button><div id=rows>
        <div class="row user"><div>first line</div><div>second <b>line</b></div><button class=copy>Copy</button></div>
        <div class="row agent"><h2>Plan</h2><p>Do <code>a b</code> and
            then:</p><ul><li>one</li><li>two<ul><li>deep</li></ul></li></ul>
            <ol start=3><li>three</li><li>four</li></ol>
            <pre><button class=copy>Copy</button><code class="language-rust">fn main() {
    go();
}
</code></pre><p style="display:none">hidden</p><p>End<br>of it.</p></div>
        <div class="row tool">Bash ls<div class="row agent">nested words</div></div>
    </div><div class=spinner>Thinking hard</div></div>"#;
    let mut watched = Watched::html(chromium, html, plain_profile()).await;
    let push = watched.until("rows", |this, _| this.rows.len() == 4).await;
    let said = watched.said();
    assert_eq!(said[0], "User: first line\nsecond line");
    let expected = "Assistant: ## Plan\n\nDo `a b` and then:\n\n- one\n- two\n  - deep\n\n\
        3. three\n4. four\n\n```rust\nfn main() {\n    go();\n}\n```\n\nEnd\nof it.";
    assert_eq!(said[1], expected);
    assert_eq!(said[2], "Tool: Bash ls", "a row within a row is its own");
    assert_eq!(said[3], "Assistant: nested words");
    assert_eq!(push.activity.unwrap().kind, "thinking");
    assert!(push.busy);
    watched.close().await;
}

#[tokio::test]
async fn a_skeleton_has_landmarks_and_no_words() {
    let Some(chromium) = Chromium::shared_or_told("skeletons") else { return };
    let panels = Panels::start().unwrap();
    let mut watched =
        Watched::open(&panels, chromium, "claude-vscode", "rows=4&draft=secret").await;
    watched.until("rows", |this, _| this.rows.len() == 4).await;
    let skeleton = watched.asks("__farhelm.skeleton()").await;
    let text = skeleton.as_str().unwrap();
    assert!(text.contains("sendButton_"), "{text}");
    assert!(!text.contains("earlier row") && !text.contains("secret"), "{text}");
    watched.close().await;
}

#[tokio::test]
async fn of_two_panels_the_one_that_was_chosen_stays_while_it_is_in_sight() {
    let Some(chromium) = Chromium::shared_or_told("two panels") else { return };
    let panel = |words: &str| {
        format!(
            "<div class=panel><textarea></textarea><button id=send>Send</button>\
             <div class=rows><div class='row user'>{words}</div></div></div>"
        )
    };
    let mut profile = plain_profile();
    profile.target.scope = vec![".panel".to_owned()];
    profile.transcript.root = vec![".rows".to_owned()];
    let mut watched = Watched::html(chromium, &panel("the first"), profile).await;
    watched.until("the first", |this, _| this.said() == ["User: the first"]).await;
    // Another one before it, and something new in both.
    let before = format!(
        "document.body.insertAdjacentHTML('afterbegin', {}); \
         for (const rows of document.querySelectorAll('.rows')) \
           rows.insertAdjacentHTML('beforeend', '<div class=\\'row agent\\'>more</div>')",
        json!(panel("the second"))
    );
    watched.asks(&before).await;
    watched.until("more", |this, _| this.rows.len() == 2).await;
    assert_eq!(watched.said(), ["User: the first", "Assistant: more"]);
    let composer = "__farhelm.composer().closest('.panel').textContent.includes('the first')";
    assert_eq!(watched.asks(composer).await, true);
    // When it is not in sight any more, the other one is there.
    watched.asks("[...document.querySelectorAll('.panel')][1].style.display = 'none'").await;
    watched.until("the second", |this, _| this.said()[0] == "User: the second").await;
    watched.close().await;
}

#[tokio::test]
async fn what_is_not_in_sight_does_not_count() {
    let Some(chromium) = Chromium::shared_or_told("sight") else { return };
    let html = r#"<div id=panel><textarea style="display:none"></textarea><textarea></textarea>
        <button id=send style="visibility:hidden">Send</button><div id=rows></div></div>"#;
    let mut watched = Watched::html(chromium, html, plain_profile()).await;
    let push = watched.next().await;
    assert_eq!((push.landmarks.composer, push.landmarks.send), (Some(0), None));
    watched.asks("document.querySelector('#panel').style.display = 'none'").await;
    let push = watched.until("hidden", |_, push| push.waiting.is_some()).await;
    assert_eq!(push.landmarks.scope, None);
    // It comes back elsewhere in the document.
    watched
        .asks(
            "const old = document.querySelector('#panel'); const fresh = old.cloneNode(true); \
             old.remove(); fresh.style.display = ''; document.body.append(fresh)",
        )
        .await;
    watched.until("back", |_, push| push.landmarks.composer == Some(0)).await;
    watched.close().await;
}
