//! What happens in a session, as its clients see it.

use domain::content::{Attachment, Author, Part, ToolStatus};
use domain::passing::Voice;
use domain::session::runs::Outcome;
use domain::session::status::{CloseReason, DownReason};
use domain::session::transcript::Notice;
use domain::session::{Change, Command, Report};
use serde_json::{Value, json};

use super::relay::{Relay, SESSION, kinds};

fn words(heard: &[Value]) -> String {
    let tokens = heard.iter().filter(|it| it["event"] == "token");
    tokens.map(|it| it["payload"]["content"].as_str().unwrap()).collect()
}

fn running() -> Relay {
    let mut relay = Relay::watched();
    relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.heard("a");
    relay
}

// spec: blob/tokens.1
#[test]
fn an_agent_that_does_not_stream_is_told_in_one_token() {
    let mut relay = running();
    relay.says_text("m1", "all at once");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["status/streaming", "token"]);
    assert_eq!((words(&heard).as_str(), &heard[1]["seq"]), ("all at once", &json!(1)));
}

// spec: blob/tokens.1, blob/tokens.2
#[test]
fn tokens_put_together_are_what_was_said_whatever_was_missed_or_repeated() {
    let mut relay = running();
    relay.streams("m1", 0, "a😀");
    relay.streams("m1", 3, "b");
    // A machine that came back tells its draft from the start.
    relay.streams("m1", 0, "a😀bc");
    // Something was missed; the relay tells how things stand.
    relay.room_mut().drafts.take(&domain::passing::Delta {
        message: "m1".into(),
        part: 0,
        voice: Voice::Text,
        offset: 5,
        words: domain::Content::Open("d".to_owned()),
    });
    relay.lags("a");
    relay.says_text("m1", "a😀bcde");
    let heard = relay.heard("a");
    assert_eq!(words(&heard), "a😀bcde");
    let counts: Vec<_> = heard
        .iter()
        .filter(|it| it["event"] == "token")
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [1, 2, 3, 4, 5]);
}

// spec: blob/tokens.3
#[test]
fn a_token_is_encoded_once_for_all_who_were_there_from_the_start() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.starts("run_1");
    relay.streams("m1", 0, "first");
    relay.connect("c");
    relay.ask("c", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    relay.streams("m1", 5, " more");
    let last = |relay: &mut Relay, name: &str| relay.client(name).bytes.last().unwrap().clone();
    let (a, b, c) = (last(&mut relay, "a"), last(&mut relay, "b"), last(&mut relay, "c"));
    assert_eq!(a.as_ptr(), b.as_ptr(), "the same bytes in memory");
    assert_eq!(a, c, "and who came later counts on from what it was told");
    relay.says_text("m1", "first more");
    relay.calls("t", "Read", "{}");
    let (a, b) = (last(&mut relay, "a"), last(&mut relay, "b"));
    assert_eq!(a.as_ptr(), b.as_ptr());
}

// spec: blob/events.3
#[test]
fn thinking_is_a_status_and_no_token() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Thinking, 0, "hm");
    relay.passes("m1", 0, Voice::Thinking, 2, " hm");
    relay.passes("m1", 1, Voice::Text, 0, "yes");
    let parts = vec![Part::Thinking("hm hm".to_owned()), Part::Text("yes".to_owned())];
    relay.message("m1", Author::Assistant, parts);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["status/thinking", "status/streaming", "token"]);
    assert_eq!(words(&heard), "yes");
}

// spec: blob/events.4
#[test]
fn a_call_that_was_denied_is_a_result_without_success_and_no_error() {
    let mut relay = running();
    relay.calls("t1", "Bash", "not json");
    relay.returns("t1", ToolStatus::Running, "half");
    relay.returns("t1", ToolStatus::Cancelled, "denied");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["tool_call", "status/executing_tool", "tool_result"]);
    assert_eq!(heard[0]["payload"]["arguments"], json!({ "input": "not json" }));
    assert_eq!(heard[2]["payload"]["result"], json!({ "success": false, "error": "denied" }));
}

// spec: blob/isolation.3
#[test]
fn who_joins_during_a_run_hears_it_from_there_with_the_same_names() {
    let mut relay = running();
    relay.calls("t1", "Read", "{}");
    relay.streams("m1", 0, "so far");
    relay.connect("b");
    relay.ask("b", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    relay.heard("a");
    let heard = relay.heard("b");
    assert_eq!(words(&heard), "so far");
    relay.returns("t1", ToolStatus::Completed, "ok");
    relay.says_text("m1", "so far, so good");
    relay.ends("run_1", Outcome::Completed);
    let (mut a, mut b) = (relay.heard("a"), relay.heard("b"));
    for frame in a.iter_mut().chain(&mut b) {
        frame.as_object_mut().unwrap().remove("seq");
    }
    assert_eq!(a, b);
    assert_eq!(a[0]["payload"]["toolName"], "Read");
}

// spec: blob/isolation.4
#[test]
fn who_joins_while_a_tool_works_hears_so() {
    let status = |relay: &mut Relay, name: &str| {
        relay.connect(name);
        relay.ask(name, "s", "sessions.switch", &json!({ "sessionId": SESSION }));
        let heard = relay.heard(name);
        assert_eq!(kinds(&heard)[..2], ["res", "session_changed"]);
        kinds(&heard)[2..].join(" ")
    };
    let mut relay = running();
    assert_eq!(status(&mut relay, "b"), "status/thinking");
    relay.calls("t1", "bash", "{}");
    relay.calls("t2", "read", "{}");
    assert_eq!(status(&mut relay, "c"), "status/executing_tool");
    relay.returns("t1", ToolStatus::Completed, "x");
    assert_eq!(status(&mut relay, "d"), "status/executing_tool");
    relay.returns("t2", ToolStatus::Failed, "x");
    assert_eq!(status(&mut relay, "e"), "status/thinking");
    // What an earlier run left open is not at work.
    relay.calls("t3", "bash", "{}");
    relay.ends("run_1", Outcome::Interrupted);
    relay.starts("run_2");
    assert_eq!(status(&mut relay, "f"), "status/thinking");
}

// spec: blob/events.7
#[test]
fn what_nobody_said_is_a_message_of_the_system() {
    let mut relay = Relay::watched();
    let notice = Notice { kind: "rate_limit".to_owned(), text: "slow down".to_owned() };
    relay.report(Report::Notice(notice));
    relay.message("s1", Author::System, vec![Part::Text("compacted".to_owned())]);
    let down = Change::Down { connection: None, reason: DownReason::ProxyDisconnected };
    relay.say(&Command::Relay(down)).unwrap();
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["message/system", "message/system", "message/system"]);
    assert_eq!(heard[0]["payload"]["content"], "slow down");
    assert_eq!(heard[2]["payload"]["content"], "The session's machine is offline");
}

// spec: blob/events.7
#[test]
fn the_end_of_a_session_is_told_and_its_waiting_sends_fail() {
    let mut relay = running();
    relay.sends("a", "r2", "two");
    relay.heard("a");
    relay.report(Report::Closed { reason: CloseReason::TargetClosed, request: None });
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["error", "cancelled", "message/system"]);
    assert_eq!(heard[0]["payload"]["errorCode"], "NOT_CONNECTED");
    let answer = relay.asked("a", "agent", &json!({ "message": "hello?" }));
    assert_eq!(answer["error"], "the session is closed");
}

// spec: blob/events.8
#[test]
fn words_outside_any_run_and_from_elsewhere_are_messages() {
    let mut relay = Relay::watched();
    relay.message("u1", Author::User, vec![Part::Text("typed there".to_owned())]);
    relay.streams("m1", 0, "unasked");
    relay.says_text("m1", "unasked");
    let file = Attachment {
        id: "f".into(),
        name: "cat.png".to_owned(),
        kind: "image".to_owned(),
        media_type: Some("image/png".to_owned()),
    };
    relay.message("u2", Author::User, vec![Part::Text("look".to_owned()), Part::Image(file)]);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["message/user", "message/assistant", "message/user"]);
    assert_eq!(heard[2]["payload"]["content"], "look\n(image: cat.png)");
    assert_eq!(heard[0]["payload"]["fromSelf"], false);
}
