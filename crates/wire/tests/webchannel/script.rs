//! Runs the transcripts of `fixtures/webchannel`: `NAME+ QUERY` opens a connection, `NAME> FRAME`
//! is said by it, `NAME< FRAME` is what it hears next (at least these fields; `"*"` is anything),
//! and `~ WORDS` is what the machine does. Nothing else may be heard.
//!
//! In what is said, `"$token"` is the client's token, `"$public"` its public key, and an `e2e` of
//! `{"seal": …}` is sealed. In what is heard, an `e2e` has what was sealed as `opened`.

use domain::content::ToolStatus;
use domain::session::runs::Outcome;
use serde_json::Value;
use wire::webchannel::seal::{self, Secret};

use crate::relay::{Client, Relay};

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
            let mut heard = client.heard.remove(0);
            if let Some(opened) = client.opened(&heard["payload"]) {
                heard["payload"]["e2e"]["opened"] = opened;
            }
            assert!(covers(&expected, &heard), "{place}: heard {heard}");
            continue;
        }
        silent(&relay, &place);
        if let Some(words) = line.strip_prefix("~ ") {
            does(&mut relay, words);
        } else if let Some((name, query)) = line.split_once('+').filter(|(name, _)| name.len() < 3)
        {
            relay.open(name, query.trim());
        } else if let Some((name, frame)) = line.split_once("> ") {
            let client = relay.client(name);
            let frame = said(client, name, frame, &place);
            relay.json(name, &frame);
        } else {
            panic!("{place}: not understood");
        }
    }
    silent(&relay, "the end");
}

fn said(client: &mut Client, name: &str, frame: &str, place: &str) -> Value {
    let mut frame = frame.replace("$token", &client.token);
    if frame.contains("$public") {
        let secret = [name.as_bytes()[0]; 32];
        client.secret = Some(secret);
        frame = frame.replace("$public", &seal::encode(&Secret::from(secret).public()));
    }
    let mut frame: Value = serde_json::from_str(&frame).expect(place);
    if let Some(matter) = frame.pointer_mut("/payload/e2e/seal").map(Value::take) {
        frame["payload"]["e2e"] = client.seal(&matter);
    }
    frame
}

fn silent(relay: &Relay, place: &str) {
    for (name, client) in &relay.clients {
        assert!(client.heard.is_empty(), "before {place}: {name} also heard {:#?}", client.heard);
    }
}

fn does(relay: &mut Relay, words: &str) {
    let words: Vec<_> = words.splitn(3, ' ').collect();
    match words.as_slice() {
        ["asks", id] => relay.asks(id),
        ["obeys"] => relay.obey(),
        ["says", id, text] => relay.agent(id, text),
        ["streams", id, words] => relay.streams(id, 0, words),
        ["calls", id, input] => relay.calls(id, Some(input)),
        ["called", id, output] => relay.called(id, ToolStatus::Completed, Some(output)),
        ["failed", id, output] => relay.called(id, ToolStatus::Failed, Some(output)),
        ["starts", run] => relay.starts(run),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        ["offers", code] => relay.codes = vec![((*code).to_owned(), domain::Role::Operator)],
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}

/// Whether `heard` has everything that `expected` has.
fn covers(expected: &Value, heard: &Value) -> bool {
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
