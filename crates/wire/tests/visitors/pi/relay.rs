//! The stage with connections of this dialect.

use domain::content::Failure;
use domain::session::Report;
use domain::session::config::{AgentConfig, SlashCommand};
use domain::session::prompts::{Detail, Effect};
use domain::session::status::Meta;
use domain::{ConnectionId, SessionId, Timestamp};
use serde_json::{Value, json};
use wire::pi::Connection;
use wire::port::Limits;
use wire::visitor::{Act, Answer, Visitor};

use crate::visitors::stage::{Shell, Stage, machine, person};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);
pub(crate) const SESSION: &str = "sess_1";
pub(crate) const PATH: &str = "farhelm/sess_1.jsonl";

pub(crate) type Relay = Stage<Pi>;

pub(crate) struct Pi {
    /// What comes of a launch: nothing yet, if `None`.
    pub(crate) launches: Option<Result<SessionId, Failure>>,
}

impl Shell for Pi {
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

    fn carry_out(stage: &mut Relay, name: &str, act: Act) -> Option<(u64, Answer)> {
        Some(match act {
            Act::List { ticket } => (ticket, Answer::Listed(stage.listings())),
            Act::Launch { wish, ticket } => {
                stage.launched.push(*wish);
                let Some(launched) = stage.shell.launches.clone() else {
                    let outcome = Answer::Launched(Ok("sess_new".into()));
                    stage.late.push((name.to_owned(), ticket, outcome));
                    return None;
                };
                (ticket, Answer::Launched(launched))
            }
            Act::Read { session, after, upto, limit, ticket } => {
                (ticket, stage.page(&session, after, upto, limit))
            }
            Act::Store { name, media_type, bytes, ticket } => {
                (ticket, stage.store(name, media_type, bytes))
            }
            Act::Load { attachment, ticket } => {
                let number = attachment.id.as_str().strip_prefix("file_").unwrap();
                let bytes = stage.stored[number.parse::<usize>().unwrap() - 1].clone();
                (ticket, Answer::Loaded(Ok(bytes)))
            }
            other @ (Act::Send(_)
            | Act::Close { .. }
            | Act::Follow { .. }
            | Act::Wish { .. }
            | Act::Glance { .. }
            | Act::Figures { .. }
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
        let launches = Some(Err(Failure::new("no_proxy_connected", "No machine is connected")));
        Self::begin(Pi { launches }, meta("/home/me/project"))
    }

    /// With one client that follows the session.
    pub(crate) fn watched() -> Self {
        let mut relay = Self::new();
        relay.open("a", &format!("session={SESSION}"));
        relay
    }

    /// One more session.
    pub(crate) fn add(&mut self, id: &str, folder: &str) {
        self.make_room(id, meta(folder));
    }

    /// Says a command and gives its answer, which must come at once; other frames stay heard.
    pub(crate) fn ask(&mut self, name: &str, mut command: Value) -> Value {
        self.count += 1;
        let id = format!("ask_{}", self.count);
        command["id"] = json!(id);
        self.json(name, &command);
        let heard = &mut self.client(name).heard;
        let at = heard.iter().position(|frame| frame["id"] == *id);
        let at = at.unwrap_or_else(|| panic!("no answer to {command} in {heard:#?}"));
        let answer = heard.remove(at);
        assert_eq!((&answer["type"], &answer["command"]), (&json!("response"), &command["type"]));
        answer
    }

    pub(crate) fn asks(&mut self, id: &str, choices: &[(&str, Option<Effect>)]) {
        let detail = Detail { tool: Some("Bash".to_owned()), ..Detail::default() };
        self.asks_about(id, choices, detail);
    }

    pub(crate) fn asks_about(
        &mut self,
        id: &str,
        choices: &[(&str, Option<Effect>)],
        detail: Detail,
    ) {
        self.report(Report::Asked(machine::prompt(id, choices, "later", Some(detail), START)));
    }

    pub(crate) fn calls(&mut self, id: &str, input: &str) {
        self.calls_tool(id, "Bash", Some(input));
    }

    pub(crate) fn configures(&mut self, model: &str, effort: &str) {
        self.keeps(model, effort, None);
    }

    /// With the agent's own record of the session.
    pub(crate) fn keeps(&mut self, model: &str, effort: &str, file: Option<&str>) {
        let session_file = file.map(str::to_owned);
        self.report(Report::Config(AgentConfig { session_file, ..config(model, effort) }));
    }
}

pub(crate) fn config(model: &str, effort: &str) -> AgentConfig {
    AgentConfig {
        model: model.into(),
        permission_mode: None,
        file_access_scope: None,
        available_models: Some(vec!["fake/one".into(), "fake/two".into(), "three".into()]),
        available_modes: None,
        effort: Some(effort.to_owned()),
        available_efforts: Some(vec!["low".to_owned(), "high".to_owned()]),
        session_file: None,
        commands: Some(vec![SlashCommand { name: "compact".to_owned(), description: None }]),
        capabilities: [("steer".to_owned(), true)].into(),
        read_at: START,
    }
}

fn meta(folder: &str) -> Meta {
    let mut meta = Meta::of_agent("codex".into());
    meta.workspace_path = Some(folder.to_owned());
    meta
}

/// The types (and the kinds of updates, roles and methods) of frames, in order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| {
        let update = frame["assistantMessageEvent"]["type"].as_str();
        if let Some(update) = update {
            return update.to_owned();
        }
        let kind = frame["type"].as_str().unwrap();
        let more = [&frame["message"]["role"], &frame["method"], &frame["command"]];
        let words = more.into_iter().filter_map(Value::as_str);
        std::iter::once(kind).chain(words).collect::<Vec<_>>().join("/")
    };
    frames.iter().map(word).collect()
}
