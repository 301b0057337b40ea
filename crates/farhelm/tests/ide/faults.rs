//! Kills and reloads in the middle of everything: nothing is sent or answered twice, nothing that
//! was acknowledged is lost, and what nobody can know is told as that.

use std::process::Output;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::ide::person;
use crate::ide::stage::{Stage, id, until_run_ended};
use crate::support::{Lines, ended, said};

/// A command that goes on beside the test.
fn beside(stage: &Stage, words: &[&str]) -> JoinHandle<Output> {
    let command = stage.place.farhelm(words);
    std::thread::spawn(move || ended(command))
}

/// A client that would wait for its relay for ever; it ends when this is dropped.
fn alone(stage: &Stage, words: &[&str]) -> Lines {
    Lines::of(stage.place.farhelm(words))
}

/// The words of a transcript, from its beginning to what was asked and the answer that fits.
fn transcript(stage: &Stage, session: &str, asked: &str, answer: &str) -> Vec<String> {
    let tail = Lines::of(stage.place.farhelm(&["tail", session, "--after", "0", "--json"]));
    let mut events = tail.until(|event| said(event) == Some(asked));
    events.extend(tail.until(|event| said(event).is_some_and(|it| it.contains(answer))));
    events.iter().filter_map(said).map(str::to_owned).collect()
}

fn times(words: &[String], part: &str) -> usize {
    words.iter().map(|it| it.matches(part).count()).sum()
}

/// Everything that was told of a session, up to a message that is sent now and answered.
fn history(stage: &Stage, session: &str) -> Vec<Value> {
    let tail = Lines::of(stage.place.farhelm(&["tail", session, "--after", "0", "--json"]));
    stage.send(session, "the very last");
    tail.until(|event| said(event).is_some_and(|it| it.contains("echo: the very last")))
}

/// The failure of a send that was lost in the middle.
fn failure(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told} {}", String::from_utf8_lossy(&output.stderr));
    format!("{told} {}", String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_reload_and_a_kill_while_an_answer_streams_double_nothing() {
    let Some(mut stage) = Stage::new("faults while streaming") else { return };
    stage.up();
    for panel in ["claude-vscode", "antigravity"] {
        let tab = stage.open(panel, panel, "mutate=keep");
        let session = stage.session(panel);
        stage.send(&session, "hello there");
        let run = stage.send_for_run(&session, "slow: 300");
        let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
        tail.until(|event| event.to_string().contains("word3"));
        stage.script(&tab, "location.reload()");
        stage.until_noted(panel, "ready", 2);
        assert_eq!(stage.session(panel), session, "{panel}");
        // The run is over: its panel forgot it.
        until_run_ended(&tail, &run);

        stage.send(&session, "slow: 40");
        stage.kill();
        stage.up();
        let words = transcript(&stage, &session, "slow: 40", "word39");
        for (part, count) in [("hello there", 2), ("slow: 300", 1), ("slow: 40", 1)] {
            assert_eq!(times(&words, part), count, "{panel} {part}: {words:#?}");
        }
        // Of the first run as much was told as was said before the reload.
        let second = words.iter().position(|it| it == "slow: 40").unwrap();
        assert_eq!(times(&words[second..], "word39"), 1, "{panel}: {words:#?}");
        // Two answers begin with it: the one that was cut off, and the whole one.
        assert_eq!(times(&words, "word0 "), 2, "{panel}: {words:#?}");
        stage.noted_exactly(panel, "sent", 3);
        let ids: Vec<_> = stage.sessions().iter().map(id).collect();
        assert_eq!(ids.iter().filter(|it| **it == session).count(), 1, "{ids:?}");
        stage.call("Target.closeTarget", json!({"targetId": tab}));
    }
}

#[test]
fn what_is_lost_while_it_is_typed_was_not_sent() {
    let Some(mut stage) = Stage::new("faults while typing") else { return };
    stage.up();
    let tab = stage.open("claude-vscode", "a", "mutate=hold-send");
    let session = stage.session("claude-vscode");

    let send = beside(&stage, &["send", &session, "never one", "--json"]);
    stage.until_noted("a", "typing", 1);
    stage.script(&tab, "location.reload()");
    let told = failure(&send.join().unwrap());
    assert!(told.contains("send_injection_failed"), "{told}");
    stage.until_noted("a", "ready", 2);
    assert_eq!(stage.session("claude-vscode"), session);

    // Nobody who was killed knows how far it came.
    let typed = stage.noted("a", "typing");
    let client = alone(&stage, &["send", &session, "never two", "--json"]);
    stage.until_noted("a", "typing", typed + 1);
    stage.kill();
    drop(client);
    stage.up();
    assert_eq!(stage.session("claude-vscode"), session);
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    tail.until(|event| event.to_string().contains("delivery_unknown"));

    let typed = stage.noted("a", "typing");
    let send = beside(&stage, &["send", &session, "never three", "--json"]);
    stage.until_noted("a", "typing", typed + 1);
    stage.restart_chromium();
    let told = failure(&send.join().unwrap());
    assert!(told.contains("send_injection_failed"), "{told}");
    assert_eq!(stage.noted("a", "sent"), 0);
}

#[test]
fn what_is_lost_after_the_press_is_unknown_and_never_repeated() {
    let Some(mut stage) = Stage::new("faults after the press") else { return };
    stage.up();
    stage.open("antigravity", "a", "mutate=reload-on-send,keep");
    let session = stage.session("antigravity");
    let told = failure(&stage.place.run(&["send", &session, "one", "--json"]));
    assert!(told.contains("delivery_unknown"), "{told}");
    stage.until_noted("a", "ready", 2);
    assert_eq!(stage.session("antigravity"), session);
    stage.noted_exactly("a", "sent", 1);

    stage.restart_chromium();
    stage.open("antigravity", "b", "mutate=slow-send&conversation=conversation-a");
    assert_eq!(stage.session("antigravity"), session);
    let client = alone(&stage, &["send", &session, "two", "--json"]);
    stage.until_noted("b", "sent", 1);
    stage.kill();
    drop(client);
    stage.up();
    assert_eq!(stage.session("antigravity"), session);
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    tail.until(|event| said(event) == Some("echo: two"));
    stage.noted_exactly("b", "sent", 1);

    // What the panel takes away while it is typed would be somebody's doing.
    stage.until_noted("b", "emptied", 1);
    let send = beside(&stage, &["send", &session, "three", "--json"]);
    stage.until_noted("b", "sent", 2);
    stage.restart_chromium();
    let told = failure(&send.join().unwrap());
    assert!(told.contains("delivery_unknown"), "{told}");
    stage.open("antigravity", "c", "conversation=conversation-a");
    assert_eq!(stage.session("antigravity"), session);
    let events = history(&stage, &session);
    let unknown = events.iter().filter(|it| it.to_string().contains("delivery_unknown"));
    assert!(unknown.count() >= 3, "{events:#?}");
    for (instance, count) in [("a", 1), ("b", 2), ("c", 1)] {
        stage.noted_exactly(instance, "sent", count);
    }
}

fn is_asked(event: &Value) -> bool {
    event["type"] == "permission_prompt"
}

fn prompt_of(events: &[Value]) -> String {
    events.last().unwrap()["prompt_id"].as_str().unwrap().to_owned()
}

/// What ends a question for everybody.
fn is_over(event: &Value, prompt: &str) -> bool {
    event["prompt_id"] == prompt && !is_asked(event)
}

#[test]
fn a_question_lives_as_long_as_its_dialog_and_a_new_dialog_is_a_new_question() {
    let Some(mut stage) = Stage::new("faults while asking") else { return };
    stage.up();
    let tab = stage.open("antigravity", "a", "mutate=keep");
    let session = stage.session("antigravity");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    stage.send(&session, "ask: rm -rf build");
    let first = prompt_of(&tail.until(is_asked));

    // Loaded anew, it is another dialog with the same words.
    stage.script(&tab, "location.reload()");
    let mut seen = vec![];
    let second = loop {
        seen.extend(tail.until(|event| is_asked(event) || is_over(event, &first)));
        let is_new = |it: &&Value| is_asked(it) && it["prompt_id"] != first.as_str();
        let new = seen.iter().find(is_new);
        if let (Some(new), true) = (new, seen.iter().any(|it| is_over(it, &first))) {
            break new["prompt_id"].as_str().unwrap().to_owned();
        }
    };
    let late = stage.place.run(&["answer", &session, &first, "deny"]);
    assert_eq!(late.status.code(), Some(1), "it is over");
    assert_eq!(stage.noted("a", "answered"), 0);

    // Killed and back: it is still asked, and answered once.
    stage.kill();
    stage.up();
    assert_eq!(stage.session("antigravity"), session);
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    let open = open_prompt(&stage, &session);
    assert!(open != first, "{open} {second}");
    stage.place.told(&["answer", &session, &open, "deny"]);
    stage.until_noted("a", "answered", 1);
    tail.until(|event| said(event).is_some_and(|it| it == "chose: Reject"));

    // The same question again is another one: an answer to the first does nothing to it.
    stage.send(&session, "ask: rm -rf build");
    tail.until(|event| is_asked(event) && event["prompt_id"] != first.as_str());
    let third = open_prompt(&stage, &session);
    assert!(third != open && third != first);
    let late = stage.place.run(&["answer", &session, &open, "allow"]);
    assert_eq!(late.status.code(), Some(1), "it was answered");

    // Swapped: the old is over, the new is asked, nothing is pressed. (A swap between the look and
    // the click is a matter of `proxy/tests/acting`: here nobody knows which comes first.)
    stage.panel_does(&tab, &json!({"do": "swap", "text": "rm -rf /"}));
    tail.until(|event| is_over(event, &third));
    let late = stage.place.run(&["answer", &session, &third, "allow"]);
    assert_eq!(late.status.code(), Some(1), "another question is there");
    let fourth = open_prompt(&stage, &session);
    assert_ne!(fourth, third);

    // Gone without an answer.
    stage.panel_does(&tab, &json!({"do": "withdraw"}));
    tail.until(|event| is_over(event, &fourth));
    let late = stage.place.run(&["answer", &session, &fourth, "allow"]);
    assert_eq!(late.status.code(), Some(1), "it was withdrawn");

    // The whole browser is gone.
    stage.panel_does(&tab, &json!({"do": "ask", "text": "may I?"}));
    tail.until(is_asked);
    let fifth = open_prompt(&stage, &session);
    stage.restart_chromium();
    tail.until(|event| is_over(event, &fifth));
    let late = stage.place.run(&["answer", &session, &fifth, "allow"]);
    assert_eq!(late.status.code(), Some(1), "its browser is gone");
    stage.noted_exactly("a", "answered", 1);
}

/// The questions that are open by what is recorded.
fn questions(stage: &Stage, session: &str) -> Vec<String> {
    let mut open: Vec<String> = vec![];
    for event in &person::recorded(stage, session) {
        let Some(prompt) = event["prompt_id"].as_str() else { continue };
        open.retain(|it| it != prompt);
        if is_asked(event) {
            open.push(prompt.to_owned());
        }
    }
    open
}

/// The one question that is open.
fn open_prompt(stage: &Stage, session: &str) -> String {
    stage.until("one question", |_| {
        let mut open = questions(stage, session);
        open.pop().filter(|_| open.is_empty())
    })
}

#[test]
fn an_answer_that_is_lost_in_the_middle_is_given_once() {
    let Some(mut stage) = Stage::new("faults while answering") else { return };
    stage.up();
    stage.open("antigravity", "a", "mutate=reload-on-answer");
    let session = stage.session("antigravity");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    stage.send(&session, "ask: rm -rf build");
    let prompt = prompt_of(&tail.until(is_asked));
    let _ = stage.place.run(&["answer", &session, &prompt, "deny"]);
    stage.until_noted("a", "ready", 2);
    stage.until("no question", |_| questions(&stage, &session).is_empty().then_some(()));
    stage.noted_exactly("a", "answered", 1);

    // Killed right after the press: the question is open again only if its dialog is.
    stage.restart_chromium();
    stage.open("antigravity", "b", "mutate=stuck-dialog&conversation=conversation-a");
    assert_eq!(stage.session("antigravity"), session);
    stage.send(&session, "ask: rm -rf build");
    let prompt = open_prompt(&stage, &session);
    let client = alone(&stage, &["answer", &session, &prompt, "deny"]);
    stage.until_noted("b", "answered", 1);
    stage.kill();
    drop(client);
    stage.up();
    assert_eq!(stage.session("antigravity"), session);
    open_prompt(&stage, &session);
    let labels: Vec<_> = stage.panels.journal("b").iter().map(|it| it["label"].clone()).collect();
    assert!(!labels.contains(&json!("Run")), "{labels:?}");

    stage.restart_chromium();
    stage.open("antigravity", "c", "mutate=slow-answer&conversation=conversation-a");
    assert_eq!(stage.session("antigravity"), session);
    stage.send(&session, "ask: rm -rf build");
    let prompt = open_prompt(&stage, &session);
    let client = alone(&stage, &["answer", &session, &prompt, "deny"]);
    stage.until_noted("c", "answered", 1);
    stage.kill();
    drop(client);
    stage.up();
    assert_eq!(stage.session("antigravity"), session);
    stage.until("no question", |_| questions(&stage, &session).is_empty().then_some(()));
    stage.noted_exactly("c", "answered", 1);
}

#[test]
fn a_launch_that_is_lost_in_the_middle_is_not_repeated() {
    let Some(mut stage) = Stage::new("faults while launching") else { return };
    stage.up();
    stage.open("antigravity", "a", "mutate=slow-chat");
    let session = stage.session("antigravity");
    stage.send(&session, "in the first chat");
    let client = alone(&stage, &["launch", "antigravity", "--json"]);
    stage.until_noted("a", "new_chat", 1);
    stage.kill();
    drop(client);
    stage.up();
    // The chat that was opened is somebody's, and a new one is not opened again.
    stage.until("a session of the new chat", |sessions| {
        sessions.iter().any(|it| it["status"] == "healthy" && id(it) != session).then_some(())
    });
    stage.noted_exactly("a", "new_chat", 1);

    let launch = beside(&stage, &["launch", "antigravity", "--json"]);
    stage.until_noted("a", "new_chat", 2);
    stage.restart_chromium();
    let told = failure(&launch.join().unwrap());
    assert!(told.contains("launch_") || told.contains("control_failed"), "{told}");
}
