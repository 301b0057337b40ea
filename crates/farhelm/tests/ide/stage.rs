//! A browser with panels in it, and a machine that looks at them.

use std::time::{Duration, Instant};

use cdp::Browser;
use fake_panels::{Chromium, Panels};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Place, Up};

/// Everything that a test needs. Dropped, all of it ends.
pub(crate) struct Stage {
    pub(crate) up: Option<Up>,
    pub(crate) place: Place,
    pub(crate) panels: Panels,
    pub(crate) chromium: Option<Chromium>,
    pub(crate) port: u16,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    /// `None` has been told on standard error.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let told = |words: String| {
            let must = std::env::var_os(fake_panels::CHROMIUM_VARIABLE).is_some();
            assert!(!must, "{words}");
            fake_panels::untried(test, &words);
        };
        let chromium = Chromium::start().map_err(told).ok()?;
        let panels = Panels::start().map_err(told).ok()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (port, runtime) = (chromium.port(), runtime.unwrap());
        let place = Place::new();
        Some(Self { up: None, place, panels, chromium: Some(chromium), port, runtime })
    }

    /// Starts the machine, or starts it again.
    pub(crate) fn up(&mut self) {
        self.up_with(&[]);
    }

    pub(crate) fn up_with(&mut self, more: &[&str]) {
        let port = self.port.to_string();
        let words = [&["--no-demo", "--ide-ports", &port], more].concat();
        self.up = Some(self.place.up(&words));
    }

    /// Where clients go: the relay's address, and the owner's token.
    pub(crate) fn relay(&self) -> (String, String) {
        let told = &self.up.as_ref().unwrap().told;
        let host = told["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
        (host, told["token"].as_str().unwrap().to_owned())
    }

    /// For clients; nothing that blocks on a call of the browser's is done within.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Kills the machine in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        if let Some(up) = &mut self.up {
            up.running.kill();
        }
        self.up = None;
    }

    /// Another browser at the same port.
    pub(crate) fn restart_chromium(&mut self) {
        self.chromium = None;
        self.chromium = Some(Chromium::start_at(self.port, &[]).unwrap());
        assert_eq!(self.chromium.as_ref().unwrap().port(), self.port);
    }

    /// Opens a panel in a tab of its own. Gives the tab.
    pub(crate) fn open(&self, panel: &str, instance: &str, switches: &str) -> String {
        self.open_url(&self.panels.url(panel, instance, switches))
    }

    pub(crate) fn open_url(&self, url: &str) -> String {
        let params = json!({"url": url});
        let made = self.call("Target.createTarget", params);
        made["targetId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        let address = format!("127.0.0.1:{}", self.port);
        let call = async {
            let browser = Browser::connect(&address).await?;
            browser.call(None, method, params).await
        };
        self.runtime.block_on(call).unwrap()
    }

    /// Runs a script in a page, as somebody with a console would.
    pub(crate) fn script(&self, target: &str, expression: &str) -> Value {
        let address = format!("127.0.0.1:{}", self.port);
        let run = async {
            let browser = Browser::connect(&address).await?;
            let session = browser.attach(target).await?;
            let params = json!({"expression": expression, "returnByValue": true});
            browser.call(Some(&session), "Runtime.evaluate", params).await
        };
        self.runtime.block_on(run).unwrap()["result"]["value"].clone()
    }

    /// Does this in a page, as somebody's own hands would.
    pub(crate) fn in_page(&self, target: &str, calls: &[(&str, Value)]) {
        let address = format!("127.0.0.1:{}", self.port);
        let run = async {
            let browser = Browser::connect(&address).await?;
            let session = browser.attach(target).await?;
            for (method, params) in calls {
                browser.call(Some(&session), method, params.clone()).await?;
            }
            Ok::<(), cdp::Fault>(())
        };
        self.runtime.block_on(run).unwrap();
    }

    /// Loads a page anew, and says yes where it asks whether it should leave what it is at.
    pub(crate) fn reload(&self, target: &str) {
        let address = format!("127.0.0.1:{}", self.port);
        let run = async {
            let browser = Browser::connect(&address).await?;
            let session = browser.attach(target).await?;
            browser.call(Some(&session), "Page.enable", json!({})).await?;
            browser.call(Some(&session), "Page.reload", json!({})).await?;
            let yes = json!({"accept": true});
            for _ in 0..20 {
                let answered =
                    browser.call(Some(&session), "Page.handleJavaScriptDialog", yes.clone()).await;
                if answered.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok::<(), cdp::Fault>(())
        };
        self.runtime.block_on(run).unwrap();
    }

    /// Clicks what is in sight.
    pub(crate) fn click(&self, target: &str, selector: &str) {
        let middle = format!(
            "(() => {{ const box = [...document.querySelectorAll({})].map((it) => \
             it.getBoundingClientRect()).find((it) => it.width > 0); return box && \
             [box.left + box.width / 2, box.top + box.height / 2] }})()",
            json!(selector)
        );
        let point = self.until(selector, |_| {
            let point = self.script(target, &middle);
            point.is_array().then_some(point)
        });
        let mouse = |kind: &str, button: &str| {
            let params = json!({"type": kind, "x": point[0], "y": point[1], "button": button,
                "clickCount": 1});
            ("Input.dispatchMouseEvent", params)
        };
        let (down, up) = (mouse("mousePressed", "left"), mouse("mouseReleased", "left"));
        self.in_page(target, &[mouse("mouseMoved", "none"), down, up]);
    }

    /// Has a panel do something by itself.
    pub(crate) fn panel_does(&self, target: &str, detail: &Value) {
        self.script(target, &doing(detail));
    }

    /// A page to which several scripts are given, without a new way in for each.
    pub(crate) fn page(&self, target: &str) -> Page {
        let address = format!("127.0.0.1:{}", self.port);
        let attach = async {
            let browser = Browser::connect(&address).await?;
            let session = browser.attach(target).await?;
            Ok::<_, cdp::Fault>(Page { browser, session })
        };
        self.runtime.block_on(attach).unwrap()
    }

    /// Has the panel in a page do something by itself.
    pub(crate) fn page_does(&self, page: &Page, detail: &Value) {
        let params = json!({"expression": doing(detail)});
        let run = page.browser.call(Some(&page.session), "Runtime.evaluate", params);
        self.runtime.block_on(run).unwrap();
    }

    /// The webview in which this instance of a panel is.
    pub(crate) fn webview(&self, instance: &str) -> String {
        let part = format!("instance={instance}&");
        let targets = self.call("Target.getTargets", json!({}));
        let all = targets["targetInfos"].as_array().unwrap().clone();
        let is_it = |it: &&Value| {
            it["type"] == "iframe" && it["url"].as_str().is_some_and(|url| url.contains(&part))
        };
        all.iter().find(is_it).unwrap()["targetId"].as_str().unwrap().to_owned()
    }

    /// Presses something, as the person's own mouse does.
    pub(crate) fn press(&self, target: &str, selector: &str) {
        let middle = format!(
            "(() => {{ const frame = document.querySelector('#active-frame'); \
             const around = frame?.getBoundingClientRect() ?? {{ left: 0, top: 0 }}; \
             const box = (frame?.contentDocument ?? document).querySelector({}) \
               .getBoundingClientRect(); \
             return [around.left + box.left + box.width / 2, \
               around.top + box.top + box.height / 2]; }})()",
            json!(selector)
        );
        let point = self.script(target, &middle);
        let mouse = |kind: &str| {
            let params = json!({"type": kind, "x": point[0], "y": point[1], "button": "left",
                "clickCount": 1});
            ("Input.dispatchMouseEvent", params)
        };
        self.in_page(target, &[mouse("mousePressed"), mouse("mouseReleased")]);
    }

    pub(crate) fn sessions(&self) -> Vec<Value> {
        let told = self.place.json(&["sessions", "--json"]);
        told["sessions"].as_array().unwrap().clone()
    }

    /// Waits until the sessions are as wanted.
    pub(crate) fn until<T>(&self, what: &str, wanted: impl Fn(&[Value]) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let sessions = self.sessions();
            if let Some(found) = wanted(&sessions) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} never came; sessions: {sessions:#?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The id of the one session of an agent, healthy.
    pub(crate) fn session(&self, agent: &str) -> String {
        self.until(&format!("a healthy session of {agent}"), |sessions| {
            let all: Vec<_> = sessions.iter().filter(|it| it["agent_type"] == agent).collect();
            assert!(all.len() <= 1, "{all:#?}");
            all.first().filter(|it| it["status"] == "healthy").map(|it| id(it))
        })
    }

    /// How often a panel noted something of this kind. It does so a moment after what a client
    /// sees of it.
    pub(crate) fn noted(&self, instance: &str, kind: &str) -> usize {
        self.panels.journal(instance).iter().filter(|it| it["kind"] == kind).count()
    }

    pub(crate) fn until_noted(&self, instance: &str, kind: &str, count: usize) {
        let begun = Instant::now();
        while self.noted(instance, kind) < count {
            let journal = self.panels.journal(instance);
            assert!(begun.elapsed() < PATIENCE, "{kind} never came: {journal:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// So often, and not once more by now.
    pub(crate) fn noted_exactly(&self, instance: &str, kind: &str, count: usize) {
        self.until_noted(instance, kind, count);
        let journal = self.panels.journal(instance);
        assert_eq!(self.noted(instance, kind), count, "{instance}: {kind}: {journal:#?}");
    }

    /// Sends, and waits until it is delivered.
    pub(crate) fn send(&self, session: &str, words: &str) {
        let told = self.place.json(&["send", session, words, "--json"]);
        assert_eq!(told["type"], "message_delivered", "{told}");
    }
}

/// A page that one is attached to.
pub(crate) struct Page {
    browser: Browser,
    session: cdp::SessionId,
}

fn doing(detail: &Value) -> String {
    let detail = json!(detail.to_string());
    format!(
        "(document.querySelector('#active-frame')?.contentDocument ?? document).dispatchEvent(new \
         CustomEvent('panel:do', {{detail: {detail}}}))"
    )
}

/// The one session that is well.
pub(crate) fn healthy(sessions: &[Value]) -> Option<String> {
    let mut well = sessions.iter().filter(|it| it["status"] == "healthy");
    well.next().filter(|_| well.next().is_none()).map(id)
}

pub(crate) fn id(session: &Value) -> String {
    session["session_id"].as_str().unwrap().to_owned()
}
