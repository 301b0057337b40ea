//! The configuration of IDEs.

use std::path::PathBuf;

/// The bound of how many ports are watched.
pub const PORTS_MAX: usize = 16;

/// Where panels are looked for, and what may be started to have some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdeConfig {
    /// Debug ports to attach to: `127.0.0.1:9222`. This machine's only.
    pub ports: Vec<String>,
    /// IDEs that may be started when somebody wants a chat and none is open.
    pub programs: Vec<IdeProgram>,
    /// The folder of the person's own profiles.
    pub profiles: Option<PathBuf>,
}

impl IdeConfig {
    /// Every port that panels may be at, each once.
    pub fn all_ports(&self) -> Vec<String> {
        let started = self.programs.iter().map(IdeProgram::address);
        let mut ports: Vec<String> = vec![];
        for port in self.ports.iter().cloned().chain(started) {
            if !ports.contains(&port) && ports.len() < PORTS_MAX {
                ports.push(port);
            }
        }
        ports
    }

    /// Whether there is anything to look at.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.programs.is_empty()
    }
}

/// An IDE that may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdeProgram {
    /// The profiles whose panels it has.
    pub profiles: Vec<String>,
    /// The program.
    pub command: String,
    /// Its arguments. `{port}` stands for the port, `{workspace}` for the folder; an argument
    /// with `{workspace}` is left out where no folder is wanted.
    pub args: Vec<String>,
    /// Set besides the person's environment.
    pub env: Vec<(String, String)>,
    /// The debug port that it opens.
    pub port: u16,
}

impl IdeProgram {
    /// Where its debug port is.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its arguments for a folder.
    pub fn arguments(&self, workspace: Option<&str>) -> Vec<String> {
        let wanted =
            self.args.iter().filter(|it| workspace.is_some() || !it.contains("{workspace}"));
        wanted
            .map(|argument| {
                let argument = argument.replace("{port}", &self.port.to_string());
                argument.replace("{workspace}", workspace.unwrap_or_default())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_its_port_and_its_folder_where_one_is_wanted() {
        let args = ["--remote-debugging-port={port}", "--new-window", "{workspace}"];
        let program = IdeProgram {
            profiles: vec!["cursor".to_owned()],
            command: "cursor".to_owned(),
            args: args.map(str::to_owned).to_vec(),
            env: vec![],
            port: 9333,
        };
        assert_eq!(
            program.arguments(Some("/src/kite")),
            ["--remote-debugging-port=9333", "--new-window", "/src/kite"]
        );
        assert_eq!(program.arguments(None), ["--remote-debugging-port=9333", "--new-window"]);
        let ports = vec!["127.0.0.1:9333".to_owned()];
        let config = IdeConfig { ports, programs: vec![program], profiles: None };
        assert_eq!(config.all_ports(), ["127.0.0.1:9333"]);
    }
}
