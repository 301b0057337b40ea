//! Up, down, closed, and reports from connections that the session has left.

use super::super::LINKS_REMEMBERED_MAX;
use super::super::status::{CloseReason, Reach};
use super::*;
use crate::content::{ToolStatus, ToolUpdate};
use crate::session::transcript::Notice;

// spec: native/session_up.1, native/session_down.1, native/session_down.2
#[test]
fn a_session_comes_up_goes_down_and_returns() {
    let mut story = Story::unseen();
    assert_eq!(story.up("socket-1", None), ["up through socket-1"]);
    status(&mut story, Health::Healthy, Some(activity("thinking", 1)), None);
    assert_eq!(story.down(), ["down: ProxyDisconnected"]);
    assert_eq!(story.session.status().activity, None, "nobody knows what it does now");
    assert_eq!(story.session.status().health, Health::Disconnected);
    assert_eq!(story.down(), nothing());
    assert_eq!(story.up("socket-2", None), ["up through socket-2"]);
    assert_eq!(story.session.status().health, Health::Healthy);
}

// spec: native/session_status.1, native/proxy_status.1
#[test]
fn a_report_that_changes_nothing_is_no_event() {
    let mut story = Story::linked();
    assert_eq!(status(&mut story, Health::Healthy, None, None), nothing());
    let told = status(&mut story, Health::Healthy, Some(activity("thinking", 1)), None);
    assert_eq!(told, ["changed: Healthy thinking"]);
    let later = Some(activity("thinking", 2));
    assert_eq!(status(&mut story, Health::Healthy, later.clone(), None), nothing());
    assert_eq!(status(&mut story, Health::Healthy, later, Some("as before")), nothing());
    assert_eq!(status(&mut story, Health::Healthy, None, None), nothing());
    let told = status(&mut story, Health::Degraded, None, Some("slow"));
    assert_eq!(told, ["changed: Degraded -"]);
    assert_eq!(status(&mut story, Health::Degraded, None, Some("slow")), nothing());
    assert_eq!(story.session.status().activity.as_ref().unwrap().kind, "thinking");
}

#[test]
fn a_session_named_again_by_its_connection_is_not_up_again() {
    let mut story = Story::plain();
    assert_eq!(story.up("socket-1", None), nothing());
    let named = |health, activity| Change::Up {
        via: Via { connection: "socket-1".into(), link: None },
        meta: Box::new(Meta::of_agent("demo".into())),
        health,
        activity,
    };
    let idle = || Some(activity("idle", 1));
    assert_eq!(story.change(named(Health::Healthy, idle())), ["changed: Healthy idle"]);
    assert_eq!(story.change(named(Health::Healthy, idle())), nothing());
    assert_eq!(story.change(named(Health::Degraded, idle())), ["changed: Degraded idle"]);
}

#[test]
fn a_session_described_anew_is_shown_anew() {
    let mut story = Story::plain();
    let meta = Meta { window_title: Some("kite".to_owned()), ..Meta::of_agent("demo".into()) };
    let via = Via { connection: "socket-1".into(), link: None };
    let (health, activity) = (Health::Healthy, None);
    let told = story.change(Change::Up { via, meta: Box::new(meta.clone()), health, activity });
    assert_eq!(told, ["up through socket-1"]);
    assert_eq!(story.session.status().meta, meta);
}

// spec: native/forwarding.3
#[test]
fn a_connection_that_was_taken_over_says_nothing_and_takes_nothing_down() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    assert_eq!(story.up("socket-2", Some(JOURNAL)), ["up through socket-2"]);
    let old = Some("socket-1".into());
    let reason = DownReason::ProxyDisconnected;
    assert_eq!(story.change(Change::Down { connection: old, reason }), nothing());
    let report = Report::SendDelivered { id: "m1".into(), attempt: None, run: None };
    let word = Word { connection: "socket-1".into(), position: None, report };
    assert_eq!(story.perform(&Command::Proxy(word)), Err(Refusal::NotThisProxy));
    let own = Some("socket-2".into());
    let down = story.change(Change::Down { connection: own, reason: DownReason::TargetGone });
    assert_eq!(down, ["down: TargetGone"]);
}

#[test]
fn after_a_restart_a_session_counts_as_down_since_its_relay_was_last_known_to_live() {
    for (alive_ms, since_ms) in [(900, 900), (3_590_000, 3_590_000), (9_000_000, 3_600_000)] {
        let mut story = Story::linked();
        story.run_starts("r1");
        story.now = START.plus_ms(700);
        story.send("m1").unwrap();
        story.now = START.plus_ms(3_600_000);
        let alive_at = START.plus_ms(alive_ms);
        let told = story.change(Change::Restarted { alive_at });
        assert_eq!(story.session.status().down_since(), Some(START.plus_ms(since_ms)));
        let is_overdue = since_ms == 900;
        assert_eq!(told.len(), 1 + usize::from(is_overdue), "{told:?}");
        assert_eq!(story.change(Change::Restarted { alive_at }), nothing(), "it is down already");
    }
}

#[test]
fn a_word_for_a_session_that_is_down_is_refused() {
    let mut story = Story::linked();
    story.down();
    let report = Report::RunStarted { run: "r1".into(), cause: None };
    let word = Word { connection: "socket-1".into(), position: None, report };
    assert_eq!(story.perform(&Command::Proxy(word)), Err(Refusal::NotThisProxy));
}

// spec: native/session_closed.1, native/session_closed.4
#[test]
fn a_session_closes_once() {
    let mut story = Story::linked();
    let report = || Report::Closed { reason: CloseReason::ProxyShutdown, request: None };
    assert_eq!(story.report(report()).unwrap(), ["closed: ProxyShutdown"]);
    assert_eq!(story.session.status().reach, Reach::Closed);
    let word = Word { connection: "socket-1".into(), position: None, report: report() };
    assert_eq!(story.perform(&Command::Proxy(word)), Err(Refusal::NotThisProxy));
    assert_eq!(story.down(), nothing());
}

#[test]
fn a_numbered_word_is_heard_once() {
    let mut story = Story::linked();
    let told = story.report_at(Some(7), notice("a")).unwrap();
    assert_eq!(told, ["notice a"]);
    assert_eq!(story.report_at(Some(7), notice("a")), Ok(vec![]));
    assert_eq!(story.report_at(Some(6), notice("b")), Ok(vec![]));
    assert_eq!(story.report_at(Some(8), notice("c")).unwrap(), ["notice c"]);
    story.down();
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.report_at(Some(8), notice("c")), Ok(vec![]), "numbers outlive sockets");
}

#[test]
fn another_journal_has_its_own_numbers() {
    let mut story = Story::linked();
    story.report_at(Some(7), notice("a")).unwrap();
    story.down();
    story.up("socket-2", Some("journal-2"));
    assert_eq!(story.report_at(Some(1), notice("b")).unwrap(), ["notice b"]);
    story.up("socket-3", Some(JOURNAL));
    assert_eq!(story.report_at(Some(7), notice("a")), Ok(vec![]), "the old one is remembered");
}

#[test]
fn every_event_of_a_numbered_word_says_where_it_came_from() {
    let mut story = Story::linked();
    story.send("m1").unwrap();
    let (id, run) = ("m1".into(), Some("r1".into()));
    story.report_at(Some(4), Report::SendDelivered { id, attempt: None, run }).unwrap();
    let position = Some(LinkPosition { link: JOURNAL.into(), number: 4 });
    let of_word = story.history.iter().rev().take(3);
    assert!(of_word.clone().all(|recorded| recorded.position == position), "{of_word:?}");
}

#[test]
fn the_current_journal_is_never_the_one_forgotten() {
    let mut story = Story::unseen();
    // Its name sorts before all others, so a careless choice would drop it.
    let journals = (0..LINKS_REMEMBERED_MAX + 4).rev().map(|n| format!("journal-{n:02}"));
    for journal in journals {
        story.up(&format!("socket of {journal}"), Some(&journal));
        assert_eq!(story.report_at(Some(1), notice("a")).unwrap().len(), 1);
        assert_eq!(story.report_at(Some(1), notice("a")), Ok(vec![]), "{journal}");
    }
}

#[test]
fn tool_calls_and_updates_are_recorded_as_they_come() {
    let mut story = Story::linked();
    let update = ToolUpdate {
        id: "t1".into(),
        status: ToolStatus::Completed,
        detail: Content::Open(crate::content::ToolDetail::default()),
    };
    assert_eq!(story.report(Report::ToolUpdate(update)).unwrap(), ["tool t1: Completed"]);
}

#[test]
fn a_session_that_is_about_to_be_erased_is_over_unless_it_is_reached() {
    let mut story = Story::linked();
    assert_eq!(story.change(Change::Over), Vec::<String>::new(), "its machine has it");
    story.asked(prompt("p1", None)).unwrap();
    story.down();
    let told = story.change(Change::Over);
    assert_eq!(told.last().map(String::as_str), Some("closed: UserRequested"), "{told:?}");
    assert!(story.session.status().is_closed());
    assert_eq!(story.change(Change::Over), Vec::<String>::new(), "only once");
}

#[test]
fn a_person_names_a_session_and_puts_it_away() {
    let mut story = Story::linked();
    let rename = Wish::Rename("kite".to_owned());
    assert_eq!(story.wish(&ada(), rename).unwrap(), ["renamed kite"]);
    assert_eq!(story.wish(&ada(), Wish::Archive(true)).unwrap(), ["archived true"]);
    assert_eq!(story.wish(&ada(), Wish::Archive(true)), Ok(vec![]));
    let status = story.session.status();
    assert_eq!((status.title.as_deref(), status.archived), (Some("kite"), true));
}

fn status(
    story: &mut Story,
    health: Health,
    activity: Option<Activity>,
    reason: Option<&str>,
) -> Vec<String> {
    let reason = reason.map(ToOwned::to_owned);
    story.report(Report::Status { health, activity, reason }).unwrap()
}

fn notice(kind: &str) -> Report {
    Report::Notice(Notice { kind: kind.to_owned(), text: "words".to_owned() })
}
