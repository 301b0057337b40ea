//! What must work with every agent, a function each.
//!
//! Not here: which agents there are (`agent`), waiting and asking (`talk`).

mod changes;
mod content;
mod crashes;
mod dialects;
mod earlier;
mod interrupts;
mod notices;
mod steps;
mod talking;
mod tools;
mod waiter;

pub(crate) use changes::{mode_switch, model_switch};
pub(crate) use content::{file_written, long_output, picture_sent, plan};
pub(crate) use crashes::{
    agent_killed, api_error, killed_while_streaming, memory_guard, resume_after_kill,
};
pub(crate) use dialects::all_dialects;
pub(crate) use earlier::{picture_imported, transcript_import};
pub(crate) use interrupts::{interrupt_prompt, interrupt_streaming, interrupt_tool};
pub(crate) use notices::{compaction, limit_told};
pub(crate) use steps::{
    killed_at_attempting, killed_at_heard, killed_at_received, killed_at_settled, killed_at_written,
};
pub(crate) use talking::{plain_streaming, queue, steer};
pub(crate) use tools::{
    always_allow, background_subagent, edited_input, tool_approved, tool_denied,
};
