//! The stage with connections of this dialect.

use domain::content::{Author, Failure, Part, ToolStatus, Usage};
use domain::session::prompts::{Detail, Effect};
use domain::session::status::Meta;
use domain::session::{Command, Report, Wish};
use domain::{ConnectionId, Content, Timestamp};
use serde_json::{Value, json};
use wire::blob::Connection;
use wire::port::Limits;
use wire::visitor::{Act, Answer, Figures, Visitor};

use crate::visitors::stage::{Shell, Stage, machine, person};

pub(crate) const START: Timestamp = Timestamp(1_769_423_400_000);
/// The document's sessions.
pub(crate) const SESSION: &str = "550e8400-e29b-41d4-a906-446655440000";
pub(crate) const MADE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
pub(crate) const CONNECT: &str =
    r#"{"type":"req","id":"connect-1","method":"connect","params":{"version":"1"}}"#;
/// A page has room for so much, whatever is asked for.
const PAGE_EVENTS_MAX: usize = 64;

pub(crate) type Relay = Stage<Blob>;

pub(crate) struct Blob {
    pub(crate) has_machine: bool,
}

impl Shell for Blob {
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
            Act::Glance { session, ticket } => (ticket, Answer::Glanced(stage.followed(&session))),
            Act::Figures { ticket } => {
                let (clients, sessions) = (stage.clients.len() as u64, stage.rooms.len() as u64);
                (ticket, Answer::Figures(Figures { uptime_ms: 3_600_500, clients, sessions }))
            }
            Act::Read { session, after, upto, limit, ticket } => {
                (ticket, stage.page(&session, after, upto, limit.min(PAGE_EVENTS_MAX)))
            }
            Act::List { ticket } => (ticket, Answer::Listed(stage.listings())),
            Act::Launch { wish, ticket } => {
                stage.launched.push(*wish);
                let launched = if stage.shell.has_machine {
                    stage.make_room(MADE, meta());
                    Ok(MADE.into())
                } else {
                    Err(Failure::new("no_proxy_connected", "No machine is connected"))
                };
                (ticket, Answer::Launched(launched))
            }
            other @ (Act::Send(_)
            | Act::Close { .. }
            | Act::Follow { .. }
            | Act::Wish { .. }
            | Act::Store { .. }
            | Act::Load { .. }
            | Act::Pair { .. }
            | Act::Recognise { .. }
            | Act::Spend { .. }
            | Act::Identify { .. }) => panic!("this dialect never asks for {other:?}"),
        })
    }

    fn usage() -> Option<Usage> {
        Some(Usage { input_tokens: Some(1_200), output_tokens: Some(34), ..Usage::default() })
    }
}

impl Relay {
    /// A session on a machine, and nobody watching.
    pub(crate) fn new() -> Self {
        let mut relay = Self::begin(Blob { has_machine: true }, meta());
        relay.wish(Wish::Rename("AI architecture discussion".to_owned()));
        relay
    }

    /// With one client that is connected and in the session.
    pub(crate) fn watched() -> Self {
        let mut relay = Self::new();
        relay.join("a");
        relay
    }

    /// A client that is connected and in the session, all of which it has heard.
    pub(crate) fn join(&mut self, name: &str) {
        self.connect(name);
        self.goes(name, SESSION);
    }

    /// A client goes to a session, and has heard everything of it.
    pub(crate) fn goes(&mut self, name: &str, session: &str) {
        self.ask(name, "join", "sessions.switch", &json!({ "sessionId": session }));
        self.heard(name);
    }

    pub(crate) fn connect(&mut self, name: &str) {
        self.open(name, "");
        self.text(name, CONNECT);
        assert_eq!(self.heard(name)[0]["ok"], true);
    }

    /// A session on its machine, which speaks of it from then on.
    pub(crate) fn make(&mut self, id: &str) {
        self.make_room(id, meta());
        self.here = id.into();
    }

    /// Asks, without looking at the answer.
    pub(crate) fn ask(&mut self, name: &str, id: &str, method: &str, params: &Value) {
        self.json(name, &json!({ "type": "req", "id": id, "method": method, "params": params }));
    }

    /// Asks, and takes the answer, which is the only thing that is heard.
    pub(crate) fn asked(&mut self, name: &str, method: &str, params: &Value) -> Value {
        self.ask(name, "q", method, params);
        let mut heard = self.heard(name);
        assert_eq!(heard.len(), 1, "{heard:#?}");
        assert_eq!(heard[0]["id"], "q");
        heard.remove(0)
    }

    /// Says something to the agent, and takes its run's name.
    pub(crate) fn sends(&mut self, name: &str, id: &str, text: &str) -> String {
        self.ask(name, id, "agent", &json!({ "message": text }));
        let heard = &self.client(name).heard;
        let answer = heard.iter().find(|frame| frame["id"] == id).unwrap();
        answer["payload"]["runId"].as_str().unwrap().to_owned()
    }

    /// Somebody in another dialect.
    pub(crate) fn wish(&mut self, wish: Wish) {
        self.say(&Command::Person(person("o").unwrap(), wish)).unwrap();
    }

    pub(crate) fn asks(&mut self, id: &str) {
        let choices = [&[("always", Some(Effect::AllowAlways))], &machine::YES_NO[..]].concat();
        self.report(Report::Asked(machine::prompt(id, &choices, "no", None, START)));
    }

    pub(crate) fn asks_about(
        &mut self,
        id: &str,
        choices: &[(&str, Option<Effect>)],
        detail: Detail,
    ) {
        self.report(Report::Asked(machine::prompt(id, choices, "no", Some(detail), START)));
    }

    pub(crate) fn message(&mut self, id: &str, author: Author, parts: Vec<Part>) {
        self.tells(id, author, Content::Open(parts));
    }

    pub(crate) fn calls(&mut self, id: &str, tool: &str, input: &str) {
        self.calls_tool(id, tool, Some(input));
    }

    pub(crate) fn returns(&mut self, id: &str, status: ToolStatus, output: &str) {
        self.tool(id, status, Some(output));
    }
}

fn meta() -> Meta {
    let mut meta = Meta::of_agent("codex".into());
    meta.machine = Some("laptop".into());
    meta.workspace_path = Some("/home/me".to_owned());
    meta
}

/// What frames are, in order: `res`, `res!` for an error, or the event's name with its status.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| match frame["event"].as_str() {
        None if frame["ok"] == true => "res".to_owned(),
        None => "res!".to_owned(),
        Some("status") => format!("status/{}", frame["payload"]["status"].as_str().unwrap()),
        Some("message") => format!("message/{}", frame["payload"]["role"].as_str().unwrap()),
        Some(name) => name.to_owned(),
    };
    frames.iter().map(word).collect()
}
