//! The relay's server: sockets, the HTTP API, credentials, uploads and metrics.
//!
//! **Invariant**: no token is ever in a log line. **Invariant**: a connection costs bounded memory
//! and bounded time, whatever its peer does.
//!
//! Not here: what sessions do (`domain`), the tasks behind the door (`relay`), frames (`wire`).

mod api;
pub mod auth;
mod behind;
pub mod clock;
mod config;
mod door;
mod house;
mod inside;
mod listen;
mod metrics;
mod records;
mod server;
mod shelf;
pub mod socket;
mod stream;
mod tls;

pub use auth::{Auth, Issued, PairingCode};
pub use behind::{Behind, RandomIds, SystemClock};
pub use config::{Config, DEFAULT_PORT, Limits, NotAPublicUrl, PublicUrl, TlsFiles};
pub use door::{NotAnOrigin, Origin, TOKEN_COOKIE};
pub use inside::{Entrance, Figures, Inside, Opening, Work};
pub use listen::ListenFault;
pub use records::RecordsFault;
pub use server::{Bound, Running, StartFault, bind, pairing_link};
pub use shelf::{Item, Shelf};
pub use tls::TlsFault;

#[cfg(test)]
mod tests;
