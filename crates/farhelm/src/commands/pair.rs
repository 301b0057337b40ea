//! `farhelm pair`: a code for another device.

use std::process::ExitCode;

use clap::ValueEnum as _;
use hyper::Method;
use serde_json::json;

use crate::arguments::Pair;
use crate::discovery::Finder;
use crate::problem::Problem;
use crate::{http, output, qr};

/// Asks for a code and shows it.
pub(super) async fn run(pair: Pair) -> Result<ExitCode, Problem> {
    let finder = Finder::new(&pair.reach)?;
    let role = pair.role.to_possible_value().map(|value| value.get_name().to_owned());
    let body = json!({ "role": role });
    let offered = http::ask(&finder, Method::POST, "/v1/pair/codes", Some(&body)).await?;
    if pair.json {
        output::json(&offered)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |name: &str| offered[name].as_str().unwrap_or_default();
    let link = text("link");
    output::line(format_args!("code  {}", text("code")))?;
    output::line(format_args!("link  {link}"))?;
    output::line(format_args!("works once, expires at {}", text("expires_at")))?;
    if let Some(code) = qr::draw(link).filter(|_| output::is_terminal()) {
        output::raw(&format!("\n{code}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
