//! Detects the dialect of a peer on `/ws` from its first frame.
//!
//! Not here: what the frame leads to; its dialect reads it again.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// What a first frame opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A native client: [`crate::native::ClientConnection`].
    NativeClient,
    /// A native proxy.
    NativeProxy,
    /// An Agent Blob client: [`crate::blob::Connection`].
    Blob,
    /// A client of pi's web frontend: [`crate::pi::Connection`].
    Pi,
    /// A client of Claude Code's remote control: [`crate::control::Connection`].
    Control,
    /// A webchannel client: [`crate::webchannel::Connection`].
    Webchannel,
    /// No dialect that is known here. The native one answers it: it says what is wrong.
    Unknown,
}

/// Looks at the first text frame of a peer.
pub fn sniff(first_text: &str) -> Opening {
    #[derive(Deserialize)]
    struct First {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        peer_role: Option<String>,
        #[serde(default)]
        method: Option<IgnoredAny>,
    }
    let Ok(first) = serde_json::from_str::<First>(first_text) else { return Opening::Unknown };
    match (first.kind.as_str(), first.peer_role.as_deref()) {
        ("connection_hello", Some("proxy")) => Opening::NativeProxy,
        ("connection_hello", _) => Opening::NativeClient,
        ("req", _) if first.method.is_some() => Opening::Blob,
        (
            "control_request"
            | "control_response"
            | "control_cancel_request"
            | "user"
            | "keep_alive",
            _,
        ) => Opening::Control,
        ("pairing_request" | "user_message" | "approval_response", _) => Opening::Webchannel,
        (
            "prompt"
            | "steer"
            | "follow_up"
            | "abort"
            | "clear_queue"
            | "get_state"
            | "get_messages"
            | "list_sessions"
            | "switch_session"
            | "new_session"
            | "get_context_usage"
            | "get_commands"
            | "get_available_models"
            | "get_session_stats"
            | "set_model"
            | "set_thinking_level"
            | "set_session_name"
            | "extension_ui_response",
            _,
        ) => Opening::Pi,
        _ => Opening::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: native/connection_roles.3
    #[test]
    fn the_first_frame_tells_clients_from_proxies() {
        let hello = |role: &str| {
            format!(
                r#"{{"type":"connection_hello","protocol_version":1,"peer_role":"{role}","client_name":"x"}}"#
            )
        };
        assert_eq!(sniff(&hello("browser")), Opening::NativeClient);
        assert_eq!(sniff(&hello("proxy")), Opening::NativeProxy);
        for text in ["", "[]", "{}", r#"{"type":"req","id":"1"}"#] {
            assert_eq!(sniff(text), Opening::Unknown, "{text}");
        }
    }

    #[test]
    fn the_first_frame_tells_the_dialect() {
        let cases = [
            (r#"{"type":"req","id":"1","method":"connect","params":{}}"#, Opening::Blob),
            (r#"{"id":"1","type":"get_state"}"#, Opening::Pi),
            (r#"{"type":"control_request","request_id":"1","request":{}}"#, Opening::Control),
            (r#"{"type":"control_cancel_request","request_id":"1"}"#, Opening::Control),
            (r#"{"type":"pairing_request","code":"123456"}"#, Opening::Webchannel),
        ];
        for (text, opening) in cases {
            assert_eq!(sniff(text), opening, "{text}");
        }
    }
}
