//! The fields of a proxy's frames that are not part of version 1. A proxy without features may use
//! these names for something else, so their shapes must not make its frame invalid.
//!
//! **Invariant**: the list contains every field that the shapes mark with "Extension", each only
//! in the frames where it is one: `reason` and `error` are fields of the document elsewhere.

use serde_json::Value;

/// Where a frame has extensions.
struct Place {
    /// The frame's type.
    frame: &'static str,
    /// The way from the frame to the object that has them; lists are gone through.
    way: &'static [&'static str],
    fields: &'static [&'static str],
    /// The shape that reads the object.
    #[cfg(test)]
    shape: &'static str,
}

macro_rules! places {
    ($($shape:literal: $frame:literal [$($way:literal),*] $fields:expr;)*) => {
        &[$(Place {
            frame: $frame,
            way: &[$($way),*],
            fields: &$fields,
            #[cfg(test)]
            shape: $shape,
        },)*]
    };
}

const PLACES: &[Place] = places! {
    "HelloBody": "connection_hello" [] ["link", "catalog"];
    "ProxyStatus": "proxy_status" [] ["reason"];
    "Message": "proxy_message" ["message"] ["parts", "sealed", "run_id", "parent_tool_call_id"];
    "SendResult": "proxy_send_result" [] ["attempt", "run_id"];
    "Prompt": "permission_prompt" [] [
        "run_id", "sealed", "tool", "tool_call_id", "input", "diffs", "suggestions", "questions",
        "sealed_detail", "error",
    ];
    "Choice": "permission_prompt" ["choices"] ["effect"];
    "AgentConfig": "agent_config" [] [
        "available_modes", "effort", "available_efforts", "commands", "session_file",
    ];
    "Snapshot": "proxy_session_snapshot" [] ["over"];
    "Session": "proxy_session_snapshot" ["sessions"] [
        "status_reason", "title", "archived", "last_sequence", "run_id",
    ];
};

/// What a peer names its features by. They are left where they can be read: a peer that names some
/// means our extensions by the other fields.
const FEATURES: &str = "features";

/// The same frame in the fields of version 1 alone. `None`: it has no others.
pub(in crate::native) fn without_extensions(text: &str) -> Option<String> {
    let mut frame: Value = serde_json::from_str(text).ok()?;
    let kind = frame["type"].as_str()?.to_owned();
    let mut found = false;
    for place in PLACES.iter().filter(|place| place.frame == kind) {
        found |= strip(&mut frame, place.way, place.fields);
    }
    if kind == "connection_hello" {
        let named = frame[FEATURES].as_array();
        let is_read = named.is_some_and(|named| named.iter().all(Value::is_string));
        found |= !is_read && strip(&mut frame, &[], &[FEATURES]);
    }
    found.then(|| frame.to_string())
}

fn strip(value: &mut Value, way: &[&str], fields: &[&str]) -> bool {
    match (value, way) {
        (Value::Array(entries), way) => {
            let mut found = false;
            for entry in entries {
                found |= strip(entry, way, fields);
            }
            found
        }
        (Value::Object(object), []) => {
            let before = object.len();
            object.retain(|name, _| !fields.contains(&name.as_str()));
            before != object.len()
        }
        (Value::Object(object), [next, rest @ ..]) => {
            object.get_mut(*next).is_some_and(|value| strip(value, rest, fields))
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The files whose shapes read what a proxy of version 1 says.
    const SOURCES: [&str; 7] = [
        include_str!("greeting.rs"),
        include_str!("reports.rs"),
        include_str!("sessions.rs"),
        include_str!("../shapes/config.rs"),
        include_str!("../shapes/message.rs"),
        include_str!("../shapes/prompt.rs"),
        include_str!("../shapes/session.rs"),
    ];

    /// The fields of each shape whose comment calls them an extension.
    fn marked() -> BTreeMap<String, BTreeSet<String>> {
        let mut shapes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for source in SOURCES {
            let (mut shape, mut is_extension) = (String::new(), false);
            for line in source.lines().map(str::trim) {
                let line = line.strip_prefix("pub ").unwrap_or(line);
                if let Some(rest) = line.strip_prefix("struct ") {
                    let end = rest.find(|it: char| !it.is_alphanumeric()).unwrap_or(rest.len());
                    rest[..end].clone_into(&mut shape);
                } else if line.starts_with("/// Extension") {
                    is_extension = true;
                } else if !line.starts_with("//") && !line.starts_with("#[") {
                    if let (true, Some((name, _))) = (is_extension, line.split_once(':')) {
                        shapes.entry(shape.clone()).or_default().insert(name.to_owned());
                    }
                    is_extension = false;
                }
            }
        }
        shapes
    }

    // spec: native/extensions.13
    #[test]
    fn the_list_holds_what_the_shapes_mark_as_extensions() {
        let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for place in PLACES {
            let fields = place.fields.iter().map(|field| (*field).to_owned());
            listed.entry(place.shape.to_owned()).or_default().extend(fields);
        }
        listed.entry("HelloBody".to_owned()).or_default().insert(FEATURES.to_owned());
        assert_eq!(listed, marked());
    }

    // spec: native/extensions.13
    #[test]
    fn a_field_is_an_extension_only_where_it_is_one() {
        for kept in [
            r#"{"type":"proxy_send_result","error":{"code":1},"reason":7}"#,
            r#"{"type":"session_closed","reason":[],"title":3}"#,
            r#"{"type":"permission_prompt","choices":[{"label":"x","title":1}],"reason":1}"#,
            r#"{"type":"connection_hello","features":["link"]}"#,
            r#"{"type":"proxy_message","run_id":[],"message":{"content":"x"}}"#,
            r#"{"features":1}"#,
        ] {
            assert_eq!(without_extensions(kept), None, "{kept}");
        }
        let prompt =
            r#"{"type":"permission_prompt","error":1,"choices":[{"effect":{},"label":"x"}]}"#;
        let expected = r#"{"choices":[{"label":"x"}],"type":"permission_prompt"}"#;
        assert_eq!(without_extensions(prompt).as_deref(), Some(expected));
    }
}
