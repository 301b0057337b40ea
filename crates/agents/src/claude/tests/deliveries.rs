use domain::session::runs::{Cut, Outcome};

use super::*;
use crate::Lookup;

fn fate<'a>(outputs: &'a [Output], id: &str) -> Option<&'a Report> {
    reports(outputs).into_iter().find(|report| match report {
        Report::SendDelivered { id: of, .. } | Report::SendFailed { id: of, .. } => {
            of.as_str() == id
        }
        _ => false,
    })
}

#[test]
fn a_send_is_delivered_when_the_agent_takes_it_and_begins_a_run() {
    let mut bench = Bench::up();
    let line = written(&bench.send("m1")).pop().unwrap();
    assert_eq!(line["message"]["content"][0]["text"], "words of m1");
    assert_eq!(line["uuid"], uuid("m1"));
    assert_eq!(reports(&bench.hear(&lifecycle("m1", "queued"))), Vec::<&Report>::new());
    let told = bench.hear(&lifecycle("m1", "started"));
    let told = reports(&told);
    let Report::SendDelivered { run: Some(run), attempt: Some(Sequence(7)), .. } = told[0] else {
        panic!("{told:?}")
    };
    assert!(
        matches!(told[1], Report::RunStarted { run: of, cause: Some(cause) } if of == run && *cause == "m1".into())
    );
    let replay = json!({"type": "user", "isReplay": true, "uuid": uuid("m1"), "message": {"role": "user", "content": "words of m1"}});
    assert_eq!(bench.hear(&replay), [], "told once");
}

#[test]
fn a_replayed_message_is_evidence_too() {
    let mut bench = Bench::up();
    bench.send("m1");
    let replay = json!({"type": "user", "isReplay": true, "uuid": uuid("m1"), "message": {"role": "user", "content": "words of m1"}});
    assert!(matches!(fate(&bench.hear(&replay), "m1"), Some(Report::SendDelivered { .. })));
}

#[test]
fn steering_belongs_to_the_run_that_goes_on() {
    let mut bench = Bench::up();
    bench.begin("m1");
    let run = bench.driver.scribe.run().cloned();
    let line = written(&bench.order(&deliver("m2", Some(Mode::Steer)))).pop().unwrap();
    assert_eq!(line["priority"], "next");
    let told = bench.hear(&lifecycle("m2", "started"));
    assert!(matches!(fate(&told, "m2"), Some(Report::SendDelivered { run: of, .. }) if *of == run));
    assert_eq!(reports(&told).len(), 1);
    let line = written(&bench.order(&deliver("m3", None))).pop().unwrap();
    assert_eq!(line["priority"], "later");
}

#[test]
fn a_queued_message_begins_the_next_run() {
    let mut bench = Bench::up();
    bench.begin("m1");
    bench.order(&deliver("m2", Some(Mode::Steer)));
    bench.hear(&result(json!({})));
    let told = bench.hear(&lifecycle("m2", "started"));
    assert!(reports(&told).iter().any(|report| matches!(report, Report::RunStarted { cause: Some(cause), .. } if *cause == "m2".into())));
}

#[test]
fn what_was_queued_when_the_run_was_stopped_did_not_arrive() {
    let mut bench = Bench::up();
    bench.begin("m1");
    bench.order(&deliver("m2", Some(Mode::Steer)));
    let wish = written(&bench.control("r1", Control::Interrupt { run: None })).pop().unwrap();
    assert_eq!(wish["request"], json!({"subtype": "interrupt", "cancel_queued": true}));
    let told = bench.hear(&lifecycle("m2", "cancelled"));
    let Some(Report::SendFailed { failure, .. }) = fate(&told, "m2") else { panic!("{told:?}") };
    assert_eq!(failure.code.as_str(), "send_rejected");
    assert_eq!(bench.hear(&lifecycle("m1", "cancelled")), [], "that one arrived");
}

#[test]
fn a_look_up_asks_the_agents_own_record() {
    let lookup = |text: Option<String>| {
        let mut bench = Bench::up().reborn();
        bench.start();
        let path = format!("{FILE}{}.jsonl", bench.driver.own_id()).into();
        let order = Order::LookUp { id: "m1".into(), attempt: Sequence(7) };
        assert_eq!(bench.order(&order), [Output::Read(std::path::PathBuf::clone(&path))]);
        let told = bench.input(Input::Read { path, text });
        let [Output::LookedUp { found, .. }] = told.as_slice() else { panic!("{told:?}") };
        *found
    };
    let has = json!({"type": "user", "uuid": uuid("m1")}).to_string();
    assert_eq!(lookup(Some(has)), Lookup::Found);
    assert_eq!(lookup(Some(String::new())), Lookup::Absent);
    assert_eq!(lookup(None), Lookup::Absent);
}

#[test]
fn a_long_path_names_its_folder_in_the_agents_own_way_so_that_nothing_is_known() {
    let mut setup = setup(&[]);
    setup.workspace = format!("/{}", "w".repeat(300)).into();
    let mut bench = Bench::new(setup);
    let told = bench.order(&Order::LookUp { id: "m1".into(), attempt: Sequence(7) });
    let [Output::Read(path)] = told.as_slice() else { panic!("{told:?}") };
    let told = bench.input(Input::Read { path: path.clone(), text: None });
    assert!(matches!(told.as_slice(), [Output::LookedUp { found: Lookup::Unknown, .. }]));
}

#[test]
fn a_send_that_was_written_when_the_program_died_is_looked_up() {
    let fate_in = |text: Option<String>| {
        let mut bench = Bench::up();
        bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
        bench.send("m1");
        let told = bench.input(Input::Ended(Ended::Killed(9)));
        let path: std::path::PathBuf = format!("{FILE}c1.jsonl").into();
        assert!(told.contains(&Output::Read(path.clone())), "{told:?}");
        let told = bench.input(Input::Read { path, text });
        fate(&told, "m1").cloned()
    };
    let has = json!({"type": "user", "uuid": uuid("m1")}).to_string();
    assert!(matches!(fate_in(Some(has.clone())), Some(Report::SendDelivered { run: Some(_), .. })));
    let cut = has[..has.len() - 1].to_owned();
    for (text, code) in [(String::new(), "agent_not_open"), (cut, "delivery_unknown")] {
        let Some(Report::SendFailed { failure, .. }) = fate_in(Some(text)) else { panic!() };
        assert_eq!(failure.code.as_str(), code);
    }
}

// spec: native/events.1
#[test]
fn the_run_of_a_send_that_was_written_when_the_program_died_was_stopped_by_nobody() {
    let mut bench = Bench::up();
    bench.hear(&json!({"type": "system", "subtype": "init", "session_id": "c1"}));
    bench.send("m1");
    bench.input(Input::Ended(Ended::Killed(9)));
    let text = Some(json!({"type": "user", "uuid": uuid("m1")}).to_string());
    let told = bench.input(Input::Read { path: format!("{FILE}c1.jsonl").into(), text });
    let ended = reports(&told).into_iter().find_map(|report| match report {
        Report::RunEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    let why = "Claude Code stopped before it answered".to_owned();
    assert_eq!(ended, Some(Outcome::Cut(Cut { why, lasted_ms: None })));
}

#[test]
fn pictures_are_handed_over_and_other_files_are_named() {
    let mut bench = Bench::up();
    let Order::Deliver { send, attempt, .. } = deliver("m1", None) else { panic!() };
    let image = crate::Image { media_type: "image/png".into(), base64: "AAAA".into() };
    let picture =
        crate::File { name: "p".into(), path: "/p".into(), size_bytes: 3, image: Some(image) };
    let other = crate::File { name: "t".into(), path: "/t".into(), size_bytes: 3, image: None };
    let order = Order::Deliver { send, attempt, files: vec![picture, other] };
    let line = written(&bench.order(&order)).pop().unwrap();
    let content = &line["message"]["content"];
    assert!(content[0]["text"].as_str().unwrap().contains("/t"), "{content}");
    assert_eq!(content[1]["source"]["data"], "AAAA");
}
