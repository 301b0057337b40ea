//! What a client gets if the ledger cannot be read for it.

use domain::Refusal;
use serde_json::{Value, json};
use wire::native::{Denied, Output};

use crate::native::rules::{greeted, heard};
use crate::native::script::{covers, said};

fn send(id: &str) -> String {
    json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
        "client_message_id": id, "content": "x", "created_at": "2026-03-19T10:16:30.000Z"})
    .to_string()
}

/// Told after a read that failed, the state could stand before events that the client lacks.
#[test]
fn a_repeated_send_that_waits_for_a_read_is_answered_if_the_read_fails() {
    for (denied, answer) in [
        (
            Denied::Failed("the disk hums".to_owned()),
            json!({"type": "connection_error", "client_message_id": "m",
                "code": "history_not_available"}),
        ),
        (
            Denied::Refused(Refusal::SessionUnknown),
            json!({"type": "message_failed", "client_message_id": "m", "sequence": null,
                "error": {"code": "session_unknown"}}),
        ),
    ] {
        let mut relay = greeted(&[]);
        relay.text("a", &send("m"));
        heard(&mut relay, "a");
        let ask = json!({"type": "history_request", "protocol_version": 1, "request_id": "h",
            "session_id": "sess_1", "after_sequence": 2});
        let now = relay.now;
        let client = relay.clients.get_mut("a").unwrap();
        let mut outputs = client.machine.on_text(&ask.to_string(), &mut client.gauge, now);
        let Some(Output::Read(job)) = outputs.pop() else { panic!("{outputs:?}") };
        relay.text("a", &send("m"));
        assert_eq!(heard(&mut relay, "a"), [] as [Value; 0], "it waits");
        let machine = &mut relay.clients.get_mut("a").unwrap().machine;
        let outputs = machine.on_read_failed(job, denied, now);
        relay.carry_out("a", outputs);
        let told = heard(&mut relay, "a");
        assert_eq!(told.len(), 2, "{told:#?}");
        assert_eq!(told[0]["request_id"], "h");
        assert!(covers(&answer, &told[1]), "{told:#?}");
    }
}

// spec: native/history_request.6
#[test]
fn a_client_that_missed_events_that_are_damaged_goes_on_with_live_events() {
    let mut relay = greeted(&[]);
    relay.text("a", &send("m"));
    heard(&mut relay, "a");
    relay.report_unheard("sess_1", said("lost"), "a");
    relay.is_damaged = true;
    relay.lag("a");
    let told = heard(&mut relay, "a");
    assert_eq!(told.last().unwrap()["code"], "history_not_available", "{told:#?}");
    relay.text("a", &send("m"));
    assert_eq!(heard(&mut relay, "a")[0]["type"], "message_accepted", "its fate is known");
    relay.text("a", &send("n"));
    assert_eq!(heard(&mut relay, "a")[0]["client_message_id"], "n");
}

/// A page that is damaged for ever would otherwise be read again, and fail, for each new event.
#[test]
fn a_client_whose_request_for_history_cannot_be_read_still_gets_live_events() {
    let mut relay = greeted(&[]);
    relay.text("a", &send("m"));
    heard(&mut relay, "a");
    let ask = json!({"type": "history_request", "protocol_version": 1, "request_id": "h",
        "session_id": "sess_1", "after_sequence": 0});
    let now = relay.now;
    let client = relay.clients.get_mut("a").unwrap();
    let mut outputs = client.machine.on_text(&ask.to_string(), &mut client.gauge, now);
    let Some(Output::Read(job)) = outputs.pop() else { panic!("{outputs:?}") };
    let denied = Denied::Failed("the row is damaged".to_owned());
    let outputs = client.machine.on_read_failed(job, denied, now);
    relay.carry_out("a", outputs);
    assert_eq!(heard(&mut relay, "a")[0]["code"], "history_not_available");
    relay.slow_reads = true;
    relay.text("a", &send("n"));
    let told = heard(&mut relay, "a");
    assert_eq!(told[0]["type"], "message_accepted", "it is read nowhere: {told:#?}");
    assert_eq!(told[0]["client_message_id"], "n");
}
