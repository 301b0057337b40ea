//! Who gets in, for how long, and where to.

use domain::{Role, Timestamp};
use serde_json::json;
use wire::webchannel::TOKEN_LIFETIME_MS;
use wire::webchannel::seal::{self, Secret};

use super::relay::{CODE, Relay, START, kinds};

fn request(code: &str, public: &str) -> serde_json::Value {
    json!({ "v": 1, "type": "pairing_request", "session_id": "default",
        "payload": { "pairing_code": code, "client_pub": public } })
}

// spec: webchannel/pairing.3
#[test]
fn wrong_codes_lock_pairing_even_for_the_right_one() {
    let mut relay = Relay::new();
    relay.opened("a", "");
    let public = seal::encode(&Secret::from([1; 32]).public());
    for _ in 0..5 {
        relay.json("a", &request("000000", &public));
    }
    assert_eq!(relay.errors("a"), ["pairing_invalid_code"; 5]);
    relay.json("a", &request(CODE, &public));
    assert_eq!(relay.errors("a"), ["pairing_locked_out"]);
    assert_eq!(relay.client("a").closed, None);
}

// spec: webchannel/pairing.4
#[test]
fn a_key_that_is_none_is_refused_and_costs_no_code() {
    let mut relay = Relay::new();
    relay.opened("a", "");
    let bad = [String::new(), "AAAA".to_owned(), "*".repeat(43), seal::encode(&[0; 32])];
    for public in &bad {
        relay.json("a", &request(CODE, public));
    }
    assert_eq!(relay.errors("a"), ["pairing_invalid_client_pub"; 4]);
    relay.json("a", &request(CODE, &seal::encode(&Secret::from([1; 32]).public())));
    assert_eq!(kinds(&relay.heard("a")), ["pairing_result"]);
}

// spec: webchannel/pairing.6
#[test]
fn the_credentials_are_also_said_under_the_new_key() {
    let mut relay = Relay::new();
    relay.opened("a", "");
    let secret = Secret::from([1; 32]);
    relay.json("a", &request(CODE, &seal::encode(&secret.public())));
    let payload = relay.heard("a").remove(0)["payload"].take();
    let e2e = &payload["e2e"];
    let text = |name: &str| e2e[name].as_str().unwrap().to_owned();
    let theirs = seal::decode_exactly(&text("agent_pub")).unwrap();
    let key = seal::Key::agree(&secret, &theirs).unwrap();
    let nonce = seal::decode_exactly(&text("nonce")).unwrap();
    let opened = key.open(nonce, &seal::decode(&text("ciphertext")).unwrap()).unwrap();
    let opened: serde_json::Value = serde_json::from_slice(&opened).unwrap();
    for name in ["client_id", "access_token", "token_type", "expires_in", "e2e_required"] {
        assert!(!opened[name].is_null(), "{name}");
        assert_eq!(opened[name], payload[name], "{name}");
    }
    // Thrown back, it is no message.
    let token = payload["access_token"].clone();
    let thrown = json!({ "nonce": e2e["nonce"], "ciphertext": e2e["ciphertext"] });
    relay.json(
        "a",
        &json!({ "v": 1, "type": "user_message", "session_id": "default",
            "payload": { "access_token": token, "e2e": thrown } }),
    );
    assert_eq!(relay.errors("a"), ["invalid_payload"]);
}

// spec: webchannel/pairing.5
#[test]
fn every_pairing_has_a_key_of_its_own() {
    let mut relay = Relay::paired();
    relay.pair("b", Role::Operator);
    // Even the same public half leads to another key.
    relay.pair("a", Role::Operator);
    let first = relay.client("a").key.clone().unwrap().bytes();
    relay.pair("a", Role::Operator);
    assert_ne!(relay.client("a").key.as_ref().unwrap().bytes(), first);
}

// spec: webchannel/tokens.1
#[test]
fn the_token_is_in_every_message_of_a_client_that_was_paired() {
    let mut relay = Relay::paired();
    let sealed = relay.client("a").seal(&json!({ "content": "x" }));
    relay.json(
        "a",
        &json!({ "v": 1, "type": "user_message", "session_id": "default",
            "payload": { "e2e": sealed } }),
    );
    assert_eq!(relay.errors("a"), ["unauthorized"]);
    // Where it stands does not matter.
    let (token, sealed) = {
        let client = relay.client("a");
        (client.token.clone(), client.seal(&json!({ "content": "x" })))
    };
    relay.json(
        "a",
        &json!({ "v": 1, "type": "user_message", "session_id": "default",
            "access_token": token, "payload": { "e2e": sealed } }),
    );
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), ["user_message"]);
}

// spec: webchannel/tokens.2
#[test]
fn another_credential_of_the_relay_opens_the_socket_and_needs_no_token_in_messages() {
    let mut relay = Relay::new();
    relay.opened("o", "token=fh_owner&plain=1");
    relay.json(
        "o",
        &json!({ "v": 1, "type": "user_message", "session_id": "default",
            "payload": { "content": "hello" } }),
    );
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("o")), ["user_message"]);
}

// spec: webchannel/tokens.3, webchannel/reconnect.1
#[test]
fn a_client_that_comes_back_is_known_by_its_token_alone() {
    let mut relay = Relay::paired();
    let token = relay.client("a").token.clone();
    relay.reopen("a", &format!("token={token}"));
    relay.says_text("m1", "while nobody spoke");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["assistant_final"]);
    let opened = relay.client("a").opened(&heard[0]["payload"]).unwrap();
    assert_eq!(opened["content"], "while nobody spoke");
    // Without the token in the address it hears from its first message on.
    relay.reopen("a", "");
    relay.says_text("m2", "unheard");
    assert_eq!(relay.heard("a").len(), 0);
    relay.user("a", "r1", "here I am");
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), ["user_message"]);
}

// spec: webchannel/tokens.4
#[test]
fn a_token_ends_in_the_middle_of_a_connection_and_at_its_next_message() {
    let mut relay = Relay::paired();
    let end = START.plus_ms(TOKEN_LIFETIME_MS);
    assert_eq!(relay.client("a").machine.deadline(), Some(end));
    relay.now = Timestamp(end.0 - 1);
    relay.tick("a");
    assert_eq!((relay.heard("a").len(), relay.client("a").closed), (0, None));
    relay.now = end;
    relay.user("a", "r1", "too late");
    assert_eq!(relay.errors("a"), ["unauthorized"]);
    relay.tick("a");
    assert_eq!(relay.errors("a"), ["unauthorized"]);
    assert_eq!(relay.client("a").closed, Some(4003));
}

// spec: webchannel/tokens.5
#[test]
fn a_revoked_client_is_told_and_closed_and_answered_so_later() {
    let mut relay = Relay::paired();
    relay.revoke("a");
    assert_eq!(relay.errors("a"), ["unauthorized"]);
    assert_eq!(relay.client("a").closed, Some(4003));
    relay.reopen("a", "");
    relay.user("a", "r1", "am I in?");
    let heard = relay.heard("a");
    assert_eq!(
        (&heard[0]["payload"]["code"], &heard[0]["request_id"]),
        (&json!("unauthorized"), &json!("r1"))
    );
    // It may pair again on the same socket.
    assert_eq!(relay.client("a").closed, None);
}

// spec: webchannel/session.1
#[test]
fn the_session_is_that_of_the_address_else_of_the_first_envelope() {
    for (query, first, label, lists) in [
        ("token=fh_owner&plain=1&session_id=sess_1", "default", "sess_1", 0),
        ("token=fh_owner&plain=1&session_id=default", "sess_1", "default", 1),
        ("token=fh_owner&plain=1", "sess_1", "sess_1", 1),
        ("token=fh_owner&plain=1", "default", "default", 1),
        ("token=fh_owner&plain=1", "nobody_has_this", "nobody_has_this", 2),
        ("token=fh_owner&plain=1", "?", "?", 2),
    ] {
        let mut relay = Relay::new();
        relay.opened("o", query);
        for session in [first, "another"] {
            relay.json(
                "o",
                &json!({ "v": 1, "type": "user_message", "session_id": session,
                    "payload": { "content": "hello" } }),
            );
            relay.obey(None);
        }
        let heard = relay.heard("o");
        assert_eq!(kinds(&heard), ["user_message"; 2], "{query} {first}");
        assert!(heard.iter().all(|it| it["session_id"] == label), "{query} {first}");
        assert_eq!(relay.shell.lists, lists, "{query} {first}");
    }
}

// spec: webchannel/session.3
#[test]
fn a_client_whose_own_session_is_gone_is_not_given_another_one() {
    let mut relay = Relay::new();
    let query = "token=fh_owner&plain=1&session_id=sess_1";
    relay.opened("o", query);
    relay.asks("p1");
    relay.heard("o");
    relay.shell.erased = Some("sess_1".into());
    // On the same connection, after it named itself anew, and on the next one.
    for again in [false, true] {
        if again {
            relay.reopen("o", query);
        }
        let before = relay.wishes;
        for session in ["sess_1", "default"] {
            relay.json(
                "o",
                &json!({ "v": 1, "type": "user_message", "session_id": session,
                    "request_id": "r1", "payload": { "content": "for sess_1 alone" } }),
            );
        }
        if again {
            assert_eq!(relay.errors("o"), ["session_unknown"; 2]);
            assert_eq!((relay.wishes, relay.shell.lists), (before, 0), "nothing was said to any");
        }
    }
    let said = |room: &crate::visitors::stage::Room| room.session.glance().waiting.len();
    let others = relay.rooms.iter().filter(|(id, _)| id.as_str() != "sess_1");
    assert!(others.into_iter().all(|(_, room)| said(room) == 0));
}

// spec: webchannel/session.3
#[test]
fn a_session_that_goes_away_while_a_client_pairs_is_not_replaced() {
    let mut relay = Relay::new();
    relay.opened("a", "token=fh_owner&session_id=sess_1");
    relay.shell.erased = Some("sess_1".into());
    relay.json("a", &request(CODE, &seal::encode(&Secret::from([1; 32]).public())));
    assert_eq!(kinds(&relay.heard("a")), ["pairing_result"]);
    let wishes = relay.wishes;
    let token = relay.client("a").token.clone();
    relay.json(
        "a",
        &json!({ "v": 1, "type": "approval_response", "session_id": "default",
            "request_id": "p1", "payload": { "access_token": token, "approved": true } }),
    );
    assert_eq!(relay.errors("a"), ["session_unknown"]);
    assert_eq!((relay.wishes, relay.shell.lists), (wishes, 0));
}

// spec: webchannel/session.2
#[test]
fn without_any_session_a_message_is_answered_so() {
    let mut relay = Relay::new();
    relay.shell.is_empty = true;
    relay.opened("o", "token=fh_owner&plain=1");
    relay.user("o", "r1", "hello");
    assert_eq!(relay.errors("o"), ["session_unknown"]);
    relay.shell.is_empty = false;
    relay.user("o", "r2", "hello");
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("o")), ["user_message"]);
}

// spec: webchannel/limits.3
#[test]
fn who_never_pairs_is_closed_after_a_while() {
    let mut relay = Relay::new();
    relay.opened("a", "");
    relay.now = relay.client("a").machine.deadline().unwrap();
    relay.tick("a");
    assert_eq!(relay.client("a").closed, Some(4001));
}
