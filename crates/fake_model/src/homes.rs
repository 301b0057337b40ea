//! Homes for agents under test: the files and the environment with which each real agent program
//! talks to a [`FakeModel`](crate::FakeModel) and to nobody else.
//!
//! Invariant: what an agent reads and writes stays in the given folder; keys are dummies; proxies
//! are set to a closed port, so that a request to anywhere but this machine fails at once.
//! Start the agent with an empty environment, `PATH`, and what [`prepare_home`] returns.
//!
//! Not here: the arguments an agent is started with (its driver), installing it
//! (`cargo xtask agents`).

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

/// The models that are offered to agents whose lists are ours to write.
const MODELS: [&str; 2] = ["fake-a", "fake-b"];
/// Nobody listens on the discard port.
const NOWHERE: &str = "http://127.0.0.1:9";
const HERE: &str = "127.0.0.1,localhost,::1";
const CONTEXT_TOKENS: u32 = 128_000;
const OUTPUT_TOKENS: u32 = 8_000;

/// The agents that a home can be prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// pi.
    Pi,
}

impl Agent {
    /// Every one of them.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Pi];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
        }
    }
}

/// Names and values for an agent's environment.
pub type Environment = Vec<(String, String)>;

/// Writes the agent's settings below `folder` (which becomes its HOME) and tells the environment
/// that belongs to them. `base_url` is that of the model, without a path.
pub fn prepare_home(agent: Agent, folder: &Path, base_url: &str) -> io::Result<Environment> {
    fs::create_dir_all(folder)?;
    let own = match agent {
        Agent::Claude => claude(base_url),
        Agent::Codex => codex(folder, base_url)?,
        Agent::Gemini => gemini(folder, base_url)?,
        Agent::Opencode => opencode(base_url),
        Agent::Pi => pi(folder, base_url)?,
    };
    let mut environment = shared(folder);
    environment.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Ok(environment)
}

type Own = Vec<(&'static str, String)>;

fn shared(folder: &Path) -> Environment {
    let inside = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let mut environment = vec![
        ("HOME", folder.to_string_lossy().into_owned()),
        ("XDG_CONFIG_HOME", inside(".config")),
        ("XDG_DATA_HOME", inside(".local/share")),
        ("XDG_STATE_HOME", inside(".local/state")),
        ("XDG_CACHE_HOME", inside(".cache")),
        ("LANG", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
    ];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        environment.push((name, NOWHERE.into()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        environment.push((name, HERE.into()));
    }
    environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn claude(base_url: &str) -> Own {
    let mut own = vec![
        ("ANTHROPIC_BASE_URL", base_url.to_owned()),
        ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
    ];
    for switch in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
    ] {
        own.push((switch, "1".into()));
    }
    // Every tool is in every request, instead of some that have to be searched for first.
    own.push(("ENABLE_TOOL_SEARCH", "false".into()));
    // The newest models are not given the tools for task lists.
    own.push(("ANTHROPIC_MODEL", "claude-sonnet-4-5".into()));
    own
}

fn codex(folder: &Path, base_url: &str) -> io::Result<Own> {
    let home = folder.join(".codex");
    fs::create_dir_all(&home)?;
    // A made-up model gets plain function tools; for names that it knows Codex sends none.
    let config = format!(
        r#"model = "{model}"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[analytics]
enabled = false

[tools.update_plan]
enabled = true

[model_providers.fake]
name = "fake"
base_url = "{base_url}/v1"
env_key = "FAKE_MODEL_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"#,
        model = MODELS[0],
    );
    fs::write(home.join("config.toml"), config)?;
    Ok(vec![
        ("CODEX_HOME", home.to_string_lossy().into_owned()),
        ("FAKE_MODEL_KEY", "dummy".into()),
    ])
}

fn gemini(folder: &Path, base_url: &str) -> io::Result<Own> {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "telemetry": {"enabled": false},
    });
    write_json(&folder.join(".gemini"), "settings.json", &settings)?;
    Ok(vec![
        ("GEMINI_API_KEY", "dummy".into()),
        ("GOOGLE_GEMINI_BASE_URL", base_url.to_owned()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".into()),
        ("GEMINI_TELEMETRY_ENABLED", "false".into()),
        ("NO_BROWSER", "true".into()),
    ])
}

fn opencode(base_url: &str) -> Own {
    let limit = json!({"context": CONTEXT_TOKENS, "output": OUTPUT_TOKENS});
    let model = |id: &str| {
        let modalities = json!({"input": ["text", "image"], "output": ["text"]});
        let model = json!({"name": id, "tool_call": true, "reasoning": true, "limit": limit,
            "attachment": true, "modalities": modalities});
        (id.to_owned(), model)
    };
    let models: serde_json::Map<String, Value> = MODELS.iter().map(|id| model(id)).collect();
    let first = format!("fake/{}", MODELS[0]);
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": first,
        "small_model": first,
        "enabled_providers": ["fake"],
        "permission": {"bash": "ask", "edit": "ask"},
        "provider": {"fake": {
            "name": "Fake",
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{base_url}/v1"), "apiKey": "dummy"},
            "models": models,
        }},
    });
    let mut own = vec![("OPENCODE_CONFIG_CONTENT", config.to_string())];
    for switch in [
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    ] {
        own.push((switch, "1".into()));
    }
    own
}

fn pi(folder: &Path, base_url: &str) -> io::Result<Own> {
    let model = |id: &&str| {
        json!({
            "id": id,
            "name": id,
            "reasoning": true,
            "input": ["text", "image"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": CONTEXT_TOKENS,
            "maxTokens": OUTPUT_TOKENS,
        })
    };
    let models = json!({"providers": {"fake": {
        "baseUrl": format!("{base_url}/v1"),
        "api": "openai-completions",
        "apiKey": "dummy",
        "models": MODELS.iter().map(model).collect::<Vec<_>>(),
    }}});
    let settings = json!({"defaultProvider": "fake", "defaultModel": MODELS[0]});
    let home = folder.join(".pi/agent");
    write_json(&home, "models.json", &models)?;
    write_json(&home, "settings.json", &settings)?;
    Ok(vec![
        ("PI_OFFLINE", "1".into()),
        ("PI_SKIP_VERSION_CHECK", "1".into()),
        ("PI_TELEMETRY", "0".into()),
    ])
}

fn write_json(folder: &Path, name: &str, value: &Value) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_home_lies_in_its_folder_and_points_at_the_model() {
        for agent in Agent::ALL {
            let folder = tempfile::tempdir().unwrap();
            let environment = prepare_home(agent, folder.path(), "http://127.0.0.1:4321").unwrap();
            let value = |name: &str| {
                let found = environment.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            assert_eq!(Path::new(&value("HOME")), folder.path(), "{agent:?}");
            assert_eq!(value("HTTPS_PROXY"), NOWHERE, "{agent:?}");
            let mut told: String = environment.iter().map(|(_, value)| value.as_str()).collect();
            told.push_str(&contents(folder.path()));
            assert!(told.contains("http://127.0.0.1:4321"), "{agent:?}: {told}");
        }
    }

    fn contents(folder: &Path) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                text.push_str(&contents(&path));
            } else {
                text.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
        text
    }
}
