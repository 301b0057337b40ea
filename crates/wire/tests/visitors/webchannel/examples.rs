//! Every example of the document, and the transcripts around them.

use super::script::run;

// spec: webchannel/envelope.1, webchannel/pairing.1, webchannel/pairing.2, webchannel/errors.1
#[test]
fn pairing_as_the_document_has_it() {
    run(include_str!("../../../../../fixtures/webchannel/pairing.jsonl"));
}

// spec: webchannel/user.1, webchannel/assistant.1, webchannel/assistant.2
#[test]
fn a_conversation_in_plain_words() {
    run(include_str!("../../../../../fixtures/webchannel/plain.jsonl"));
}

// spec: webchannel/user.2, webchannel/sealing.1, webchannel/sealing.2
#[test]
fn a_sealed_conversation_and_a_second_client_with_another_key() {
    run(include_str!("../../../../../fixtures/webchannel/sealed.jsonl"));
}

// spec: webchannel/tools.1, webchannel/tools.2, webchannel/approvals.1, webchannel/approvals.2
#[test]
fn tools_and_approvals_correlated_by_their_request_ids() {
    run(include_str!("../../../../../fixtures/webchannel/tools.jsonl"));
}

// spec: webchannel/errors.1, webchannel/envelope.2
#[test]
fn errors_with_their_codes() {
    run(include_str!("../../../../../fixtures/webchannel/errors.jsonl"));
}

#[test]
#[should_panic(expected = "also heard")]
fn a_transcript_that_leaves_something_out_fails() {
    run("a+ token=fh_owner\n~ says m1 words");
}

#[test]
#[should_panic(expected = "heard")]
fn a_transcript_that_expects_what_is_not_said_fails() {
    run("a+ token=fh_owner\n~ says m1 words\na< {\"type\":\"nonsense\"}");
}
