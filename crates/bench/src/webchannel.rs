//! The relay's cost per client of an encrypted webchannel frame, in this process.
//!
//! Real connections, each with its own key, receive the same unfinished text: the text is encoded
//! once, and then encrypted, wrapped and put into an envelope for each of them.

use std::time::Instant;

use domain::passing::{Delta, Passing, Voice};
use domain::session::{Card, Glance};
use domain::{Content, Principal, Role, Sequence, SessionId, Timestamp};
use serde_json::json;
use wire::port::{Limits, Throttle};
use wire::visitor::{Act, Answer, Encoded, Followed, Visitor as _};
use wire::webchannel::Connection;
use wire::webchannel::seal::{self, Secret};

use super::scenario::Contest;
use super::trouble::{Outcome, Trouble};

const SESSION: &str = "bench-webchannel";
const CLIENTS: u8 = 64;
const DELTAS: u32 = 2_000;
const WORDS: &str = "a few words of an agent ";
const NOW: Timestamp = Timestamp(1_790_000_000_000);

pub(crate) struct Sealing {
    clients: Vec<Connection>,
    /// UTF-16 units that were shown already.
    offset: u64,
    frame_bytes: f64,
}

struct Unlimited;

impl Throttle for Unlimited {
    fn frame(&mut self, _: Timestamp) -> bool {
        true
    }

    fn send(&mut self, _: Timestamp) -> bool {
        true
    }
}

impl Sealing {
    pub(crate) fn prepare() -> Outcome<Self> {
        let clients = (1..=CLIENTS).map(paired).collect::<Outcome<_>>()?;
        Ok(Self { clients, offset: 0, frame_bytes: 0.0 })
    }
}

/// A connection with a key that follows the session.
fn paired(number: u8) -> Outcome<Connection> {
    let lost = || Trouble::new("the relay rejected a webchannel connection");
    let (name, query) = (format!("bench-{number}"), format!("session_id={SESSION}"));
    let limits = Limits::default();
    let mut client = Connection::new(name.as_str().into(), None, &query, limits, [number; 32], NOW);
    let public = seal::encode(&Secret::from([number; 32]).public());
    let request = json!({ "v": 1, "type": "pairing_request", "session_id": SESSION,
        "payload": { "pairing_code": "000000", "client_pub": public } });
    let acts = client.on_text(&request.to_string(), &mut Unlimited, NOW);
    let Some(Act::Pair { ticket, .. }) = acts.into_iter().next() else { return Err(lost()) };
    let credential = format!("web_{number}").into();
    let principal = Principal { credential, role: Role::Operator, client: None, name };
    let acts = client.on_answer(ticket, Answer::Paired(Ok((principal, "token".into()))), NOW);
    let follow = acts
        .into_iter()
        .find_map(|act| if let Act::Follow { ticket, .. } = act { Some(ticket) } else { None });
    let card = Card {
        status: <_>::default(),
        config: None,
        prompts: vec![],
        run: None,
        messages: 0,
        results: 0,
        deadlines: None,
    };
    let glance = Glance {
        card,
        waiting: vec![],
        handed: vec![],
        is_held: false,
        run: None,
        run_began_at: None,
        context: None,
    };
    let (session, head) = (SessionId::from(SESSION), Sequence(1));
    let followed = Box::new(Followed { session, head, glance, drafts: vec![] });
    client.on_answer(follow.ok_or_else(lost)?, Answer::Followed(Some(followed)), NOW);
    Ok(client)
}

impl Contest for Sealing {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        Ok(None)
    }

    fn measure(&mut self) -> Outcome<f64> {
        let (mut acts, mut frames, mut bytes) = (vec![], 0_u32, 0.0);
        let begun = Instant::now();
        for _ in 0..DELTAS {
            let words = Content::Open(WORDS.to_owned());
            let (message, offset) = ("bench".into(), self.offset);
            let delta = Delta { message, part: 0, voice: Voice::Text, offset, words };
            let (passing, encoded) = (Passing { after: Sequence(1), delta }, Encoded::default());
            for client in &mut self.clients {
                client.on_passing(&passing, &encoded, &mut acts);
            }
            self.offset += WORDS.len() as u64;
            for act in acts.drain(..) {
                if let Act::Send(frame) = act {
                    frames += 1;
                    bytes += f64::from(u32::try_from(frame.len()).unwrap_or(u32::MAX));
                }
            }
        }
        let micros = begun.elapsed().as_secs_f64() * 1e6;
        if frames != DELTAS * u32::from(CLIENTS) {
            return Err(Trouble::new("a client did not receive everything"));
        }
        self.frame_bytes = bytes / f64::from(frames);
        Ok(micros / f64::from(frames))
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        vec![("frame_bytes", self.frame_bytes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_shown_everything_sealed() {
        let mut sealing = Sealing::prepare().unwrap();
        assert!(sealing.measure().unwrap() > 0.0);
        assert!(sealing.frame_bytes > 150.0, "{}", sealing.frame_bytes);
    }
}
