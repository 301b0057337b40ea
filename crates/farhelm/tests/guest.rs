//! A client of any dialect in a test, and all five of them on one session.

use std::time::Duration;

use client::{OneSession, Seen, Speaker, blob, control, pi, webchannel};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// As long as the slowest of the real agents may take.
const PATIENCE: Duration = Duration::from_secs(150);
/// Frames of one client on their way out; at the bound it waits.
const FRAMES_MAX: usize = 64;
/// A native client that only waits says so often that it is there.
const BEAT: Duration = Duration::from_secs(5);

/// One client of one dialect, and all that it heard.
pub(crate) struct Guest {
    pub(crate) dialect: &'static str,
    pub(crate) speaker: Box<dyn Speaker>,
    line: Line,
    pub(crate) seen: Vec<Seen>,
    /// How much of it was waited for.
    looked: usize,
}

impl Guest {
    async fn open(
        (host, token): (&str, &str),
        dialect: &'static str,
        speaker: Box<dyn Speaker>,
    ) -> Self {
        let line = Line::dial((host, token), &speaker.path(), dialect).await;
        let mut guest = Self { dialect, speaker, line, seen: vec![], looked: 0 };
        let hello = guest.speaker.on_open();
        guest.say(hello).await;
        guest
    }

    /// Goes away; whether it comes back is seen later.
    pub(crate) async fn leave(&mut self) {
        self.line.close().await;
    }

    /// The same client on another connection; the first is dropped.
    pub(crate) async fn come_back(&mut self, relay: (&str, &str)) {
        self.line = Line::dial(relay, &self.speaker.path(), self.dialect).await;
        let hello = self.speaker.on_open();
        self.say(hello).await;
    }

    /// Forgets what it heard so far.
    pub(crate) fn forget(&mut self) {
        (self.seen, self.looked) = (vec![], 0);
    }

    /// A message of the agent with these words, and the end of its run.
    pub(crate) async fn until_said(&mut self, words: &str) {
        self.until(|seen| matches!(seen, Seen::Agent(said) if said.contains(words))).await;
        self.until_ended().await;
    }

    pub(crate) async fn say(&mut self, frames: Vec<String>) {
        for frame in frames {
            // What is said on a connection that is over is missed by whoever waits for an answer.
            if let Some(say) = &self.line.say {
                let _ = say.send(frame).await;
            }
        }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        let frames = self.speaker.send(text);
        self.say(frames).await;
    }

    /// Takes one frame in, and gives it as it came. `None` when the connection is over.
    pub(crate) async fn hear(&mut self) -> Option<String> {
        let text = self.line.heard.recv().await?;
        let (seen, replies) = self.speaker.on_text(&text);
        self.say(replies).await;
        self.seen.extend(seen);
        Some(text)
    }

    /// Says a frame of its dialect, and hears until one fits.
    pub(crate) async fn ask(&mut self, frame: Value, fits: impl Fn(&Value) -> bool) -> Value {
        self.say(vec![frame.to_string()]).await;
        self.until_frame(fits).await
    }

    /// Hears until a frame fits that was not heard yet.
    pub(crate) async fn until_frame(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut heard = vec![];
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let frame = serde_json::from_str(&self.hear().await?).unwrap();
                if fits(&frame) {
                    return Some(frame);
                }
                heard.push(frame);
            }
        });
        let found = found.await.ok().flatten();
        found.unwrap_or_else(|| panic!("{}: it never came: {heard:#?}", self.dialect))
    }

    /// Hears until something fits that was not waited for yet.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Seen) -> bool) -> Seen {
        let heard = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(at) = self.seen[self.looked..].iter().position(&fits) {
                    self.looked += at + 1;
                    return Some(self.seen[self.looked - 1].clone());
                }
                self.looked = self.seen.len();
                self.hear().await?;
            }
        });
        let heard = heard.await.ok().flatten();
        heard.unwrap_or_else(|| panic!("{}: it never came: {:#?}", self.dialect, self.seen))
    }

    /// The run is over. Webchannel tells the ends of messages alone.
    pub(crate) async fn until_ended(&mut self) {
        if self.dialect != "webchannel" {
            self.until(|seen| matches!(seen, Seen::Ended(_))).await;
        }
    }

    pub(crate) fn people(&self) -> Vec<&str> {
        let said = self.seen.iter();
        said.filter_map(|it| if let Seen::Person(words) = it { Some(&**words) } else { None })
            .collect()
    }

    pub(crate) fn agent(&self) -> Vec<&str> {
        let said = self.seen.iter();
        said.filter_map(|it| if let Seen::Agent(words) = it { Some(&**words) } else { None })
            .collect()
    }
}

/// A connection that is read while the test looks elsewhere: five clients wait for each other, and
/// one of which nothing is heard for long is taken for dead.
struct Line {
    say: Option<mpsc::Sender<String>>,
    heard: mpsc::UnboundedReceiver<String>,
    task: JoinHandle<()>,
}

impl Line {
    async fn dial((host, token): (&str, &str), path: &str, dialect: &str) -> Self {
        let mut request = format!("ws://{host}{path}").into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (mut socket, _) = connect_async(request).await.unwrap();
        let beats = dialect == "native";
        let (say, mut said) = mpsc::channel::<String>(FRAMES_MAX);
        // Unbounded, as the memory of a test: nothing that it was told may keep others waiting.
        let (tell, heard) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut beat = interval_at(Instant::now() + BEAT, BEAT);
            loop {
                let frame = tokio::select! {
                    message = socket.next() => match message {
                        Some(Ok(Message::Text(text))) if tell.send(text.to_string()).is_ok() => {
                            continue;
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_))) => {
                            continue;
                        }
                        Some(Ok(Message::Text(_) | Message::Close(_) | Message::Frame(_)) | Err(_))
                        | None => return,
                    },
                    frame = said.recv() => match frame {
                        Some(frame) => frame,
                        None => return drop(socket.close(None).await),
                    },
                    _ = beat.tick(), if beats => {
                        json!({"type": "heartbeat", "protocol_version": 1, "request_id": "beat"})
                            .to_string()
                    }
                };
                if socket.send(Message::text(frame)).await.is_err() {
                    return;
                }
            }
        });
        Self { say: Some(say), heard, task }
    }

    async fn close(&mut self) {
        self.say = None;
        let _ = (&mut self.task).await;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// All five on this session. Each is in when it hears the answer to its own words; `saying` makes
/// the agent say words.
pub(crate) async fn everybody(relay: (&str, &str), session: &str, saying: &str) -> Vec<Guest> {
    let time = "2026-11-16T10:00:00.000Z";
    let speakers: Vec<(&'static str, Box<dyn Speaker>)> = vec![
        ("native", Box::new(OneSession::new(session, 0, "ada", time))),
        ("blob", Box::new(blob::Machine::new(session))),
        ("pi", Box::new(pi::Machine::new(Some(session)))),
        ("control", Box::new(control::Machine::new(session, None, true).called("eve"))),
        ("webchannel", Box::new(webchannel::Machine::let_in(session, [7; 32]))),
    ];
    let mut guests = vec![];
    for (dialect, speaker) in speakers {
        let mut guest = Guest::open(relay, dialect, speaker).await;
        let words = format!("{dialect} is here");
        guest.send(&format!("{saying}{words}")).await;
        guest.until_said(&words).await;
        guests.push(guest);
    }
    // Who came first has heard the others come; from here on all hear the same.
    guests[0].send(&format!("{saying}all are here")).await;
    for guest in &mut guests {
        guest.until_said("all are here").await;
        guest.forget();
    }
    guests
}
