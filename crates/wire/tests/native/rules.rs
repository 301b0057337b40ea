//! Rules that take more than a few frames to show.

use domain::passing::{Delta, Passing, Voice};
use domain::{Content, Sequence};
use serde_json::{Value, json};
use wire::native::{Cache, Denied, Output, Purpose};

use crate::native::relay::Relay;
use crate::native::script::{covers, said};

fn hello(features: &[&str]) -> String {
    json!({"type": "connection_hello", "protocol_version": 1, "peer_role": "browser",
        "client_name": "t", "features": features})
    .to_string()
}

pub(crate) fn greeted(features: &[&str]) -> Relay {
    let mut relay = Relay::new();
    relay.session_up("sess_1", "demo");
    relay.text("a", &hello(features));
    heard(&mut relay, "a");
    relay
}

pub(crate) fn heard(relay: &mut Relay, name: &str) -> Vec<Value> {
    std::mem::take(&mut relay.clients.get_mut(name).unwrap().heard)
}

// spec: native/history_delta.4, native/history_snapshot.2
#[test]
fn a_long_history_comes_in_pages_of_five_hundred() {
    for (features, has_more) in [(&["paging"][..], true), (&[][..], false)] {
        let mut relay = greeted(features);
        for n in 0..1_200 {
            relay.report("sess_1", said(&format!("x{n}")));
        }
        heard(&mut relay, "a");
        let ask = |after: Option<u64>| {
            json!({"type": "history_request", "protocol_version": 1, "session_id": "sess_1",
                "request_id": "h", "after_sequence": after})
            .to_string()
        };
        relay.text("a", &ask(Some(0)));
        let pages = heard(&mut relay, "a");
        let counts: Vec<_> = pages.iter().map(|p| p["events"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [500, 500, 201]);
        let places = pages.iter().map(|p| (&p["from_sequence"], &p["last_sequence"]));
        let places: Vec<_> =
            places.map(|(a, b)| (a.as_u64().unwrap(), b.as_u64().unwrap())).collect();
        assert_eq!(places, [(0, 500), (500, 1_000), (1_000, 1_201)]);
        assert!(pages.iter().all(|page| page["request_id"] == "h"));
        let more: Vec<_> = pages.iter().map(|page| page.get("has_more").cloned()).collect();
        let told = [Some(json!(true)), Some(json!(true)), Some(json!(false))];
        assert_eq!(more, if has_more { told.to_vec() } else { vec![None; 3] });

        relay.text("a", &ask(None));
        let pages = heard(&mut relay, "a");
        let kinds: Vec<_> = pages.iter().map(|page| page["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["history_snapshot", "history_delta", "history_delta"]);
        assert_eq!(pages[0]["last_sequence"], 500);
        assert_eq!(pages[0]["messages"].as_array().unwrap().len(), 499);
        assert_eq!(pages[2]["last_sequence"], 1_201);
    }
}

/// Long messages make short pages, for whoever takes frames of a few megabytes only.
#[test]
fn a_heavy_history_comes_in_frames_of_about_a_megabyte() {
    let mut relay = greeted(&["paging"]);
    for n in 0..40 {
        let mut report = said(&format!("x{n}"));
        if let domain::session::Report::Message { message, .. } = &mut report {
            message.parts = Content::Open(vec![domain::content::Part::Text("y".repeat(100_000))]);
        }
        relay.report("sess_1", report);
    }
    heard(&mut relay, "a");
    for (after, first) in [(Some(1), "history_delta"), (None, "history_snapshot")] {
        let ask = json!({"type": "history_request", "protocol_version": 1, "session_id": "sess_1",
            "after_sequence": after});
        relay.text("a", &ask.to_string());
        let pages = heard(&mut relay, "a");
        assert_eq!(pages[0]["type"], first);
        assert_eq!(pages.len(), 4);
        assert!(pages.iter().all(|page| page.to_string().len() < 1_300_000));
        for pair in pages.windows(2) {
            assert_eq!(pair[0]["last_sequence"], pair[1]["from_sequence"]);
            assert_eq!(pair[0]["has_more"], true);
        }
        assert_eq!(pages[3]["last_sequence"], 41);
        assert_eq!(pages[3]["has_more"], false);
        let told: usize = pages
            .iter()
            .map(|p| p["events"].as_array().or(p["messages"].as_array()).unwrap().len())
            .sum();
        assert_eq!(told, 40);
    }
}

// spec: native/limits.2
#[test]
fn content_at_the_limit_is_taken_and_over_it_is_not() {
    let mut relay = greeted(&[]);
    for (bytes, told) in [(1_000, "message_accepted"), (1_001, "message_failed")] {
        let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
            "client_message_id": format!("m{bytes}"), "content": "x".repeat(bytes),
            "created_at": "2026-03-19T10:16:30.000Z"});
        relay.text("a", &send.to_string());
        assert_eq!(heard(&mut relay, "a")[0]["type"], told);
    }
    relay.text(
        "a",
        &json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
        "client_message_id": "big", "content": "é".repeat(501),
        "created_at": "2026-03-19T10:16:30.000Z"})
        .to_string(),
    );
    let failed = &heard(&mut relay, "a")[0];
    assert!(covers(&json!({"error": {"code": "message_too_large"}, "event_id": null}), failed));
}

// spec: native/limits.8
#[test]
fn a_send_names_as_many_files_as_the_bound_says_and_no_more() {
    use wire::native::client_connection::ATTACHMENTS_MAX;
    let send = |count: usize| {
        let file = |n: usize| json!({"attachment_id": format!("att_{n}"), "name": "a.png"});
        let files: Vec<_> = (0..count).map(file).collect();
        json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
            "client_message_id": "m", "attachments": files,
            "created_at": "2026-03-19T10:16:30.000Z"})
    };
    let mut relay = greeted(&[]);
    let now = relay.now;
    let client = relay.clients.get_mut("a").unwrap();
    let mut outputs = |count: usize| {
        let text = send(count).to_string();
        client.machine.on_text(&text, &mut client.gauge, now)
    };
    assert!(matches!(outputs(ATTACHMENTS_MAX)[..], [Output::Session { .. }]));
    let refused = outputs(ATTACHMENTS_MAX + 1);
    let [Output::Send(frame)] = refused.as_slice() else { panic!("{refused:?}") };
    let frame: Value = serde_json::from_slice(frame).unwrap();
    assert!(covers(&json!({"type": "connection_error", "code": "invalid_message"}), &frame));
    assert!(frame["message"].as_str().unwrap().contains("64 attachments"), "{frame}");
}

// spec: native/attachments.2
#[test]
fn an_unknown_attachment_is_told_to_the_sender_alone() {
    let mut relay = greeted(&[]);
    let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
        "client_message_id": "m", "attachments": [{"attachment_id": "att_1", "name": "a.png"}],
        "created_at": "2026-03-19T10:16:30.000Z"});
    let now = relay.now;
    let client = relay.clients.get_mut("a").unwrap();
    let mut outputs = client.machine.on_text(&send.to_string(), &mut client.gauge, now);
    let Some(Output::Session { asked, .. }) = outputs.pop() else { panic!("{outputs:?}") };
    let denied = Denied::Code("attachment_unknown".into(), "no such upload".to_owned());
    let outputs = client.machine.on_denied(asked, denied, now);
    relay.carry_out("a", outputs);
    let expected = json!({"type": "message_failed", "event_id": null, "sequence": null,
        "client_message_id": "m", "error": {"code": "attachment_unknown"}});
    assert!(covers(&expected, &heard(&mut relay, "a")[0]));
}

/// A failed commit may have happened after all: it must not be told as a failed send.
#[test]
fn a_send_that_could_not_be_recorded_is_an_error_that_names_it() {
    let mut relay = greeted(&[]);
    let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
        "client_message_id": "m", "content": "x", "created_at": "2026-03-19T10:16:30.000Z"});
    let now = relay.now;
    let client = relay.clients.get_mut("a").unwrap();
    let mut outputs = client.machine.on_text(&send.to_string(), &mut client.gauge, now);
    let Some(Output::Session { asked, .. }) = outputs.pop() else { panic!("{outputs:?}") };
    let outputs = client.machine.on_denied(asked, Denied::Failed("disk full".to_owned()), now);
    relay.carry_out("a", outputs);
    let expected =
        json!({"type": "connection_error", "code": "internal", "client_message_id": "m"});
    assert!(covers(&expected, &heard(&mut relay, "a")[0]));
}

/// Told before the events that this client is about to read, the state would make it skip them.
#[test]
fn a_repeated_send_to_a_session_that_came_up_unheard_overtakes_none_of_its_events() {
    let mut relay = greeted(&[]);
    let mut without_a = Relay::new();
    without_a.session_up("sess_2", "demo");
    let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_2",
        "client_message_id": "m", "content": "x", "created_at": "2026-03-19T10:16:30.000Z"});
    without_a.text(
        "b",
        &json!({"type": "connection_hello", "protocol_version": 1,
        "peer_role": "browser", "client_name": "b"})
        .to_string(),
    );
    without_a.text("b", &send.to_string());
    relay.take_over_unheard(without_a);
    relay.text("a", &send.to_string());
    assert_eq!(heard(&mut relay, "a"), [] as [Value; 0]);
    relay.lag("a");
    let told = heard(&mut relay, "a");
    let sequences: Vec<_> = told.iter().map(|frame| frame["sequence"].as_u64()).collect();
    assert_eq!(sequences, [Some(1), Some(2)], "{told:?}");
    relay.text("a", &send.to_string());
    assert_eq!(heard(&mut relay, "a")[0]["type"], "message_accepted", "it has heard all of it");
}

/// Told before it, the state would be one of a history that is about to be replaced.
#[test]
fn a_repeated_send_is_told_after_the_history_that_begins_anew() {
    let mut relay = greeted(&[]);
    let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
        "client_message_id": "m", "content": "x", "created_at": "2026-03-19T10:16:30.000Z"});
    relay.text("a", &send.to_string());
    relay.report("sess_1", said("x"));
    heard(&mut relay, "a");
    let head = relay.ledger("sess_1").last().unwrap().sequence.0;
    relay.forget_before("sess_1", head);
    relay.open("a");
    relay.slow_reads = true;
    let mut hello: Value = serde_json::from_str(&hello(&[])).unwrap();
    hello["resume"] = json!({"sessions": [{"session_id": "sess_1", "last_sequence": 1}]});
    relay.text("a", &hello.to_string());
    while heard(&mut relay, "a").iter().all(|frame| frame["type"] != "connection_error") {
        relay.read_one();
    }
    relay.text("a", &send.to_string());
    assert_eq!(heard(&mut relay, "a"), [] as [Value; 0]);
    relay.read_now();
    let told = heard(&mut relay, "a");
    let kinds: Vec<_> = told.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["history_snapshot", "message_accepted"]);
}

fn delta(offset: u64, words: &str) -> Delta {
    let words = Content::Open(words.to_owned());
    Delta { message: "d1".into(), part: 0, voice: Voice::Text, offset, words }
}

fn pass_by(relay: &mut Relay, after: u64, offset: u64, words: &str) -> usize {
    let passing = Passing { after: Sequence(after), delta: delta(offset, words) };
    let machine = &mut relay.clients.get_mut("a").unwrap().machine;
    let outputs = machine.on_passing(&"sess_1".into(), &passing, &Cache::default());
    let count = outputs.len();
    relay.carry_out("a", outputs);
    count
}

// spec: native/extensions.3, native/extensions.4
#[test]
fn words_in_the_making_never_overtake_what_they_follow() {
    let mut relay = greeted(&["deltas"]);
    assert_eq!(pass_by(&mut relay, 1, 0, "hel"), 1);
    let expected = json!({"type": "message_delta", "protocol_version": 1, "session_id": "sess_1",
        "message_id": "d1", "part": 0, "kind": "text", "offset": 0, "content": "hel",
        "after_sequence": 1, "event_id": null, "sequence": null});
    assert!(covers(&expected, &heard(&mut relay, "a")[0]));
    assert_eq!(pass_by(&mut relay, 2, 3, "lo"), 0, "event 2 was not told yet");
    relay.slow_reads = true;
    relay.text("a", r#"{"type":"history_request","protocol_version":1,"session_id":"sess_1"}"#);
    assert_eq!(pass_by(&mut relay, 1, 3, "lo"), 0, "the ledger is being read");
}

// spec: native/extensions.5
#[test]
fn who_missed_words_in_the_making_gets_them_from_the_start() {
    let mut relay = greeted(&["deltas"]);
    relay.slow_reads = true;
    relay.text("a", r#"{"type":"history_request","protocol_version":1,"session_id":"sess_1","after_sequence":1}"#);
    assert_eq!(pass_by(&mut relay, 1, 0, "hel"), 0);
    relay.read_now();
    heard(&mut relay, "a");
    let machine = &mut relay.clients.get_mut("a").unwrap().machine;
    let (session, drafts) = ("sess_1".into(), vec![delta(0, "hello")]);
    let stale = machine.on_drafts(&session, Sequence(0), drafts.clone());
    assert!(matches!(stale.as_slice(), [Output::Read(_)]), "as of another event: read, then asked");
    relay.carry_out("a", stale);
    let machine = &mut relay.clients.get_mut("a").unwrap().machine;
    assert!(machine.on_drafts(&session, Sequence(2), drafts.clone()).is_empty(), "not told yet");
    let outputs = machine.on_drafts(&session, Sequence(1), drafts);
    relay.carry_out("a", outputs);
    assert_eq!(heard(&mut relay, "a")[0]["content"], "hello");
    relay.report("sess_1", said("x1"));
    let next = relay.ledger("sess_1")[1].clone();
    let again =
        relay.clients.get_mut("a").unwrap().machine.on_event(&session, &next, &Cache::default());
    assert!(again.is_empty(), "it was told, and the drafts were asked for once: {again:?}");
}

// spec: native/extensions.2, native/extensions.6
#[test]
fn passing_events_go_to_those_who_want_them() {
    let mut relay = greeted(&[]);
    assert_eq!(pass_by(&mut relay, 1, 0, "hel"), 0, "a plain peer");
    let mut relay = greeted(&["deltas", "watch"]);
    assert_eq!(pass_by(&mut relay, 1, 0, "hel"), 1);
    relay.text("a", r#"{"type":"watch","protocol_version":1,"sessions":["other"]}"#);
    assert_eq!(pass_by(&mut relay, 1, 3, "lo"), 0);
    relay.text("a", r#"{"type":"watch","protocol_version":1,"sessions":["sess_1"]}"#);
    assert_eq!(pass_by(&mut relay, 1, 3, "lo"), 1);
}

#[test]
fn a_page_that_nobody_waits_for_is_ignored() {
    let mut relay = greeted(&[]);
    let job = wire::native::ReadJob {
        session: "sess_1".into(),
        after: Sequence(0),
        upto: None,
        limit: 1,
        purpose: Purpose::CatchUp,
        ticket: 999,
    };
    let page = wire::native::PageOf {
        events: relay.ledger("sess_1").to_vec(),
        head: Sequence(1),
        first_kept: Sequence(1),
        has_more: false,
    };
    let now = relay.now;
    let outputs = relay.clients.get_mut("a").unwrap().machine.on_page(job, page, now);
    assert!(outputs.is_empty(), "{outputs:?}");
}

/// The welcome is gathered while the world goes on: what passes meanwhile is read afterwards, and
/// what the client says meanwhile is done afterwards.
#[test]
fn what_happens_between_hello_and_ack_is_neither_lost_nor_early() {
    use domain::session::{Change, Command, Policy, ReplayCursor, Session};
    use wire::native::{ClientConnection, Limits, Listing, Welcome};

    let mut relay = Relay::new();
    relay.session_up("sess_1", "demo");
    relay.report("sess_1", said("x1"));
    let ledger = relay.ledger("sess_1").to_vec();
    let principal = domain::Principal {
        credential: "a".into(),
        role: domain::Role::Operator,
        client: None,
        name: "a".to_owned(),
    };
    let now = relay.now;
    let mut machine = ClientConnection::new("c".into(), Some(principal), Limits::default(), now);
    let mut gauge = crate::native::relay::Gauge::default();
    assert!(matches!(machine.on_text(&hello(&[]), &mut gauge, now).as_slice(), [Output::Join]));
    let early =
        r#"{"type":"agent_interrupt","protocol_version":1,"request_id":"i","session_id":"sess_1"}"#;
    assert!(machine.on_text(early, &mut gauge, now).is_empty());
    let cache = Cache::default();
    assert!(machine.on_event(&"sess_1".into(), &ledger[1], &cache).is_empty());
    let mut session = Session::default();
    session.apply(&ledger[0]);
    let _ = session.perform(
        &Command::Relay(Change::Tick),
        &mut ReplayCursor::default(),
        Policy::default(),
        now,
    );
    let card = std::sync::Arc::new(session.card());
    let listing = Listing { id: "sess_1".into(), head: Sequence(1), card };
    let outputs = machine.on_welcome(&Welcome { sessions: vec![listing], launches: vec![] }, now);
    let [Output::Send(_), Output::Send(_), Output::Read(job), Output::Session { .. }] =
        outputs.as_slice()
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((job.after, &job.purpose), (Sequence(1), &Purpose::CatchUp));
}

// spec: native/agent_config.3, native/agent_config.5
#[test]
fn a_configuration_passes_on_what_was_read_in_any_words() {
    let mut relay = greeted(&[]);
    let read = json!({"model_id": "unknown", "permission_mode": "yolo", "file_access_scope": "unknown",
        "capabilities": {"interrupt": true}});
    let shape: wire::native::shapes::AgentConfig = serde_json::from_value(read.clone()).unwrap();
    let config = shape.into_model(relay.now);
    relay.report("sess_1", domain::session::Report::Config(config));
    let told = &heard(&mut relay, "a")[0];
    assert!(covers(&read, told), "{told}");
    assert!(covers(&json!({"available_models": null}), told));
    assert!(
        serde_json::from_value::<wire::native::shapes::AgentConfig>(json!({})).is_err(),
        "model_id is required"
    );
}

// spec: native/permission_prompt.3, native/permission_prompt.5
#[test]
fn a_prompt_needs_a_text_and_a_choice_and_a_default_among_its_choices() {
    let whole = json!({"prompt_id": "p", "prompt_text": "?", "default_choice": "yes",
        "choices": [{"choice_id": "yes", "label": "Yes", "is_default": true}]});
    let accepted = |value: Value| {
        let prompt = serde_json::from_value::<wire::native::shapes::Prompt>(value).ok();
        prompt.is_some_and(|prompt| prompt.into_model(domain::Timestamp(0)).is_ok())
    };
    assert!(accepted(whole.clone()));
    for (field, value) in [
        ("prompt_id", Value::Null),
        ("prompt_text", Value::Null),
        ("choices", json!([])),
        ("choices", json!([{"label": "Yes", "is_default": true}])),
        ("choices", json!([{"choice_id": "yes", "is_default": true}])),
        ("choices", json!([{"choice_id": "yes", "label": "Yes"}])),
        ("default_choice", json!("never")),
    ] {
        let mut broken = whole.clone();
        broken[field] = value;
        assert!(!accepted(broken), "{field}");
    }
}

// spec: native/session_metadata.3
#[test]
fn every_activity_of_the_document_passes_through() {
    let kinds = [
        "thinking",
        "generating",
        "reading_files",
        "running_command",
        "applying_patch",
        "waiting_for_user",
        "idle",
    ];
    let mut relay = greeted(&[]);
    for kind in kinds {
        let activity =
            json!({"kind": kind, "label": "…", "updated_at": "2026-03-19T10:16:00.000Z"});
        let shape: wire::native::shapes::Activity =
            serde_json::from_value(activity.clone()).unwrap();
        relay.report(
            "sess_1",
            domain::session::Report::Status {
                health: domain::session::status::Health::Healthy,
                activity: Some(shape.into_model(domain::Timestamp(0))),
                reason: None,
            },
        );
        assert!(covers(
            &json!({"type": "session_status", "activity": activity}),
            &heard(&mut relay, "a")[0]
        ));
    }
}

// spec: native/session_launch_ack.1, native/session_launch_ack.3
#[test]
fn a_launched_session_comes_up_for_all_and_is_no_longer_pending() {
    let mut relay = greeted(&[]);
    relay.machine_up();
    relay.text("b", &hello(&[]));
    heard(&mut relay, "b");
    relay.text(
        "a",
        r#"{"type":"launch_session","protocol_version":1,"request_id":"l","agent_type":"demo"}"#,
    );
    relay.launched("l", "sess_new");
    relay.session_up("sess_new", "demo");
    let told: Vec<_> = heard(&mut relay, "b").iter().map(|f| f["type"].to_string()).collect();
    assert_eq!(told, ["\"session_up\""]);
    relay.text("a2", &hello(&[]));
    assert_eq!(heard(&mut relay, "a2")[0]["pending_launches"], json!([]));
}

// spec: native/extensions.9
/// A blind relay passes on what it cannot read, and gives plain peers an empty text.
#[test]
fn sealed_content_crosses_unread() {
    let mut relay = greeted(&["queue"]);
    relay.text("b", &hello(&[]));
    heard(&mut relay, "b");
    let sealed = json!({"key": "k1", "nonce": "bm9uY2U=", "body": "Ym9keQ=="});
    let send = json!({"type": "send_message", "protocol_version": 1, "session_id": "sess_1",
        "client_message_id": "m", "sealed": sealed, "created_at": "2026-03-19T10:16:30.000Z"});
    relay.text("a", &send.to_string());
    let id = "m".into();
    relay.report("sess_1", domain::session::Report::SendDelivered { id, attempt: None, run: None });
    let full: Vec<_> = heard(&mut relay, "a");
    let told = full.iter().find(|frame| frame["type"] == "message_event").unwrap();
    assert!(covers(&json!({"message": {"sealed": sealed, "content": ""}}), told), "{told}");
    let plain = heard(&mut relay, "b");
    let told = plain.iter().find(|frame| frame["type"] == "message_event").unwrap();
    assert!(covers(&json!({"message": {"sealed": null, "content": ""}}), told), "{told}");
}

// spec: native/http.1
#[test]
fn a_listed_session_has_a_title_also_when_nobody_gave_it_one() {
    use wire::native::Listing;
    let session = domain::session::Session::default();
    let mut card = session.card();
    let listed = |card: &domain::session::Card| {
        let (id, card) = ("sess_1".into(), std::sync::Arc::new(card.clone()));
        let listing = Listing { id, head: Sequence(0), card };
        serde_json::to_value(wire::native::session_json(&listing)).unwrap()
    };
    assert_eq!(listed(&card).get("title"), Some(&Value::Null));
    card.status.title = Some("Kite".to_owned());
    assert_eq!(listed(&card)["title"], "Kite");
}

/// The stand-in for the relay checks it of every frame, in every test; this one has all the ways
/// in which a client is shown events.
// spec: native/extensions.8, native/message_identifiers.4
#[test]
fn no_client_is_ever_shown_two_events_with_one_sequence() {
    let mut relay = greeted(&["queue", "runs", "tools", "paging", "prompt_resolved"]);
    relay.report("sess_1", domain::session::Report::RunStarted { run: "r1".into(), cause: None });
    let say = |relay: &mut Relay, kind: &str, more: Value| {
        let mut frame = json!({"type": kind, "protocol_version": 1, "session_id": "sess_1"});
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        relay.text("a", &frame.to_string());
    };
    for n in 0..400 {
        let id = format!("m{n}");
        say(
            &mut relay,
            "send_message",
            json!({"client_message_id": id, "content": "next",
            "created_at": "2026-03-19T10:16:30.000Z"}),
        );
        if n % 2 == 0 {
            say(&mut relay, "queue_discard", json!({"client_message_id": id}));
        }
    }
    say(&mut relay, "queue_edit", json!({"client_message_id": "m1", "content": "other"}));
    let live = heard(&mut relay, "a");
    say(&mut relay, "history_request", json!({"request_id": "h", "after_sequence": 0}));
    let pages = heard(&mut relay, "a");
    let read: Vec<_> = pages.iter().flat_map(|page| page["events"].as_array().unwrap()).collect();
    let told = |kind: &str| read.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((told("message_accepted"), told("message_failed")), (400, 200));
    assert_eq!(told("queue_update"), 1);
    let mut recorded = live.iter().filter(|frame| frame.get("sequence").is_some());
    assert!(recorded.all(|event| read.contains(&event)), "live and read say the same");
}
