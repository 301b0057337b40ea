//! Ways to spoil a frame.

use serde_json::{Value, json};

use crate::fuzz::chance::Chance;

/// Levels of a value that is nested too deep for anybody.
const DEPTH: usize = 140;

/// No frame at all.
pub(crate) fn noise(chance: &mut Chance) -> String {
    let pieces = ["{", "}", "[", "]", "\"", ":", ",", "null", "1e999", "\\u", "é", "\u{0}", "type"];
    (0..chance.below(40)).map(|_| chance.of(&pieces)).collect()
}

/// A frame cut, doubled, or run into another, character by character.
pub(crate) fn text(chance: &mut Chance, frame: &str, other: &str) -> String {
    let mut letters: Vec<char> = frame.chars().collect();
    for _ in 0..=chance.below(4) {
        let at = chance.place(letters.len().max(1)).min(letters.len());
        match chance.below(5) {
            0 => letters.truncate(at),
            1 if at < letters.len() => drop(letters.remove(at)),
            2 => letters.insert(at, ['{', '"', '\\', ',', '0', '\u{fffd}'][chance.place(6)]),
            3 => {
                let rest = other.chars().skip(chance.place(other.len().max(1)));
                letters.truncate(at);
                letters.extend(rest);
            }
            _ => letters.extend_from_within(at..),
        }
    }
    letters.into_iter().collect()
}

/// A frame with one of its values replaced, taken out, or put elsewhere.
pub(crate) fn value(chance: &mut Chance, frame: &mut Value, words: &[String]) {
    let mut places = vec![];
    pointers(frame, String::new(), &mut places);
    let place = places[chance.place(places.len())].clone();
    let moved = places[chance.place(places.len())].clone();
    let moved = frame.pointer(&moved).cloned().unwrap_or_default();
    let nasty = nasty(chance, words);
    let Some(here) = frame.pointer_mut(&place) else { return };
    match (chance.below(4), here) {
        (0, Value::Object(fields)) => {
            let key = fields.keys().nth(chance.place(fields.len())).cloned();
            if let Some(key) = key {
                fields.remove(&key);
            }
        }
        (1, here) => *here = moved,
        (_, here) => *here = nasty,
    }
}

/// A sound frame, sometimes with a name in it that was heard.
pub(crate) fn rename(chance: &mut Chance, frame: &mut Value, words: &[String]) {
    if words.is_empty() || chance.one_in(2) {
        return;
    }
    let mut places = vec![];
    pointers(frame, String::new(), &mut places);
    places.retain(|place| frame.pointer(place).is_some_and(Value::is_string));
    // The words that say what a frame is stay as they are.
    let kept = ["/type", "/method", "/protocol_version", "/subtype"];
    places.retain(|place| !kept.iter().any(|kept| place.ends_with(kept)));
    if places.is_empty() {
        return;
    }
    let place = places[chance.place(places.len())].clone();
    if let Some(here) = frame.pointer_mut(&place) {
        *here = json!(words[chance.place(words.len())]);
    }
}

fn nasty(chance: &mut Chance, words: &[String]) -> Value {
    match chance.below(16) {
        0 => json!(null),
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(u64::MAX),
        5 => json!(1e308),
        6 => json!(""),
        7 => json!("x".repeat(5_000)),
        8 => json!("\u{0}\u{202e}💥"),
        9 => json!([]),
        10 => json!({}),
        11 => (0..DEPTH).fold(json!(7), |inner, _| json!([inner])),
        12 => json!("../../etc"),
        13 => json!(vec![json!({ "type": "text", "text": "x" }); 200]),
        14 => json!("sess_1"),
        _ if words.is_empty() => json!("nobody"),
        _ => json!(words[chance.place(words.len())]),
    }
}

fn pointers(value: &Value, here: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(inner, format!("{here}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate().take(20) {
                pointers(inner, format!("{here}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found.push(here);
}
