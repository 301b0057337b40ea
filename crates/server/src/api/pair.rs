//! Pairing: a code for a person, a token for a device.
//!
//! Not here: how codes are stored and guesses limited (`auth`).

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use domain::Role;
use serde::Deserialize;
use serde_json::json as object;

use super::me::token_cookie;
use super::problem::{Problem, role_word};
use super::{json, told};
use crate::auth::PairRefused;
use crate::clock::{self, iso8601};
use crate::door::Visitor;
use crate::house::House;

/// What a device that named itself nothing is called.
const UNNAMED_DEVICE: &str = "device";

#[derive(Deserialize)]
pub(super) struct Redeem {
    code: String,
    #[serde(default)]
    device_name: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Offer {
    /// What the device will be allowed; a steering one unless said otherwise.
    #[serde(default)]
    role: Option<Role>,
}

/// `POST /v1/pair`: needs no credential, that is its point.
pub(super) async fn redeem(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, Problem> {
    let Redeem { code, device_name } = json(request).await?;
    // People type what they see printed in groups.
    let code: String = code.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    let name = device_name.filter(|name| !name.trim().is_empty());
    let name = name.as_deref().unwrap_or(UNNAMED_DEVICE);
    let redeemed = house.auth.redeem_code(&code, name, visitor.address, clock::now()).await?;
    let issued = redeemed.map_err(|refused| match refused {
        PairRefused::WrongCode => {
            tracing::warn!(from = %visitor.address, "wrong pairing code");
            let words = "The code is wrong, used or expired; get a new one with farhelm pair";
            Problem::new(StatusCode::UNAUTHORIZED, "pairing_code_invalid", words)
        }
        PairRefused::LockedOut { retry_after_ms } => {
            let seconds = retry_after_ms.div_ceil(1_000).max(1);
            let words = format!("Too many wrong codes; try again in {seconds} seconds");
            Problem::too_many(words, retry_after_ms)
        }
    })?;
    tracing::info!(target: "audit", id = %issued.id, name = issued.name, from = %visitor.address, "device paired");
    let body = object!({
        "token": issued.token, "id": issued.id, "role": role_word(issued.role), "name": issued.name,
    });
    let mut response = told(StatusCode::OK, &body);
    let cookie = token_cookie(&issued.token, visitor.secure)?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// `POST /v1/pair/codes`
pub(super) async fn offer(
    State(house): State<House>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, Problem> {
    visitor.owner()?;
    let Offer { role } = json(request).await?;
    let role = role.unwrap_or(Role::Operator);
    let offered = house.auth.offer_code(role, clock::now()).await?;
    let body = object!({
        "code": offered.code,
        "link": crate::pairing_link(&house.base, &offered.code),
        "expires_at": iso8601(offered.expires_at),
    });
    Ok(told(StatusCode::CREATED, &body))
}
