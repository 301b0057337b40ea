//! Acting in test panels with real editors, in a real Chromium. Skipped aloud where there is none.

mod controls;
mod dialogs;
mod every_panel;
mod hostile;
mod sending;
mod stage;
