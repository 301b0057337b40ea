//! stub
#![expect(missing_docs, reason="stub")]
pub mod native {
    use std::sync::{Arc, OnceLock};
    use bytes::Bytes;
    use domain::*; use domain::session::*; use domain::fleet::*; use domain::passing::*;
    #[derive(Debug, Clone)] pub struct Limits;
    pub trait Throttle { fn frame(&mut self, now: Timestamp) -> bool; fn send(&mut self, now: Timestamp) -> bool; }
    #[derive(Debug)] pub struct Asked;
    #[derive(Debug)] pub enum Output { Send(Bytes), Session { session: SessionId, wish: Wish, asked: Asked }, Launch { wish: LaunchWish, asked: Asked }, Join, Read(ReadJob), Drafts(SessionId), Close { code: u16, reason: &'static str } }
    #[derive(Debug)] pub struct ReadJob { pub session: SessionId, pub after: Sequence, pub upto: Option<Sequence>, pub limit: usize }
    pub struct Welcome { pub sessions: Vec<Listing>, pub launches: Vec<Launch> }
    #[derive(Debug, Clone)] pub struct Listing { pub id: SessionId, pub head: Sequence, pub card: Arc<Card> }
    #[derive(Debug, Clone)] pub enum Denied { Refused(Refusal), Failed(String), Code(FailureCode, String) }
    pub struct PageOf { pub events: Vec<session::Recorded>, pub head: Sequence, pub first_kept: Sequence, pub has_more: bool }
    #[derive(Debug, Default)] pub struct Cache { pub a: OnceLock<Option<Bytes>> }
    pub struct ClientConnection { p: Option<Principal> }
    impl ClientConnection {
      pub fn new(_c: ConnectionId, p: Option<Principal>, _l: Limits, _now: Timestamp) -> Self { Self{p} }
      pub fn principal(&self) -> Option<&Principal> { self.p.as_ref() }
      pub fn on_text(&mut self, _t:&str, _h:&mut dyn Throttle, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_welcome(&mut self, _w: Welcome, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_event(&mut self, _s:&SessionId, _r:&session::Recorded, _c:&Cache, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_fleet(&mut self, _r:&fleet::Recorded, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_passing(&mut self, _s:&SessionId, _p:&Passing, _c:&Cache) -> Vec<Output> { vec![] }
      pub fn on_drafts(&mut self, _s:&SessionId, _a: Sequence, _d: Vec<Delta>) -> Vec<Output> { vec![] }
      pub fn on_page(&mut self, _j: ReadJob, _p: PageOf, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_read_failed(&mut self, _j: ReadJob, _d: Denied, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_denied(&mut self, _a: Asked, _d: Denied, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_lag(&mut self, _h:&dyn Fn(&SessionId)->Option<Sequence>, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn on_tick(&mut self, _n: Timestamp) -> Vec<Output> { vec![] }
      pub fn deadline(&self) -> Timestamp { Timestamp(0) }
    }
    pub enum ProxyOutput { Send(Bytes), Close{code: u16, reason: &'static str}, Connected { machine: Option<MachineLabel>, link: Option<LinkId>, offer: Offer }, Named { named: Vec<Named> }, Report { session: SessionId, number: Option<u64>, report: Report }, Passing { session: SessionId, delta: Delta }, Launched { number: Option<u64>, request: RequestId, session: SessionId }, LaunchFailed { number: Option<u64>, request: RequestId, failure: content::Failure }, Done { number: u64 } }
    pub struct ProxyConnection;
    impl ProxyConnection {
      pub fn new(_c: ConnectionId, _p: Principal, _l: Limits, _now: Timestamp) -> Self { Self }
      pub fn on_text(&mut self, _t:&str, _n: Timestamp) -> Vec<ProxyOutput> { vec![] }
      pub fn on_connected(&mut self, _r: Option<u64>, _n: Timestamp) -> Vec<ProxyOutput> { vec![] }
      pub fn on_order(&mut self, _s:&SessionId, _o:&Order, _n: Timestamp) -> Bytes { Bytes::new() }
      pub fn on_launch(&mut self, _o:&Launch, _n: Timestamp) -> Bytes { Bytes::new() }
      pub fn on_ack(&self, _t: u64) -> Bytes { Bytes::new() }
      pub fn on_tick(&mut self, _n: Timestamp) -> Vec<ProxyOutput> { vec![] }
      pub fn deadline(&self) -> Timestamp { Timestamp(0) }
    }
}
