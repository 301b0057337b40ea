//! A visitor's requests to the relay, the ledger and the door.
//!
//! Not here: what happens with the answers (`visitor`).

use std::sync::atomic::Ordering;

use domain::content::Failure;
use domain::fleet::LaunchWish;
use domain::session::{Command, Wish};
use domain::{SessionId, fleet};
use wire::port::{Denied, PageOf};
use wire::visitor::{Act, Answer, Figures, Followed, Visitor};

use super::place::Place;
use super::{Gate, Returned};
use crate::Relay;
use crate::books::EventPage;
use crate::owner::Reply;
use crate::ports::NewFile;

/// Launches of one connection that are waited for. More are refused.
const LAUNCHES_MAX: usize = 16;
/// Times that a session is looked at. A commit that fails meanwhile loses the first look.
const LOOKS_MAX: usize = 2;

impl<V: Visitor> Gate<V> {
    pub(super) async fn perform(&mut self, act: Act) {
        match act {
            Act::Send(frame) => self.frames.push(frame),
            Act::Close { code, reason } => self.close(code, reason),
            Act::List { ticket } => {
                let listed = Answer::Listed(self.relay.listings());
                self.give(ticket, listed);
            }
            Act::Follow { session, ticket } => self.follow(session, ticket),
            Act::Glance { session, ticket } => {
                let relay = self.relay.clone();
                self.later(ticket, async move { Answer::Glanced(look(&relay, &session).await) });
            }
            Act::Figures { ticket } => {
                let figures = Answer::Figures(self.figures());
                self.give(ticket, figures);
            }
            Act::Wish { session, wish, ticket } => self.wish(session, *wish, ticket).await,
            Act::Launch { wish, ticket } => self.launch(*wish, ticket).await,
            Act::Read { session, after, upto, limit, ticket } => {
                let relay = self.relay.clone();
                self.later(ticket, async move {
                    let page = relay.history(&session, after, upto, limit).await;
                    Answer::Page(page.map(page_of))
                });
            }
            Act::Store { name, media_type, bytes, ticket } => {
                let Some(principal) = self.visitor.principal() else { return };
                let by = principal.credential.clone();
                let file = NewFile { name, media_type, bytes, by };
                let stored = self.relay.ports().uploads.store(file);
                self.later(ticket, async move { Answer::Stored(stored.await) });
            }
            Act::Load { attachment, ticket } => {
                let loaded = self.relay.ports().uploads.load(&attachment.id);
                self.later(ticket, async move { Answer::Loaded(loaded.await) });
            }
            Act::Pair { code, name, key, ticket } => {
                let paired = self.door.pair(code, name, key);
                self.later(ticket, async move { Answer::Paired(paired.await) });
            }
            Act::Recognise { token, ticket } => {
                let known = self.door.recognise(token);
                self.later(ticket, async move { Answer::Recognised(known.await.map(Box::new)) });
            }
            Act::Spend { credential, nonce, ticket } => {
                let spent = self.door.spend(credential, nonce);
                self.later(ticket, async move { Answer::Spent(spent.await) });
            }
            Act::Identify { token, ticket } => {
                let known = self.door.identify(token);
                self.later(ticket, async move { Answer::Known(known.await) });
            }
        }
    }

    fn figures(&self) -> Figures {
        let listings = self.relay.listings();
        let reached = listings.iter().filter(|it| it.card.status.via().is_some()).count();
        let clients = self.relay.metrics().clients.load(Ordering::Relaxed);
        Figures {
            uptime_ms: self.now().ms_since(self.relay.started_at()),
            clients: u64::try_from(clients).unwrap_or(0),
            sessions: reached as u64,
        }
    }

    /// Answers in its turn.
    pub(super) fn give(&mut self, ticket: u64, answer: Answer) {
        let _ = self.returns.send(Returned::Answer(ticket, answer, self.budget.ask()));
    }

    fn later(&mut self, ticket: u64, work: impl Future<Output = Answer> + Send + 'static) {
        let (returns, carried) = (self.returns.clone(), self.budget.ask());
        self.relay.ports().tasks.spawn("answer", async move {
            let _ = returns.send(Returned::Answer(ticket, work.await, carried));
        });
    }

    /// Watches first and looks second, so that nothing falls in between.
    pub(super) fn follow(&mut self, session: SessionId, ticket: u64) {
        self.watch();
        let _left = self.watching.replace(self.relay.watchers().one(&session));
        self.place = Some(Place::new(session.clone()));
        self.give_held();
        self.join(session, Some(ticket));
    }

    pub(super) fn watch(&mut self) {
        self.live.get_or_insert_with(|| self.relay.watch());
    }

    pub(super) fn join(&mut self, session: SessionId, ticket: Option<u64>) {
        let (relay, returns) = (self.relay.clone(), self.returns.clone());
        let ticket = ticket.map(|ticket| (ticket, self.budget.ask()));
        self.relay.ports().tasks.spawn("follow", async move {
            let followed = look(&relay, &session).await;
            let _ = returns.send(Returned::Joined(session, ticket, followed));
        });
    }

    async fn wish(&mut self, session: SessionId, wish: Wish, ticket: u64) {
        let Some(principal) = self.visitor.principal().cloned() else {
            let words = "This connection has no credential".to_owned();
            let denied = Denied::Code("unauthorized".into(), words);
            return self.give(ticket, Answer::Done(Err(denied)));
        };
        let (returns, named) = (self.returns.clone(), session.clone());
        let carried = self.budget.ask();
        let reply = Reply::Call(Box::new(move |answer| {
            drop(carried);
            let _ = returns.send(Returned::Done(named, ticket, answer));
        }));
        self.relay.say(&session, Command::Person(principal, wish), reply).await;
    }

    async fn launch(&mut self, mut wish: LaunchWish, ticket: u64) {
        let refused = |code: &str, words: &str| Answer::Launched(Err(Failure::new(code, words)));
        let Some(principal) = self.visitor.principal().cloned() else {
            let words = "This connection has no credential";
            return self.give(ticket, refused("unauthorized", words));
        };
        if self.launches.len() >= LAUNCHES_MAX {
            let words = "This connection is already starting too many sessions";
            return self.give(ticket, refused("rate_limited", words));
        }
        self.watch();
        // Of this connection alone, whatever the client calls it.
        wish.request = format!("{}:{ticket}", self.relay.ports().ids.connection()).into();
        self.launches.insert(wish.request.clone(), ticket);
        let request = wish.request.clone();
        if let Err(denied) =
            self.relay.fleet(fleet::Command::Launch(principal, Box::new(wish))).await
        {
            self.launches.remove(&request);
            let failure = match denied {
                Denied::Refused(refusal) => Failure::new("launch_refused", refusal.to_string()),
                Denied::Failed(words) => Failure::new("internal", words),
                Denied::Code(code, message) => Failure { code, message },
            };
            self.give(ticket, Answer::Launched(Err(failure)));
        }
    }
}

async fn look(relay: &Relay, session: &SessionId) -> Option<Box<Followed>> {
    for _ in 0..LOOKS_MAX {
        if let Some(joined) = relay.glance(session).await {
            let (head, drafts, session) = (joined.head, joined.drafts, session.clone());
            let glance = *joined.glance?;
            return Some(Box::new(Followed { session, head, glance, drafts }));
        }
    }
    None
}

fn page_of(page: EventPage) -> PageOf {
    let EventPage { events, head, first_kept, has_more } = page;
    PageOf { events, head, first_kept, has_more }
}
