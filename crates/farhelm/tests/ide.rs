//! Panels of IDEs as sessions: the real binary, a real Chromium, and pages with the landmarks of
//! real panels. Skipped aloud where there is no Chromium.

mod changes;
mod code_server;
mod dialects;
mod faults;
mod figures;
mod foreign;
mod lives;
mod many;
mod opencode;
mod person;
mod sights;
mod stage;
mod starting;
mod talks;
