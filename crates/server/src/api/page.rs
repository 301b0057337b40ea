//! The page at `/`: what this is, and how to connect.
//!
//! Not here: the clients that use the relay.

use axum::response::Html;

const PAGE: &str = include_str!("page.html");

/// `GET /`
pub(super) async fn page() -> Html<&'static str> {
    Html(PAGE)
}
