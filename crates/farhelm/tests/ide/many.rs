//! Many panels at once.

use crate::stage::{Stage, id};

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
