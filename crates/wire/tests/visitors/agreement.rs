//! One session in every dialect that tells of its queue and its messages: the same happens, and
//! all of them count as the session itself does, whether they were there or came later.

use domain::content::{Author, Part, ToolStatus};
use domain::session::delivery::{Mode, Send};
use domain::session::runs::Outcome;
use domain::session::{Command, Report, Wish};
use domain::{Content, Timestamp};
use serde_json::{Value, json};

use super::stage::{Shell, Stage, person};
use super::{blob, control, pi};

/// What a dialect tells its client; `None` where it has no word for it.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    messages: Option<u64>,
    /// The words or the ids of what waits, next first.
    waiting: Vec<String>,
}

/// A dialect that takes part.
trait Counting: Shell {
    /// A client that is in the session.
    fn join(stage: &mut Stage<Self>, name: &str);
    /// How things stand, as this client was told or hears when it asks.
    fn told(stage: &mut Stage<Self>, name: &str) -> Told;
    /// The same of the session, in the words of the dialect.
    fn truth(stage: &Stage<Self>) -> Told;
}

/// One thing after the other that once was told differently here and there.
fn everything_agrees<S: Counting>(mut stage: Stage<S>) {
    type Step<S> = (&'static str, fn(&mut Stage<S>));
    let steps: Vec<Step<S>> = vec![
        ("a message of the system", |it| it.tells("s1", Author::System, words("compacted"))),
        ("a send to an agent at rest", |it| send(it, "m1", None)),
        ("its run", |it| it.obey(Some("run_1"))),
        ("a send that waits", |it| send(it, "m2", None)),
        ("another", |it| send(it, "m3", Some(Mode::FollowUp))),
        ("a steer that the agent cannot take", |it| send(it, "m4", Some(Mode::Steer))),
        ("another order", |it| wish(it, Wish::MoveQueued { id: "m3".into(), to: 0 })),
        ("one less", |it| wish(it, Wish::DiscardQueued { id: "m2".into() })),
        ("a tool", |it| it.calls_tool("t1", "Bash", Some("{}"))),
        ("its result", |it| it.tool("t1", ToolStatus::Completed, Some("x"))),
        ("an answer", |it| it.says_text("a1", "done")),
        ("an interrupt", |it| {
            let control = domain::session::controls::Control::Interrupt { run: None };
            wish(it, Wish::Control { request: "stop".into(), control });
            it.obey(None);
        }),
        ("its end", |it| it.ends("run_1", Outcome::Interrupted)),
        ("all taken out of a held queue", |it| {
            wish(it, Wish::DiscardQueued { id: "m3".into() });
            wish(it, Wish::DiscardQueued { id: "m4".into() });
        }),
        ("a send to a held and empty queue", |it| send(it, "m5", None)),
        ("it runs", |it| it.obey(Some("run_2"))),
        ("the machine goes", Stage::down),
        ("a send meanwhile", |it| send(it, "m6", None)),
        ("a plain proxy comes, which takes everything", |it| it.up(None)),
        ("a send that it takes during a run", |it| send(it, "m7", None)),
        ("and a steer", |it| send(it, "m8", Some(Mode::Steer))),
        ("it has them", |it| it.obey(None)),
        ("it is over", |it| it.ends("run_2", Outcome::Completed)),
    ];
    S::join(&mut stage, "a");
    for (number, (what, happens)) in steps.into_iter().enumerate() {
        happens(&mut stage);
        let truth = S::truth(&stage);
        assert_eq!(S::told(&mut stage, "a"), truth, "{what}: live");
        let late = format!("b{number}");
        S::join(&mut stage, &late);
        assert_eq!(S::told(&mut stage, &late), truth, "{what}: joined");
    }
}

fn words(text: &str) -> Content<Vec<Part>> {
    Content::Open(vec![Part::Text(text.to_owned())])
}

fn wish<S: Shell>(stage: &mut Stage<S>, wish: Wish) {
    stage.say(&Command::Person(person("o").unwrap(), wish)).unwrap();
}

/// Somebody in another dialect sends.
fn send<S: Shell>(stage: &mut Stage<S>, id: &str, mode: Option<Mode>) {
    let send = Send {
        id: id.into(),
        text: Content::Open(id.to_owned()),
        attachments: vec![],
        mode,
        by: "o".to_owned(),
        created_at: Timestamp(1),
        digest: None,
    };
    wish(stage, Wish::Send { send, earlier: None });
}

fn waiting<S: Shell>(stage: &Stage<S>) -> Vec<String> {
    stage.room().session.glance().waiting.iter().map(|send| send.id.to_string()).collect()
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

impl Counting for pi::relay::Pi {
    fn join(stage: &mut Stage<Self>, name: &str) {
        stage.open(name, &format!("session={}", Self::SESSION));
    }

    fn told(stage: &mut Stage<Self>, name: &str) -> Told {
        let answer = stage.ask(name, json!({ "type": "get_state" }))["data"].clone();
        let heard = &stage.client(name).heard;
        let update = heard.iter().rfind(|frame| frame["type"] == "queue_update");
        let list = |which: &str| update.map_or(vec![], |update| strings(&update[which]));
        let waiting = [list("steering"), list("followUp")].concat();
        assert_eq!(answer["pendingMessageCount"], waiting.len());
        Told { messages: answer["messageCount"].as_u64(), waiting }
    }

    fn truth(stage: &Stage<Self>) -> Told {
        let glance = stage.room().session.glance();
        let of = |is_steer: bool| {
            let waiting = glance.waiting.iter();
            let these = waiting.filter(move |send| (send.mode == Some(Mode::Steer)) == is_steer);
            these.map(|send| send.id.to_string()).collect::<Vec<_>>()
        };
        let messages = Some(glance.card.messages + glance.card.results);
        Told { messages, waiting: [of(true), of(false)].concat() }
    }
}

impl Counting for blob::relay::Blob {
    fn join(stage: &mut Stage<Self>, name: &str) {
        stage.connect(name);
        stage.ask(name, "join", "sessions.switch", &json!({ "sessionId": Self::SESSION }));
    }

    fn told(stage: &mut Stage<Self>, name: &str) -> Told {
        // The places that were told last, but of those that left.
        let mut places = std::collections::BTreeMap::new();
        let mut counted = None;
        for frame in &stage.client(name).heard {
            let payload = &frame["payload"];
            match frame["event"].as_str() {
                Some("queued") => {
                    let place = payload["position"].as_u64().unwrap();
                    places.insert(payload["runId"].as_str().unwrap().to_owned(), place);
                }
                Some("session_changed") => counted = payload["stats"]["messageCount"].as_u64(),
                _ => {}
            }
        }
        let queue = waiting(stage);
        places.retain(|id, _| queue.contains(id));
        let mut order: Vec<_> = places.into_iter().collect();
        order.sort_by_key(|(_, place)| *place);
        let heard = std::mem::take(&mut stage.client(name).heard);
        let status = stage.asked(name, "status", &json!({}))["payload"]["session"].clone();
        stage.client(name).heard = heard;
        assert_eq!(status["queuedRequests"], order.len());
        let messages = status["messageCount"].as_u64();
        if name != "a" {
            assert_eq!(counted, messages, "who joins");
        }
        Told { messages, waiting: order.into_iter().map(|(id, _)| id).collect() }
    }

    fn truth(stage: &Stage<Self>) -> Told {
        let messages = Some(stage.room().session.glance().card.messages);
        Told { messages, waiting: waiting(stage) }
    }
}

// spec: pi/queue.6, pi/queries.4
#[test]
fn pi_counts_and_queues_as_the_session_does() {
    everything_agrees(pi::relay::Relay::new());
}

// spec: blob/queue.6, blob/status.2
#[test]
fn blob_counts_and_queues_as_the_session_does() {
    everything_agrees(blob::relay::Relay::new());
}

/// The receipt of an interrupt is where this dialect tells what waits.
#[test]
fn control_tells_of_the_queue_what_the_session_says() {
    let mut relay = control::relay::Relay::watched();
    relay.starts("run_1");
    for id in ["m1", "m2", "m3"] {
        send(&mut relay, id, None);
    }
    wish(&mut relay, Wish::MoveQueued { id: "m3".into(), to: 0 });
    wish(&mut relay, Wish::DiscardQueued { id: "m2".into() });
    relay.open("b", &format!("session={}", control::relay::SESSION));
    for name in ["a", "b"] {
        relay.heard(name);
        let request = json!({ "type": "control_request", "request_id": name,
            "request": { "subtype": "interrupt" } });
        relay.json(name, &request);
        relay.obey(None);
        let heard = relay.heard(name);
        let receipt = heard.iter().find(|frame| frame["type"] == "control_response").unwrap();
        let told = strings(&receipt["response"]["response"]["still_queued"]);
        assert_eq!(told, waiting(&relay), "{name}");
        assert_eq!(told, ["m3", "m1"]);
    }
}

#[test]
fn nobody_is_told_that_a_send_waits_which_left_with_its_commit() {
    for link in [Some("link"), None] {
        let mut relay = blob::relay::Relay::watched();
        if link.is_none() {
            relay.up(link);
            relay.starts("run_1");
        }
        let control = domain::session::controls::Control::Interrupt { run: None };
        if link.is_some() {
            relay.starts("run_1");
            send(&mut relay, "m1", None);
            wish(&mut relay, Wish::Control { request: "stop".into(), control });
            relay.obey(None);
            relay.report(Report::RunEnded {
                run: "run_1".into(),
                outcome: Outcome::Interrupted,
                usage: None,
            });
            wish(&mut relay, Wish::DiscardQueued { id: "m1".into() });
        }
        relay.heard("a");
        relay.ask("a", "r", "agent", &json!({ "message": "now" }));
        let heard = relay.heard("a");
        assert_eq!(heard[0]["payload"]["status"], "accepted", "{link:?}");
        assert!(heard.iter().all(|frame| frame["event"] != "queued"), "{heard:#?}");
    }
}
