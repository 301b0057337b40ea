//! The door: every request passes here first. It authenticates the request, runs it, and adds
//! security headers to the response.
//!
//! **Invariant**: a wrong credential is 401 and a foreign origin 403 on every path. The query,
//! which may hold a token, is in no log line, and no page receives a referrer.
//!
//! Not here: what is behind the door (`api`, `socket`).

mod origin;
mod visitor;

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

pub use origin::{NotAnOrigin, Origin};
use visitor::COOKIE_CLEARED;
pub use visitor::TOKEN_COOKIE;

pub(crate) use origin::{Page, RefusedPages, Unwelcome, Welcome};
pub(crate) use visitor::{Accepted, Visitor, parameter};

use crate::api::{Problem, page};
use crate::clock;
use crate::house::House;

/// How long a browser may remember a preflight.
const PREFLIGHT_REMEMBERED_S: &str = "600";
/// Where the token of a webchannel client opens anything.
const WEBCHANNEL_PATHS: [&str; 2] = ["/ws", "/ws/webchannel"];
const METHODS: &str = "GET, POST, PATCH, DELETE";
const REQUEST_HEADERS: &str = "authorization, content-type";
/// Where a device gets its credential: one that it has already, and that is wrong, is no reason
/// to refuse it.
const PAIR_PATH: &str = "/v1/pair";
/// The page may load and reach only what the relay serves. Nothing inline, no evaluation: agents
/// write what it shows.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
    worker-src 'self'; media-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Checks who knocks, lets them in, and closes the envelope of the answer.
pub(crate) async fn door(State(house): State<House>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let api = path.starts_with("/v1/");
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = match look(&house, &request) {
        Err(problem) => problem.into_response(),
        Ok(seen) => {
            let mut response = if api && request.method() == Method::OPTIONS {
                preflight()
            } else {
                match admit(&house, &request, &seen) {
                    Err(problem) => refused(problem, &request),
                    Ok(visitor) => {
                        request.extensions_mut().insert(visitor);
                        next.run(request).await
                    }
                }
            };
            // A page that may ask may also read why it was refused.
            if let Some(origin) = origin.filter(|_| api && seen.page == Page::Elsewhere) {
                response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            }
            response
        }
    };
    envelope(response.headers_mut(), api);
    tracing::debug!(path, status = response.status().as_u16(), "answered");
    response
}

/// What can be seen of a request without its credential.
struct Seen {
    page: Page,
    address: IpAddr,
    secure: bool,
}

fn look(house: &House, request: &Request) -> Result<Seen, Problem> {
    let headers = request.headers();
    // The listener adds it to each request.
    let accepted = request.extensions().get::<Accepted>().ok_or_else(Problem::defect)?;
    let direct = (accepted.peer, accepted.secure);
    let (address, secure) = visitor::seen_through(direct, headers, &house.trusted_proxies);
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let judged = house.welcome.judge(text(header::HOST), text(header::ORIGIN), secure);
    let page = judged.map_err(|unwelcome| {
        house.refused_pages.log(&unwelcome, clock::now());
        Problem::unwelcome(&unwelcome)
    })?;
    Ok(Seen { page, address, secure })
}

fn admit(house: &House, request: &Request, seen: &Seen) -> Result<Visitor, Problem> {
    let cookie_counts = request.uri().path() != PAIR_PATH;
    let kept = || visitor::cookie(request.headers()).map(str::to_owned).filter(|_| cookie_counts);
    let shown = shown_secret(request).or_else(kept);
    let check = |secret: String| {
        let principal = house.auth.check(&secret, clock::now());
        principal.ok_or_else(Problem::credential_wrong)
    };
    let principal = shown.map(check).transpose()?;
    // Whoever reads such a token from the wire must not get around the seal by another way.
    let is_paired = principal.as_ref().is_some_and(wire::webchannel::is_paired);
    if is_paired && !WEBCHANNEL_PATHS.contains(&request.uri().path()) {
        return Err(Problem::webchannel_only());
    }
    Ok(Visitor { principal, address: seen.address, secure: seen.secure })
}

/// The secret that a request shows deliberately, not the cookie that a browser adds by itself.
pub(crate) fn shown_secret(request: &Request) -> Option<String> {
    visitor::shown(request.headers(), request.uri().query())
}

/// A person whose browser kept a wrong credential gets the page, which asks for a new one; its
/// scripts get words.
fn refused(problem: Problem, request: &Request) -> Response {
    let mut response = problem.into_response();
    let by_cookie = shown_secret(request).is_none() && request.method() == Method::GET;
    let page = page::file(request.uri(), request.headers()).filter(|_| by_cookie);
    if let Some(page) = page {
        let forget = response.headers_mut().remove(header::SET_COOKIE);
        response = (StatusCode::UNAUTHORIZED, page).into_response();
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(forget) = forget {
            response.headers_mut().insert(header::SET_COOKIE, forget);
        }
    }
    response
}

/// Makes a browser forget its token.
pub(crate) fn cookie_cleared() -> HeaderValue {
    HeaderValue::from_static(COOKIE_CLEARED)
}

/// A browser asks before it lets a page elsewhere make a request.
fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
    let remembered = HeaderValue::from_static(PREFLIGHT_REMEMBERED_S);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, remembered);
    response
}

fn envelope(headers: &mut HeaderMap, api: bool) {
    let mut put = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(header::X_FRAME_OPTIONS, "DENY");
    put(header::REFERRER_POLICY, "no-referrer");
    put(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    put(header::VARY, "origin");
    if api {
        put(header::CACHE_CONTROL, "no-store");
    }
}
