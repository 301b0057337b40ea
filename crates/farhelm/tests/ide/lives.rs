//! Who a panel is, over everything that can happen to it.

use serde_json::json;

use crate::stage::{Stage, id};
use crate::support::{Lines, said};

#[test]
fn a_session_is_the_same_over_reloads_and_restarts_of_the_machine_and_of_the_ide() {
    let Some(mut stage) = Stage::new("durable sessions") else { return };
    let tab = stage.open("claude-vscode", "one", "title=kite%20-%20Visual%20Studio%20Code");
    stage.up();
    let session = stage.session("claude-vscode");
    stage.send(&session, "first words");
    stage.send(&session, "second words");

    // The window is loaded anew.
    stage.script(&tab, "location.reload()");
    stage.until("the reload", |_| {
        let ready = stage.panels.journal("one");
        (ready.iter().filter(|entry| entry["kind"] == "ready").count() >= 2).then_some(())
    });
    assert_eq!(stage.session("claude-vscode"), session);

    // The machine is killed, and comes back.
    stage.kill();
    stage.up();
    assert_eq!(stage.session("claude-vscode"), session);

    // The IDE is killed, and comes back at the same port with the same window.
    stage.restart_chromium();
    stage.until("the loss", |sessions| (sessions[0]["status"] == "disconnected").then_some(()));
    stage.open("claude-vscode", "two", "title=main.rs%20-%20kite%20-%20Visual%20Studio%20Code");
    assert_eq!(stage.session("claude-vscode"), session);
    stage.send(&session, "third words");
    stage.until("the third words", |_| {
        let sent = stage.panels.journal("two");
        sent.iter().any(|entry| entry["kind"] == "sent").then_some(())
    });
    let told = stage.place.told(&["sessions", "--json"]);
    assert!(!told.contains("target_id"), "{told}");
}

#[test]
fn two_windows_are_two_sessions_and_another_chat_in_a_window_is_another_one() {
    let Some(mut stage) = Stage::new("two windows") else { return };
    stage.up();
    let tab = stage.open("opencode-web", "a", "");
    let first = stage.session("opencode-web");
    stage.open("opencode-web", "b", "");
    let second = stage.until("the second", |sessions| {
        sessions.iter().find(|it| id(it) != first && it["status"] == "healthy").map(id)
    });
    stage.send(&first, "for a");
    stage.send(&second, "for b");
    let words = |instance: &str| {
        let sent = stage.panels.journal(instance);
        sent.iter().filter(|it| it["kind"] == "sent").count()
    };
    stage.until("both words", |_| ((words("a"), words("b")) == (1, 1)).then_some(()));

    // The first window shows another chat, and then its own again.
    let url = stage.panels.url("opencode-web", "c", "");
    stage.script(&tab, &format!("location.href = {}", json!(url)));
    stage.until("the third", |sessions| {
        let was = sessions.iter().find(|it| id(it) == first)?;
        let is_third = |it: &&serde_json::Value| {
            id(it) != first && id(it) != second && it["status"] == "healthy"
        };
        (was["status"] == "disconnected" && sessions.iter().any(|it| is_third(&it))).then_some(())
    });
    let url = stage.panels.url("opencode-web", "a", "");
    stage.script(&tab, &format!("location.href = {}", json!(url)));
    stage.until("the first again", |sessions| {
        let was = sessions.iter().find(|it| id(it) == first)?;
        (was["status"] == "healthy" && sessions.len() == 3).then_some(())
    });
}

#[test]
fn a_closed_chat_stays_closed_until_something_is_said_in_it() {
    let Some(mut stage) = Stage::new("closing") else { return };
    stage.up();
    let tab = stage.open("antigravity", "ide", "");
    let session = stage.session("antigravity");
    stage.send(&session, "hello");
    stage.place.told(&["close", &session]);
    stage.until("its end", |sessions| {
        let open = sessions.iter().filter(|it| it["agent_type"] == "antigravity");
        (open.filter(|it| it["status"] == "healthy").count() == 0).then_some(())
    });
    // The IDE is the person's: it is still there, and speaks again.
    assert_eq!(stage.script(&tab, "1 + 1"), 2);
    stage.panel_does(&tab, &json!({"do": "say", "role": "user", "text": "once more"}));
    let again = stage.until("a new session", |sessions| {
        sessions.iter().find(|it| id(it) != session && it["status"] == "healthy").map(id)
    });
    assert_ne!(again, session);

    // A page that is nothing but the chat goes with its session.
    let page = stage.open("opencode-web", "page", "");
    let session = stage.session("opencode-web");
    stage.place.told(&["close", &session]);
    stage.until("the page's end", |_| {
        let targets = stage.call("Target.getTargets", json!({}));
        let all = targets["targetInfos"].as_array().unwrap().clone();
        all.iter().all(|it| it["targetId"] != page.as_str()).then_some(())
    });
}

#[test]
fn a_chat_that_was_closed_while_its_panel_was_away_does_not_come_back_by_itself() {
    let Some(mut stage) = Stage::new("closing from afar") else { return };
    stage.up();
    stage.open("antigravity", "ide", "rows=4");
    let session = stage.session("antigravity");
    stage.restart_chromium();
    stage.until("the loss", |sessions| (sessions[0]["status"] == "disconnected").then_some(()));
    stage.place.told(&["close", &session]);

    let tab = stage.open("antigravity", "ide", "rows=4");
    stage.until("the panel", |_| {
        let ready = stage.panels.journal("ide");
        (ready.iter().filter(|entry| entry["kind"] == "ready").count() == 2).then_some(())
    });
    stage.open("opencode-web", "page", "");
    stage.session("opencode-web");
    let is_back = |it: &serde_json::Value| {
        it["agent_type"] == "antigravity" && id(it) != session && it["status"] == "healthy"
    };
    assert!(!stage.sessions().iter().any(is_back), "{:#?}", stage.sessions());
    stage.panel_does(&tab, &json!({"do": "say", "role": "user", "text": "once more"}));
    stage.until("a new session", |sessions| sessions.iter().any(is_back).then_some(()));
}

#[test]
fn a_new_chat_is_launched_in_an_open_panel_and_elsewhere_it_is_said_why_not() {
    let Some(mut stage) = Stage::new("launching") else { return };
    stage.up();
    let refused = stage.place.run(&["launch", "antigravity"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("launch_not_supported"), "{words}");

    stage.open("antigravity", "ide", "");
    let first = stage.session("antigravity");
    stage.send(&first, "in the first chat");
    let launched = stage.place.json(&["launch", "antigravity", "--json"]);
    let second = id(&launched);
    assert_ne!(second, first);
    stage.until("the new chat", |_| {
        let journal = stage.panels.journal("ide");
        journal.iter().any(|entry| entry["kind"] == "new_chat").then_some(())
    });
    let tail = Lines::of(stage.place.farhelm(&["tail", &second, "--after", "0", "--json"]));
    stage.send(&second, "in the second chat");
    let seen = tail.until(|event| said(event).is_some_and(|it| it.contains("echo: in the second")));
    assert!(!seen.iter().any(|event| said(event).is_some_and(|it| it.contains("the first"))));
    let late = stage.place.run(&["send", &first, "too late", "--timeout-ms", "20000"]);
    assert_eq!(late.status.code(), Some(1), "its panel shows another chat");
}
