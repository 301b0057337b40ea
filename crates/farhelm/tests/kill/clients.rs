//! People who send and watch over real sockets, and remember everything they were shown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use client::{Dial, DialFault, Happening, Heard, Machine, Remote, Settings};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::kill::processes::{Chance, PATIENCE};

/// How long nothing may be heard before everything is taken to be said.
const QUIET: Duration = Duration::from_secs(3);

/// What a person sent and was shown.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) sent: Vec<String>,
    /// Sequence and `type`, in the order they were shown.
    pub(crate) events: Vec<(u64, String)>,
    /// The last word on each send.
    pub(crate) told: BTreeMap<String, String>,
}

pub(crate) struct Person {
    task: JoinHandle<Seen>,
    stop: watch::Sender<bool>,
}

impl Person {
    pub(crate) fn start(
        runtime: &Runtime,
        number: usize,
        session: &str,
        url: String,
        seed: u64,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let chance = Chance(seed.wrapping_add(number as u64 + 1).wrapping_mul(0x9E37_79B9));
        let task = runtime.spawn(live(number, session.to_owned(), url, chance, stopped));
        Self { task, stop }
    }

    /// It sends no more.
    pub(crate) fn fall_silent(&self) {
        let _ = self.stop.send(true);
    }

    /// Lets it hear everything out.
    pub(crate) fn finish(self, runtime: &Runtime) -> Seen {
        runtime.block_on(self.task).unwrap()
    }
}

struct Plain(String);

impl Dial for Plain {
    type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

    async fn dial(&mut self) -> Result<Self::Socket, DialFault> {
        let dialled = tokio_tungstenite::connect_async(&self.0).await;
        dialled.map(|(socket, _)| socket).map_err(|error| DialFault::Away(error.to_string()))
    }
}

async fn live(
    number: usize,
    session: String,
    url: String,
    mut chance: Chance,
    mut stopped: watch::Receiver<bool>,
) -> Seen {
    let name = format!("person-{number}");
    let mut machine = Machine::new(Settings::full(&name, &name));
    machine.follow(&session, 0);
    let mut remote = Remote::new(machine, Plain(url));
    let mut seen = Seen { name: name.clone(), ..Seen::default() };
    let mut next_send = tokio::time::Instant::now();
    loop {
        tokio::select! {
            heard = remote.next() => take(&mut seen, heard),
            () = tokio::time::sleep_until(next_send) => {
                next_send += Duration::from_millis(50 + chance.below(400));
                let id = format!("{name}-{}", seen.sent.len());
                let words = ["say: one two", "hello", "tool: read", "fail: send_rejected"];
                let words = words[usize::try_from(chance.below(4)).unwrap()];
                remote.send(&session, &id, words, "2026-10-01T00:00:00.000Z");
                seen.sent.push(id);
            }
            _ = stopped.changed() => break,
        }
    }
    // Until every send has its last word and nothing more is said.
    let begun = Instant::now();
    loop {
        let heard = tokio::time::timeout(QUIET, remote.next()).await;
        let quiet = heard.is_err();
        if let Ok(heard) = heard {
            take(&mut seen, heard);
        }
        let last_word = |id: &String| seen.told.get(id).map_or("nothing", String::as_str);
        let open = |id: &&String| ["nothing", "message_accepted"].contains(&last_word(id));
        let open: Vec<_> = seen.sent.iter().filter(open).map(|id| (id, last_word(id))).collect();
        if quiet && open.is_empty() {
            return seen;
        }
        let events = seen.events.len();
        assert!(begun.elapsed() < PATIENCE, "{name}: {events} events, still open: {open:?}");
    }
}

fn take(seen: &mut Seen, heard: Heard) {
    let event = match heard {
        Heard::Happening(Happening::Event(event)) => event,
        Heard::Happening(Happening::Anew { .. }) => panic!("{}: a cursor was lost", seen.name),
        Heard::Refused(words) => panic!("{}: {words}", seen.name),
        Heard::Happening(_) | Heard::Lost { .. } => return,
    };
    if let Some(id) = event.frame["client_message_id"].as_str()
        && event.kind.starts_with("message_")
    {
        seen.told.insert(id.to_owned(), event.kind.clone());
    }
    seen.events.push((event.sequence, event.kind));
}
