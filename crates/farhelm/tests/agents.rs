//! The real agent programs, through the real proxy and relay, with a real client and a fake model.
//!
//! Each scenario is a test for each agent. Those of real programs are ignored by a plain
//! `cargo test`: `cargo xtask agents` installs the programs, runs them and prints a table.

mod agent;
mod client;
mod installed;
mod record;
mod results;
mod scenarios;
mod stage;
mod talk;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use agent::Agent;
use results::Verdict;

/// Plays a scenario to its end, and notes what came of it.
fn play<F: Future<Output = Verdict>>(
    agent: &'static Agent,
    scenario: fn(&'static Agent) -> F,
    name: &str,
) {
    let version = match agent.home {
        Some(_) => installed::Installed::find(agent.name).version,
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| block_on(scenario(agent))));
    results::note(agent.name, &version, name, outcome.as_ref().ok().copied());
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// A test for each scenario; where a real program is needed, only when asked for.
macro_rules! scenarios {
    (ignored $agent:ident $($scenario:ident)*) => {
        $(
            #[test]
            #[ignore = "needs the real program: cargo xtask agents"]
            fn $scenario() {
                crate::agents::play(&crate::agents::agent::$agent, crate::agents::scenarios::$scenario, stringify!($scenario));
            }
        )*
    };
    ($agent:ident $($scenario:ident)*) => {
        $(
            #[test]
            fn $scenario() {
                crate::agents::play(&crate::agents::agent::$agent, crate::agents::scenarios::$scenario, stringify!($scenario));
            }
        )*
    };
}

macro_rules! real {
    ($module:ident $agent:ident) => {
        mod $module {
            scenarios! { ignored $agent
                plain_streaming tool_approved tool_denied always_allow edited_input
                interrupt_streaming interrupt_prompt interrupt_tool
                model_switch mode_switch queue steer
                picture_sent plan file_written long_output all_dialects
                resume_after_kill killed_while_streaming transcript_import picture_imported api_error agent_killed
                memory_guard limit_told compaction background_subagent
                killed_at_received killed_at_attempting killed_at_written killed_at_heard
                killed_at_settled
            }
        }
    };
}

real! { claude CLAUDE }
real! { codex CODEX }
real! { pi PI }
real! { gemini GEMINI }
real! { opencode OPENCODE }

/// Not tests: they make what other tests play again.
mod recordings {
    macro_rules! recordings {
        ($($name:ident $agent:ident)*) => {
            $(
                #[test]
                #[ignore = "makes a recording: cargo xtask record"]
                fn $name() {
                    crate::agents::block_on(crate::agents::record::record(&crate::agents::agent::$agent));
                }
            )*
        };
    }
    recordings! { claude CLAUDE codex CODEX pi PI gemini GEMINI opencode OPENCODE }
}

/// The stage itself, with the agent that is built in.
mod demo {
    scenarios! { DEMO
        plain_streaming interrupt_streaming interrupt_prompt model_switch queue steer
        resume_after_kill
        killed_at_received killed_at_attempting killed_at_heard killed_at_settled
    }
}
