//! Runs a transcript of `fixtures`: `NAME+ QUERY` opens a connection, `NAME> FRAME` is said by it,
//! `NAME< FRAME` is what it hears next (at least these fields; `"*"` is anything and `"$WORD"` the
//! same thing wherever it stands), `NAME- CODE` is a close, and `~ WORDS` is what the machine
//! does. Nothing else may be heard.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Shell, Stage};

type Known = BTreeMap<String, Value>;

/// `does` knows the words for what the machine does.
pub(crate) fn run<S: Shell>(
    stage: &mut Stage<S>,
    script: &str,
    does: impl Fn(&mut Stage<S>, &str),
) {
    let mut known = Known::new();
    for (index, line) in script.lines().enumerate() {
        let place = format!("line {}: {line}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(words) = line.strip_prefix("~ ") {
            silent(stage, &place);
            does(stage, words);
            continue;
        }
        let end = line.find(|letter: char| !letter.is_alphanumeric()).expect(&place);
        let (name, rest) = line.split_at(end);
        let (sign, rest) = rest.split_at(1);
        let rest = rest.trim_start();
        if sign == "<" {
            let expected: Value = serde_json::from_str(rest).expect(&place);
            let client = stage.client(name);
            assert!(!client.heard.is_empty(), "{place}: nothing was heard");
            let heard = client.heard.remove(0);
            let heard = S::seen(&client.own, heard);
            assert!(covers(&expected, &heard, &mut known), "{place}: heard {heard}");
            continue;
        }
        silent(stage, &place);
        match sign {
            "+" => stage.open(name, rest),
            "-" => assert_eq!(stage.client(name).closed, rest.parse().ok(), "{place}"),
            ">" => {
                let mut frame = S::said(&mut stage.client(name).own, name, rest);
                for (word, value) in &known {
                    frame = frame.replace(&format!("\"{word}\""), &value.to_string());
                }
                stage.text(name, &frame);
            }
            unknown => panic!("{place}: {unknown} is not understood"),
        }
    }
    silent(stage, "the end");
}

fn silent<S: Shell>(stage: &Stage<S>, place: &str) {
    for (name, client) in &stage.clients {
        assert!(client.heard.is_empty(), "before {place}: {name} also heard {:#?}", client.heard);
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
