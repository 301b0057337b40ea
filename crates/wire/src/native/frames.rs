//! The frames between clients and the relay, in both directions.
//!
//! Each frame type is declared once, with its wire name, in one of the two lists below. A frame
//! has no behaviour beyond translation.
//!
//! Not here: the frames of proxies (`proxy_frames`), what a frame leads to (`client_connection`).

mod catalog;
mod controls;
mod hello;
mod history;
mod launches;
mod prompts;
mod queue;
mod sends;
mod sessions;
mod tool_output;

use bytes::Bytes;

pub use catalog::{Catalog, MachineEntry, ResumableListRequest, ResumableSessions};
pub(crate) use controls::command_word;
pub use controls::{
    AgentControlResult, AgentSetEffort, AgentSetModel, AgentSetPermissionMode, ResultWord,
};
pub use hello::{
    ConnectionAck, ConnectionError, ConnectionHello, Heartbeat, OpenPrompt, PeerRole, Resume,
    ResumeAt,
};
pub use history::{HistoryDelta, HistoryRequest, HistorySnapshot};
pub use launches::{
    LaunchSession, PendingLaunch, ResumeSession, SessionLaunchAck, SessionLaunchFailed,
    SessionLaunching,
};
pub use prompts::{PermissionPromptExpired, PermissionPromptResolved, PermissionResponse};
pub use queue::{ChangeWord, QueueDiscard, QueueEdit, QueueMove, QueueUpdate};
pub use sends::{
    MessageAccepted, MessageDelivered, MessageEvent, MessageFailed, ModeWord, SendMessage,
    StatusWord,
};
pub use sessions::{
    Others, SessionArchived, SessionClosed, SessionDown, SessionRename, SessionRenamed,
    SessionSnapshot, SessionStatus, SessionUp, Watch,
};
pub use tool_output::{ToolOutput, ToolOutputRequest};

use super::shapes::{
    AgentConfig, ContextUsage, Envelope, Malformed, MessageDelta, Notice, Plan, Prompt, RunEnded,
    RunStarted, ToolCall, ToolUpdate, encode, read_body,
};

/// A body without fields of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Empty {}

macro_rules! frames {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($body:ty) = $kind:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $(#[doc = concat!("`", $kind, "`")] $variant($body),)*
        }

        impl $name {
            /// The types of all of these frames.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// The type of this frame, as it is written.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                }
            }

            /// Reads the body of a frame whose envelope is known.
            pub fn read(envelope: &Envelope, text: &str) -> Result<Self, Malformed> {
                match envelope.kind.as_ref() {
                    $($kind => Ok(Self::$variant(read_body(text)?)),)*
                    unknown => Err(Malformed::rule(text, &format!("unknown frame type {unknown}"))),
                }
            }

            /// Reads a frame.
            pub fn parse(text: &str) -> Result<(Envelope, Self), Malformed> {
                let envelope = Envelope::read(text)?;
                let frame = Self::read(&envelope, text)?;
                Ok((envelope, frame))
            }

            /// Writes a frame. The envelope's type is this frame's.
            pub fn encode(&self, envelope: Envelope) -> Bytes {
                let envelope = Envelope { kind: self.kind().into(), ..envelope };
                match self {
                    $(Self::$variant(body) => encode(&envelope, body),)*
                }
            }

            /// Hands the name and the body of each frame to the writer of the page's types.
            #[cfg(test)]
            pub(super) fn describe(writer: &mut super::typescript::Writer) {
                $(writer.frame::<$body>($kind);)*
            }
        }
    };
}

frames! {
    /// What a client says to the relay.
    ClientFrame {
        ConnectionHello(ConnectionHello) = "connection_hello",
        Heartbeat(Heartbeat) = "heartbeat",
        SendMessage(SendMessage) = "send_message",
        HistoryRequest(HistoryRequest) = "history_request",
        LaunchSession(LaunchSession) = "launch_session",
        ResumeSession(ResumeSession) = "resume_session",
        CatalogRequest(Empty) = "catalog_request",
        ResumableList(ResumableListRequest) = "resumable_list",
        ToolOutputRequest(ToolOutputRequest) = "tool_output_request",
        CloseSession(Empty) = "close_session",
        PermissionResponse(PermissionResponse) = "permission_response",
        AgentInterrupt(Empty) = "agent_interrupt",
        AgentConfigRequest(Empty) = "agent_config_request",
        AgentSetModel(AgentSetModel) = "agent_set_model",
        AgentSetPermissionMode(AgentSetPermissionMode) = "agent_set_permission_mode",
        AgentSetEffort(AgentSetEffort) = "agent_set_effort",
        SessionRename(SessionRename) = "session_rename",
        Watch(Watch) = "watch",
        QueueEdit(QueueEdit) = "queue_edit",
        QueueDiscard(QueueDiscard) = "queue_discard",
        QueueMove(QueueMove) = "queue_move",
        QueueResume(Empty) = "queue_resume",
    }
}

frames! {
    /// What the relay says to a client.
    RelayFrame {
        ConnectionAck(Box<ConnectionAck>) = "connection_ack",
        ConnectionError(ConnectionError) = "connection_error",
        HeartbeatAck(Empty) = "heartbeat_ack",
        SessionSnapshot(SessionSnapshot) = "session_snapshot",
        SessionUp(Box<SessionUp>) = "session_up",
        SessionDown(SessionDown) = "session_down",
        SessionStatus(SessionStatus) = "session_status",
        SessionClosed(SessionClosed) = "session_closed",
        SessionRenamed(SessionRenamed) = "session_renamed",
        SessionArchived(SessionArchived) = "session_archived",
        MessageAccepted(MessageAccepted) = "message_accepted",
        MessageDelivered(MessageDelivered) = "message_delivered",
        MessageFailed(MessageFailed) = "message_failed",
        MessageEvent(MessageEvent<'static>) = "message_event",
        MessageDelta(MessageDelta<'static>) = "message_delta",
        HistorySnapshot(HistorySnapshot<'static>) = "history_snapshot",
        HistoryDelta(HistoryDelta) = "history_delta",
        SessionLaunching(SessionLaunching) = "session_launching",
        SessionLaunchAck(SessionLaunchAck) = "session_launch_ack",
        SessionLaunchFailed(SessionLaunchFailed) = "session_launch_failed",
        Catalog(Catalog) = "catalog",
        ResumableSessions(ResumableSessions) = "resumable_sessions",
        ToolOutput(ToolOutput) = "tool_output",
        PermissionPrompt(Box<Prompt>) = "permission_prompt",
        PermissionPromptExpired(PermissionPromptExpired) = "permission_prompt_expired",
        PermissionPromptResolved(PermissionPromptResolved) = "permission_prompt_resolved",
        AgentConfig(Box<AgentConfig>) = "agent_config",
        AgentControlResult(AgentControlResult) = "agent_control_result",
        ToolCall(Box<ToolCall>) = "tool_call",
        ToolUpdate(Box<ToolUpdate>) = "tool_update",
        RunStarted(RunStarted) = "run_started",
        RunEnded(RunEnded) = "run_ended",
        QueueUpdate(QueueUpdate) = "queue_update",
        Plan(Plan) = "plan",
        Notice(Notice) = "notice",
        ContextUsage(ContextUsage) = "context_usage",
    }
}
