//! A code for a person, a token for a device.

use serde_json::json;

use super::Knocked;
use super::client::Reply;
use crate::auth::WRONG_TRIES_PER_ADDRESS_MAX;

async fn pair(door: &Knocked, code: &str) -> Reply {
    let body = json!({ "code": code, "device_name": "phone" }).to_string();
    door.ask("POST", "/v1/pair").body(body).send().await
}

async fn code(door: &Knocked) -> String {
    let offered = door.post("/v1/pair/codes", &door.owner, "").await;
    assert_eq!(offered.status, 201);
    let offered = offered.json();
    let code = offered["code"].as_str().unwrap().to_owned();
    assert_eq!(offered["link"], format!("{}/#pair={code}", door.running.url()));
    assert!(offered["expires_at"].as_str().unwrap().ends_with('Z'));
    code
}

#[tokio::test]
async fn a_code_is_exchanged_once_for_a_device_token() {
    let door = Knocked::new().await;
    let (one, other) = (code(&door).await, code(&door).await);

    let paired = pair(&door, &one).await;
    assert_eq!(paired.status, 200);
    let cookie = paired.header("set-cookie").unwrap().to_owned();
    let told = paired.json();
    let token = told["token"].as_str().unwrap();
    assert_eq!((&told["role"], &told["name"]), (&"operator".into(), &"phone".into()));
    assert!(cookie.starts_with(&format!("farhelm_token={token}; ")));
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert_eq!(door.ask("GET", "/v1/sessions").bearer(token).send().await.status, 200);

    assert_eq!(pair(&door, &one).await.error(), (401, "pairing_code_invalid".to_owned()));
    assert_eq!(pair(&door, &other).await.status, 200);
    let listed = door.get("/v1/tokens", &door.owner).await.json();
    let kinds = listed["tokens"].as_array().unwrap().iter().filter(|it| it["kind"] == "device");
    assert_eq!(kinds.count(), 2);
}

#[tokio::test]
async fn wrong_codes_lock_the_address_out_even_with_the_right_one() {
    let door = Knocked::new().await;
    let right = code(&door).await;
    let wrong = if right == "000000" { "000001" } else { "000000" };

    for _ in 0..WRONG_TRIES_PER_ADDRESS_MAX {
        assert_eq!(pair(&door, wrong).await.status, 401);
    }

    let locked = pair(&door, &right).await;
    assert_eq!(locked.error(), (429, "rate_limited".to_owned()));
    assert!(locked.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_device_is_locked_out_on_its_own() {
    let trusted = "127.0.0.1".parse().unwrap();
    let door = Knocked::with(|config| config.trusted_proxies = vec![trusted]).await;
    let right = code(&door).await;
    let from = |address: &'static str, code: &str| {
        let body = json!({ "code": code, "device_name": "phone" }).to_string();
        door.ask("POST", "/v1/pair").header("x-forwarded-for", address).body(body)
    };
    let wrong = if right == "000000" { "000001" } else { "000000" };

    for _ in 0..WRONG_TRIES_PER_ADDRESS_MAX {
        assert_eq!(from("203.0.113.1", wrong).send().await.status, 401);
    }

    assert_eq!(from("203.0.113.1", &right).send().await.status, 429);
    let told = from("203.0.113.2", &right).header("x-forwarded-proto", "https").send().await;
    assert_eq!(told.status, 200);
    assert!(told.header("set-cookie").unwrap().contains("Secure"));
}
