//! Limits, each at its edge.

use serde_json::{Value, json};

use crate::hostile::peer::{Peer, Scene, send};

const MAX_CONTENT_BYTES: usize = 100 * 1024;
const SENDS_PER_10S: usize = 30;
const FRAMES_PER_MINUTE: usize = 200;
const PROMPTS_OPEN_MAX: usize = 32;
const SESSIONS_NAMED_MAX: usize = 4_096;

// spec: native/limits.3, native/limits.5
#[tokio::test]
async fn the_thirty_first_send_in_ten_seconds_is_told_that_it_was_not_taken() {
    let scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    let names: Vec<String> = (1..=SENDS_PER_10S + 1).map(|number| format!("m{number}")).collect();
    client.say_all(names.iter().map(|id| send(id, "hi"))).await;
    let (mut accepted, mut refused) = (vec![], vec![]);
    while accepted.len() + refused.len() < names.len() {
        let frame = client.next().await;
        let id = frame["client_message_id"].as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str().unwrap() {
            "message_accepted" => accepted.push(id),
            "connection_error" => {
                assert_eq!(frame["code"], "rate_limited", "{frame}");
                refused.push(id);
            }
            _ => {}
        }
    }
    assert_eq!(accepted, names[..SENDS_PER_10S]);
    assert_eq!(refused, names[SENDS_PER_10S..]);

    // Another socket of the same client shares its rate; another client has its own.
    let mut again = scene.client().await;
    again.say(send("m32", "hi")).await;
    let told = again.hear("connection_error").await;
    assert_eq!(
        (&told["code"], &told["client_message_id"]),
        (&json!("rate_limited"), &json!("m32"))
    );
    let (_, operator) = scene.token("operator");
    let mut other = scene.client_of(&operator).await;
    other.say(send("m33", "hi")).await;
    other.until(|it| it["type"] == "message_accepted" && it["client_message_id"] == "m33").await;
}

// spec: native/limits.4
#[tokio::test]
async fn the_two_hundred_and_first_frame_in_a_minute_is_told_that_it_was_not_taken() {
    let scene = Scene::new(&[]).await;
    let (_, operator) = scene.token("operator");
    let mut client = scene.client_of(&operator).await;
    let ask = |number: usize| json!({"type": "close_session", "request_id": format!("r{number}"), "session_id": "nobody"});
    client.say_all((1..=FRAMES_PER_MINUTE + 1).map(ask)).await;
    let mut told = vec![];
    while told.len() <= FRAMES_PER_MINUTE {
        let frame = client.hear("connection_error").await;
        told.push((frame["request_id"].as_str().unwrap().to_owned(), frame["code"].clone()));
    }
    let limited: Vec<_> = told.iter().filter(|(_, code)| code == "rate_limited").collect();
    assert_eq!(limited, [&(format!("r{}", FRAMES_PER_MINUTE + 1), json!("rate_limited"))]);
    let unknown = told.iter().filter(|(_, code)| code == "session_unknown").count();
    assert_eq!(unknown, FRAMES_PER_MINUTE);
    assert_eq!(client.before_a_beat().await, [Value::Null; 0], "heartbeats do not count");
}

// spec: native/limits.2
#[tokio::test]
async fn content_of_exactly_the_limit_is_accepted_and_one_byte_more_is_too_large() {
    let mut scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    let euros = "€".repeat(MAX_CONTENT_BYTES / 3) + "x";
    assert_eq!(euros.len(), MAX_CONTENT_BYTES);
    for (id, content) in [("ascii", "x".repeat(MAX_CONTENT_BYTES)), ("euros", euros.clone())] {
        client.say(send(id, &content)).await;
        assert_eq!(client.hear("message_accepted").await["client_message_id"], id);
        assert_eq!(scene.proxy.hear("send_message").await["content"], content.as_str());
    }
    for (id, content) in [("more", "x".repeat(MAX_CONTENT_BYTES + 1)), ("euro", euros + "x")] {
        client.say(send(id, &content)).await;
        let failed = client.hear("message_failed").await;
        assert_eq!(failed["client_message_id"], id);
        assert_eq!(failed["error"]["code"], "message_too_large");
        assert!(failed.get("sequence").is_none(), "nothing was recorded: {failed}");
    }
}

// spec: native/limits.6
#[tokio::test]
async fn the_thirty_third_prompt_is_refused_until_one_is_answered() {
    let mut scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    let prompt = |number: usize| {
        json!({"type": "permission_prompt", "session_id": "sess_1",
            "prompt_id": format!("p{number}"), "prompt_text": "May I?",
            "choices": [{"choice_id": "yes", "label": "Yes", "is_default": true}]})
    };
    scene.proxy.say_all((1..=PROMPTS_OPEN_MAX + 1).map(prompt)).await;
    let told = scene.proxy.hear("connection_error").await;
    assert_eq!(
        (&told["code"], &told["session_id"]),
        (&json!("invalid_message"), &json!("sess_1")),
        "{told}"
    );
    for number in 1..=PROMPTS_OPEN_MAX {
        let shown = client.hear("permission_prompt").await;
        assert_eq!(shown["prompt_id"], format!("p{number}"));
    }
    let mut late = Peer::open(&scene.up, "/ws", scene.up.told["token"].as_str()).await;
    let ack = late.greet(&json!({})).await;
    assert_eq!(ack["open_prompts"].as_array().unwrap().len(), PROMPTS_OPEN_MAX);

    client
        .say(json!({"type": "permission_response", "session_id": "sess_1", "prompt_id": "p7",
        "choice_id": "yes"}))
        .await;
    assert_eq!(scene.proxy.hear("permission_response").await["prompt_id"], "p7");
    scene.proxy.say(prompt(PROMPTS_OPEN_MAX + 1)).await;
    let shown = client.hear("permission_prompt").await;
    assert_eq!(shown["prompt_id"], "p33", "there is room again");
}

// spec: native/connection_hello.5
#[tokio::test]
async fn a_hello_that_resumes_more_sessions_than_anybody_has_is_refused_and_may_be_said_again() {
    let scene = Scene::new(&[]).await;
    let hello = |count: usize, name: &dyn Fn(usize) -> String| {
        let entries: Vec<Value> = (0..count)
            .map(|number| json!({"session_id": name(number), "last_sequence": 0}))
            .collect();
        json!({"type": "connection_hello", "peer_role": "browser", "client_name": "t",
            "resume": {"sessions": entries}})
    };
    let nobody = |number: usize| format!("nobody_{number}");
    let mut client = Peer::open(&scene.up, "/ws", scene.up.told["token"].as_str()).await;
    for count in [SESSIONS_NAMED_MAX + 1, 80_000] {
        client.say(hello(count, &nobody)).await;
        let told = client.next().await;
        assert_eq!(told["code"], "invalid_message", "{told}");
    }
    let known = |number: usize| if number == 0 { "sess_1".to_owned() } else { nobody(number) };
    client.say(hello(SESSIONS_NAMED_MAX, &known)).await;
    client.hear("connection_ack").await;
    client.hear("session_snapshot").await;
    let (mut unknown, mut deltas) = (0, 0);
    while unknown + deltas < SESSIONS_NAMED_MAX {
        let frame = client.next().await;
        match frame["type"].as_str().unwrap() {
            "connection_error" => {
                assert_eq!(frame["code"], "session_unknown", "{frame}");
                unknown += 1;
            }
            "history_delta" => {
                assert_eq!(frame["session_id"], "sess_1");
                deltas += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((unknown, deltas), (SESSIONS_NAMED_MAX - 1, 1));

    // The same session again and again: what is not read is told.
    let mut repeating = Peer::open(&scene.up, "/ws", scene.up.told["token"].as_str()).await;
    repeating.say(hello(SESSIONS_NAMED_MAX, &|_| "sess_1".to_owned())).await;
    let (mut limited, mut read) = (0, 0);
    while limited + read < SESSIONS_NAMED_MAX {
        let frame = repeating.next().await;
        limited += usize::from(frame["code"] == "rate_limited");
        read += usize::from(frame["type"] == "history_delta");
    }
    assert!(read >= 1 && limited > 4_000, "{read} read, {limited} limited");
}
