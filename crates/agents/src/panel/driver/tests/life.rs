//! Beginning, going away, coming back, ending.

use super::*;

#[test]
fn a_launched_session_opens_a_chat_and_is_ready_when_its_panel_is_there() {
    let now = Timestamp(1_000_000);
    let mut bench = Bench::start("claude-vscode", String::new(), Origin::Launched, now);
    let workspace_path = Some("/w".to_owned());
    assert_eq!(bench.tasks(), [&Task::Open { workspace_path }]);
    assert!(!bench.told.contains(&Output::Ready));
    bench.attach();
    bench.done(|task| matches!(task, Task::Open { .. }), Ok(Done::Plainly));
    assert!(bench.told.contains(&Output::Ready));
    let mut again = bench.restart();
    assert!(!again.told.contains(&Output::Ready), "told once");
    assert!(again.jobs.iter().any(|job| job.task == Task::Find));
    again.push(json!({}));
    assert_eq!(again.last_health().unwrap().0, Health::Healthy);
}

#[test]
fn a_launched_session_waits_for_its_panel_as_long_as_its_launch_does() {
    let found = built_in().into_iter().next().unwrap();
    let setup = Setup {
        session: SessionId::from("sess_1"),
        notes: String::new(),
        launcher: Launcher::default(),
        workspace: "/w".into(),
        model: None,
        mode: None,
        earlier: None,
        ready_by: None,
        variables: BTreeMap::new(),
    };
    let mut driver = PanelDriver::new(Arc::new(found), setup, Origin::Launched);
    driver.ready_by(Timestamp(90_000));
    driver.start(Timestamp(1_000));
    let is_over = |told: &[Output]| told.iter().any(|it| matches!(it, Output::Unusable(_)));
    assert!(!is_over(&driver.on_deadline(Timestamp(89_999))));
    assert!(is_over(&driver.on_deadline(Timestamp(90_000))));
}

#[test]
fn a_launch_that_fails_says_why() {
    let now = Timestamp(1_000_000);
    let mut bench = Bench::start("claude-vscode", String::new(), Origin::Launched, now);
    let failure = Failure::new("agent_not_open", "no window is open");
    bench.done(|task| matches!(task, Task::Open { .. }), Err(failure.clone()));
    assert!(bench.told.contains(&Output::Unusable(failure)));
}

#[test]
fn what_the_panel_can_do_is_told_and_its_model_as_it_is_written() {
    let mut bench = Bench::attached();
    bench.push(json!({"model": "sonnet"}));
    let configs: Vec<_> = bench
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::Config(config) => Some(config.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(configs.len(), 1, "told once");
    assert_eq!(configs[0].model.as_str(), "sonnet");
    assert_eq!(configs[0].available_models, None, "nobody read them");
    let can = |ability| configs[0].can(ability);
    assert_eq!(
        (can("interrupt"), can("steer"), can("images")),
        (Some(true), Some(false), Some(true))
    );
}

#[test]
fn models_are_read_only_on_request_and_when_nobody_is_disturbed() {
    let mut bench = Bench::attached_as("vscode-chat");
    bench.push(json!({"composer": {"alternative": 0, "is_empty": false, "is_focused": true}}));
    bench.control("r1", Control::ReadConfig);
    assert_eq!(bench.tasks(), Vec::<&Task>::new(), "somebody types");
    bench.push(json!({}));
    bench.control("r2", Control::ReadConfig);
    let models = vec!["a".to_owned(), "b".to_owned()];
    bench.done(|task| *task == Task::ReadModels, Ok(Done::Models(models)));
    let read = bench.reports().into_iter().rev().find_map(|report| match report {
        Report::Config(config) => config.available_models.clone(),
        _ => None,
    });
    assert_eq!(read.map(|models| models.len()), Some(2));
    let answered = bench
        .reports()
        .into_iter()
        .filter(|report| matches!(report, Report::ControlResult { failure: None, .. }));
    assert_eq!(answered.count(), 2);
}

#[test]
fn a_panel_that_goes_is_disconnected_and_its_run_fails_after_a_while() {
    let mut bench = Bench::attached();
    bench.show_busy(&[("user", "go"), ("assistant", "Half")]);
    bench.news(News::Gone { reason: "The browser ended".to_owned(), is_closed: false });
    let health = bench.last_health().unwrap();
    assert_eq!(health, (Health::Disconnected, Some("The browser ended".to_owned())));
    bench.pass(20_000);
    let failed =
        |report: &&Report| matches!(report, Report::RunEnded { outcome: Outcome::Failed(_), .. });
    assert!(bench.reports().iter().any(failed));
    bench.pass(24 * 3_600_000);
    let closed = |report: &&Report| matches!(report, Report::Closed { .. });
    assert!(!bench.reports().iter().any(closed), "an IDE may be started again");
}

#[test]
fn a_panel_that_somebody_closed_for_good_ends_its_session() {
    let mut bench = Bench::attached();
    bench.news(News::Gone { reason: "closed".to_owned(), is_closed: true });
    bench.pass(60_000);
    let closed = |report: &&Report| {
        matches!(report, Report::Closed { reason: CloseReason::TargetClosed, .. })
    };
    assert!(!bench.reports().iter().any(closed), "it may come back");
    bench.pass(31 * 60_000);
    assert!(bench.reports().iter().any(closed));
    assert_eq!(bench.tasks(), [&Task::LetGo], "it may be opened again, as another session");
}

#[test]
fn a_person_closes_the_session() {
    let mut bench = Bench::attached();
    bench.control("r1", Control::Close);
    bench.done(|task| *task == Task::Close, Ok(Done::Plainly));
    let closed = |report: &&Report| match report {
        Report::Closed { reason: CloseReason::UserRequested, request } => {
            request.as_ref().is_some_and(|request| request.as_str() == "r1")
        }
        _ => false,
    };
    assert!(bench.reports().iter().any(closed));
    assert_eq!(bench.driver.deadline(), None);
}

#[test]
fn a_missing_push_is_asked_for() {
    let mut bench = Bench::attached();
    bench.n += 3;
    bench.push(json!({}));
    assert_eq!(bench.tasks(), [&Task::Look]);
}

#[test]
fn a_silent_panel_is_looked_at_and_one_that_does_not_answer_cannot_be_read() {
    let mut bench = Bench::attached();
    let end = bench.now.plus_ms(100_000);
    while bench.driver.deadline().is_some_and(|due| due <= end) {
        bench.now = bench.now.max(bench.driver.deadline().unwrap());
        let outputs = bench.driver.on_deadline(bench.now);
        bench.hear(outputs);
    }
    assert_eq!(bench.tasks(), [&Task::Look]);
    bench.now = end.plus_ms(25_000);
    let outputs = bench.driver.on_deadline(bench.now);
    bench.hear(outputs);
    assert_eq!(bench.last_health().unwrap().0, Health::ScrapingFailed);
    bench.push(json!({}));
    assert_eq!(bench.last_health().unwrap().0, Health::Healthy);
}

#[test]
fn seconds_that_count_up_are_not_told() {
    let mut bench = Bench::attached();
    let working =
        |label: &str| json!({"busy": true, "activity": {"kind": "thinking", "label": label}});
    bench.push(working("Thinking 1s"));
    bench.take();
    for seconds in 2..20 {
        bench.push(working(&format!("Thinking {seconds}s")));
    }
    assert_eq!(bench.reports().len(), 0, "{:?}", bench.told);
}

#[test]
fn words_that_are_none_make_the_panel_unreadable() {
    let mut bench = Bench::attached();
    bench.news(News::Pushed("{".to_owned()));
    assert_eq!(bench.last_health().unwrap().0, Health::ScrapingFailed);
}
