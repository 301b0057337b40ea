//! The last read configuration, and how it confirms a change.

use super::super::config::AgentConfig;
use super::*;

// spec: native/agent_config.4, native/relay_routing_rules.3
#[test]
fn each_reading_replaces_the_last_and_is_shown() {
    let mut story = Story::linked();
    assert_eq!(read(&mut story, "large", 1), ["config large"]);
    assert_eq!(read(&mut story, "small", 2), ["config small"]);
    assert_eq!(read(&mut story, "small", 3), ["config small"]);
    let kept = story.session.card().config.unwrap();
    assert_eq!(kept, config("small", 3));
}

#[test]
fn the_configuration_stays_while_the_machine_is_away() {
    let mut story = Story::linked();
    read(&mut story, "large", 1);
    story.down();
    assert_eq!(story.session.card().config, Some(config("large", 1)));
}

// spec: native/agent_set_model.2, native/agent_set_model.4
#[test]
fn a_change_of_model_counts_when_the_reading_confirms_it() {
    let mut story = Story::linked();
    read(&mut story, "large", 1);
    story.control(&ada(), "a1", Control::SetModel("small".into())).unwrap();
    assert_eq!(story.session.card().config.unwrap().model, "large".into());
    assert_eq!(read(&mut story, "large", 2), ["config large"], "not yet");
    assert_eq!(story.owed(), ["a1: SetModel"]);
    assert_eq!(read(&mut story, "small", 3), ["config small", "settled a1: ok"]);
    assert_eq!(story.result("a1", None), nothing());
}

// spec: native/agent_control_result.2
#[test]
fn an_answer_before_the_reading_settles_the_request_and_not_the_model() {
    let mut story = Story::linked();
    read(&mut story, "large", 1);
    story.control(&ada(), "a1", Control::SetModel("small".into())).unwrap();
    assert_eq!(story.result("a1", None), ["settled a1: ok"]);
    assert_eq!(story.session.card().config.unwrap().model, "large".into());
    assert_eq!(read(&mut story, "small", 2), ["config small"]);
}

// spec: native/agent_set_model.3
#[test]
fn a_model_that_the_agent_does_not_have_leaves_the_configuration_as_it_was() {
    let mut story = Story::linked();
    read(&mut story, "large", 1);
    story.control(&ada(), "a1", Control::SetModel("huge".into())).unwrap();
    let told = story.result("a1", Some("model_not_available"));
    assert_eq!(told, ["settled a1: model_not_available"]);
    assert_eq!(story.session.card().config, Some(config("large", 1)));
}

#[test]
fn a_reading_answers_everybody_who_asked_for_one() {
    let mut story = Story::linked();
    story.control(&ada(), "a1", Control::ReadConfig).unwrap();
    story.control(&bob(), "b1", Control::ReadConfig).unwrap();
    let told = read(&mut story, "large", 1);
    assert_eq!(told, ["config large", "settled a1: ok", "settled b1: ok"]);
}

fn read(story: &mut Story, model: &str, read_at: u64) -> Vec<String> {
    story.report(Report::Config(config(model, read_at))).unwrap()
}

pub(super) fn config(model: &str, read_at: u64) -> AgentConfig {
    AgentConfig {
        model: model.into(),
        permission_mode: None,
        file_access_scope: None,
        available_models: None,
        available_modes: None,
        effort: None,
        available_efforts: None,
        session_file: None,
        commands: None,
        capabilities: [].into(),
        read_at: Timestamp(read_at),
    }
}
