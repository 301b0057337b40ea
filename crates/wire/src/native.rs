//! The native dialect (`docs/spec/native.md`): clients and proxies, `protocol_version` 1.

pub mod proxy_connection;
pub mod proxy_frames;
pub mod shapes;
