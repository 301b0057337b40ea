//! Runs the transcripts of `fixtures/pi`: `NAME+ QUERY` opens a connection, `NAME> FRAME` is said
//! by it, `NAME< FRAME` is what it hears next (at least these fields; `"*"` is anything), and
//! `~ WORDS` is what the machine does. Nothing else may be heard.

use domain::content::{Part, ToolStatus};
use domain::passing::Voice;
use domain::session::prompts::Effect;
use domain::session::runs::Outcome;
use serde_json::Value;

use crate::relay::Relay;

const YES_NO: [(&str, Option<Effect>); 2] =
    [("yes", Some(Effect::AllowOnce)), ("no", Some(Effect::Reject))];

pub(crate) fn run(script: &str) {
    let mut relay = Relay::new();
    for (index, line) in script.lines().enumerate() {
        let place = format!("line {}: {line}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, expected)) = line.split_once("< ").filter(|(name, _)| name.len() < 3) {
            let expected: Value = serde_json::from_str(expected).expect(&place);
            let client = relay.client(name);
            assert!(!client.heard.is_empty(), "{place}: nothing was heard");
            let heard = client.heard.remove(0);
            assert!(covers(&expected, &heard), "{place}: heard {heard}");
            continue;
        }
        silent(&relay, &place);
        if let Some(words) = line.strip_prefix("~ ") {
            does(&mut relay, words);
        } else if let Some((name, query)) = line.split_once("+ ") {
            relay.open(name, query);
        } else if let Some((name, frame)) = line.split_once("> ") {
            relay.text(name, frame);
        } else {
            panic!("{place}: not understood");
        }
    }
    silent(&relay, "the end");
}

fn silent(relay: &Relay, place: &str) {
    for (name, client) in &relay.clients {
        assert!(client.heard.is_empty(), "before {place}: {name} also heard {:#?}", client.heard);
    }
}

fn does(relay: &mut Relay, words: &str) {
    let words: Vec<_> = words.splitn(3, ' ').collect();
    match words.as_slice() {
        ["asks", id] => relay.asks(id, &YES_NO),
        ["chooses", id] => {
            let more = [("always", Some(Effect::AllowAlways))];
            relay.asks(id, &[&YES_NO[..], &more[..]].concat());
        }
        ["obeys"] => relay.obey(None),
        ["obeys", run] => relay.obey(Some(run)),
        ["says", id, text] => relay.says(id, vec![Part::Text((*text).to_owned())]),
        ["streams", id, text] => relay.streams(id, 0, Voice::Text, 0, text),
        ["calls", id, input] => relay.calls(id, input),
        ["prints", id, output] => relay.tool(id, ToolStatus::Running, Some(output)),
        ["returns", id, output] => relay.tool(id, ToolStatus::Completed, Some(output)),
        ["knows", "model", model] => relay.configures(model, "low"),
        ["another", id, folder] => relay.add(id, folder),
        ["starts", run] => relay.starts(run),
        ["ends", run] => relay.ends(run, Outcome::Completed),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}

/// Whether `heard` has everything that `expected` has.
pub(crate) fn covers(expected: &Value, heard: &Value) -> bool {
    match (expected, heard) {
        (Value::String(any), _) if any == "*" => !heard.is_null(),
        (Value::Object(expected), Value::Object(heard)) => {
            expected.iter().all(|(key, it)| covers(it, heard.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(expected), Value::Array(heard)) => {
            expected.len() == heard.len() && expected.iter().zip(heard).all(|(e, h)| covers(e, h))
        }
        _ => expected == heard,
    }
}
