//! Every built-in profile in its own panel: said, asked, answered, stopped.

use agents::panel::profile::BUILT_IN;
use agents::panel::{Done, Task};

use crate::acting::stage::open;

#[tokio::test]
async fn every_built_in_profile_works_in_its_panel() {
    for (panel, _) in BUILT_IN {
        let Some(stage) = open("every panel", panel, "rows=4").await else { return };
        let text = "first\n\nthird 🎉";
        assert_eq!(stage.send(text).await, Ok(Done::Plainly), "{panel}");
        assert_eq!(stage.wait_for("sent", 1).await[0]["text"], text, "{panel}");
        // Busy, and idle again.
        stage.wait_for("busy", 2).await;
        assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly), "{panel}");
        assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly), "{panel}");
        stage.wait_for("stopped", 1).await;
        assert_eq!(stage.send("ask: rm -rf build").await, Ok(Done::Plainly), "{panel}");
        stage.wait_for("asked", 1).await;
        let dialogs = stage.dialogs().await;
        assert_eq!(dialogs.len(), 1, "{panel}: {dialogs:?}");
        let text = dialogs[0]["text"].as_str().unwrap();
        assert!(text.contains("rm -rf build"), "{panel}: {text}");
        let buttons = dialogs[0]["buttons"].as_array().unwrap();
        let label = |words: &[&str]| {
            let labels = buttons.iter().map(|button| button["label"].as_str().unwrap());
            labels.filter(|label| words.contains(label)).collect::<Vec<_>>()
        };
        let no = label(&["No", "Deny", "Reject", "Skip"]);
        assert_eq!(no.len(), 1, "{panel}: {buttons:?}");
        let dialog = dialogs[0]["id"].as_str().unwrap().to_owned();
        let task = Task::Press { dialog, label: no[0].to_owned() };
        assert_eq!(stage.perform(task).await, Ok(Done::Plainly), "{panel}");
        let answered = stage.wait_for("answered", 1).await;
        assert_eq!(answered[0]["label"], no[0], "{panel}");
        assert_eq!(answered[0]["is_trusted"], true, "{panel}");
        assert_eq!(stage.journal("sent").len(), 3, "{panel}");
        stage.close().await;
    }
}
