//! Who sends a request: from which address, over which transport, and with which credential.
//!
//! Not here: whether it is let in (`door`), what the credential allows (`auth`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use domain::{Principal, Role};

use crate::api::Problem;
use crate::house::Guest;

/// The cookie that holds a token.
pub const TOKEN_COOKIE: &str = "farhelm_token";
/// The same, emptied.
pub(super) const COOKIE_CLEARED: &str = "farhelm_token=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax";

/// What the listener knows of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) peer: SocketAddr,
    pub(crate) secure: bool,
    pub(crate) guest: Arc<Guest>,
}

/// Who made a request.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) principal: Option<Principal>,
    /// Of the person's device, as far as it can be believed.
    pub(crate) address: IpAddr,
    /// Whether the device speaks TLS, to us or to a trusted proxy.
    pub(crate) secure: bool,
}

impl Visitor {
    /// Anybody with a credential.
    pub(crate) fn known(&self) -> Result<&Principal, Problem> {
        self.principal.as_ref().ok_or_else(Problem::credential_missing)
    }

    /// A person, who may watch.
    pub(crate) fn watcher(&self) -> Result<&Principal, Problem> {
        self.with_role(&[Role::Viewer, Role::Operator, Role::Owner])
    }

    /// A person who may steer.
    pub(crate) fn operator(&self) -> Result<&Principal, Problem> {
        self.with_role(&[Role::Operator, Role::Owner])
    }

    /// A person who may erase and manage credentials.
    pub(crate) fn owner(&self) -> Result<&Principal, Problem> {
        self.with_role(&[Role::Owner])
    }

    /// Anybody with one of these roles.
    pub(crate) fn with_role(&self, roles: &[Role]) -> Result<&Principal, Problem> {
        let principal = self.known()?;
        let fits = roles.contains(&principal.role);
        fits.then_some(principal).ok_or_else(|| Problem::role(principal.role, roles))
    }
}

/// The secret that a request shows deliberately. It wins over the cookie, which a browser adds by
/// itself.
pub(super) fn shown(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    bearer(headers).map(str::to_owned).or_else(|| parameter(query, "token"))
}

/// The first parameter of this name, decoded.
pub(crate) fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query?.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Other schemes belong to whatever stands in front of the relay.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = shown.split_once(' ').unwrap_or((shown, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// The token that the browser keeps.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim() == TOKEN_COOKIE).map(|(_, value)| value.trim())
}

/// Address and TLS of the device, seen through the proxies that are believed.
pub(crate) fn seen_through(
    (peer, secure): (SocketAddr, bool),
    headers: &HeaderMap,
    trusted: &[IpAddr],
) -> (IpAddr, bool) {
    let believed = |address: IpAddr| trusted.contains(&address.to_canonical());
    let peer = peer.ip().to_canonical();
    if !believed(peer) {
        return (peer, secure);
    }
    let text = |name: &str| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    // Each proxy adds at the end whom it saw; the first that no trusted one vouches for is the
    // device, and everything before it is only what the device said.
    let hops: Vec<&str> = text("x-forwarded-for").flat_map(|line| line.split(',')).collect();
    let mut hops = hops.iter().rev().map_while(|hop| hop.trim().parse::<IpAddr>().ok());
    let address = hops.find(|hop| !believed(*hop)).map_or(peer, |hop| hop.to_canonical());
    let proto = text("x-forwarded-proto").next_back().and_then(|line| line.rsplit(',').next());
    let secure = proto.map_or(secure, |proto| proto.trim().eq_ignore_ascii_case("https"));
    (address, secure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn a_secret_is_found_in_header_query_and_cookie_in_this_order() {
        let all =
            headers(&[("authorization", "Bearer a"), ("cookie", "x=1; farhelm_token=c; y=2")]);
        let only_cookie = headers(&[("cookie", "x=1; farhelm_token=c")]);

        assert_eq!(shown(&all, Some("token=b")).as_deref(), Some("a"));
        assert_eq!(shown(&only_cookie, Some("x=y&token=b")).as_deref(), Some("b"));
        assert_eq!(shown(&only_cookie, None), None);
        assert_eq!(cookie(&only_cookie), Some("c"));
        assert_eq!(shown(&headers(&[("authorization", "Basic eDp5")]), None), None);
        // Shown, though empty: wrong, not absent.
        assert_eq!(shown(&headers(&[]), Some("token=")).as_deref(), Some(""));
    }

    #[test]
    fn forwarding_headers_are_believed_from_trusted_proxies_only() {
        let told =
            headers(&[("x-forwarded-for", "1.1.1.1, 203.0.113.9"), ("x-forwarded-proto", "https")]);
        let accepted = ("127.0.0.1:5".parse().unwrap(), false);
        let address = |raw: &str| raw.parse::<IpAddr>().unwrap();

        let stranger = seen_through(accepted, &told, &[]);
        assert_eq!(stranger, (address("127.0.0.1"), false));
        let trusted = seen_through(accepted, &told, &[address("127.0.0.1")]);
        // The first address was only claimed by the device itself.
        assert_eq!(trusted, (address("203.0.113.9"), true));
        let chain = [address("127.0.0.1"), address("203.0.113.9")];
        assert_eq!(seen_through(accepted, &told, &chain).0, address("1.1.1.1"));
    }
}
