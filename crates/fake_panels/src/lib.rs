//! Test support: panels that are none. Pages with the landmarks of each agent's panel, made of
//! real editors (React, `ProseMirror`, Lexical, Monaco), served on two loopback origins, and a
//! real browser to show them in.
//!
//! | in the composer | the panel |
//! |---|---|
//! | `slow: N` | streams N words, slowly enough to be stopped |
//! | `ask: TEXT` | asks TEXT in a dialog and says `chose: LABEL` |
//! | anything else | says `echo: …` |
//!
//! Switches of an address, joined by `&`: `instance=NAME` (what the journal calls it),
//! `title=`, `conversation=`, `rows=N` (earlier rows), `draft=TEXT`, `sticky=TEXT` (stays in
//! the composer), `ask=TEXT` (a dialog from the start), and `mutate=A,B,…`:
//!
//! | mutation | what is wrong |
//! |---|---|
//! | `rename-send`, `drop-send`, `drop-composer` | the panel was changed by an update |
//! | `login` | a person has to log in |
//! | `slow` | the panel appears after 1.5 s |
//! | `virtual` | only the last six rows are in the document |
//! | `dup-dialog` | a dialog is in the document twice |
//! | `swap-on-hover` | a dialog becomes another one when the mouse comes |
//! | `stuck-dialog` | a dialog stays after its answer |
//! | `reload` | the document reloads in the middle of its first answer |
//! | `swallow-send` | sending does nothing |
//! | `refuse-twice`, `refuse` | a message is not taken, and a line says so |
//! | `slow-send` | the composer is emptied after 1.5 s |
//! | `keep-text` | sent, but the text stays in the composer |
//! | `reload-on-send` | sent, and the document is gone |
//!
//! A test can do more with a `panel:do` event at the document, whose detail is JSON text:
//! `{"do":"say","role":"assistant","text":…}`, `{"do":"ask","text":…}`, `{"do":"swap","text":…}`,
//! `{"do":"withdraw"}`, `{"do":"busy","busy":true}`, `{"do":"draft","text":…}`,
//! `{"do":"drop-composer"}`, `{"do":"rename-send"}`, `{"do":"title","title":…}`,
//! `{"do":"reload"}`. Events cross worlds.
//!
//! What happens in a panel is told to the server and found in its journal ([`Panels::journal`]):
//! `ready`, `sent`, `emptied`, `swallowed`, `refused`, `pasted`, `asked`, `answered`, `stopped`,
//! `model`, `new_chat`, `busy`, and every `pointerdown` and `click` with its label, whether it was trusted,
//! whether it was within a dialog, and whether the page was hidden then.
//!
//! Invariant: nothing here reaches beyond this machine but `npm ci` for the editors, and
//! everything ends with the value that started it.
//!
//! Not here: speaking with the browser (`cdp`), what is done in the panels (`proxy`).

mod chromium;
mod editors;
mod server;
mod untried;

pub use chromium::{CHROMIUM_VARIABLE, Chromium};
pub use server::{Entry, PANELS, Panels};
pub use untried::{UNTRIED_VARIABLE, untried};
