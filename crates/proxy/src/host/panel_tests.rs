//! Panels that become sessions, with a scripted driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agents::panel::{Attached, News, Task};
use agents::{Input as AgentInput, Output};
use domain::session::status::{Activity, CloseReason};
use serde_json::Value;
use wire::native::proxy_frames;

use super::*;
use crate::config::Guards;
use crate::disk::{Crash, MemoryDisk};
use crate::records::MemoryRecords;

/// Looks for its panel when it starts, and tells what it hears of it.
#[derive(Debug)]
struct Panel {
    is_launched: bool,
}

impl Driver for Panel {
    fn start(&mut self, _now: Timestamp) -> Vec<Output> {
        let open = Task::Open { workspace_path: None };
        let task = if self.is_launched { open } else { Task::Find };
        vec![Output::Panel(panel::Job { number: 1, task })]
    }

    fn on_order(&mut self, _order: &AgentOrder, _now: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_input(&mut self, input: AgentInput, now: Timestamp) -> Vec<Output> {
        let health = match input {
            AgentInput::Panel(News::Attached(_)) => Health::Healthy,
            AgentInput::Panel(News::Blind { .. }) => Health::AgentUiChanged,
            AgentInput::Panel(News::Gone { .. }) => {
                let reason = CloseReason::TargetClosed;
                return vec![Output::Report(Report::Closed { reason, request: None })];
            }
            AgentInput::Line(_)
            | AgentInput::Complaint(_)
            | AgentInput::Ended(_)
            | AgentInput::Read { .. }
            | AgentInput::Filed { .. }
            | AgentInput::Terminal(..)
            | AgentInput::Kept { .. }
            | AgentInput::Panel(_)
            | AgentInput::Held(_) => return vec![],
        };
        let (kind, label) = ("idle".to_owned(), "Idle".to_owned());
        let activity = Some(Activity { kind, label: Some(label), updated_at: now });
        let told = Report::Status { health, activity, reason: None };
        vec![Output::Ready, Output::Report(told)]
    }

    fn on_deadline(&mut self, _now: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

struct World {
    disk: MemoryDisk,
    records: MemoryRecords,
    ids: Arc<AtomicU64>,
    host: Host<MemoryDisk, MemoryRecords>,
}

fn opened(
    disk: &MemoryDisk,
    records: &MemoryRecords,
    ids: &Arc<AtomicU64>,
    has_demo: bool,
) -> Host<MemoryDisk, MemoryRecords> {
    let settings = Settings {
        machine: "attic".into(),
        version: "test".to_owned(),
        agents: vec!["demo".into()],
        missing: BTreeMap::new(),
        details: vec![],
        workspaces: vec![],
        allowed_roots: vec![],
        has_demo,
        guards: Guards { programs_max: 1, ..Guards::default() },
    };
    let ids = Arc::clone(ids);
    let ids = Box::new(move || format!("id-{}", ids.fetch_add(1, Ordering::Relaxed)));
    let others = Arc::new(crate::catalog::Catalog::default()).drivers();
    let drivers: Drivers = Box::new(move |session, opened, notes| {
        if opened.agent.as_str() == "cursor" {
            return Box::new(Panel { is_launched: opened.launch.is_some() });
        }
        others(session, opened, notes)
    });
    Host::open(settings, disk.clone(), records.clone(), drivers, ids, Timestamp(1)).unwrap()
}

impl World {
    fn new(has_demo: bool) -> Self {
        let (disk, records, ids) =
            (MemoryDisk::default(), MemoryRecords::default(), Arc::default());
        let host = opened(&disk, &records, &ids, has_demo);
        let mut world = Self { disk, records, ids, host };
        world.connect();
        world
    }

    fn connect(&mut self) -> Vec<Value> {
        self.handle([Input::Connected]);
        let ack = proxy_frames::Ack {
            connection: "c1".into(),
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            features: vec!["link".to_owned()],
            received: None,
        };
        let ack = proxy_frames::ack(&ack, Timestamp(1));
        frames(&self.handle([Input::Text(String::from_utf8(ack.to_vec()).unwrap())]))
    }

    fn handle<const N: usize>(&mut self, inputs: [Input; N]) -> Turn {
        self.host.handle(inputs, Timestamp(1)).unwrap()
    }

    fn again(&mut self) {
        self.disk.crash(Crash::KeepsAll);
        self.host = opened(&self.disk, &self.records, &self.ids, false);
    }
}

fn frames(turn: &Turn) -> Vec<Value> {
    turn.frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
}

fn seen(session: &str, title: &str) -> Input {
    Input::Adopted(Adoption {
        session: session.into(),
        agent: "cursor".into(),
        display_name: "Cursor".to_owned(),
        window_title: Some(title.to_owned()),
        workspace_path: Some("/src/kite".to_owned()),
        signature: "sig-1".to_owned(),
    })
}

fn offer(agent: &str, is_installed: bool) -> AgentOffer {
    AgentOffer {
        agent: agent.into(),
        display_name: Some(agent.to_owned()),
        is_installed,
        version: None,
        is_logged_in: None,
        install: None,
    }
}

fn attached(session: &str) -> Input {
    let mut profiles = agents::panel::profile::built_in().into_iter();
    let profile = Arc::new(profiles.find(|profile| profile.id == "cursor").unwrap());
    let (window_title, workspace_path, signature) = (None, None, "sig-1".to_owned());
    let attached = Attached { profile, window_title, workspace_path, signature };
    Input::Agent(session.into(), AgentInput::Panel(News::Attached(attached)))
}

#[test]
fn a_panel_that_is_seen_becomes_a_session_that_everybody_is_told_of() {
    let mut world = World::new(false);
    let turn = world.handle([seen("p-1", "kite")]);

    let [snapshot] = &frames(&turn)[..] else { panic!("{turn:?}") };
    let told = &snapshot["sessions"][0];
    assert_eq!(snapshot["type"], "proxy_session_snapshot");
    assert_eq!((&told["session_id"], &told["agent_type"]), (&"p-1".into(), &"cursor".into()));
    assert_eq!(
        (&told["display_name"], &told["workspace_name"]),
        (&"Cursor".into(), &"kite".into())
    );
    assert_eq!(told["target_signature"], "sig-1");
    assert!(told.get("target_id").is_none());
    let [job] = &turn.panel_jobs[..] else { panic!("{turn:?}") };
    assert_eq!((job.agent.as_str(), &job.job.task), ("cursor", &Task::Find));
    assert_eq!(job.signature.as_deref(), Some("sig-1"));

    // Seen again, it is the same; only another title is news.
    assert_eq!(world.handle([seen("p-1", "kite")]), Turn::default());
    let renamed = frames(&world.handle([seen("p-1", "gull")]));
    assert_eq!(renamed[0]["sessions"][0]["window_title"], "gull");
    assert_eq!(world.host.sessions().len(), 1);
}

#[test]
fn what_is_heard_of_a_panel_right_after_it_was_seen_reaches_its_driver() {
    let mut world = World::new(false);
    let told = frames(&world.handle([seen("p-1", "kite"), attached("p-1")]));
    assert_eq!(told[0]["type"], "proxy_session_snapshot");
    assert!(told.iter().any(|frame| frame["type"] == "proxy_status"), "{told:?}");
}

#[test]
fn a_session_of_a_panel_looks_for_it_again_after_a_restart() {
    let mut world = World::new(false);
    world.handle([seen("p-1", "kite")]);
    world.again();
    let turn = world.handle([]);
    assert_eq!(turn.panel_jobs.len(), 1);
    assert_eq!(turn.panel_jobs[0].session, "p-1".into());
    assert_eq!(turn.panel_jobs[0].signature.as_deref(), Some("sig-1"));
    let told = world.connect();
    assert_eq!(told[0]["sessions"][0]["session_id"], "p-1");
    assert!(world.handle([seen("p-1", "kite")]).panel_jobs.is_empty(), "it is looked for once");
}

#[test]
fn a_panel_stands_in_for_no_demo_session_and_the_demo_for_no_panel() {
    let mut world = World::new(true);
    world.handle([seen("p-1", "kite")]);
    let demo = world.host.sessions().into_iter().find(|it| it.as_str() != "p-1").unwrap();
    let crash = domain::session::delivery::Send {
        id: "m1".into(),
        text: domain::Content::Open("crash".to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(0),
        digest: None,
    };
    let order = domain::session::Order::Deliver { send: crash, attempt: domain::Sequence(5) };
    let order = proxy_frames::encode_order(&demo, &order, false, Timestamp(1));
    world.handle([Input::Text(String::from_utf8(order.to_vec()).unwrap())]);
    let sessions = world.host.sessions();
    assert_eq!(sessions.len(), 2, "a new demo session came for the one that crashed");
    assert!(!sessions.contains(&demo) && sessions.contains(&"p-1".into()));
}

#[test]
fn a_launch_that_is_opened_in_a_panel_is_answered_when_it_is_attached() {
    let mut world = World::new(false);
    let offered = frames(&world.handle([Input::PanelOffer(vec![offer("cursor", true)])]));
    assert!(offered[0].to_string().contains("cursor"), "{offered:?}");
    // Looking for programs does not take the panels away.
    let both = frames(&world.handle([Input::Offer(vec![offer("mine", true)])]));
    assert!(both[0].to_string().contains("cursor") && both[0].to_string().contains("mine"));

    let launch =
        r#"{"type":"launch_session","protocol_version":1,"request_id":"l1","agent_type":"cursor"}"#;
    let turn = world.handle([Input::Text(launch.to_owned())]);
    let [preparation] = &turn.preparations[..] else { panic!("{turn:?}") };
    let session = preparation.session.clone();
    let prepared = crate::engine::Prepared::default();
    let turn = world.handle([Input::Prepared(session.clone(), Ok(prepared))]);
    assert!(matches!(&turn.panel_jobs[0].job.task, Task::Open { .. }), "{turn:?}");
    assert_eq!(turn.panel_jobs[0].agent.as_str(), "cursor");

    let turn = world.handle([seen(session.as_str(), "kite"), attached(session.as_str())]);
    let told = frames(&turn);
    let ack = told.iter().find(|frame| frame["type"] == "session_launch_ack").unwrap();
    assert_eq!(ack["session_id"], session.as_str());
    assert_eq!(told[0]["sessions"][0]["target_signature"], "sig-1");
    assert_eq!(told[0]["sessions"][0]["workspace_path"], "/src/kite");
    assert_eq!(world.host.sessions().len(), 1, "the panel is no second session");
}

#[test]
fn panels_do_not_count_as_programs() {
    let mut world = World::new(false);
    for number in 0..5 {
        world.handle([seen(&format!("p-{number}"), "kite")]);
    }
    assert_eq!(world.host.sessions().len(), 5);
    assert!(world.handle([]).acts.is_empty());
    assert!(world.host.make_room(&"cli".into(), Timestamp(1)).unwrap(), "one program may run");
}

#[test]
fn a_panel_that_changed_is_named_so_that_somebody_can_look() {
    let mut world = World::new(false);
    world.handle([seen("p-1", "kite"), attached("p-1")]);
    let blind = News::Blind { reason: "no composer".to_owned() };
    let turn = world.handle([Input::Agent("p-1".into(), AgentInput::Panel(blind))]);
    assert_eq!(turn.changed_panels, ["p-1".into()]);
    assert!(world.handle([attached("p-1")]).changed_panels.is_empty());
}

#[test]
fn a_session_that_is_over_does_not_come_back_by_a_late_sight_of_its_panel() {
    let mut world = World::new(false);
    world.handle([seen("p-1", "kite"), attached("p-1")]);
    let gone = News::Gone { reason: "closed".to_owned(), is_closed: true };
    let turn = world.handle([Input::Agent("p-1".into(), AgentInput::Panel(gone))]);
    assert_eq!(turn.acts, [("p-1".into(), Act::Forget(None))]);
    world.handle([seen("p-1", "kite")]);
    assert!(world.host.sessions().is_empty());
}
