//! Sessions: lists, switches, what was said, isolation.

use domain::content::{Author, Part};
use domain::session::Wish;
use serde_json::{Value, json};

use super::relay::{MADE, Relay, SESSION, START, kinds};

fn titles(answer: &Value) -> Vec<&str> {
    let rows = answer["payload"]["sessions"].as_array().unwrap();
    rows.iter().map(|row| row["title"].as_str().unwrap()).collect()
}

// spec: blob/sessions.1
#[test]
fn a_list_has_pages_the_true_total_and_the_latest_first() {
    let mut relay = Relay::new();
    for number in 0..5_u64 {
        relay.now = START.plus_ms(1_000 + number);
        relay.make(&format!("sess_{number}"));
        relay.wish(Wish::Rename(format!("title {number}")));
    }
    relay.wish(Wish::Archive(true));
    relay.connect("a");
    let answer = relay.asked("a", "sessions.list", &json!({ "limit": 2, "offset": 1 }));
    assert_eq!(titles(&answer), ["title 2", "title 1"]);
    assert_eq!(answer["payload"]["total"], 5, "without the one that was put away");
    let answer = relay.asked("a", "sessions.list", &json!({ "offset": 9 }));
    assert_eq!((titles(&answer).len(), &answer["payload"]["total"]), (0, &json!(5)));
    let wrong = relay.asked("a", "sessions.list", &json!({ "limit": -1 }));
    assert!(wrong["error"].as_str().unwrap().starts_with("Invalid parameters: "));
}

// spec: blob/sessions.1
#[test]
fn the_last_message_of_a_list_is_cut_and_may_be_missing() {
    let mut relay = Relay::new();
    relay.connect("a");
    let row = |relay: &mut Relay| {
        relay.asked("a", "sessions.list", &json!({}))["payload"]["sessions"][0].take()
    };
    assert_eq!(row(&mut relay)["lastMessage"], "");
    relay.says_text("m", &"é".repeat(200));
    let last = row(&mut relay)["lastMessage"].as_str().unwrap().to_owned();
    assert_eq!(last.chars().count(), 100);
}

// spec: blob/sessions.2
#[test]
fn history_goes_back_page_by_page_to_the_first_message_and_says_when_it_is_there() {
    let mut relay = Relay::new();
    for number in 0..500 {
        relay.says_text(&format!("m{number}"), &format!("words {number}"));
    }
    relay.connect("a");
    let (mut before, mut seen) = (Value::Null, vec![]);
    loop {
        let params = json!({ "sessionId": SESSION, "limit": 70, "before": before });
        let answer = relay.asked("a", "sessions.history", &params);
        let page = answer["payload"]["messages"].as_array().unwrap().clone();
        before = page[0]["id"].clone();
        seen.splice(0..0, page.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        if answer["payload"]["hasMore"] == false {
            break;
        }
    }
    let all: Vec<_> = (0..500).map(|number| format!("m{number}")).collect();
    assert_eq!(seen, all);
}

// spec: blob/sessions.3
#[test]
fn history_is_bounded_and_says_what_it_does_not_find() {
    let mut relay = Relay::new();
    for number in 0..250 {
        relay.says_text(&format!("m{number}"), "x");
    }
    relay.connect("a");
    let ask = |relay: &mut Relay, params: Value| relay.asked("a", "sessions.history", &params);
    let answer = ask(&mut relay, json!({ "sessionId": SESSION, "limit": 10_000 }));
    assert_eq!(answer["payload"]["messages"].as_array().unwrap().len(), 200);
    let answer = ask(&mut relay, json!({ "sessionId": SESSION, "limit": 0 }));
    assert_eq!(answer["payload"], json!({ "messages": [], "hasMore": true }));
    let answer = ask(&mut relay, json!({ "sessionId": SESSION, "before": "m_none" }));
    assert_eq!(answer["error"], "Invalid parameters: before is not the id of a message");
    let answer = ask(&mut relay, json!({ "limit": 3 }));
    assert_eq!(answer["error"], "Invalid parameters: missing field `sessionId`");
    let answer = ask(&mut relay, json!({ "sessionId": "sess_none" }));
    assert_eq!(answer["error"], "Session not found: sess_none");
}

// spec: blob/sessions.5
#[test]
fn a_new_session_takes_after_the_latest_unless_the_address_says_otherwise() {
    let mut relay = Relay::new();
    relay.connect("a");
    let answer = relay.asked("a", "sessions.new", &json!({}));
    assert_eq!(answer["payload"]["title"], "New conversation");
    let listed = relay.asked("a", "sessions.list", &json!({}));
    assert!(titles(&listed).contains(&"New conversation"), "what the answer said is so");
    let wish = relay.launched.pop().unwrap();
    assert_eq!((wish.agent.as_str(), wish.workspace_path.as_deref()), ("codex", Some("/home/me")));
    assert_eq!(wish.machine, Some("laptop".into()));
    relay.open("b", "agent=claude&machine=tower");
    relay.text("b", super::relay::CONNECT);
    relay.heard("b");
    relay.asked("b", "sessions.new", &json!({ "title": "named" }));
    let wish = relay.launched.pop().unwrap();
    assert_eq!((wish.agent.as_str(), wish.workspace_path), ("claude", None));
    assert_eq!(wish.machine, Some("tower".into()));
    let answer = relay.asked("b", "sessions.list", &json!({}));
    assert!(titles(&answer).contains(&"named"));
}

// spec: blob/sessions.6
#[test]
fn without_a_machine_there_is_no_new_session_and_the_reason_is_told() {
    let mut relay = Relay::new();
    relay.shell.has_machine = false;
    relay.connect("a");
    let answer = relay.asked("a", "sessions.new", &json!({ "title": "x" }));
    assert_eq!(
        (&answer["ok"], &answer["error"]),
        (&json!(false), &json!("No machine is connected"))
    );
    let answer = relay.asked("a", "sessions.new", &json!({ "title": "x".repeat(201) }));
    assert_eq!(answer["error"], "Invalid parameters: title is longer than 200 characters");
}

// spec: blob/isolation.1
#[test]
fn clients_in_different_sessions_never_hear_each_other() {
    let mut relay = Relay::watched();
    relay.make(MADE);
    relay.connect("b");
    relay.ask("b", "s", "sessions.switch", &json!({ "sessionId": MADE }));
    relay.heard("b");
    relay.ask("b", "r", "agent", &json!({ "message": "in the other" }));
    assert_eq!(kinds(&relay.heard("b")), ["res", "message/user"]);
    assert_eq!(relay.heard("a"), [] as [Value; 0]);
    relay.here = SESSION.into();
    relay.starts("run_1");
    relay.streams("m", 0, "words");
    assert_eq!(kinds(&relay.heard("a")), ["status/thinking", "status/streaming", "token"]);
    assert_eq!(relay.heard("b"), [] as [Value; 0]);
}

// spec: blob/isolation.2
#[test]
fn a_switch_to_a_session_that_is_not_there_changes_nothing() {
    let mut relay = Relay::watched();
    let answer = relay.asked("a", "sessions.switch", &json!({ "sessionId": "sess_none" }));
    assert_eq!(answer["error"], "Session not found: sess_none");
    relay.starts("run_1");
    assert_eq!(kinds(&relay.heard("a")), ["status/thinking"], "it is still where it was");
}

// spec: blob/sessions.4
#[test]
fn a_switch_to_where_the_connection_is_changes_nothing() {
    let mut relay = Relay::watched();
    relay.says_text("m1", "one");
    relay.heard("a");
    let answer = relay.asked("a", "sessions.switch", &json!({ "sessionId": SESSION }));
    assert_eq!(answer["payload"]["recentMessages"][0]["content"], "one");
    relay.starts("run_1");
    assert_eq!(kinds(&relay.heard("a")), ["status/thinking"], "and it hears on");
}

// spec: blob/sessions.4
#[test]
fn a_switch_to_where_the_connection_is_tells_nothing_twice() {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.heard("a");
    let stay = json!({ "sessionId": SESSION });
    assert_eq!(relay.asked("a", "sessions.switch", &stay)["ok"], true);
    relay.obey(Some("run_1"));
    assert_eq!(kinds(&relay.heard("a")), ["status/thinking"], "its message was shown");
    relay.streams("m", 0, "Hel");
    relay.sends("a", "s", "two");
    relay.heard("a");
    relay.ask("a", "t", "sessions.switch", &stay);
    relay.streams("m", 3, "lo");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["res", "token"]);
    assert_eq!(heard[1]["payload"]["content"], "lo");
}

// spec: blob/events.1
#[test]
fn a_message_is_its_senders_own_also_after_a_visit_elsewhere() {
    let mut relay = Relay::watched();
    relay.make("sess_2");
    relay.here = SESSION.into();
    relay.starts("run_1");
    relay.sends("a", "r", "one");
    relay.ask("a", "q", "sessions.switch", &json!({ "sessionId": "sess_2" }));
    relay.ask("a", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    relay.connect("b");
    relay.ask("b", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    relay.heard("a");
    relay.heard("b");
    relay.ends("run_1", domain::session::runs::Outcome::Completed);
    relay.obey(Some("run_2"));
    for (name, is_own) in [("a", true), ("b", false)] {
        let heard = relay.heard(name);
        let echo = heard.iter().find(|it| it["event"] == "message").unwrap();
        assert_eq!(echo["payload"]["fromSelf"], is_own, "{name}");
    }
}

// spec: blob/isolation.3
#[test]
fn what_happens_while_the_past_is_read_is_told_after_it_and_once() {
    let mut relay = Relay::new();
    relay.starts("run_1");
    relay.streams("m", 0, "He");
    relay.connect("a");
    relay.is_slow = true;
    relay.ask("a", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    relay.ask("a", "r", "agent", &json!({ "message": "meanwhile" }));
    relay.step();
    relay.streams("m", 2, "ll");
    relay.step();
    relay.streams("m", 4, "o");
    relay.says_text("m", "Hello");
    assert_eq!(relay.heard("a"), [] as [Value; 0]);
    relay.catch_up();
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard)[..3], ["res", "session_changed", "status/thinking"]);
    let tokens = heard.iter().filter(|it| it["event"] == "token");
    let words: String = tokens.map(|it| it["payload"]["content"].as_str().unwrap()).collect();
    assert_eq!(words, "Hello");
    let answers: Vec<_> =
        heard.iter().filter(|it| it["type"] == "res").map(|it| &it["id"]).collect();
    assert_eq!(answers, ["s", "r"], "in the order of the requests");
}

// spec: blob/connect.4
#[test]
fn a_connect_may_ask_for_a_session() {
    let connect = |relay: &mut Relay, more: Value| {
        let mut params = json!({ "version": "1" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        relay.open("a", "");
        relay.ask("a", "c", "connect", &params);
        relay.heard("a")
    };
    let mut relay = Relay::new();
    relay.says_text("m1", "one");
    relay.says_text("m2", "two");
    assert_eq!(
        kinds(&connect(&mut relay, json!({}))),
        ["res"],
        "the document's connect binds to none"
    );
    let heard = connect(&mut relay, json!({ "sessionPreference": "auto", "historyLimit": 1 }));
    assert_eq!(kinds(&heard), ["res", "session_changed"]);
    assert_eq!(heard[1]["payload"]["messages"].as_array().unwrap().len(), 1);
    let heard = connect(&mut relay, json!({ "sessionPreference": "new" }));
    assert_eq!(heard[1]["payload"]["sessionId"], MADE);
}

// spec: blob/status.1
#[test]
fn status_tells_of_a_session_that_runs_and_of_none() {
    let mut relay = Relay::watched();
    let run = relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.sends("a", "r", "two");
    relay.connect("b");
    let answer = relay.asked("b", "status", &json!({ "sessionId": SESSION }));
    let session = &answer["payload"]["session"];
    assert_eq!((&session["activeRun"], &session["queuedRequests"]), (&json!(run), &json!(1)));
    assert!(relay.asked("b", "status", &json!({}))["payload"]["session"].is_null());
    let answer = relay.asked("b", "status", &json!({ "sessionId": "sess_none" }));
    assert_eq!(answer["error"], "Session not found: sess_none");
}

// spec: blob/status.2
#[test]
fn who_joins_while_the_system_speaks_counts_as_everybody() {
    let mut relay = Relay::new();
    relay.connect("a");
    relay.is_slow = true;
    relay.ask("a", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    relay.step();
    relay.step();
    // It is in the session, and reads what was said last.
    relay.message("s1", Author::System, vec![Part::Text("compacted".to_owned())]);
    relay.message("m1", Author::Assistant, vec![Part::Text("done".to_owned())]);
    relay.catch_up();
    let heard = relay.heard("a");
    let changed = heard.iter().find(|frame| frame["event"] == "session_changed").unwrap();
    assert_eq!(changed["payload"]["stats"]["messageCount"], 1);
    let status = relay.asked("a", "status", &json!({}));
    assert_eq!(status["payload"]["session"]["messageCount"], 1);
}
