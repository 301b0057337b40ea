//! What the relay decides, without I/O. Four verbs: `decide`, `apply`, `owed`, `deadline`.

mod vocabulary;

pub use vocabulary::*;
