//! Sessions, metrics and errors over HTTP.

use serde_json::json;

use super::{Knocked, SESSION};

const HISTORY: &str = "/v1/sessions/demo-1/history";
const MESSAGES: &str = "/v1/sessions/demo-1/messages";

// spec: native/http.3
#[tokio::test]
async fn a_send_is_accepted_with_its_sequence_and_a_repeat_is_told_the_same() {
    let door = Knocked::new().await;
    let body = r#"{"content":"hi","client_message_id":"c1"}"#;

    let first = door.post(MESSAGES, &door.operator, body).await;

    assert_eq!(first.status, 202);
    let told = json!({
        "message_id": "c1", "client_message_id": "c1", "status": "accepted", "sequence": 1,
    });
    assert_eq!(first.json(), told);
    let again = door.post(MESSAGES, &door.operator, body).await;
    assert_eq!((again.status, again.json()), (202, told));
    let unnamed = door.post(MESSAGES, &door.operator, r#"{"content":"ho"}"#).await.json();
    assert!(unnamed["client_message_id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(unnamed["sequence"], 2);
}

#[tokio::test]
async fn a_send_that_cannot_be_is_refused_with_a_code() {
    let door = Knocked::with(|config| config.limits.max_content_bytes = 10).await;
    let unknown = "/v1/sessions/nobody/messages";

    for (path, body, told) in [
        (unknown, r#"{"content":"hi"}"#, (404, "session_unknown")),
        (MESSAGES, r#"{"content":"0123456789!"}"#, (413, "message_too_large")),
        (MESSAGES, r#"{"content":"  "}"#, (400, "invalid_message")),
        (MESSAGES, "{}", (400, "invalid_message")),
        (MESSAGES, "not json", (400, "invalid_message")),
        (MESSAGES, r#"{"content":"hi","attachments":["upl_x"]}"#, (422, "attachment_unknown")),
        (MESSAGES, r#"{"content":"hi","client_message_id":""}"#, (400, "invalid_message")),
    ] {
        let (status, code) = door.post(path, &door.operator, body).await.error();
        assert_eq!((status, code.as_str()), told, "{body}");
    }
    let fits = door.post(MESSAGES, &door.operator, r#"{"content":"0123456789"}"#).await;
    assert_eq!(fits.status, 202);
    door.relay.state().sends_refused = true;
    let told = door.post(MESSAGES, &door.operator, r#"{"content":"hi"}"#).await;
    assert_eq!(told.error(), (429, "rate_limited".to_owned()));
}

// spec: native/http.2
#[tokio::test]
async fn history_comes_in_pages() {
    let door = Knocked::new().await;
    for _ in 0..3 {
        door.post(MESSAGES, &door.operator, r#"{"content":"hi"}"#).await;
    }

    let page = door.get(&format!("{HISTORY}?after=0&limit=2"), &door.viewer).await.json();
    let told = json!({
        "session_id": SESSION, "from_sequence": 0, "last_sequence": 2, "has_more": true,
        "events": [{ "sequence": 1 }, { "sequence": 2 }],
    });
    assert_eq!(page, told);
    let rest = door.get(&format!("{HISTORY}?after=2"), &door.viewer).await.json();
    assert_eq!((&rest["last_sequence"], &rest["has_more"]), (&json!(3), &json!(false)));
    assert_eq!(rest["events"], json!([{ "sequence": 3 }]));

    let told = door.get("/v1/sessions/nobody/history", &door.viewer).await;
    assert_eq!(told.error(), (404, "session_unknown".to_owned()));
    let told = door.get(&format!("{HISTORY}?after=x"), &door.viewer).await;
    assert_eq!(told.error(), (400, "invalid_message".to_owned()));
}

// spec: native/tool_output.4
#[tokio::test]
async fn what_a_tool_printed_is_got_whole_and_as_plain_text() {
    let door = Knocked::new().await;
    let at = |call: &str| format!("/v1/sessions/demo-1/tools/{call}/output");

    let got = door.get(&at("t%201"), &door.viewer).await;
    assert_eq!((got.status, got.text()), (200, "printed <b>ä</b>".to_owned()));
    assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
    let told = door.get(&at("other"), &door.viewer).await;
    assert_eq!(told.error(), (404, "tool_output_unknown".to_owned()));
    let told = door.get("/v1/sessions/nobody/tools/t/output", &door.viewer).await;
    assert_eq!(told.error(), (404, "session_unknown".to_owned()));
}

#[tokio::test]
async fn a_session_is_renamed_archived_and_erased() {
    let door = Knocked::new().await;
    let change = |body: &'static str| {
        door.ask("PATCH", "/v1/sessions/demo-1").bearer(&door.operator.token).body(body).send()
    };

    assert_eq!(change(r#"{"title":"Attic","archived":true}"#).await.status, 200);
    let listed = door.get("/v1/sessions", &door.viewer).await.json();
    assert_eq!(listed["sessions"][0]["title"], "Attic");
    assert_eq!(change("{}").await.error(), (400, "invalid_message".to_owned()));
    let erase = || door.ask("DELETE", "/v1/sessions/demo-1").bearer(&door.owner.token).send();
    assert_eq!(erase().await.status, 200);
    assert_eq!(erase().await.error(), (404, "session_unknown".to_owned()));
}

#[tokio::test]
async fn a_conversation_is_exported_whole() {
    const SENDS: usize = 1_100;
    let door = Knocked::new().await;
    for number in 0..SENDS {
        let wish = domain::session::Wish::Rename(format!("t{number}"));
        let who = door.auth.check(&door.operator.token, crate::clock::now()).unwrap();
        let command = domain::session::Command::Person(who, wish);
        crate::Inside::command(door.relay.as_ref(), &SESSION.into(), command).await.unwrap();
    }

    let json = door.get("/v1/sessions/demo-1/export?format=json", &door.viewer).await;
    assert_eq!(json.header("content-type"), Some("application/json"));
    let json = json.json();
    let events = json["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[SENDS - 1]["sequence"]), (SENDS, &json!(SENDS)));
    let text = door.get("/v1/sessions/demo-1/export?format=md", &door.viewer).await;
    assert!(text.header("content-type").unwrap().starts_with("text/markdown"));
    assert!(text.header("content-disposition").unwrap().contains("demo-1.md"));
    assert_eq!(text.text(), "# Session demo-1\n");
    let told = door.get("/v1/sessions/demo-1/export?format=pdf", &door.viewer).await;
    assert_eq!(told.error(), (400, "invalid_message".to_owned()));
    let told = door.get("/v1/sessions/nobody/export", &door.viewer).await;
    assert_eq!(told.error(), (404, "session_unknown".to_owned()));
}

#[tokio::test]
async fn an_export_ends_where_the_session_was_when_it_began() {
    const EVENTS: usize = 1_100;
    let door = Knocked::new().await;
    for number in 0..EVENTS {
        let wish = domain::session::Wish::Rename(format!("t{number}"));
        let who = door.auth.check(&door.operator.token, crate::clock::now()).unwrap();
        let command = domain::session::Command::Person(who, wish);
        crate::Inside::command(door.relay.as_ref(), &SESSION.into(), command).await.unwrap();
    }
    door.relay.state().grows_by = 1;

    let told = door.get("/v1/sessions/demo-1/export?format=json", &door.viewer).await.json();
    let events = told["events"].as_array().unwrap();
    let sequences: Vec<_> =
        events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(told["last_sequence"], json!(EVENTS));
    assert_eq!(sequences, (1..=EVENTS as u64).collect::<Vec<_>>());
    let told = door.get("/v1/sessions/demo-1/export?format=json", &door.viewer).await.json();
    let later = told["last_sequence"].as_u64().unwrap();
    assert!(later > EVENTS as u64, "it did not grow meanwhile");
    assert_eq!(told["events"].as_array().unwrap().len() as u64, later);
}

#[tokio::test]
async fn health_readiness_and_figures_are_told() {
    let door = Knocked::new().await;

    let alive = door.ask("GET", "/healthz").send().await.json();
    assert_eq!((&alive["status"], &alive["connections"]["proxies"]), (&json!("ok"), &json!(0)));
    assert_eq!(door.ask("GET", "/readyz").send().await.status, 200);
    door.relay.state().unreadable = true;
    let unready = door.ask("GET", "/readyz").send().await;
    assert_eq!((unready.status, &unready.json()["status"]), (503, &json!("not_ready")));
    let figures = door.ask("GET", "/metrics").send().await;
    assert!(figures.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(figures.text().contains("farhelm_connections{kind=\"all\"} 1\n"), "{}", figures.text());
}

// spec: native/http.5
#[tokio::test]
async fn what_is_not_there_is_said_in_the_shape_of_every_error() {
    let door = Knocked::new().await;

    let nowhere = door.ask("GET", "/nowhere").send().await;
    assert_eq!(nowhere.error(), (404, "not_found".to_owned()));
    let wrong_way = door.ask("PUT", "/v1/sessions").bearer(&door.owner.token).send().await;
    assert_eq!(wrong_way.error(), (405, "method_not_allowed".to_owned()));
    let no_socket = door.ask("GET", "/ws").send().await;
    assert_eq!(no_socket.error(), (426, "upgrade_required".to_owned()));
}
