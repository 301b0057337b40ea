//! What is written is read back: events, shapes and frames of every type.

use domain::content::{
    Attachment, Author, Diff, Failure, Location, Message, Part, PlanEntry, PlanStatus, Sealed,
    ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate, Usage,
};
use domain::passing::{Delta, Voice};
use domain::session::status::{Activity, CloseReason, DownReason, Health, Meta, Via};
use domain::session::{
    Event, Recorded, config, controls, delivery, prompts, queue, runs, status, transcript,
};
use domain::{Content, Sequence, SessionId, Timestamp};
use proptest::prelude::*;
use serde_json::Value;
use wire::native::frames::{ClientFrame, RelayFrame};
use wire::native::shapes::{self, Envelope};
use wire::native::{Form, encode_delta, encode_event};

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,20}", Just("\"\\\u{1}\u{2028}\u{1F600}\n".to_owned())]
}

fn id<T: From<String> + std::fmt::Debug>() -> impl Strategy<Value = T> {
    "[a-z0-9_]{1,12}".prop_map(T::from)
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0..253_402_300_799_999_u64).prop_map(Timestamp)
}

fn json() -> impl Strategy<Value = String> {
    text().prop_map(|text| serde_json::json!({ "a": [text, 1, null] }).to_string())
}

fn sealed() -> impl Strategy<Value = Sealed> {
    (text(), text(), text()).prop_map(|(key, nonce, body)| Sealed { key, nonce, body })
}

fn content<T: std::fmt::Debug + Clone>(
    open: impl Strategy<Value = T>,
) -> impl Strategy<Value = Content<T>> {
    prop_oneof![3 => open.prop_map(Content::Open), 1 => sealed().prop_map(Content::Sealed)]
}

fn failure() -> impl Strategy<Value = Failure> {
    ("[a-z_]{1,12}", text()).prop_map(|(code, words)| Failure::new(&code, words))
}

fn file() -> impl Strategy<Value = Attachment> {
    (id(), text(), prop::option::of(text())).prop_map(|(id, name, media_type)| Attachment {
        id,
        name,
        kind: "uploaded_file".to_owned(),
        media_type,
    })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::Text),
        text().prop_map(Part::Thinking),
        file().prop_map(Part::Image),
        file().prop_map(Part::File),
        id().prop_map(Part::ToolCall),
    ]
}

fn message() -> BoxedStrategy<Message> {
    let author = prop::sample::select(vec![Author::User, Author::Assistant, Author::System]);
    let parts = content(prop::collection::vec(part(), 1..4));
    (id(), author, parts, time(), prop::option::of(id()), prop::option::of(id()))
        .prop_map(|(id, author, parts, created_at, run, parent)| Message {
            id,
            author,
            parts,
            created_at,
            run,
            parent,
            digest: None,
        })
        .boxed()
}

fn diffs() -> impl Strategy<Value = Vec<Diff>> {
    let diff = (text(), prop::option::of(text()), prop::option::of(text()))
        .prop_map(|(path, old_text, new_text)| Diff { path, old_text, new_text });
    prop::collection::vec(diff, 0..3)
}

fn tool_update() -> BoxedStrategy<ToolUpdate> {
    let places =
        (text(), prop::option::of(any::<u32>())).prop_map(|(path, line)| Location { path, line });
    let option = || prop::option::of(text());
    let detail = (
        option(),
        prop::option::of(json()),
        option(),
        diffs(),
        prop::collection::vec(places, 0..2),
    )
        .prop_map(|(title, input, output, diffs, locations)| ToolDetail {
            title,
            input,
            output,
            diffs,
            locations,
        });
    let status = prop::sample::select(vec![
        ToolStatus::Pending,
        ToolStatus::Running,
        ToolStatus::Completed,
        ToolStatus::Failed,
        ToolStatus::Cancelled,
    ]);
    (id(), status, content(detail))
        .prop_map(|(id, status, detail)| ToolUpdate { id, status, detail })
        .boxed()
}

fn tool_call() -> BoxedStrategy<ToolCall> {
    let kind = prop::sample::select(vec![
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Execute,
        ToolKind::Search,
        ToolKind::Fetch,
        ToolKind::Other,
    ]);
    (tool_update(), text(), kind, prop::option::of(id()), prop::option::of(id()))
        .prop_map(|(update, tool, kind, run, parent)| ToolCall {
            id: update.id,
            tool,
            kind,
            status: update.status,
            detail: update.detail,
            run,
            parent,
        })
        .boxed()
}

fn prompt() -> BoxedStrategy<prompts::Prompt> {
    let effect = prop::option::of(prop::sample::select(vec![
        prompts::Effect::AllowOnce,
        prompts::Effect::AllowAlways,
        prompts::Effect::Reject,
    ]));
    let choice =
        (id(), text(), any::<bool>(), effect).prop_map(|(id, label, is_default, effect)| {
            prompts::Choice { id, label, is_default, effect, wants_answers: false }
        });
    let option = || prop::option::of(json());
    let detail = (text(), prop::option::of(id()), option(), diffs(), option(), option()).prop_map(
        |(tool, tool_call, input, diffs, suggestions, questions)| prompts::Detail {
            tool: Some(tool),
            tool_call,
            input,
            diffs,
            suggestions,
            questions,
        },
    );
    let detail = prop::option::of(content(detail));
    let expiry = prop::option::of((0..1_000_000_u64, any::<bool>()));
    let choices = prop::collection::vec(choice, 1..4);
    (id(), content(text()), choices, expiry, time(), prop::option::of(id()), detail)
        .prop_map(|(id, text, choices, expiry, detected_at, run, detail)| {
            let first = choices[0].id.clone();
            let expiry = expiry.map(|(timeout_ms, named)| prompts::Expiry {
                at: Timestamp(7).plus_ms(timeout_ms),
                timeout_ms,
                choice: named.then_some(first),
            });
            let prompt = prompts::Prompt { id, text, choices, expiry, detected_at, run, detail };
            wire::questions::marked(prompt)
        })
        .boxed()
}

fn config() -> BoxedStrategy<config::AgentConfig> {
    let option = || prop::option::of(text());
    let list = || prop::option::of(prop::collection::vec(text(), 0..3));
    let models = prop::option::of(prop::collection::vec(id(), 0..3));
    let abilities = prop::collection::btree_map(text(), any::<bool>(), 0..3);
    let command = (text(), option())
        .prop_map(|(name, description)| config::SlashCommand { name, description });
    let commands = prop::option::of(prop::collection::vec(command, 0..3));
    let told = (commands, option(), abilities, time());
    (id(), option(), option(), models, list(), option(), list(), told)
        .prop_map(|(model, mode, scope, models, modes, effort, efforts, told)| {
            let (commands, session_file, capabilities, read_at) = told;
            config::AgentConfig {
                model,
                permission_mode: mode,
                file_access_scope: scope,
                available_models: models,
                available_modes: modes,
                effort,
                available_efforts: efforts,
                commands,
                session_file,
                capabilities,
                read_at,
            }
        })
        .boxed()
}

fn usage() -> impl Strategy<Value = Usage> {
    let option = || prop::option::of(any::<u64>());
    (option(), option(), option(), prop::option::of(0..1_000_000_000_000_u64)).prop_map(
        |(input_tokens, output_tokens, cached_tokens, cost_micro_usd)| Usage {
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micro_usd,
        },
    )
}

fn outcome() -> impl Strategy<Value = runs::Outcome> {
    prop_oneof![
        Just(runs::Outcome::Completed),
        Just(runs::Outcome::Interrupted),
        text().prop_map(runs::Outcome::Failed),
        (text(), prop::option::of(0..1_000_000_u64))
            .prop_map(|(why, lasted_ms)| runs::Outcome::Cut(runs::Cut { why, lasted_ms })),
    ]
}

fn plan() -> BoxedStrategy<Content<Vec<PlanEntry>>> {
    let status = prop::sample::select(vec![
        PlanStatus::Pending,
        PlanStatus::InProgress,
        PlanStatus::Completed,
    ]);
    let line = (text(), status).prop_map(|(text, status)| PlanEntry { text, status });
    content(prop::collection::vec(line, 0..4)).boxed()
}

fn delivered() -> BoxedStrategy<delivery::Event> {
    let mode = prop::option::of(prop::sample::select(vec![
        delivery::Mode::Steer,
        delivery::Mode::FollowUp,
    ]));
    let files = prop::collection::vec(file(), 0..2);
    let send = (id(), content(text()), files, mode, text(), time()).prop_map(
        |(id, text, attachments, mode, by, created_at)| delivery::Send {
            id,
            text,
            attachments,
            mode,
            by,
            created_at,
            digest: None,
        },
    );
    prop_oneof![
        send.prop_map(delivery::Event::Accepted),
        id().prop_map(|id| delivery::Event::HandedOver { id, link: None }),
        (id(), prop::option::of(id())).prop_map(|(id, run)| delivery::Event::Delivered { id, run }),
        (id(), failure()).prop_map(|(id, failure)| delivery::Event::Failed { id, failure }),
    ]
    .boxed()
}

fn prompted() -> BoxedStrategy<prompts::Event> {
    let settled = prop_oneof![
        text().prop_map(|name| prompts::Settled::ByPerson { name }),
        Just(prompts::Settled::ByExpiry),
        Just(prompts::Settled::Withdrawn),
    ];
    prop_oneof![
        prompt().prop_map(prompts::Event::Asked),
        (id(), prop::option::of(id()), settled, id()).prop_map(
            |(prompt, choice, settled, request)| prompts::Event::Settled {
                prompt,
                choice,
                settled,
                request,
                detail: None,
            }
        ),
        id().prop_map(prompts::Event::Confirmed),
        (prompt(), failure()).prop_map(|(prompt, failure)| prompts::Event::Reopened {
            prompt: Box::new(prompt),
            failure,
        }),
    ]
    .boxed()
}

fn stated() -> BoxedStrategy<status::Event> {
    let health = || {
        prop::sample::select(vec![
            Health::Healthy,
            Health::Degraded,
            Health::Disconnected,
            Health::ScrapingFailed,
            Health::AgentUiChanged,
        ])
    };
    let activity = || {
        prop::option::of(
            (text(), prop::option::of(text()), time())
                .prop_map(|(kind, label, updated_at)| Activity { kind, label, updated_at }),
        )
    };
    let option = || prop::option::of(text());
    let meta = (id(), option(), option(), option(), option(), prop::option::of(id())).prop_map(
        |(agent, display_name, window_title, workspace_path, target_id, machine)| Meta {
            display_name,
            window_title,
            workspace_path,
            target_id,
            machine,
            ..Meta::of_agent(agent)
        },
    );
    let via = || Via { connection: "c".into(), link: None };
    prop_oneof![
        (meta, health(), activity()).prop_map(move |(meta, health, activity)| {
            status::Event::Up { via: via(), meta: Box::new(meta), health, activity }
        }),
        prop::sample::select(vec![DownReason::ProxyDisconnected, DownReason::TargetGone])
            .prop_map(|reason| status::Event::Down { reason, since: None }),
        (health(), activity(), option()).prop_map(|(health, activity, reason)| {
            status::Event::Changed { health, activity, reason }
        }),
        (
            prop::sample::select(vec![
                CloseReason::UserRequested,
                CloseReason::TargetClosed,
                CloseReason::ProxyShutdown,
            ]),
            prop::option::of(id()),
        )
            .prop_map(|(reason, request)| status::Event::Closed { reason, request }),
        text().prop_map(status::Event::Renamed),
        any::<bool>().prop_map(status::Event::Archived),
    ]
    .boxed()
}

fn queued() -> BoxedStrategy<queue::Event> {
    prop_oneof![
        Just(queue::Event::Held),
        Just(queue::Event::Resumed),
        (id(), content(text())).prop_map(|(id, text)| queue::Event::Edited { id, text }),
        (id(), 0..9_usize).prop_map(|(id, to)| queue::Event::Moved { id, to }),
    ]
    .boxed()
}

fn said() -> BoxedStrategy<transcript::Event> {
    prop_oneof![
        message().prop_map(transcript::Event::Message),
        tool_call().prop_map(transcript::Event::ToolCall),
        tool_update().prop_map(transcript::Event::ToolUpdate),
        plan().prop_map(transcript::Event::Plan),
        (text(), text()).prop_map(|(kind, text)| {
            transcript::Event::Notice(transcript::Notice { kind, text })
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(used_tokens, window_tokens)| {
            transcript::Event::Context(transcript::ContextUse { used_tokens, window_tokens })
        }),
        any::<u64>().prop_map(|d| transcript::Event::Echoed(domain::content::Digest(d))),
    ]
    .boxed()
}

fn event() -> BoxedStrategy<Event> {
    let started =
        (id(), prop::option::of(id())).prop_map(|(run, cause)| runs::Event::Started { run, cause });
    let ended = (id(), outcome(), prop::option::of(usage()))
        .prop_map(|(run, outcome, usage)| runs::Event::Ended { run, outcome, usage });
    let by = || domain::ClientKey { credential: "c".into(), client: None };
    let requested = id().prop_map(move |request| {
        let control = controls::Control::ReadConfig;
        controls::Event::Requested { request, by: by(), control }
    });
    let settled = (id(), prop::option::of(failure())).prop_map(move |(request, failure)| {
        let kind = controls::Kind::SetModel;
        controls::Event::Settled { request, by: by(), kind, failure }
    });
    prop_oneof![
        delivered().prop_map(Event::Delivery),
        queued().prop_map(Event::Queue),
        prompted().prop_map(Event::Prompt),
        started.prop_map(Event::Run),
        ended.prop_map(Event::Run),
        requested.prop_map(Event::Control),
        settled.prop_map(Event::Control),
        config().prop_map(Event::Config),
        stated().prop_map(Event::Status),
        said().prop_map(Event::Transcript),
    ]
    .boxed()
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Reads a frame of the relay and writes it again: the same JSON.
fn rewritten(bytes: &[u8]) -> Value {
    let (envelope, frame) = RelayFrame::parse(std::str::from_utf8(bytes).unwrap()).unwrap();
    value(&frame.encode(envelope))
}

fn reads_back(recorded: &Recorded) {
    let session = SessionId::from("sess_1");
    let frames = [
        encode_event(&session, recorded, Form::Plain),
        encode_event(&session, recorded, Form::Full),
    ];
    for frame in frames.into_iter().flatten() {
        let frame_value = value(&frame);
        assert_eq!(rewritten(&frame), frame_value);
        assert_eq!(frame_value["sequence"], Value::from(recorded.sequence.0));
        assert!(frame_value["event_id"].as_str().unwrap().starts_with("evt_sess_1_"));
        assert!(frame_value.get("server_ts").is_some());
    }
}

/// The ledger's fixtures hold one of each: a new kind of event does not pass `store` without one.
#[test]
fn one_event_of_each_kind_that_is_stored_is_a_frame_that_reads_back() {
    const STORED: &str = include_str!("../../../../fixtures/ledger/session-v1.jsonl");
    for line in STORED.lines() {
        reads_back(&serde_json::from_str(line).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// The frames that are written by hand say what the declared ones say, field by field.
    #[test]
    fn every_event_is_a_frame_that_reads_back(
        event in event(), sequence in 1..u64::MAX / 2, at in time(),
    ) {
        reads_back(&Recorded { sequence: Sequence(sequence), at, position: None, event });
    }

    /// Those that there are most of are written without their shapes.
    #[test]
    fn a_message_event_says_what_the_shape_of_its_message_says(message in message(), at in time()) {
        let session = SessionId::from("sess_\"1\"");
        let event = Event::Transcript(transcript::Event::Message(message.clone()));
        let recorded = Recorded { sequence: Sequence(7), at, position: None, event };
        for (form, shape) in [
            (Form::Plain, shapes::Message::plain(&message)),
            (Form::Full, shapes::Message::full(&message)),
        ] {
            let Some(frame) = encode_event(&session, &recorded, form) else { continue };
            let frame = value(&frame);
            prop_assert_eq!(&frame["message"], &serde_json::to_value(&shape).unwrap());
            prop_assert_eq!(&frame["event_id"], "evt_sess_\"1\"_7");
            prop_assert_eq!(&frame["session_id"], "sess_\"1\"");
            prop_assert_eq!(&frame["server_ts"], &serde_json::to_value(shapes::Time(at)).unwrap());
        }
    }

    #[test]
    fn a_message_comes_back_as_it_was(message in message()) {
        let text = serde_json::to_string(&shapes::Message::full(&message)).unwrap();
        let shape: shapes::Message<'_> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(shape.into_model(message.id.clone(), Timestamp(0)), message);
    }

    #[test]
    fn a_tool_call_comes_back_as_it_was(call in tool_call()) {
        let text = serde_json::to_string(&shapes::ToolCall::from(&call)).unwrap();
        let shape: shapes::ToolCall = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(ToolCall::from(shape), call);
    }

    #[test]
    fn a_prompt_comes_back_as_it_was(prompt in prompt()) {
        let text = serde_json::to_string(&shapes::Prompt::full(&prompt)).unwrap();
        let shape: shapes::Prompt = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(shape.into_model(Timestamp(7)).unwrap(), prompt);
    }

    #[test]
    fn a_configuration_comes_back_as_it_was(config in config()) {
        let text = serde_json::to_string(&shapes::AgentConfig::full(&config)).unwrap();
        let shape: shapes::AgentConfig = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(shape.into_model(Timestamp(0)), config);
    }

    #[test]
    fn the_end_of_a_run_comes_back_as_it_was(outcome in outcome(), usage in prop::option::of(usage())) {
        let ended = shapes::RunEnded::of(&"r".into(), &outcome, usage.as_ref());
        let text = serde_json::to_string(&ended).unwrap();
        let shape: shapes::RunEnded = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(shape.into_model(), ("r".into(), outcome, usage));
    }

    #[test]
    fn a_plan_comes_back_as_it_was(plan in plan()) {
        let text = serde_json::to_string(&shapes::Plan::from(&plan)).unwrap();
        let shape: shapes::Plan = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(Content::from(shape), plan);
    }

    #[test]
    fn a_delta_comes_back_as_it_was(
        words in content(text()), offset in any::<u64>(), thinks in any::<bool>(), part in any::<u32>(),
    ) {
        let voice = if thinks { Voice::Thinking } else { Voice::Text };
        let delta = Delta { message: "m".into(), part, voice, offset, words };
        let frame = encode_delta(&"sess_1".into(), Sequence(4), &delta);
        prop_assert_eq!(rewritten(&frame), value(&frame));
        let shape: shapes::MessageDelta<'_> = serde_json::from_slice(&frame).unwrap();
        prop_assert_eq!(shape.after_sequence, Some(Sequence(4)));
        prop_assert_eq!(shape.into_model(), delta);
    }

    /// Every command of a client, with every field that it can have.
    #[test]
    fn every_command_reads_back(
        kind in prop::sample::select(ClientFrame::KINDS), words in text(), name in "[a-z]{1,9}", at in time(), number in any::<u32>(),
        any_json in json(), file in file(),
    ) {
        let attachment = serde_json::to_value(shapes::Attachment::from(&file)).unwrap();
        let body = serde_json::json!({
            "peer_role": "browser", "client_name": &words, "client_id": &name, "features": [&words],
            "resume": {"sessions": [{"session_id": "sess_1", "last_sequence": number}]},
            "client_ts": shapes::Time(at), "client_message_id": &name, "content": &words,
            "attachments": [attachment], "created_at": shapes::Time(at), "mode": "steer",
            "after_sequence": number, "agent_type": &name, "workspace_path": &words,
            "window_title": &words, "machine_label": &name, "model_id": &name,
            "permission_mode": &words, "prompt_id": &name, "choice_id": &name,
            "message": &words, "stop": true, "effort": &words, "title": &words,
            "sessions": [&words], "position": number, "conversation_id": &name, "fork": true,
            "tool_call_id": &name, "at_sequence": number, "offset": number, "limit": number,
            "after": number,
        });
        let mut frame = body;
        frame["type"] = kind.into();
        frame["protocol_version"] = 1.into();
        frame["request_id"] = name.as_str().into();
        frame["session_id"] = "sess_1".into();
        let text = frame.to_string();
        let text = text.replacen('{', &format!(r#"{{"updated_input":{any_json},"#), 1);
        let (envelope, first) = ClientFrame::parse(&text).unwrap();
        let written = first.encode(envelope.clone());
        let (again, second) = ClientFrame::parse(std::str::from_utf8(&written).unwrap()).unwrap();
        prop_assert_eq!(envelope, again);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn an_envelope_comes_back_as_it_was(
        request in prop::option::of("[a-z]{1,9}"), sequence in prop::option::of(any::<u64>()), at in time(),
    ) {
        let envelope = Envelope {
            request_id: request.map(Into::into),
            sequence: sequence.map(Sequence),
            session_id: Some("sess_1".into()),
            server_ts: Some(shapes::Time(at)),
            ..Envelope::new("heartbeat")
        };
        let text = serde_json::to_string(&envelope).unwrap();
        prop_assert_eq!(Envelope::read(&text).unwrap(), envelope);
    }
}
