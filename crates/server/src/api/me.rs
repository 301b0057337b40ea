//! The caller's own credential, and a cookie for a browser that was given a token.
//!
//! A browser keeps its token where no script can read it: in a cookie that only the relay sets and
//! deletes.
//!
//! Not here: new devices (`pair`), other people's credentials (`tokens`).

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json as object;

use super::problem::{Problem, role_word};
use super::told;
use crate::door::{TOKEN_COOKIE, Visitor, cookie_cleared, shown_secret};
use crate::house::House;

/// How long a browser keeps its token: until it is revoked, as far as browsers allow.
const COOKIE_LIFETIME_S: u64 = 400 * 24 * 60 * 60;

/// `GET /v1/me`
pub(super) async fn show(Extension(visitor): Extension<Visitor>) -> Result<Response, Problem> {
    described(&visitor)
}

/// `POST /v1/me`: the credential of this request becomes the browser's own.
pub(super) async fn enter(
    State(_house): State<House>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, Problem> {
    visitor.watcher()?;
    let mut response = described(&visitor)?;
    let secret = shown_secret(&request).ok_or_else(Problem::credential_missing)?;
    let cookie = token_cookie(&secret, visitor.secure)?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// `DELETE /v1/me`: this browser forgets its token. The token itself stays valid.
pub(super) async fn leave() -> Response {
    let mut response = told(StatusCode::OK, &object!({ "left": true }));
    response.headers_mut().insert(header::SET_COOKIE, cookie_cleared());
    response
}

/// A cookie that holds a token, out of reach of scripts.
pub(super) fn token_cookie(token: &str, secure: bool) -> Result<HeaderValue, Problem> {
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!(
        "{TOKEN_COOKIE}={token}; Path=/; Max-Age={COOKIE_LIFETIME_S}; HttpOnly; SameSite=Lax{secure}"
    );
    HeaderValue::from_str(&cookie).map_err(|error| Problem::internal(&error))
}

fn described(visitor: &Visitor) -> Result<Response, Problem> {
    let principal = visitor.known()?;
    let body = object!({
        "id": principal.credential,
        "name": principal.name,
        "role": role_word(principal.role),
        "version": env!("CARGO_PKG_VERSION"),
    });
    Ok(told(StatusCode::OK, &body))
}
