//! Properties of every history that hold for any commands in any order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::delivery::{self, DELIVERY_UNKNOWN};
use super::super::status::CloseReason;
use super::super::{Line, OrderKey, controls, prompts};
use super::*;
use crate::ConnectionId;

/// Commands of one history.
const STEPS_MAX: usize = 80;

#[derive(Debug, Clone)]
struct Step {
    command: Command,
    after_ms: u64,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, ..ProptestConfig::default() })]

    // spec: native/message_identifiers.5, native/delivery_state.2, native/delivery_state.4
    // spec: native/delivery_state.8, native/permission_response.3, native/agent_interrupt.4
    #[test]
    fn every_history_keeps_its_promises(steps in steps()) {
        let (mut story, mut books) = (Story::unseen(), Books::default());
        for step in steps {
            story.now = story.now.plus_ms(step.after_ms);
            books.check_step(&mut story, &step.command);
        }
        check_replay(&story);
    }

    #[test]
    fn a_line_says_of_the_queue_what_the_session_says_whenever_its_watcher_joined(
        steps in steps(),
    ) {
        let mut story = Story::unseen();
        let mut lines = vec![Line::of(&story.session.glance())];
        for (number, step) in steps.into_iter().enumerate() {
            story.now = story.now.plus_ms(step.after_ms);
            let seen = story.history.len();
            let _ = story.perform(&step.command);
            let recorded: Vec<_> = story.history[seen..].iter().map(|it| &it.event).collect();
            for line in &mut lines {
                check_line(line, &recorded, &story.session, story.now);
            }
            if number % 8 == 0 {
                lines.push(Line::of(&story.session.glance()));
            }
        }
    }

    #[test]
    fn a_state_that_was_stored_and_read_goes_on_as_if_nothing_had_been(
        before in steps(),
        after in steps(),
    ) {
        let mut story = Story::unseen();
        for step in before {
            story.now = story.now.plus_ms(step.after_ms);
            let _ = story.perform(&step.command);
        }
        let mut restarted = Story::unseen();
        restarted.now = story.now;
        // The proxy stays connected: where it is in its own history is not the session's to store.
        restarted.cursor = story.cursor.clone();
        restarted.session = serde_json::from_value(stored(&story.session)).unwrap();
        for step in after {
            for story in [&mut story, &mut restarted] {
                story.now = story.now.plus_ms(step.after_ms);
            }
            prop_assert_eq!(story.perform(&step.command), restarted.perform(&step.command));
        }
        prop_assert_eq!(story.session, restarted.session);
    }
}

/// Shows a line what was recorded together, and compares what it says with the session.
fn check_line(line: &mut Line, recorded: &[&Event], session: &Session, now: Timestamp) {
    for event in recorded {
        if let Event::Delivery(delivery::Event::Accepted(send)) = event {
            let leaves = recorded.iter().any(|it| {
                matches!(it, Event::Delivery(delivery::Event::HandedOver { id, .. }) if *id == send.id)
            });
            assert_eq!(line.waits(send), !leaves, "{send:?}");
        }
        line.apply(event);
    }
    let glance = session.glance();
    let waiting: Vec<_> = glance.waiting.iter().map(|send| &send.id).collect();
    assert_eq!(line.waiting().collect::<Vec<_>>(), waiting);
    assert_eq!((line.len(), line.is_empty()), (waiting.len(), waiting.is_empty()));
    let handed: Vec<_> = glance.handed.iter().map(|send| &send.id).collect();
    assert_eq!(line.handed().collect::<Vec<_>>(), handed);
    assert_eq!(line.is_held(), glance.is_held);
    let joined = Line::of(&glance);
    assert_eq!(line.steering().collect::<Vec<_>>(), joined.steering().collect::<Vec<_>>());
    let prompt = Command::Person(ada(), Wish::SendAtRest(send("at-rest")));
    let refused = session.decide(&prompt, &ReplayCursor::default(), Policy::default(), now)
        == Err(Refusal::AgentAtWork);
    assert_eq!(line.is_at_work(), refused);
}

/// What was recorded so far, as an auditor would note it.
#[derive(Default)]
struct Books {
    /// Attempts that are open: the event that accepted each, and whether it was handed over.
    open: BTreeMap<crate::MessageId, (Sequence, bool)>,
    /// Sends that the agent has.
    delivered: BTreeSet<crate::MessageId>,
    /// Sends of which nobody knows.
    unknown: BTreeSet<crate::MessageId>,
    /// Orders whose reason is recorded.
    founded: BTreeSet<OrderKey>,
    open_prompts: BTreeSet<crate::PromptId>,
    pending: BTreeSet<RequestId>,
}

impl Books {
    fn check_step(&mut self, story: &mut Story, command: &Command) {
        let (before, head) = (stored(&story.session), story.head());
        let seen = story.history.len();
        if story.perform(command).is_err() {
            let mut expected: Session = serde_json::from_value(before).unwrap();
            story.history[seen..].iter().for_each(|overdue| expected.apply(overdue));
            assert_eq!(stored(&story.session), stored(&expected), "a refusal changed something");
        }
        let recorded = story.history[seen..].to_vec();
        for (n, recorded) in (head.0 + 1..).zip(&recorded) {
            assert_eq!(recorded.sequence, Sequence(n), "sequences are dense");
            assert_eq!(recorded.at, story.now);
            self.enter(recorded, command);
        }
        assert_eq!(story.head(), Sequence(head.0 + recorded.len() as u64));
        for order in story.session.owed() {
            assert!(self.founded.contains(&order.key()), "{order:?} is owed without a record");
        }
        check_deadline(story);
    }

    fn enter(&mut self, recorded: &Recorded, command: &Command) {
        match &recorded.event {
            Event::Delivery(event) => self.enter_delivery(event, recorded.sequence, command),
            Event::Prompt(prompts::Event::Asked(prompt)) => {
                assert!(self.open_prompts.insert(prompt.id.clone()), "asked while open");
            }
            Event::Prompt(prompts::Event::Settled { prompt, request, .. }) => {
                assert!(self.open_prompts.remove(prompt), "{prompt} was settled twice");
                self.founded.insert(OrderKey::Request(request.clone()));
            }
            Event::Prompt(prompts::Event::Reopened { prompt, .. }) => {
                assert!(self.open_prompts.insert(prompt.id.clone()), "reopened while open");
            }
            Event::Control(controls::Event::Requested { request, .. }) => {
                assert!(self.pending.insert(request.clone()), "{request} is asked twice");
                self.founded.insert(OrderKey::Request(request.clone()));
            }
            Event::Control(controls::Event::Settled { request, .. }) => {
                assert!(self.pending.remove(request), "{request} is answered twice");
            }
            Event::Prompt(prompts::Event::Confirmed(_))
            | Event::Queue(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_)
            | Event::Transcript(_) => {}
        }
    }

    fn enter_delivery(&mut self, event: &delivery::Event, at: Sequence, command: &Command) {
        match event {
            delivery::Event::Accepted(send) => {
                let id = &send.id;
                assert!(!self.delivered.contains(id), "{id} is delivered and accepted again");
                assert!(!self.unknown.contains(id), "{id} is unknown and tried again");
                assert!(self.open.insert(id.clone(), (at, false)).is_none(), "{id} was open");
            }
            delivery::Event::HandedOver { id, .. } => {
                let (attempt, handed) = self.open.get_mut(id).expect("only what is open leaves");
                assert!(!*handed, "{id} was handed over twice");
                *handed = true;
                self.founded.insert(OrderKey::Deliver(id.clone(), *attempt));
            }
            delivery::Event::Delivered { id, .. } => {
                let (_, handed) = self.open.remove(id).expect("an attempt ends once");
                assert!(handed, "{id} was delivered without having left");
                self.delivered.insert(id.clone());
            }
            delivery::Event::Failed { id, failure } => {
                let (_, handed) = self.open.remove(id).expect("an attempt ends once");
                let unknown = failure.code.as_str() == DELIVERY_UNKNOWN;
                let by_proxy = matches!(command, Command::Proxy(word)
                    if matches!(word.report, Report::SendFailed { .. }));
                assert!(!handed || unknown || by_proxy, "{id} failed while it may arrive");
                if unknown {
                    self.unknown.insert(id.clone());
                }
            }
        }
    }
}

/// Waiting until the deadline leaves nothing to wait for until then.
fn check_deadline(story: &Story) {
    let Some(deadline) = story.deadline() else { return };
    let mut later = story.session.clone();
    let then = deadline.max(story.now);
    let (tick, mut cursor) = (Command::Relay(Change::Tick), ReplayCursor::default());
    later.perform(&tick, &mut cursor, Policy::default(), then).outcome.unwrap();
    let next = later.deadline(Policy::default());
    assert!(next.is_none_or(|next| next > then), "{next:?} is in the past of {then:?}");
}

/// The ledger alone makes the same state, also when it went through its stored form.
fn check_replay(story: &Story) {
    let mut replayed = Session::default();
    for recorded in &story.history {
        let line = serde_json::to_string(recorded).unwrap();
        let read: Recorded = serde_json::from_str(&line).unwrap();
        assert_eq!(&read, recorded);
        replayed.apply(&read);
    }
    // Whole values, not what is stored of them: nothing may hide from the comparison.
    assert_eq!(replayed, story.session);
    let restored: Session = serde_json::from_value(stored(&story.session)).unwrap();
    assert_eq!(restored, story.session);
    assert_eq!(restored.owed(), story.session.owed());
    assert_eq!(restored.deadline(Policy::default()), story.deadline());
}

fn stored(session: &Session) -> serde_json::Value {
    serde_json::to_value(session).unwrap()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after_ms = prop_oneof![6 => 0..50_u64, 2 => 50..20_000_u64, 1 => 20_000..120_000_u64];
    let step = (command(), after_ms).prop_map(|(command, after_ms)| Step { command, after_ms });
    prop::collection::vec(step, 1..STEPS_MAX)
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => (who(), wish()).prop_map(|(who, wish)| Command::Person(who, wish)),
        5 => word().prop_map(Command::Proxy),
        2 => change().prop_map(Command::Relay),
    ]
}

fn who() -> impl Strategy<Value = Principal> {
    let viewer = person("eve", Role::Viewer);
    prop_oneof![6 => Just(ada()), 3 => Just(bob()), 1 => Just(viewer)]
}

fn wish() -> impl Strategy<Value = Wish> {
    let text = || Content::Open("edited".to_owned());
    prop_oneof![
        6 => (message_id(), mode(), prop::option::of(0..3_u64)).prop_map(|(id, mode, digest)| {
            let send = Send { mode, digest: digest.map(Digest), ..send(&id) };
            Wish::Send { send, earlier: None }
        }),
        2 => message_id().prop_map(|id| Wish::SendAtRest(send(&id))),
        3 => (prop::option::of(request()), prompt_id(), choice()).prop_map(
            |(request, prompt, choice)| Wish::Answer {
                request: request.map(Into::into),
                prompt: prompt.into(),
                choice: choice.into(),
                detail: None,
            }
        ),
        3 => (request(), control()).prop_map(|(request, control)| Wish::Control {
            request: request.into(),
            control,
        }),
        1 => message_id().prop_map(move |id| Wish::EditQueued { id: id.into(), text: text() }),
        1 => message_id().prop_map(|id| Wish::DiscardQueued { id: id.into() }),
        1 => (message_id(), 0..9_usize)
            .prop_map(|(id, to)| Wish::MoveQueued { id: id.into(), to }),
        1 => Just(Wish::ResumeQueue),
        1 => any::<bool>().prop_map(Wish::Archive),
        1 => Just(Wish::Rename("kite".to_owned())),
    ]
}

fn word() -> impl Strategy<Value = Word> {
    let number = prop::option::weighted(0.3, 1..40_u64);
    (connection(), number, report()).prop_map(|(connection, number, report)| Word {
        connection,
        position: number.map(|number| LinkPosition { link: JOURNAL.into(), number }),
        report,
    })
}

fn report() -> impl Strategy<Value = Report> {
    let attempt = || prop::option::weighted(0.3, (0..40_u64).prop_map(Sequence));
    prop_oneof![
        6 => (message_id(), attempt(), prop::option::of(run())).prop_map(|(id, attempt, run)| {
            Report::SendDelivered { id: id.into(), attempt, run: run.map(Into::into) }
        }),
        3 => (message_id(), attempt(), code()).prop_map(|(id, attempt, code)| {
            Report::SendFailed { id: id.into(), attempt, failure: Failure::new(&code, "words") }
        }),
        4 => (prompt_id(), prop::option::of((0..60_000_u64, prop::option::of(choice()))))
            .prop_map(|(id, expiry)| {
                let expiry = expiry.as_ref();
                let expiry = expiry.map(|(after_ms, choice)| (*after_ms, choice.as_deref()));
                Report::Asked(prompt(&id, expiry))
            }),
        2 => prompt_id().prop_map(|id| Report::PromptGone(id.into())),
        4 => (any_request(), prop::option::of(code())).prop_map(|(request, code)| {
            let failure = code.map(|code| Failure::new(&code, "words"));
            Report::ControlResult { request: request.into(), failure }
        }),
        3 => run().prop_map(|run| Report::RunStarted { run: run.into(), cause: None }),
        3 => (run(), any::<bool>()).prop_map(|(run, done)| {
            let outcome = if done { Outcome::Completed } else { Outcome::Interrupted };
            Report::RunEnded { run: run.into(), outcome, usage: None }
        }),
        2 => (prop::collection::vec(prompt_id(), 0..3), prop::option::of(run())).prop_map(
            |(prompts, run)| Report::Resumed {
                prompts: prompts.into_iter().map(Into::into).collect(),
                run: run.map(Into::into),
            }
        ),
        3 => (message_id(), any::<bool>(), any::<bool>(), 0..4_u64, 0..3_u64).prop_map(
            |(id, has_own_id, by_agent, digest, echo)| {
                let author = if by_agent { Author::Assistant } else { Author::User };
                let digest = (!has_own_id).then_some(digest);
                let id = if has_own_id { format!("t-{id}") } else { format!("x-{id}-{echo}") };
                let message = message(&id, author, digest);
                Report::Message { message, has_own_id, echo: Some(Digest(echo)) }
            }
        ),
        2 => (prop::sample::select(vec!["large", "small"]), any::<bool>()).prop_map(
            |(model, steers)| {
                let mut config = super::config::config(model, 1);
                config.capabilities.insert("steer".to_owned(), steers);
                Report::Config(config)
            }
        ),
        1 => prop::option::of(Just(activity("thinking", 1))).prop_map(|activity| {
            Report::Status { health: Health::Degraded, activity, reason: None }
        }),
        1 => prop::option::of(request()).prop_map(|request| Report::Closed {
            reason: CloseReason::TargetClosed,
            request: request.map(Into::into),
        }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let link = prop::option::of(prop::sample::select(vec![JOURNAL, JOURNAL, "journal-2"]));
    prop_oneof![
        3 => (connection(), link).prop_map(|(connection, link)| Change::Up {
            via: Via { connection, link: link.map(Into::into) },
            meta: Box::new(Meta::of_agent("demo".into())),
            health: Health::Healthy,
            activity: None,
        }),
        1 => prop::option::of(connection())
            .prop_map(|connection| Change::Down { connection, reason: DownReason::TargetGone }),
        2 => Just(Change::Tick),
    ]
}

fn control() -> impl Strategy<Value = Control> {
    prop_oneof![
        Just(Control::Interrupt { run: None }),
        run().prop_map(|run| Control::Interrupt { run: Some(run.into()) }),
        Just(Control::SetModel("small".into())),
        Just(Control::SetMode("plan".to_owned())),
        Just(Control::ReadConfig),
        Just(Control::Close),
    ]
}

fn connection() -> impl Strategy<Value = ConnectionId> {
    prop_oneof![5 => Just("socket-1".into()), 1 => Just("socket-2".into())]
}

fn mode() -> impl Strategy<Value = Option<Mode>> {
    prop::sample::select(vec![None, Some(Mode::Steer), Some(Mode::FollowUp)])
}

fn message_id() -> impl Strategy<Value = String> {
    (0..5_u8).prop_map(|n| format!("m{n}"))
}

fn prompt_id() -> impl Strategy<Value = String> {
    (0..3_u8).prop_map(|n| format!("p{n}"))
}

fn run() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| format!("r{n}"))
}

fn request() -> impl Strategy<Value = String> {
    (0..6_u8).prop_map(|n| format!("q{n}"))
}

/// Also the names that the relay gives to its own orders.
fn any_request() -> impl Strategy<Value = String> {
    prop_oneof![4 => request(), 1 => prompt_id().prop_map(|id| format!("expire:{id}"))]
}

fn choice() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["yes", "no", "maybe"]).prop_map(ToOwned::to_owned)
}

fn code() -> impl Strategy<Value = String> {
    let codes = vec!["send_rejected", DELIVERY_UNKNOWN, "prompt_not_found", "selector_failure"];
    prop::sample::select(codes).prop_map(ToOwned::to_owned)
}
