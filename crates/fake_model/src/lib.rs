//! Test support: a model that is not one. It answers real agent programs on 127.0.0.1 in the
//! words of Anthropic Messages, `OpenAI` Responses and Chat Completions, and Gemini, scripted by
//! the last thing that the person said, so that a test can make an agent stream, think, call a
//! tool or fail.
//!
//! | the person says | the model |
//! |---|---|
//! | `run: COMMAND` | calls the agent's shell tool (`run: !COMMAND` asks to leave the sandbox) |
//! | `write: PATH` | calls the agent's tool for writing files, with the content `hello` |
//! | `tool: NAME {json}` | calls the named tool with exactly that input |
//! | `plan: A; B; C` | calls the agent's tool for plans or to-do lists |
//! | `big: N` | calls the shell tool with a command that prints N KiB |
//! | `slow: N` | streams N words, slowly enough to be interrupted |
//! | `think: X` | thinks first, then says `thought: X` |
//! | `fail: CODE` | answers with this HTTP status |
//! | `limit: N` | says in its headers that N percent of an allowance are used |
//! | (a tool's result) | says `done: …`, and ` also: …` for words that came with the result |
//! | anything else | says `echo(MODEL): …` |
//!
//! Invariant: nothing here reaches beyond 127.0.0.1, and everything ends with the
//! [`FakeModel`] that started it.
//!
//! Not here: the agents' own protocols (their drivers), installing them (`cargo xtask agents`).

mod api;
pub mod homes;
mod installed;
mod journal;
mod pace;
mod script;
mod server;

pub use installed::{Installed, LIST_VARIABLE};
pub use journal::{End, Seen};
pub use pace::Pace;
pub use server::{FakeModel, Options};
