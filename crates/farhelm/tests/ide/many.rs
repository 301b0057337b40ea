//! Many panels at once.

use serde_json::json;

use crate::ide::stage::{Stage, id};
use crate::support::{Lines, said};

const PANELS: usize = 20;

#[test]
fn twenty_panels_are_twenty_sessions() {
    let Some(mut stage) = Stage::new("twenty panels") else { return };
    stage.up();
    for number in 0..PANELS {
        stage.open("opencode-web", &format!("p{number}"), "");
    }
    stage.until("twenty sessions", |sessions| {
        let healthy = sessions.iter().filter(|it| it["status"] == "healthy");
        let ids: std::collections::BTreeSet<_> = healthy.map(id).collect();
        (ids.len() == PANELS).then_some(())
    });
}

#[test]
fn somebody_who_inspects_disturbs_nobody_who_watches() {
    let Some(mut stage) = Stage::new("inspecting while attached") else { return };
    stage.up();
    let tab = stage.open("opencode-web", "one", "");
    let session = stage.session("opencode-web");
    let port = stage.port.to_string();
    let seen = stage.place.json(&["cdp", "inspect", "--ide-ports", &port, "--json"]);
    assert!(seen.to_string().contains("opencode-web"), "{seen}");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    stage.panel_does(&tab, &json!({"do": "say", "role": "assistant", "text": "still heard"}));
    tail.until(|event| said(event).is_some_and(|it| it.contains("still heard")));
    stage.send(&session, "still sent");
    tail.until(|event| said(event).is_some_and(|it| it.contains("echo: still sent")));
}
