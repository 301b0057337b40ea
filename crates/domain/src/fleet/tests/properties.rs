//! Properties of the fleet that hold for any commands in any order.

use proptest::prelude::*;

use super::*;
use crate::Sequence;

#[derive(Debug, Clone)]
enum Step {
    Say(Command),
    Name { socket: String, named: Vec<Named> },
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_history_of_the_fleet_keeps_its_promises(
        steps in prop::collection::vec((step(), 0..60_000_u64), 1..60),
    ) {
        let mut story = Story::new();
        for (step, after_ms) in steps {
            story.now = story.now.plus_ms(after_ms);
            let before = stored(&story.fleet);
            let told = match step {
                Step::Say(command) => story.perform(&command),
                Step::Name { socket, named } => {
                    let connection = socket.as_str().into();
                    story.fleet.claim(&connection, named).and_then(|claim| {
                        story.perform(&Command::Named { connection, claim })
                    })
                }
            };
            if told.is_err() {
                prop_assert_eq!(stored(&story.fleet), before, "a refusal changed something");
            }
            check_deadline(&story);
            check_sockets(&story);
        }
        check_replay(&story);
        check_launches(&story);
    }
}

fn check_deadline(story: &Story) {
    let Some(deadline) = story.fleet.deadline(Policy::default()) else { return };
    let (mut later, then) = (story.fleet.clone(), deadline.max(story.now));
    later.perform(&Command::Tick, Policy::default(), then).unwrap();
    let next = later.deadline(Policy::default());
    assert!(next.is_none_or(|next| next > then), "{next:?} is in the past of {then:?}");
}

/// A socket belongs to one machine at most.
fn check_sockets(story: &Story) {
    let mut sockets: Vec<_> =
        story.fleet.machines().all().filter_map(|(_, machine)| machine.via.clone()).collect();
    let all = sockets.len();
    sockets.sort_by(|a, b| a.connection.cmp(&b.connection));
    sockets.dedup_by(|a, b| a.connection == b.connection);
    assert_eq!(sockets.len(), all);
}

fn check_replay(story: &Story) {
    let mut replayed = Fleet::default();
    for (n, recorded) in (1..).zip(&story.history) {
        assert_eq!(recorded.sequence, Sequence(n), "sequences are dense");
        let line = serde_json::to_string(recorded).unwrap();
        let read: Recorded = serde_json::from_str(&line).unwrap();
        assert_eq!(&read, recorded);
        replayed.apply(&read);
    }
    assert_eq!(stored(&replayed), stored(&story.fleet));
    let restored: Fleet = serde_json::from_value(stored(&story.fleet)).unwrap();
    assert_eq!(stored(&restored), stored(&story.fleet));
}

/// A launch settles once; only a late ack may correct a failure.
fn check_launches(story: &Story) {
    let mut outcomes = std::collections::BTreeMap::new();
    for recorded in &story.history {
        let Event::Launch(event) = &recorded.event else { continue };
        match event {
            facts::Event::Requested(launch) => {
                let earlier = outcomes.insert(launch.request.clone(), None);
                assert_ne!(earlier, Some(None), "{} was in flight", launch.request);
            }
            facts::Event::Settled { request, outcome, .. } => {
                let earlier = outcomes.insert(request.clone(), Some(outcome.clone())).unwrap();
                let corrects = matches!(outcome, facts::Outcome::Launched(_))
                    && matches!(earlier, Some(facts::Outcome::Failed(_)));
                assert!(earlier.is_none() || corrects, "{request} was settled twice");
            }
            facts::Event::Forgotten { .. } => {}
        }
    }
}

fn stored(fleet: &Fleet) -> serde_json::Value {
    serde_json::to_value(fleet).unwrap()
}

fn step() -> impl Strategy<Value = Step> {
    let named = (prop::option::of(session()), prop::option::of("sig-[ab]"))
        .prop_map(|(session, signature)| named(session.as_deref(), signature.as_deref()));
    prop_oneof![
        6 => command().prop_map(Step::Say),
        2 => (socket(), prop::collection::vec(named, 0..4))
            .prop_map(|(socket, named)| Step::Name { socket, named }),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        3 => (0..4_usize).prop_map(|n| Command::Connected {
            // Each socket is one machine's; two machines have two sockets each.
            via: via(&format!("socket-{n}"), (n % 2 == 0).then_some("j")),
            machine: ["attic", "cellar"][n / 2].into(),
            offer: Offer::default(),
        }),
        2 => socket().prop_map(|socket| Command::Disconnected(socket.into())),
        1 => Just(Command::Restarted),
        4 => (any::<bool>(), request()).prop_map(|(first, request)| {
            Command::Launch(if first { ada() } else { bob() }, Box::new(wish(&request)))
        }),
        4 => (socket(), request(), session()).prop_map(|(socket, request, session)| {
            let (connection, request, session) = (socket.into(), request.into(), session.into());
            Command::Launched { connection, request, session }
        }),
        2 => (socket(), request()).prop_map(|(socket, request)| Command::LaunchFailed {
            connection: socket.into(),
            request: request.into(),
            failure: Failure::new("agent_not_open", "words"),
        }),
        1 => session().prop_map(|session| Command::Gone(session.into())),
        1 => session().prop_map(|session| Command::Erased(session.into())),
        2 => Just(Command::Tick),
    ]
}

fn socket() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| format!("socket-{n}"))
}

fn session() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| format!("s-{n}"))
}

fn request() -> impl Strategy<Value = String> {
    (0..3_u8).prop_map(|n| format!("l{n}"))
}
