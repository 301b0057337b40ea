//! Acting in test panels with real editors, in a real Chromium. Skipped aloud where there is none.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "acting/controls.rs"]
mod controls;
#[path = "acting/dialogs.rs"]
mod dialogs;
#[path = "acting/every_panel.rs"]
mod every_panel;
#[path = "acting/hostile.rs"]
mod hostile;
#[path = "acting/sending.rs"]
mod sending;
#[path = "acting/stage.rs"]
mod stage;
