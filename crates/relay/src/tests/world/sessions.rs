//! Sessions without a connection: commands sent directly to their owners, and the ledger's
//! content.

use std::sync::Arc;

use domain::content::{Author, Message, Part};
use domain::session::prompts::{Choice, Expiry, Prompt};
use domain::session::status::{DownReason, Health, Meta, Via};
use domain::session::{Change, Command, Event, Recorded, Report, Word, transcript};
use domain::{Content, Sequence, Timestamp};
use tokio::sync::oneshot;
use wire::native::Denied;

use super::frames::wish;
use super::ports::BEGINNING_MS;
use super::{PATIENCE, SESSION, World};
use crate::owner::Reply;
use crate::ports::Clock as _;

/// The connection of a machine of which there is only the name, and its journal.
pub(in crate::tests) const SOCKET: &str = "socket-1";
const JOURNAL: &str = "journal-1";

impl World {
    /// Says something to a session, which begins to exist if it did not.
    pub(in crate::tests) async fn tell(&self, session: &str, command: Command) {
        let (reply, answer) = oneshot::channel();
        self.relay.tell(&session.into(), command, Reply::Once(reply)).await;
        answer.await.unwrap().unwrap();
    }

    /// A session is reached through a machine of which there is only the name.
    pub(in crate::tests) async fn up(&self, session: &str) {
        self.up_through(session, SOCKET, Some(JOURNAL)).await;
    }

    pub(in crate::tests) async fn up_through(
        &self,
        session: &str,
        connection: &str,
        link: Option<&str>,
    ) {
        let (routes, named) = (self.relay.routes(), connection.into());
        if routes.to(&named).is_none() {
            // What is sent there is lost: nobody takes it.
            drop(routes.open(&named, Arc::default()));
        }
        let via = Via { connection: named, link: link.map(Into::into) };
        let meta = Box::new(Meta::of_agent("demo".into()));
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.tell(session, Command::Relay(up)).await;
    }

    pub(in crate::tests) async fn down(&self, session: &str) {
        let down = Change::Down { connection: None, reason: DownReason::ProxyDisconnected };
        self.tell(session, Command::Relay(down)).await;
    }

    /// A session whose machine was there and is away.
    pub(in crate::tests) async fn away(&self, session: &str) {
        self.up(session).await;
        self.down(session).await;
    }

    pub(in crate::tests) async fn send(&self, session: &str, id: &str) {
        self.try_send(session, id).await.unwrap();
    }

    pub(in crate::tests) async fn try_send(&self, session: &str, id: &str) -> Result<(), Denied> {
        self.relay.command(&session.into(), wish(id)).await.map(drop)
    }

    /// The agent of a session begins to work.
    pub(in crate::tests) async fn runs(&self, session: &str, run: &str) {
        let report = Report::RunStarted { run: run.into(), cause: None };
        self.report_through(session, SOCKET, report).await;
    }

    /// The agent of a session asks its person something.
    pub(in crate::tests) async fn ask(&self, session: &str, prompt: &str, timeout_ms: u64) {
        let choice = Choice {
            id: "no".into(),
            label: "No".into(),
            is_default: true,
            effect: None,
            wants_answers: false,
        };
        let at = self.clock.now().plus_ms(timeout_ms);
        let report = Report::Asked(Prompt {
            id: prompt.into(),
            text: Content::Open("Delete build/?".to_owned()),
            choices: vec![choice],
            expiry: Some(Expiry { at, timeout_ms, choice: Some("no".into()) }),
            detected_at: self.clock.now(),
            run: None,
            detail: None,
        });
        self.report_through(session, SOCKET, report).await;
    }

    /// A machine of which there is only the name reports something.
    pub(in crate::tests) async fn report_through(
        &self,
        session: &str,
        connection: &str,
        report: Report,
    ) {
        let word = Word { connection: connection.into(), position: None, report };
        self.tell(session, Command::Proxy(word)).await;
    }

    /// Everything of a session that the ledger has.
    pub(in crate::tests) async fn ledger(&self, session: &str) -> Vec<Recorded> {
        let (mut all, mut after) = (vec![], Sequence(0));
        loop {
            let page = self.relay.history(&session.into(), after, None, 1_000).await.unwrap();
            let Some(last) = page.events.last() else { return all };
            after = last.sequence;
            all.extend(page.events);
        }
    }

    /// Waits until an event is recorded that nobody asks for.
    pub(in crate::tests) async fn recorded(
        &self,
        session: &str,
        fits: impl Fn(&Recorded) -> bool,
    ) -> Recorded {
        let mut live = self.relay.watch();
        loop {
            if let Some(found) = self.ledger(session).await.into_iter().find(&fits) {
                return found;
            }
            let _ = tokio::time::timeout(PATIENCE, live.recv()).await.expect("it is not recorded");
        }
    }

    /// The texts of the messages that the ledger has of a session, in their order.
    pub(in crate::tests) async fn recorded_texts(&self, session: &str) -> Vec<String> {
        let events = self.ledger(session).await;
        events.iter().filter_map(|recorded| text_of(&recorded.event)).collect()
    }

    pub(in crate::tests) fn head(&self) -> u64 {
        self.relay.directory().head(&SESSION.into()).unwrap_or_default().0
    }

    /// Fills the ring with what is recorded in another session: whoever is not reading now, lags.
    pub(in crate::tests) async fn flood(&self) {
        let text = "x".repeat(1 << 20);
        let whole = crate::hub::RING_BYTES_MAX / 3;
        self.up_through("noise", "noise", None).await;
        self.relay.settle(&"noise".into()).await;
        for number in 0..=whole / text.len() + 1 {
            let said = says(&format!("noise_{number}"), &text);
            self.report_through("noise", "noise", said).await;
        }
    }
}

/// An agent's message.
pub(in crate::tests) fn says(id: &str, text: &str) -> Report {
    let message = Message {
        id: id.into(),
        author: Author::Assistant,
        parts: Content::Open(vec![Part::Text(text.to_owned())]),
        created_at: Timestamp(BEGINNING_MS),
        run: None,
        parent: None,
        digest: None,
    };
    Report::Message { message, has_own_id: true, echo: None }
}

/// The text of a recorded message.
fn text_of(event: &Event) -> Option<String> {
    let Event::Transcript(transcript::Event::Message(message)) = event else { return None };
    let Content::Open(parts) = &message.parts else { return None };
    let [Part::Text(text)] = parts.as_slice() else { return None };
    Some(text.clone())
}

/// Whether the relay gave up what was said because it could not be recorded.
pub(in crate::tests) fn is_failed<T>(answer: &Result<T, Denied>) -> bool {
    matches!(answer, Err(Denied::Failed(_)))
}
