//! Many clients on one thread that read as cheaply as possible: one shared buffer, frames counted
//! by their first bytes, nothing parsed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Greeting;
use crate::clients::{self, STREAM_SESSION};
use crate::trouble::{During as _, Outcome, Trouble};
use crate::websocket::{self, Frames};

const BUFFER_BYTES: usize = 256 * 1024;
/// What says that a native client is in.
const GREETED: &[u8] = b"{\"type\":\"session_snapshot\"";

/// How far everybody is.
struct Progress {
    watchers: usize,
    /// For each frame that not all have: how many have it. The first is frame `complete`.
    had_by: VecDeque<usize>,
    /// Frames that all have.
    complete: u64,
}

impl Progress {
    fn new(watchers: usize) -> Self {
        Self { watchers, had_by: VecDeque::new(), complete: 0 }
    }

    /// A watcher that had `had` frames has `more`. Gives the number of frames that all have, if
    /// it grew.
    fn advance(&mut self, had: u64, more: u64) -> Option<u64> {
        let before = self.complete;
        for frame in had..had + more {
            let place = usize::try_from(frame - before).unwrap_or(usize::MAX);
            while self.had_by.len() <= place {
                self.had_by.push_back(0);
            }
            self.had_by[place] += 1;
        }
        while self.had_by.front() == Some(&self.watchers) {
            self.had_by.pop_front();
            self.complete += 1;
        }
        (self.complete > before).then_some(self.complete)
    }
}

struct Shared {
    buffer: Vec<u8>,
    progress: Progress,
}

pub(crate) async fn run(
    address: SocketAddr,
    count: usize,
    greeting: Greeting,
    token: &str,
) -> Outcome<()> {
    let progress = Progress::new(count);
    let shared = Rc::new(RefCell::new(Shared { buffer: vec![0; BUFFER_BYTES], progress }));
    let mut watchers = vec![];
    for number in 0..count {
        let stream = TcpStream::connect(address).await.during("a watcher could not connect")?;
        stream.set_nodelay(true)?;
        let manner = Manner::of(greeting, number);
        let counted = manner.counted;
        let mut watcher = Watcher { stream, frames: Frames::default(), had: 0, counted };
        if greeting != Greeting::Plain {
            watcher.greet(token, &manner, &shared).await?;
        }
        watchers.push(watcher);
    }
    tell(0)?;
    let mut tasks = JoinSet::new();
    for watcher in watchers {
        tasks.spawn_local(watcher.watch(shared.clone()));
    }
    match tasks.join_next().await {
        Some(Ok(Err(trouble))) => Err(trouble),
        Some(Ok(Ok(())) | Err(_)) | None => Err(Trouble::new("a watcher stopped")),
    }
}

/// One number for whoever started this process.
fn tell(complete: u64) -> Outcome<()> {
    let mut out = io::stdout().lock();
    out.write_all(&complete.to_le_bytes())?;
    Ok(out.flush()?)
}

/// How a watcher comes in, and what is counted of what it hears.
struct Manner {
    path: String,
    hello: Vec<String>,
    /// Whether something tells that it is in.
    is_greeted: bool,
    counted: &'static [u8],
}

impl Manner {
    fn of(greeting: Greeting, number: usize) -> Self {
        let native = |features: &[&str], counted| Self {
            path: clients::CLIENT_PATH.to_owned(),
            hello: vec![clients::hello(&format!("bench-watcher-{number}"), features, &[])],
            is_greeted: true,
            counted,
        };
        match (greeting, number % 4) {
            (Greeting::Native | Greeting::Plain, _) => native(&[], b"{\"type\":\"message_event\""),
            (Greeting::Streaming, _) | (Greeting::Mixed, 0) => {
                native(&["deltas"], b"{\"type\":\"message_delta\"")
            }
            (Greeting::Mixed, 1) => Self {
                path: "/ws/blob".to_owned(),
                hello: clients::blob_hello(),
                is_greeted: false,
                counted: b"{\"type\":\"event\",\"event\":\"token\"",
            },
            (Greeting::Mixed, 2) => Self {
                path: format!("/ws/pi?session={STREAM_SESSION}"),
                hello: vec![],
                is_greeted: false,
                counted: b"{\"type\":\"message_update\",\"message\":{\"role\":\"assistant\",\
                    \"content\":[]},\"assistantMessageEvent\":{\"type\":\"text_delta\"",
            },
            (Greeting::Mixed, _) => Self {
                path: format!("/ws/control?partial=1&session={STREAM_SESSION}"),
                hello: vec![],
                is_greeted: false,
                counted: b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\"",
            },
        }
    }
}

struct Watcher {
    stream: TcpStream,
    frames: Frames,
    had: u64,
    /// How the frames begin that are counted.
    counted: &'static [u8],
}

impl Watcher {
    async fn greet(
        &mut self,
        token: &str,
        manner: &Manner,
        shared: &RefCell<Shared>,
    ) -> Outcome<()> {
        let opening = websocket::handshake(&manner.path, token);
        self.stream.write_all(opening.as_bytes()).await?;
        let mut answer = vec![];
        let end = loop {
            self.stream.readable().await?;
            self.read_into(shared, |chunk, _| {
                answer.extend_from_slice(chunk);
                Ok(())
            })?;
            if let Some(end) = websocket::handshake_end(&answer)? {
                break end;
            }
        };
        let mut hello = vec![];
        for words in &manner.hello {
            websocket::write_text(words, &mut hello);
        }
        self.stream.write_all(&hello).await?;
        // Of the others nothing tells; whoever measures finds out.
        let mut greeted = !manner.is_greeted;
        let mut look = |frame: &[u8]| greeted |= frame.starts_with(GREETED);
        let mut frames = Frames::default();
        frames.feed(&answer[end..], &mut look)?;
        while !greeted {
            self.stream.readable().await?;
            let mut look = |frame: &[u8]| greeted |= frame.starts_with(GREETED);
            self.read_into(shared, |chunk, _| frames.feed(chunk, &mut look))?;
        }
        self.frames = frames;
        Ok(())
    }

    async fn watch(mut self, shared: Rc<RefCell<Shared>>) -> Outcome<()> {
        loop {
            self.stream.readable().await?;
            let mut frames = std::mem::take(&mut self.frames);
            let (had, counted) = (self.had, self.counted);
            let mut more = 0;
            self.read_into(&shared, |chunk, progress| {
                frames.feed(chunk, |frame| more += u64::from(frame.starts_with(counted)))?;
                match progress.advance(had, more) {
                    Some(complete) => tell(complete),
                    None => Ok(()),
                }
            })?;
            self.had += more;
            self.frames = frames;
        }
    }

    /// Shows what has arrived, if anything has.
    fn read_into(
        &self,
        shared: &RefCell<Shared>,
        show: impl FnOnce(&[u8], &mut Progress) -> Outcome<()>,
    ) -> Outcome<()> {
        let Shared { buffer, progress } = &mut *shared.borrow_mut();
        match self.stream.try_read(buffer) {
            Ok(0) => Err(Trouble::new("the relay closed a watcher's connection")),
            Ok(count) => show(&buffer[..count], progress),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_complete_when_every_watcher_has_it() {
        let mut progress = Progress::new(2);
        assert_eq!(progress.advance(0, 3), None);
        assert_eq!(progress.advance(0, 2), Some(2));
        assert_eq!(progress.advance(3, 1), None);
        assert_eq!(progress.advance(2, 2), Some(4));
    }
}
