//! A client of any dialect in a test, and all five of them on one session.

use client::{OneSession, Seen, Speaker, blob, control, pi, webchannel};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::PATIENCE;

/// One client of one dialect, and all that it heard.
pub(crate) struct Guest {
    pub(crate) dialect: &'static str,
    pub(crate) speaker: Box<dyn Speaker>,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
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
        let address = format!("ws://{host}{}", speaker.path());
        let mut request = address.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = connect_async(request).await.unwrap();
        let mut guest = Self { dialect, speaker, socket, seen: vec![], looked: 0 };
        let hello = guest.speaker.on_open();
        guest.say(hello).await;
        guest
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
            self.socket.send(Message::text(frame)).await.unwrap();
        }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        let frames = self.speaker.send(text);
        self.say(frames).await;
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
                let Some(Ok(message)) = self.socket.next().await else { return None };
                let Message::Text(text) = message else { continue };
                let (seen, replies) = self.speaker.on_text(&text);
                self.say(replies).await;
                self.seen.extend(seen);
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
