//! How rows are reported.

use domain::content::ToolStatus;

use super::*;

#[test]
fn a_conversation_that_was_there_before_is_told_whole_and_in_order() {
    let mut bench = Bench::attached();
    bench.show(&[("user", "hi"), ("thinking", "hm"), ("assistant", "hello"), ("user", "go on")]);
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["user: hi", "agent: (hm)", "agent: hello", "user: go on"]);
}

#[test]
fn words_that_grow_are_passed_on_live_and_recorded_once_when_all_is_quiet() {
    let mut bench = Bench::attached();
    bench.show_busy(&[("user", "hi")]);
    bench.show_busy(&[("user", "hi"), ("assistant", "One")]);
    bench.show_busy(&[("user", "hi"), ("assistant", "One two 😀")]);
    assert_eq!(bench.live_words(), "One two 😀");
    assert_eq!(bench.messages(), ["user: hi"]);
    bench.show(&[("user", "hi"), ("assistant", "One two 😀 three")]);
    bench.pass(300);
    assert_eq!(bench.messages(), ["user: hi"], "it flickers perhaps");
    bench.pass(1_000);
    assert_eq!(bench.messages(), ["user: hi", "agent: One two 😀 three"]);
    let told: Vec<_> = bench.told.iter().collect();
    let offsets: Vec<_> = told
        .iter()
        .filter_map(|output| match output {
            Output::Passing(delta, _) => Some(delta.offset),
            _ => None,
        })
        .collect();
    assert_eq!(offsets, [0, 3, 10], "in UTF-16 units");
    let run = bench.reports().iter().any(|report| matches!(report, Report::RunEnded { .. }));
    assert!(run, "{told:?}");
}

#[test]
fn words_that_grow_where_no_sign_of_work_is_seen_are_a_run_and_live_all_the_same() {
    let mut bench = Bench::attached();
    bench.show(&[("user", "hi"), ("assistant", "One")]);
    bench.show(&[("user", "hi"), ("assistant", "One two")]);
    assert_eq!(bench.live_words(), "One two");
    bench.show(&[("user", "hi"), ("assistant", "One two three")]);
    assert_eq!(bench.live_words(), "One two three");
    bench.pass(1_000);
    assert_eq!(bench.messages(), ["user: hi", "agent: One two three"]);
    let is_end = |report: &&Report| matches!(report, Report::RunEnded { .. });
    assert_eq!(bench.reports().into_iter().filter(is_end).count(), 1);
}

#[test]
fn a_row_that_comes_whole_to_a_panel_at_rest_is_told_at_once_and_is_no_run() {
    let mut bench = Bench::attached();
    bench.pass(10_000);
    bench.show(&[("assistant", "By the way")]);
    bench.pass(150);
    assert_eq!(bench.messages(), ["agent: By the way"]);
    let is_run = |report: &&Report| matches!(report, Report::RunStarted { .. });
    assert_eq!(bench.reports().into_iter().filter(is_run).count(), 0);
}

#[test]
fn words_that_are_written_anew_are_not_passed_on_but_recorded_right() {
    let mut bench = Bench::attached();
    bench.show_busy(&[("assistant", "Hel")]);
    bench.show_busy(&[("assistant", "Bye")]);
    assert_eq!(bench.live_words(), "Hel");
    bench.show(&[("assistant", "Bye now")]);
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["agent: Bye now"]);
}

#[test]
fn a_row_is_finished_when_another_follows_it() {
    let mut bench = Bench::attached();
    bench.show_busy(&[("assistant", "First.")]);
    bench.show_busy(&[("assistant", "First."), ("assistant", "Sec")]);
    assert_eq!(bench.messages(), ["agent: First."]);
}

#[test]
fn what_comes_after_a_finished_row_is_told_as_the_rest_of_it() {
    let mut bench = Bench::attached();
    bench.show(&[("assistant", "One.")]);
    bench.pass(2_000);
    bench.show(&[("assistant", "One. Two.")]);
    bench.pass(2_000);
    bench.show(&[("assistant", "**One.** Two.")]);
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["agent: One.", "agent:  Two."], "make-up is no news");
}

#[test]
fn the_same_words_said_twice_are_told_twice() {
    let mut bench = Bench::attached();
    bench.show(&[("user", "go"), ("assistant", "Done."), ("user", "go"), ("assistant", "Done.")]);
    bench.pass(2_000);
    assert_eq!(bench.messages().len(), 4);
    let mut ids: Vec<_> = bench
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::Message { message, has_own_id: true, .. } => Some(message.id.clone()),
            _ => None,
        })
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn after_a_restart_of_the_proxy_nothing_is_told_again_and_what_is_new_is() {
    let mut bench = Bench::attached();
    let rows = [("user", "go"), ("assistant", "Done."), ("user", "go"), ("assistant", "Done.")];
    bench.show(&rows);
    bench.pass(2_000);
    let mut again = bench.restart();
    again.take();
    again.show(&rows);
    again.pass(2_000);
    assert_eq!(again.messages(), Vec::<String>::new());
    again.show(&[&rows[..], &[("user", "more")]].concat());
    assert_eq!(again.messages(), ["user: more"]);
}

#[test]
fn older_rows_that_come_into_sight_are_not_told_after_newer_ones() {
    let mut bench = Bench::attached();
    bench.show(&[("user", "late"), ("assistant", "answer")]);
    bench.pass(2_000);
    bench.take();
    bench.push(json!({"kind": "whole", "rows":
        Bench::rows(&[("user", "early"), ("assistant", "old"), ("user", "late"),
            ("assistant", "answer")])}));
    bench.pass(2_000);
    assert_eq!(bench.messages(), Vec::<String>::new());
}

#[test]
fn rows_that_a_virtual_list_takes_out_and_brings_back_are_no_news() {
    let mut bench = Bench::attached_as("vscode-chat");
    let row = |index: u64, role: &str, text: &str| {
        json!({"key": format!("{index}/{role}"), "ordinal": index, "role": role, "text": text,
            "hash": "h", "is_placed": true})
    };
    bench.push(json!({"rows": [row(14, "user", "five"), row(15, "assistant", "six")]}));
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["user: five", "agent: six"]);
    bench.take();
    // Somebody scrolls to the beginning and back.
    bench.push(json!({"kind": "whole", "rows": [row(0, "user", "one"), row(1, "assistant", "x")]}));
    bench.pass(2_000);
    bench.push(
        json!({"kind": "whole", "rows": [row(15, "assistant", "six"), row(16, "user", "new")]}),
    );
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["user: new"]);
}

#[test]
fn a_new_chat_in_the_panel_may_say_the_same_and_the_old_one_may_come_back() {
    let mut bench = Bench::attached();
    let rows = [("user", "hi"), ("assistant", "Hello!")];
    bench.show(&rows);
    bench.pass(2_000);
    bench.push(json!({"kind": "whole", "count": 0}));
    bench.show_busy(&rows[..1]);
    bench.show(&rows);
    bench.pass(2_000);
    assert_eq!(bench.messages().len(), 4, "{:?}", bench.messages());
    bench.take();
    bench.push(json!({"kind": "whole", "count": 0}));
    bench.show(&rows);
    bench.pass(2_000);
    assert_eq!(bench.messages(), Vec::<String>::new(), "it came back");
}

#[test]
fn a_chat_that_gets_its_name_with_its_first_words_is_not_told_again() {
    let mut bench = Bench::attached_as("opencode-web");
    bench.show(&[("user", "hi")]);
    bench.push(json!({"conversation": "ses_1"}));
    bench.push(json!({"conversation": "ses_1", "kind": "whole", "rows":
        Bench::rows(&[("user", "hi"), ("assistant", "hello")])}));
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["user: hi", "agent: hello"]);
    // Another chat, and back.
    bench.take();
    bench.push(json!({"conversation": "ses_2", "kind": "whole", "rows":
        Bench::rows(&[("user", "hi")])}));
    bench.push(json!({"conversation": "ses_1", "kind": "whole", "rows":
        Bench::rows(&[("user", "hi"), ("assistant", "hello")])}));
    bench.pass(2_000);
    assert_eq!(bench.messages(), ["user: hi"]);
    assert_eq!(bench.driver.conversation(), Some("ses_1"));
}

#[test]
fn a_tools_card_is_a_call_that_ends() {
    let mut bench = Bench::attached();
    bench.show_busy(&[("user", "go"), ("tool", "Bash ls\nfirst")]);
    bench.pass(1_500);
    bench.show_busy(&[("user", "go"), ("tool", "Bash ls\nfirst\nsecond")]);
    bench.show(&[("user", "go"), ("tool", "Bash ls\nfirst\nsecond"), ("assistant", "Done.")]);
    bench.pass(2_000);
    let statuses: Vec<_> = bench
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::ToolCall(call) => Some(call.status),
            Report::ToolUpdate(update) => Some(update.status),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [ToolStatus::Running, ToolStatus::Running, ToolStatus::Completed]);
    assert_eq!(bench.messages(), ["user: go", "agent: Done."]);
}

#[test]
fn a_long_conversation_is_noted_in_one_line_after_it_was_told() {
    let mut bench = Bench::attached();
    let words: Vec<_> = (0..200).map(|n| format!("said {n}")).collect();
    let rows: Vec<_> = words.iter().map(|words| ("user", words.as_str())).collect();
    let noted = bench.notes.lines().count();
    bench.show(&rows);
    assert_eq!(bench.messages().len(), 200);
    assert_eq!(bench.notes.lines().count(), noted, "not before it is on disk");
    // The proxy dies now: all is told again, under the same ids.
    let ids = |bench: &Bench| -> Vec<_> {
        let reports = bench.reports();
        let id = |report: &&Report| match report {
            Report::Message { message, .. } => Some(message.id.clone()),
            _ => None,
        };
        reports.iter().filter_map(id).collect()
    };
    let mut again = bench.restart();
    again.show(&rows);
    assert_eq!(ids(&again), ids(&bench));
    bench.pass(1_000);
    assert_eq!(bench.notes.lines().count(), noted + 1);
    let mut after = bench.restart();
    after.show(&rows);
    assert_eq!(after.messages(), Vec::<String>::new());
}
