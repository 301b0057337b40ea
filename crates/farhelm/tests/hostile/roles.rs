//! Peers that do what is not theirs to do.

use serde_json::{Value, json};

use crate::hostile::frames::message;
use crate::hostile::peer::{Peer, Scene, send};

const FORBIDDEN: u16 = 4003;

fn commands() -> Vec<Value> {
    let about = |kind: &str| json!({"type": kind, "request_id": kind, "session_id": "sess_1"});
    let mut answer = about("permission_response");
    answer["prompt_id"] = json!("p1");
    answer["choice_id"] = json!("yes");
    let mut model = about("agent_set_model");
    model["model_id"] = json!("large");
    vec![
        send("m1", "from a viewer"),
        answer,
        model,
        about("agent_interrupt"),
        about("agent_config_request"),
        about("close_session"),
    ]
}

// spec: native/credentials.3, native/credentials.4, native/relay_routing_rules.1
// spec: native/close_session.1, native/launch_session.1
#[tokio::test]
async fn a_viewer_and_a_stranger_command_nothing() {
    let mut scene = Scene::new(&[]).await;
    let (_, viewer) = scene.token("viewer");
    let mut stranger = Peer::open(&scene.up, "/ws", None).await;
    stranger.greet(&json!({})).await;
    let mut viewer = scene.client_of(&viewer).await;
    assert_eq!((&viewer.sessions[..], stranger.sessions.len()), (&["sess_1".to_owned()][..], 0));
    for peer in [&mut viewer, &mut stranger] {
        for command in commands() {
            peer.say(command.clone()).await;
            let told = peer.next().await;
            assert_eq!(
                (&told["type"], &told["code"]),
                (&json!("connection_error"), &json!("unauthorized")),
                "{command}: {told}"
            );
            let named =
                if command["type"] == "send_message" { "client_message_id" } else { "request_id" };
            assert_eq!(told[named], command[named], "{told}");
        }
        peer.say(json!({"type": "launch_session", "request_id": "l", "agent_type": "codex"})).await;
        let told = peer.next().await;
        assert_eq!(
            (&told["type"], &told["error_code"]),
            (&json!("session_launch_failed"), &json!("unauthorized"))
        );
    }
    // The machine's next order is the owner's; the viewer sees what comes of it.
    scene.client().await.say(send("m2", "from the owner")).await;
    let order = scene.proxy.next().await;
    assert_eq!(
        (&order["type"], &order["client_message_id"]),
        (&json!("send_message"), &json!("m2"))
    );
    assert_eq!(viewer.next().await["type"], "message_accepted");
    assert!(stranger.is_quiet().await, "a stranger hears nothing");
}

// spec: native/credentials.6, native/close_codes.1
#[tokio::test]
async fn the_sockets_of_a_revoked_token_close_with_4003_and_nobody_elses() {
    let scene = Scene::new(&[]).await;
    let mut other = scene.client().await;
    let (client_id, client_token) = scene.token("operator");
    let (machine_id, machine_token) = scene.token("proxy");
    let mut client = scene.client_of(&client_token).await;
    let mut silent = Peer::open(&scene.up, "/ws", Some(&client_token)).await;
    let mut machine = Peer::open(&scene.up, "/ws/proxy", Some(&machine_token)).await;
    machine.greet_as_machine("cellar").await;
    machine.name_sessions(&["sess_2"]).await;
    other.hear("session_up").await;

    scene.place.told(&["token", "revoke", &client_id]);
    assert_eq!((client.close_code().await, silent.close_code().await), (FORBIDDEN, FORBIDDEN));
    scene.place.told(&["token", "revoke", &machine_id]);
    assert_eq!(machine.close_code().await, FORBIDDEN);
    let down = other.hear("session_down").await;
    assert_eq!(
        (&down["session_id"], &down["reason"]),
        (&json!("sess_2"), &json!("proxy_disconnected"))
    );
    other.before_a_beat().await;
}

// spec: native/forwarding.3
#[tokio::test]
async fn a_machine_that_claims_anothers_session_gets_nothing_of_it() {
    let mut scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    let (_, token) = scene.token("proxy");
    let mut thief = Peer::open(&scene.up, "/ws/proxy", Some(&token)).await;
    thief.greet_as_machine("cellar").await;
    thief.name_sessions(&["sess_1", "sess_2"]).await;
    let up = client.hear("session_up").await;
    assert_eq!(
        up["session"]["session_id"], "sess_2",
        "its own comes up, the other's does not move"
    );

    thief.say(message("forged", "words of the thief")).await;
    thief
        .say(json!({"type": "proxy_status", "session_id": "sess_1", "status": "scraping_failed"}))
        .await;
    thief
        .say(json!({"type": "session_closed", "session_id": "sess_1", "reason": "target_closed"}))
        .await;
    thief
        .say(json!({"type": "proxy_send_result", "session_id": "sess_1", "client_message_id": "m1",
        "result": "delivered"}))
        .await;
    thief.before_a_beat().await;
    client.say(send("m1", "for attic")).await;
    assert_eq!(client.next().await["type"], "message_accepted");
    let order = scene.proxy.hear("send_message").await;
    assert_eq!(order["client_message_id"], "m1");
    scene.proxy.say(message("a1", "words of the owner")).await;
    let told = client.next().await;
    assert_eq!(told["message"]["content"], "words of the owner", "{told}");
    assert!(thief.is_quiet().await, "no order goes to the thief");

    // And when it leaves, only its own session goes down.
    drop(thief);
    let down = client.next().await;
    assert_eq!((&down["type"], &down["session_id"]), (&json!("session_down"), &json!("sess_2")));
    scene.proxy.say(message("a2", "still here")).await;
    assert_eq!(client.next().await["message"]["content"], "still here");
}
