//! A client's frames: reading them.
//!
//! **Invariant**: no input makes reading panic. An error names the command whenever it could be
//! read, because an answer names it too.
//!
//! Not here: what follows from a command (`commands`, `sends`, `sessions`, `dialogs`).

use serde::Deserialize;
use serde_json::Value;

/// Bytes of an id, or of a command's name, that are said back.
const NAME_BYTES_MAX: usize = 256;
/// What an answer to unreadable text names.
const PARSE: &str = "parse";
/// The one frame that is no command.
const DIALOG_ANSWER: &str = "extension_ui_response";

/// Whom an answer is for: the client's id of its command, if it gave one, and the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) id: Option<Value>,
    pub(super) command: String,
}

/// A frame of a client.
#[derive(Debug)]
pub(super) enum Frame {
    /// Something is to be done, and answered.
    Command(Caller, Box<Body>),
    /// A dialog is answered.
    Answer(DialogAnswer),
}

/// Why a text is no frame, and what its answer names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) caller: Caller,
    pub(super) words: String,
}

/// Everything that a command may carry; each takes what it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Body {
    pub(super) message: Option<String>,
    pub(super) images: Option<Vec<Image>>,
    pub(super) streaming_behavior: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) session_path: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) model_id: Option<String>,
    pub(super) level: Option<String>,
    pub(super) name: Option<String>,
}

/// A picture of a prompt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Image {
    pub(super) data: String,
    pub(super) mime_type: String,
}

/// An answer to a dialog.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DialogAnswer {
    pub(super) id: String,
    pub(super) confirmed: Option<bool>,
    pub(super) value: Option<String>,
    pub(super) cancelled: Option<bool>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default, rename = "type")]
    kind: Option<Value>,
    #[serde(default)]
    id: Option<Value>,
}

/// Reads a frame.
pub(super) fn read(text: &str) -> Result<Frame, Broken> {
    let broken = |id: Option<Value>, command: &str, words: String| Broken {
        caller: Caller { id, command: command.to_owned() },
        words,
    };
    let head = match serde_json::from_str::<Head>(text) {
        Ok(head) => head,
        Err(error) => {
            return Err(broken(None, PARSE, format!("Failed to parse command: {error}")));
        }
    };
    let id = match head.id {
        Some(Value::String(id)) if id.len() > NAME_BYTES_MAX => {
            let words = format!("A command id can have at most {NAME_BYTES_MAX} bytes");
            return Err(broken(None, PARSE, words));
        }
        Some(id @ (Value::String(_) | Value::Number(_))) => Some(id),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    let Some(Value::String(kind)) = head.kind else {
        return Err(broken(id, PARSE, "Failed to parse command: type is missing".to_owned()));
    };
    let kind = cut(kind);
    if kind == DIALOG_ANSWER {
        let read = serde_json::from_str::<DialogAnswer>(text);
        return read.map(Frame::Answer).map_err(|error| broken(id, &kind, error.to_string()));
    }
    match serde_json::from_str::<Body>(text) {
        Ok(body) => Ok(Frame::Command(Caller { id, command: kind }, Box::new(body))),
        Err(error) => Err(broken(id, &kind, format!("Invalid {kind}: {error}"))),
    }
}

fn cut(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|at| name.is_char_boundary(*at));
        name.truncate(end.unwrap_or(0));
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // spec: pi/transport.2, pi/transport.3
    #[test]
    fn what_cannot_be_read_still_says_which_command_it_was() {
        for text in ["", "{", "7", "[]", "null", "\"prompt\""] {
            let broken = read(text).unwrap_err();
            assert_eq!((broken.caller.id, broken.caller.command.as_str()), (None, "parse"));
            assert!(broken.words.starts_with("Failed to parse command: "), "{}", broken.words);
        }
        let broken = read(r#"{"id":"req_1","type":"prompt","message":7}"#).unwrap_err();
        assert_eq!(broken.caller, Caller { id: Some(json!("req_1")), command: "prompt".into() });
        let broken = read(r#"{"id":"req_1"}"#).unwrap_err();
        assert_eq!(broken.caller, Caller { id: Some(json!("req_1")), command: "parse".into() });
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(read(&format!(r#"{{"id":"{long}","type":"abort"}}"#)).is_err());
        let Ok(Frame::Command(caller, _)) = read(&format!(r#"{{"type":"{long}é"}}"#)) else {
            panic!("a long name is cut");
        };
        assert_eq!(caller.command.len(), NAME_BYTES_MAX);
    }

    // spec: pi/transport.4
    #[test]
    fn an_id_may_be_text_or_a_number_or_not_there() {
        for (text, id) in [
            (r#"{"id":"req_1","type":"abort","unknown":1}"#, Some(json!("req_1"))),
            (r#"{"id":7,"type":"abort"}"#, Some(json!(7))),
            (r#"{"type":"abort"}"#, None),
            (r#"{"id":{},"type":"abort"}"#, None),
        ] {
            let Ok(Frame::Command(caller, _)) = read(text) else { panic!("{text}") };
            assert_eq!(caller.id, id, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_text_makes_reading_panic(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
            let _ = read(&text);
        }

        #[test]
        fn a_frame_with_any_field_spoilt_is_survived(
            kind in 0..6_usize, field in 0..8_usize, value in 0..9_usize,
        ) {
            let kinds = ["prompt", "abort", "switch_session", "extension_ui_response",
                "set_model", "tomorrow"];
            let values = ["null", "true", "-1", "1e999", "\"\\udc00\"", "[]", "{}",
                "18446744073709551616", "\"\""];
            let mut fields = [
                ("id", "\"r\""), ("message", "\"m\""), ("streamingBehavior", "\"steer\""),
                ("images", r#"[{"type":"image","mimeType":"image/png","data":""}]"#),
                ("sessionPath", "\"farhelm/sess_1.jsonl\""), ("value", "\"x\""),
                ("confirmed", "true"), ("provider", "\"p\""),
            ];
            fields[field].1 = values[value];
            let body: Vec<_> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
            let _ = read(&format!(r#"{{"type":"{}",{}}}"#, kinds[kind], body.join(",")));
        }
    }
}
