//! Credentials over HTTP, for the owner.
//!
//! Not here: how they are made and checked (`auth`).

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::Role;
use serde::Deserialize;
use serde_json::json as object;
use store::{Credential, CredentialKind};

use super::problem::{Problem, role_word};
use super::{json, told};
use crate::clock::{self, iso8601};
use crate::door::Visitor;
use crate::house::House;

#[derive(Deserialize)]
pub(super) struct Create {
    role: Role,
    #[serde(default)]
    name: Option<String>,
}

/// `POST /v1/tokens`: the only answer that ever holds the secret.
pub(super) async fn create(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, Problem> {
    let owner = visitor.owner()?;
    let Create { role, name } = json(request).await?;
    let name = name.unwrap_or_else(|| role_word(role).to_owned());
    let made = house.auth.create(CredentialKind::Token, role, &name, clock::now()).await?;
    let role = role_word(made.role);
    tracing::info!(target: "audit", id = %made.id, role, name = made.name, by = owner.name, "token created");
    let body = object!({ "id": made.id, "token": made.token, "role": role, "name": made.name });
    Ok(told(StatusCode::CREATED, &body))
}

/// `GET /v1/tokens`: those that open something.
pub(super) async fn list(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, Problem> {
    visitor.owner()?;
    let credentials = house.auth.list().await?;
    let now = clock::now();
    let valid = credentials.iter().filter(|credential| crate::auth::is_valid(credential, now));
    let tokens: Vec<_> = valid.map(describe).collect();
    Ok(told(StatusCode::OK, &object!({ "tokens": tokens })))
}

/// `DELETE /v1/tokens/{id}`: its open sockets close at once.
pub(super) async fn revoke(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let owner = visitor.owner()?;
    if !house.auth.revoke(&id.as_str().into(), clock::now()).await? {
        let words = "No valid token has this id; list them with farhelm token list";
        return Err(Problem::new(StatusCode::NOT_FOUND, "token_unknown", words));
    }
    tracing::info!(target: "audit", id, by = owner.name, "token revoked");
    Ok(told(StatusCode::OK, &object!({ "id": id, "revoked": true })))
}

fn describe(credential: &Credential) -> serde_json::Value {
    let kind = match credential.kind {
        CredentialKind::Token => "token",
        CredentialKind::Device => "device",
        CredentialKind::Webchannel => "webchannel",
    };
    object!({
        "id": credential.id,
        "role": role_word(credential.role),
        "name": credential.name,
        "kind": kind,
        "created_at": iso8601(credential.created_at),
        "last_used_at": credential.last_used_at.map(iso8601),
    })
}
