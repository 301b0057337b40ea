//! New chats: in an open panel, in a window where the panel can be opened, or in an IDE that is
//! started for it.
//!
//! Invariant: every launch ends: with a panel that belongs to its session alone, or with an error.
//!
//! Not here: the steps themselves (`acting`), the launch's place in the engine.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use agents::panel::{Done, JobNumber, News, Profile, Task};
use domain::SessionId;
use domain::content::Failure;
use tokio::time::Instant;

use super::IdeProgram;
use super::acting::Actor;
use super::service::{Live, Service};
use super::sights::{Hand, Number, Peek, Seen};
use super::watcher::whole;

/// How long a window is given to show its panel by itself before it is helped.
const HELP_AFTER: Duration = Duration::from_secs(4);
/// How long a panel may show the earlier chat after a new one was asked for.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);
/// How long a panel that was just opened may be without its field.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);
const EMPTY_STEP: Duration = Duration::from_millis(100);

/// A chat that is being opened.
pub(super) struct Launch {
    job: JobNumber,
    profile: Arc<Profile>,
    workspace: Option<String>,
    /// The panel in which its steps are taken.
    panel: Option<Number>,
    /// Whether it waits for a panel that is not there yet, and since when.
    waits_since: Option<Instant>,
    /// Panels that were there before: they are somebody's.
    before: BTreeSet<Number>,
    /// Windows in which the panel was opened already.
    helped: BTreeSet<(String, String)>,
    /// Whether an IDE was started for it: then a panel in another folder is not the one.
    is_started: bool,
}

impl Launch {
    /// Whether a panel that appeared may be what it waits for.
    fn is_for(&self, number: Number, panel: &Live) -> bool {
        let is_elsewhere = self.is_started
            && self.workspace.is_some()
            && panel.workspace_path.is_some()
            && self.workspace != panel.workspace_path;
        self.waits_since.is_some() && !self.before.contains(&number) && !is_elsewhere
    }
}

impl Service {
    pub(super) async fn open_chat(
        &mut self,
        session: SessionId,
        agent: &str,
        job: JobNumber,
        workspace: Option<String>,
    ) {
        let profile = self.profiles.borrow().get(agent).map(Arc::clone);
        let Some(profile) = profile else {
            let words = format!("This machine has no panel profile named {agent}");
            let failure = Failure::new("launch_not_supported", words);
            return self.open_failed(&session, job, failure).await;
        };
        let launch = Launch {
            job,
            profile: Arc::clone(&profile),
            workspace: workspace.clone(),
            panel: None,
            waits_since: None,
            before: self.panels.keys().copied().collect(),
            helped: BTreeSet::new(),
            is_started: false,
        };
        let here = self.panel_for(&profile, workspace.as_deref());
        let program = self.config.programs.iter().find(|it| it.profiles.contains(&profile.id));
        let program = program.cloned();
        self.launches.insert(session.clone(), launch);
        match (here, program) {
            // In the very folder that is wanted, or anywhere if nothing better can be had.
            (Some((number, is_right)), program) if is_right || program.is_none() => {
                self.open_in(&session, number).await;
            }
            (_, Some(program)) => self.start_ide(&session, &program, workspace.as_deref()),
            (_, None) if self.has_window_for(&profile) => {
                self.wait_for_panel(&session);
                self.help_windows(&session);
            }
            (_, None) => {
                let words = format!(
                    "{} is not open on this machine, and no IDE is configured to start for it",
                    profile.display_name
                );
                self.launch_failed(&session, Failure::new("agent_not_open", words)).await;
            }
        }
    }

    /// A panel of this profile, best one in this folder; and whether it is.
    fn panel_for(&self, profile: &Profile, workspace: Option<&str>) -> Option<(Number, bool)> {
        let is_taken =
            |number: &Number| self.launches.values().any(|launch| launch.panel == Some(*number));
        let mut all: Vec<_> = self
            .panels
            .iter()
            .filter(|(number, panel)| panel.profile.id == profile.id && !is_taken(number))
            .map(|(number, panel)| {
                let is_right =
                    workspace.is_none_or(|wanted| panel.workspace_path.as_deref() == Some(wanted));
                (*number, is_right)
            })
            .collect();
        all.sort_by_key(|(number, is_right)| (!is_right, *number));
        all.first().copied()
    }

    fn has_window_for(&self, profile: &Profile) -> bool {
        self.windows.values().any(|window| window.openings.contains(&profile.id))
    }

    /// Opens a new chat in a panel.
    async fn open_in(&mut self, session: &SessionId, number: Number) {
        let (Some(panel), Some(launch)) =
            (self.panels.get(&number), self.launches.get_mut(session))
        else {
            return;
        };
        if launch.profile.new_chat.is_empty() {
            let words = format!(
                "Farhelm cannot open a new chat in {}. Open it there",
                launch.profile.display_name
            );
            return self.launch_failed(session, Failure::new("launch_not_supported", words)).await;
        }
        launch.panel = Some(number);
        launch.waits_since = None;
        let task = Task::Open { workspace_path: launch.workspace.clone() };
        let (hand, profile) = (panel.hand.clone(), Arc::clone(&launch.profile));
        let (tell, of) = (self.seen.clone(), session.clone());
        let queue = hand.queue.clone();
        let deed = async move {
            let outcome = open_steps(&hand, profile, &task).await;
            let _ = tell.send(Seen::ChatOpened { session: of, panel: number, outcome }).await;
        };
        if queue.try_send(Box::pin(deed)).is_err() {
            let words = "Too many requests for the panel's window at once. Try again in a moment";
            self.launch_failed(session, Failure::new("rate_limited", words)).await;
        }
    }

    /// The steps are taken: what the panel shows now is the new session's.
    pub(super) async fn chat_opened(
        &mut self,
        session: &SessionId,
        number: Number,
        outcome: Result<String, Failure>,
    ) {
        if !self.launches.contains_key(session) {
            return;
        }
        let push = match outcome {
            Ok(push) => push,
            Err(failure) if self.may_be_shown(session, &failure) => {
                self.wait_for_panel(session);
                return self.help_windows(session);
            }
            Err(failure) => return self.launch_failed(session, failure).await,
        };
        let Some(panel) = self.panels.get_mut(&number) else {
            // It is being loaded; it appears again, and is the launch's.
            return self.wait_for_panel(session);
        };
        let before = panel.session.take();
        let peek = Peek::read(&push);
        panel.mark.traits.conversation = peek.conversation;
        panel.mark.prints.clear();
        if let Some(before) = before {
            self.shown.remove(&before);
            self.book.unhand(&before);
            let reason = "The panel shows another chat".to_owned();
            self.tell(&before, News::Gone { reason, is_closed: false }).await;
        }
        self.complete(session, number, push).await;
    }

    /// Whether a chat was not opened because its panel was hidden a moment ago, and can be shown
    /// again; each window is helped once.
    fn may_be_shown(&mut self, session: &SessionId, failure: &Failure) -> bool {
        let is_hidden = failure.code.as_str() == "agent_not_open";
        let Some(launch) = self.launches.get(session).filter(|_| is_hidden) else { return false };
        if launch.helped.len() >= self.windows.len() || !self.has_window_for(&launch.profile) {
            return false;
        }
        if let Some(launch) = self.launches.get_mut(session) {
            launch.panel = None;
        }
        true
    }

    async fn complete(&mut self, session: &SessionId, number: Number, push: String) {
        let Some(launch) = self.launches.remove(session) else { return };
        self.hand_over(number, session.clone(), push).await;
        let (job, outcome) = (launch.job, Ok(Done::Plainly));
        self.tell(session, News::Done { job, outcome }).await;
    }

    /// A panel appeared; a launch may have waited for it.
    pub(super) async fn claim_for_launch(&mut self, number: Number, push: &str) -> bool {
        let Some(panel) = self.panels.get(&number) else { return false };
        let waiting = self.launches.iter().find(|(_, launch)| {
            let is_its = launch.panel == Some(number);
            launch.profile.id == panel.profile.id && (is_its || launch.is_for(number, panel))
        });
        let Some((session, launch)) = waiting else { return false };
        let (session, is_its) = (session.clone(), launch.panel == Some(number));
        let known = self.book.recognise(&panel.mark, |it| self.shown.contains_key(it));
        let is_earlier = known.is_some() || !panel.mark.prints.is_empty();
        if is_earlier && !is_its && !launch.profile.new_chat.is_empty() {
            // It shows an earlier chat, whose session gets it; the new one is opened in it.
            self.identify(number, None, push.to_owned()).await;
            self.open_in(&session, number).await;
        } else {
            self.complete(&session, number, push.to_owned()).await;
        }
        true
    }

    /// Whether a chat is being opened in a panel.
    pub(super) fn is_opening(&self, number: Number) -> bool {
        self.launches.values().any(|launch| launch.panel == Some(number))
    }

    fn wait_for_panel(&mut self, session: &SessionId) {
        if let Some(launch) = self.launches.get_mut(session) {
            launch.waits_since.get_or_insert_with(Instant::now);
        }
    }

    /// Starts an IDE, or has a running one open another window.
    fn start_ide(&mut self, session: &SessionId, program: &IdeProgram, workspace: Option<&str>) {
        self.wait_for_panel(session);
        if let Some(launch) = self.launches.get_mut(session) {
            launch.is_started = true;
        }
        let (tell, of) = (self.seen.clone(), session.clone());
        let outcome = start(program, workspace);
        self.tasks.spawn(async move {
            let _ = tell.send(Seen::PanelOpened { session: of, outcome }).await;
        });
    }

    pub(super) async fn panel_opened(&mut self, session: &SessionId, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            return self.launch_failed(session, failure).await;
        }
        let waiting = self.launches.get(session).filter(|launch| launch.waits_since.is_some());
        let Some(launch) = waiting else { return };
        // A panel that was hidden for a moment does not appear: it was never gone.
        let is_shown_again = |(number, panel): &(&Number, &Live)| {
            panel.profile.id == launch.profile.id
                && launch.before.contains(number)
                && launch.helped.contains(&(panel.address.clone(), panel.window.clone()))
        };
        let again = self.panels.iter().find(is_shown_again).map(|(number, _)| *number);
        if let Some(number) = again {
            self.open_in(session, number).await;
        }
    }

    /// Each second while there are launches.
    pub(super) fn tend_launches(&mut self) {
        let now = Instant::now();
        let all: Vec<_> = self.launches.keys().cloned().collect();
        for session in all {
            let Some(launch) = self.launches.get(&session) else { continue };
            if launch.waits_since.is_some_and(|since| now - since >= HELP_AFTER) {
                self.help_windows(&session);
            }
        }
    }

    /// Opens the panel in windows that do not show it, each once.
    fn help_windows(&mut self, session: &SessionId) {
        let Some(launch) = self.launches.get_mut(session) else { return };
        if launch.profile.open_panel.is_empty() {
            return;
        }
        let port = self.config.programs.iter().find(|it| it.profiles.contains(&launch.profile.id));
        let port = port.map(IdeProgram::address);
        let fits = |url: &str| launch.profile.target.url_contains.iter().all(|it| url.contains(it));
        let is_page = launch.profile.target.kind == agents::panel::profile::TargetKind::Page;
        let next = self.windows.iter().find(|(key, window)| {
            // In a window of the IDE that was started, without being asked what it shows.
            let is_started = port.is_some()
                && launch.profile.target.window.is_empty()
                && (!is_page || fits(&window.url))
                && !window.title.is_empty();
            !launch.helped.contains(*key)
                && port.as_ref().is_none_or(|port| *port == window.address)
                && (window.openings.contains(&launch.profile.id) || is_started)
        });
        let Some((key, window)) = next else { return };
        launch.helped.insert(key.clone());
        let (hand, profile) = (window.hand.clone(), Arc::clone(&launch.profile));
        let (tell, of) = (self.seen.clone(), session.clone());
        let queue = hand.queue.clone();
        let deed = async move {
            let outcome = panel_steps(&hand, profile).await;
            if let Err(failure) = &outcome {
                tracing::debug!(
                    code = %failure.code,
                    words = failure.message,
                    "could not open the panel"
                );
            }
            // Another window may do; the time decides.
            let _ = tell.send(Seen::PanelOpened { session: of, outcome: Ok(()) }).await;
        };
        let _ = queue.try_send(Box::pin(deed));
    }

    async fn launch_failed(&mut self, session: &SessionId, failure: Failure) {
        if let Some(launch) = self.launches.remove(session) {
            self.open_failed(session, launch.job, failure).await;
        }
    }

    async fn open_failed(&mut self, session: &SessionId, job: JobNumber, failure: Failure) {
        self.tell(session, News::Done { job, outcome: Err(failure) }).await;
    }
}

/// Opens a chat in a panel, and looks at it when nothing of the earlier chat is shown any more.
async fn open_steps(hand: &Hand, profile: Arc<Profile>, task: &Task) -> Result<String, Failure> {
    let missing = || Failure::new("agent_not_open", "The panel is loading or is not open");
    let place = hand.place.borrow().clone().ok_or_else(missing)?;
    let look = async |place: &cdp::Place| {
        let seen = whole(&hand.browser, place).await;
        seen.map_err(|fault| Failure::new("control_failed", fault.to_string()))
    };
    let mut before = Peek::read(&look(&place).await?);
    let begun = Instant::now();
    while !profile.open_panel.is_empty() && before.composer.is_none() {
        if begun.elapsed() >= SHOWN_WITHIN {
            let words = before.waiting.unwrap_or_else(|| "The panel is not visible".to_owned());
            return Err(Failure::new("agent_not_open", words));
        }
        tokio::time::sleep(EMPTY_STEP).await;
        before = Peek::read(&look(&place).await?);
    }
    let (browser, page) = (hand.browser.clone(), hand.page.clone());
    Actor { browser, place, page, profile }.perform(task).await?;
    let begun = Instant::now();
    loop {
        let place = hand.place.borrow().clone().ok_or_else(missing)?;
        let push = look(&place).await?;
        let now = Peek::read(&push);
        let is_asked = now.rows.iter().any(|row| row.role == "user");
        let is_old = now.rows.iter().any(|row| before.rows.contains(row));
        // A greeting is the same in every chat.
        if !is_asked && (!is_old || begun.elapsed() >= EMPTY_WITHIN) {
            return Ok(push);
        }
        if begun.elapsed() >= EMPTY_WITHIN {
            let words = "The panel still shows the earlier chat";
            return Err(Failure::new("control_failed", words));
        }
        tokio::time::sleep(EMPTY_STEP).await;
    }
}

/// Opens a panel in a window.
async fn panel_steps(hand: &Hand, profile: Arc<Profile>) -> Result<(), Failure> {
    let failed = |fault: cdp::Fault| Failure::new("control_failed", fault.to_string());
    let (browser, page) = (hand.browser.clone(), hand.page.clone());
    let frame = cdp::frames::find(&browser, &page, None).await.map_err(failed)?;
    let place = cdp::world(&browser, &page, &frame).await.map_err(failed)?;
    let steps = profile.open_panel.clone();
    Actor { browser, place, page, profile }.take_steps(&steps).await
}

/// Starts an IDE. It is the person's from then on: it outlives the proxy.
fn start(program: &IdeProgram, workspace: Option<&str>) -> Result<(), Failure> {
    let mut command = tokio::process::Command::new(&program.command);
    command.args(program.arguments(workspace));
    crate::processes::set_environment(&mut command, &program.env);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    command.process_group(0);
    match command.spawn() {
        Ok(mut child) => {
            tokio::spawn(async move {
                let _ = child.wait().await;
            });
            Ok(())
        }
        Err(error) => {
            let words = format!("{} could not be started: {error}", program.command);
            Err(Failure::new("agent_not_open", words))
        }
    }
}
