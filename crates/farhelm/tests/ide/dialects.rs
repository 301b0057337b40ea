//! Clients of every dialect on a panel: what they can do with any other agent, they can do here.

use client::Seen;
use serde_json::{Value, json};

use crate::guest::{Guest, everybody};
use crate::ide::stage::{Stage, id};
use crate::support::PATIENCE;

#[test]
fn everybody_sees_every_message_once_and_it_is_typed_once() {
    let Some(mut stage) = Stage::new("all dialects, talking") else { return };
    stage.up();
    stage.open("claude-vscode", "ide", "");
    let session = stage.session("claude-vscode");
    let (host, token) = stage.relay();
    stage.block_on(async {
        let mut guests = everybody((&host, &token), &session, "").await;
        let said = talk(&mut guests).await;
        for words in &said {
            assert_eq!(typed(&stage, words).await, 1, "{words}");
        }
        for guest in &guests {
            assert_eq!(guest.people(), said, "{}", guest.dialect);
            let echoes: Vec<_> = said.iter().map(|words| format!("echo: {words}")).collect();
            assert_eq!(guest.agent(), echoes, "{}", guest.dialect);
        }
        come_back(&mut guests, (&host, &token)).await;
    });
}

#[test]
fn a_question_that_one_answers_closes_for_all_and_a_run_that_one_stops_ends_for_all() {
    let Some(mut stage) = Stage::new("all dialects, deciding") else { return };
    stage.up();
    stage.open("claude-vscode", "ide", "");
    let session = stage.session("claude-vscode");
    let (host, token) = stage.relay();
    stage.block_on(async {
        let mut guests = everybody((&host, &token), &session, "").await;
        for deciding in 0..guests.len() {
            let what = format!("may {} do it?", guests[deciding].dialect);
            let allow = deciding % 2 == 0;
            decide(&mut guests, deciding, ("ask: ", &what), allow).await;
            let label = if allow { "Yes" } else { "No" };
            for guest in &mut guests {
                guest.until_said(&format!("chose: {label}")).await;
            }
            let answered = noted(&stage, "answered", deciding + 1).await;
            let pressed = answered.iter().filter(|it| it["text"] == *what);
            let pressed: Vec<_> = pressed.map(|it| it["label"].as_str().unwrap()).collect();
            assert_eq!(pressed, [label], "{what}");
        }
        for stopping in 0..guests.len() {
            stop(&mut guests, stopping, "slow: 400").await;
            let stopped = noted(&stage, "stopped", stopping + 1).await;
            assert_eq!(stopped.len(), stopping + 1);
        }
    });
}

#[test]
fn models_new_chats_and_the_end_of_one_are_for_every_dialect_that_has_words_for_them() {
    let Some(mut stage) = Stage::new("all dialects, choosing") else { return };
    stage.up();
    stage.open("antigravity", "ide", "");
    let session = stage.session("antigravity");
    let (host, token) = stage.relay();
    let chosen = async |count: usize| -> Vec<String> {
        let models = noted(&stage, "model", count).await;
        models.iter().map(|it| it["model"].as_str().unwrap().to_owned()).collect()
    };
    stage.block_on(async {
        let mut guests = everybody((&host, &token), &session, "").await;
        let [native, blob, pi, control, webchannel] = &mut guests[..] else { panic!() };

        // A panel's models are read when somebody asks for them.
        let listed = command(pi, json!({"type": "get_available_models"})).await;
        let offered = listed["data"]["models"].as_array().unwrap().clone();
        assert_eq!(offered.len(), 3, "{listed:?}");
        let models = json!(["alpha-1", "beta-2", "gamma-3"]);
        let read = json!({"type": "agent_config_request", "protocol_version": 1,
            "session_id": session, "request_id": "read"});
        let config = native.ask(read, |it| it["available_models"].is_array()).await;
        assert_eq!(config["available_models"], models);
        let set = control_of(native, &session, "agent_set_model", json!({"model_id": "beta-2"}));
        assert_eq!(set.await["result"], "ok");
        let none = control_of(native, &session, "agent_set_model", json!({"model_id": "none"}));
        assert_eq!(none.await["result"], "failed");
        assert_eq!(chosen(1).await, ["beta-2"]);

        let listed = request(control, json!({"subtype": "list_models"})).await;
        assert!(listed["response"].to_string().contains("gamma-3"), "{listed}");
        let set = request(control, json!({"subtype": "set_model", "model": "gamma-3"})).await;
        assert_eq!(set["subtype"], "success", "{set}");
        let none = request(control, json!({"subtype": "set_model", "model": "none"})).await;
        assert_eq!(none["subtype"], "error", "{none}");
        assert_eq!(chosen(2).await, ["beta-2", "gamma-3"]);

        let model = offered.iter().find(|model| model["id"] == "alpha-1").unwrap();
        let (provider, model) = (&model["provider"], &model["id"]);
        let set = json!({"type": "set_model", "provider": provider, "modelId": model});
        let set = command(pi, set).await;
        assert_eq!(set["success"], true, "{set}");
        assert_eq!(chosen(3).await, ["beta-2", "gamma-3", "alpha-1"]);

        // What cannot be chosen in this panel is said so.
        let mode = control_of(native, &session, "agent_set_permission_mode", json!({"mode": "x"}));
        assert_eq!(mode.await["result"], "failed");

        // Each new chat is another session in the same panel.
        let begun = method(blob, "sessions.new", json!({"title": "from blob"})).await;
        assert_eq!(begun["ok"], true, "{begun}");
        let from_blob = begun["payload"]["sessionId"].as_str().unwrap().to_owned();
        assert_ne!(from_blob, session);
        let words = json!({"sessionId": from_blob, "message": "in the chat from blob"});
        let accepted = method(blob, "agent", words).await;
        assert_eq!(accepted["ok"], true, "{accepted}");
        blob.until_frame(|frame| frame["event"] == "final").await;
        assert_eq!(typed(&stage, "in the chat from blob").await, 1);

        let begun = command(pi, json!({"type": "new_session"})).await;
        assert_eq!(begun["data"]["cancelled"], false, "{begun}");
        pi.until_frame(|frame| frame["type"] == "session_changed").await;
        pi.send("in the chat from pi").await;
        pi.until_said("echo: in the chat from pi").await;
        assert_eq!(noted(&stage, "new_chat", 2).await.len(), 2);

        // The first is closed while its panel shows another, and everybody in it hears so.
        stage.place.told(&["close", &session]);
        native.until_frame(|frame| frame["type"] == "session_closed").await;
        control.until_frame(|frame| frame["type"] == "system" && is_end(frame)).await;
        webchannel.until_frame(|frame| frame["payload"]["code"] == "session_closed").await;
    });
}

#[test]
fn what_did_not_arrive_is_told_in_every_dialect() {
    let Some(mut stage) = Stage::new("all dialects, in trouble") else { return };
    stage.up();
    let tab = stage.open("antigravity", "ide", "");
    let session = stage.session("antigravity");
    let (host, token) = stage.relay();
    let mut guests = stage.block_on(everybody((&host, &token), &session, ""));
    stage.panel_does(&tab, &json!({"do": "drop-composer"}));
    stage.until("the change", |sessions| {
        let is_it = |it: &&Value| id(it) == session && it["status"] == "agent_ui_changed";
        sessions.iter().find(is_it).map(drop)
    });
    stage.block_on(async {
        for guest in &mut guests {
            let words = format!("never from {}", guest.dialect);
            guest.come_back((&host, &token)).await;
            guest.send(&words).await;
            let told = guest.until(|seen| matches!(seen, Seen::Trouble(_) | Seen::Ended(Some(_))));
            let (Seen::Trouble(told) | Seen::Ended(Some(told))) = told.await else { panic!() };
            assert!(told.contains("input field"), "{}: {told}", guest.dialect);
            let sent = stage.panels.journal("ide").iter().any(|it| it["text"] == *words);
            assert!(!sent, "{words}");
        }
    });
}

/// Each speaks in turn, and all hear it. Gives what they said.
pub(crate) async fn talk(guests: &mut [Guest]) -> Vec<String> {
    let mut said = vec![];
    for speaking in 0..guests.len() {
        let words = format!("words from {}", guests[speaking].dialect);
        guests[speaking].send(&words).await;
        for guest in &mut *guests {
            guest.until_said(&words).await;
        }
        said.push(words);
    }
    said
}

/// Each goes away, misses something, and comes back.
async fn come_back(guests: &mut [Guest], relay: (&str, &str)) {
    for leaving in 0..guests.len() {
        let speaking = usize::from(leaving == 0);
        let dialect = guests[leaving].dialect;
        let (missed, next) = (format!("{dialect} missed this"), format!("{dialect} is back"));
        for guest in &mut *guests {
            guest.forget();
        }
        guests[leaving].leave().await;
        guests[speaking].send(&missed).await;
        guests[speaking].until_said(&missed).await;
        guests[leaving].come_back(relay).await;
        if dialect != "webchannel" {
            // Its protocol tells nothing again.
            guests[leaving]
                .until(|seen| matches!(seen, Seen::Agent(it) if it.contains(&missed)))
                .await;
        }
        guests[leaving].send(&next).await;
        for guest in &mut *guests {
            guest.until_said(&next).await;
        }
        let all = if dialect == "webchannel" { vec![next] } else { vec![missed, next] };
        assert_eq!(guests[leaving].people(), all, "{dialect}");
    }
}

/// The first sends this kind of message about this, all are asked, and one decides for all.
pub(crate) async fn decide(
    guests: &mut [Guest],
    deciding: usize,
    (asking, what): (&str, &str),
    allow: bool,
) {
    guests[0].send(&format!("{asking}{what}")).await;
    let mut questions = vec![];
    for guest in &mut *guests {
        let asked = guest.until(|seen| matches!(seen, Seen::Asked { .. })).await;
        let Seen::Asked { id, what: told } = asked else { continue };
        assert!(told.contains(what), "{}: {told}", guest.dialect);
        questions.push(id);
    }
    let frames = guests[deciding].speaker.decide(&questions[deciding], allow);
    assert!(!frames.is_empty(), "{} cannot decide", guests[deciding].dialect);
    guests[deciding].say(frames).await;
    for (number, guest) in guests.iter_mut().enumerate().filter(|(it, _)| *it != deciding) {
        let id = questions[number].clone();
        guest.until(|seen| *seen == Seen::Settled { id: id.clone() }).await;
    }
}

/// The first begins a run, and one stops it for all.
pub(crate) async fn stop(guests: &mut [Guest], stopping: usize, slowly: &str) {
    guests[0].send(slowly).await;
    for guest in &mut *guests {
        guest.until(|seen| matches!(seen, Seen::Piece(_))).await;
    }
    // Webchannel has no word for it.
    let stopping = if guests[stopping].dialect == "webchannel" { 0 } else { stopping };
    let frames = guests[stopping].speaker.interrupt();
    guests[stopping].say(frames).await;
    for guest in &mut *guests {
        guest.until(|seen| matches!(seen, Seen::Agent(_))).await;
        guest.until_ended().await;
    }
}

/// What the panel noted of this kind, when there are so many. It does so a moment after what a
/// client sees of it.
async fn noted(stage: &Stage, kind: &str, count: usize) -> Vec<Value> {
    let enough = |entries: &[Value]| {
        let of_kind: Vec<_> = entries.iter().filter(|it| it["kind"] == kind).cloned().collect();
        (of_kind.len() >= count).then_some(of_kind)
    };
    let found = stage.panels.wait_for("ide", PATIENCE, enough).await;
    found.unwrap_or_else(|| panic!("{kind} never came: {:#?}", stage.panels.journal("ide")))
}

/// How often these words were sent in the panel, which was at least once.
async fn typed(stage: &Stage, words: &str) -> usize {
    let count = |entries: &[Value]| {
        let sent = entries.iter().filter(|it| it["kind"] == "sent" && it["text"] == words);
        Some(sent.count()).filter(|count| *count > 0)
    };
    stage.panels.wait_for("ide", PATIENCE, count).await.unwrap_or_default()
}

fn is_end(frame: &Value) -> bool {
    frame["content"].as_str().is_some_and(|words| words.contains("closed"))
}

/// A control of the native dialect, and its result.
async fn control_of(guest: &mut Guest, session: &str, kind: &str, more: Value) -> Value {
    let mut frame = more;
    let request = format!("{kind} {frame}");
    frame["type"] = json!(kind);
    frame["protocol_version"] = json!(1);
    frame["session_id"] = json!(session);
    frame["request_id"] = json!(request);
    let is_it = |it: &Value| {
        it["request_id"] == *request && it["type"].as_str().is_some_and(|it| it.ends_with("result"))
    };
    guest.ask(frame, is_it).await
}

/// A request of the control dialect, and its response.
async fn request(guest: &mut Guest, request: Value) -> Value {
    let name = request.to_string();
    let frame = json!({"type": "control_request", "request_id": name, "request": request});
    guest.ask(frame, |it| it["response"]["request_id"] == *name).await["response"].take()
}

/// A command of the pi dialect, and its response.
async fn command(guest: &mut Guest, command: Value) -> Value {
    let name = command.to_string();
    let mut frame = command;
    frame["id"] = json!(name);
    guest.ask(frame, |it| it["type"] == "response" && it["id"] == *name).await
}

/// A request of the blob dialect, and its response.
async fn method(guest: &mut Guest, method: &str, params: Value) -> Value {
    let frame = json!({"type": "req", "id": method, "method": method, "params": params});
    guest.ask(frame, |it| it["type"] == "res" && it["id"] == *method).await
}
