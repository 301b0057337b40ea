//! What a proxy reports about its machine: its sessions and the requested launches.

use std::collections::BTreeSet;

use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::Named;
use domain::{AgentType, RequestId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::shapes::{
    Envelope, ErrorBody, Malformed, Session, encode, failure_of, id, read_body,
};
use super::Numbered;

#[derive(Serialize, Deserialize)]
struct Snapshot {
    sessions: Vec<Session>,
    /// Extension: those of them that are over, named because that is not acknowledged yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    over: Vec<SessionId>,
}

/// Writes every session that the machine has.
pub fn encode_snapshot(named: &[Named]) -> Bytes {
    let session = |named: &Named| {
        let described = Session::of_meta(
            &named.session.clone().unwrap_or_else(|| SessionId::from("")),
            &named.meta,
            named.health,
            named.activity.as_ref(),
        );
        Session { session_id: named.session.clone(), ..described }
    };
    let sessions = named.iter().map(session).collect();
    let over = named.iter().filter(|named| named.is_over);
    let over = over.filter_map(|named| named.session.clone()).collect();
    encode(&Envelope::new("proxy_session_snapshot"), &Snapshot { sessions, over })
}

/// Reads every session that the machine has.
pub fn read_snapshot(text: &str, now: Timestamp) -> Result<Vec<Named>, Malformed> {
    let snapshot: Snapshot = read_body(text)?;
    let over: BTreeSet<SessionId> = snapshot.over.into_iter().collect();
    let named = snapshot.sessions.into_iter().map(|session| {
        let named = session.into_named(now);
        let is_over = named.session.as_ref().is_some_and(|session| over.contains(session));
        Named { is_over, ..named }
    });
    Ok(named.collect())
}

#[derive(Serialize, Deserialize)]
struct Launched {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    agent_type: Option<AgentType>,
}

/// Writes that a launch brought a session.
pub fn encode_launched(
    request: &RequestId,
    session: &SessionId,
    agent: &AgentType,
    number: Option<u64>,
) -> Bytes {
    let envelope = Envelope {
        request_id: Some(request.clone()),
        session_id: Some(session.clone()),
        ..Envelope::new("session_launch_ack")
    };
    let body = Launched { agent_type: Some(agent.clone()) };
    encode(&envelope, &Numbered { body: &body, link_number: number })
}

/// Reads that a launch brought a session.
pub fn read_launched(envelope: &Envelope, text: &str) -> Result<(RequestId, SessionId), Malformed> {
    Ok((envelope.request(text)?, envelope.session(text)?))
}

#[derive(Serialize, Deserialize)]
struct LaunchFailed {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    agent_type: Option<AgentType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// Writes that a launch brought nothing.
pub fn encode_launch_failed(
    request: &RequestId,
    agent: &AgentType,
    failure: &Failure,
    number: Option<u64>,
) -> Bytes {
    let envelope =
        Envelope { request_id: Some(request.clone()), ..Envelope::new("session_launch_failed") };
    let body = LaunchFailed {
        agent_type: Some(agent.clone()),
        error_code: Some(failure.code.to_string()),
        reason: Some(failure.message.clone()),
        error: None,
    };
    encode(&envelope, &Numbered { body: &body, link_number: number })
}

/// Reads that a launch brought nothing.
pub fn read_launch_failed(
    envelope: &Envelope,
    text: &str,
) -> Result<(RequestId, Failure), Malformed> {
    let request = envelope.request(text)?;
    let body: LaunchFailed = read_body(text)?;
    if body.error.is_none() && body.error_code.is_none() {
        return Err(Malformed::rule(text, "session_launch_failed needs error_code"));
    }
    Ok((request, failure_of(body.error, body.error_code, body.reason, "internal")))
}
