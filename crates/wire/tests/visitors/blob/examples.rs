//! Every example of the document, and the transcripts around them.

use super::script::run;

// spec: blob/connect.1, blob/connect.2, blob/connect.3, blob/requests.3
#[test]
fn the_handshake_as_the_document_words_it() {
    run(include_str!("../../../../../fixtures/blob/connect.jsonl"));
}

// spec: blob/agent.1, blob/agent.2, blob/events.1, blob/events.2, blob/events.3, blob/events.4
#[test]
fn a_message_as_its_sender_and_another_see_it() {
    run(include_str!("../../../../../fixtures/blob/agent.jsonl"));
}

// spec: blob/queue.1, blob/queue.3, blob/cancel.1, blob/cancel.2, blob/cancel.4
#[test]
fn the_line_its_positions_and_what_is_taken_back() {
    run(include_str!("../../../../../fixtures/blob/queue.jsonl"));
}

// spec: blob/sessions.1, blob/sessions.2, blob/sessions.4, blob/sessions.5, blob/status.1
#[test]
fn sessions_are_listed_switched_and_made() {
    run(include_str!("../../../../../fixtures/blob/sessions.jsonl"));
}

// spec: blob/errors.1, blob/errors.3, blob/errors.4
#[test]
fn errors_of_the_three_classes() {
    run(include_str!("../../../../../fixtures/blob/errors.jsonl"));
}

#[test]
#[should_panic(expected = "also heard")]
fn a_transcript_that_leaves_something_out_fails() {
    run("a+ x\na> {\"type\":\"req\",\"id\":\"1\",\"method\":\"x\",\"params\":{}}");
}

#[test]
#[should_panic(expected = "heard")]
fn a_transcript_that_expects_what_is_not_said_fails() {
    run(
        "a+ x\na> {\"type\":\"req\",\"id\":\"1\",\"method\":\"x\",\"params\":{}}\na< {\"id\":\"2\"}",
    );
}
