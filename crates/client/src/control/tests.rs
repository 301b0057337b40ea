use serde_json::{Value, json};

use super::*;

fn asked(id: &str) -> String {
    json!({ "type": "control_request", "request_id": id, "request": {
        "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" },
        "tool_use_id": "t1", "permission_suggestions": [{ "type": "addRules" }],
    } })
    .to_string()
}

fn machine() -> Machine {
    Machine::new("sess_1", None, false)
}

fn allow() -> Permission {
    Permission::Allow { updated_input: None, always: false }
}

// spec: control/clients.1
#[test]
fn a_permission_request_waits_until_it_is_answered_with_its_own_id() {
    let mut client = machine();
    let (heard, reply) = client.on_text(&asked("101"));
    assert!(matches!(heard, Some(Happening::Asked { id, .. }) if id == "101"));
    assert_eq!((reply, client.pending().count()), (None, 1));
    let answer = client.respond("101", allow()).unwrap();
    assert_eq!(
        answer,
        json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": "101",
            "response": { "behavior": "allow", "updatedInput": { "command": "ls" } },
        } })
    );
    assert_eq!(client.pending().count(), 0);
    assert_eq!(client.respond("101", allow()), Err(Unsaid::UnknownRequest));
}

// spec: control/clients.2
#[test]
fn an_answer_may_edit_the_input_or_allow_for_good_or_deny() {
    let answer = |permission| {
        let mut client = machine();
        client.on_text(&asked("1"));
        client.respond("1", permission).unwrap()["response"]["response"].take()
    };
    let input = json!({ "command": "ls -l" });
    let edited = answer(Permission::Allow { updated_input: Some(input.clone()), always: true });
    assert_eq!(edited["updatedInput"], input);
    assert_eq!(edited["updatedPermissions"], json!([{ "type": "addRules" }]));
    let message = "User rejected this command.".to_owned();
    let denied = answer(Permission::Deny { message, interrupt: false });
    assert_eq!(denied, json!({ "behavior": "deny", "message": "User rejected this command." }));
}

// spec: control/clients.3
#[test]
fn what_was_answered_elsewhere_is_no_longer_asked() {
    let mut client = machine();
    client.on_text(&asked("1"));
    let gone = r#"{"type":"control_cancel_request","request_id":"1"}"#;
    assert_eq!(client.on_text(gone).0, Some(Happening::Withdrawn("1".to_owned())));
    assert_eq!(client.on_text(gone), (None, None));
    assert_eq!(client.respond("1", allow()), Err(Unsaid::UnknownRequest));
}

// spec: control/clients.4
#[test]
fn a_request_that_this_client_does_not_know_is_answered_with_an_error() {
    let text = r#"{"type":"control_request","request_id":"9","request":{"subtype":"mcp_message"}}"#;
    let (heard, reply) = machine().on_text(text);
    assert_eq!(heard, None);
    let response = &reply.unwrap()["response"];
    assert_eq!((&response["subtype"], &response["request_id"]), (&json!("error"), &json!("9")));
}

#[test]
fn everything_that_is_no_control_frame_is_a_message_and_told_once() {
    let mut client = machine();
    let text = r#"{"type":"tomorrow","uuid":"u1","x":1}"#;
    assert!(matches!(client.on_text(text).0, Some(Happening::Message(_))));
    assert_eq!(client.on_text(text).0, None, "told again");
    assert_eq!(client.on_text(r#"{"type":"keep_alive"}"#).0, None);
    assert_eq!(client.on_text("no json"), (None, None));
}

// spec: control/clients.5
#[test]
fn what_has_no_fate_is_said_again_on_the_next_connection() {
    let mut client = machine();
    let stop = client.cancel_session().unwrap();
    assert_eq!(stop["request"]["subtype"], "interrupt");
    let said = client.user("m1", "hello").unwrap();
    client.on_text(&asked("1"));
    client.on_text(r#"{"type":"assistant","uuid":"u","sequence_num":7}"#);
    assert_eq!(client.path(), "/ws/control?session=sess_1&from_sequence_num=7");
    assert_eq!(client.again(), [stop.clone(), said]);
    assert_eq!(client.on_text(&asked("1")).0, None, "its person was asked already");
    assert!(!client.is_settled());
    let id = stop["request_id"].as_str().unwrap();
    let done = json!({ "type": "control_response",
        "response": { "subtype": "success", "request_id": id } });
    assert!(matches!(client.on_text(&done.to_string()).0, Some(Happening::Answer(_))));
    client.on_text(r#"{"type":"user","uuid":"m1","isReplay":true}"#);
    assert_eq!(client.again(), [] as [Value; 0]);
    assert!(!client.is_settled(), "its run goes on");
    client.on_text(r#"{"type":"result","uuid":"r"}"#);
    assert!(client.is_settled());
}

#[test]
fn a_message_is_settled_when_the_session_is_idle_although_no_result_came() {
    let mut client = machine();
    client.user("m1", "hello").unwrap();
    let state = |word: &str| {
        json!({ "type": "system", "subtype": "session_state_changed", "state": word }).to_string()
    };
    client.on_text(&state("idle"));
    assert!(!client.is_settled(), "it is not with the agent yet");
    client.on_text(r#"{"type":"user","uuid":"m1","isReplay":true}"#);
    client.on_text(&state("running"));
    client.on_text(&state("requires_action"));
    assert!(!client.is_settled());
    client.on_text(&state("idle"));
    assert!(client.is_settled());
}

#[test]
fn a_message_that_failed_is_settled() {
    let mut client = machine();
    client.user("m1", "hello").unwrap();
    client.on_text(r#"{"type":"result","uuid":"r","user_message_uuid":"m1","is_error":true}"#);
    assert!(client.is_settled());
}

#[test]
fn nobody_waits_for_more_than_can_be_remembered() {
    let mut client = machine();
    for count in 0..UNANSWERED_MAX {
        client.user(&format!("m{count}"), "x").unwrap();
    }
    assert_eq!(client.user("more", "x"), Err(Unsaid::TooMuch));
    for id in 0..100 {
        client.on_text(&asked(&id.to_string()));
    }
    assert_eq!(client.pending().count(), PENDING_MAX);
}

#[test]
fn what_it_hears_is_told_in_the_words_that_all_dialects_share() {
    use crate::{Seen, Speaker as _};
    let mut machine = Machine::new("s", None, true).called("ada");
    let sent: Value = serde_json::from_str(&machine.send("hi")[0]).unwrap();
    assert_eq!(sent["uuid"], "ada-1");
    let mut hear = |frame: Value| crate::Speaker::on_text(&mut machine, &frame.to_string()).0;
    let user = json!({"type": "user", "uuid": "ada-1", "isReplay": true,
        "message": {"role": "user", "content": "hi"}});
    assert_eq!(hear(user), [Seen::Person("hi".to_owned())]);
    let said = json!({"type": "assistant", "uuid": "a", "message": {"content": [
        {"type": "text", "text": "yes"}, {"type": "tool_use", "name": "Bash"}]}});
    assert_eq!(hear(said), [Seen::Agent("yes".to_owned()), Seen::Tool("Bash".to_owned())]);
    let ask = json!({"type": "control_request", "request_id": "p",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}});
    let what = "Bash {\"command\":\"ls\"}".to_owned();
    assert_eq!(hear(ask), [Seen::Asked { id: "p".to_owned(), what }]);
    let gone = json!({"type": "control_cancel_request", "request_id": "p"});
    assert_eq!(hear(gone), [Seen::Settled { id: "p".to_owned() }]);
    let ended = json!({"type": "result", "uuid": "r", "subtype": "error_during_execution"});
    assert_eq!(hear(ended), [Seen::Ended(Some("error_during_execution".to_owned()))]);
    let failed = json!({"type": "result", "uuid": "f", "subtype": "error_during_execution",
        "errors": ["no composer"], "user_message_uuid": "m"});
    assert_eq!(hear(failed), [Seen::Trouble("no composer".to_owned())]);
    assert!(machine.decide("p", true).is_empty(), "it is not open");
}
