//! Routes: the open proxy connections, for the tasks that owe them orders.
//!
//! Not here: deciding what is owed (`domain`), the sockets (`gate`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::content::Failure;
use domain::fleet::Launch;
use domain::session::Order;
use domain::{ConnectionId, SessionId};
use tokio::sync::{Notify, mpsc, oneshot};
use wire::native::shapes::{Conversations, ResumableList};

/// Orders that may wait for one proxy's socket. One that is slower is closed: what it is owed is
/// told again when it comes back.
pub const ORDERS_WAITING_MAX: usize = 4_096;

/// Something for a proxy.
#[derive(Debug)]
pub enum Errand {
    /// A session's order.
    Order(SessionId, Order),
    /// A launch.
    Launch(Box<Launch>),
    /// The conversations that its agents keep are asked for.
    Ask(ResumableList, oneshot::Sender<Result<Conversations, Failure>>),
}

/// The way to one proxy connection.
#[derive(Debug, Clone)]
pub struct Route {
    errands: mpsc::Sender<Errand>,
    kick: Arc<Kick>,
}

/// Ends a connection from outside.
#[derive(Debug, Default)]
pub struct Kick {
    notify: Notify,
    code: Mutex<Option<(u16, &'static str)>>,
}

impl Kick {
    /// Asks the connection to close.
    pub fn close(&self, code: u16, reason: &'static str) {
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, reason));
        self.notify.notify_one();
    }

    /// Waits until it is asked to.
    pub async fn asked(&self) -> (u16, &'static str) {
        loop {
            let asked = *self.code.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(asked) = asked {
                return asked;
            }
            self.notify.notified().await;
        }
    }
}

impl Route {
    /// Sends an errand, or closes the connection that does not keep up.
    pub(crate) fn send(&self, errand: Errand) {
        if self.errands.try_send(errand).is_err() {
            self.kick.close(1013, "too slow to receive orders");
        }
    }
}

/// The open proxy connections.
#[derive(Debug, Default)]
pub struct Routes(Mutex<BTreeMap<ConnectionId, Route>>);

impl Routes {
    /// A proxy's socket is open.
    pub(crate) fn open(
        &self,
        connection: &ConnectionId,
        kick: Arc<Kick>,
    ) -> mpsc::Receiver<Errand> {
        let (errands, waiting) = mpsc::channel(ORDERS_WAITING_MAX);
        self.lock().insert(connection.clone(), Route { errands, kick });
        waiting
    }

    /// It is closed.
    pub(crate) fn close(&self, connection: &ConnectionId) {
        self.lock().remove(connection);
    }

    /// The way to a proxy, if it is there.
    pub(crate) fn to(&self, connection: &ConnectionId) -> Option<Route> {
        self.lock().get(connection).cloned()
    }

    /// Closes a proxy's socket.
    pub(crate) fn kick(&self, connection: &ConnectionId, code: u16, reason: &'static str) {
        if let Some(route) = self.to(connection) {
            route.kick.close(code, reason);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ConnectionId, Route>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
