//! A connection in a dialect that looks at one session at a time, and a shell that answers it.

use std::collections::BTreeSet;

use bytes::Bytes;
use domain::content::{Attachment, Failure};
use domain::passing::Passing;
use domain::session::{Command, Recorded};
use domain::{ConnectionId, Principal, SessionId, Timestamp};
use wire::port::{Denied, Limits};
use wire::visitor::{Act, Answer, Encoded, Figures, Recognised, Visitor};
use wire::webchannel::seal::NONCE_BYTES;

use crate::fuzz::chance::Chance;
use crate::fuzz::sealing;
use crate::fuzz::world::{Open, Peer, World, recorded};

/// Answers that wait; a connection that asks for more runs away.
const WAITING_MAX: usize = 10_000;
/// Codes that pair.
const CODES: [&str; 2] = ["428913", "000042"];
/// A token that nobody knows.
const NOBODY: &str = "fh_nobody";

pub(crate) struct Visiting {
    visitor: Box<dyn Visitor>,
    following: Option<SessionId>,
    waiting: Vec<Waits>,
    /// The key that pairing agreed on.
    paired: Option<[u8; 32]>,
    /// The nonces of what was sealed.
    spent: BTreeSet<[u8; NONCE_BYTES]>,
    is_closed: bool,
}

/// An answer on its way.
enum Waits {
    Answer(u64, Answer),
    /// How things stand when it is given.
    Follow(u64, SessionId),
}

impl Visiting {
    /// A connection of this dialect; its `new` is all that is needed.
    pub(crate) fn open<V: Visitor + 'static>(
        world: &mut World,
        query: &str,
        new: fn(ConnectionId, Option<Principal>, &str, Limits, Timestamp) -> V,
    ) -> Box<dyn Peer> {
        let person = Some(World::person());
        let visitor = new("conn_1".into(), person, query, Limits::default(), world.now);
        Box::new(Self {
            visitor: Box::new(visitor),
            following: None,
            waiting: vec![],
            paired: None,
            spent: BTreeSet::new(),
            is_closed: false,
        })
    }

    fn carry_out(&mut self, world: &mut World, acts: Vec<Act>) {
        for act in acts {
            self.carry_out_one(world, act);
        }
        assert!(self.waiting.len() < WAITING_MAX, "it asks and asks");
    }

    fn carry_out_one(&mut self, world: &mut World, act: Act) {
        let (ticket, answer) = match act {
            Act::Send(frame) => return world.sent(&frame),
            Act::Close { .. } => {
                self.is_closed = true;
                return;
            }
            Act::Follow { session, ticket } => {
                self.following = None;
                return self.waiting.push(Waits::Follow(ticket, session));
            }
            Act::List { ticket } => (ticket, Answer::Listed(world.listings())),
            Act::Glance { session, ticket } => (ticket, Answer::Glanced(world.followed(&session))),
            Act::Figures { ticket } => {
                (ticket, Answer::Figures(Figures { uptime_ms: 1, clients: 1, sessions: 2 }))
            }
            Act::Wish { session, wish, ticket } => {
                let performed = world.say(&session, &Command::Person(World::person(), *wish));
                for event in recorded(&performed) {
                    self.hears(world, &session, event);
                }
                (ticket, Answer::Done(performed.outcome.map_err(Denied::Refused)))
            }
            Act::Launch { ticket, .. } => {
                let failure = Failure::new("no_proxy_connected", "No machine is connected");
                let made = if ticket % 2 == 0 { Ok("sess_1".into()) } else { Err(failure) };
                (ticket, Answer::Launched(made))
            }
            Act::Read { session, after, upto, limit, ticket } => {
                (ticket, Answer::Page(world.page(&session, after, upto, limit)))
            }
            Act::Store { name, media_type, ticket, .. } => {
                let (kind, media_type) = ("file".to_owned(), Some(media_type));
                let stored = Attachment { id: "file_1".into(), name, kind, media_type };
                (ticket, Answer::Stored(Ok(stored)))
            }
            Act::Load { ticket, .. } => (ticket, Answer::Loaded(Ok(Bytes::from_static(b"x")))),
            Act::Pair { code, key, ticket, .. } => (ticket, Answer::Paired(self.pair(&code, key))),
            Act::Recognise { token, ticket } => {
                let key = match token.as_str() {
                    NOBODY => {
                        return self.waiting.push(Waits::Answer(ticket, Answer::Recognised(None)));
                    }
                    sealing::TOKEN => self.paired,
                    sealing::TOKEN_EARLIER => Some(sealing::KEY),
                    _ => None,
                };
                let known = Recognised { principal: World::person(), key, expires_at: None };
                (ticket, Answer::Recognised(Some(Box::new(known))))
            }
            Act::Spend { nonce, ticket, .. } => (ticket, Answer::Spent(self.spent.insert(nonce))),
            Act::Identify { ticket, .. } => (ticket, Answer::Known(Some(World::person()))),
        };
        self.waiting.push(Waits::Answer(ticket, answer));
    }

    fn pair(&mut self, code: &str, key: Option<[u8; 32]>) -> Result<(Principal, String), Failure> {
        if !CODES.contains(&code) {
            return Err(Failure::new("pairing_code_invalid", "no"));
        }
        self.paired = key;
        Ok((World::person(), sealing::TOKEN.to_owned()))
    }
}

impl Peer for Visiting {
    fn start(&mut self, world: &mut World) {
        let acts = self.visitor.on_open(world.now);
        self.carry_out(world, acts);
    }

    fn says(&mut self, world: &mut World, text: &str) {
        let acts = self.visitor.on_text(text, &mut Open, world.now);
        self.carry_out(world, acts);
    }

    fn hears(&mut self, world: &mut World, session: &SessionId, recorded: &Recorded) {
        if self.following.as_ref() == Some(session) && !self.is_closed {
            let mut acts = vec![];
            self.visitor.on_event(recorded, &Encoded::default(), &mut acts);
            self.carry_out(world, acts);
        }
    }

    fn passes(&mut self, world: &mut World, session: &SessionId, passing: &Passing) {
        if self.following.as_ref() == Some(session) && !self.is_closed {
            let mut acts = vec![];
            self.visitor.on_passing(passing, &Encoded::default(), &mut acts);
            self.carry_out(world, acts);
        }
    }

    fn lags(&mut self, world: &mut World) {
        let followed = self.following.as_ref().and_then(|session| world.followed(session));
        if let Some(followed) = followed {
            let acts = self.visitor.on_caught_up(*followed, world.now);
            self.carry_out(world, acts);
        }
    }

    fn ticks(&mut self, world: &mut World) {
        if self.visitor.deadline().is_some_and(|deadline| deadline <= world.now) {
            let acts = self.visitor.on_tick(world.now);
            self.carry_out(world, acts);
        }
    }

    fn answer(&mut self, world: &mut World, chance: &mut Chance, all: bool) {
        while !self.waiting.is_empty() && !self.is_closed {
            let next = self.waiting.remove(chance.place(self.waiting.len()));
            let (ticket, answer) = match next {
                Waits::Answer(ticket, answer) => (ticket, answer),
                Waits::Follow(ticket, session) => {
                    let followed = world.followed(&session);
                    self.following = followed.is_some().then_some(session);
                    (ticket, Answer::Followed(followed))
                }
            };
            let before = self.visitor.principal().cloned();
            let mut acts = self.visitor.on_answer(ticket, answer, world.now);
            if self.visitor.principal() != before.as_ref() {
                acts.extend(self.visitor.on_known(&mut Open, world.now));
            }
            self.carry_out(world, acts);
            if !all {
                return;
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}
