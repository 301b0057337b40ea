use serde_json::json;

use super::*;

fn event(kind: &str, frame: Value) -> Event {
    Event { session: "s1".to_owned(), sequence: 1, kind: kind.to_owned(), frame }
}

fn said(id: &str, content: &str) -> Event {
    let message = json!({"message_id": id, "role": "assistant", "content": content});
    event("message_event", json!({"message": message}))
}

fn delta(id: &str, offset: u64, content: &str) -> Value {
    json!({"message_id": id, "part": 0, "kind": "text", "offset": offset, "content": content})
}

#[test]
fn words_stream_in_place_and_the_finished_message_is_not_repeated() {
    let mut view = View::new("s1", true);
    assert_eq!(view.on_delta(&delta("m", 0, "hello ")), "assistant: hello ");
    assert_eq!(view.on_delta(&delta("m", 6, "there")), "there");
    assert_eq!(view.on_event(&said("m", "hello there")), "\n");
}

#[test]
fn a_repeated_delta_shows_only_what_is_new() {
    let mut view = View::new("s1", true);
    view.on_delta(&delta("m", 0, "a😀"));
    assert_eq!(view.on_delta(&delta("m", 0, "a😀b")), "b");
    assert_eq!(view.on_delta(&delta("m", 9, "far")), "");
}

#[test]
fn a_message_that_differs_from_its_draft_is_shown_whole() {
    let mut view = View::new("s1", true);
    view.on_delta(&delta("m", 0, "hel"));
    assert_eq!(view.on_event(&said("m", "hello")), "\nassistant: hello\n");
}

#[test]
fn elsewhere_than_on_a_terminal_nothing_streams() {
    let mut view = View::new("s1", false);
    assert_eq!(view.on_delta(&delta("m", 0, "hel")), "");
    assert_eq!(view.on_event(&said("m", "hello")), "assistant: hello\n");
}

#[test]
fn a_question_says_how_to_answer_it() {
    let prompt = json!({"prompt_id": "p1", "prompt_text": "Run ls?", "timeout_ms": 30_000,
        "default_choice": "no", "choices": [{"choice_id": "yes"}, {"choice_id": "no"}]});
    let told = View::new("s1", false).on_event(&event("permission_prompt", prompt));
    assert_eq!(told, "? Run ls?\n  farhelm answer s1 p1 yes|no   (after 30 s: no)\n");
}

#[test]
fn a_run_that_was_cut_off_says_why_and_how_long_it_lasted() {
    let told = |frame| View::new("s1", false).on_event(&event("run_ended", frame));
    let cut = |lasted_ms: Option<u64>| {
        let mut frame = json!({"outcome": "interrupted", "reason": "Farhelm stopped"});
        if let Some(lasted_ms) = lasted_ms {
            frame["lasted_ms"] = json!(lasted_ms);
        }
        told(frame)
    };
    assert_eq!(cut(None), "- interrupted: Farhelm stopped\n");
    assert_eq!(cut(Some(4_900)), "- interrupted: Farhelm stopped, after 4 s\n");
    assert_eq!(cut(Some(65_000)), "- interrupted: Farhelm stopped, after 1 min 5 s\n");
    assert_eq!(cut(Some(7_260_000)), "- interrupted: Farhelm stopped, after 2 h 1 min\n");
    assert_eq!(told(json!({"outcome": "completed"})), "- completed\n");
}

#[test]
fn something_else_ends_the_line_of_a_draft() {
    let mut view = View::new("s1", true);
    view.on_delta(&delta("m", 0, "hel"));
    let told = view.on_event(&event("session_down", json!({"reason": "proxy_disconnected"})));
    assert_eq!(told, "\n- disconnected (proxy_disconnected)\n");
}

#[test]
fn escape_sequences_of_others_do_not_reach_the_terminal() {
    let mut view = View::new("s1", true);
    assert_eq!(view.on_event(&said("m", "a\u{1b}]0;x\u{7}b")), "assistant: a]0;xb\n");
    assert_eq!(view.on_delta(&delta("n", 0, "\u{1b}[2J")), "assistant: [2J");
}

#[test]
fn an_update_of_a_tool_call_is_shown_under_its_name() {
    let mut view = View::new("s1", false);
    let call = json!({"tool_call_id": "t1", "tool": "Bash", "status": "running"});
    assert_eq!(view.on_event(&event("tool_call", call)), "* Bash [running]\n");
    let update = json!({"tool_call_id": "t1", "status": "completed", "output": "done"});
    assert_eq!(view.on_event(&event("tool_update", update)), "* Bash [completed]\n    | done\n");
}

#[test]
fn a_message_of_several_parts_streams_in_place_and_is_not_repeated() {
    let mut view = View::new("s1", true);
    let thought = json!({"message_id": "m", "part": 0, "kind": "thinking", "offset": 0,
        "content": "hm"});
    let word = json!({"message_id": "m", "part": 1, "kind": "text", "offset": 0, "content": "ok"});
    assert_eq!(view.on_delta(&thought), "(thinking) hm");
    assert_eq!(view.on_delta(&word), "\nassistant: ok");
    let parts = json!([{"kind": "thinking", "text": "hm"}, {"kind": "text", "text": "ok"}]);
    let message = json!({"message_id": "m", "role": "assistant", "content": "ok", "parts": parts});
    assert_eq!(view.on_event(&event("message_event", json!({"message": message}))), "\n");
}

#[test]
fn a_status_is_told_when_it_changes() {
    let mut view = View::new("s1", false);
    let mut told = |status: &str, reason: Option<&str>| {
        view.on_event(&event("session_status", json!({"status": status, "reason": reason})))
    };
    assert_eq!(told("healthy", None), "");
    assert_eq!(told("degraded", Some("slow")), "- degraded: slow\n");
    assert_eq!(told("degraded", None), "");
    assert_eq!(told("healthy", None), "- healthy\n");
}
