//! Who may connect.

use super::Knocked;

const PATHS: [&str; 9] = [
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/ws",
    "/ws/proxy",
    "/v1/sessions",
    "/v1/uploads/x",
    "/nowhere",
];

// spec: native/credentials.1
#[tokio::test]
async fn a_wrong_credential_is_401_on_every_path_however_it_is_shown() {
    let door = Knocked::new().await;

    for path in PATHS {
        let wrong = door.ask("GET", path).bearer("fh_wrong").send().await;
        assert_eq!(wrong.error(), (401, "unauthorized".to_owned()), "{path}");
    }
    let in_query = door.ask("GET", "/healthz?token=fh_wrong").send().await;
    assert_eq!(in_query.status, 401);
    let in_cookie = door.ask("GET", "/").header("cookie", "farhelm_token=fh_wrong").send().await;
    assert_eq!(in_cookie.status, 401);
    // Else the browser would show the wrong one for ever.
    assert!(in_cookie.header("set-cookie").unwrap().starts_with("farhelm_token=; "));
}

// spec: native/credentials.1
#[tokio::test]
async fn a_right_credential_is_taken_from_header_query_and_cookie() {
    let door = Knocked::new().await;
    let token = &door.viewer.token;

    assert_eq!(door.get("/v1/sessions", &door.viewer).await.status, 200);
    let in_query = door.ask("GET", &format!("/v1/sessions?token={token}")).send().await;
    assert_eq!(in_query.status, 200);
    let cookie = format!("a=b; farhelm_token={token}");
    let in_cookie = door.ask("GET", "/v1/sessions").header("cookie", &cookie).send().await;
    assert_eq!(in_cookie.status, 200);
}

#[tokio::test]
async fn without_a_credential_only_the_open_pages_answer() {
    let door = Knocked::new().await;

    for path in ["/", "/healthz", "/readyz", "/metrics"] {
        assert_eq!(door.ask("GET", path).send().await.status, 200, "{path}");
    }
    for path in ["/v1/sessions", "/v1/sessions/demo-1/history", "/v1/tokens", "/v1/uploads/x"] {
        let told = door.ask("GET", path).send().await;
        assert_eq!(told.error(), (401, "unauthorized".to_owned()), "{path}");
        assert_eq!(told.header("www-authenticate"), Some("Bearer"));
    }
}

#[tokio::test]
async fn a_role_opens_what_it_may_and_no_more() {
    let door = Knocked::new().await;
    let send = ("POST", "/v1/sessions/demo-1/messages", r#"{"content":"hi"}"#);
    let rename = ("PATCH", "/v1/sessions/demo-1", r#"{"title":"t"}"#);
    let list = ("GET", "/v1/sessions", "");
    let make = ("POST", "/v1/tokens", r#"{"role":"viewer","name":"n"}"#);
    let codes = ("POST", "/v1/pair/codes", "");
    let erase = ("DELETE", "/v1/sessions/demo-1", "");

    for (who, what, status) in [
        (&door.viewer, list, 200),
        (&door.viewer, send, 403),
        (&door.viewer, rename, 403),
        (&door.operator, send, 202),
        (&door.operator, rename, 200),
        (&door.operator, make, 403),
        (&door.operator, codes, 403),
        (&door.operator, erase, 403),
        (&door.proxy, list, 403),
        (&door.proxy, send, 403),
        (&door.owner, make, 201),
        (&door.owner, codes, 201),
        (&door.owner, erase, 200),
    ] {
        let (method, path, body) = what;
        let told = door.ask(method, path).bearer(&who.token).body(body).send().await;
        assert_eq!(told.status, status, "{} {method} {path}: {}", who.name, told.text());
        if status == 403 {
            assert_eq!(told.error().1, "unauthorized");
        }
    }
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let door = Knocked::new().await;
    let made = door.post("/v1/tokens", &door.owner, r#"{"role":"operator","name":"desk"}"#).await;
    let made = made.json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    assert_eq!((&made["role"], &made["name"]), (&"operator".into(), &"desk".into()));
    let opens = door.ask("GET", "/v1/sessions").bearer(token).send().await;
    assert_eq!(opens.status, 200);

    let listed = door.get("/v1/tokens", &door.owner).await;
    assert!(!listed.text().contains(token));
    let listed = listed.json();
    let tokens = listed["tokens"].as_array().unwrap();
    let desk = tokens.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(desk["kind"], "token");
    assert!(desk["created_at"].as_str().unwrap().ends_with('Z'));
    assert!(desk["last_used_at"].as_str().unwrap().ends_with('Z'));

    let path = format!("/v1/tokens/{id}");
    let revoked = door.ask("DELETE", &path).bearer(&door.owner.token).send().await;
    assert_eq!(revoked.status, 200);
    assert_eq!(door.ask("GET", "/v1/sessions").bearer(token).send().await.status, 401);
    let again = door.ask("DELETE", &path).bearer(&door.owner.token).send().await;
    assert_eq!(again.error(), (404, "token_unknown".to_owned()));
    let listed = door.get("/v1/tokens", &door.owner).await.text();
    assert!(!listed.contains(id), "{listed}");
}

// spec: native/credentials.5
#[tokio::test]
async fn a_page_of_another_origin_is_403_on_every_path() {
    let door = Knocked::new().await;

    for path in PATHS {
        let evil = door.ask("GET", path).bearer(&door.owner.token);
        let told = evil.header("origin", "https://evil.example").send().await;
        assert_eq!(told.error(), (403, "origin_not_allowed".to_owned()), "{path}");
        assert_eq!(told.header("access-control-allow-origin"), None);
    }
    let own = format!("http://{}", door.running.address());
    let told = door.ask("GET", "/v1/sessions").bearer(&door.viewer.token);
    assert_eq!(told.header("origin", &own).send().await.status, 200);
}

// spec: native/credentials.7
#[tokio::test]
async fn a_page_that_is_refused_is_logged_with_what_lets_it_in_but_not_each_time() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _logging = tracing::subscriber::set_default(log.finish());
    let door = Knocked::new().await;
    let allow = "--allow-origin http://board.lan:4173";
    let refuse = async |path: &str, origin: &str| {
        let asked = door.ask("GET", path).header("origin", origin).send().await;
        assert_eq!(asked.error(), (403, "origin_not_allowed".to_owned()));
        asked.json()["error"]["message"].as_str().unwrap().to_owned()
    };

    for _ in 0..50 {
        let told = refuse("/ws/webchannel?token=fh_secret", "http://Board.lan:4173").await;
        assert!(told.contains(allow), "{told}");
    }
    // One that cannot be named is not named.
    let told = refuse("/ws", "null").await;
    assert!(!told.contains("--allow-origin"), "{told}");

    let text = lines.text();
    assert_eq!(text.matches(allow).count(), 1, "{text}");
    assert!(!text.contains("fh_secret"));
}

#[tokio::test]
async fn a_foreign_name_for_loopback_is_403() {
    let door = Knocked::new().await;

    let told = door.ask("GET", "/healthz").host("evil.example:4780").send().await;

    assert_eq!(told.error(), (403, "host_not_allowed".to_owned()));
    let local = door.ask("GET", "/healthz").host("localhost:4780").send().await;
    assert_eq!(local.status, 200);
}

#[tokio::test]
async fn an_allowed_origin_may_ask_and_is_told_so() {
    let allowed = "https://board.example";
    let door = Knocked::with(|config| config.allow_origins = vec![allowed.parse().unwrap()]).await;

    let preflight = door.ask("OPTIONS", "/v1/sessions").header("origin", allowed);
    let preflight = preflight.header("access-control-request-method", "GET").send().await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some(allowed));
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("authorization"));
    assert!(preflight.header("access-control-allow-methods").unwrap().contains("PATCH"));

    let told = door.ask("GET", "/v1/sessions").bearer(&door.viewer.token);
    let told = told.header("origin", allowed).send().await;
    assert_eq!((told.status, told.header("access-control-allow-origin")), (200, Some(allowed)));
    // A page must be able to read why it was refused.
    let refused = door.ask("GET", "/v1/sessions").header("origin", allowed).send().await;
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin")),
        (401, Some(allowed))
    );
    let wrong = door.ask("GET", "/v1/sessions").bearer("fh_wrong").header("origin", allowed);
    let wrong = wrong.send().await;
    assert_eq!((wrong.status, wrong.header("access-control-allow-origin")), (401, Some(allowed)));

    let other = door.ask("OPTIONS", "/v1/sessions").header("origin", "https://evil.example");
    assert_eq!(other.send().await.status, 403);
}

#[tokio::test]
async fn answers_carry_the_security_headers() {
    let door = Knocked::new().await;

    for told in [door.ask("GET", "/").send().await, door.get("/v1/sessions", &door.viewer).await] {
        assert_eq!(told.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(told.header("x-frame-options"), Some("DENY"));
        assert_eq!(told.header("referrer-policy"), Some("no-referrer"));
        assert!(told.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    }
    let told = door.get("/v1/sessions", &door.viewer).await;
    assert_eq!(told.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn no_token_is_ever_in_a_log_line() {
    // For the whole process: the lines of other tests are here too, and harmless.
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let door = Knocked::new().await;
    let secret = &door.owner.token;

    door.ask("GET", &format!("/v1/sessions?token={secret}")).send().await;
    door.ask("GET", &format!("/nowhere?token={secret}x")).send().await;
    door.get("/v1/tokens", &door.owner).await;
    door.ask("GET", "/").header("cookie", &format!("farhelm_token={secret}")).send().await;
    let made = door.post("/v1/tokens", &door.owner, r#"{"role":"viewer"}"#).await.json();
    let code = door.post("/v1/pair/codes", &door.owner, "").await.json();
    let body = serde_json::json!({ "code": code["code"], "device_name": "d" }).to_string();
    let paired = door.ask("POST", "/v1/pair").body(body).send().await.json();

    let text = lines.text();
    assert!(text.contains("/nowhere") && text.contains("device paired"));
    let secrets =
        [secret.as_str(), made["token"].as_str().unwrap(), paired["token"].as_str().unwrap()];
    for secret in secrets {
        assert!(!text.contains(&secret[..20]), "a secret was logged");
    }
}

/// Log lines, kept.
#[derive(Clone, Default)]
struct Lines(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
