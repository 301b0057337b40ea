//! Sends that wait for their files.

use super::*;

#[test]
fn a_send_waits_for_its_attachments_and_those_behind_it_wait_with_it() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    let turn = world.offered(&with_file(&demo, "m1", "see", 5));
    let [Fetch { attempt, files }] = &turn.fetches[..] else { panic!("{turn:?}") };
    assert_eq!(files[0].name, "cat.png");
    world.offer(&deliver(&demo, "m2", "say: later", 6)).unwrap();
    assert_eq!((world.received("m1"), world.received("m2")), (0, 0));

    let fetched = Input::Fetched(attempt.clone(), Ok(vec![file()]));
    world.handle([fetched.clone()]).unwrap();
    assert_eq!(
        (world.results("m1"), world.results("m2")),
        (vec!["delivered".to_owned()], vec!["delivered".to_owned()])
    );
    assert_eq!(world.of("proxy_message")[0]["message"]["content"], "echo: see [cat.png, 3 bytes]");
    // Told twice, given once.
    world.handle([fetched]).unwrap();
    assert_eq!(world.received("m1"), 1);
}

#[test]
fn attachments_that_cannot_be_had_now_are_asked_for_again_and_again() {
    let mut world = World::new();
    world.connect();
    let turn = world.offered(&with_file(&world.demo(), "m1", "see", 5));
    let attempt = turn.fetches[0].attempt.clone();
    let mut waits_ms = vec![];
    for _ in 0..9 {
        world.handle([Input::Fetched(attempt.clone(), Err(FetchFault::Away))]).unwrap();
        let begun_ms = world.now;
        while world.pass(100).fetches.is_empty() {
            assert!(world.now - begun_ms < 60_000, "never asked again");
            world.say(r#"{"type":"heartbeat_ack","protocol_version":1}"#).unwrap();
        }
        waits_ms.push(world.now - begun_ms);
    }
    assert_eq!(waits_ms, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    assert_eq!(world.received("m1"), 0);
    world.handle([Input::Fetched(attempt, Ok(vec![file()]))]).unwrap();
    assert_eq!(world.results("m1"), ["delivered"]);
}

#[test]
fn a_send_whose_attachment_is_unknown_fails_and_lets_the_next_one_by() {
    let mut world = World::new();
    world.connect();
    let demo = world.demo();
    let turn = world.offered(&with_file(&demo, "m1", "see", 5));
    world.offer(&deliver(&demo, "m2", "say: later", 6)).unwrap();
    let failure = Failure::new("attachment_unknown", "gone");
    let attempt = turn.fetches[0].attempt.clone();
    world.handle([Input::Fetched(attempt, Err(FetchFault::Failed(failure)))]).unwrap();
    assert_eq!(world.results("m1"), ["failed"]);
    assert_eq!(world.of("proxy_send_result")[0]["error"]["code"], "attachment_unknown");
    assert_eq!((world.received("m1"), world.received("m2")), (0, 1));
}

#[test]
fn wherever_it_crashes_a_send_with_attachments_reaches_the_agent_once() {
    for crash in CRASHES {
        for step in 0..20 {
            let mut world = World::new();
            world.connect();
            let order = with_file(&world.demo(), "m1", "see", 5);
            world.disk.fail_at(step);
            let crashed = world.deliver_with_files(&order).is_err();
            if crashed {
                world.crash(crash);
                world.connect();
                world.deliver_with_files(&order).unwrap();
            }
            assert_eq!(world.received("m1"), 1, "{crash:?} at {step}");
            assert!(world.results("m1").iter().all(|r| r == "delivered"), "{crash:?} at {step}");
            if !crashed {
                assert!(step >= 3, "only {step} steps could crash");
                break;
            }
        }
    }
}

fn with_file(session: &SessionId, id: &str, text: &str, attempt: u64) -> Addressed {
    let (session, order) = deliver(session, id, text, attempt);
    let Order::Deliver { mut send, attempt } = order else { panic!("a delivery") };
    send.attachments.push(Attachment {
        id: "upl_1".into(),
        name: "cat.png".to_owned(),
        kind: "uploaded_file".to_owned(),
        media_type: None,
    });
    (session, Order::Deliver { send, attempt })
}
