//! What a machine offers, sent when it changes, and the conversations that its agents keep, sent
//! on request.

use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::Offer;
use domain::{AgentType, RequestId, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::shapes::{
    AgentEntry, Conversations, Envelope, ErrorBody, LimitsEntry, Malformed, ResumableList, encode,
    read_body,
};
use super::greeting::from_relay;

/// An offer as it is written, in hello and by itself.
#[derive(Serialize, Deserialize)]
pub(super) struct OfferBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<AgentType>>,
    #[serde(default)]
    workspaces: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agent_details: Vec<AgentEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limits: Option<LimitsEntry>,
}

impl From<&Offer> for OfferBody {
    fn from(offer: &Offer) -> Self {
        Self {
            agents: offer.agents.clone(),
            workspaces: offer.workspaces.clone(),
            agent_details: offer.details.iter().map(Into::into).collect(),
            limits: offer.limits.map(Into::into),
        }
    }
}

impl From<OfferBody> for Offer {
    fn from(body: OfferBody) -> Self {
        Self {
            agents: body.agents,
            workspaces: body.workspaces,
            details: body.agent_details.into_iter().map(Into::into).collect(),
            limits: body.limits.map(Into::into),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct CatalogBody {
    catalog: OfferBody,
}

/// Writes what the machine has to offer now.
pub fn encode_catalog(offer: &Offer) -> Bytes {
    encode(&Envelope::new("proxy_catalog"), &CatalogBody { catalog: offer.into() })
}

/// Reads what the machine has to offer now.
pub fn read_catalog(text: &str) -> Result<Offer, Malformed> {
    Ok(read_body::<CatalogBody>(text)?.catalog.into())
}

/// Asks a machine for its conversations.
pub fn encode_resumable_list(request: &RequestId, list: &ResumableList, now: Timestamp) -> Bytes {
    let request_id = Some(request.clone());
    encode(&Envelope { request_id, ..from_relay("resumable_list", now) }, list)
}

#[derive(Serialize, Deserialize)]
struct ConversationsBody {
    #[serde(flatten)]
    page: Conversations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// Answers with conversations, or why there are none.
pub fn encode_conversations(request: &RequestId, listed: &Result<Conversations, Failure>) -> Bytes {
    let request_id = Some(request.clone());
    let body = match listed {
        Ok(page) => ConversationsBody { page: page.clone(), error: None },
        Err(failure) => {
            ConversationsBody { page: Conversations::default(), error: Some(failure.into()) }
        }
    };
    encode(&Envelope { request_id, ..Envelope::new("resumable_sessions") }, &body)
}

/// Reads that answer.
pub fn read_conversations(
    envelope: &Envelope,
    text: &str,
) -> Result<(RequestId, Result<Conversations, Failure>), Malformed> {
    let request = envelope.request(text)?;
    let body: ConversationsBody = read_body(text)?;
    Ok((request, body.error.map_or(Ok(body.page), |error| Err(error.into()))))
}
