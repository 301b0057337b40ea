//! Runs the transcripts of `fixtures/blob`: `NAME+ QUERY` opens a connection, `NAME> FRAME` is
//! said by it, `NAME< FRAME` is what it hears next (at least these fields; `"*"` is anything and
//! `"$WORD"` the same thing wherever it stands), and `~ WORDS` is what the machine does. Nothing
//! else may be heard. `NAME- CODE` is a close.

use std::collections::BTreeMap;

use domain::content::ToolStatus;
use domain::session::runs::Outcome;
use serde_json::Value;

use crate::relay::Relay;

type Known = BTreeMap<String, Value>;

pub(crate) fn run(script: &str) {
    let mut relay = Relay::new();
    let mut known = Known::new();
    for (index, line) in script.lines().enumerate() {
        let place = format!("line {}: {line}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, rest) = line.split_at(1);
        if let Some(expected) = rest.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).expect(&place);
            let client = relay.client(name);
            assert!(!client.heard.is_empty(), "{place}: nothing was heard");
            let heard = client.heard.remove(0);
            assert!(covers(&expected, &heard, &mut known), "{place}: heard {heard}");
            continue;
        }
        silent(&relay, &place);
        if let Some(words) = line.strip_prefix("~ ") {
            does(&mut relay, words);
        } else if let Some(query) = rest.strip_prefix("+ ") {
            relay.open(name, query);
        } else if let Some(code) = rest.strip_prefix("- ") {
            assert_eq!(relay.client(name).closed, code.parse().ok(), "{place}");
        } else if let Some(frame) = rest.strip_prefix("> ") {
            let mut frame = frame.to_owned();
            for (word, value) in &known {
                frame = frame.replace(&format!("\"{word}\""), &value.to_string());
            }
            relay.text(name, &frame);
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
    let words: Vec<_> = words.splitn(4, ' ').collect();
    match words.as_slice() {
        ["asks", id] => relay.asks(id),
        ["obeys"] => relay.obey(None),
        ["obeys", run] => relay.obey(Some(run)),
        ["refuses", code] => relay.refuse(code),
        ["says", id, text @ ..] => relay.says(id, &text.join(" ")),
        ["streams", id, offset, text] => relay.streams(id, offset.parse().unwrap(), text),
        ["calls", id, tool, input] => relay.calls(id, tool, input),
        ["returns", id, output @ ..] => {
            relay.returns(id, ToolStatus::Completed, &output.join(" "));
        }
        ["breaks", id, output @ ..] => relay.returns(id, ToolStatus::Failed, &output.join(" ")),
        ["starts", run] => relay.starts(run),
        ["ends", run] => relay.ends(run, Outcome::Completed),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        ["fails", run, text @ ..] => relay.ends(run, Outcome::Failed(text.join(" "))),
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}

/// Whether `heard` has everything that `expected` has.
fn covers(expected: &Value, heard: &Value, known: &mut Known) -> bool {
    match (expected, heard) {
        (Value::String(any), _) if any == "*" => !heard.is_null(),
        (Value::String(word), _) if word.starts_with('$') => {
            known.entry(word.clone()).or_insert_with(|| heard.clone()) == heard
        }
        (Value::Object(expected), Value::Object(heard)) => expected
            .iter()
            .all(|(key, it)| covers(it, heard.get(key).unwrap_or(&Value::Null), known)),
        (Value::Array(expected), Value::Array(heard)) => {
            expected.len() == heard.len()
                && expected.iter().zip(heard).all(|(it, heard)| covers(it, heard, known))
        }
        _ => expected == heard,
    }
}
