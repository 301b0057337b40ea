use domain::content::Part;
use domain::session::status::Health;

use super::*;
use crate::Earlier;

#[test]
fn a_new_session_starts_its_program_and_is_ready_when_it_introduced_itself() {
    let mut bench = Bench::new(setup(&[]));
    let outputs = bench.start();
    let program = spawned(&outputs).unwrap();
    let own = bench.driver.own_id();
    assert!(program.args.ends_with(&["--session-id".to_owned(), own]), "{program:?}");
    let asked = written(&outputs);
    assert_eq!(asked[0]["request"]["subtype"], "initialize");
    let told = bench.introduce();
    assert!(told.contains(&Output::Ready));
    let Report::Config(config) = reports(&told)[0] else { panic!("{told:?}") };
    assert_eq!(config.model.as_str(), "default");
    assert_eq!(config.effort.as_deref(), Some("high"));
    assert_eq!(config.can("steer"), Some(true));
    assert!(bench.driver.is_at_rest());
}

#[test]
fn somebody_who_is_not_logged_in_is_told_what_to_do() {
    let mut bench = Bench::new(setup(&[]));
    bench.start();
    let mut logged_out = introduction();
    logged_out["account"] = json!({"tokenSource": "none", "apiProvider": "firstParty"});
    let told = bench.hear(&answered(1, logged_out));
    let Some(Output::Unusable(failure)) = told.last() else { panic!("{told:?}") };
    assert_eq!(failure.code.as_str(), "agent_not_open");
    assert!(failure.message.contains("log in"), "{failure:?}");
}

#[test]
fn a_program_that_ends_at_once_makes_the_launch_fail_with_its_words() {
    let mut bench = Bench::new(setup(&[]));
    bench.start();
    bench.input(Input::Complaint("out of memory".into()));
    let told = bench.input(Input::Ended(Ended::Exited(1)));
    let [Output::Unusable(failure)] = told.as_slice() else { panic!("{told:?}") };
    assert!(failure.message.contains("out of memory"), "{failure:?}");
}

#[test]
fn a_program_that_says_nothing_is_given_up() {
    let mut bench = Bench::new(setup(&[]));
    bench.start();
    let mut told = vec![];
    while !told.iter().any(|output| matches!(output, Output::Unusable(_))) {
        told = bench.wait_until_due();
    }
    assert!(told.contains(&Output::End));
}

#[test]
fn a_session_that_was_ready_starts_its_program_at_the_first_need() {
    let mut bench = Bench::up();
    bench.begin("m1");
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1", "model": "claude-opus-5", "permissionMode": "plan"}));
    let mut bench = bench.reborn();
    let told = bench.start();
    assert!(spawned(&told).is_none(), "{told:?}");
    assert!(
        matches!(reports(&told)[0], Report::Config(config) if config.permission_mode.as_deref() == Some("plan"))
    );
    assert!(!told.contains(&Output::Ready));
    let told = bench.send("m2");
    let arguments = spawned(&told).unwrap().args.join(" ");
    assert!(arguments.contains("--resume c1 --permission-mode plan"), "{arguments}");
    let told = bench.introduce();
    let line = written(&told).pop().unwrap();
    assert_eq!(line["uuid"], uuid("m2"));
    assert!(!told.contains(&Output::Ready), "it was ready before");
}

#[test]
fn a_conversation_that_may_not_have_begun_is_looked_for_first() {
    let mut bench = Bench::up().reborn();
    bench.start();
    let told = bench.send("m1");
    let path: std::path::PathBuf = format!("{FILE}{}.jsonl", bench.driver.own_id()).into();
    assert_eq!(told, [Output::Read(path.clone())]);
    let told = bench.input(Input::Read { path, text: None });
    assert!(spawned(&told).unwrap().args.contains(&"--session-id".to_owned()));

    let mut bench = bench.reborn();
    bench.start();
    bench.send("m1");
    let path = format!("{FILE}{}.jsonl", bench.driver.own_id()).into();
    let told = bench.input(Input::Read { path, text: Some(String::new()) });
    assert!(spawned(&told).unwrap().args.contains(&"--resume".to_owned()));
}

#[test]
fn a_resting_program_ends_quietly_and_comes_back_with_the_next_message() {
    let mut bench = Bench::up();
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
    assert_eq!(bench.order(&Order::Rest), [Output::End]);
    assert_eq!(bench.send("m1"), [], "it waits for the end of the old one");
    let told = bench.input(Input::Ended(Ended::Exited(0)));
    assert!(spawned(&told).is_some());
    assert!(reports(&told).is_empty(), "{told:?}");
}

#[test]
fn a_crash_ends_the_run_with_its_reason_and_the_next_message_starts_it_again() {
    let mut bench = Bench::up();
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
    bench.begin("m1");
    bench.input(Input::Complaint("segmentation fault".into()));
    let told = bench.input(Input::Ended(Ended::Killed(11)));
    let told = reports(&told);
    let ended = told.iter().find_map(|report| match report {
        Report::RunEnded { outcome: Outcome::Failed(why), .. } => Some(why.clone()),
        _ => None,
    });
    assert!(ended.unwrap().contains("segmentation fault"));
    let Some(Report::Status { health, reason, .. }) = told.last() else { panic!("{told:?}") };
    assert_eq!(*health, Health::Degraded);
    assert!(reason.as_deref().unwrap().contains("Send a message"));
    assert!(spawned(&bench.send("m2")).is_some());
    let told = bench.introduce();
    assert!(
        reports(&told)
            .iter()
            .any(|report| matches!(report, Report::Status { health: Health::Healthy, .. }))
    );
}

#[test]
fn a_program_that_cannot_be_started_again_fails_what_waited() {
    let mut bench = Bench::up();
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
    let mut bench = bench.reborn();
    bench.start();
    bench.send("m1");
    bench.hear(&result(json!({"subtype": "error_during_execution", "is_error": true, "errors": ["the disk is full"]})));
    let told = bench.input(Input::Ended(Ended::Exited(1)));
    let told = reports(&told);
    assert!(
        matches!(told[0], Report::SendFailed { failure, .. } if failure.message.contains("the disk is full")),
        "{told:?}"
    );
    assert!(matches!(told[1], Report::Status { health: Health::Degraded, .. }));
}

#[test]
fn a_conversation_that_the_agent_lost_is_begun_anew() {
    let mut bench = Bench::up();
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
    let mut bench = bench.reborn();
    bench.start();
    bench.send("m1");
    let lost = json!(["No conversation found with session ID: c1"]);
    bench.hear(&result(json!({"is_error": true, "errors": lost})));
    let told = bench.input(Input::Ended(Ended::Exited(1)));
    assert!(matches!(reports(&told)[0], Report::Notice(notice) if notice.kind == "conversation"));
    let program = spawned(&told).unwrap().args.join(" ");
    let id = bench.driver.notes.conversation.clone().unwrap();
    assert!(program.contains(&format!("--session-id {id}")), "{program}");
    assert_ne!(id, bench.driver.own_id(), "that one may be in use");
    let told = bench.introduce();
    assert_eq!(written(&told).pop().unwrap()["uuid"], uuid("m1"));
}

#[test]
fn an_earlier_conversation_is_told_once_before_it_is_resumed() {
    let mut setup = setup(&[]);
    setup.earlier = Some(Earlier { id: "old".into(), file: None, fork: false });
    let mut bench = Bench::new(setup.clone());
    let path: std::path::PathBuf = format!("{FILE}old.jsonl").into();
    assert_eq!(bench.start(), [Output::Read(path.clone())]);
    let record =
        json!({"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hello"}});
    let told = bench.input(Input::Read { path, text: Some(record.to_string()) });
    assert!(
        matches!(reports(&told)[0], Report::Message { message, has_own_id: true, .. } if message.id == "u1".into())
    );
    assert!(spawned(&told).unwrap().args.ends_with(&["--resume".to_owned(), "old".to_owned()]));
    bench.introduce();

    setup.notes = bench.notes.join("\n");
    let mut bench = Bench::new(setup.clone());
    let told = bench.start();
    assert!(!told.iter().any(|output| matches!(output, Output::Read(_))), "{told:?}");
}

#[test]
fn pictures_of_an_earlier_conversation_are_kept_before_it_goes_on() {
    let mut setup = setup(&[]);
    setup.earlier = Some(Earlier { id: "old".into(), file: None, fork: false });
    let mut bench = Bench::new(setup.clone());
    bench.start();
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let content = json!([{"type": "text", "text": "see"}, {"type": "image", "source": source}]);
    let record = json!({"type": "user", "uuid": "u1", "message": {"content": content}});
    let path = format!("{FILE}old.jsonl").into();
    let told = bench.input(Input::Read { path, text: Some(record.to_string()) });
    let [Output::Keep(picture)] = told.as_slice() else { panic!("{told:?}") };
    let message = picture.message.clone();
    let told = bench.input(Input::Kept { message, outcome: Ok("upl_1".into()) });
    let Report::Message { message, .. } = reports(&told)[0] else { panic!("{told:?}") };
    let parts = message.parts.open().unwrap();
    assert!(
        matches!(parts.as_slice(), [Part::Text(_), Part::Image(file)] if file.id == "upl_1".into())
    );
    assert!(spawned(&told).is_some());

    // A relay that takes no pictures does not keep the session from starting.
    let mut bench = Bench::new(setup);
    bench.start();
    let path = format!("{FILE}old.jsonl").into();
    bench.input(Input::Read { path, text: Some(record.to_string()) });
    let told = bench.wait_until_due();
    assert!(format!("{:?}", reports(&told)[0]).contains("did not store it in time"));
    assert!(spawned(&told).is_some());
}

#[test]
fn a_copy_of_an_earlier_conversation_has_a_name_of_its_own() {
    let mut setup = setup(&[]);
    setup.earlier =
        Some(Earlier { id: "old".into(), file: Some("/elsewhere.jsonl".into()), fork: true });
    let mut bench = Bench::new(setup);
    assert_eq!(bench.start(), [Output::Read("/elsewhere.jsonl".into())]);
    let told = bench.input(Input::Read { path: "/elsewhere.jsonl".into(), text: None });
    let own = bench.driver.own_id();
    let arguments = spawned(&told).unwrap().args.join(" ");
    assert!(
        arguments.ends_with(&format!("--resume old --session-id {own} --fork-session")),
        "{arguments}"
    );
}

#[test]
fn closing_ends_the_program_and_the_session() {
    let mut bench = Bench::up();
    bench.begin("m1");
    let told = bench.control("r1", Control::Close);
    assert!(told.contains(&Output::End));
    assert!(matches!(reports(&told).last(), Some(Report::Closed { request: Some(_), .. })));
}
