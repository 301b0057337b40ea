//! Who a panel is, over everything that can happen to it.

use serde_json::json;

use crate::ide::stage::{Stage, id};
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
    stage.until_noted("one", "ready", 2);
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
    stage.until_noted("two", "sent", 1);
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
    stage.noted_exactly("a", "sent", 1);
    stage.noted_exactly("b", "sent", 1);

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
    stage.until_noted("ide", "ready", 2);
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
    stage.until_noted("ide", "new_chat", 1);
    let tail = Lines::of(stage.place.farhelm(&["tail", &second, "--after", "0", "--json"]));
    stage.send(&second, "in the second chat");
    let seen = tail.until(|event| said(event).is_some_and(|it| it.contains("echo: in the second")));
    assert!(!seen.iter().any(|event| said(event).is_some_and(|it| it.contains("the first"))));
    let late = stage.place.run(&["send", &first, "too late", "--timeout-ms", "20000"]);
    assert_eq!(late.status.code(), Some(1), "its panel shows another chat");
}

#[test]
fn a_new_chat_without_a_name_that_a_person_begins_is_another_session() {
    let Some(mut stage) = Stage::new("new chats of a person") else { return };
    stage.up();
    for (panel, button) in [
        ("claude-vscode", "[aria-label='New conversation']"),
        ("vscode-chat", "[aria-label^='New Chat']"),
    ] {
        let tab = stage.open(panel, panel, "");
        let first = stage.session(panel);
        let holder = if panel == "vscode-chat" { tab.clone() } else { stage.webview(panel) };
        let of = |sessions: &[serde_json::Value]| {
            let mut all = sessions.to_vec();
            all.retain(|it| it["agent_type"] == panel);
            all
        };
        stage.send(&first, "before clearing");
        // Cleared, and spoken in again: it is the same chat.
        stage.panel_does(&holder, &json!({"do": "clear"}));
        stage.send(&first, "first words");
        stage.send(&first, "second words");
        let tail = Lines::of(stage.place.farhelm(&["tail", &first, "--after", "0", "--json"]));
        tail.until(|event| said(event).is_some_and(|it| it.contains("echo: second words")));
        assert_eq!(stage.session(panel), first, "{panel}");

        stage.press(&holder, button);
        let is_status = |it: &serde_json::Value, session: &str, status: &str| {
            id(it) == session && it["status"] == status
        };
        let second = stage.until("the second chat", |sessions| {
            let all = of(sessions);
            let is_left = all.iter().any(|it| is_status(it, &first, "disconnected"));
            let other = all.iter().find(|it| id(it) != first && it["status"] == "healthy");
            other.filter(|_| is_left).map(id)
        });
        let tail = Lines::of(stage.place.farhelm(&["tail", &second, "--after", "0", "--json"]));
        stage.send(&second, "in the second chat");
        let seen = tail.until(|event| said(event).is_some_and(|it| it.contains("echo: in the se")));
        assert!(!seen.iter().any(|event| said(event).is_some_and(|it| it.contains("first words"))));
        let late = stage.place.run(&["send", &first, "too late", "--timeout-ms", "20000"]);
        assert_eq!(late.status.code(), Some(1), "its panel shows another chat");

        // Once more, and then the first chat comes back out of the panel's own list.
        stage.press(&holder, button);
        stage.until("the third chat", |sessions| {
            let all = of(sessions);
            let is_left = all.iter().any(|it| is_status(it, &second, "disconnected"));
            (is_left && all.len() == 3).then_some(())
        });
        let rows = [
            ("user", "first words"),
            ("assistant", "echo: first words"),
            ("user", "second words"),
            ("assistant", "echo: second words"),
        ];
        let rows = rows.map(|(role, text)| json!({"role": role, "text": text}));
        stage.panel_does(&holder, &json!({"do": "show", "rows": rows}));
        stage.until("the first chat again", |sessions| {
            of(sessions).iter().any(|it| is_status(it, &first, "healthy")).then_some(())
        });
        assert_eq!(of(&stage.sessions()).len(), 3, "{panel}");
        let tail = Lines::of(stage.place.farhelm(&["tail", &first, "--after", "0", "--json"]));
        stage.send(&first, "the last");
        let seen = tail.until(|event| said(event).is_some_and(|it| it.contains("echo: the last")));
        let words = seen.iter().filter(|event| said(event) == Some("second words"));
        assert_eq!(words.count(), 1, "{panel}: {seen:#?}");
        stage.call("Target.closeTarget", json!({"targetId": tab}));
    }
}

#[test]
fn a_virtual_list_that_is_scrolled_says_nothing_twice_and_forgets_nothing() {
    let Some(mut stage) = Stage::new("scrolling") else { return };
    stage.up();
    for panel in ["opencode-web", "vscode-chat"] {
        let tab = stage.open(panel, panel, "mutate=virtual&rows=20");
        let session = stage.session(panel);
        let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
        for from in [8, 0, 4, 14, 0, 14] {
            stage.panel_does(&tab, &json!({"do": "scroll", "from": from}));
            // A question tells that the machine saw what is in sight with it.
            let text = format!("is row {from} in sight?");
            stage.panel_does(&tab, &json!({"do": "ask", "text": text}));
            tail.until(|event| {
                let words = event["prompt_text"].as_str();
                words.is_some_and(|words| words.contains(&text))
            });
            stage.panel_does(&tab, &json!({"do": "withdraw"}));
            tail.until(|event| event["type"] == "permission_prompt_expired");
        }
        stage.send(&session, "at the end");
        let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
        let seen = tail.until(|event| said(event).is_some_and(|it| it.contains("echo: at the")));
        let mut words: Vec<_> = seen.iter().filter_map(said).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all, "{panel}: {words:#?}");
        // What was in sight first, and what came since.
        assert!(words.contains(&"earlier row 19") && words.contains(&"at the end"), "{words:#?}");
        assert_eq!(stage.session(panel), session);
        stage.call("Target.closeTarget", json!({"targetId": tab}));
    }
}

#[test]
fn a_window_that_is_called_otherwise_forgets_nothing_that_was_said() {
    let Some(mut stage) = Stage::new("titles") else { return };
    stage.up();
    let tab = stage.open("vscode-chat", "ide", "title=kite%20-%20Visual%20Studio%20Code");
    let session = stage.session("vscode-chat");
    stage.send(&session, "first words");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    tail.until(|event| said(event).is_some_and(|it| it.contains("echo: first words")));
    stage.panel_does(&tab, &json!({"do": "title", "title": "gull - Visual Studio Code"}));
    let known = stage.until("the new name", |_| {
        let text = std::fs::read(stage.place.data().join("panels/panels.json")).ok()?;
        let book: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let panel = book["panels"][0].clone();
        (panel["traits"]["workspace"] == "gull").then_some(panel)
    });
    assert_eq!(known["prints"].as_array().unwrap().len(), 1, "{known}");
    assert_eq!(stage.session("vscode-chat"), session);
}
