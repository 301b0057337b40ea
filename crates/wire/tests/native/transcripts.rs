//! The transcripts of `fixtures/native`, run against real connections.

use crate::native::script::run;

macro_rules! transcript {
    ($name:literal) => {
        include_str!(concat!("../../../../fixtures/native/", $name, ".jsonl"))
    };
}

// spec: native/protocol_version.2, native/connection_hello.1, native/connection_hello.2
// spec: native/connection_hello.3, native/connection_ack.1, native/connection_ack.2
// spec: native/connection_ack.3, native/connection_ack.5, native/connection_ack.6
// spec: native/envelope.5, native/envelope.6, native/heartbeat.1, native/session_snapshot.1
// spec: native/session_snapshot.2, native/extensions.1, native/connection_roles.1
// spec: native/permission_prompt_relay_behavior.2, native/transport.3
#[test]
fn hello_is_answered_with_what_there_is() {
    run(transcript!("hello"));
}

// spec: native/catalog.1, native/catalog.2, native/catalog.4, native/resumable_list.1, native/resumable_list.2
// spec: native/resume_session.1, native/tool_output.1, native/tool_output.2
// spec: native/tool_output.3
#[test]
fn what_there_is_to_start_and_to_read_is_told_to_who_asks() {
    run(transcript!("catalog"));
}

// spec: native/connection_hello.4, native/heartbeat.2, native/close_codes.1
#[test]
fn silence_ends_a_connection() {
    run(transcript!("silence"));
}

// spec: native/message_identifiers.1, native/message_identifiers.3, native/message_identifiers.4
// spec: native/message_identifiers.5, native/send_message.2, native/send_message.3
// spec: native/send_message.4, native/send_message.5, native/send_message.6
// spec: native/message_accepted.1, native/message_delivered.1, native/message_failed.1
// spec: native/message_failed.2, native/message_event.1, native/message_event.2
// spec: native/error_codes.3, native/session_closed.1
#[test]
fn a_send_is_told_in_its_states() {
    run(transcript!("sends"));
}

// spec: native/session_up.1, native/session_down.1, native/session_down.2
// spec: native/session_status.1, native/session_metadata.4, native/session_snapshot.2
// spec: native/close_session.2, native/close_session.4, native/session_closed.1
// spec: native/session_closed.2, native/session_closed.3, native/session_closed.4
#[test]
fn sessions_come_change_and_go() {
    run(transcript!("sessions"));
}

// spec: native/permission_prompt_relay_behavior.1, native/permission_prompt.1
// spec: native/permission_prompt.2, native/permission_response.1, native/permission_response.3
// spec: native/permission_response.4, native/permission_response.5
// spec: native/permission_response.6, native/permission_prompt_expired.1
#[test]
fn prompts_are_answered_once_and_everybody_learns_of_it() {
    run(transcript!("prompts"));
}

// spec: native/agent_control_result.1, native/agent_control_result.2
// spec: native/agent_control_result.3, native/agent_control_result.4, native/envelope.2
// spec: native/envelope.3, native/envelope.4, native/agent_interrupt.3, native/agent_interrupt.4
// spec: native/agent_config_request.2, native/agent_config_request.3, native/agent_set_model.2
// spec: native/agent_set_model.4, native/agent_config.4, native/relay_routing_rules.2
// spec: native/relay_routing_rules.4, native/close_session.3
#[test]
fn control_commands_are_answered_to_their_asker() {
    run(transcript!("controls"));
}

// spec: native/launch_session.2, native/launch_session.5, native/launch_session.7
// spec: native/session_launching.1, native/session_launching.2, native/session_launch_ack.2
// spec: native/session_launch_ack.4, native/session_launch_ack.5, native/session_launch_ack.6
// spec: native/session_launch_failed.1, native/session_launch_failed.2
// spec: native/session_launch_failed.3, native/connection_ack.4, native/connection_hello.6
#[test]
fn launches_are_told_to_who_asked_also_later() {
    run(transcript!("launches"));
}

// spec: native/credentials.2, native/credentials.3, native/credentials.4, native/limits.3
// spec: native/limits.4, native/limits.5, native/launch_session.1, native/close_session.1
// spec: native/relay_routing_rules.1, native/error_codes.2
#[test]
fn who_may_not_is_told_so() {
    run(transcript!("doors"));
}

// spec: native/connection_hello.5, native/history_request.1, native/history_request.2
// spec: native/history_request.3, native/history_request.4, native/history_request.5
// spec: native/history_snapshot.1, native/history_delta.1, native/history_delta.3
// spec: native/session_closed.3
#[test]
fn history_joins_what_is_live_without_gap_and_without_repeat() {
    run(transcript!("history"));
}

// spec: native/extensions.2, native/extensions.7, native/extensions.8
// spec: native/message_identifiers.6, native/history_delta.2
#[test]
fn the_queue_is_told_to_those_who_named_it() {
    run(transcript!("queue"));
}

// spec: native/delivery_state.2, native/delivery_state.4, native/delivery_state.6
// spec: native/delivery_state.7, native/message_identifiers.2, native/send_message.7
// spec: native/send_message.8, native/proxy_send_result.2, native/message_event.3
#[test]
fn sends_wait_for_their_machine_and_for_their_turn() {
    run(transcript!("waiting"));
}

// spec: native/permission_prompt_relay_behavior.3, native/permission_prompt_relay_behavior.7
// spec: native/permission_prompt_relay_behavior.8, native/permission_prompt.4
#[test]
fn prompts_outlive_the_absence_of_their_machine() {
    run(transcript!("away"));
}
