//! Runs start, end, and are cut off.

use super::*;
use crate::content::{ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate};
use crate::session::runs::Event::Ended;
use crate::session::status::CloseReason;

#[test]
fn a_run_starts_once_and_ends_once() {
    let mut story = Story::linked();
    assert_eq!(story.run_starts("r1"), ["r1 started"]);
    assert_eq!(story.run_starts("r1"), nothing());
    assert_eq!(story.session.card().run, Some("r1".into()));
    assert_eq!(story.run_ends("r1", Outcome::Completed), ["r1 completed"]);
    assert_eq!(story.run_ends("r1", Outcome::Completed), nothing());
    assert_eq!(story.run_starts("r1"), nothing(), "a repeated word starts nothing");
    assert_eq!(story.session.card().run, None);
}

#[test]
fn a_word_about_another_run_ends_nothing() {
    let mut story = Story::linked();
    story.run_starts("r1");
    assert_eq!(story.run_ends("r0", Outcome::Completed), nothing());
    assert_eq!(story.session.card().run, Some("r1".into()));
}

#[test]
fn a_run_that_was_never_told_to_end_is_cut_off_by_the_next() {
    let mut story = Story::linked();
    story.run_starts("r1");
    assert_eq!(story.run_starts("r2"), ["r1 cut off", "r2 started"]);
}

#[test]
fn a_returning_proxy_that_does_not_name_the_run_cuts_it() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.send("m1").unwrap();
    story.down();
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.resumed(&[], None), ["r1 cut off", "handed over m1"]);
}

#[test]
fn a_returning_proxy_that_names_the_run_goes_on_with_it() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.down();
    assert_eq!(story.session.card().run, Some("r1".into()), "going away ends nothing");
    story.up("socket-2", Some(JOURNAL));
    assert_eq!(story.resumed(&[], Some("r1")), nothing());
    assert_eq!(story.run_ends("r1", Outcome::Completed), ["r1 completed"]);
}

#[test]
fn a_returning_proxy_with_another_run_cuts_the_old_one() {
    let mut story = Story::linked();
    story.run_starts("r1");
    assert_eq!(story.resumed(&[], Some("r2")), ["r1 cut off"]);
    assert_eq!(story.run_starts("r2"), ["r2 started"]);
}

#[test]
fn a_delivery_into_the_active_run_starts_none() {
    let mut story = Story::plain();
    story.send("m1").unwrap();
    story.run_starts("r1");
    let (id, run) = ("m1".into(), Some("r1".into()));
    let told = story.report(Report::SendDelivered { id, attempt: None, run }).unwrap();
    assert_eq!(told, ["delivered m1", "message m1"]);
}

#[test]
fn a_delivery_into_a_new_run_comes_after_the_end_of_the_old_one() {
    let mut story = Story::plain();
    story.send("m1").unwrap();
    story.run_starts("r1");
    let (id, run) = ("m1".into(), Some("r2".into()));
    let told = story.report(Report::SendDelivered { id, attempt: None, run }).unwrap();
    assert_eq!(told, ["r1 cut off", "delivered m1", "message m1", "r2 started"]);
}

#[test]
fn a_run_that_another_journal_told_of_is_cut_when_its_proxy_is_replaced() {
    for link in [None, Some("journal-2")] {
        let mut story = Story::linked();
        story.run_starts("r1");
        story.interrupt("stop").unwrap();
        story.down();
        let back = story.up("socket-2", link);
        let expected = ["r1 interrupted", "settled stop: ok", "up through socket-2"];
        assert_eq!(back, expected, "nobody would tell its end: {link:?}");
    }
}

#[test]
fn a_run_of_the_same_proxy_outlives_its_connection() {
    for link in [None, Some(JOURNAL)] {
        let mut story = Story::unseen();
        story.up("socket-1", link);
        story.run_starts("r1");
        assert_eq!(story.up("socket-2", link), ["up through socket-2"]);
        assert_eq!(story.session.card().run, Some("r1".into()), "{link:?}");
    }
}

#[test]
fn a_run_that_its_machine_cut_off_is_over_with_the_interrupts_that_were_meant_for_it() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.interrupt("stop").unwrap();
    let cut =
        crate::session::runs::Cut { why: "the machine stopped".to_owned(), lasted_ms: Some(4_000) };
    let ended = story.run_ends("r1", Outcome::Cut(cut));
    assert_eq!(ended, ["r1 cut off", "settled stop: ok"]);
}

#[test]
fn what_was_at_work_in_a_run_that_is_cut_off_is_cancelled() {
    let mut story = Story::linked();
    story.run_starts("r1");
    for (id, status) in [("t1", ToolStatus::Running), ("t2", ToolStatus::Completed)] {
        story.report(Report::ToolCall(tool_call(id, status))).unwrap();
    }
    story.report(Report::ToolCall(tool_call("t3", ToolStatus::Pending))).unwrap();
    let update = |id: &str, status| {
        let detail = Content::Open(ToolDetail::default());
        Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail })
    };
    story.report(update("t3", ToolStatus::Failed)).unwrap();
    assert_eq!(story.resumed(&[], None), ["tool t1: Cancelled", "r1 cut off"]);
    story.run_starts("r2");
    assert_eq!(story.resumed(&[], None), ["r2 cut off"], "each once");
}

#[test]
fn what_a_run_leaves_at_work_when_it_ends_by_itself_goes_on() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.report(Report::ToolCall(tool_call("t1", ToolStatus::Running))).unwrap();
    assert_eq!(story.run_ends("r1", Outcome::Completed), ["r1 completed"]);
}

/// A session whose run ended by itself and left a tool at work, as a subagent in the background does.
fn left_at_work() -> Story {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.report(Report::ToolCall(tool_call("t1", ToolStatus::Running))).unwrap();
    story.run_ends("r1", Outcome::Completed);
    story
}

// spec: native/events.5
#[test]
fn a_tool_that_outlived_its_run_is_cancelled_when_its_agent_is_gone() {
    let mut over = left_at_work();
    over.down();
    let told = over.change(Change::Over);
    assert_eq!(told, ["tool t1: Cancelled", "closed: UserRequested"]);

    let mut closed = left_at_work();
    let (reason, request) = (CloseReason::UserRequested, None);
    let told = closed.report(Report::Closed { reason, request }).unwrap();
    assert_eq!(told, ["tool t1: Cancelled", "closed: UserRequested"]);

    let mut replaced = left_at_work();
    replaced.down();
    let back = replaced.up("socket-2", Some("journal-2"));
    assert_eq!(back, ["tool t1: Cancelled", "up through socket-2"]);
    assert_eq!(replaced.change(Change::Tick), nothing(), "once");
}

// spec: native/events.5
#[test]
fn a_tool_that_outlived_its_run_keeps_running_while_its_agent_lives() {
    let mut story = left_at_work();
    story.down();
    assert_eq!(story.up("socket-2", Some(JOURNAL)), ["up through socket-2"]);
    assert_eq!(story.resumed(&[], None), nothing());
    assert_eq!(story.resumed(&[], Some("r2")), nothing());
}

// spec: native/events.5
#[test]
fn a_run_that_cuts_off_another_cancels_no_tool_because_the_agent_lives() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.report(Report::ToolCall(tool_call("t1", ToolStatus::Running))).unwrap();
    assert_eq!(story.run_starts("r2"), ["r1 cut off", "r2 started"]);
}

/// How long the run that was cut off last had gone on, as it is told.
fn lasted_ms(story: &Story) -> Option<u64> {
    let mut cuts = story.history.iter().rev().filter_map(|recorded| {
        let Event::Run(Ended { outcome: Outcome::Cut(cut), .. }) = &recorded.event else {
            return None;
        };
        Some(cut.lasted_ms)
    });
    cuts.next().expect("a run was cut off")
}

// spec: native/events.2
#[test]
fn a_run_that_is_cut_off_lasted_until_its_machine_went_away() {
    type End = fn(&mut Story);
    let lost: [(&str, End); 3] = [
        ("its proxy no longer knows of it", |story| {
            story.up("socket-2", Some(JOURNAL));
            story.wait_ms(500);
            story.resumed(&[], None);
        }),
        ("its proxy lost its journal", |story| {
            story.up("socket-2", Some("journal-2"));
        }),
        ("it is closed while its machine is away", |story| {
            story.change(Change::Over);
        }),
    ];
    for (how, end) in lost {
        let mut story = Story::linked();
        story.run_starts("r1");
        story.wait_ms(4_000);
        story.down();
        story.wait_ms(3_600_000);
        end(&mut story);
        assert_eq!(lasted_ms(&story), Some(4_000), "{how}");
    }
}

#[test]
fn a_run_lasted_no_longer_than_its_relay_is_known_to_have_lived() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.wait_ms(3_600_000);
    story.change(Change::Restarted { alive_at: START.plus_ms(4_000) });
    story.up("socket-2", Some(JOURNAL));
    story.resumed(&[], None);
    assert_eq!(lasted_ms(&story), Some(4_000));
}

#[test]
fn a_run_whose_session_is_closed_lasted_until_then() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.down();
    story.wait_ms(1_000);
    story.up("socket-2", Some(JOURNAL));
    story.resumed(&[], Some("r1"));
    story.report(Report::ToolCall(tool_call("t1", ToolStatus::Running))).unwrap();
    story.wait_ms(4_000);
    let reason = CloseReason::TargetClosed;
    story.report(Report::Closed { reason, request: None }).unwrap();
    assert_eq!(lasted_ms(&story), Some(5_000), "it went on while its machine was away");
}

#[test]
fn how_long_a_run_lasted_is_not_said_where_nobody_knows() {
    let mut story = Story::linked();
    story.run_starts("r1");
    story.wait_ms(4_000);
    story.run_starts("r2");
    assert_eq!(lasted_ms(&story), None, "it may have ended long ago");
    story.down();
    story.wait_ms(4_000);
    story.up("socket-2", Some(JOURNAL));
    story.resumed(&[], Some("r2"));
    story
        .report(Report::Status {
            health: Health::Healthy,
            activity: Some(activity("generating", 1)),
            reason: None,
        })
        .unwrap();
    story.wait_ms(4_000);
    story.run_starts("r3");
    assert_eq!(lasted_ms(&story), None, "it had gone on after its machine came back");
}

fn tool_call(id: &str, status: ToolStatus) -> ToolCall {
    let detail = Content::Open(ToolDetail::default());
    ToolCall {
        id: id.into(),
        tool: "Bash".to_owned(),
        kind: ToolKind::Execute,
        status,
        detail,
        parent: None,
        run: None,
    }
}
