//! The session apart from its messages: its start, its state, its results.

use domain::content::Usage;
use domain::session::Recorded;
use domain::session::runs::Outcome;
use domain::{MessageId, Timestamp};
use serde_json::{Value, json};

use super::view::View;
use super::{modes, names};

/// What this relay does of what newer clients look for.
const CAPABILITIES: [&str; 2] = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1"];

/// The word for what the session is doing.
pub(super) fn state(word: &str) -> Value {
    json!({ "type": "system", "subtype": "session_state_changed", "state": word })
}

/// The beginning of a run.
pub(super) fn init(view: &View) -> Value {
    json!({
        "type": "system", "subtype": "init", "cwd": view.folder, "tools": [], "mcp_servers": [],
        "model": view.model(), "permissionMode": permission_mode(view), "slash_commands": [],
        "apiKeySource": "none", "output_style": "default", "agents": [], "skills": [],
        "plugins": [], "claude_code_version": env!("CARGO_PKG_VERSION"), "agent": view.agent,
        "capabilities": CAPABILITIES,
    })
}

/// The permission mode changed.
pub(super) fn mode_changed(view: &View) -> Value {
    json!({
        "type": "system", "subtype": "status", "status": null,
        "permissionMode": permission_mode(view),
    })
}

/// The end of a run.
fn result(view: &View, outcome: &Outcome, usage: Option<&Usage>, at: Timestamp) -> Value {
    let run = view.run.as_ref();
    let began_at = run.and_then(|run| run.began_at).unwrap_or(at);
    let duration_ms = match outcome {
        // Its end is told long after it came.
        Outcome::Cut(cut) => cut.lasted_ms.unwrap_or(0),
        Outcome::Completed | Outcome::Interrupted | Outcome::Failed(_) => at.ms_since(began_at),
    };
    let unknown = Usage::default();
    let usage = usage.unwrap_or(&unknown);
    let count = |tokens: Option<u64>| tokens.unwrap_or(0);
    let cached = count(usage.cached_tokens);
    let fresh = count(usage.input_tokens).saturating_sub(cached);
    // Money is told with six digits; the loss beyond them is the dialect's.
    #[expect(clippy::cast_precision_loss, reason = "no run costs a trillionth of that")]
    let cost = count(usage.cost_micro_usd) as f64 / 1_000_000.0;
    let mut frame = json!({
        "type": "result", "duration_ms": duration_ms, "duration_api_ms": duration_ms,
        "num_turns": run.map_or(0, |run| run.messages), "stop_reason": null,
        "total_cost_usd": cost,
        "usage": {
            "input_tokens": fresh, "output_tokens": count(usage.output_tokens),
            "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0,
        },
        "modelUsage": { (view.model()): {
            "inputTokens": fresh, "outputTokens": count(usage.output_tokens),
            "cacheReadInputTokens": cached, "cacheCreationInputTokens": 0,
            "webSearchRequests": 0, "costUSD": cost,
            "contextWindow": view.context.map_or(0, |context| context.window_tokens),
        } },
        "permission_denials": run.map_or(json!([]), |run| json!(run.denials)),
    });
    match outcome {
        Outcome::Completed => {
            frame["subtype"] = json!("success");
            frame["is_error"] = json!(false);
            frame["stop_reason"] = json!("end_turn");
            frame["result"] = json!(last_words(view));
        }
        Outcome::Interrupted => failed(&mut frame, "The run was interrupted", "aborted_streaming"),
        Outcome::Cut(cut) => failed(&mut frame, &cut.why, "aborted_streaming"),
        Outcome::Failed(words) => failed(&mut frame, words, "model_error"),
    }
    frame
}

/// The same of a recorded event, with the uuid that it has whenever it is told: the first is that
/// of the state that follows.
pub(super) fn recorded_result(
    view: &View,
    outcome: &Outcome,
    usage: Option<&Usage>,
    recorded: &Recorded,
) -> Value {
    let mut frame = result(view, outcome, usage, recorded.at);
    frame["uuid"] = json!(names::of_event(&view.session, recorded.sequence, 1));
    frame
}

/// A send that led to nothing, told to its sender alone.
pub(super) fn send_failed(view: &View, send: Option<&MessageId>, words: &str) -> Value {
    let nothing = Outcome::Failed(words.to_owned());
    let mut frame = result(view, &nothing, None, Timestamp(0));
    frame["num_turns"] = json!(0);
    frame["duration_ms"] = json!(0);
    frame["duration_api_ms"] = json!(0);
    frame["permission_denials"] = json!([]);
    frame["user_message_uuid"] = json!(send);
    frame
}

fn failed(frame: &mut Value, words: &str, reason: &str) {
    frame["subtype"] = json!("error_during_execution");
    frame["is_error"] = json!(true);
    frame["errors"] = json!([words]);
    frame["terminal_reason"] = json!(reason);
}

fn permission_mode(view: &View) -> &str {
    view.mode().map_or("default", modes::clients_word)
}

fn last_words(view: &View) -> String {
    let frame = view.run.as_ref().and_then(|run| run.last_words.as_ref());
    let frame = frame.and_then(|frame| serde_json::from_slice::<Value>(frame).ok());
    let text = frame.as_ref().and_then(|it| it["message"]["content"][0]["text"].as_str());
    text.unwrap_or_default().to_owned()
}
