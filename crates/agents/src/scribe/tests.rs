use domain::content::{Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate};
use domain::session::prompts::{Choice, Prompt};

use super::*;

const NOW: Timestamp = Timestamp(1_000);

fn reports(outputs: &[Output]) -> Vec<&Report> {
    let reports = outputs.iter().filter_map(|output| {
        let Output::Report(report) = output else { return None };
        Some(report)
    });
    reports.collect()
}

fn call(id: &str, status: ToolStatus) -> ToolCall {
    ToolCall {
        id: id.into(),
        tool: "Bash".into(),
        kind: ToolKind::Execute,
        status,
        detail: Content::Open(ToolDetail { title: Some("ls".into()), ..ToolDetail::default() }),
        run: None,
        parent: None,
    }
}

fn prompt(id: &str) -> Prompt {
    let choice = Choice {
        id: "yes".into(),
        label: "Yes".into(),
        is_default: false,
        effect: None,
        wants_answers: false,
    };
    Prompt {
        id: id.into(),
        text: Content::Open("Run ls?".into()),
        choices: vec![choice],
        expiry: None,
        detected_at: NOW,
        run: None,
        detail: None,
    }
}

#[test]
fn nothing_stays_open_behind_a_run() {
    let mut scribe = Scribe::default();
    scribe.begin_run("r1".into(), Some("m1".into()), NOW);
    scribe.words(&"a1".into(), 0, Voice::Text, "half a sen");
    scribe.tool(call("t1", ToolStatus::Running), NOW);
    scribe.ask(prompt("p1"), NOW);
    scribe.take();
    scribe.end_run(Outcome::Interrupted, None, NOW);
    let told = scribe.take();
    let told = reports(&told);
    assert!(matches!(told[0], Report::Message { message, .. } if message.id == "a1".into()));
    assert!(
        matches!(told[1], Report::ToolUpdate(update) if update.status == ToolStatus::Cancelled)
    );
    assert!(matches!(told[2], Report::PromptGone(id) if *id == "p1".into()));
    assert!(matches!(told[3], Report::RunEnded { outcome: Outcome::Interrupted, .. }));
    assert!(matches!(told[4], Report::Status { activity: Some(idle), .. } if idle.kind == "idle"));
    assert_eq!(told.len(), 5);
    scribe.end_run(Outcome::Completed, None, NOW);
    assert_eq!(scribe.take(), []);
}

#[test]
fn deltas_name_the_place_that_the_recorded_message_has_and_count_utf16() {
    let mut scribe = Scribe::default();
    scribe.words(&"a1".into(), 7, Voice::Thinking, "hm 🙂");
    scribe.words(&"a1".into(), 9, Voice::Text, "so");
    scribe.words(&"a1".into(), 7, Voice::Thinking, "!");
    scribe.whole_words(&"a1".into(), 9, Voice::Text, "so it is");
    scribe.finish_message(&"a1".into(), NOW);
    let told = scribe.take();
    let deltas: Vec<_> = told
        .iter()
        .filter_map(|output| {
            let Output::Passing(delta) = output else { return None };
            Some((delta.part, delta.offset, delta.words.clone()))
        })
        .collect();
    let open = |words: &str| Content::Open(words.to_owned());
    assert_eq!(
        deltas,
        [(0, 0, open("hm 🙂")), (1, 0, open("so")), (0, 5, open("!")), (1, 2, open(" it is"))]
    );
    let Report::Message { message, .. } = reports(&told)[0] else { panic!("{told:?}") };
    let parts = [Part::Thinking("hm 🙂!".into()), Part::Text("so it is".into())];
    assert_eq!(message.parts, Content::Open(parts.to_vec()));
}

#[test]
fn what_a_message_says_before_a_tool_call_is_recorded_before_the_call() {
    let mut scribe = Scribe::default();
    let id = "a1".into();
    scribe.words(&id, 0, Voice::Text, "I will ");
    scribe.place_tool(&id, 1, "t1".into());
    scribe.whole_words(&id, 0, Voice::Text, "I will look.");
    scribe.tool(call("t1", ToolStatus::Running), NOW);
    scribe.words(&id, 2, Voice::Text, "And again.");
    scribe.place_tool(&id, 3, "t2".into());
    scribe.tool(call("t2", ToolStatus::Running), NOW);
    scribe.whole_words(&id, 0, Voice::Text, "I will look, late.");
    scribe.finish_message(&id, NOW);
    let told = scribe.take();
    let order: Vec<_> = reports(&told)
        .into_iter()
        .filter_map(|report| {
            if let Report::ToolCall(call) = report {
                return Some((call.id.to_string(), vec![]));
            }
            let Report::Message { message, .. } = report else { return None };
            Some((message.id.to_string(), message.parts.open().cloned().unwrap_or_default()))
        })
        .collect();
    let (text, tool) = (|text: &str| Part::Text(text.into()), |id: &str| Part::ToolCall(id.into()));
    assert_eq!(
        order,
        [
            ("a1".to_owned(), vec![text("I will look.")]),
            ("t1".to_owned(), vec![]),
            ("a1.2".to_owned(), vec![tool("t1"), text("And again.")]),
            ("t2".to_owned(), vec![]),
            ("a1.3".to_owned(), vec![tool("t2")]),
        ]
    );
    let deltas: Vec<_> = told
        .iter()
        .filter_map(|output| {
            let Output::Passing(delta) = output else { return None };
            Some((delta.message.to_string(), delta.part, delta.offset))
        })
        .collect();
    let own = |id: &str, part, offset| (id.to_owned(), part, offset);
    assert_eq!(deltas, [own("a1", 0, 0), own("a1", 0, 7), own("a1.2", 1, 0)]);
}

#[test]
fn a_tool_call_that_is_over_is_not_opened_again() {
    let mut scribe = Scribe::default();
    let update = |status| ToolUpdate {
        id: "t1".into(),
        status,
        detail: Content::Open(ToolDetail::default()),
    };
    scribe.tool_update(update(ToolStatus::Running), NOW);
    assert_eq!(scribe.take(), [], "never told");
    scribe.tool(call("t1", ToolStatus::Running), NOW);
    scribe.tool_update(update(ToolStatus::Completed), NOW);
    scribe.take();
    scribe.tool_update(update(ToolStatus::Running), NOW);
    scribe.tool(call("t1", ToolStatus::Running), NOW);
    assert!(
        reports(&scribe.take())
            .iter()
            .all(|report| !matches!(report, Report::ToolCall(_) | Report::ToolUpdate(_)))
    );
}

#[test]
fn what_a_tool_prints_is_told_now_and_then() {
    let mut scribe = Scribe::default();
    scribe.tool(call("t1", ToolStatus::Running), NOW);
    scribe.take();
    scribe.tool_output(&"t1".into(), "a", NOW);
    scribe.tool_output(&"t1".into(), "ab", NOW.plus_ms(100));
    scribe.tool_output(&"t1".into(), "abc", NOW.plus_ms(600));
    assert_eq!(scribe.take().len(), 2);
}

#[test]
fn complaints_are_gathered_and_their_end_is_kept() {
    let mut scribe = Scribe::default();
    scribe.complaint("one", NOW);
    scribe.complaint("two", NOW);
    scribe.on_deadline(NOW);
    assert_eq!(scribe.take(), []);
    let at = scribe.deadline().unwrap();
    scribe.on_deadline(at);
    let told = scribe.take();
    assert!(matches!(reports(&told)[0], Report::Notice(notice) if notice.text == "one\ntwo"));
    assert_eq!(scribe.last_complaints().as_deref(), Some("one\ntwo"));
    assert_eq!(scribe.deadline(), None);
    scribe.health(Health::Healthy, None, at);
    assert_eq!(scribe.last_complaints(), None, "it was well since");
}
