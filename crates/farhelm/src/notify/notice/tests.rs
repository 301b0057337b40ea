use domain::content::Sealed;
use domain::session::prompts::{Detail, Prompt};
use domain::session::status::{Meta, Status};
use domain::{Content, Sequence, Timestamp};

use super::*;
use crate::notify::words::Question;

fn card() -> Card {
    let mut meta = Meta::of_agent("claude".into());
    meta.display_name = Some("Kite".to_owned());
    meta.machine = Some("workshop".into());
    meta.workspace_path = Some("/home/ada/kite".to_owned());
    let status = Status { meta, ..Status::default() };
    Card {
        status,
        config: None,
        prompts: vec![],
        run: None,
        messages: 0,
        results: 0,
        deadlines: None,
    }
}

fn prompt(text: Content<String>, input: &str) -> Prompt {
    let detail = Detail {
        tool: Some("Bash".to_owned()),
        input: Some(input.to_owned()),
        ..Detail::default()
    };
    Prompt {
        id: "p1".into(),
        text,
        choices: vec![],
        expiry: None,
        detected_at: Timestamp(0),
        run: None,
        detail: Some(Content::Open(detail)),
    }
}

fn call(matter: Matter) -> Call {
    let (sequence, at) = (Sequence(7), Timestamp(0));
    Call { session: "ses_1".into(), matter, sequence, at, left_out: 0 }
}

fn notice(prompt: &Prompt) -> Notice {
    let call = call(Matter::Asked(Question::new(prompt)));
    Notice::new(&call, &card(), "https://farhelm.example.org")
}

#[test]
fn a_question_says_which_command_waits_and_where() {
    let prompt = prompt(Content::Open("May I?".to_owned()), r#"{"command":"git push"}"#);
    let told = notice(&prompt);

    assert_eq!(told.title, "Kite needs your answer");
    assert_eq!(told.text, "May I?\ngit push\nclaude on workshop, /home/ada/kite");
    assert_eq!(told.link, "https://farhelm.example.org/#/s/ses_1/p/p1");
    assert_eq!(told.prompt_id.as_deref(), Some("p1"));
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!((&json["kind"], &json["command"]), (&"prompt_waits".into(), &"git push".into()));
    assert_eq!((&json["id"], &json["left_out"]), (&"ses_1-7".into(), &0.into()));
    assert_eq!(json["kind"], told.kind.word());
}

#[test]
fn the_link_leads_to_the_question_whatever_its_name() {
    let mut prompt = prompt(Content::Open("May I?".to_owned()), "{}");
    prompt.id = "call:7/ä b?#".into();
    let told = notice(&prompt);
    assert_eq!(told.link, "https://farhelm.example.org/#/s/ses_1/p/call%3A7%2F%C3%A4%20b%3F%23");
    let done = Notice::new(&call(Matter::Ended(Outcome::Completed)), &card(), "https://a.b");
    assert_eq!(done.link, "https://a.b/#/s/ses_1");
}

#[test]
fn a_command_that_the_question_has_is_not_said_twice() {
    let prompt = prompt(Content::Open("Run git push?".to_owned()), r#"{"command":"git push"}"#);
    assert_eq!(notice(&prompt).text.matches("git push").count(), 1);
}

#[test]
fn a_tool_without_a_command_is_told_by_its_name_and_file() {
    let prompt = prompt(Content::Open("Write?".to_owned()), r#"{"file_path":"a.rs","new":"x"}"#);
    assert_eq!(notice(&prompt).command.as_deref(), Some("Bash a.rs"));
}

#[test]
fn a_sealed_question_stays_sealed() {
    let sealed = Sealed { key: "k".to_owned(), nonce: "n".to_owned(), body: "secret".to_owned() };
    let mut prompt = prompt(Content::Sealed(sealed.clone()), "");
    prompt.detail = Some(Content::Sealed(sealed));
    let told = notice(&prompt);
    assert!(told.text.contains("encrypted") && !told.text.contains("secret"), "{}", told.text);
    assert_eq!(told.command, None);
}

#[test]
fn hostile_words_are_cut_and_lose_what_cannot_be_seen() {
    let text = format!("a\u{1b}[2Jb\u{202e}c\r\n\n{}", "x\n".repeat(100_000));
    let input = format!(r#"{{"command":"{}"}}"#, "y".repeat(100_000));
    let told = notice(&prompt(Content::Open(text), &input));

    assert!(told.text.starts_with("a [2Jbc\nx\n"), "{}", told.text);
    assert!(told.text.chars().count() < 1_200, "{}", told.text.len());
    assert!(!told.text.chars().any(|it| it.is_control() && it != '\n'));
    assert!(told.command.unwrap().ends_with("y…"));
}

#[test]
fn runs_and_failures_are_worded_and_what_was_left_out_is_counted() {
    let mut ended = call(Matter::Ended(Outcome::Failed("out of tokens".to_owned())));
    ended.left_out = 3;
    let mut told = Notice::new(&ended, &card(), "");
    assert_eq!(told.title, "Kite failed");
    assert!(told.text.starts_with("out of tokens\nclaude on workshop"), "{}", told.text);
    assert!(told.text.contains("3 more"), "{}", told.text);
    told.add_left_out(2);
    assert_eq!(told.left_out, 5);

    let failed = Notice::new(&call(Matter::Failed("it is away".to_owned())), &card(), "");
    assert_eq!((failed.kind.word(), failed.prompt_id), ("send_failed", None));
    let done = Notice::new(&call(Matter::Ended(Outcome::Completed)), &card(), "");
    assert_eq!(done.title, "Kite finished");
}
