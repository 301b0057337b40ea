//! Another model, another mode.

use serde_json::{Value, json};

use crate::agents::agent::{Agent, Mode};
use crate::agents::client::Mark;
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};

/// The next words are answered by the model that was chosen, and one that is not there is refused.
pub(crate) async fn model_switch(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    assert_eq!(stage.can("set_model"), agent.switches_model, "{}", stage.config());
    if !agent.switches_model {
        return Verdict::Cannot("it has only one model");
    }
    let before = stage.exchange("which one").await;
    let config = stage.config();
    let models = config["available_models"].as_array().cloned().unwrap_or_default();
    let listed = models.iter().find(|model| **model != config["model_id"]).cloned();
    let other = if let Some(other) = agent.other_model {
        json!(other)
    } else {
        let none = json!({"type": "agent_set_model", "model_id": "no-such"});
        let none = stage.control(none).await;
        assert_eq!(none["result"], "failed", "{none}");
        assert_eq!(stage.config()["model_id"], config["model_id"]);
        listed.unwrap_or_else(|| panic!("no other model: {config}"))
    };

    let mark = stage.client.mark();
    let result = stage.control(json!({"type": "agent_set_model", "model_id": other})).await;
    assert_eq!(result["result"], "ok", "{result}");
    told(&mut stage, mark, "model_id", &other).await;
    let after = stage.exchange("which one").await;
    if agent.home.is_some() {
        assert_ne!(before, after, "the same model answers");
    }
    Verdict::Works
}

/// The mode is changed, shown, and holds.
pub(crate) async fn mode_switch(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    assert_eq!(stage.can("permission_mode_change"), agent.mode.is_some(), "{}", stage.config());
    let Some((mode, effect)) = agent.mode else {
        return Verdict::Cannot("it has no modes");
    };
    let modes = stage.config()["available_modes"].clone();
    assert!(modes.as_array().is_some_and(|modes| modes.contains(&json!(mode))), "{modes}");
    let mark = stage.client.mark();
    let change = json!({"type": "agent_set_permission_mode", "mode": mode});
    let result = stage.control(change).await;
    assert_eq!(result["result"], "ok", "{result}");
    told(&mut stage, mark, "permission_mode", &json!(mode)).await;
    let folder = stage.work().join("free-dir");
    match effect {
        Mode::Runs => {
            let sent = stage.send(&format!("{}mkdir free-dir", agent.asking)).await;
            stage.done(&sent, "completed").await;
            assert!(folder.is_dir(), "it did not run");
            let asked = stage.client.since(sent.mark).iter().any(super::tools::is_prompt);
            assert!(!asked, "it asked");
        }
        Mode::Forbids => {
            let sent = stage.send(&format!("{}mkdir free-dir", agent.running)).await;
            stage.done(&sent, "completed").await;
            assert!(!folder.exists(), "it ran");
        }
        Mode::Shown => {
            stage.exchange("in the new mode").await;
        }
    }
    Verdict::Works
}

async fn told(stage: &mut Stage, since: Mark, name: &str, value: &Value) {
    let session = stage.session.clone();
    stage
        .client
        .wait(since, &format!("{name} {}", words(value)), |frame| {
            frame["type"] == "agent_config"
                && frame["session_id"] == session
                && frame[name] == *value
        })
        .await;
}
