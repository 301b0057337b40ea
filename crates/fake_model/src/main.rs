//! `fake-model`: the model as a program, to try an agent by hand.
//!
//! Prints `{"port":N}` once it answers, and serves until it is ended. With `--home AGENT=FOLDER`
//! the line also has the `environment` to start that agent with.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;
use fake_model::homes::{Agent, prepare_home};
use fake_model::{FakeModel, Options, Pace};
use serde_json::{Map, Value, json};

/// A scripted model on 127.0.0.1, in the words of Anthropic, OpenAI and Gemini.
#[expect(clippy::doc_markdown, reason = "the text is shown to people by --help")]
#[derive(Parser)]
struct Arguments {
    /// The port; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write every request to this file, one JSON object a line
    #[arg(long)]
    log: Option<PathBuf>,
    /// So many times as fast as a real model
    #[arg(long, default_value_t = 1)]
    faster: u32,
    /// Prepare a home for this agent in this folder
    #[arg(long, value_name = "AGENT=FOLDER", value_parser = home)]
    home: Option<(Agent, PathBuf)>,
}

fn home(text: &str) -> Result<(Agent, PathBuf), String> {
    let (name, folder) = text.split_once('=').ok_or("write it as AGENT=FOLDER")?;
    let agent = Agent::ALL.into_iter().find(|agent| agent.name() == name);
    let names = Agent::ALL.map(Agent::name).join(", ");
    Ok((agent.ok_or_else(|| format!("the agents are {names}"))?, folder.into()))
}

fn main() -> io::Result<()> {
    let Arguments { port, log, faster, home } = Arguments::parse();
    let options = Options { port, log_file: log, pace: Pace::faster(faster) };
    let model = FakeModel::start_with(&options)?;
    let mut line = json!({"port": model.port()});
    if let Some((agent, folder)) = home {
        let folder = std::path::absolute(folder)?;
        let environment = prepare_home(agent, &folder, &model.base_url())?;
        let environment: Map<String, Value> =
            environment.into_iter().map(|(name, value)| (name, value.into())).collect();
        line["environment"] = environment.into();
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    drop(out);
    model.serve_forever();
    Ok(())
}
