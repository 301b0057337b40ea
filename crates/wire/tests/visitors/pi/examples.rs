//! Every example of the document, and the transcripts around them.

use super::script::run;

// spec: pi/prompts.1, pi/runs.1, pi/messages.1, pi/messages.3, pi/history.1, pi/queries.1
#[test]
fn a_prompt_and_its_run_as_its_sender_and_another_see_them() {
    run(include_str!("../../../../../fixtures/pi/turn.jsonl"));
}

// spec: pi/prompts.5, pi/history.4
#[test]
fn a_prompt_with_a_picture() {
    run(include_str!("../../../../../fixtures/pi/images.jsonl"));
}

// spec: pi/prompts.2, pi/prompts.3, pi/queue.1, pi/queue.2, pi/queue.3, pi/abort.1, pi/runs.3
#[test]
fn steering_follow_ups_an_abort_and_a_cleared_queue() {
    run(include_str!("../../../../../fixtures/pi/steering.jsonl"));
}

// spec: pi/sessions.2, pi/sessions.3, pi/sessions.4, pi/sessions.5
#[test]
fn sessions_are_listed_and_switched_by_each_client_for_itself() {
    run(include_str!("../../../../../fixtures/pi/sessions.jsonl"));
}

// spec: pi/dialogs.1, pi/dialogs.2, pi/dialogs.4, pi/dialogs.5, pi/dialogs.6
#[test]
fn dialogs_are_confirmed_chosen_and_cancelled() {
    run(include_str!("../../../../../fixtures/pi/dialogs.jsonl"));
}

// spec: pi/tools.1, pi/tools.2, pi/tools.3, pi/runs.2
#[test]
fn a_tool_call_and_what_it_gave() {
    run(include_str!("../../../../../fixtures/pi/tools.jsonl"));
}

#[test]
#[should_panic(expected = "also heard")]
fn a_transcript_that_leaves_something_out_fails() {
    run("a+ session=sess_1\n~ starts run_1");
}

#[test]
#[should_panic(expected = "heard")]
fn a_transcript_that_expects_what_is_not_said_fails() {
    run("a+ session=sess_1\n~ starts run_1\na< {\"type\":\"nonsense\"}");
}
