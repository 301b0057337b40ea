//! The relay's end of a proxy connection: the document's examples, plain proxies, and our own
//! proxy.

use domain::content::{Author, Part};
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::status::{CloseReason, Health};
use domain::{Content, Sequence};
use serde_json::{Value, json};

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../fixtures/native/", $name, ".json"))
    };
}

// spec: native/connection_hello.1
// spec: native/connection_hello.2
// spec: native/connection_ack.1
#[test]
fn the_documents_hello_is_greeted() {
    let mut proxy = new(Some(Role::Proxy));
    let outputs = proxy.on_text(fixture!("connection_hello_2"), Timestamp(5));
    let machine = Some("Robert-Windows".into());
    let expected = ProxyOutput::Connected { machine, link: None, offer: Offer::default() };
    assert_eq!(outputs, [expected]);
    let ack = json(&proxy.on_connected(Some(9), Timestamp(0)));
    let told = json!({
        "type": "connection_ack", "protocol_version": 1, "connection_id": "conn_1",
        "server_ts": "1970-01-01T00:00:00.000Z",
        "heartbeat_interval_ms": 10_000, "heartbeat_timeout_ms": 30_000,
    });
    assert_eq!(ack, told);
}

// spec: native/connection_ack.6
// spec: native/extensions.1
#[test]
fn our_own_proxy_gets_the_features_that_both_speak() {
    let mut proxy = new(Some(Role::Proxy));
    let hello = r#"{"type":"connection_hello","protocol_version":1,"peer_role":"proxy","client_name":"farhelm","machine_label":"attic",
        "features":["link","deltas","telepathy"],"link":{"id":"L1"},"catalog":{"agents":["demo"],"workspaces":["/kite"]}}"#;
    let outputs = proxy.on_text(hello, Timestamp(0));
    let offer = Offer {
        agents: Some(vec!["demo".into()]),
        workspaces: vec!["/kite".to_owned()],
        details: vec![],
        limits: None,
    };
    let expected =
        ProxyOutput::Connected { machine: Some("attic".into()), link: Some("L1".into()), offer };
    assert_eq!(outputs, [expected]);
    assert!(proxy.has_link());
    let ack = json(&proxy.on_connected(Some(9), Timestamp(0)));
    assert_eq!(ack["features"], json!(["link", "deltas"]));
    assert_eq!(ack["link"], json!({ "received": 9 }));
}

#[test]
fn a_link_without_its_feature_is_none() {
    let mut proxy = new(Some(Role::Proxy));
    let hello = r#"{"type":"connection_hello","protocol_version":1,"peer_role":"proxy","client_name":"x","link":{"id":"L1"}}"#;
    proxy.on_text(hello, Timestamp(0));
    assert!(!proxy.has_link());
}

// spec: native/protocol_version.2
#[test]
fn another_version_is_refused_and_the_socket_closed() {
    for version in ["2", "\"1\"", "null"] {
        let mut proxy = new(Some(Role::Proxy));
        let hello = format!(
            r#"{{"type":"connection_hello","protocol_version":{version},"peer_role":"proxy","client_name":"x"}}"#
        );
        let outputs = proxy.on_text(&hello, Timestamp(0));
        assert_eq!(told_code(&outputs[0]), "protocol_version_unsupported", "{version}");
        assert!(matches!(outputs[1], ProxyOutput::Close { .. }));
        assert_eq!(proxy.on_text(&hello, Timestamp(0)), []);
    }
}

// spec: native/connection_hello.3
#[test]
fn a_first_frame_that_is_no_valid_hello_ends_the_connection() {
    for wrong in [
        fixture!("proxy_status").to_owned(),
        r#"{"type":"connection_hello","protocol_version":1,"client_name":"x"}"#.to_owned(),
        r#"{"type":"connection_hello","protocol_version":1,"peer_role":"proxy"}"#.to_owned(),
        fixture!("connection_hello_1").to_owned(),
        "[1]".to_owned(),
    ] {
        let mut proxy = new(Some(Role::Proxy));
        let outputs = proxy.on_text(&wrong, Timestamp(0));
        assert_eq!(told_code(&outputs[0]), "invalid_message", "{wrong}");
        assert!(matches!(outputs[1], ProxyOutput::Close { code: 1002, .. }));
    }
}

// spec: native/connection_hello.7
#[test]
fn only_a_credential_of_role_proxy_lets_a_proxy_in() {
    for role in [None, Some(Role::Owner), Some(Role::Operator), Some(Role::Viewer)] {
        let mut proxy = new(role);
        let outputs = proxy.on_text(fixture!("connection_hello_2"), Timestamp(0));
        assert_eq!(told_code(&outputs[0]), "unauthorized", "{role:?}");
        assert!(matches!(outputs[1], ProxyOutput::Close { code: CLOSE_FORBIDDEN, .. }));
    }
}

// spec: native/connection_hello.4
#[test]
fn without_hello_the_connection_ends_after_ten_seconds() {
    let mut proxy = new(Some(Role::Proxy));
    assert_eq!(proxy.deadline(), Timestamp(10_000));
    assert_eq!(proxy.on_tick(Timestamp(9_999)), []);
    let close = ProxyOutput::Close { code: CLOSE_NO_HELLO, reason: "no hello in time" };
    assert_eq!(proxy.on_tick(Timestamp(10_000)), [close]);
}

// spec: native/heartbeat.2
#[test]
fn any_frame_is_a_sign_of_life_and_silence_ends_the_connection() {
    let mut proxy = plain();
    proxy.on_text("{}", Timestamp(20_000));
    assert_eq!(proxy.on_tick(Timestamp(49_999)), []);
    let close = ProxyOutput::Close { code: CLOSE_STALE, reason: "no frame in time" };
    assert_eq!(proxy.on_tick(Timestamp(50_000)), [close]);
    assert_eq!(proxy.on_text(fixture!("heartbeat"), Timestamp(50_001)), []);
}

// spec: native/heartbeat.1
#[test]
fn a_heartbeat_is_answered_with_its_request_and_connection() {
    let ProxyOutput::Send(frame) = only(plain().on_text(fixture!("heartbeat"), Timestamp(0)))
    else {
        panic!("an answer")
    };
    let answer = json(&frame);
    assert_eq!(answer["type"], "heartbeat_ack");
    assert_eq!(
        (&answer["request_id"], &answer["connection_id"]),
        (&json!("hb_123"), &json!("conn_1"))
    );
}

// spec: native/proxy_session_snapshot.1
#[test]
fn the_documents_snapshot_names_its_session() {
    let output = only(plain().on_text(fixture!("proxy_session_snapshot"), Timestamp(0)));
    let ProxyOutput::Named { named } = output else { panic!("{output:?}") };
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].session, Some("sess_123".into()));
    assert_eq!(named[0].meta.signature, Some("sig_abc".into()));
    assert_eq!(named[0].health, Health::Healthy);
}

// spec: native/proxy_message.1
#[test]
fn a_message_without_an_id_gets_one_and_is_known_by_its_digest() {
    let mut proxy = plain();
    let first = message_of(only(proxy.on_text(fixture!("proxy_message"), Timestamp(0))));
    let again = message_of(only(proxy.on_text(fixture!("proxy_message"), Timestamp(0))));
    assert_eq!(first.author, Author::Assistant);
    assert_eq!(first.parts, Content::Open(vec![Part::Text("Done.".to_owned())]));
    assert_ne!(first.id, again.id);
    assert_eq!(first.digest, again.digest);
    assert!(first.digest.is_some());
    let other = fixture!("proxy_message").replace("Done.", "Done!");
    assert_ne!(message_of(only(proxy.on_text(&other, Timestamp(0)))).digest, first.digest);
}

#[test]
fn a_message_with_an_id_keeps_it_and_needs_no_digest() {
    let named = fixture!("proxy_message").replace(r#""role""#, r#""message_id": "a7", "role""#);
    let output = only(plain().on_text(&named, Timestamp(0)));
    let ProxyOutput::Report { report: Report::Message { message, has_own_id, echo }, .. } = output
    else {
        panic!("{output:?}")
    };
    assert_eq!((message.id, message.digest), ("a7".into(), None));
    assert!(has_own_id);
    assert_eq!(echo, None);
}

#[test]
fn a_persons_message_may_be_the_echo_of_a_send() {
    let typed = fixture!("proxy_message").replace("assistant", "user");
    let output = only(plain().on_text(&typed, Timestamp(0)));
    let ProxyOutput::Report { report: Report::Message { echo, .. }, .. } = output else {
        panic!("{output:?}")
    };
    assert_eq!(echo, Some(crate::native::shapes::echo_digest("Done.")));
}

// spec: native/proxy_send_result.1
#[test]
fn the_documents_send_results_are_delivered_and_failed() {
    let (_, delivered) = report(fixture!("proxy_send_result_1"));
    let id = MessageId::from("msg_cli_123");
    assert_eq!(delivered, Report::SendDelivered { id: id.clone(), attempt: None, run: None });
    let (_, failed) = report(fixture!("proxy_send_result_2"));
    let words = "Could not locate the active send button";
    let failure = Failure::new("send_button_not_found", words);
    assert_eq!(failed, Report::SendFailed { id, attempt: None, failure });
}

// spec: native/proxy_status.1
#[test]
fn the_documents_status_is_read() {
    let (session, report) = report(fixture!("proxy_status"));
    assert_eq!(session, "sess_123".into());
    let Report::Status { health, activity, .. } = report else { panic!("{report:?}") };
    assert_eq!((health, activity.unwrap().kind.as_str()), (Health::Degraded, "thinking"));
}

// spec: native/permission_prompt_relay_behavior.5
#[test]
fn the_documents_prompt_expires_after_its_timeout_from_when_it_was_received() {
    let output = only(plain().on_text(fixture!("permission_prompt"), Timestamp(7_000)));
    let ProxyOutput::Report { report: Report::Asked(prompt), .. } = output else {
        panic!("{output:?}")
    };
    let expiry = prompt.expiry.unwrap();
    assert_eq!((expiry.at, expiry.choice), (Timestamp(37_000), Some("no".into())));
    assert_eq!(prompt.choices.len(), 3);
}

// spec: native/agent_control_result.3
// spec: native/agent_control_result.4
#[test]
fn a_control_result_is_read_in_either_form() {
    let ok = Report::ControlResult { request: "intr_abc".into(), failure: None };
    assert_eq!(report(fixture!("agent_control_result_1")).1, ok);
    let (_, failed) = report(fixture!("agent_control_result_2"));
    let Report::ControlResult { failure: Some(failure), .. } = failed else { panic!("failed") };
    assert_eq!(failure.code, "agent_not_active".into());
    let short = r#"{"type":"agent_control_result","protocol_version":1,"request_id":"r","session_id":"sess_1","command":"agent_interrupt","result":"failed","error_code":"agent_not_active"}"#;
    let (_, failed) = report(short);
    let failure = Some(Failure::new("agent_not_active", ""));
    assert_eq!(failed, Report::ControlResult { request: "r".into(), failure });
}

#[test]
fn the_documents_configuration_closing_and_expiry_are_read() {
    let (_, config) = report(fixture!("agent_config"));
    let Report::Config(config) = config else { panic!("{config:?}") };
    assert_eq!(config.model, "claude-opus-4-6".into());
    assert_eq!(config.can("permission_mode_change"), Some(false));
    let (_, closed) = report(fixture!("session_closed"));
    let request = Some("close_xyz789".into());
    assert_eq!(closed, Report::Closed { reason: CloseReason::UserRequested, request });
    let (_, gone) = report(fixture!("permission_prompt_expired"));
    assert_eq!(gone, Report::PromptGone("prompt_abc".into()));
}

// spec: native/session_launch_ack.5
// spec: native/session_launch_failed.3
#[test]
fn a_launch_result_without_its_fields_is_invalid() {
    for (frame, field) in [
        (fixture!("session_launch_ack"), r#""request_id": "launch_abc123","#),
        (fixture!("session_launch_ack"), r#""session_id": "sess_new456","#),
        (fixture!("session_launch_failed"), r#""request_id": "launch_abc123","#),
    ] {
        assert!(frame.contains(field));
        let outputs = plain().on_text(&frame.replace(field, ""), Timestamp(0));
        assert_eq!(told_code(&outputs[0]), "invalid_message", "without {field}");
    }
    let unexplained = fixture!("session_launch_failed").replace("error_code", "excuse");
    assert_eq!(told_code(&plain().on_text(&unexplained, Timestamp(0))[0]), "invalid_message");
}

// spec: native/permission_prompt.3
// spec: native/permission_prompt.5
#[test]
fn a_prompt_without_its_fields_or_with_a_strange_default_is_invalid() {
    let prompt: Value = serde_json::from_str(fixture!("permission_prompt")).unwrap();
    let mut wrong = vec![];
    for field in ["session_id", "prompt_id", "prompt_text", "choices"] {
        let mut without = prompt.clone();
        without.as_object_mut().unwrap().remove(field);
        wrong.push(without);
    }
    for field in ["choice_id", "label", "is_default"] {
        let mut without = prompt.clone();
        without["choices"][0].as_object_mut().unwrap().remove(field);
        wrong.push(without);
    }
    let mut empty = prompt.clone();
    empty["choices"] = json!([]);
    wrong.push(empty);
    let mut strange = prompt.clone();
    strange["default_choice"] = json!("never");
    wrong.push(strange);
    for frame in wrong {
        let outputs = plain().on_text(&frame.to_string(), Timestamp(0));
        assert_eq!(told_code(&outputs[0]), "invalid_message", "{frame}");
    }
    assert!(matches!(report(&prompt.to_string()).1, Report::Asked(_)));
}

// spec: native/agent_config.3
#[test]
fn a_configuration_needs_its_model_and_nothing_else() {
    let config = r#"{"type":"agent_config","protocol_version":1,"session_id":"sess_1","model_id":"unknown"}"#;
    let (_, told) = report(config);
    let Report::Config(told) = told else { panic!("{told:?}") };
    assert_eq!(
        (told.model, told.permission_mode, told.available_models),
        ("unknown".into(), None, None)
    );
    assert!(told.capabilities.is_empty());
    let without = config.replace(r#","model_id":"unknown""#, "");
    assert_eq!(told_code(&plain().on_text(&without, Timestamp(0))[0]), "invalid_message");
}

#[test]
fn the_documents_launch_results_are_read() {
    let launched = only(plain().on_text(fixture!("session_launch_ack"), Timestamp(0)));
    let (request, session) = ("launch_abc123".into(), "sess_new456".into());
    assert_eq!(launched, ProxyOutput::Launched { number: None, request, session });
    let failed = only(plain().on_text(fixture!("session_launch_failed"), Timestamp(0)));
    let request = "launch_abc123".into();
    let failure = Failure::new("agent_not_open", "Antigravity is not running");
    assert_eq!(failed, ProxyOutput::LaunchFailed { number: None, request, failure });
}

// spec: native/transport.4
// spec: native/connection_roles.1
#[test]
fn what_a_proxy_cannot_say_is_answered_and_the_socket_stays_open() {
    let mut proxy = plain();
    for (wrong, request) in [
        (fixture!("launch_session").to_owned(), Some("launch_abc123")),
        (r#"{"type":"news","protocol_version":1,"request_id":"r1"}"#.to_owned(), Some("r1")),
        (fixture!("proxy_status").replace(r#""session_id": "sess_123","#, ""), None),
        (fixture!("proxy_status").replace(r#""protocol_version": 1,"#, ""), None),
        (fixture!("proxy_status").replace("degraded", "tired"), None),
        ("[]".to_owned(), None),
        ("{}".to_owned(), None),
    ] {
        let outputs = proxy.on_text(&wrong, Timestamp(0));
        assert_eq!(outputs.len(), 1, "{wrong}");
        assert_eq!(told_code(&outputs[0]), "invalid_message", "{wrong}");
        let ProxyOutput::Send(frame) = &outputs[0] else { panic!("told") };
        assert_eq!(json(frame).get("request_id").and_then(Value::as_str), request, "{wrong}");
    }
    assert!(matches!(
        only(proxy.on_text(fixture!("proxy_status"), Timestamp(0))),
        ProxyOutput::Report { .. }
    ));
}

// spec: native/transport.1
#[test]
fn text_that_is_not_json_closes_the_socket() {
    let close = ProxyOutput::Close { code: CLOSE_NOT_JSON, reason: "not JSON" };
    assert_eq!(plain().on_text("{", Timestamp(0)), [close]);
}

#[test]
fn an_error_is_not_answered_with_an_error() {
    assert_eq!(plain().on_text(fixture!("connection_error"), Timestamp(0)), []);
}

#[test]
fn numbers_are_read_from_proxies_that_count_and_ignored_from_others() {
    let numbered = fixture!("proxy_status").replace("{\n", "{ \"link_number\": 4,\n");
    let number = |proxy: &mut ProxyConnection| {
        let output = only(proxy.on_text(&numbered, Timestamp(0)));
        let ProxyOutput::Report { number, .. } = output else { panic!("{output:?}") };
        number
    };
    assert_eq!(number(&mut linked()), Some(4));
    assert_eq!(number(&mut plain()), None);
}

#[test]
fn a_numbered_frame_that_makes_no_sense_does_not_hold_up_the_others() {
    let wrong = r#"{"type":"proxy_status","protocol_version":1,"link_number":7}"#;
    let outputs = linked().on_text(wrong, Timestamp(0));
    assert_eq!(told_code(&outputs[0]), "invalid_message");
    assert_eq!(outputs[1], ProxyOutput::Done { number: 7 });
}

// spec: native/forwarding.1
#[test]
fn a_plain_proxy_is_told_a_send_in_the_documents_own_fields() {
    let order = Order::Deliver { send: send(), attempt: Sequence(3) };
    let told = json(&plain().on_order(&"sess_123".into(), &order, Timestamp(0)));
    let expected = json!({
        "type": "send_message", "protocol_version": 1, "session_id": "sess_123",
        "server_ts": "1970-01-01T00:00:00.000Z", "client_message_id": "m1", "content": "hello",
        "created_at": "1970-01-01T00:00:00.005Z",
    });
    assert_eq!(told, expected);
    let told = json(&linked().on_order(&"sess_123".into(), &order, Timestamp(0)));
    assert_eq!((&told["attempt"], &told["sent_by"]), (&json!(3), &json!("ada")));
}

// spec: native/permission_prompt_relay_behavior.4
// spec: native/permission_prompt_relay_behavior.6
#[test]
fn an_answer_by_the_clock_says_so() {
    let answer = |choice: Option<&str>, by_person| Order::Answer {
        request: "r1".into(),
        prompt: "p1".into(),
        choice: choice.map(Into::into),
        by_person,
        detail: None,
    };
    let told = |order| json(&plain().on_order(&"sess_1".into(), &order, Timestamp(0)));
    let by_person = told(answer(Some("yes"), true));
    assert_eq!((&by_person["choice_id"], by_person.get("auto_applied")), (&json!("yes"), None));
    assert_eq!(by_person["request_id"], "r1");
    assert_eq!(told(answer(Some("no"), false))["auto_applied"], true);
    let over = told(answer(None, false));
    assert_eq!((over.get("choice_id"), &over["auto_applied"]), (None, &json!(true)));
}

// spec: native/envelope.2
#[test]
fn controls_keep_their_names_and_requests() {
    let told = |control| {
        let order = Order::Control { request: "r1".into(), control };
        let frame = json(&plain().on_order(&"sess_1".into(), &order, Timestamp(0)));
        assert_eq!(frame["request_id"], "r1");
        frame
    };
    let interrupt = told(Control::Interrupt { run: Some("run_1".into()) });
    assert_eq!(interrupt["type"], "agent_interrupt");
    assert_eq!(interrupt.get("run_id"), None, "not a word of the document");
    assert_eq!(told(Control::SetModel("large".into()))["model_id"], "large");
    assert_eq!(told(Control::ReadConfig)["type"], "agent_config_request");
    assert_eq!(told(Control::Close)["type"], "close_session");
}

// spec: native/limits.6
#[test]
fn a_refused_report_is_told_where_it_matters() {
    let session = "sess_1".into();
    let told = plain().on_refused(&session, &Refusal::TooManyPrompts { limit: 32 }, Timestamp(0));
    assert_eq!(json(&told.unwrap())["code"], "invalid_message");
    let told = plain().on_refused(&session, &Refusal::NotThisProxy, Timestamp(0)).unwrap();
    assert_eq!(
        (&json(&told)["code"], &json(&told)["session_id"]),
        (&json!("session_unknown"), &json!("sess_1"))
    );
    assert_eq!(plain().on_refused(&session, &Refusal::NotSupported, Timestamp(0)), None);
}

fn new(role: Option<Role>) -> ProxyConnection {
    let principal = role.map(|role| Principal {
        credential: "cred".into(),
        role,
        client: None,
        name: "attic".to_owned(),
    });
    ProxyConnection::new("conn_1".into(), principal, ProxyLimits::default(), Timestamp(0))
}

fn plain() -> ProxyConnection {
    let mut proxy = new(Some(Role::Proxy));
    proxy.on_text(fixture!("connection_hello_2"), Timestamp(0));
    proxy
}

fn linked() -> ProxyConnection {
    let mut proxy = new(Some(Role::Proxy));
    let hello = r#"{"type":"connection_hello","protocol_version":1,"peer_role":"proxy","client_name":"farhelm","features":["link"],"link":{"id":"L1"}}"#;
    proxy.on_text(hello, Timestamp(0));
    proxy
}

fn only(mut outputs: Vec<ProxyOutput>) -> ProxyOutput {
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    outputs.remove(0)
}

fn report(text: &str) -> (SessionId, Report) {
    let output = only(plain().on_text(text, Timestamp(0)));
    let ProxyOutput::Report { session, report, .. } = output else { panic!("{output:?}") };
    (session, report)
}

fn message_of(output: ProxyOutput) -> domain::content::Message {
    let ProxyOutput::Report { report: Report::Message { message, .. }, .. } = output else {
        panic!("{output:?}")
    };
    message
}

fn send() -> Send {
    Send {
        id: "m1".into(),
        text: Content::Open("hello".to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(5),
        digest: None,
    }
}

fn told_code(output: &ProxyOutput) -> String {
    let ProxyOutput::Send(frame) = output else { panic!("{output:?}") };
    let frame = json(frame);
    assert_eq!(frame["type"], "connection_error");
    frame["code"].as_str().unwrap().to_owned()
}

fn json(frame: &[u8]) -> Value {
    serde_json::from_slice(frame).unwrap()
}

// spec: native/extensions.13
#[test]
fn a_plain_proxy_means_what_it_wants_by_the_fields_of_our_extensions() {
    let strange = |fixture: &str, change: &dyn Fn(&mut Value)| {
        let mut frame: Value = serde_json::from_str(fixture).unwrap();
        let whole = report(&frame.to_string()).1;
        change(&mut frame);
        (whole, frame.to_string())
    };
    let shapes =
        [json!([{ "level": "high" }]), json!({ "a": 1 }), json!("x"), json!(7), json!([7])];
    for shape in &shapes {
        let put = |names: &'static [&'static str]| {
            move |object: &mut Value| {
                for name in names {
                    object[*name] = shape.clone();
                }
            }
        };
        let config = put(&["available_efforts", "available_modes", "commands", "effort"]);
        let prompt =
            put(&["input", "questions", "suggestions", "diffs", "sealed", "run_id", "tool"]);
        let of_prompt = put(&["sealed_detail", "error", "tool_call_id"]);
        let (status, result) = (put(&["reason"]), put(&["attempt", "run_id"]));
        let message = put(&["parts", "sealed", "run_id", "parent_tool_call_id"]);
        for (fixture, change) in [
            (fixture!("agent_config"), &(|it: &mut Value| config(it)) as &dyn Fn(&mut Value)),
            (fixture!("permission_prompt"), &|it| {
                prompt(it);
                it["choices"][0]["effect"] = json!({ "of": "a button" });
            }),
            (fixture!("permission_prompt"), &of_prompt),
            (fixture!("proxy_status"), &status),
            (fixture!("proxy_send_result_1"), &result),
            (fixture!("proxy_message"), &|it| message(&mut it["message"])),
        ] {
            let (_, spoilt) = strange(fixture, change);
            let outputs = plain().on_text(&spoilt, Timestamp(0));
            assert!(matches!(outputs[..], [ProxyOutput::Report { .. }]), "{spoilt}: {outputs:?}");
        }
    }
    // Nothing of it is taken for something that it is not.
    let (whole, spoilt) = strange(fixture!("agent_config"), &|it| {
        it["available_efforts"] = json!([{ "level": "high" }]);
    });
    assert_eq!(report(&spoilt).1, whole);
    // A field of the document is still refused, and so is an extension of a peer that named one.
    let mut frame: Value = serde_json::from_str(fixture!("agent_config")).unwrap();
    frame["available_efforts"] = json!([{ "level": "high" }]);
    assert_eq!(
        told_code(&linked().on_text(&frame.to_string(), Timestamp(0))[0]),
        "invalid_message"
    );
    frame["model_id"] = json!(7);
    assert_eq!(told_code(&plain().on_text(&frame.to_string(), Timestamp(0))[0]), "invalid_message");
    // Its hello is no different.
    let mut hello: Value = serde_json::from_str(fixture!("connection_hello_2")).unwrap();
    hello["catalog"] = json!("a book");
    for features in [json!(null), json!("fast"), json!({ "a": 1 }), json!([1])] {
        hello["features"] = features;
        let outputs = new(Some(Role::Proxy)).on_text(&hello.to_string(), Timestamp(0));
        assert!(matches!(outputs[..], [ProxyOutput::Connected { .. }]), "{outputs:?}");
    }
    hello["features"] = json!(["link"]);
    let outputs = new(Some(Role::Proxy)).on_text(&hello.to_string(), Timestamp(0));
    assert_eq!(told_code(&outputs[0]), "invalid_message", "it knows our extensions");
}
