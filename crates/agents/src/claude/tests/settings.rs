use super::*;

fn config(outputs: &[Output]) -> &domain::session::config::AgentConfig {
    let configs = reports(outputs).into_iter().find_map(|report| match report {
        Report::Config(config) => Some(config),
        _ => None,
    });
    configs.expect("a configuration is told")
}

#[test]
fn a_model_that_is_offered_can_be_chosen_and_is_chosen_again_after_a_restart() {
    let mut bench = Bench::up();
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
    let told = bench.control("r0", Control::SetModel("gpt".into()));
    assert_eq!(failure_of(&told, "r0").unwrap().code.as_str(), "model_not_available");
    let told = bench.control("r1", Control::SetModel("haiku".into()));
    assert_eq!(written(&told)[0]["request"], json!({"subtype": "set_model", "model": "haiku"}));
    let number = bench.driver.requests_asked();
    let told = bench.hear(&answered(number, json!({"model": "claude-haiku-5"})));
    assert_eq!(failure_of(&told, "r1"), None);
    assert_eq!(config(&told).model.as_str(), "haiku");
    let mut bench = bench.reborn();
    bench.start();
    let told = bench.send("m1");
    assert!(spawned(&told).unwrap().args.join(" ").contains("--model haiku"));
}

#[test]
fn a_mode_is_the_agents_to_grant() {
    let mut bench = Bench::up();
    bench.control("r1", Control::SetMode("plan".into()));
    let number = bench.driver.requests_asked();
    let told = bench.hear(&answered(number, json!({"mode": "plan"})));
    assert_eq!(config(&told).permission_mode.as_deref(), Some("plan"));
    bench.control("r2", Control::SetMode("bypassPermissions".into()));
    let number = bench.driver.requests_asked();
    let refused = json!({"subtype": "error", "request_id": format!("farhelm-{number}"), "error": "not launched so"});
    let told = bench.hear(&json!({"type": "control_response", "response": refused}));
    assert_eq!(failure_of(&told, "r2").unwrap().message, "not launched so");
    let told = bench
        .hear(&json!({"type": "system", "subtype": "status", "permissionMode": "acceptEdits"}));
    assert_eq!(
        config(&told).permission_mode.as_deref(),
        Some("acceptEdits"),
        "it changed by itself"
    );
}

#[test]
fn effort_is_chosen_among_what_the_model_can() {
    let mut bench = Bench::up();
    let told = bench.control("r0", Control::SetEffort("ultra".into()));
    assert!(failure_of(&told, "r0").is_some());
    let told = bench.control("r1", Control::SetEffort("low".into()));
    assert_eq!(written(&told)[0]["request"]["settings"], json!({"effortLevel": "low"}));
    let number = bench.driver.requests_asked();
    let told = bench.hear(&answered(number, Value::Null));
    assert_eq!(config(&told).effort.as_deref(), Some("low"));
}

#[test]
fn a_request_that_is_not_answered_fails() {
    let mut bench = Bench::up();
    bench.control("r1", Control::SetMode("plan".into()));
    let told = bench.wait_until_due();
    assert_eq!(failure_of(&told, "r1").unwrap().code.as_str(), "control_timeout");
}

#[test]
fn settings_that_the_program_does_not_tell_are_as_they_were() {
    for answer in [json!("words"), json!([]), json!(null), json!({ "applied": "words" })] {
        let mut bench = Bench::up();
        bench.control("r1", Control::ReadConfig);
        let number = bench.driver.requests_asked();
        let told = bench.hear(&answered(number, answer));
        assert_eq!(failure_of(&told, "r1"), None);
    }
}

#[test]
fn the_configuration_is_read_anew_or_as_it_was_last() {
    let mut bench = Bench::up();
    bench.control("r1", Control::ReadConfig);
    let number = bench.driver.requests_asked();
    let told = bench.hear(&answered(number, json!({"applied": {"model": "claude-haiku-5"}})));
    assert_eq!(config(&told).model.as_str(), "haiku");
    assert_eq!(failure_of(&told, "r1"), None);
    let mut bench = bench.reborn();
    bench.start();
    let told = bench.control("r2", Control::ReadConfig);
    assert!(spawned(&told).is_none());
    assert_eq!(config(&told).model.as_str(), "haiku");
}
