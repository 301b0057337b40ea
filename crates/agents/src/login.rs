//! Where to see whether a person has logged in to an agent. No credential is read: only whether a
//! file exists or a variable is set.
//!
//! Not here: looking (`proxy`).

/// Where one agent's credentials would be.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// Which agent.
    pub agent: &'static str,
    /// Files: the variable that names their folder, that folder below the person's home, and
    /// the file in it.
    pub files: &'static [(&'static str, &'static str, &'static str)],
    /// Variables.
    pub variables: &'static [&'static str],
    /// Whether somebody without any of these is certainly not logged in. Not so where an agent
    /// has many providers, or a keychain may hold the credential.
    pub is_complete: bool,
}

/// What is known of each agent.
const LOGINS: &[Login] = &[
    Login {
        agent: "claude",
        files: &[("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ],
        is_complete: !cfg!(target_os = "macos"),
    },
    Login {
        agent: "codex",
        files: &[("CODEX_HOME", ".codex", "auth.json")],
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        // Its configuration may name a provider that needs none.
        is_complete: false,
    },
    Login {
        agent: "gemini",
        files: &[("", ".gemini", "oauth_creds.json"), ("", ".gemini", ".env")],
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
        is_complete: false,
    },
    Login {
        agent: "pi",
        files: &[("PI_CODING_AGENT_DIR", ".pi/agent", "auth.json")],
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
        is_complete: false,
    },
    Login {
        agent: "opencode",
        files: &[("XDG_DATA_HOME", ".local/share", "opencode/auth.json")],
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
        is_complete: false,
    },
];

/// Where an agent's credentials would be, if that is known.
pub fn login_of(agent: &str) -> Option<&'static Login> {
    LOGINS.iter().find(|login| login.agent == agent)
}
