//! A proxy on its machine, and a small model of a relay.

use super::*;

pub(super) const CRASHES: [Crash; 3] = [Crash::KeepsNone, Crash::KeepsHalf, Crash::KeepsAll];

/// No scenario here takes as many turns.
const TURNS_MAX: usize = 10_000;

pub(super) type Addressed = (SessionId, Order);

pub(super) fn deliver(session: &SessionId, id: &str, text: &str, attempt: u64) -> Addressed {
    let send = Send {
        id: id.into(),
        text: Content::Open(text.to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(0),
        digest: None,
    };
    (session.clone(), Order::Deliver { send, attempt: Sequence(attempt) })
}

pub(super) fn file() -> File {
    File { name: "cat.png".to_owned(), path: "/attic/upl_1".into(), size_bytes: 3, image: None }
}

pub(super) fn control(session: &SessionId, request: &str, control: Control) -> Addressed {
    (session.clone(), Order::Control { request: RequestId::from(request), control })
}

/// A proxy on its machine, and a relay that hears each number once.
pub(super) struct World {
    pub(super) disk: MemoryDisk,
    pub(super) records: MemoryRecords,
    pub(super) ids: Arc<AtomicU64>,
    pub(super) host: Option<Host<MemoryDisk, MemoryRecords>>,
    pub(super) now: u64,
    pub(super) received: u64,
    pub(super) roots: Vec<String>,
    pub(super) heard: BTreeMap<u64, Value>,
    /// Who drives its agents.
    pub(super) drivers: fn() -> Drivers,
    /// Pictures to be kept that were asked for in this life.
    pub(super) pictures: Vec<(SessionId, Picture)>,
    /// Files that were asked for in this life.
    pub(super) wanted: Vec<Fetch>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::driven_by(|| Arc::new(crate::catalog::Catalog::default()).drivers())
    }

    pub(super) fn driven_by(drivers: fn() -> Drivers) -> Self {
        let mut world = Self {
            disk: MemoryDisk::default(),
            records: MemoryRecords::default(),
            ids: Arc::default(),
            host: None,
            now: 1_000,
            received: 0,
            roots: vec![],
            heard: BTreeMap::new(),
            drivers,
            pictures: vec![],
            wanted: vec![],
        };
        world.open();
        world
    }

    pub(super) fn open(&mut self) {
        let settings = Settings {
            machine: "attic".into(),
            version: "test".to_owned(),
            agents: vec!["demo".into()],
            missing: BTreeMap::new(),
            details: vec![],
            workspaces: vec![],
            allowed_roots: self.roots.clone(),
            has_demo: true,
            guards: crate::config::Guards::default(),
        };
        let ids = Arc::clone(&self.ids);
        let ids = Box::new(move || format!("id-{}", ids.fetch_add(1, Ordering::Relaxed)));
        let (disk, records) = (self.disk.clone(), self.records.clone());
        let drivers = (self.drivers)();
        let host = Host::open(settings, disk, records, drivers, ids, Timestamp(self.now));
        self.host = Some(host.unwrap());
    }

    pub(super) fn crash(&mut self, crash: Crash) {
        self.host = None;
        self.disk.crash(crash);
        self.wanted.clear();
        self.pictures.clear();
        self.now += 1_000;
        self.open();
    }

    pub(super) fn host(&self) -> &Host<MemoryDisk, MemoryRecords> {
        self.host.as_ref().unwrap()
    }

    pub(super) fn demo(&self) -> SessionId {
        self.host().sessions().into_iter().next().unwrap()
    }

    pub(super) fn handle<const N: usize>(&mut self, inputs: [Input; N]) -> Result<Turn, Fault> {
        let now = Timestamp(self.now);
        let mut turn = self.host.as_mut().unwrap().handle(inputs, now)?;
        self.wanted.extend(turn.fetches.iter().cloned());
        self.pictures.extend(turn.pictures.iter().cloned());
        for frame in &turn.frames {
            let frame: Value = serde_json::from_slice(frame).unwrap();
            if let Some(number) = frame.get("link_number") {
                self.heard.entry(number.as_u64().unwrap()).or_insert(frame);
            }
        }
        // Every folder is there.
        for Preparation { session, workspace_path, .. } in std::mem::take(&mut turn.preparations) {
            let prepared = Prepared { workspace_path, ..Prepared::default() };
            let next = self.handle([Input::Prepared(session, Ok(prepared))])?;
            turn.frames.extend(next.frames);
            turn.acts.extend(next.acts);
        }
        Ok(turn)
    }

    /// Greets the proxy; gives everything it says about where it stands.
    pub(super) fn connect(&mut self) -> Vec<Value> {
        let hello = self.handle([Input::Connected]).unwrap();
        assert!(hello.frames[0].starts_with(br#"{"type":"connection_hello""#));
        let ack = proxy_frames::Ack {
            connection: "c1".into(),
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            features: vec!["link".to_owned()],
            received: (self.received > 0).then_some(self.received),
        };
        let ack = proxy_frames::ack(&ack, Timestamp(self.now));
        let turn = self.handle([text(&ack)]).unwrap();
        turn.frames.iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
    }

    pub(super) fn say(&mut self, said: &str) -> Result<(), Fault> {
        self.handle([Input::Text(said.to_owned())]).map(drop)
    }

    pub(super) fn offer(&mut self, (session, order): &Addressed) -> Result<(), Fault> {
        let frame = proxy_frames::encode_order(session, order, false, Timestamp(self.now));
        self.handle([text(&frame)]).map(drop)
    }

    pub(super) fn offered(&mut self, (session, order): &Addressed) -> Turn {
        let frame = proxy_frames::encode_order(session, order, false, Timestamp(self.now));
        self.handle([text(&frame)]).unwrap()
    }

    /// Offers, and gets every file that was asked for.
    pub(super) fn deliver_with_files(&mut self, addressed: &Addressed) -> Result<(), Fault> {
        self.offer(addressed)?;
        for fetch in std::mem::take(&mut self.wanted) {
            self.handle([Input::Fetched(fetch.attempt, Ok(vec![file()]))])?;
        }
        self.idle()
    }

    pub(super) fn ack_everything(&mut self) {
        let last = self.heard.keys().last().copied().unwrap_or(0);
        self.handle([text(&proxy_frames::link_ack(last, Timestamp(self.now)))]).unwrap();
    }

    /// Time passes.
    pub(super) fn pass(&mut self, ms: u64) -> Turn {
        self.now += ms;
        self.handle([]).unwrap()
    }

    /// Time passes until the agents have nothing to do but wait for people.
    pub(super) fn idle(&mut self) -> Result<(), Fault> {
        for _ in 0..TURNS_MAX {
            let drivers = self.host().drivers.values().filter_map(|driver| driver.deadline());
            let Some(due) = drivers.min() else { return Ok(()) };
            self.now = self.now.max(due.0);
            self.handle([])?;
        }
        panic!("the agents never rest");
    }

    pub(super) fn received(&self, id: &str) -> usize {
        let mut count = 0;
        for session in self.host().sessions() {
            let lines = self.records.lines(&session);
            count += lines.iter().filter(|l| l.contains(&format!("\"id\":\"{id}\""))).count();
        }
        count
    }

    pub(super) fn of(&self, kind: &str) -> Vec<&Value> {
        self.heard.values().filter(|frame| frame["type"] == kind).collect()
    }

    pub(super) fn results(&self, id: &str) -> Vec<String> {
        let results = self.of("proxy_send_result").into_iter();
        let mine = results.filter(|frame| frame["client_message_id"] == id);
        mine.map(|frame| frame["result"].as_str().unwrap().to_owned()).collect()
    }
}

pub(super) fn text(frame: &[u8]) -> Input {
    Input::Text(String::from_utf8(frame.to_vec()).unwrap())
}
