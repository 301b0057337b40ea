//! The server, tested through real sockets on loopback.
//!
//! Behind it is a small relay of one session, decided by `domain`. The real relay is tested in its
//! own crate.

mod client;
mod credentials;
mod http;
mod listening;
mod page;
mod pairing;
mod rules;
mod small_relay;
mod sockets;
mod uploads;
mod whole;

use std::sync::Arc;

use domain::{Role, Timestamp};
use store::{CredentialKind, Ledger as _, MemoryDisk};

use self::client::{Ask, Reply};
use self::small_relay::SmallRelay;
use crate::{Auth, Config, Issued, Running, Shelf};

pub(crate) const SESSION: &str = "demo-1";

/// A server that serves, with a token of each role.
pub(crate) struct Knocked {
    pub(crate) running: Running,
    pub(crate) auth: Auth,
    pub(crate) relay: Arc<SmallRelay>,
    pub(crate) owner: Issued,
    pub(crate) operator: Issued,
    pub(crate) viewer: Issued,
    pub(crate) proxy: Issued,
    pub(crate) folder: tempfile::TempDir,
}

impl Knocked {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let auth = Auth::open(MemoryDisk::new().open().unwrap().vault().unwrap()).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut config = Config { listen, ..Config::default() };
        change(&mut config);
        let shelf = Shelf::open(&folder.path().join("uploads"), &auth).await.unwrap();
        let relay = Arc::new(SmallRelay::default());
        let running = crate::bind(config).await.unwrap().serve(auth.clone(), shelf, relay.clone());
        let make = async |role, name| {
            auth.create(CredentialKind::Token, role, name, Timestamp(1)).await.unwrap()
        };
        let (owner, operator) = (make(Role::Owner, "own").await, make(Role::Operator, "op").await);
        let (viewer, proxy) = (make(Role::Viewer, "view").await, make(Role::Proxy, "prox").await);
        Self { running, auth: auth.clone(), relay, owner, operator, viewer, proxy, folder }
    }

    pub(crate) fn ask(&self, method: &str, path: &str) -> Ask {
        Ask::new(self.running.address(), method, path)
    }

    pub(crate) async fn get(&self, path: &str, who: &Issued) -> Reply {
        self.ask("GET", path).bearer(&who.token).send().await
    }

    pub(crate) async fn post(&self, path: &str, who: &Issued, body: &str) -> Reply {
        self.ask("POST", path).bearer(&who.token).body(body).send().await
    }

    pub(crate) fn ws(&self, path: &str) -> String {
        format!("ws://{}{path}", self.running.address())
    }
}
