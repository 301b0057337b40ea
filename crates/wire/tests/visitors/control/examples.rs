//! Every example of the document, and the transcripts around them.

use super::script::run;

// spec: control/permissions.1, control/permissions.2, control/permissions.4
#[test]
fn an_allow_with_the_documents_empty_input_leaves_the_input_as_it_was() {
    run(include_str!("../../../../../fixtures/control/allow.jsonl"));
}

// spec: control/permissions.5
#[test]
fn a_deny_as_the_document_words_it() {
    run(include_str!("../../../../../fixtures/control/deny.jsonl"));
}

// spec: control/interrupt.1, control/interrupt.2
#[test]
fn an_interrupt_with_and_without_a_ticket() {
    run(include_str!("../../../../../fixtures/control/interrupt.jsonl"));
}

// spec: control/messages.2, control/messages.3, control/results.1, control/user.1, control/user.2
#[test]
fn a_turn_as_its_sender_and_another_see_it() {
    run(include_str!("../../../../../fixtures/control/turn.jsonl"));
}

// spec: control/permissions.6, control/permissions.7
#[test]
fn the_first_answer_wins_and_the_others_are_told() {
    run(include_str!("../../../../../fixtures/control/two_clients.jsonl"));
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
