//! Control requests of clients.

use std::collections::BTreeMap;

use domain::ModelId;
use domain::content::Failure;
use domain::session::config::AgentConfig;
use domain::session::controls::Control;
use domain::session::transcript::ContextUse;
use domain::session::{Order, Report};
use serde_json::{Value, json};

use super::relay::{Relay, SESSION, START, kinds};

fn configured() -> Relay {
    let mut relay = Relay::watched();
    relay.report(Report::Config(config("demo-small", "ask")));
    relay.heard("a");
    relay
}

fn config(model: &str, mode: &str) -> AgentConfig {
    AgentConfig {
        model: model.into(),
        permission_mode: Some(mode.to_owned()),
        file_access_scope: None,
        available_models: Some(["demo-small", "demo-large"].map(ModelId::from).to_vec()),
        available_modes: Some(["ask", "yolo"].map(str::to_owned).to_vec()),
        effort: None,
        available_efforts: None,
        session_file: None,
        commands: None,
        capabilities: BTreeMap::new(),
        read_at: START,
    }
}

fn ask(relay: &mut Relay, request: &Value) {
    relay.json("a", &json!({ "type": "control_request", "request_id": "r", "request": request }));
}

fn asked(relay: &mut Relay, request: &Value) -> Value {
    ask(relay, request);
    relay.heard("a").remove(0)["response"].take()
}

fn ordered(relay: &Relay) -> Vec<Control> {
    let owed = relay.room().session.owed().into_iter();
    owed.filter_map(|order| match order {
        Order::Control { control, .. } => Some(control),
        Order::Answer { .. } | Order::Deliver { .. } => None,
    })
    .collect()
}

// spec: control/requests.11
#[test]
fn an_id_that_is_a_number_is_said_back_as_it_came() {
    let mut relay = configured();
    let named = |id: Value, request: Value| json!({ "type": "control_request", "request_id": id, "request": request });
    for id in [json!(7), json!(-1), json!(1.5)] {
        relay.json("a", &named(id.clone(), json!({ "subtype": "list_models" })));
        let heard = relay.heard("a");
        assert_eq!(heard[0]["response"]["subtype"], "success");
        assert_eq!(heard[0]["response"]["request_id"], id);
    }
    relay.json("a", &named(json!(8), json!({ "subtype": "set_model", "model": "demo-large" })));
    relay.obey(None);
    assert_eq!(relay.heard("a")[0]["response"]["request_id"], 8);
    // An interrupt with a number is not the bare one: it is answered.
    relay.starts("run_1");
    relay.heard("a");
    relay.json("a", &named(json!(9), json!({ "subtype": "interrupt" })));
    relay.obey(None);
    assert_eq!(relay.heard("a")[0]["response"]["request_id"], 9);
    for id in [json!([1]), json!(true), json!({})] {
        relay.json("a", &named(id.clone(), json!({ "subtype": "interrupt" })));
        let heard = relay.heard("a");
        assert_eq!(heard[0]["response"]["subtype"], "error");
        assert_eq!(heard[0]["response"]["request_id"], id);
    }
}

// spec: control/requests.1, control/requests.3
#[test]
fn initialize_tells_models_and_what_is_not_done() {
    let mut relay = configured();
    let response = asked(
        &mut relay,
        &json!({ "subtype": "initialize", "hooks": {},
        "systemPrompt": [""], "tomorrow": 1 }),
    );
    assert_eq!(response["subtype"], "success");
    assert_eq!(response["request_id"], "r");
    assert_eq!(response["pending_permission_requests"], json!([]));
    let answer = &response["response"];
    assert_eq!(answer["models"][1]["value"], "demo-large");
    assert_eq!(answer["hooks_applied"], false);
    assert_eq!(answer["account"], json!({}));
}

// spec: control/requests.12
#[test]
fn initialize_tells_the_permission_mode_in_the_words_of_this_dialect() {
    let mode = |relay: &mut Relay| {
        asked(relay, &json!({ "subtype": "initialize" }))["response"]["permissionMode"].take()
    };
    assert_eq!(mode(&mut Relay::watched()), Value::Null, "the agent has not said");
    let mut relay = configured();
    assert_eq!(mode(&mut relay), "default");
    for bypass in ["yolo", "full-access", "never/danger-full-access", "bypassPermissions"] {
        relay.report(Report::Config(config("demo-small", bypass)));
        relay.heard("a");
        assert_eq!(mode(&mut relay), "bypassPermissions", "{bypass}");
    }
}

// spec: control/requests.2
#[test]
fn an_unknown_subtype_is_answered_at_once() {
    let mut relay = configured();
    let response = asked(&mut relay, &json!({ "subtype": "rewind_files" }));
    assert_eq!(response["subtype"], "error");
    assert_eq!(response["error"], "Unsupported control request subtype: rewind_files");
}

// spec: control/requests.4, control/requests.6
#[test]
fn a_model_is_set_when_the_agent_has_set_it() {
    let mut relay = configured();
    ask(&mut relay, &json!({ "subtype": "set_model", "model": "demo-large" }));
    assert_eq!(relay.heard("a"), [] as [Value; 0], "not yet");
    assert_eq!(ordered(&relay), [Control::SetModel("demo-large".into())]);
    relay.obey(None);
    let heard = relay.heard("a");
    assert_eq!(heard[0]["response"]["subtype"], "success");
    for default in [json!(null), json!("default")] {
        ask(&mut relay, &json!({ "subtype": "set_model", "model": default }));
        assert_eq!(ordered(&relay), [Control::SetModel("demo-small".into())]);
        relay.obey(None);
        assert_eq!(relay.heard("a").len(), 1);
    }
    let response = asked(&mut relay, &json!({ "subtype": "set_model", "model": 7 }));
    assert_eq!(response["subtype"], "error");
}

// spec: control/requests.7
#[test]
fn a_mode_is_set_in_the_agents_words_and_a_change_is_told_to_all() {
    let mut relay = configured();
    ask(&mut relay, &json!({ "subtype": "set_permission_mode", "mode": "bypassPermissions" }));
    assert_eq!(ordered(&relay), [Control::SetMode("yolo".to_owned())]);
    relay.obey(None);
    relay.report(Report::Config(config("demo-small", "yolo")));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["control_response", "system/status"]);
    assert_eq!(heard[1]["permissionMode"], "bypassPermissions");
    let response = asked(&mut relay, &json!({ "subtype": "set_permission_mode", "mode": "plan" }));
    assert_eq!(response["error"], "Unknown mode plan; this agent has: ask, yolo");
}

// spec: control/requests.4
#[test]
fn what_the_agent_could_not_do_is_an_error() {
    let mut relay = configured();
    ask(&mut relay, &json!({ "subtype": "set_model", "model": "other" }));
    let Some(Order::Control { request, .. }) = relay.room().session.owed().pop() else { panic!() };
    let failure = Some(Failure::new("model_not_available", "There is no model other"));
    relay.report(Report::ControlResult { request, failure });
    assert_eq!(relay.heard("a")[0]["response"]["error"], "There is no model other");
}

// spec: control/interrupt.3
#[test]
fn an_interrupt_of_nothing_is_no_failure() {
    let mut relay = configured();
    ask(&mut relay, &json!({ "subtype": "interrupt" }));
    let Some(Order::Control { request, .. }) = relay.room().session.owed().pop() else { panic!() };
    let failure = Some(Failure::new("agent_not_active", "idle"));
    relay.report(Report::ControlResult { request, failure });
    assert_eq!(relay.heard("a")[0]["response"]["subtype"], "success");
}

// spec: control/interrupt.4
#[test]
fn an_interrupt_leaves_what_waits_or_takes_it_out() {
    let mut relay = configured();
    relay.starts("run_1");
    for id in ["m1", "m2"] {
        relay.json("a", &json!({ "type": "user", "uuid": id, "message": { "content": "x" } }));
    }
    relay.heard("a");
    ask(&mut relay, &json!({ "subtype": "interrupt" }));
    relay.obey(None);
    let receipt = relay.heard("a").remove(0)["response"]["response"].take();
    assert_eq!(receipt, json!({ "still_queued": ["m1", "m2"] }));
    ask(&mut relay, &json!({ "subtype": "interrupt", "cancel_queued": true }));
    relay.obey(None);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["control_response"], "its own sends are no failures");
    let receipt = &heard[0]["response"]["response"];
    assert_eq!(*receipt, json!({ "still_queued": [], "cancelled": ["m1", "m2"] }));
    assert!(relay.room().session.glance().waiting.is_empty());
}

// spec: control/requests.8
#[test]
fn a_waiting_message_is_taken_out_by_its_uuid() {
    let mut relay = configured();
    relay.starts("run_1");
    relay.json("a", &json!({ "type": "user", "uuid": "m1", "message": { "content": "x" } }));
    relay.heard("a");
    let request = json!({ "subtype": "cancel_async_message", "message_uuid": "m1" });
    assert_eq!(asked(&mut relay, &request)["response"], json!({ "cancelled": true }));
    assert_eq!(asked(&mut relay, &request)["response"], json!({ "cancelled": false }));
}

// spec: control/requests.9
#[test]
fn a_session_is_renamed() {
    let mut relay = configured();
    let response = asked(&mut relay, &json!({ "subtype": "rename_session", "title": "Kite" }));
    assert_eq!(response["subtype"], "success");
    assert_eq!(relay.room().session.status().title.as_deref(), Some("Kite"));
    let response = asked(&mut relay, &json!({ "subtype": "rename_session" }));
    assert_eq!(response["subtype"], "error");
}

// spec: control/requests.10
#[test]
fn the_context_is_told_where_the_agent_tells_it() {
    let mut relay = configured();
    let request = json!({ "subtype": "get_context_usage" });
    assert_eq!(asked(&mut relay, &request)["subtype"], "error");
    let context = ContextUse { used_tokens: 50_000, window_tokens: 200_000 };
    relay.report(Report::Context(context));
    let usage = asked(&mut relay, &request)["response"].take();
    assert_eq!(
        (&usage["totalTokens"], &usage["maxTokens"], &usage["percentage"]),
        (&json!(50_000), &json!(200_000), &json!(25))
    );
    relay.open("b", &format!("session={SESSION}"));
    relay.json("b", &json!({ "type": "control_request", "request_id": "r", "request": request }));
    let told = relay.heard("b").remove(0);
    assert_eq!(told["response"]["response"]["totalTokens"], 50_000, "also to who joins later");
}

// spec: control/requests.10
#[test]
fn models_that_have_to_be_asked_for_are_asked_for() {
    let mut relay = configured();
    let mut hidden = config("demo-small", "ask");
    hidden.available_models = None;
    hidden.capabilities.insert("set_model".to_owned(), true);
    relay.report(Report::Config(hidden));
    relay.heard("a");
    ask(&mut relay, &json!({ "subtype": "list_models" }));
    assert_eq!(ordered(&relay), [Control::ReadConfig]);
    relay.report(Report::Config(config("demo-small", "ask")));
    relay.obey(None);
    let answer = relay.heard("a").remove(0)["response"]["response"].take();
    assert_eq!(answer["models"][1]["value"], "demo-large", "{answer}");
    let again = asked(&mut relay, &json!({ "subtype": "list_models" }));
    assert_eq!(again["response"], answer, "what is known is told at once");
}

// spec: control/credentials.3
#[test]
fn a_viewers_requests_are_refused() {
    let mut relay = configured();
    relay.open("v", &format!("session={SESSION}"));
    relay.json(
        "v",
        &json!({ "type": "control_request", "request_id": "r",
        "request": { "subtype": "interrupt" } }),
    );
    let heard = relay.heard("v").remove(0);
    assert_eq!(heard["response"]["error"], "this credential is view-only");
}

// spec: control/requests.5
#[test]
fn too_many_requests_in_flight_are_refused_and_forgotten_ones_not_answered() {
    let mut relay = configured();
    for id in 0..100 {
        relay.json(
            "a",
            &json!({ "type": "control_request", "request_id": format!("r{id}"),
            "request": { "subtype": "interrupt" } }),
        );
    }
    let refused = relay.heard("a");
    assert_eq!(refused.len(), 100 - 64);
    assert!(refused[0]["response"]["error"].as_str().unwrap().contains("Too many"));
    relay.json("a", &json!({ "type": "control_cancel_request", "request_id": "r0" }));
    relay.obey(None);
    let answered = relay.heard("a");
    assert_eq!(answered.len(), 63, "not the one that was withdrawn");
    assert!(answered.iter().all(|it| it["response"]["request_id"] != "r0"));
}

// spec: control/requests.2
#[test]
fn an_unknown_request_is_told_so_whatever_its_fields_are() {
    let mut relay = configured();
    ask(
        &mut relay,
        &json!({ "subtype": "tomorrow", "mode": 5, "title": [], "cancel_queued": "x" }),
    );
    let answer = relay.heard("a").remove(0);
    let words = "Unsupported control request subtype: tomorrow";
    assert_eq!(answer["response"]["error"], words);
    ask(&mut relay, &json!({ "subtype": "set_permission_mode", "mode": 5 }));
    let answer = relay.heard("a").remove(0);
    assert_eq!(answer["response"]["error"], "set_permission_mode needs a mode");
}
