//! Slash commands and permission questions.

use domain::Content;
use domain::content::{Attachment, Author, Part};
use domain::session::prompts::{Detail, Effect};
use domain::session::runs::Outcome;
use domain::session::{Order, Report};
use serde_json::{Value, json};

use super::relay::{MADE, Relay, SESSION, START, kinds};
use crate::visitors::stage::machine;

const YES: Option<Effect> = Some(Effect::AllowOnce);

fn types(relay: &mut Relay, name: &str, text: &str) -> Vec<Value> {
    relay.ask(name, "c", "agent", &json!({ "message": text }));
    let heard = relay.heard(name);
    assert_eq!(heard[0]["payload"], json!({ "status": "command_processed" }), "{text}");
    heard
}

fn told(heard: &[Value]) -> &str {
    heard.last().unwrap()["payload"]["content"].as_str().unwrap()
}

// spec: blob/commands.1, blob/commands.2
#[test]
fn a_command_is_answered_at_once_and_told_to_its_writer_alone() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.says_text("m1", "hello");
    relay.heard("a");
    relay.heard("b");
    assert!(told(&types(&mut relay, "a", "/help")).contains("/sessions"));
    assert_eq!(told(&types(&mut relay, "a", "/history 5")), "assistant: hello");
    assert!(told(&types(&mut relay, "a", "/status")).contains("1 messages, 0 queued, idle"));
    assert_eq!(relay.heard("b"), [] as [Value; 0]);
    assert_eq!(relay.room().session.owed().len(), 0, "nothing of it went to the agent");
    relay.sends("a", "r", "/compact");
    assert_eq!(relay.room().session.owed().len(), 1, "the agent may have commands of its own");
}

// spec: blob/commands.3
#[test]
fn after_a_list_a_number_goes_to_a_session() {
    let mut relay = Relay::watched();
    for number in 0..12 {
        relay.make(&format!("sess_{number:02}"));
    }
    let first = types(&mut relay, "a", "/sessions");
    assert!(told(&first).ends_with("Page 1 of 2; type a number to switch"), "{}", told(&first));
    let second = types(&mut relay, "a", "/sessions next");
    assert!(told(&second).contains("4. "));
    let heard = types(&mut relay, "a", "1");
    assert_eq!(kinds(&heard), ["res", "session_changed", "message/system"]);
    assert_eq!(heard[1]["payload"]["sessionId"], "sess_08");
    let found = types(&mut relay, "a", "/sessions search ARCHITECTURE");
    assert!(told(&found).starts_with("1. AI architecture discussion"), "{}", told(&found));
    // Only right after the list.
    relay.sends("a", "r", "one");
    relay.heard("a");
    relay.sends("a", "r", "1");
    assert_eq!(kinds(&relay.heard("a")), ["res", "queued", "message/user"]);
    let heard = types(&mut relay, "a", &format!("/switch {SESSION}"));
    assert_eq!(heard[1]["payload"]["sessionId"], SESSION);
    assert_eq!(told(&types(&mut relay, "a", "/switch nowhere")), "Session not found: nowhere");
}

// spec: blob/commands.4
#[test]
fn a_new_session_by_command_is_gone_to() {
    let mut relay = Relay::watched();
    let heard = types(&mut relay, "a", "/new my project");
    // Agent Blob's command line waits for a message of the system after every command.
    assert_eq!(kinds(&heard), ["res", "session_changed", "message/system"]);
    assert_eq!(
        (&heard[1]["payload"]["sessionId"], &heard[1]["payload"]["title"]),
        (&json!(MADE), &json!("my project"))
    );
    assert_eq!(told(&heard), format!("Started a new session: my project ({MADE})"));
    relay.here = MADE.into();
    relay.sends("a", "r", "to the new one");
    assert_eq!(relay.room().session.owed().len(), 1, "what is said next is said there");
    relay.heard("a");
    relay.shell.has_machine = false;
    assert_eq!(
        told(&types(&mut relay, "a", "/new")),
        "Could not create a session: No machine is connected"
    );
}

/// Agent Blob's command line prints through a library to which `[word]` is markup, not text.
// spec: blob/commands.5
#[test]
fn what_the_relay_says_has_no_square_brackets() {
    let mut relay = Relay::watched();
    relay.says_text("m1", "hello");
    let file = |name: &str, kind: &str| Attachment {
        id: name.into(),
        name: name.to_owned(),
        kind: "file".to_owned(),
        media_type: Some(kind.to_owned()),
    };
    let parts = vec![
        Part::Image(file("cat.png", "image/png")),
        Part::File(file("notes.txt", "text/plain")),
    ];
    relay.message("u1", Author::User, parts);
    relay.asks("p1");
    let mut heard = relay.heard("a");
    for command in ["/help", "/sessions", "/history", "/status", "/deny p9", "/switch x", "/deny"] {
        heard.extend(types(&mut relay, "a", command));
    }
    let said: Vec<_> =
        heard.iter().filter_map(|frame| frame["payload"]["content"].as_str()).collect();
    assert!(said.len() >= 9, "{said:#?}");
    for words in said {
        assert!(!words.contains(['[', ']']), "{words}");
    }
}

/// Its command line reads no input while a run of its own goes on, so nobody could type an answer.
// spec: blob/prompts.5
#[test]
fn who_waits_for_a_run_that_asks_is_freed_by_an_error_after_a_while() {
    let mut relay = Relay::watched();
    relay.join("b");
    let run = relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.asks("p1");
    relay.heard("a");
    relay.heard("b");
    relay.waits("a", 9_999);
    relay.waits("b", 0);
    assert_eq!(relay.heard("a"), [] as [Value; 0]);
    relay.waits("a", 1);
    relay.waits("b", 0);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["error"]);
    let payload = &heard[0]["payload"];
    assert_eq!((&payload["runId"], &payload["retryable"]), (&json!(run), &json!(false)));
    assert_eq!(payload["errorCode"], "TOOL_EXECUTION_FAILED");
    assert!(payload["message"].as_str().unwrap().contains("/approve p1"), "{payload}");
    assert_eq!(relay.heard("b"), [] as [Value; 0], "it does not wait for this run");
    // Once, and the run goes on with the answer.
    relay.waits("a", 60_000);
    assert_eq!(relay.heard("a"), [] as [Value; 0]);
    types(&mut relay, "a", "/approve");
    relay.obey(None);
    relay.ends("run_1", Outcome::Completed);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard)[kinds(&heard).len() - 2..], ["status/done", "final"]);
}

// spec: blob/prompts.5
#[test]
fn a_question_that_was_answered_in_time_leads_to_no_error() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.sends("a", "r", "one");
    relay.obey(Some("run_1"));
    relay.asks("p1");
    relay.heard("b");
    types(&mut relay, "b", "/deny p1");
    relay.heard("a");
    relay.waits("a", 60_000);
    assert_eq!(relay.heard("a"), [] as [Value; 0]);
}

// spec: blob/prompts.1, blob/prompts.2, blob/prompts.3
#[test]
fn a_permission_question_is_shown_to_all_and_answered_by_one() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.starts("run_1");
    relay.heard("a");
    relay.heard("b");
    relay.asks("p1");
    relay.asks("p2");
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard)[..2], ["status/executing_tool", "message/system"]);
    assert_eq!(
        heard[1]["payload"]["prompt"],
        json!({ "id": "p1", "state": "open", "text": "Run this command? ls" })
    );
    relay.heard("a");
    types(&mut relay, "a", "/approve");
    let heard = relay.heard("b");
    assert_eq!(
        heard[0]["payload"]["prompt"],
        json!({ "id": "p1", "state": "closed", "choice": "yes" })
    );
    assert_eq!(told(&heard), "Permission answered by a's phone: YES");
    types(&mut relay, "b", "/deny p2");
    assert!(told(&relay.heard("a")).ends_with(": NO"));
    assert_eq!(told(&types(&mut relay, "a", "/deny")), "No matching permission request is open");
    relay.refuse("stuck");
    let heard = relay.heard("a");
    assert_eq!(heard[0]["payload"]["prompt"]["state"], "open", "an answer that was not applied");
}

// spec: blob/prompts.6
#[test]
fn questions_that_want_answers_are_not_approved_and_say_where_to_answer() {
    let option_buttons = [("small", YES), ("large", YES), ("no", Some(Effect::Reject))];
    let form_buttons = [("answer", YES), ("no", Some(Effect::Reject))];
    for choices in [&option_buttons[..], &form_buttons[..]] {
        let mut relay = Relay::watched();
        let question = json!([{ "question": "Which?", "options": ["SMALL", "LARGE"] }]);
        let questions = Some(question.to_string());
        relay.asks_about("p1", choices, Detail { questions, ..Detail::default() });
        let heard = relay.heard("a");
        assert!(!told(&heard).contains("/approve"), "{}", told(&heard));
        assert!(
            told(&heard).contains("in another client, or deny with /deny p1"),
            "{}",
            told(&heard)
        );
        let heard = types(&mut relay, "a", "/approve");
        assert!(told(&heard).contains("in another client"), "{}", told(&heard));
        assert_eq!(relay.room().session.owed().len(), 0, "nothing is pressed");
        types(&mut relay, "a", "/deny");
        assert_eq!(relay.room().session.owed().len(), 1);
    }
}

// spec: blob/prompts.6
#[test]
fn a_question_offers_only_the_commands_that_would_answer_it() {
    let no = Some(Effect::Reject);
    for (choices, offered, refused) in [
        // As pi asks for one of several options.
        (&[("red", None), ("blue", None), ("cancel", no)][..], "or deny with /deny p1", "/approve"),
        (&[("go", YES), ("wait", None)], "with /approve p1, or in another client", "/deny"),
        (&[("red", None), ("blue", None)], "in another client", "/approve"),
    ] {
        let mut relay = Relay::watched();
        relay.sends("a", "r", "one");
        relay.obey(Some("run_1"));
        relay.asks_about("p1", choices, Detail::default());
        let heard = relay.heard("a");
        relay.waits("a", 10_000);
        let freed = relay.heard("a").remove(0)["payload"]["message"].as_str().unwrap().to_owned();
        for words in [told(&heard), &freed] {
            assert!(words.contains(offered) && !words.contains(refused), "{words}");
        }
        let heard = types(&mut relay, "a", refused);
        assert!(told(&heard).contains(offered), "{}", told(&heard));
        assert_eq!(relay.room().session.owed().len(), 0, "nothing is pressed");
    }
}

// spec: blob/prompts.7
#[test]
fn a_question_whose_id_has_brackets_is_answered_by_the_id_as_it_is_shown() {
    for typed in ["ask［1］", "ask[1]"] {
        let mut relay = Relay::watched();
        relay.asks("ask[2]");
        relay.asks("ask[1]");
        let heard = relay.heard("a");
        let shown = told(&heard);
        assert!(shown.contains("/approve ask［1］ or /deny ask［1］"), "{shown}");
        types(&mut relay, "a", &format!("/approve {typed}"));
        let owed = relay.room().session.owed();
        let [Order::Answer { prompt, .. }] = owed.as_slice() else { panic!("{owed:?}") };
        assert_eq!(prompt.as_str(), "ask[1]");
    }
    // Two that are shown alike: neither is guessed.
    let mut relay = Relay::watched();
    relay.asks("ask[1]");
    relay.asks("ask［1］");
    relay.heard("a");
    types(&mut relay, "a", "/approve ask［1］");
    assert_eq!(relay.room().session.owed().len(), 0);
}

// spec: blob/commands.5
#[test]
fn brackets_in_a_question_of_the_agent_are_shown_as_others_that_are_no_markup() {
    let mut relay = Relay::watched();
    let mut prompt = machine::prompt("p1", &machine::YES_NO, "no", None, START);
    let command = "rm [a-z]*[/] && echo [bold]x[/bold]";
    prompt.text = Content::Open(format!("Run this command?\n{command}"));
    prompt.choices[0].label = "Yes [always]".to_owned();
    relay.report(Report::Asked(prompt));
    let mut heard = relay.heard("a");
    let payload = &heard.last().unwrap()["payload"];
    let content = payload["content"].as_str().unwrap();
    assert!(content.contains("rm ［a-z］*［/］ && echo ［bold］x［/bold］"), "{content}");
    assert!(payload["prompt"]["text"].as_str().unwrap().contains(command), "as it is");
    heard.extend(types(&mut relay, "a", "/approve"));
    for frame in &heard {
        let content = frame["payload"]["content"].as_str().unwrap_or_default();
        assert!(!content.contains(['[', ']']), "{content}");
    }
}

// spec: blob/prompts.4
#[test]
fn who_joins_late_is_asked_too() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.connect("b");
    relay.ask("b", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["res", "session_changed", "message/system"]);
    assert_eq!(heard[2]["payload"]["prompt"]["id"], "p1");
    relay.starts("run_1");
    relay.connect("c");
    relay.ask("c", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    let expected = ["res", "session_changed", "status/executing_tool", "message/system"];
    assert_eq!(kinds(&relay.heard("c")), expected);
}
