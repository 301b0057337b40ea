//! What one end writes, the other end reads back unchanged.

use std::collections::BTreeSet;

use domain::content::{
    Attachment, Author, Diff, Failure, Location, Message, Part, PlanEntry, PlanStatus, Sealed,
    ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate, Usage,
};
use domain::fleet::{AgentOffer, Earlier, Launch, Limits, Named, Offer};
use domain::passing::{Delta, Voice};
use domain::session::config::{AgentConfig, SlashCommand};
use domain::session::controls::Control;
use domain::session::delivery::{Mode, Send};
use domain::session::prompts::{AnswerDetail, Choice, Detail, Effect, Expiry, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{Activity, CloseReason, Health, Meta, Via};
use domain::session::transcript::{ContextUse, Notice};
use domain::session::{Order, Report};
use domain::{Content, Sequence, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::native::shapes::{Conversation, Conversations, Envelope, ResumableList};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// Names every variant, once for the match and once for the list. A new variant does not compile
/// without a line here, and with its line the tests fail until there is one to write and read.
macro_rules! kinds {
    ($list:ident, $name:ident, $what:ty: $($kind:pat => $word:literal,)+ $(; $never:pat)?) => {
        const $list: &[&str] = &[$($word),+];

        fn $name(what: &$what) -> &'static str {
            match what {
                $($kind => $word,)+
                $($never => panic!("never written: {what:?}"),)?
            }
        }
    };
}

kinds! { REPORT_KINDS, report_kind, Report:
    Report::Status { .. } => "status",
    Report::Message { .. } => "message",
    Report::ToolCall(_) => "tool call",
    Report::ToolUpdate(_) => "tool update",
    Report::Plan(_) => "plan",
    Report::Notice(_) => "notice",
    Report::Context(_) => "context",
    Report::RunStarted { .. } => "run started",
    Report::RunEnded { .. } => "run ended",
    Report::SendDelivered { .. } => "send delivered",
    Report::SendFailed { .. } => "send failed",
    Report::Asked(_) => "asked",
    Report::PromptGone(_) => "prompt gone",
    Report::ControlResult { .. } => "control result",
    Report::Config(_) => "config",
    Report::Resumed { .. } => "resumed",
    Report::Closed { .. } => "closed",
}

kinds! { ORDER_KINDS, order_kind, Order:
    Order::Deliver { .. } => "deliver",
    Order::Answer { .. } => "answer",
    Order::Control { control: Control::Interrupt { .. }, .. } => "interrupt",
    Order::Control { control: Control::SetModel(_), .. } => "set model",
    Order::Control { control: Control::SetMode(_), .. } => "set mode",
    Order::Control { control: Control::SetEffort(_), .. } => "set effort",
    Order::Control { control: Control::ReadConfig, .. } => "read config",
    Order::Control { control: Control::Close, .. } => "close",
    // What answers a prompt is an order of its own.
    ; Order::Control { control: Control::Answer(_), .. }
}

#[test]
fn every_report_is_read_as_it_was_written() {
    let mut kinds = BTreeSet::new();
    for report in reports() {
        kinds.insert(report_kind(&report));
        let frame = encode_report(&"sess_1".into(), &report, Some("agent_interrupt"), Some(7), NOW);
        let text = std::str::from_utf8(&frame).unwrap();
        let envelope = Envelope::read(text).unwrap();
        let read = read_report(&envelope, text, || "unnamed".into(), NOW).unwrap();
        assert_eq!(read, Some(("sess_1".into(), report)), "{text}");
        assert_eq!(link_number(text), Ok(Some(7)));
    }
    assert_eq!(kinds, REPORT_KINDS.iter().copied().collect());
}

#[test]
fn every_order_is_read_as_it_was_written() {
    let mut kinds = BTreeSet::new();
    for order in orders() {
        kinds.insert(order_kind(&order));
        let frame = encode_order(&"sess_1".into(), &order, false, NOW);
        let read = read_from_relay(std::str::from_utf8(&frame).unwrap()).unwrap();
        assert_eq!(read, FromRelay::Order("sess_1".into(), Box::new(order)));
    }
    assert_eq!(kinds, ORDER_KINDS.iter().copied().collect());
}

// spec: native/launch_session.6
#[test]
fn greetings_acks_and_launches_are_read_as_they_were_written() {
    let said = Hello {
        client_name: "farhelm".to_owned(),
        client_version: Some("1".to_owned()),
        machine: Some("attic".into()),
        features: vec!["link".to_owned()],
        link: Some("L".into()),
        offer: Offer {
            agents: Some(vec!["demo".into()]),
            workspaces: vec!["/kite".to_owned()],
            details: vec![],
            limits: None,
        },
    };
    let frame = hello(&said);
    assert_eq!(Hello::read(std::str::from_utf8(&frame).unwrap()), Ok(said));

    let said = Ack {
        connection: "c".into(),
        heartbeat_interval_ms: 1,
        heartbeat_timeout_ms: 2,
        features: vec!["link".to_owned()],
        received: Some(4),
    };
    assert_eq!(read(&ack(&said, NOW)), FromRelay::Ack(said));
    assert_eq!(read(&link_ack(12, NOW)), FromRelay::LinkAck(12));
    let beat = heartbeat_ack(Some("hb".into()), &"c".into(), NOW);
    assert_eq!(read(&beat), FromRelay::HeartbeatAck);
    let failure = Failure::new("unauthorized", "no");
    assert_eq!(
        read(&error("unauthorized", "no", Refused::default(), NOW)),
        FromRelay::Error(failure)
    );

    let launch = Launch {
        request: "l1".into(),
        by: domain::ClientKey { credential: "c".into(), client: None },
        agent: "demo".into(),
        workspace_path: Some("C:\\kite".to_owned()),
        window_title: Some("Kite".to_owned()),
        model: Some("large".into()),
        permission_mode: Some("ask".to_owned()),
        has_worktree: true,
        earlier: None,
        arguments: vec!["--fast".to_owned()],
        machine: "attic".into(),
        via: Via { connection: "c".into(), link: None },
        launched_at: NOW,
        timeout_at: NOW,
        outcome: None,
    };
    let expected = LaunchOrder {
        request: "l1".into(),
        agent: "demo".into(),
        workspace_path: launch.workspace_path.clone(),
        window_title: launch.window_title.clone(),
        model: Some("large".into()),
        permission_mode: Some("ask".to_owned()),
        has_worktree: true,
        earlier: None,
        arguments: vec!["--fast".to_owned()],
        timeout_ms: None,
    };
    assert_eq!(read(&encode_launch(&launch, NOW)), FromRelay::Launch(expected.clone()));
    let earlier = Some(Earlier { id: "thread".to_owned(), fork: true });
    let resumed = Launch { earlier: earlier.clone(), has_worktree: false, ..launch };
    let (encoded, expected) =
        (encode_launch(&resumed, NOW), LaunchOrder { earlier, has_worktree: false, ..expected });
    assert!(String::from_utf8_lossy(&encoded).contains("\"resume_session\""));
    assert_eq!(read(&encoded), FromRelay::Launch(expected));
}

// spec: native/launch_session.9
#[test]
fn a_launch_says_how_long_it_may_take_to_a_linked_proxy_alone() {
    let launch = |link| Launch {
        request: "l1".into(),
        by: domain::ClientKey { credential: "c".into(), client: None },
        agent: "demo".into(),
        workspace_path: None,
        window_title: None,
        model: None,
        permission_mode: None,
        has_worktree: false,
        earlier: None,
        arguments: vec![],
        machine: "attic".into(),
        via: Via { connection: "c".into(), link },
        launched_at: NOW,
        timeout_at: NOW.plus_ms(90_000),
        outcome: None,
    };
    let sent = NOW.plus_ms(1_000);
    let FromRelay::Launch(linked) = read(&encode_launch(&launch(Some("j".into())), sent)) else {
        panic!("a launch")
    };
    assert_eq!(linked.timeout_ms, Some(89_000));
    let plain = encode_launch(&launch(None), sent);
    assert!(!String::from_utf8_lossy(&plain).contains("timeout"));
}

// spec: native/resumable_list.1
#[test]
fn a_machine_is_asked_for_conversations_and_its_answer_is_read() {
    let list = ResumableList { agent_type: Some("claude".into()), limit: Some(3), after: Some(6) };
    let asked = encode_resumable_list(&"q1".into(), &list, NOW);
    assert_eq!(read(&asked), FromRelay::Resumable("q1".into(), list));

    let page = Conversations {
        conversations: vec![Conversation {
            agent_type: "claude".into(),
            conversation_id: "thread".to_owned(),
            title: Some("Kites".to_owned()),
            workspace_path: None,
            updated_at: NOW.into(),
            session_id: Some("sess_1".into()),
        }],
        next: Some(9),
    };
    for listed in [Ok(page), Err(Failure::new("internal", "no"))] {
        let frame = encode_conversations(&"q1".into(), &listed);
        let (text, envelope) = open(&frame);
        assert_eq!(read_conversations(&envelope, text), Ok(("q1".into(), listed)));
    }
}

// spec: native/proxy_catalog.1
#[test]
fn what_a_machine_offers_is_read_as_it_was_written() {
    let offer = Offer {
        agents: Some(vec!["demo".into()]),
        workspaces: vec!["/kite".to_owned()],
        details: vec![AgentOffer {
            agent: "codex".into(),
            display_name: Some("Codex".to_owned()),
            is_installed: false,
            version: Some("1.2".to_owned()),
            is_logged_in: Some(false),
            install: Some("npm install".to_owned()),
        }],
        limits: Some(Limits { idle_stop_ms: Some(60_000), ..Limits::default() }),
    };
    let frame = encode_catalog(&offer);
    let (text, _) = open(&frame);
    assert_eq!(read_catalog(text), Ok(offer));
}

#[test]
fn launch_results_and_snapshots_are_read_as_they_were_written() {
    let frame = encode_launched(&"l1".into(), &"sess_1".into(), &"demo".into(), Some(3));
    let (text, envelope) = open(&frame);
    assert_eq!(read_launched(&envelope, text), Ok(("l1".into(), "sess_1".into())));
    let failure = Failure::new("path_not_allowed", "no");
    let frame = encode_launch_failed(&"l1".into(), &"demo".into(), &failure, Some(3));
    let (text, envelope) = open(&frame);
    assert_eq!(read_launch_failed(&envelope, text), Ok(("l1".into(), failure)));
    assert_eq!(link_number(text), Ok(Some(3)));

    let meta = Meta {
        signature: Some("sig".into()),
        workspace_path: Some("/kite".to_owned()),
        ..Meta::of_agent("codex".into())
    };
    let named = |session: Option<&str>| Named {
        session: session.map(Into::into),
        meta: meta.clone(),
        health: Health::Degraded,
        activity: Some(activity()),
        is_over: false,
    };
    let over = Named { is_over: true, ..named(Some("sess_2")) };
    let all = vec![named(Some("sess_1")), over, named(None)];
    let frame = encode_snapshot(&all);
    assert_eq!(read_snapshot(std::str::from_utf8(&frame).unwrap(), NOW), Ok(all));
}

#[test]
fn an_unknown_type_from_the_relay_is_no_error() {
    let text = r#"{"type":"news","protocol_version":1}"#;
    assert_eq!(read_from_relay(text), Ok(FromRelay::Other("news".to_owned())));
}

proptest! {
    #[test]
    fn any_delta_is_read_as_it_was_written(words in ".*", part in 0u32..9, offset: u64, thinking: bool) {
        let voice = if thinking { Voice::Thinking } else { Voice::Text };
        let words = Content::Open(words);
        let delta = Delta { message: "m".into(), part, voice, offset, words };
        let frame = encode_delta(&"sess_1".into(), &delta);
        let (text, envelope) = open(&frame);
        prop_assert_eq!(read_delta(&envelope, text), Ok(("sess_1".into(), delta)));
    }

    #[test]
    fn any_send_is_read_as_it_was_written(text in ".*", id in "[ -~]{1,64}", attempt: u64) {
        let send = Send { id: id.into(), text: Content::Open(text), ..send() };
        let order = Order::Deliver { send, attempt: Sequence(attempt) };
        let frame = encode_order(&"sess_1".into(), &order, false, NOW);
        prop_assert_eq!(read(&frame), FromRelay::Order("sess_1".into(), Box::new(order)));
    }

    #[test]
    fn no_text_makes_reading_panic(text in ".*", kind in "[a-z_]{1,20}") {
        let _ = read_from_relay(&text);
        let framed = format!(r#"{{"type":"{kind}","protocol_version":1,"x":{text}}}"#);
        let _ = read_from_relay(&framed);
    }
}

fn read(frame: &[u8]) -> FromRelay {
    read_from_relay(std::str::from_utf8(frame).unwrap()).unwrap()
}

fn open(frame: &[u8]) -> (&str, Envelope) {
    let text = std::str::from_utf8(frame).unwrap();
    (text, Envelope::read(text).unwrap())
}

fn activity() -> Activity {
    Activity { kind: "thinking".to_owned(), label: Some("…".to_owned()), updated_at: NOW }
}

fn sealed() -> Sealed {
    Sealed { key: "k".to_owned(), nonce: "bg==".to_owned(), body: "Yg==".to_owned() }
}

fn reports() -> Vec<Report> {
    let message = |parts| Report::Message {
        message: Message {
            id: "a1".into(),
            author: Author::Assistant,
            parts,
            created_at: NOW,
            run: Some("run_1".into()),
            parent: Some("t0".into()),
            digest: None,
        },
        has_own_id: true,
        echo: None,
    };
    let file = Attachment {
        id: "f".into(),
        name: "cat.png".to_owned(),
        kind: "uploaded_file".to_owned(),
        media_type: Some("image/png".to_owned()),
    };
    let parts = vec![
        Part::Thinking("hm".to_owned()),
        Part::Text("so".to_owned()),
        Part::Image(file.clone()),
        Part::File(file),
        Part::ToolCall("t1".into()),
    ];
    let detail = ToolDetail {
        title: Some("ls".to_owned()),
        input: Some(r#"{"command":"ls"}"#.to_owned()),
        output: Some("kite\n".to_owned()),
        diffs: vec![Diff { path: "a".to_owned(), old_text: None, new_text: Some("x".to_owned()) }],
        locations: vec![Location { path: "a".to_owned(), line: Some(3) }],
    };
    let call = ToolCall {
        id: "t1".into(),
        tool: "Bash".to_owned(),
        kind: ToolKind::Execute,
        status: ToolStatus::Running,
        detail: Content::Open(detail.clone()),
        run: Some("run_1".into()),
        parent: None,
    };
    let usage = Usage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        cached_tokens: Some(3),
        cost_micro_usd: Some(1_500_000),
    };
    let plan = vec![PlanEntry { text: "first".to_owned(), status: PlanStatus::InProgress }];
    let attempt = Some(Sequence(4));
    vec![
        Report::Status {
            health: Health::AgentUiChanged,
            activity: Some(activity()),
            reason: Some("why".to_owned()),
        },
        message(Content::Open(vec![Part::Text("Done.".to_owned())])),
        message(Content::Open(parts)),
        message(Content::Sealed(sealed())),
        Report::ToolCall(call.clone()),
        Report::ToolCall(ToolCall { detail: Content::Sealed(sealed()), ..call }),
        Report::ToolUpdate(ToolUpdate {
            id: "t1".into(),
            status: ToolStatus::Failed,
            detail: Content::Open(detail),
        }),
        Report::Plan(Content::Open(plan)),
        Report::Notice(Notice { kind: "rate_limit".to_owned(), text: "slow".to_owned() }),
        Report::Context(ContextUse { used_tokens: 1, window_tokens: 9 }),
        Report::RunStarted { run: "run_1".into(), cause: Some("m1".into()) },
        Report::RunEnded {
            run: "run_1".into(),
            outcome: Outcome::Failed("tired".to_owned()),
            usage: Some(usage),
        },
        Report::SendDelivered { id: "m1".into(), attempt, run: Some("run_1".into()) },
        Report::SendFailed { id: "m1".into(), attempt, failure: Failure::new("x", "y") },
        Report::Asked(prompt()),
        Report::PromptGone("p1".into()),
        Report::ControlResult { request: "r1".into(), failure: None },
        Report::ControlResult { request: "r1".into(), failure: Some(Failure::new("x", "y")) },
        Report::Config(config()),
        Report::Resumed { prompts: vec!["p1".into()], run: Some("run_1".into()) },
        Report::Resumed { prompts: vec![], run: None },
        Report::Closed { reason: CloseReason::ProxyShutdown, request: None },
        Report::Closed { reason: CloseReason::UserRequested, request: Some("c1".into()) },
    ]
}

fn prompt() -> Prompt {
    Prompt {
        id: "p1".into(),
        text: Content::Open("Run it?".to_owned()),
        choices: vec![Choice {
            id: "yes".into(),
            label: "Yes".to_owned(),
            is_default: true,
            effect: Some(Effect::AllowOnce),
            wants_answers: false,
        }],
        expiry: Some(Expiry {
            at: NOW.plus_ms(30_000),
            timeout_ms: 30_000,
            choice: Some("yes".into()),
        }),
        detected_at: NOW,
        run: Some("run_1".into()),
        detail: Some(Content::Open(Detail {
            tool: Some("Bash".to_owned()),
            tool_call: Some("t1".into()),
            input: Some(r#"{"command":"ls"}"#.to_owned()),
            diffs: vec![],
            suggestions: Some("[1]".to_owned()),
            questions: Some("[2]".to_owned()),
        })),
    }
}

fn config() -> AgentConfig {
    AgentConfig {
        model: "large".into(),
        permission_mode: Some("ask".to_owned()),
        file_access_scope: Some("none".to_owned()),
        available_models: Some(vec!["large".into()]),
        available_modes: Some(vec!["ask".to_owned()]),
        effort: Some("high".to_owned()),
        available_efforts: Some(vec!["high".to_owned()]),
        session_file: None,
        commands: Some(vec![SlashCommand { name: "compact".to_owned(), description: None }]),
        capabilities: [("steer".to_owned(), true)].into(),
        read_at: NOW,
    }
}

fn send() -> Send {
    Send {
        id: "m1".into(),
        text: Content::Open("hello".to_owned()),
        attachments: vec![Attachment {
            id: "f".into(),
            name: "cat.png".to_owned(),
            kind: "uploaded_file".to_owned(),
            media_type: None,
        }],
        mode: Some(Mode::Steer),
        by: "ada".to_owned(),
        created_at: NOW,
        digest: None,
    }
}

fn orders() -> Vec<Order> {
    let answer = |choice: Option<&str>, by_person, detail| Order::Answer {
        request: "r1".into(),
        prompt: "p1".into(),
        choice: choice.map(Into::into),
        by_person,
        detail,
    };
    let detail = AnswerDetail {
        updated_input: Some(r#"{"command":"pwd"}"#.to_owned()),
        message: Some("rather".to_owned()),
        answers: Some("[1]".to_owned()),
        stop: true,
    };
    let control = |control| Order::Control { request: "r1".into(), control };
    vec![
        Order::Deliver { send: send(), attempt: Sequence(4) },
        Order::Deliver {
            send: Send { text: Content::Sealed(sealed()), mode: None, ..send() },
            attempt: Sequence(5),
        },
        answer(Some("yes"), true, Some(Content::Open(detail))),
        answer(Some("yes"), true, Some(Content::Sealed(sealed()))),
        answer(None, false, None),
        control(Control::Interrupt { run: Some("run_1".into()) }),
        control(Control::Interrupt { run: None }),
        control(Control::SetModel("large".into())),
        control(Control::SetMode("plan".to_owned())),
        control(Control::SetEffort("high".to_owned())),
        control(Control::ReadConfig),
        control(Control::Close),
    ]
}
