//! Launches of agents that are programs: checked first, limited in number, ended when idle.

use std::collections::BTreeMap;

use agents::{Driver, Output, Program};
use domain::Timestamp;
use domain::session::Report;
use domain::session::status::CloseReason;
use serde_json::{Value, json};
use wire::native::shapes::{Conversation, Conversations};

use super::*;
use crate::disk::MemoryDisk;
use crate::engine::{Prepared, Settings};
use crate::host::{Act, Input};
use crate::journal::Earlier;
use crate::records::MemoryRecords;

const IDLE_MS: u64 = 60_000;

/// Starts its program at once and is ready when that says so; starts it again when it is asked
/// something.
#[derive(Debug)]
struct Plain {
    conversation: String,
    is_up: bool,
    is_busy: bool,
    is_ready: bool,
}

impl Plain {
    fn spawn(&mut self) -> Output {
        self.is_up = true;
        let folder = std::path::PathBuf::from("/");
        let (command, args, env) = ("plain".to_owned(), vec![], vec![]);
        let files = vec![];
        Output::Spawn(Program { command, args, env, folder, files })
    }
}

impl Driver for Plain {
    fn start(&mut self, _: Timestamp) -> Vec<Output> {
        vec![self.spawn()]
    }

    fn on_order(&mut self, order: &AgentOrder, _: Timestamp) -> Vec<Output> {
        match order {
            AgentOrder::Rest => {
                self.is_up = false;
                vec![Output::End]
            }
            AgentOrder::Deliver { .. } => {
                self.is_busy = true;
                if self.is_up { vec![] } else { vec![self.spawn()] }
            }
            AgentOrder::Control { request, .. } => {
                let (reason, request) = (CloseReason::UserRequested, Some(request.clone()));
                vec![Output::Report(Report::Closed { reason, request })]
            }
            AgentOrder::LookUp { .. } | AgentOrder::Answer { .. } => vec![],
        }
    }

    fn on_input(&mut self, input: AgentInput, _: Timestamp) -> Vec<Output> {
        match input {
            AgentInput::Line(_) => {
                self.is_busy = false;
                if !std::mem::replace(&mut self.is_ready, true) {
                    return vec![Output::Ready];
                }
            }
            AgentInput::Ended(Ended::NotStarted(failure)) => {
                self.is_up = false;
                return vec![Output::Unusable(failure)];
            }
            AgentInput::Ended(_) => self.is_up = false,
            AgentInput::Complaint(_)
            | AgentInput::Read { .. }
            | AgentInput::Filed { .. }
            | AgentInput::Terminal(..)
            | AgentInput::Panel(_)
            | AgentInput::Kept { .. }
            | AgentInput::Held(_) => {}
        }
        vec![]
    }

    fn on_deadline(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn conversation(&self) -> Option<&str> {
        Some(&self.conversation)
    }

    fn is_at_rest(&self) -> bool {
        self.is_up && !self.is_busy
    }
}

struct World {
    host: Host<MemoryDisk, MemoryRecords>,
    now: u64,
    turns: Vec<Turn>,
}

impl World {
    fn new(programs_max: usize) -> Self {
        let mut settings = Settings {
            machine: "attic".into(),
            version: "test".to_owned(),
            agents: vec![],
            missing: BTreeMap::new(),
            details: vec![],
            workspaces: vec![],
            allowed_roots: vec![],
            has_demo: false,
            guards: Guards { programs_max, idle_stop_ms: Some(IDLE_MS), memory_bytes_max: None },
        };
        settings.offer(vec![offered("plain", true), offered("absent", false)]);
        let mut count = 0;
        let ids = Box::new(move || {
            count += 1;
            format!("id-{count}")
        });
        let make = Box::new(|session: &SessionId, _: &_, _| -> Box<dyn Driver> {
            let conversation = format!("talk of {session}");
            Box::new(Plain { conversation, is_up: false, is_busy: false, is_ready: false })
        });
        let (disk, records) = (MemoryDisk::default(), MemoryRecords::default());
        let host = Host::open(settings, disk, records, make, ids, Timestamp(1_000)).unwrap();
        let mut world = Self { host, now: 1_000, turns: vec![] };
        world.handle(vec![Input::Connected]);
        world.say(&json!({"type": "connection_ack", "protocol_version": 1, "connection_id": "c",
            "heartbeat_interval_ms": 600_000, "heartbeat_timeout_ms": 6_000_000}));
        world
    }

    fn handle(&mut self, inputs: Vec<Input>) {
        let turn = self.host.handle(inputs, Timestamp(self.now)).unwrap();
        self.turns.push(turn);
    }

    fn say(&mut self, frame: &Value) {
        self.handle(vec![Input::Text(frame.to_string())]);
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.handle(vec![]);
    }

    fn launch(&mut self, request: &str) -> Option<SessionId> {
        self.say(&json!({"type": "launch_session", "protocol_version": 1, "agent_type": "plain",
            "request_id": request, "workspace_path": "/kite"}));
        let wanted = self.preparation()?;
        let workspace_path = wanted.workspace_path.clone();
        let prepared = Prepared { workspace_path, ..Prepared::default() };
        self.handle(vec![Input::Prepared(wanted.session.clone(), Ok(prepared))]);
        // Whatever was denied is heard with the next turn.
        self.pass(0);
        self.print(&wanted.session);
        self.host.sessions().contains(&wanted.session).then_some(wanted.session)
    }

    fn print(&mut self, session: &SessionId) {
        self.handle(vec![Input::Agent(session.clone(), AgentInput::Line("hello".to_owned()))]);
    }

    fn preparation(&mut self) -> Option<crate::engine::Preparation> {
        self.turns.last_mut()?.preparations.pop()
    }

    fn send(&mut self, session: &SessionId, id: &str) {
        self.say(&json!({"type": "send_message", "protocol_version": 1, "session_id": session,
            "client_message_id": id, "content": "hi", "created_at": "2026-01-01T00:00:00.000Z",
            "attempt": self.now}));
    }

    fn frames(&self, kind: &str) -> Vec<Value> {
        let all = self.turns.iter().flat_map(|turn| &turn.frames);
        let all = all.map(|frame| serde_json::from_slice::<Value>(frame).unwrap());
        all.filter(|frame| frame["type"] == kind).collect()
    }

    /// What was done with programs since the last time.
    fn acts(&mut self) -> Vec<String> {
        let acts = self.turns.iter_mut().flat_map(|turn| std::mem::take(&mut turn.acts));
        let word = |(session, act): (SessionId, Act)| match act {
            Act::Spawn(_) => format!("start {session}"),
            Act::End => format!("end {session}"),
            Act::Forget(worktree) => format!("forget {session} {}", worktree.unwrap_or_default()),
            Act::Write(_) | Act::Read(_) | Act::File(_) | Act::Terminal(_) => String::new(),
        };
        acts.map(word).collect()
    }
}

fn offered(agent: &str, is_installed: bool) -> domain::fleet::AgentOffer {
    domain::fleet::AgentOffer {
        agent: agent.into(),
        display_name: None,
        is_installed,
        version: None,
        is_logged_in: None,
        install: None,
    }
}

#[test]
fn a_program_that_rests_for_long_is_ended_and_started_again_when_needed() {
    let mut world = World::new(8);
    let session = world.launch("l1").unwrap();
    assert_eq!(world.acts(), [format!("start {session}")]);
    world.pass(IDLE_MS - 1);
    assert_eq!(world.acts(), [""; 0]);
    world.pass(1);
    assert_eq!(world.acts(), [format!("end {session}")]);
    world.pass(IDLE_MS * 2);
    assert_eq!(world.acts(), [""; 0], "it is ended once");
    world.send(&session, "m1");
    assert_eq!(world.acts(), [format!("start {session}")]);
    // While it works it does not rest, however long that takes.
    world.pass(IDLE_MS * 3);
    assert_eq!(world.acts(), [""; 0]);
    world.print(&session);
    let due = world.host.deadline().unwrap();
    assert_eq!(due, Timestamp(world.now + IDLE_MS));
    world.pass(IDLE_MS);
    assert_eq!(world.acts(), [format!("end {session}")]);
}

#[test]
fn at_the_bound_the_program_that_rested_longest_makes_room() {
    let mut world = World::new(2);
    let first = world.launch("l1").unwrap();
    world.pass(10);
    let second = world.launch("l2").unwrap();
    world.pass(10);
    world.acts();
    let third = world.launch("l3").unwrap();
    assert_eq!(world.acts(), [format!("end {first}"), format!("start {third}")]);
    // The first one comes back when it is needed, and another makes room.
    world.send(&first, "m1");
    assert_eq!(world.acts(), [format!("end {second}"), format!("start {first}")]);
}

#[test]
fn at_the_bound_a_launch_fails_in_words_when_all_are_at_work() {
    let mut world = World::new(1);
    let first = world.launch("l1").unwrap();
    world.send(&first, "m1");
    world.acts();
    assert_eq!(world.launch("l2"), None);
    let failed = world.frames("session_launch_failed");
    assert_eq!(failed[0]["error_code"], "too_many_agents");
    assert!(failed[0]["reason"].as_str().unwrap().contains("--agents-max"));
    assert!(!world.acts().iter().any(|act| act.starts_with("start")));
    world.print(&first);
    assert!(world.launch("l3").is_some());
}

#[test]
fn a_program_that_ended_by_itself_leaves_room() {
    let mut world = World::new(1);
    let first = world.launch("l1").unwrap();
    world.send(&first, "m1");
    world.handle(vec![Input::Agent(first, AgentInput::Ended(Ended::Exited(1)))]);
    assert!(world.launch("l2").is_some());
}

#[test]
fn a_launch_is_looked_at_once_and_what_comes_of_it_is_told() {
    let mut world = World::new(8);
    let ask = json!({"type": "launch_session", "protocol_version": 1, "agent_type": "absent",
        "request_id": "l1", "worktree": true, "workspace_path": "/kite"});
    world.say(&ask);
    let wanted = world.preparation().unwrap();
    assert!(wanted.has_worktree);
    world.say(&ask);
    assert_eq!(world.preparation(), None, "it is being looked at");
    let failure = Failure::new("agent_not_open", "get it there");
    world.handle(vec![Input::Prepared(wanted.session.clone(), Err(failure))]);
    let failed = world.frames("session_launch_failed");
    assert_eq!((&failed[0]["error_code"], failed.len()), (&json!("agent_not_open"), 1));
}

#[test]
fn a_working_tree_goes_when_its_session_is_closed_or_never_came_to_be() {
    let mut world = World::new(1);
    let ask = |request: &str| {
        json!({"type": "launch_session", "protocol_version": 1, "agent_type": "plain",
            "request_id": request, "worktree": true})
    };
    let tree = |name: &str| Ok(Prepared { worktree: Some(name.to_owned()), ..Prepared::default() });
    world.say(&ask("l1"));
    let first = world.preparation().unwrap().session;
    world.handle(vec![Input::Prepared(first.clone(), tree("/trees/1"))]);
    world.print(&first);
    world.send(&first, "m1");
    world.say(&ask("l2"));
    let second = world.preparation().unwrap().session;
    world.handle(vec![Input::Prepared(second.clone(), tree("/trees/2"))]);
    world.pass(0);
    world.say(&json!({"type": "close_session", "protocol_version": 1, "request_id": "x",
        "session_id": first}));
    let gone: Vec<_> = world.acts().into_iter().filter(|act| act.starts_with("forget")).collect();
    assert_eq!(gone, [format!("forget {second} /trees/2"), format!("forget {first} /trees/1")]);
    // One that comes too late is not kept either.
    world.handle(vec![Input::Prepared("late".into(), tree("/trees/3"))]);
    assert_eq!(world.acts(), ["forget late /trees/3"]);
}

// spec: native/resume_session.2
#[test]
fn a_conversation_that_is_open_answers_with_its_session() {
    let mut world = World::new(8);
    let first = world.launch("l1").unwrap();
    let resume = |request: &str, id: &str, fork: bool| {
        json!({"type": "resume_session", "protocol_version": 1, "agent_type": "plain",
            "request_id": request, "conversation_id": id, "fork": fork})
    };
    world.say(&resume("l2", &format!("talk of {first}"), false));
    assert_eq!(world.preparation(), None);
    let told = world.frames("session_launch_ack");
    assert_eq!((&told[1]["request_id"], &told[1]["session_id"]), (&json!("l2"), &json!(first)));

    // Going on in a copy is another session.
    world.say(&resume("l3", &format!("talk of {first}"), true));
    assert!(world.preparation().is_some());

    // One that is not open is opened once, also when two ask for it.
    world.say(&resume("l4", "old talk", false));
    let wanted = world.preparation().unwrap();
    world.say(&resume("l5", "old talk", false));
    let failed = world.frames("session_launch_failed");
    assert_eq!(failed[0]["request_id"], "l5");
    let earlier = Earlier { id: "old talk".to_owned(), file: None, fork: false };
    let prepared = Prepared { earlier: Some(earlier), ..Prepared::default() };
    world.handle(vec![Input::Prepared(wanted.session.clone(), Ok(prepared))]);
    world.print(&wanted.session);
    world.say(&resume("l6", "old talk", false));
    let told = world.frames("session_launch_ack");
    assert_eq!(told.last().unwrap()["session_id"], json!(wanted.session));
}

// spec: native/resumable_list.4
#[test]
fn a_list_says_which_conversations_are_open() {
    let mut world = World::new(8);
    let first = world.launch("l1").unwrap();
    world.say(&json!({"type": "resumable_list", "protocol_version": 1, "request_id": "q1"}));
    let (request, _) = world.turns.last_mut().unwrap().lists.pop().unwrap();
    let conversation = |id: &str| Conversation {
        agent_type: "plain".into(),
        conversation_id: id.to_owned(),
        title: None,
        workspace_path: None,
        updated_at: Timestamp(0).into(),
        session_id: None,
    };
    let open = format!("talk of {first}");
    let conversations = vec![conversation(&open), conversation("other")];
    let page = Conversations { conversations, next: None };
    world.handle(vec![Input::Listed(request, Ok(page))]);
    let told = &world.frames("resumable_sessions")[0];
    assert_eq!(told["request_id"], "q1");
    assert_eq!(told["conversations"][0]["session_id"], json!(first));
    assert_eq!(told["conversations"][1].get("session_id"), None);
}

// spec: native/proxy_catalog.1
#[test]
fn an_agent_that_was_installed_is_told_once_and_can_be_launched() {
    let mut world = World::new(8);
    let offers = || vec![offered("plain", true), offered("absent", true)];
    world.handle(vec![Input::Offer(offers())]);
    world.handle(vec![Input::Offer(offers())]);
    let told = world.frames("proxy_catalog");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["catalog"]["agents"], json!(["demo", "plain", "absent"]));
    let limits = json!({"agents_max": 8, "idle_stop_ms": IDLE_MS});
    assert_eq!(told[0]["catalog"]["limits"], limits);
}
