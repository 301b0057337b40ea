//! One session, all dialects at once: everybody sees everything once, in the same order.

use client::{OneSession, Seen, Speaker, blob, control, pi, webchannel};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{PATIENCE, Place, Up};

/// One client of one dialect, and all that it heard.
struct Guest {
    dialect: &'static str,
    speaker: Box<dyn Speaker>,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    seen: Vec<Seen>,
    /// How much of it was waited for.
    looked: usize,
}

impl Guest {
    /// Comes in, and is in when it hears the answer to its own words.
    async fn open(up: &Up, dialect: &'static str, speaker: Box<dyn Speaker>) -> Self {
        let base = up.told["ws"].as_str().unwrap().trim_end_matches("/ws").to_owned();
        let mut request = format!("{base}{}", speaker.path()).into_client_request().unwrap();
        let token = up.told["token"].as_str().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = connect_async(request).await.unwrap();
        let mut guest = Self { dialect, speaker, socket, seen: vec![], looked: 0 };
        let hello = guest.speaker.on_open();
        guest.say(hello).await;
        let words = format!("{dialect} is here");
        guest.send(&format!("say: {words}")).await;
        guest.until(|seen| *seen == Seen::Agent(words.clone())).await;
        guest.until_ended().await;
        guest
    }

    async fn say(&mut self, frames: Vec<String>) {
        for frame in frames {
            self.socket.send(Message::text(frame)).await.unwrap();
        }
    }

    async fn send(&mut self, text: &str) {
        let frames = self.speaker.send(text);
        self.say(frames).await;
    }

    /// Hears until something fits that was not waited for yet.
    async fn until(&mut self, fits: impl Fn(&Seen) -> bool) -> Seen {
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
    async fn until_ended(&mut self) {
        if self.dialect != "webchannel" {
            self.until(|seen| matches!(seen, Seen::Ended(_))).await;
        }
    }

    fn people(&self) -> Vec<&str> {
        let said = self.seen.iter();
        said.filter_map(|it| if let Seen::Person(words) = it { Some(&**words) } else { None })
            .collect()
    }

    fn agent(&self) -> Vec<&str> {
        let said = self.seen.iter();
        said.filter_map(|it| if let Seen::Agent(words) = it { Some(&**words) } else { None })
            .collect()
    }
}

async fn everybody(up: &Up, session: &str) -> Vec<Guest> {
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
        guests.push(Guest::open(up, dialect, speaker).await);
    }
    // Who came first has heard the others come; from here on all hear the same.
    guests[0].send("say: all are here").await;
    for guest in &mut guests {
        guest.until(|seen| *seen == Seen::Agent("all are here".to_owned())).await;
        guest.until_ended().await;
        (guest.seen, guest.looked) = (vec![], 0);
    }
    guests
}

#[tokio::test]
async fn everybody_sees_every_message_once_in_the_same_order() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody(&up, &session).await;
    let mut said = vec![];
    for speaking in 0..guests.len() {
        let words = format!("from {}", guests[speaking].dialect);
        guests[speaking].send(&format!("say: {words}")).await;
        for guest in &mut guests {
            guest.until(|seen| *seen == Seen::Agent(words.clone())).await;
            guest.until_ended().await;
        }
        said.push(words);
    }
    let asked: Vec<String> = said.iter().map(|words| format!("say: {words}")).collect();
    for guest in &guests {
        assert_eq!(guest.people(), asked, "{}", guest.dialect);
        assert_eq!(guest.agent(), said, "{}", guest.dialect);
    }
}

#[tokio::test]
async fn a_question_that_one_answers_closes_for_all() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody(&up, &session).await;
    for deciding in 0..guests.len() {
        let command = format!("touch {}", guests[deciding].dialect);
        guests[0].send(&format!("ask: {command}")).await;
        let mut questions = vec![];
        for guest in &mut guests {
            let asked = guest.until(|seen| matches!(seen, Seen::Asked { .. })).await;
            let Seen::Asked { id, what } = asked else { continue };
            assert!(what.contains(&command), "{}: {what}", guest.dialect);
            questions.push(id);
        }
        let allow = deciding % 2 == 0;
        let frames = guests[deciding].speaker.decide(&questions[deciding], allow);
        assert!(!frames.is_empty(), "{} cannot decide", guests[deciding].dialect);
        guests[deciding].say(frames).await;
        let outcome = format!("{}: {command}", if allow { "ran" } else { "denied" });
        for (number, guest) in guests.iter_mut().enumerate() {
            if number != deciding {
                let id = questions[number].clone();
                guest.until(|seen| *seen == Seen::Settled { id: id.clone() }).await;
            }
            guest.until(|seen| *seen == Seen::Agent(outcome.clone())).await;
            guest.until_ended().await;
        }
    }
}

#[tokio::test]
async fn a_run_that_one_stops_ends_for_all() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody(&up, &session).await;
    for stopping in 0..guests.len() {
        guests[0].send("slow: 10000").await;
        for guest in &mut guests {
            guest.until(|seen| matches!(seen, Seen::Piece(_))).await;
        }
        if guests[stopping].dialect == "webchannel" {
            // Its protocol has no word for it.
            assert!(guests[stopping].speaker.interrupt().is_empty());
            let frames = guests[0].speaker.interrupt();
            guests[0].say(frames).await;
        } else {
            let frames = guests[stopping].speaker.interrupt();
            guests[stopping].say(frames).await;
        }
        for guest in &mut guests {
            // What had been said by then stays, for everybody the same.
            guest.until(|seen| matches!(seen, Seen::Agent(_))).await;
            guest.until_ended().await;
        }
    }
}

fn session_of(place: &Place) -> String {
    let sessions = place.json(&["sessions", "--json"]);
    sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned()
}
