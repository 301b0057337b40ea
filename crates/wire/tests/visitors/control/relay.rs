//! The stage with connections of this dialect.

use domain::session::Report;
use domain::session::prompts::{Detail, Effect};
use domain::session::status::Meta;
use domain::{ConnectionId, Timestamp};
use serde_json::Value;
use wire::control::Connection;
use wire::port::Limits;
use wire::visitor::{Act, Answer, Visitor};

use crate::visitors::stage::{Shell, Stage, machine, person};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);
pub(crate) const SESSION: &str = "sess_1";
pub(crate) const INPUT: &str = r#"{"command":"ls"}"#;

pub(crate) type Relay = Stage<Control>;

pub(crate) struct Control;

impl Shell for Control {
    const START: Timestamp = START;
    const SESSION: &'static str = SESSION;
    type Own = ();

    fn connect(
        stage: &Relay,
        connection: ConnectionId,
        name: &str,
        query: &str,
    ) -> (Box<dyn Visitor>, ()) {
        let limits = Limits { max_content_bytes: 1_000, ..Limits::default() };
        let machine = Connection::new(connection, person(name), query, limits, stage.now);
        (Box::new(machine), ())
    }

    fn carry_out(stage: &mut Relay, _: &str, act: Act) -> Option<(u64, Answer)> {
        Some(match act {
            Act::Read { session, after, upto, limit, ticket } => {
                (ticket, stage.page(&session, after, upto, limit))
            }
            Act::Store { name, media_type, bytes, ticket } => {
                (ticket, stage.store(name, media_type, bytes))
            }
            other @ (Act::Send(_)
            | Act::Close { .. }
            | Act::Follow { .. }
            | Act::Wish { .. }
            | Act::List { .. }
            | Act::Glance { .. }
            | Act::Figures { .. }
            | Act::Launch { .. }
            | Act::Load { .. }
            | Act::Pair { .. }
            | Act::Recognise { .. }
            | Act::Spend { .. }
            | Act::Identify { .. }) => panic!("this dialect never asks for {other:?}"),
        })
    }
}

impl Relay {
    /// A session on a machine, and nobody watching.
    pub(crate) fn new() -> Self {
        let mut meta = Meta::of_agent("codex".into());
        meta.workspace_path = Some("/home/me/project".to_owned());
        Self::begin(Control, meta)
    }

    /// With one client that follows the session.
    pub(crate) fn watched() -> Self {
        let mut relay = Self::new();
        relay.open("a", &format!("session={SESSION}"));
        relay
    }

    pub(crate) fn asks(&mut self, id: &str) {
        let detail = Detail {
            tool: Some("Bash".to_owned()),
            tool_call: Some("t1".into()),
            input: Some(INPUT.to_owned()),
            ..Detail::default()
        };
        let always = [("always", Some(Effect::AllowAlways))];
        let choices = [&machine::YES_NO[..], &always].concat();
        self.report(Report::Asked(machine::prompt(id, &choices, "no", Some(detail), START)));
    }
}

/// The types (and subtypes) of frames, in order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| {
        let kind = frame["type"].as_str().unwrap();
        let more = ["subtype", "state"].map(|name| frame[name].as_str());
        let event = frame["event"]["type"].as_str();
        let words = [Some(kind), more[0], more[1], event].into_iter().flatten();
        words.collect::<Vec<_>>().join("/")
    };
    frames.iter().map(word).collect()
}
