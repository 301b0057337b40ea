//! An agent that prints at a fixed rate, over ACP on stdin and stdout. Each word carries the time
//! at which it was printed.

use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::trouble::Outcome;

/// Words of one answer.
pub(crate) const WORDS: u32 = 200;
/// 50 a second.
const EVERY: Duration = Duration::from_millis(20);

/// Answers until stdin ends.
pub(crate) fn run() -> Outcome<()> {
    for line in std::io::stdin().lock().lines() {
        let Ok(asked) = serde_json::from_str::<Value>(&line?) else { continue };
        let id = &asked["id"];
        match asked["method"].as_str() {
            Some("initialize") => answer(
                id,
                &json!({
                    "protocolVersion": 1, "agentCapabilities": {"loadSession": false},
                    "authMethods": [],
                }),
            )?,
            Some("session/new") => answer(id, &json!({"sessionId": "stub"}))?,
            Some("session/prompt") => {
                speak()?;
                answer(id, &json!({"stopReason": "end_turn"}))?;
            }
            Some(_) if !id.is_null() => say(&json!({
                "jsonrpc": "2.0", "id": id,
                "error": {"code": -32601, "message": "not supported by the stub agent"},
            }))?,
            _ => {}
        }
    }
    Ok(())
}

fn speak() -> Outcome<()> {
    let begun = Instant::now();
    for number in 0..WORDS {
        let due = begun + EVERY * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let text = format!("at={:020};", now_nanos());
        say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "stub",
            "update": {"sessionUpdate": "agent_message_chunk",
                       "content": {"type": "text", "text": text}},
        }}))?;
    }
    Ok(())
}

fn answer(id: &Value, result: &Value) -> Outcome<()> {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn say(frame: &Value) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{frame}\n").as_bytes())?;
    Ok(out.flush()?)
}

/// The wall clock: the words are read in another process.
pub(crate) fn now_nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
