//! What the pages of a test showed when it failed: printed, and as pictures in `ide-shots` of the
//! target folder.
//!
//! Not here: what the ledger says (the failed assertion itself).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cdp::{Browser, Fault};
use serde_json::{Value, json};

/// A page that hangs is not waited for longer.
const PAGE_WITHIN: Duration = Duration::from_secs(10);
/// Characters of a page that are shown.
const TEXT_CHARACTERS_MAX: usize = 3_000;

/// Every page and frame of the browser: its address and its text. Pictures are kept on the way.
pub(crate) async fn seen(port: u16) -> String {
    match all(port).await {
        Ok(seen) => seen,
        Err(fault) => format!("what the pages showed is not known: {fault}"),
    }
}

/// Where the pictures of the running test are.
pub(crate) fn shots() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    target.join("ide-shots").join(test)
}

async fn all(port: u16) -> Result<String, Fault> {
    let browser = Browser::connect(&format!("127.0.0.1:{port}")).await?;
    let targets = browser.call(None, "Target.getTargets", json!({})).await?;
    let folder = shots();
    let _ = std::fs::remove_dir_all(&folder);
    let mut seen = String::new();
    let is_shown = |target: &&Value| target["type"] == "page" || target["type"] == "iframe";
    let targets = targets["targetInfos"].as_array().cloned().unwrap_or_default();
    for (number, target) in targets.iter().filter(is_shown).enumerate() {
        let (kind, url) = (&target["type"], &target["url"]);
        let _ = writeln!(seen, "---- {kind} {url}");
        let shot = folder.join(format!("{number}.png"));
        let look = look(&browser, target, &shot);
        let text = match tokio::time::timeout(PAGE_WITHIN, look).await {
            Ok(Ok(text)) => text,
            Ok(Err(fault)) => format!("cannot be looked at: {fault}"),
            Err(_) => "does not answer".to_owned(),
        };
        let _ = writeln!(seen, "{text}");
    }
    Ok(seen)
}

/// The text of one; a page's picture besides.
async fn look(browser: &Browser, target: &Value, shot: &Path) -> Result<String, Fault> {
    let session = browser.attach(target["targetId"].as_str().unwrap_or_default()).await?;
    // A webview's panel is in a frame of it, of the same origin.
    let script = "[document, ...[...document.querySelectorAll('iframe')].map((it) => \
         it.contentDocument)].map((it) => it?.body?.innerText ?? '').join('\\n')";
    let evaluate = json!({"expression": script, "returnByValue": true});
    let told = browser.call(Some(&session), "Runtime.evaluate", evaluate).await?;
    let text = told["result"]["value"].as_str().unwrap_or_default();
    let mut text: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
    if target["type"] == "page" {
        let taken = browser.call(Some(&session), "Page.captureScreenshot", json!({})).await?;
        let picture = STANDARD.decode(taken["data"].as_str().unwrap_or_default());
        let kept = picture.map_err(std::io::Error::other).and_then(|picture| {
            std::fs::create_dir_all(shot.parent().unwrap_or(shot))?;
            std::fs::write(shot, picture)
        });
        let _ = match kept {
            Ok(()) => write!(text, "\n({})", shot.display()),
            Err(error) => write!(text, "\n(no picture: {error})"),
        };
    }
    Ok(text)
}

#[test]
fn a_test_that_fails_leaves_what_its_pages_showed() {
    let failed = std::panic::catch_unwind(|| {
        let Some(stage) = crate::ide::stage::Stage::new("a failing test") else { return };
        stage.open("antigravity", "ide", "ask=Shall%20I%3F");
        stage.until_noted("ide", "asked", 1);
        let seen = stage.block_on(seen(stage.port));
        assert!(seen.contains("/workbench/antigravity") && seen.contains("Shall I?"), "{seen}");
        std::fs::remove_dir_all(shots()).unwrap();
        panic!("as a test that fails");
    });
    if let Err(panic) = failed {
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as a test that fails"), "{panic:?}");
        let pictures = std::fs::read_dir(shots()).unwrap().flatten().map(|it| it.path());
        let pictures: Vec<_> = pictures.map(|it| std::fs::read(it).unwrap()).collect();
        assert!(pictures.iter().any(|it| it.starts_with(b"\x89PNG")), "{}", pictures.len());
        std::fs::remove_dir_all(shots()).unwrap();
    }
}
