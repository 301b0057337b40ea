//! Dialogs and their answers.

use domain::session::prompts::{Effect, Prompt};

use super::*;
use crate::driver::sealed_answer;
use crate::panel::profile::ChoiceEffect;

fn dialog(id: &str) -> Value {
    json!({"id": id, "text": "Run `ls`?", "buttons": [
        {"label": "Yes, and don't ask again", "is_default": false},
        {"label": "Yes", "is_default": true},
        {"label": "No", "is_default": false},
        {"label": "Show details", "is_default": false},
    ]})
}

fn asked(bench: &Bench) -> Vec<&Prompt> {
    let mut prompts = vec![];
    for report in bench.reports() {
        if let Report::Asked(prompt) = report {
            prompts.push(prompt);
        }
    }
    prompts
}

fn gone(bench: &Bench) -> usize {
    bench.reports().iter().filter(|report| matches!(report, Report::PromptGone(_))).count()
}

fn results(bench: &Bench) -> Vec<Option<String>> {
    let result = |report: &Report| match report {
        Report::ControlResult { failure, .. } => {
            Some(failure.as_ref().map(|failure| failure.code.as_str().to_owned()))
        }
        _ => None,
    };
    bench.reports().into_iter().filter_map(result).collect()
}

fn answer(bench: &mut Bench, choice: Option<&str>) {
    bench.order(Order::Answer {
        request: "r1".into(),
        prompt: "dialog-d1".into(),
        choice: choice.map(Into::into),
        detail: None,
    });
}

#[test]
fn a_dialog_is_asked_once_with_its_buttons_and_no_default_that_allows() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    bench.push(json!({"dialogs": [dialog("d1")]}));
    let prompts = asked(&bench);
    assert_eq!(prompts.len(), 1);
    let choices: Vec<_> = prompts[0]
        .choices
        .iter()
        .map(|choice| (choice.id.as_str(), choice.effect, choice.is_default))
        .collect();
    assert_eq!(
        choices,
        [
            ("allow_always", Some(Effect::AllowAlways), false),
            ("allow", Some(Effect::AllowOnce), false),
            ("deny", Some(Effect::Reject), false),
            ("show_details", None, false),
        ]
    );
    assert_eq!(prompts[0].expiry, None);
    assert!(prompts[0].run.is_some(), "a question is work that waits");
}

#[test]
fn buttons_are_understood_as_the_newest_profile_says() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    let mut changed = Profile::clone(&bench.driver.profile);
    let rules = changed.prompt.as_mut().unwrap();
    rules.choices.retain(|rule| rule.effect == ChoiceEffect::Reject);
    rules.choices[0].id = "never".to_owned();
    let gone_away = News::Gone { reason: "its profile changed".to_owned(), is_closed: false };
    bench.news(gone_away);
    bench.epoch += 1;
    bench.attach_as(changed);
    bench.push(json!({"dialogs": [dialog("d1")]}));
    bench.answer_looks();
    assert_eq!(gone(&bench), 1);
    let prompts = asked(&bench);
    let choices: Vec<_> = prompts[1].choices.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(choices, ["yes_and_don_t_ask_again", "yes", "never", "show_details"]);
    answer(&mut bench, Some("never"));
    let (dialog, label) = ("d1".to_owned(), "No".to_owned());
    assert_eq!(bench.tasks(), [&Task::Press { dialog, label }]);
}

#[test]
fn an_answer_presses_the_exact_button_and_is_told_when_it_was_pressed() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    answer(&mut bench, Some("deny"));
    let (dialog, label) = ("d1".to_owned(), "No".to_owned());
    assert_eq!(bench.tasks(), [&Task::Press { dialog, label }]);
    // It leaves before the outcome is told.
    bench.push(json!({"busy": true}));
    assert_eq!((results(&bench), gone(&bench)), (vec![], 0));
    bench.done(|task| matches!(task, Task::Press { .. }), Ok(Done::Plainly));
    assert_eq!((results(&bench), gone(&bench)), (vec![None], 0));
}

#[test]
fn a_dialog_that_vanished_is_withdrawn_and_its_answer_finds_nothing() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    bench.push(json!({"busy": true}));
    assert_eq!(gone(&bench), 1);
    answer(&mut bench, Some("allow"));
    assert_eq!(results(&bench), [Some("prompt_not_found".to_owned())]);
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
}

#[test]
fn a_dialog_that_changed_before_the_click_reopens_or_is_withdrawn() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    answer(&mut bench, Some("allow"));
    bench.push(json!({"dialogs": [dialog("d2")]}));
    let failure = Failure::new("prompt_not_found", "it is another now");
    bench.done(|task| matches!(task, Task::Press { .. }), Err(failure));
    assert_eq!(results(&bench), [Some("prompt_not_found".to_owned())]);
    assert_eq!((asked(&bench).len(), gone(&bench)), (2, 1));
}

#[test]
fn a_choice_that_the_dialog_does_not_have_presses_nothing() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    answer(&mut bench, Some("allow_everything"));
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    assert_eq!(results(&bench), [Some("prompt_not_found".to_owned())]);
}

#[test]
fn a_prompt_that_is_over_presses_nothing_and_is_not_asked_again() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    answer(&mut bench, None);
    bench.push(json!({"dialogs": [dialog("d1")]}));
    bench.pass(20_000);
    assert_eq!((bench.tasks().len(), asked(&bench).len()), (0, 1));
}

#[test]
fn a_dialog_that_stays_though_it_was_pressed_is_asked_again() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    answer(&mut bench, Some("allow"));
    bench.done(|task| matches!(task, Task::Press { .. }), Ok(Done::Plainly));
    bench.pass(3_000);
    assert_eq!(asked(&bench).len(), 1);
    bench.pass(3_000);
    assert_eq!(asked(&bench).len(), 2);
}

#[test]
fn a_sealed_answer_is_refused_and_the_dialog_stays_open() {
    let mut bench = Bench::attached();
    bench.push(json!({"dialogs": [dialog("d1")]}));
    bench.order(sealed_answer(&"dialog-d1".into(), "allow"));
    assert_eq!(bench.tasks(), Vec::<&Task>::new());
    assert_eq!(results(&bench), [Some("control_not_supported".to_owned())]);
    answer(&mut bench, Some("deny"));
    let (dialog, label) = ("d1".to_owned(), "No".to_owned());
    assert_eq!(bench.tasks(), [&Task::Press { dialog, label }]);
}
