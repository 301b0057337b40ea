//! Loads a session from the ledger, also after a failed commit. It includes what a commit that was
//! reported as failed did record, and leaves out connections that ended meanwhile.

use std::sync::Arc;

use domain::session::status::{DownReason, Health, Reach};
use domain::session::{Change, Command, Session};
use domain::{Sequence, Timestamp};
use store::Fault;
use wire::native::Denied;

use super::outgoing::{DAMAGED_WORDS, denied};
use super::{Batch, Loaded, Outgoing, Owner, UNSEEN_PAGE_EVENTS};
use crate::books::EventsAsked;
use crate::hub::Published;
use crate::load;

/// The relay before this one ended while the session was connected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Restart {
    /// When that relay was last known to be alive.
    pub alive_at: Timestamp,
    /// The session's last event when this relay started. The next event is the disconnect.
    pub head: Sequence,
}

impl Owner {
    /// Loads the session and, before anything else is decided, disconnects it from a connection
    /// that is gone.
    pub(super) async fn load(&mut self, batch: &mut Batch) -> Result<(), Denied> {
        if self.loaded.is_some() {
            return Ok(());
        }
        self.read_ledger().await?;
        self.notice_restart(batch);
        self.notice_lost_connection(batch);
        Ok(())
    }

    async fn read_ledger(&mut self) -> Result<(), Denied> {
        let load = async {
            let loaded = load::load::<Session>(&self.shared.books, &self.id).await?;
            self.show_unseen(&loaded.state).await?;
            Ok::<_, Fault>(loaded)
        };
        let load::Loaded { state: session, epoch, stored_at } = match load.await {
            Ok(loaded) => loaded,
            Err(fault) => return Err(self.unloadable(&fault)),
        };
        let listing = self.shared.directory.get(&self.id);
        let card_deadlines = listing.and_then(|listing| listing.card.deadlines);
        let (told_to, told) = self.left.clone();
        let loaded = Loaded { session, epoch, stored_at, told, told_to, card_deadlines };
        self.loaded = Some(loaded);
        self.gave_up = false;
        Ok(())
    }

    /// A session whose history is damaged refuses by itself. Nothing can be recorded about it, so
    /// lists are told here that it cannot be reached, and why.
    fn unloadable(&mut self, fault: &Fault) -> Denied {
        // What failed for a while is tried again, what is damaged stays so.
        self.gave_up = !matches!(fault, Fault::Corrupt { .. });
        if self.gave_up {
            return denied(fault);
        }
        if let Some(listing) = self.shared.directory.get(&self.id) {
            let mut card = (*listing.card).clone();
            let health = Health::Disconnected;
            if let Reach::Up(via) = &card.status.reach {
                let (since, link) = (self.shared.clock.now(), via.link.clone());
                card.status.reach = Reach::Down { since, link };
            }
            card.status.health = health;
            card.status.trouble = Some((health, DAMAGED_WORDS.to_owned()));
            self.shared.directory.show(&self.id, card);
        }
        denied(fault)
    }

    /// Events that were committed although their commit was reported as failed.
    async fn show_unseen(&self, session: &Session) -> Result<(), Fault> {
        // A session whose first commit was reported as failed is not in the directory.
        let mut shown = self.shared.directory.head(&self.id).unwrap_or_default();
        while shown < session.head() {
            let (stream, upto) = (self.id.clone(), Some(session.head()));
            let ask = EventsAsked { stream, after: shown, upto, limit: UNSEEN_PAGE_EVENTS };
            let page = self.shared.books.events(ask).await?;
            let Some(last) = page.events.last() else { return Ok(()) };
            shown = last.sequence;
            let unseen = page.events.into_iter().map(|recorded| {
                let stored_bytes = store::codec::encode_event(&recorded).len();
                Arc::new(Published::new(self.id.clone(), recorded, stored_bytes))
            });
            let unseen = unseen.collect();
            let card = Some(Box::new(session.card()));
            let mut burst = vec![];
            Outgoing::Events(card, unseen).leave(&self.id, &self.shared, &mut burst);
            self.shared.hub.publish(burst);
        }
        Ok(())
    }

    /// Until the disconnect is recorded, every load finds the head of the start and tries again.
    fn notice_restart(&mut self, batch: &mut Batch) {
        let head = self.loaded.as_ref().map(|loaded| loaded.session.head());
        if let Some(Restart { alive_at, head: head_at_start }) = self.restart
            && head == Some(head_at_start)
        {
            let _ = self.perform(&Command::Relay(Change::Restarted { alive_at }), batch);
        }
    }

    /// The end of a connection may be among what was given up, and nobody tells it again. A
    /// session that seemed reached from then on would keep what waits in it without a deadline.
    fn notice_lost_connection(&mut self, batch: &mut Batch) {
        let via = self.loaded.as_ref().and_then(|loaded| loaded.session.status().via());
        let Some(connection) = via.map(|via| via.connection.clone()) else { return };
        if self.shared.routes.to(&connection).is_some() {
            return;
        }
        let reason = DownReason::ProxyDisconnected;
        let down = Change::Down { connection: Some(connection), reason };
        let _ = self.perform(&Command::Relay(down), batch);
    }
}
