//! Words for the agent, the line, and taking them back.

use domain::Content;
use domain::content::{Author, Part};
use domain::session::delivery::{Mode, Send};
use domain::session::runs::{Cut, Outcome};
use domain::session::status::{CloseReason, DownReason};
use domain::session::{Change, Command, Report, Wish};
use serde_json::{Value, json};

use super::relay::{Relay, SESSION, START, kinds};

fn send(id: &str, mode: Option<Mode>) -> Wish {
    let send = Send {
        id: id.into(),
        text: Content::Open(format!("words of {id}")),
        attachments: vec![],
        mode,
        by: "other".to_owned(),
        created_at: START,
        digest: None,
    };
    Wish::Send { send, earlier: None }
}

// spec: blob/agent.3
#[test]
fn a_message_without_a_session_goes_to_the_one_that_was_active_last() {
    let mut relay = Relay::new();
    relay.make("sess_older");
    relay.here = SESSION.into();
    relay.now = START.plus_ms(5_000);
    relay.wish(Wish::Rename("newest".to_owned()));
    relay.connect("a");
    relay.ask("a", "r", "agent", &json!({ "message": "hi" }));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["res", "session_changed", "message/user"]);
    assert_eq!(heard[1]["payload"]["sessionId"], SESSION);
    assert_eq!(heard[1]["payload"]["title"], "newest");
    // From then on the connection is in it.
    relay.ask("a", "r", "agent", &json!({ "message": "hi again" }));
    assert_eq!(kinds(&relay.heard("a")), ["res", "queued", "message/user"]);
    let mut empty = Relay::new();
    empty.rooms.clear();
    empty.connect("a");
    let answer = empty.asked("a", "agent", &json!({ "message": "hi" }));
    assert_eq!(answer["error"], "No sessions yet; create one with sessions.new");
}

// spec: blob/agent.3
#[test]
fn a_closed_session_is_no_place_to_send_to_while_another_is_open() {
    let mut relay = Relay::new();
    relay.make("sess_closed");
    relay.now = START.plus_ms(5_000);
    relay.report(Report::Closed { reason: CloseReason::TargetClosed, request: None });
    relay.connect("a");
    relay.ask("a", "r", "agent", &json!({ "message": "hi" }));
    assert_eq!(relay.heard("a")[1]["payload"]["sessionId"], SESSION);
}

// spec: blob/agent.4
#[test]
fn what_cannot_be_sent_is_an_error_response() {
    let mut relay = Relay::watched();
    for (params, words) in [
        (json!({}), "Invalid parameters: missing field `message`"),
        (json!({ "message": "  " }), "Invalid parameters: message is empty"),
        (
            json!({ "message": "x".repeat(1_001) }),
            "Invalid parameters: message is longer than 1000 bytes",
        ),
        (json!({ "message": "x", "sessionId": "a b" }), "Session not found: a b"),
        (json!({ "message": "x", "sessionId": "sess_none" }), "Session not found: sess_none"),
    ] {
        let answer = relay.asked("a", "agent", &params);
        assert_eq!((&answer["ok"], answer["error"].as_str()), (&json!(false), Some(words)));
    }
    // Nothing of it moved the connection.
    relay.ask("a", "r", "agent", &json!({ "message": "hi" }));
    assert_eq!(kinds(&relay.heard("a")), ["res", "message/user"]);
}

// spec: blob/queue.1
#[test]
fn a_request_waits_for_a_machine_that_is_away() {
    let mut relay = Relay::watched();
    let down = Change::Down { connection: None, reason: DownReason::ProxyDisconnected };
    relay.say(&Command::Relay(down)).unwrap();
    relay.heard("a");
    relay.sends("a", "r", "hello?");
    let heard = relay.heard("a");
    assert_eq!(heard[0]["payload"]["status"], "queued");
    assert_eq!(heard[1]["payload"]["position"], 1);
}

// spec: blob/queue.2, blob/queue.4
#[test]
fn everybody_in_the_session_hears_of_the_line_whatever_dialect_fills_it() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.starts("run_1");
    relay.heard("a");
    relay.heard("b");
    relay.wish(send("m1", None));
    relay.sends("b", "mine", "two");
    relay.heard("b");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["queued", "message/user", "queued", "message/user"]);
    assert_eq!(heard[0]["payload"]["requestId"], "m1");
    assert_eq!(
        (&heard[2]["payload"]["requestId"], &heard[2]["payload"]["position"]),
        (&json!("mine"), &json!(2))
    );
    relay.wish(Wish::MoveQueued { id: "m1".into(), to: 1 });
    let heard = relay.heard("a");
    let places: Vec<_> =
        heard.iter().map(|it| (&it["payload"]["requestId"], &it["payload"]["position"])).collect();
    assert_eq!(places, [(&json!("mine"), &json!(1)), (&json!("m1"), &json!(2))]);
}

// spec: blob/queue.5
#[test]
fn who_joins_late_hears_the_line_and_each_message_once() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.wish(send("m1", None));
    relay.connect("b");
    relay.ask("b", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["res", "session_changed", "status/thinking", "queued"]);
    relay.heard("a");
    relay.ends("run_1", Outcome::Completed);
    relay.obey(Some("run_2"));
    // Shown to the one when it was accepted, to the other when the agent has it.
    let shown = |heard: Vec<Value>| heard.iter().filter(|it| it["event"] == "message").count();
    assert_eq!((shown(relay.heard("a")), shown(relay.heard("b"))), (0, 1));
}

// spec: blob/events.5
#[test]
fn sends_that_one_run_takes_up_together_each_get_their_final() {
    let mut relay = Relay::watched();
    let first = relay.sends("a", "r1", "one");
    relay.obey(Some("run_1"));
    relay.heard("a");
    let second = relay.sends("a", "r2", "two");
    // An agent that takes what waits into its run: the machine is told by a steering client.
    relay.wish(Wish::DiscardQueued { id: second.as_str().into() });
    relay.heard("a");
    let config = domain::session::config::AgentConfig {
        model: "m".into(),
        permission_mode: None,
        file_access_scope: None,
        available_models: None,
        available_modes: None,
        effort: None,
        available_efforts: None,
        session_file: None,
        commands: None,
        capabilities: [("steer".to_owned(), true)].into(),
        read_at: START,
    };
    relay.report(domain::session::Report::Config(config));
    relay.wish(send("m2", Some(Mode::Steer)));
    assert_eq!(kinds(&relay.heard("a")), ["message/user"], "it does not wait");
    relay.obey(Some("run_1"));
    relay.says_text("msg_1", "both");
    relay.heard("a");
    relay.ends("run_1", Outcome::Completed);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["status/done", "final", "status/done", "final"]);
    assert_eq!(
        (heard[1]["payload"]["runId"].as_str(), heard[3]["payload"]["runId"].as_str()),
        (Some(first.as_str()), Some("m2"))
    );
    assert_eq!(heard[3]["payload"]["messageId"], "msg_1");
}

// spec: blob/cancel.3
#[test]
fn a_run_on_its_way_to_the_agent_is_stopped_as_soon_as_it_begins() {
    let mut relay = Relay::watched();
    let run = relay.sends("a", "r", "one");
    relay.heard("a");
    assert_eq!(relay.asked("a", "agent.cancel", &json!({ "runId": run }))["ok"], true);
    relay.obey(Some("run_1"));
    let owed = relay.room().session.owed();
    assert_eq!(owed.len(), 1, "the interrupt is owed: {owed:?}");
    relay.ends("run_1", Outcome::Interrupted);
    assert_eq!(kinds(&relay.heard("a")), ["status/thinking", "cancelled"]);
}

#[test]
fn a_run_that_was_cut_off_is_cancelled_and_says_why() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.heard("a");
    let why = "Farhelm stopped on this machine".to_owned();
    relay.ends("run_1", Outcome::Cut(Cut { why: why.clone(), lasted_ms: None }));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["cancelled"]);
    assert!(heard[0]["payload"].to_string().contains(&why), "{}", heard[0]);
}

// spec: blob/cancel.3
#[test]
fn an_agent_that_cannot_be_stopped_is_told_to_who_asked() {
    let mut relay = Relay::watched();
    relay.join("b");
    let run = relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.heard("a");
    relay.heard("b");
    relay.asked("a", "agent.cancel", &json!({ "runId": run }));
    relay.refuse("interrupt_failed");
    let heard = relay.heard("a");
    assert_eq!(
        (kinds(&heard), heard[0]["payload"]["errorCode"].as_str()),
        (vec!["error".to_owned()], Some("AGENT_ERROR"))
    );
    assert_eq!(relay.heard("b"), [] as [Value; 0]);
}

// spec: blob/cancel.5
#[test]
fn a_run_is_cancelled_also_from_another_session_by_who_sent_it() {
    let mut relay = Relay::watched();
    let running = relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    let waiting = relay.sends("a", "s", "two");
    relay.make("sess_2");
    relay.goes("a", "sess_2");
    relay.join("b");
    // Only its sender is known to mean it.
    relay.make("sess_3");
    relay.goes("b", "sess_3");
    let denied = relay.asked("b", "agent.cancel", &json!({ "runId": waiting }));
    assert_eq!(denied["error"], format!("Request {waiting} not found"));
    relay.join("b");
    for run in [&waiting, &running] {
        let answer = relay.asked("a", "agent.cancel", &json!({ "runId": run }));
        assert_eq!(answer["payload"]["message"], "Cancellation requested", "{run}");
    }
    relay.here = SESSION.into();
    assert_eq!(relay.room().session.owed().len(), 1, "the interrupt");
    relay.ends("run_1", Outcome::Interrupted);
    let heard = relay.heard("b");
    let cancelled: Vec<_> = heard
        .iter()
        .filter(|it| it["event"] == "cancelled")
        .map(|it| &it["payload"]["runId"])
        .collect();
    assert_eq!(cancelled, [&json!(waiting), &json!(running)]);
    // It is over: nothing of it is told in the other session, and it is not found again.
    let again = relay.asked("a", "agent.cancel", &json!({ "runId": running }));
    assert_eq!(again["error"], format!("Request {running} not found"));
}

// spec: blob/cancel.5
#[test]
fn a_send_that_left_the_line_meanwhile_is_stopped_as_a_run_or_not_at_all() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    let waiting = relay.sends("a", "s", "two");
    relay.make("sess_2");
    relay.goes("a", "sess_2");
    relay.here = SESSION.into();
    relay.is_slow = true;
    relay.ask("a", "q", "agent.cancel", &json!({ "runId": waiting }));
    relay.ends("run_1", Outcome::Completed);
    relay.step();
    relay.step();
    relay.catch_up();
    let heard = relay.heard("a");
    let words = format!("Request {waiting} is being delivered to the agent; try again");
    assert_eq!((kinds(&heard), heard[0]["error"].as_str()), (vec!["res!".into()], Some(&*words)));
    relay.obey(Some("run_2"));
    assert_eq!(relay.asked("a", "agent.cancel", &json!({ "runId": waiting }))["ok"], true);
    assert_eq!(relay.room().session.owed().len(), 1, "the interrupt");
}

// spec: blob/cancel.2
#[test]
fn a_run_that_ends_by_itself_is_cancelled_in_other_words() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.heard("a");
    relay.ends("run_1", Outcome::Interrupted);
    let heard = relay.heard("a");
    assert_eq!(heard[0]["payload"]["message"], "The run was interrupted");
    assert_eq!(heard.len(), 1, "no final");
}

// spec: blob/agent.5
#[test]
fn a_run_goes_on_when_its_sender_is_gone_and_its_words_are_in_the_history() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.clients.remove("a");
    relay.obey(Some("run_1"));
    relay.says_text("msg_1", "done");
    relay.ends("run_1", Outcome::Completed);
    relay.connect("a");
    let answer = relay.asked("a", "sessions.history", &json!({ "sessionId": SESSION }));
    let said: Vec<_> =
        answer["payload"]["messages"].as_array().unwrap().iter().map(|it| &it["content"]).collect();
    assert_eq!(said, ["one", "done"]);
}

// spec: blob/events.6
#[test]
fn the_ids_of_echo_and_history_are_the_same() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    let heard = relay.heard("a");
    relay.obey(Some("run_1"));
    relay.message("msg_1", Author::Assistant, vec![Part::Text("done".to_owned())]);
    relay.heard("a");
    let before = json!({ "sessionId": SESSION, "before": "msg_1" });
    let answer = relay.asked("a", "sessions.history", &before);
    assert_eq!(answer["payload"]["messages"][0]["id"], heard[1]["payload"]["messageId"]);
    assert!(answer["payload"]["messages"][0]["fromSelf"].is_null());
}

// spec: blob/events.6
#[test]
fn a_message_that_waits_has_a_past_under_its_id_too() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.message("msg_1", Author::Assistant, vec![Part::Text("so far".to_owned())]);
    relay.heard("a");
    relay.sends("a", "s", "two");
    let heard = relay.heard("a");
    let echo = heard.iter().find(|it| it["event"] == "message").unwrap();
    relay.message("msg_2", Author::Assistant, vec![Part::Text("more".to_owned())]);
    relay.heard("a");
    let before = json!({ "sessionId": SESSION, "before": echo["payload"]["messageId"] });
    let answer = relay.asked("a", "sessions.history", &before);
    let rows = answer["payload"]["messages"].as_array().unwrap();
    let said: Vec<_> = rows.iter().map(|it| &it["content"]).collect();
    assert_eq!(said, ["one", "so far"]);
}

// spec: blob/credentials.2
#[test]
fn a_viewer_sees_everything_and_changes_nothing() {
    let mut relay = Relay::watched();
    relay.join("v");
    for (method, params) in [
        ("agent", json!({ "message": "x" })),
        ("agent", json!({ "message": "/approve" })),
        ("agent", json!({ "message": "/new" })),
        ("agent.cancel", json!({ "runId": "x" })),
        ("sessions.new", json!({})),
    ] {
        assert_eq!(relay.asked("v", method, &params)["error"], "Permission denied", "{method}");
    }
    relay.sends("a", "r", "one");
    assert_eq!(kinds(&relay.heard("v")), ["message/user"]);
    assert_eq!(relay.asked("v", "status", &json!({}))["ok"], true);
}
