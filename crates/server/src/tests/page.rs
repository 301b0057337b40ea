//! The page over HTTP: which files a browser gets, and which credential it has.

use super::Knocked;

#[tokio::test]
async fn the_page_is_served_under_a_policy_that_lets_nothing_foreign_in() {
    let door = Knocked::new().await;

    let page = door.ask("GET", "/").send().await;

    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let text = page.text();
    assert!(text.contains("<title>Farhelm</title>"));
    assert!(!text.contains("<style") && !text.contains("style=") && !text.contains("onload"));
}

#[tokio::test]
async fn a_page_that_did_not_change_is_not_sent_again() {
    let door = Knocked::new().await;
    let first = door.ask("GET", "/").send().await;
    let tag = first.header("etag").unwrap().to_owned();

    let again = door.ask("GET", "/").header("if-none-match", &tag).send().await;

    assert_eq!((again.status, again.body.len()), (304, 0));
    let other = door.ask("GET", "/").header("if-none-match", "\"other\"").send().await;
    assert_eq!(other.status, 200);
}

/// Without the page in this build there is one file, which is not compressed.
#[tokio::test]
async fn its_files_come_compressed_as_the_browser_takes_them_and_are_kept_for_ever() {
    let door = Knocked::new().await;
    let index = door.ask("GET", "/").send().await.text();
    let Some(script) = index.split('"').find(|part| part.starts_with("/assets/")) else {
        assert!(index.contains("built without its page"));
        fake_panels::untried("the page's files", "built with FARHELM_WITHOUT_PAGE");
        return;
    };

    let plain = door.ask("GET", script).send().await;
    let small = door.ask("GET", script).header("accept-encoding", "gzip, br").send().await;
    let older = door.ask("GET", script).header("accept-encoding", "gzip, br;q=0").send().await;

    assert_eq!(plain.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(small.header("content-encoding"), Some("br"));
    assert_eq!(older.header("content-encoding"), Some("gzip"));
    assert!(small.body.len() < older.body.len() && older.body.len() < plain.body.len() / 2);
    // Before the first picture, so that a phone on a slow line sees one soon.
    assert!(small.body.len() < 180 * 1024, "{} bytes", small.body.len());
    assert_eq!(small.header("vary"), Some("accept-encoding, origin"));
}

#[tokio::test]
async fn a_browser_with_a_wrong_cookie_gets_the_page_and_forgets_the_cookie() {
    let door = Knocked::new().await;

    let page = door.ask("GET", "/").header("cookie", "farhelm_token=fh_wrong").send().await;

    assert_eq!(page.status, 401);
    assert!(page.text().contains("<title>Farhelm</title>"));
    assert!(page.header("set-cookie").unwrap().starts_with("farhelm_token=; "));
    // What the page asks for is still told in words.
    let asked = door.ask("GET", "/v1/me").header("cookie", "farhelm_token=fh_wrong").send().await;
    assert_eq!(asked.error(), (401, "unauthorized".to_owned()));
}

#[tokio::test]
async fn a_wrong_cookie_does_not_keep_a_device_from_being_paired() {
    let door = Knocked::new().await;
    let code = door.post("/v1/pair/codes", &door.owner, "").await.json();
    let body = format!(r#"{{"code":{}}}"#, code["code"]);

    let ask = door.ask("POST", "/v1/pair").header("cookie", "farhelm_token=fh_wrong");
    let paired = ask.body(body).send().await;

    assert_eq!(paired.status, 200);
    assert!(paired.header("set-cookie").unwrap().contains("HttpOnly"));
}

#[tokio::test]
async fn a_browser_learns_who_it_is_takes_a_token_as_a_cookie_and_leaves() {
    let door = Knocked::new().await;

    let me = door.get("/v1/me", &door.viewer).await.json();
    assert_eq!((&me["name"], &me["role"]), (&"view".into(), &"viewer".into()));
    assert_eq!(door.ask("GET", "/v1/me").send().await.status, 401);
    let entered = door.post("/v1/me", &door.operator, "").await;
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("farhelm_token={}; ", door.operator.token)));
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
    assert_eq!(door.post("/v1/me", &door.proxy, "").await.status, 403);
    let left = door.ask("DELETE", "/v1/me").send().await;
    assert!(left.header("set-cookie").unwrap().starts_with("farhelm_token=; "));
}
