//! IDEs and browsers whose agent panels Farhelm uses.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proxy::panels::{IdeConfig, IdeProgram};
use serde::Deserialize;

use super::agents::at_home;
use crate::folders;

/// Where panels are, and which IDEs may be started.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "each is the name of its flag")]
pub(crate) struct Ide {
    /// Debug port of an IDE or browser whose agents to show: PORT or 127.0.0.1:PORT;
    /// repeatable. Any program on this computer can use such a port
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = port)]
    pub(crate) ide_ports: Vec<String>,
    /// An IDE that Farhelm may start: JSON with profiles, command, args, env and port (in the
    /// file: `[[ide.start]]` tables); repeatable
    #[arg(long, value_name = "JSON", value_parser = program)]
    pub(crate) ide_start: Vec<IdeProgram>,
    /// Folder with your own profiles [default: profiles, next to farhelm.toml]
    #[arg(long, value_name = "DIR")]
    pub(crate) ide_profiles: Option<PathBuf>,
}

impl Ide {
    /// As the proxy wants it.
    pub(crate) fn config(&self) -> IdeConfig {
        let named = self.ide_profiles.as_ref().map(|it| at_home(&it.to_string_lossy()).into());
        let usual = || Some(folders::configuration_file()?.parent()?.join("profiles"));
        IdeConfig {
            ports: self.ide_ports.clone(),
            programs: self.ide_start.clone(),
            profiles: named.or_else(usual),
        }
    }
}

/// Inspect agent panels in IDEs and browsers
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  farhelm cdp inspect --ide-ports 9222",
    subcommand_required = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cdp {
    #[command(subcommand)]
    pub(crate) task: CdpTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CdpTask {
    Inspect(Inspect),
}

/// List debug targets, the profile that matches each, and the landmarks found
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm cdp inspect --ide-ports 9222\n  farhelm cdp inspect \
                  --watch")]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) ide: Ide,
    /// Repeat every five seconds and show what changed
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a port of this machine. Others are refused: a debug port is the whole IDE.
fn port(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", text));
    let port: u16 = port.parse().map_err(|_| format!("{port:?} is not a port number"))?;
    if port == 0 {
        return Err("the port must be at least 1".to_owned());
    }
    if !["127.0.0.1", "[::1]", "localhost"].contains(&host) {
        return Err("only ports on this computer are allowed: 127.0.0.1:PORT".to_owned());
    }
    Ok(format!("{host}:{port}"))
}

/// Reads one program.
fn program(text: &str) -> Result<IdeProgram, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        profiles: Vec<String>,
        command: String,
        #[serde(default)]
        args: Option<Vec<String>>,
        #[serde(default)]
        env: std::collections::BTreeMap<String, String>,
        port: u16,
    }
    let Written { profiles, command, args, env, port } =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    if profiles.is_empty() || command.is_empty() || port == 0 {
        return Err("profiles, command and port are required".to_owned());
    }
    let usual = || ["--remote-debugging-port={port}", "{workspace}"].map(str::to_owned).to_vec();
    let (command, args) = (at_home(&command), args.unwrap_or_else(usual));
    if !args.iter().any(|argument| argument.contains("{port}")) {
        return Err("args must contain {port}, otherwise the IDE opens no debug port".to_owned());
    }
    Ok(IdeProgram { profiles, command, args, env: env.into_iter().collect(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ports_of_this_computer_are_taken() {
        assert_eq!(port("9222").as_deref(), Ok("127.0.0.1:9222"));
        assert_eq!(port("localhost:9222").as_deref(), Ok("localhost:9222"));
        for wrong in ["0", "x", "192.168.1.7:9222", "example.org:9222", "99999", ""] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_program_is_handed_its_port() {
        let read = program(r#"{"profiles":["cursor"],"command":"cursor","port":9333}"#).unwrap();
        assert_eq!(read.arguments(None), ["--remote-debugging-port=9333"]);
        for wrong in [
            r#"{"profiles":[],"command":"cursor","port":9333}"#,
            r#"{"profiles":["cursor"],"command":"cursor"}"#,
            r#"{"profiles":["cursor"],"command":"cursor","port":9333,"args":["--wait"]}"#,
        ] {
            assert!(program(wrong).is_err(), "{wrong}");
        }
    }
}
