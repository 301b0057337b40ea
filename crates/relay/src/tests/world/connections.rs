//! Clients and machines, each served by a gate of the test's relay.

use std::sync::Arc;

use domain::{Principal, Role};
use serde_json::json;
use wire::visitor::Visitor;

use super::frames::hello;
use super::peer::{Peer, connect};
use super::ports::person;
use super::{PATIENCE, SESSION, World};
use crate::gate::{
    ClientGate, ProxyGate, Rates, Throttles, VisitorGate, serve_client, serve_proxy, serve_visitor,
};

/// The credential of every machine, and its label.
pub(super) const MACHINE: &str = "attic";

impl World {
    fn rates() -> Throttles {
        Throttles::new(Rates { sends_per_10s: u32::MAX, frames_per_minute: u32::MAX })
    }

    /// A native client that was greeted.
    pub(in crate::tests) async fn client(&self, name: &str) -> Peer {
        self.client_with(name, &["runs", "tools", "deltas"]).await
    }

    /// A native client that named these features, or none at all.
    pub(in crate::tests) async fn client_with(&self, name: &str, features: &[&str]) -> Peer {
        let mut client = self.stranger(name);
        client.say(&hello(features)).await;
        client.hear("session_snapshot").await;
        client
    }

    /// A native client that has said nothing yet.
    pub(in crate::tests) fn stranger(&self, name: &str) -> Peer {
        let (near, far) = connect(Some(self.door.of(&name.into())));
        let gate = ClientGate {
            relay: self.relay.clone(),
            throttles: Self::rates(),
            limits: self.settings.clients,
            kick: far.kick.clone(),
        };
        self.tasks.spawn("client", serve_client(gate, near, Some(person(name)), None));
        far
    }

    /// A client in a dialect that looks at one session at a time. Its gate watches its credential.
    pub(in crate::tests) fn visitor(&self, visitor: impl Visitor + 'static) -> Peer {
        let (near, far) = connect(None);
        let gate = VisitorGate {
            relay: self.relay.clone(),
            throttles: Self::rates(),
            door: Arc::new(self.door.clone()),
            kick: far.kick.clone(),
        };
        self.tasks.spawn("visitor", serve_visitor(gate, visitor, near, None));
        far
    }

    /// A proxy that has said nothing yet.
    pub(in crate::tests) fn strange_proxy(&self) -> Peer {
        let (near, far) = connect(Some(self.door.of(&MACHINE.into())));
        let (relay, limits) = (self.relay.clone(), self.settings.proxies);
        let gate = ProxyGate { relay, limits, kick: far.kick.clone() };
        let machine = Principal { role: Role::Proxy, ..person(MACHINE) };
        self.tasks.spawn("proxy", serve_proxy(gate, near, machine, None));
        far
    }

    /// A proxy that was greeted; with a journal if it names one.
    pub(in crate::tests) async fn proxy(&self, link: Option<&str>) -> Peer {
        let mut far = self.strange_proxy();
        let mut greeting = json!({
            "type": "connection_hello", "protocol_version": 1, "peer_role": "proxy",
            "client_name": "agent-proxy", "machine_label": MACHINE,
            "features": ["deltas", "tools", "runs", "resume"],
        });
        if let Some(link) = link {
            greeting["features"] = json!(["link", "deltas", "tools", "runs", "resume"]);
            greeting["link"] = json!({ "id": link });
        }
        far.say(&greeting).await;
        far.hear("connection_ack").await;
        far
    }

    /// A proxy with a journal that has brought up the session.
    pub(in crate::tests) async fn machine(&self) -> Peer {
        self.machine_with(&[SESSION]).await
    }

    pub(in crate::tests) async fn machine_with(&self, sessions: &[&str]) -> Peer {
        let mut proxy = self.proxy(Some("link_1")).await;
        proxy.name(sessions).await;
        for session in sessions {
            self.reached(session).await;
        }
        proxy
    }

    /// A proxy without a journal, as version 1 of the document has it, that has brought up the
    /// session.
    pub(in crate::tests) async fn plain_machine(&self) -> Peer {
        let mut proxy = self.proxy(None).await;
        proxy.name(&[SESSION]).await;
        self.reached(SESSION).await;
        proxy
    }

    /// Waits until a session is reached through a proxy.
    async fn reached(&self, session: &str) {
        let mut live = self.relay.watch();
        while !self.is_reached(session) {
            let _ = tokio::time::timeout(PATIENCE, live.recv()).await.expect("it never came up");
        }
    }

    pub(in crate::tests) fn is_reached(&self, session: &str) -> bool {
        let listing = self.relay.directory().get(&session.into());
        listing.is_some_and(|it| it.card.status.via().is_some())
    }
}
