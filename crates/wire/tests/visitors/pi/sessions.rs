//! Which session a connection is active on.

use domain::content::Failure;
use domain::session::Report;
use domain::session::status::CloseReason;
use serde_json::json;

use super::relay::{PATH, Relay, SESSION, kinds};

// spec: pi/sessions.6
#[test]
fn without_a_name_the_latest_session_is_the_active_one() {
    let mut relay = Relay::new();
    relay.now = relay.now.plus_ms(1_000);
    relay.add("sess_2", "/");
    relay.open("a", "");
    let state = relay.ask("a", json!({ "type": "get_state" }));
    assert_eq!(state["data"]["sessionId"], "sess_2");
    relay.now = relay.now.plus_ms(1_000);
    relay.starts("run_1");
    relay.open("b", "token=x");
    let state = relay.ask("b", json!({ "type": "get_state" }));
    assert_eq!(state["data"]["sessionId"], SESSION);
}

// spec: pi/sessions.6
#[test]
fn a_closed_session_is_the_active_one_only_where_no_other_is_open() {
    for (others, active) in [(&["sess_2"][..], "sess_2"), (&[], SESSION)] {
        let mut relay = Relay::new();
        for other in others {
            relay.add(other, "/");
        }
        relay.now = relay.now.plus_ms(1_000);
        relay.report(Report::Closed { reason: CloseReason::TargetClosed, request: None });
        relay.open("a", "");
        let state = relay.ask("a", json!({ "type": "get_state" }));
        assert_eq!(state["data"]["sessionId"], active);
    }
}

// spec: pi/sessions.1
#[test]
fn the_agents_own_file_is_the_sessions_path_and_both_are_taken() {
    const FILE: &str = "/home/me/.pi/agent/sessions/--w--/2026-02-24_0b7c.jsonl";
    let mut relay = Relay::new();
    relay.keeps("fake/one", "low", Some(FILE));
    relay.now = relay.now.plus_ms(1_000);
    relay.add("sess_2", "/");
    relay.open("a", &format!("session={FILE}"));
    for command in ["get_state", "get_session_stats"] {
        let answer = relay.ask("a", json!({ "type": command }));
        assert_eq!(answer["data"]["sessionId"], SESSION);
        assert_eq!(answer["data"]["sessionFile"], FILE);
    }
    let list = relay.ask("a", json!({ "type": "list_sessions" }));
    let paths: Vec<_> =
        list["data"]["sessions"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["farhelm/sess_2.jsonl", FILE]);
    for (path, file) in [
        ("farhelm/sess_2.jsonl", "farhelm/sess_2.jsonl"),
        (FILE, FILE),
        ("sess_2", "farhelm/sess_2.jsonl"),
        (PATH, FILE),
    ] {
        let switch = json!({ "type": "switch_session", "sessionPath": path });
        assert_eq!(relay.ask("a", switch)["success"], true, "{path}");
        assert_eq!(relay.heard("a")[0]["sessionFile"], file);
    }
}

// spec: pi/sessions.7
#[test]
fn a_session_that_is_not_there_leaves_the_client_alone_but_able_to_switch() {
    for query in ["session=sess_9", "session=..", "session=%2e%2e/x"] {
        let mut relay = Relay::new();
        relay.open("a", query);
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard), ["extension_error"], "{query}");
        assert_eq!(heard[0]["error"], "Session file not found");
        for command in ["get_state", "get_messages", "prompt", "abort", "clear_queue"] {
            let answer = relay.ask("a", json!({ "type": command, "message": "x" }));
            let words = "No session is active: use switch_session or new_session first";
            assert_eq!(answer["error"], words);
        }
        assert_eq!(relay.ask("a", json!({ "type": "list_sessions" }))["success"], true);
        let command = json!({ "type": "switch_session", "sessionPath": PATH });
        assert_eq!(relay.ask("a", command)["success"], true);
        assert_eq!(kinds(&relay.heard("a")), ["session_changed"]);
    }
}

// spec: pi/sessions.4
#[test]
fn what_is_said_after_a_switch_is_for_the_other_session() {
    let mut relay = Relay::watched();
    relay.add("sess_2", "/");
    relay.is_slow = true;
    let path = "farhelm/sess_2.jsonl";
    relay.json("a", &json!({ "id": 1, "type": "switch_session", "sessionPath": path }));
    relay.json("a", &json!({ "id": 2, "type": "get_state" }));
    relay.starts("run_1");
    relay.heard("a");
    relay.catch_up();
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["response/switch_session", "session_changed", "response/get_state"]);
    assert_eq!(heard[2]["data"]["sessionId"], "sess_2");
    // A switch that fails leaves it where it was.
    relay.is_slow = true;
    relay.json("a", &json!({ "id": 3, "type": "switch_session", "sessionPath": "sess_9" }));
    relay.json("a", &json!({ "id": 4, "type": "get_state" }));
    relay.catch_up();
    let heard = relay.heard("a");
    assert_eq!(
        (&heard[0]["success"], &heard[1]["data"]["sessionId"]),
        (&json!(false), &json!("sess_2"))
    );
}

// spec: pi/sessions.5
#[test]
fn a_new_session_is_like_the_active_one_and_becomes_it() {
    let mut relay = Relay::watched();
    relay.add("sess_new", "/tmp");
    relay.shell.launches = Some(Ok("sess_new".into()));
    let answer = relay.ask("a", json!({ "type": "new_session" }));
    assert_eq!(answer["data"], json!({ "cancelled": false }));
    let heard = relay.heard("a");
    assert_eq!(
        (&heard[0]["type"], &heard[0]["reason"]),
        (&json!("session_changed"), &json!("new"))
    );
    assert_eq!(heard[0]["sessionId"], "sess_new");
    let wish = &relay.launched[0];
    assert_eq!(wish.agent, "codex".into());
    assert_eq!(wish.workspace_path.as_deref(), Some("/home/me/project"));
    relay.ask("a", json!({ "type": "new_session", "cwd": "/srv", "agent": "demo" }));
    let wish = &relay.launched[1];
    assert_eq!((wish.agent.as_str(), wish.workspace_path.as_deref()), ("demo", Some("/srv")));
}

// spec: pi/responses.3
#[test]
fn a_launch_that_takes_long_is_answered_in_time_and_its_outcome_is_an_event() {
    let mut relay = Relay::watched();
    relay.add("sess_new", "/tmp");
    relay.shell.launches = None;
    relay.json("a", &json!({ "id": "n", "type": "new_session" }));
    relay.waits("a", 24_999);
    assert!(relay.heard("a").is_empty());
    relay.waits("a", 1);
    let heard = relay.heard("a");
    assert_eq!((&heard[0]["id"], &heard[0]["data"]), (&json!("n"), &json!({ "cancelled": false })));
    relay.catch_up();
    assert_eq!(kinds(&relay.heard("a")), ["session_changed"]);
    // One that fails so late is told as an event too.
    relay.shell.launches = None;
    relay.json("a", &json!({ "id": "n", "type": "new_session" }));
    relay.waits("a", 25_000);
    relay.heard("a");
    relay.rooms.remove(&"sess_new".into());
    relay.catch_up();
    assert_eq!(kinds(&relay.heard("a")), ["extension_error"]);
}

// spec: pi/sessions.5
#[test]
fn a_launch_that_fails_is_answered_with_the_reason() {
    let mut relay = Relay::watched();
    relay.shell.launches = Some(Err(Failure::new("launch_failed", "The program is not installed")));
    let answer = relay.ask("a", json!({ "type": "new_session" }));
    assert_eq!(answer["error"], "The program is not installed");
    assert_eq!(relay.ask("a", json!({ "type": "get_state" }))["success"], true);
    let mut relay = Relay::new();
    relay.rooms.clear();
    relay.open("a", "");
    relay.heard("a");
    let answer = relay.ask("a", json!({ "type": "new_session" }));
    assert_eq!(answer["success"], false, "there is nothing that it could be like");
}

// spec: pi/sessions.2
#[test]
fn a_list_shows_names_first_words_and_counts() {
    let mut relay = Relay::watched();
    relay.ask("a", json!({ "type": "prompt", "message": "fix the door" }));
    relay.obey(Some("run_1"));
    relay.ask("a", json!({ "type": "set_session_name", "name": "Door" }));
    let answer = relay.ask("a", json!({ "type": "list_sessions" }));
    let row = &answer["data"]["sessions"][0];
    assert_eq!(
        [&row["name"], &row["firstMessage"], &row["messageCount"]],
        [&json!("Door"), &json!("fix the door"), &json!(1)]
    );
    let wrong = relay.ask("a", json!({ "type": "list_sessions", "scope": "moon" }));
    assert_eq!(wrong["success"], false);
}

// spec: pi/sessions.8
#[test]
fn a_session_has_a_name_only_where_somebody_gave_it_one() {
    let mut relay = Relay::new();
    let mut meta = relay.room().session.status().meta.clone();
    meta.display_name = Some("Demo".to_owned());
    relay.make_room("sess_3", meta);
    relay.here = "sess_3".into();
    relay.open("a", "session=sess_3");
    relay.ask("a", json!({ "type": "prompt", "message": "the first words" }));
    relay.obey(Some("run_1"));
    let row = |relay: &mut Relay| {
        let list = relay.ask("a", json!({ "type": "list_sessions" }));
        let rows = list["data"]["sessions"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["id"] == "sess_3").unwrap()
    };
    let unnamed = row(&mut relay);
    assert!(unnamed.get("name").is_none(), "{unnamed}");
    assert_eq!(unnamed["firstMessage"], "the first words");
    let state = relay.ask("a", json!({ "type": "get_state" }));
    assert!(state["data"].get("sessionName").is_none(), "{state}");
    relay.ask("a", json!({ "type": "set_session_name", "name": "Mine" }));
    assert_eq!(row(&mut relay)["name"], "Mine");
    let state = relay.ask("a", json!({ "type": "get_state" }));
    assert_eq!(state["data"]["sessionName"], "Mine");
}
