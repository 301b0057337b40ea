//! A browser with panels in it, and a machine that looks at them.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cdp::{Browser, Heard};
use fake_panels::{Chromium, Panels};
use serde_json::{Value, json};

use crate::ide::foreign::Served;
use crate::ide::sights;
use crate::support::{Lines, PATIENCE, Place, Up};

/// Whoever has this has the only stage of this program: each has a browser of its own, a relay and
/// a machine. cargo-nextest does the same by the group `ides`; cargo's own runner knows no groups.
static ONE_STAGE: Mutex<()> = Mutex::new(());

/// Everything that a test needs. Dropped, all of it ends; where the test failed, what its pages
/// showed is printed before.
pub(crate) struct Stage {
    pub(crate) up: Option<Up>,
    served: Vec<Served>,
    pub(crate) place: Place,
    pub(crate) panels: Panels,
    pub(crate) chromium: Option<Chromium>,
    pub(crate) port: u16,
    runtime: tokio::runtime::Runtime,
    /// The last that is dropped.
    _only: MutexGuard<'static, ()>,
}

impl Stage {
    /// `None` has been told on standard error.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let told = |words: String| {
            let must = std::env::var_os(fake_panels::CHROMIUM_VARIABLE).is_some();
            assert!(!must, "{words}");
            fake_panels::untried(test, &words);
        };
        // A test that failed left nothing behind that could be wrong.
        let only = ONE_STAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let chromium = Chromium::start().map_err(told).ok()?;
        let panels = Panels::start().map_err(told).ok()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (port, runtime) = (chromium.port(), runtime.unwrap());
        let place = Place::new();
        let (up, served, chromium) = (None, vec![], Some(chromium));
        Some(Self { up, served, place, panels, chromium, port, runtime, _only: only })
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

    /// Starts a program that serves a page, for as long as the stage is there. Gives its address.
    pub(crate) fn serve(&mut self, command: Command) -> String {
        let served = Served::start(command);
        let url = served.url.clone();
        self.served.push(served);
        url
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

    /// Reloads a page, says yes where it asks whether to leave, and waits until the browser tells
    /// that another document is there and loaded.
    pub(crate) fn reload(&self, target: &str) {
        let address = format!("127.0.0.1:{}", self.port);
        let run = async {
            let browser = Browser::connect(&address).await?;
            let session = browser.attach(target).await?;
            let mut events = browser.events().await?;
            browser.call(Some(&session), "Page.enable", json!({})).await?;
            let reload = browser.call_within(PATIENCE, Some(&session), "Page.reload", json!({}));
            let load = async {
                let mut is_another = false;
                while let Some(heard) = events.next().await {
                    let Heard::Event(event) = heard else { panic!("events were lost") };
                    if event.session.as_ref() != Some(&session) {
                        continue;
                    }
                    match event.method.as_str() {
                        "Page.javascriptDialogOpening" => {
                            let yes = json!({"accept": true});
                            let method = "Page.handleJavaScriptDialog";
                            browser.call(Some(&session), method, yes).await?;
                        }
                        "Page.frameNavigated" if event.params["frame"]["parentId"].is_null() => {
                            is_another = true;
                        }
                        "Page.loadEventFired" if is_another => return Ok(()),
                        _ => {}
                    }
                }
                Err(cdp::Fault::Closed)
            };
            let (asked, loaded) = tokio::join!(reload, load);
            asked.and(loaded)
        };
        let within = async { tokio::time::timeout(PATIENCE, run).await };
        self.runtime.block_on(within).expect("the page is loaded again").unwrap();
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

    /// The sessions, as far as they can be had: for somebody who looks why a test failed.
    fn listed(&self) -> Value {
        let output = self.place.run(&["sessions", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    pub(crate) fn sessions(&self) -> Vec<Value> {
        let told = self.place.json(&["sessions", "--json"]);
        told["sessions"].as_array().unwrap().clone()
    }

    /// Asks again and again until it is as wanted. Only for what stays as it is: what passes may
    /// have passed between two looks, and is waited for in the ledger (`Lines::until`).
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

    /// Sends, and waits until it is delivered. The run that answers it has begun by then: a panel
    /// reports its first sign of work before the delivery.
    pub(crate) fn send(&self, session: &str, words: &str) {
        self.delivered(session, words);
    }

    /// The same, and gives that run.
    pub(crate) fn send_for_run(&self, session: &str, words: &str) -> String {
        self.delivered(session, words)["run_id"].as_str().unwrap().to_owned()
    }

    fn delivered(&self, session: &str, words: &str) -> Value {
        let told = self.place.json(&["send", session, words, "--json"]);
        assert_eq!(told["type"], "message_delivered", "{told}");
        told
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seen = self.runtime.block_on(sights::seen(self.port));
            eprintln!("sessions: {:#}\n{seen}", self.listed());
        }
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

/// Reads on to the end of this run. Without its id, the end of an earlier run would do: a tail
/// begins with history, and the words of an answer are recorded before its run ends.
pub(crate) fn until_run_ended(tail: &Lines, run: &str) -> Vec<Value> {
    tail.until(|event| event["type"] == "run_ended" && event["run_id"] == run)
}

/// Whether an event tells that a session is like this from now on.
pub(crate) fn is_now(event: &Value, status: &str) -> bool {
    event["type"] == "session_status" && event["status"] == status
}

/// The one session that is well.
pub(crate) fn healthy(sessions: &[Value]) -> Option<String> {
    let mut well = sessions.iter().filter(|it| it["status"] == "healthy");
    well.next().filter(|_| well.next().is_none()).map(id)
}

pub(crate) fn id(session: &Value) -> String {
    session["session_id"].as_str().unwrap().to_owned()
}
