//! `fake-panels`: the panels as a program, to look at them by hand.
//!
//! Prints `{"panels":{NAME:ADDRESS,…}}` once it answers, and serves until it is ended.

use std::io::{self, Write};

use clap::Parser;
use fake_panels::{PANELS, Panels};
use serde_json::{Map, Value, json};

/// Panels of agents that are none, on 127.0.0.1.
#[derive(Parser)]
struct Arguments {
    /// The port of the pages; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Switches for every address, joined by `&`: `mutate=login&rows=4`
    #[arg(long, default_value = "")]
    switches: String,
}

fn main() -> io::Result<()> {
    let Arguments { port, switches } = Arguments::parse();
    let panels = Panels::start_at(port).map_err(io::Error::other)?;
    let address = |panel: &str| panels.url(panel, panel, &switches);
    let addresses: Map<String, Value> =
        PANELS.iter().map(|panel| ((*panel).to_owned(), address(panel).into())).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", json!({"panels": addresses}))?;
    out.flush()?;
    drop(out);
    panels.serve_forever();
    Ok(())
}
