use domain::content::Failure;
use domain::session::prompts::Settled;

use super::*;

const ALL: [Occasion; 3] = [Occasion::Prompt, Occasion::Run, Occasion::Failure];

/// A desk with sessions that are watched or not, and a clock.
struct Room {
    desk: Desk,
    now: Timestamp,
    sequence: u64,
}

impl Room {
    fn new(wanted: &[Occasion]) -> Self {
        Self { desk: Desk::new(wanted.to_vec()), now: Timestamp(1_000_000), sequence: 0 }
    }

    fn hear(&mut self, session: &str, event: Event) {
        self.sequence += 1;
        let sequence = Sequence(self.sequence);
        let recorded = Recorded { sequence, at: self.now, position: None, event };
        self.desk.hear(&session.into(), &recorded);
    }

    fn due(&mut self, attention: Attention) -> Vec<Call> {
        self.desk.due(self.now, |_| attention)
    }

    fn later(&mut self, ms: u64) -> &mut Self {
        self.now = self.now.plus_ms(ms);
        self
    }
}

fn prompt(id: &str) -> prompts::Prompt {
    prompts::Prompt {
        id: id.into(),
        text: domain::Content::Open(format!("May I {id}?")),
        choices: vec![],
        expiry: None,
        detected_at: Timestamp(0),
        run: None,
        detail: None,
    }
}

fn asked(id: &str) -> Event {
    Event::Prompt(prompts::Event::Asked(prompt(id)))
}

fn settled(id: &str) -> Event {
    Event::Prompt(prompts::Event::Settled {
        prompt: id.into(),
        choice: None,
        settled: Settled::ByExpiry,
        request: "r1".into(),
        detail: None,
    })
}

fn ended() -> Event {
    let (run, outcome) = ("run-1".into(), Outcome::Completed);
    Event::Run(runs::Event::Ended { run, outcome, usage: None })
}

fn failed(words: &str) -> Event {
    let failure = Failure::new("boom", words);
    Event::Delivery(delivery::Event::Failed { id: "m1".into(), failure })
}

#[test]
fn each_occasion_is_told_once_after_its_rest() {
    let mut room = Room::new(&ALL);
    room.hear("kite", asked("push"));
    room.hear("kite", ended());
    room.hear("kite", failed("no\u{7} agent"));
    assert_eq!(room.later(REST_MS - 1).due(Attention::Alone), []);

    let told = room.later(1).due(Attention::Alone);
    let matters: Vec<Matter> = told.into_iter().map(|call| call.matter).collect();
    assert_eq!(
        matters,
        [
            Matter::Asked(Question::new(&prompt("push"))),
            Matter::Ended(Outcome::Completed),
            Matter::Failed("no  agent".to_owned()),
        ]
    );
    assert_eq!(room.later(WINDOW_MS).due(Attention::Alone), []);
    assert!(!room.desk.is_waiting());
}

#[test]
fn what_nobody_wants_to_hear_of_is_not_told() {
    let mut room = Room::new(&[Occasion::Failure]);
    room.hear("kite", asked("push"));
    room.hear("kite", ended());
    assert!(!room.desk.is_waiting());
    room.hear("kite", failed("gone"));
    assert_eq!(room.later(REST_MS).due(Attention::Alone).len(), 1);
}

#[test]
fn a_run_that_somebody_saw_ending_is_never_told() {
    let mut room = Room::new(&ALL);
    room.hear("kite", ended());
    assert_eq!(room.later(REST_MS).due(Attention::Watched), []);
    assert_eq!(room.later(REST_MS).due(Attention::Alone), []);
}

#[test]
fn a_question_is_told_when_the_last_one_who_saw_it_leaves() {
    let mut room = Room::new(&ALL);
    room.hear("kite", asked("push"));
    assert_eq!(room.later(10 * WINDOW_MS).due(Attention::Watched), []);
    assert_eq!(room.later(1).due(Attention::Alone).len(), 1);
}

#[test]
fn a_question_that_was_answered_is_not_told_any_more() {
    let mut room = Room::new(&ALL);
    room.hear("kite", asked("push"));
    room.hear("boat", asked("push"));
    room.hear("kite", settled("push"));
    let told = room.later(REST_MS).due(Attention::Alone);
    assert_eq!(told.iter().map(|call| call.session.as_str()).collect::<Vec<_>>(), ["boat"]);
}

#[test]
fn nothing_is_told_of_a_session_that_is_gone() {
    let mut room = Room::new(&ALL);
    room.hear("kite", asked("push"));
    room.hear("kite", ended());
    assert_eq!(room.later(REST_MS).due(Attention::Gone), []);
    assert!(!room.desk.is_waiting());
}

#[test]
fn one_session_is_told_of_a_few_times_and_the_next_call_counts_the_rest() {
    let mut room = Room::new(&ALL);
    for _ in 0..SESSION_CALLS_MAX + 4 {
        room.hear("kite", ended());
    }
    room.hear("boat", ended());
    let told = room.later(REST_MS).due(Attention::Alone);
    assert_eq!(told.len(), SESSION_CALLS_MAX + 1);
    let counts: Vec<u64> = told.iter().map(|call| call.left_out).collect();
    assert_eq!(counts, [0, 0, 0, 4], "the next call is the other session's");

    room.hear("kite", ended());
    let told = room.later(WINDOW_MS).due(Attention::Alone);
    assert_eq!(told.iter().map(|call| call.left_out).collect::<Vec<_>>(), [0]);
}

#[test]
fn all_sessions_together_are_bounded_too() {
    let mut room = Room::new(&ALL);
    for number in 0..CALLS_MAX + 5 {
        room.hear(&format!("s{number}"), ended());
    }
    assert_eq!(room.later(REST_MS).due(Attention::Alone).len(), CALLS_MAX);
    room.hear("kite", ended());
    let told = room.later(WINDOW_MS).due(Attention::Alone);
    assert_eq!(told.iter().map(|call| call.left_out).collect::<Vec<_>>(), [5]);
}

#[test]
fn a_question_over_the_limit_waits_for_its_turn_and_is_not_lost() {
    let mut room = Room::new(&ALL);
    for number in 0..=SESSION_CALLS_MAX {
        room.hear("kite", asked(&format!("step-{number}")));
    }
    assert_eq!(room.later(REST_MS).due(Attention::Alone).len(), SESSION_CALLS_MAX);
    assert_eq!(room.later(WINDOW_MS - 1).due(Attention::Alone), []);
    let told = room.later(1).due(Attention::Alone);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].left_out, 0);
}

#[test]
fn matters_beyond_the_bound_are_counted() {
    let mut room = Room::new(&ALL);
    for _ in 0..MATTERS_MAX + 7 {
        room.hear("kite", failed("gone"));
    }
    assert_eq!(room.desk.resting.len(), MATTERS_MAX);
    let told = room.later(REST_MS).due(Attention::Alone);
    assert_eq!(told[0].left_out, 7);
}

#[test]
fn after_a_gap_only_questions_that_are_open_and_new_are_told() {
    let mut room = Room::new(&ALL);
    room.hear("kite", asked("told"));
    assert_eq!(room.later(REST_MS).due(Attention::Alone).len(), 1);
    room.hear("kite", asked("answered-meanwhile"));

    let open = |id: &str| ("kite".into(), Sequence(9), Question::new(&prompt(id)));
    let now = room.now;
    room.desk.catch_up(vec![open("told"), open("new")], now, REST_MS);
    let told = room.later(REST_MS).due(Attention::Alone);
    let matters: Vec<&Matter> = told.iter().map(|call| &call.matter).collect();
    assert_eq!(matters, [&Matter::Asked(Question::new(&prompt("new")))]);
}

#[test]
fn after_a_restart_a_question_that_nobody_was_told_of_is_told_once() {
    let mut room = Room::new(&ALL);
    room.desk.remember([("kite".into(), "told".into()), ("kite".into(), "answered".into())]);
    let open = |id: &str| ("kite".into(), Sequence(9), Question::new(&prompt(id)));
    let now = room.now;
    room.desk.catch_up(vec![open("told"), open("untold")], now, RETURN_MS);
    let confirmed = |room: &Room| -> Vec<String> {
        room.desk.confirmed().map(|(_, prompt)| prompt.to_string()).collect()
    };
    assert_eq!(confirmed(&room), ["told"], "what was answered needs no memory");

    // The ring may still hold it.
    room.hear("kite", asked("untold"));
    assert_eq!(room.later(RETURN_MS - 1).due(Attention::Alone), []);
    let told = room.later(1).due(Attention::Alone);
    let matters: Vec<&Matter> = told.iter().map(|call| &call.matter).collect();
    assert_eq!(matters, [&Matter::Asked(Question::new(&prompt("untold")))]);
    assert_eq!(confirmed(&room), ["told"], "on its way is not told");
    room.desk.confirm(&("kite".into(), "untold".into()));
    assert_eq!(confirmed(&room), ["told", "untold"]);
    room.hear("kite", settled("told"));
    room.desk.confirm(&("kite".into(), "told".into()));
    assert_eq!(confirmed(&room), ["untold"], "a late word about one that was answered");
}

#[test]
fn a_closed_session_has_no_questions_left() {
    let mut room = Room::new(&ALL);
    room.hear("kite", asked("push"));
    room.hear("kite", ended());
    let reason = status::CloseReason::TargetClosed;
    room.hear("kite", Event::Status(status::Event::Closed { reason, request: None }));
    let told = room.later(REST_MS).due(Attention::Alone);
    let matters: Vec<&Matter> = told.iter().map(|call| &call.matter).collect();
    assert_eq!(matters, [&Matter::Ended(Outcome::Completed)]);
}
