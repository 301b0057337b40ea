//! A native client that falls behind: it reads what it missed from the ledger, and everything that
//! depends on those events is sent after them.

use serde_json::{Value, json};

use super::numbers;
use crate::tests::world::{Peer, SESSION, World, delta, send};

/// The client stops reading while the agent says more than the ring holds.
async fn miss(world: &World, machine: &mut Peer, slow: &Peer, reports: u64) {
    slow.stop_reading();
    for number in 1..=reports {
        machine.reports(number, "words").await;
        if number == 2 {
            machine.is_acknowledged(number).await;
            world.flood().await;
        }
    }
    machine.is_acknowledged(reports).await;
}

fn is(kind: &str) -> impl Fn(&&Value) -> bool {
    move |frame| frame["type"] == kind
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_too_slow_reads_what_it_missed_once_and_in_order() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut slow = world.client("bob").await;
    let before = world.head();
    miss(&world, &mut machine, &slow, 1_500).await;
    slow.read_again();
    let shown = numbers(&slow.rest().await);
    assert!(world.lagged() > 0, "it never lagged");
    assert!(shown.iter().copied().eq(before + 1..=world.head()), "{shown:?}");
    machine.reports(1_501, "live").await;
    let live = slow.hear("message_event").await;
    assert_eq!(live["sequence"], world.head());
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_is_shown_exactly_what_a_quick_one_with_the_same_features_is_shown() {
    // A client that names none is one of the document's first version.
    for features in [&[] as &[&str], &["runs", "tools", "prompt_resolved", "plan"]] {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut quick = world.client_with("ada", features).await;
        let mut slow = world.client_with("bob", features).await;
        slow.stop_reading();
        let run = json!({ "run_id": "run_1" });
        machine.tells(1, "run_started", &run).await;
        for number in 2..=699 {
            machine.reports(number, "words").await;
        }
        // Its features decide how much of it a client is told.
        let of_run = json!({ "message_id": "a700", "role": "assistant", "content": "words",
            "created_at": "2026-10-01T00:00:00.000Z", "run_id": "run_1" });
        machine.tells(700, "proxy_message", &json!({ "message": of_run })).await;
        machine.say(&delta(0, "more words")).await;
        let call = json!({
            "tool_call_id": "t1", "tool": "Bash", "kind": "execute", "status": "running",
            "title": "make",
        });
        machine.tells(701, "tool_call", &call).await;
        let prompt = json!({
            "prompt_id": "p1", "prompt_text": "Delete build/?",
            "choices": [{ "choice_id": "no", "label": "No", "is_default": true }],
        });
        machine.tells(702, "permission_prompt", &prompt).await;
        machine.tells(703, "permission_prompt_expired", &json!({ "prompt_id": "p1" })).await;
        machine
            .tells(704, "run_ended", &json!({ "run_id": "run_1", "outcome": "completed" }))
            .await;
        machine.is_acknowledged(704).await;
        // Nothing comes after the gap that would show it.
        world.flood().await;
        assert_eq!(world.lagged(), 0, "{features:?}");
        slow.read_again();

        let of_session = |frames: Vec<Value>| -> Vec<Value> {
            frames.into_iter().filter(|frame| frame["session_id"] == SESSION).collect()
        };
        let shown = of_session(slow.rest().await);
        assert!(world.lagged() > 0, "{features:?} never lagged");
        assert_eq!(shown.iter().filter(is("message_event")).count(), 699, "{features:?}");
        assert_eq!(shown.iter().filter(is("permission_prompt")).count(), 1, "{features:?}");
        let has_tools = usize::from(features.contains(&"tools"));
        assert_eq!(shown.iter().filter(is("tool_call")).count(), has_tools, "{features:?}");
        assert_eq!(shown, of_session(quick.rest().await), "{features:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_repeated_send_follows_the_events_that_its_sender_missed() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut slow = world.client("ada").await;
    slow.say(&send("m1", "once")).await;
    let first = slow.hear("message_accepted").await;
    slow.rest().await;
    let before = world.head();
    miss(&world, &mut machine, &slow, 1_200).await;
    // The client knows that it is behind, and the ledger does not answer yet.
    world.hold_commits();
    slow.read_again();
    let early = slow.rest().await;
    assert!(world.lagged() > 0, "it never lagged");
    slow.say(&send("m1", "once")).await;
    assert_eq!(slow.rest().await, [] as [Value; 0]);
    world.commit_again();
    let late = slow.rest().await;
    let accepted: Vec<_> = late.iter().filter(is("message_accepted")).collect();
    assert_eq!(accepted.len(), 1, "{accepted:?}");
    assert_eq!(accepted[0]["sequence"], first["sequence"]);
    let of_session = |frame: &&Value| frame["session_id"] == SESSION;
    assert_eq!(late.iter().rfind(of_session), Some(accepted[0]));
    let shown = numbers(&[early, late].concat());
    assert!(shown.iter().copied().eq(before + 1..=world.head()), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn history_requested_while_catching_up_follows_the_missed_events() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut slow = world.client_with("ada", &["paging"]).await;
    let before = world.head();
    miss(&world, &mut machine, &slow, 600).await;
    world.hold_commits();
    slow.read_again();
    let early = slow.rest().await;
    assert!(world.lagged() > 0, "it never lagged");
    slow.say(&json!({
        "type": "history_request", "protocol_version": 1, "session_id": SESSION,
        "request_id": "h1", "after_sequence": world.head() - 1,
    }))
    .await;
    assert_eq!(slow.rest().await, [] as [Value; 0]);
    world.commit_again();
    let late = slow.rest().await;
    let at = late.iter().position(|frame| frame["request_id"] == "h1").unwrap();
    let shown = numbers(&[&early[..], &late[..at]].concat());
    assert!(shown.iter().copied().eq(before + 1..=world.head()), "{shown:?}");
    assert_eq!(numbers(&late[at..]), [world.head()]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_among_the_missed_events_is_sent_once_and_in_order() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut slow = world.client("ada").await;
    slow.say(&json!({
        "type": "agent_set_model", "protocol_version": 1, "session_id": SESSION,
        "request_id": "r1", "model_id": "large",
    }))
    .await;
    machine.hear("agent_set_model").await;
    slow.rest().await;
    let before = world.head();
    miss(&world, &mut machine, &slow, 600).await;
    let answer = json!({ "request_id": "r1", "command": "agent_set_model", "result": "ok" });
    machine.tells(601, "agent_control_result", &answer).await;
    for number in 602..=700 {
        machine.reports(number, "words").await;
    }
    machine.is_acknowledged(700).await;
    slow.read_again();
    let shown = slow.rest().await;
    assert!(world.lagged() > 0, "it never lagged");
    let answers = shown.iter().filter(is("agent_control_result"));
    assert_eq!(answers.count(), 1);
    let at = shown.iter().position(|frame| frame["request_id"] == "r1").unwrap();
    assert_eq!(numbers(&shown[..at]).last(), Some(&(before + 600)));
    // The answer itself is the event in between.
    assert_eq!(numbers(&shown[at..]).first(), Some(&(before + 602)));
}

/// The message that an agent is writing, as a client puts it together: a delta that does not
/// continue what is there is left out, one from the start replaces it.
fn put_together(frames: &[Value]) -> String {
    let mut text = String::new();
    for frame in frames.iter().filter(is("message_delta")) {
        let offset = frame["offset"].as_u64().unwrap();
        if offset == 0 {
            text.clear();
        }
        if offset == text.len() as u64 {
            text.push_str(frame["content"].as_str().unwrap());
        }
    }
    text
}

#[tokio::test(start_paused = true)]
async fn a_client_that_missed_deltas_has_the_whole_draft_once_it_has_caught_up() {
    // With and without recorded events among what it missed.
    for reports in [0, 600] {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut slow = world.client("bob").await;
        machine.say(&delta(0, "word-1.")).await;
        world.rest().await;
        slow.stop_reading();
        machine.say(&delta(7, "word-2.")).await;
        world.rest().await;
        machine.say(&delta(14, "word-3.")).await;
        world.flood().await;
        for number in 1..=reports {
            machine.reports(number, "words").await;
        }
        machine.say(&delta(21, "word-4.")).await;
        world.rest().await;
        slow.read_again();
        machine.say(&delta(28, "word-5.")).await;
        let mut shown = slow.rest().await;
        assert!(world.lagged() > 0, "it never lagged");
        let whole = "word-1.word-2.word-3.word-4.word-5.";
        assert_eq!(put_together(&shown), whole, "after {reports} reports");

        // It is live again.
        machine.say(&delta(35, "word-6.")).await;
        shown.extend(slow.rest().await);
        assert_eq!(put_together(&shown), format!("{whole}word-6."), "after {reports} reports");
    }
}
