//! The quirks of particular ACP agents, as data.
//!
//! An agent is recognised by its name in the handshake, else by the name under which it was
//! launched. An agent without a row behaves as the protocol says.

/// What is particular about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a table of habits, each there or not")]
pub(super) struct Quirks {
    /// What people call it.
    pub(super) display_name: Option<&'static str>,
    /// What a person does to log in.
    pub(super) login: Option<&'static str>,
    /// Text of the agent that begins so tells its mode, and nobody said it.
    pub(super) mode_mark: Option<&'static str>,
    /// Text of the agent that begins so is a notice, and nobody said it.
    pub(super) notice_marks: &'static [&'static str],
    /// Replayed text that begins so stands for something else, and nobody said it.
    pub(super) replay_marks: &'static [&'static str],
    /// The replay goes on after the answer to `session/load`, until the commands are told.
    pub(super) replay_trails: bool,
    /// Its record is named by the minute, and a load within the minute in which the conversation
    /// was opened writes over it: the load waits for the next.
    pub(super) names_by_the_minute: bool,
    /// A message that the replay lacks was never received.
    pub(super) records_all: bool,
    /// Each piece of thinking is a thought of its own.
    pub(super) thoughts_are_whole: bool,
    /// What a person can do so that conversations are not lost.
    pub(super) keeping: Option<&'static str>,
    /// It tells what it is about to write (`fs/write_text_file`), and then writes it itself.
    pub(super) announces_writes: bool,
    /// It does not understand that a file which it wants read is not there, and cannot make it
    /// then: it had better read itself.
    pub(super) needs_own_reads: bool,
    /// The tool whose input is the todo list, where no plan is told.
    pub(super) plan_tool: Option<&'static str>,
    /// What stands between a tool's name and the rest of its call's id.
    pub(super) tool_name_ends_at: Option<&'static str>,
}

const PLAIN: Quirks = Quirks {
    display_name: None,
    login: None,
    mode_mark: None,
    notice_marks: &[],
    replay_marks: &[],
    replay_trails: false,
    names_by_the_minute: false,
    records_all: false,
    thoughts_are_whole: false,
    keeping: None,
    announces_writes: false,
    needs_own_reads: false,
    plan_tool: None,
    tool_name_ends_at: None,
};

const GEMINI: Quirks = Quirks {
    display_name: Some("Gemini CLI"),
    login: Some("Run `gemini` in a terminal on that machine and log in, or set GEMINI_API_KEY"),
    mode_mark: Some("[MODE_UPDATE]"),
    replay_marks: &["<session_context>", "[Function Call:", "[Function Response:"],
    replay_trails: true,
    names_by_the_minute: true,
    // Each load leaves an empty record beside the full one, and the next start's tidying removes
    // both.
    keeping: Some(
        "It deletes resumed conversations when it cleans up. To keep them, set \"general\": \
         {\"sessionRetention\": {\"enabled\": false}} in ~/.gemini/settings.json",
    ),
    thoughts_are_whole: true,
    needs_own_reads: true,
    tool_name_ends_at: Some("__"),
    ..PLAIN
};

const OPENCODE: Quirks = Quirks {
    display_name: Some("opencode"),
    login: Some("Run `opencode auth login` in a terminal on that machine"),
    records_all: true,
    announces_writes: true,
    plan_tool: Some("todowrite"),
    ..PLAIN
};

const CODEX_ADAPTER: Quirks =
    Quirks { notice_marks: &["Warning: Model metadata for", "Model metadata for"], ..PLAIN };

/// By both names.
const TABLE: &[(&str, Quirks)] = &[
    ("gemini", GEMINI),
    ("gemini-cli", GEMINI),
    ("opencode", OPENCODE),
    ("OpenCode", OPENCODE),
    ("@agentclientprotocol/codex-acp", CODEX_ADAPTER),
    ("codex-acp", CODEX_ADAPTER),
];

impl Quirks {
    /// Of the agent that was launched under this name.
    pub(super) fn of(name: &str) -> Self {
        Self::find(name).unwrap_or(PLAIN)
    }

    /// Of the agent that gives itself this name, if it is known.
    pub(super) fn find(name: &str) -> Option<Self> {
        TABLE.iter().find(|(known, _)| *known == name).map(|(_, quirks)| *quirks)
    }
}
