//! A person of the simulated world with a client of another dialect: the real client machine, on
//! one session.
//!
//! It keeps every frame that it heard, connection by connection, so that the check at the end can
//! hold them against the ledger.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use client::{Seen, Speaker, webchannel};
use domain::{Principal, Role};
use tokio::sync::mpsc;

use crate::credentials::{Credentials, KEY};
use crate::net::End;
use crate::rng::Rng;
use crate::witness::Testimony;

/// The dialects that show one session at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Blob,
    Pi,
    Control,
    Webchannel,
}

impl Dialect {
    pub(crate) const ALL: [Self; 4] = [Self::Blob, Self::Pi, Self::Control, Self::Webchannel];
}

/// One connection, from its dialling to its end.
#[derive(Debug)]
pub(crate) struct Life {
    /// The event after which the client asked to be told everything, if it did.
    pub(crate) after: Option<u64>,
    /// What it heard.
    pub(crate) frames: Vec<Bytes>,
    /// The questions that it was asked.
    pub(crate) asked: Vec<String>,
    /// What the relay meant it to hear.
    pub(crate) testimony: Testimony,
}

/// What a person does.
pub(crate) enum Deed {
    /// A connection is open.
    Dial(End, Testimony),
    /// Says something.
    Send(String),
    /// Decides the first open question.
    Decide(bool),
    /// Stops the run.
    Interrupt,
    /// Drops the connection.
    HangUp,
}

/// A person with a client of another dialect.
pub(crate) struct VisitorNode {
    /// Which.
    pub(crate) dialect: Dialect,
    /// The session that it looks at.
    pub(crate) session: String,
    /// Who it is.
    pub(crate) principal: Principal,
    state: Arc<Mutex<State>>,
    deeds: mpsc::UnboundedSender<Deed>,
    /// What it shows in its address, if it was paired.
    token: Option<String>,
    /// From the revocation of its credential on.
    pub(crate) is_revoked: bool,
}

pub(crate) struct State {
    speaker: Box<dyn Speaker>,
    /// Its connections, the newest last.
    pub(crate) lives: Vec<Life>,
    /// Whether the newest is alive.
    pub(crate) is_connected: bool,
    asked: Vec<String>,
    /// What it said, once each.
    pub(crate) said: Vec<String>,
    /// Frames that came after its credential was revoked and what was on its way had arrived.
    pub(crate) heard_too_much: usize,
    pub(crate) is_cut_off: bool,
}

impl VisitorNode {
    /// A person who looks at this session.
    pub(crate) fn spawn(
        number: usize,
        dialect: Dialect,
        session: &str,
        credentials: &Credentials,
        rng: &mut Rng,
    ) -> Self {
        let name = format!("visitor-{number}");
        let mut principal = Credentials::principal(&name, Role::Operator);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        let mut token = None;
        let speaker: Box<dyn Speaker> = match dialect {
            Dialect::Blob => Box::new(client::blob::Machine::new(session)),
            Dialect::Pi => Box::new(client::pi::Machine::new(Some(session))),
            Dialect::Control => {
                let after = rng.once_in(2).then_some(0);
                let machine = client::control::Machine::new(session, after, rng.once_in(2));
                Box::new(machine.called(&name))
            }
            Dialect::Webchannel if rng.once_in(2) => {
                let (paired, access_token) = credentials.pair(&name);
                principal = paired;
                token = Some(access_token.clone());
                let auth = webchannel::Auth {
                    access_token,
                    key: Some(KEY),
                    expires_in_s: webchannel::TOKEN_LIFETIME_DEFAULT_S,
                };
                Box::new(webchannel::Machine::new(session, Some(auth), seed))
            }
            Dialect::Webchannel => Box::new(webchannel::Machine::let_in(session, seed)),
        };
        let state = Arc::new(Mutex::new(State {
            speaker,
            lives: vec![],
            is_connected: false,
            asked: vec![],
            said: vec![],
            heard_too_much: 0,
            is_cut_off: false,
        }));
        let (deeds, inbox) = mpsc::unbounded_channel();
        tokio::spawn(live(state.clone(), inbox));
        let session = session.to_owned();
        Self { dialect, session, principal, state, deeds, token, is_revoked: false }
    }

    /// Does something.
    pub(crate) fn does(&self, deed: Deed) {
        let _ = self.deeds.send(deed);
    }

    /// What stands behind the question mark of the address that it dials next.
    pub(crate) fn query(&self) -> String {
        let path = self.lock().speaker.path();
        let mut query = path.split_once('?').map_or_else(String::new, |(_, it)| it.to_owned());
        if let Some(token) = &self.token {
            query.push_str("&token=");
            query.push_str(token);
        }
        query
    }

    /// What it remembers.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn live(state: Arc<Mutex<State>>, mut inbox: mpsc::UnboundedReceiver<Deed>) {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let mut end: Option<End> = None;
    loop {
        let said = tokio::select! {
            biased;
            deed = inbox.recv() => match deed {
                None => return,
                Some(Deed::Dial(new, testimony)) => {
                    end = Some(new);
                    lock().open(testimony)
                }
                Some(Deed::Send(text)) => lock().send(text),
                Some(Deed::Decide(allow)) => lock().decide(allow),
                Some(Deed::Interrupt) => lock().speaker.interrupt(),
                Some(Deed::HangUp) => {
                    end = None;
                    vec![]
                }
            },
            frame = receive(end.as_mut()) => if let Some(frame) = frame {
                lock().hear(&frame)
            } else {
                end = None;
                vec![]
            },
        };
        let sent = said.iter().try_for_each(|frame| match end.as_mut() {
            Some(end) => end.send(&Bytes::from(frame.clone())),
            None => Ok(()),
        });
        if sent.is_err() {
            end = None;
        }
        lock().is_connected = end.is_some();
    }
}

impl State {
    fn open(&mut self, testimony: Testimony) -> Vec<String> {
        let path = self.speaker.path();
        let after = path.split_once("from_sequence_num=").map(|(_, rest)| rest);
        let after = after.and_then(|rest| rest.split('&').next()?.parse().ok());
        self.lives.push(Life { after, frames: vec![], asked: vec![], testimony });
        self.asked.clear();
        self.speaker.on_open()
    }

    fn hear(&mut self, frame: &Bytes) -> Vec<String> {
        if self.is_cut_off {
            self.heard_too_much += 1;
        }
        if let Some(life) = self.lives.last_mut() {
            life.frames.push(frame.clone());
        }
        let (seen, said) = self.speaker.on_text(&String::from_utf8_lossy(frame));
        for seen in seen {
            match seen {
                Seen::Asked { id, .. } => {
                    if let Some(life) = self.lives.last_mut() {
                        life.asked.push(id.clone());
                    }
                    self.asked.push(id);
                }
                Seen::Settled { id } => self.asked.retain(|asked| *asked != id),
                Seen::Person(_)
                | Seen::Piece(_)
                | Seen::Agent(_)
                | Seen::Tool(_)
                | Seen::Ended(_)
                | Seen::Trouble(_) => {}
            }
        }
        said
    }

    fn send(&mut self, text: String) -> Vec<String> {
        let frames = self.speaker.send(&text);
        self.said.push(text);
        frames
    }

    fn decide(&mut self, allow: bool) -> Vec<String> {
        let Some(id) = self.asked.first().cloned() else { return vec![] };
        self.speaker.decide(&id, allow)
    }
}

async fn receive(end: Option<&mut End>) -> Option<Bytes> {
    match end {
        Some(end) => end.receive().await,
        None => std::future::pending().await,
    }
}
