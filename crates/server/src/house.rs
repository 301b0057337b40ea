//! The state that all request handlers share.
//!
//! Not here: how they use it (`api`, `door`, `socket`).

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use crate::auth::Auth;
use crate::config::Limits;
use crate::door::{RefusedPages, Welcome};
use crate::inside::Inside;
use crate::shelf::Shelf;

/// Shared by reference.
#[derive(Clone)]
pub(crate) struct House(Arc<Rooms>);

pub(crate) struct Rooms {
    pub(crate) auth: Auth,
    pub(crate) inside: Arc<dyn Inside>,
    pub(crate) shelf: Shelf,
    pub(crate) welcome: Welcome,
    pub(crate) refused_pages: RefusedPages,
    pub(crate) trusted_proxies: Vec<IpAddr>,
    pub(crate) limits: Limits,
    /// The address that people use, without a slash at its end.
    pub(crate) base: String,
    pub(crate) silent_strangers: Arc<Semaphore>,
    pub(crate) silent_friends: Arc<Semaphore>,
    pub(crate) uploads_at_once: Arc<Semaphore>,
    pub(crate) guests: Arc<Guests>,
    pub(crate) closing: watch::Receiver<bool>,
    pub(crate) started: std::time::Instant,
}

impl House {
    pub(crate) fn new(rooms: Rooms) -> Self {
        Self(Arc::new(rooms))
    }
}

impl Deref for House {
    type Target = Rooms;

    fn deref(&self) -> &Rooms {
        &self.0
    }
}

/// Counts open connections, so that a stop knows when the last one left.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    present: AtomicUsize,
    left: Notify,
}

/// One open connection, whatever becomes of it: held until nothing of it is left.
#[derive(Debug)]
pub(crate) struct Guest {
    guests: Arc<Guests>,
    _place: OwnedSemaphorePermit,
}

impl Guests {
    pub(crate) fn enter(self: &Arc<Self>, place: OwnedSemaphorePermit) -> Guest {
        self.present.fetch_add(1, Ordering::SeqCst);
        Guest { guests: self.clone(), _place: place }
    }

    pub(crate) fn present(&self) -> usize {
        self.present.load(Ordering::SeqCst)
    }

    /// Ends when nobody is left.
    pub(crate) async fn gone(&self) {
        loop {
            let left = self.left.notified();
            if self.present() == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.guests.present.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.guests.left.notify_waiters();
        }
    }
}

/// Ends when the relay stops.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    // Without its sender the relay is over as well.
    let _ = closing.wait_for(|closing| *closing).await;
}
