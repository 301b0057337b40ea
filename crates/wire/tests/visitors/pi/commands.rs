//! Commands about the session as it is.

use domain::content::{Failure, Part, ToolStatus};
use domain::session::transcript::ContextUse;
use domain::session::{Order, Report};
use serde_json::{Value, json};

use super::relay::{Relay, config, kinds};

fn configured() -> Relay {
    let mut relay = Relay::watched();
    relay.configures("fake/one", "low");
    relay.heard("a");
    relay
}

// spec: pi/queries.1
#[test]
fn the_state_tells_model_level_and_whether_the_agent_works() {
    let mut relay = configured();
    let state = relay.ask("a", json!({ "type": "get_state" }));
    let state = &state["data"];
    assert_eq!([&state["model"]["provider"], &state["model"]["id"]], ["fake", "one"]);
    assert_eq!((&state["thinkingLevel"], &state["isStreaming"]), (&json!("low"), &json!(false)));
    relay.starts("run_1");
    let state = relay.ask("a", json!({ "type": "get_state" }));
    assert_eq!(state["data"]["isStreaming"], true);
}

// spec: pi/queries.4
#[test]
fn the_count_of_messages_has_the_results_of_tools() {
    let mut relay = configured();
    relay.starts("run_1");
    relay.calls("t1", "{}");
    relay.says("m1", vec![Part::ToolCall("t1".into())]);
    relay.tool("t1", ToolStatus::Running, Some("x"));
    relay.tool("t1", ToolStatus::Completed, Some("xy"));
    relay.says("m2", vec![Part::Text("done".into())]);
    relay.open("b", "session=sess_1");
    for name in ["a", "b"] {
        let state = relay.ask(name, json!({ "type": "get_state" }));
        assert_eq!(state["data"]["messageCount"], 3, "{name}");
        let list = relay.ask(name, json!({ "type": "list_sessions" }));
        assert_eq!(list["data"]["sessions"][0]["messageCount"], 3, "{name}");
    }
    let read = relay.ask("a", json!({ "type": "get_messages" }));
    assert_eq!(read["data"]["messages"].as_array().unwrap().len(), 3);
}

// spec: pi/settings.4
#[test]
fn a_model_of_another_provider_is_not_found() {
    let mut relay = configured();
    for (provider, id) in [("other", "two"), ("other", "three"), ("", "fake/two"), ("fake", "")] {
        let command = json!({ "type": "set_model", "provider": provider, "modelId": id });
        let error = relay.ask("a", command)["error"].clone();
        assert_eq!(error, format!("Model not found: {provider}/{id}"));
    }
    assert!(relay.room().session.owed().is_empty());
    // As get_available_models named it.
    for command in [
        json!({ "type": "set_model", "provider": "farhelm", "modelId": "three" }),
        json!({ "type": "set_model", "modelId": "two" }),
    ] {
        relay.json("a", &command);
        relay.obey(None);
        assert_eq!(relay.heard("a")[0]["data"]["id"], command["modelId"]);
    }
}

// spec: pi/queries.2
#[test]
fn context_usage_is_what_the_agent_last_told() {
    let mut relay = configured();
    let context = ContextUse { used_tokens: 50, window_tokens: 200 };
    relay.report(Report::Context(context));
    let usage = relay.ask("a", json!({ "type": "get_context_usage" }));
    let told = json!({ "tokens": 50, "contextWindow": 200, "percent": 25.0 });
    assert_eq!(usage["data"], json!({ "usage": told }));
}

// spec: pi/settings.1
#[test]
fn a_model_is_set_when_the_agent_has_set_it() {
    let mut relay = configured();
    let models = relay.ask("a", json!({ "type": "get_available_models" }));
    let ids: Vec<_> =
        models["data"]["models"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, ["one", "two", "three"]);
    let command = json!({ "id": "m", "type": "set_model", "provider": "fake", "modelId": "two" });
    relay.json("a", &command);
    assert!(relay.heard("a").is_empty());
    relay.obey(None);
    let heard = relay.heard("a");
    assert_eq!((&heard[0]["id"], &heard[0]["data"]["id"]), (&json!("m"), &json!("two")));
    let state = relay.ask("a", json!({ "type": "get_state" }));
    assert_eq!(state["data"]["model"]["id"], "two", "also before the agent tells it");
    let unknown = json!({ "type": "set_model", "provider": "p", "modelId": "m" });
    assert_eq!(relay.ask("a", unknown)["error"], "Model not found: p/m");
}

// spec: pi/settings.5
#[test]
fn models_that_have_to_be_asked_for_are_asked_for() {
    let mut relay = configured();
    let mut told = config("fake/one", "low");
    let models = told.available_models.take();
    told.capabilities.insert("set_model".to_owned(), true);
    relay.report(Report::Config(told.clone()));
    relay.json("a", &json!({ "id": "m", "type": "get_available_models" }));
    assert!(relay.heard("a").is_empty());
    told.available_models = models;
    relay.report(Report::Config(told));
    relay.obey(None);
    let answer = relay.heard("a").pop().unwrap();
    assert_eq!(answer["data"]["models"].as_array().unwrap().len(), 3, "{answer}");
    let again = relay.ask("a", json!({ "type": "get_available_models" }));
    assert_eq!(again["data"], answer["data"], "what is known is told at once");
}

// spec: pi/settings.1, pi/settings.2
#[test]
fn what_the_agent_could_not_set_is_answered_with_its_reason() {
    let mut relay = configured();
    relay.json("a", &json!({ "id": "t", "type": "set_thinking_level", "level": "high" }));
    let owed = relay.room().session.owed();
    let [Order::Control { request, .. }] = owed.as_slice() else { panic!("{owed:?}") };
    let failure = Some(Failure::new("x", "not now"));
    relay.report(Report::ControlResult { request: request.clone(), failure });
    assert_eq!(relay.heard("a")[0]["error"], "not now");
    let answer = relay.ask("a", json!({ "type": "set_thinking_level", "level": "huge" }));
    assert_eq!(answer["error"], "This model has the levels: low, high");
}

// spec: pi/settings.6
#[test]
fn a_level_of_pi_is_taken_where_the_agent_can_be_set_but_does_not_list_its_levels() {
    let mut relay = configured();
    let mut told = config("fake/one", "low");
    told.available_efforts = None;
    relay.report(Report::Config(told.clone()));
    relay.heard("a");
    let levels = relay.ask("a", json!({ "type": "get_available_thinking_levels" }));
    assert_eq!(levels["data"]["levels"], json!([]));
    let set = json!({ "id": "t", "type": "set_thinking_level", "level": "high" });
    relay.json("a", &set);
    assert_eq!(relay.heard("a")[0]["error"], "This agent has no thinking levels");
    told.capabilities.insert("set_effort".to_owned(), true);
    relay.report(Report::Config(told));
    relay.json("a", &set);
    relay.obey(None);
    let answer = relay.heard("a").pop().unwrap();
    assert_eq!((&answer["id"], &answer["success"]), (&json!("t"), &json!(true)), "{answer}");
    let levels = relay.ask("a", json!({ "type": "get_available_thinking_levels" }));
    let expected = ["off", "minimal", "low", "medium", "high", "xhigh"];
    assert_eq!(levels["data"]["levels"], json!(expected));
    let answer = relay.ask("a", json!({ "type": "set_thinking_level", "level": "huge" }));
    let error = answer["error"].as_str().unwrap();
    assert!(error.ends_with("off, minimal, low, medium, high, xhigh"), "{error}");
}

// spec: pi/settings.2
#[test]
fn a_changed_level_is_told_to_everybody() {
    let mut relay = configured();
    relay.configures("fake/one", "high");
    let changed = json!({ "type": "thinking_level_changed", "level": "high" });
    assert_eq!(relay.heard("a"), [changed]);
}

// spec: pi/settings.3
#[test]
fn a_name_is_set_and_told_to_everybody() {
    let mut relay = configured();
    relay.open("b", "session=sess_1");
    let answer = relay.ask("a", json!({ "type": "set_session_name", "name": " Door " }));
    assert_eq!(answer["success"], true);
    assert_eq!(relay.heard("b"), [json!({ "type": "session_info_changed", "name": "Door" })]);
    let answer = relay.ask("a", json!({ "type": "set_session_name", "name": " " }));
    assert_eq!(answer["error"], "Session name cannot be empty");
}

// spec: pi/responses.2
#[test]
fn what_is_unknown_or_cannot_be_done_is_answered_with_the_reason() {
    let mut relay = configured();
    let answer = relay.ask("a", json!({ "type": "dance" }));
    assert_eq!(answer["error"], "Unknown command: dance");
    for command in ["bash", "fork", "export_html"] {
        let answer = relay.ask("a", json!({ "type": command, "command": "ls" }));
        let words = format!("{command} is not supported through Farhelm");
        assert_eq!((&answer["success"], &answer["error"]), (&json!(false), &json!(words)));
    }
    let answer = relay.ask("a", json!({ "type": "compact" }));
    assert_eq!(answer["error"], "compact is not supported; send the prompt /compact instead");
}

// spec: pi/queries.3
#[test]
fn the_words_after_a_slash_are_the_agents_own() {
    let mut relay = configured();
    let answer = relay.ask("a", json!({ "type": "get_commands" }));
    assert_eq!(answer["data"]["commands"], json!([{ "name": "compact", "source": "prompt" }]));
}

// spec: pi/abort.1, pi/abort.2
#[test]
fn an_abort_is_answered_when_the_order_is_taken_or_at_once_when_nothing_runs() {
    let mut relay = configured();
    assert_eq!(relay.ask("a", json!({ "type": "abort" }))["success"], true);
    assert_eq!(relay.wishes, 0);
    relay.starts("run_1");
    assert_eq!(relay.ask("a", json!({ "type": "abort" }))["success"], true);
    assert_eq!(relay.room().session.owed().len(), 1);
}

// spec: pi/responses.1, pi/responses.3
#[test]
fn a_command_whose_outcome_does_not_come_is_answered_within_25_seconds() {
    let mut relay = configured();
    let command = json!({ "id": "m", "type": "set_model", "provider": "fake", "modelId": "two" });
    relay.json("a", &command);
    relay.waits("a", 25_000);
    let heard = relay.heard("a");
    assert_eq!((&heard[0]["id"], &heard[0]["success"]), (&json!("m"), &json!(false)));
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), [""; 0], "never a second answer");
}

// spec: pi/credentials.3
#[test]
fn a_viewer_sees_everything_and_changes_nothing() {
    let mut relay = configured();
    relay.open("v", "session=sess_1");
    for command in [
        json!({ "type": "prompt", "message": "x" }),
        json!({ "type": "steer", "message": "x" }),
        json!({ "type": "abort" }),
        json!({ "type": "clear_queue" }),
        json!({ "type": "new_session" }),
        json!({ "type": "set_session_name", "name": "x" }),
        json!({ "type": "set_model", "provider": "fake", "modelId": "two" }),
    ] {
        let answer = relay.ask("v", command);
        assert_eq!(answer["error"], "this credential is view-only");
    }
    relay.asks("p1", &[("yes", None), ("no", None)]);
    relay.heard("v");
    relay.json("v", &json!({ "type": "extension_ui_response", "id": "p1", "confirmed": true }));
    let heard = relay.heard("v");
    assert_eq!(kinds(&heard), ["extension_ui_request/notify"]);
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1);
    let answer = relay.ask("v", json!({ "type": "get_messages" }));
    assert_eq!(answer["data"]["messages"], Value::Array(vec![]));
}
