//! The agents under test, and what each of them can and cannot do.
//!
//! Invariant: a `None` or `false` here is a fact about the agent, checked by its scenario against
//! the capabilities that its driver tells, and it ends up in the table of `docs/agents.md`.

use fake_model::homes;

/// One agent.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table, not a state")]
pub(crate) struct Agent {
    /// Its name in `agent_type`.
    pub(crate) name: &'static str,
    /// Which home makes it talk to the fake model; `None`: it needs no model.
    pub(crate) home: Option<homes::Agent>,
    /// Before words that it is to answer in several pieces.
    pub(crate) saying: &'static str,
    /// Makes it run a command about which it asks the person.
    pub(crate) asking: &'static str,
    /// Makes it run a command that changes nothing (it may ask or not).
    pub(crate) running: &'static str,
    /// Whether a refusal ends the run (else the model is told, and goes on).
    pub(crate) refusal_ends_run: bool,
    /// Whether one answer can allow what is like it from then on.
    pub(crate) allows_always: bool,
    /// Whether the person may change what a tool is called with.
    pub(crate) takes_edited_input: bool,
    /// Whether it takes words in the middle of a run.
    pub(crate) steers: bool,
    /// Whether it can be told to use another model.
    pub(crate) switches_model: bool,
    /// That other model, where the agent has no list of them.
    pub(crate) other_model: Option<&'static str>,
    /// The mode to switch to, and what it means for a command that it asked about before.
    pub(crate) mode: Option<(&'static str, Mode)>,
    /// Whether a refusal of the model's service ends the run (else it tries again for long).
    pub(crate) fails_at_once: bool,
    /// Whether its earlier conversations can be listed on its machine.
    pub(crate) lists_conversations: bool,
    /// Whether it tells how many tokens a run took.
    pub(crate) tells_usage: bool,
    /// Whether it tells what a command printed.
    pub(crate) tells_output: bool,
    /// Whether it leaves the cutting of a long output to us (else it cuts it itself).
    pub(crate) leaves_output_whole: bool,
    /// Whether it takes pictures.
    pub(crate) takes_pictures: bool,
    /// Whether its record of a conversation has the pictures themselves.
    pub(crate) keeps_pictures: bool,
    /// Whether it keeps a list of things to do.
    pub(crate) keeps_plan: bool,
    /// The message that makes it sum up the conversation.
    pub(crate) compacts: Option<&'static str>,
    /// The message that brings it to a limit of the model's service, and the notice that follows.
    pub(crate) limited: Option<(&'static str, &'static str)>,
    /// The message that begins a subagent in the background, which runs a command.
    pub(crate) works_in_background: Option<&'static str>,
}

/// What a mode does with a command that was asked about before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It runs without asking.
    Runs,
    /// It cannot be run, whoever asks.
    Forbids,
    /// It is only shown: the fake model cannot see what else is different.
    Shown,
}

pub(crate) const CLAUDE: Agent = Agent {
    name: "claude",
    home: Some(homes::Agent::Claude),
    saying: "",
    asking: "run: ",
    running: "run: ",
    refusal_ends_run: false,
    allows_always: true,
    takes_edited_input: true,
    steers: true,
    switches_model: true,
    other_model: None,
    mode: Some(("acceptEdits", Mode::Runs)),
    fails_at_once: true,
    lists_conversations: true,
    tells_usage: true,
    tells_output: true,
    leaves_output_whole: false,
    takes_pictures: true,
    keeps_pictures: true,
    keeps_plan: true,
    compacts: Some("/compact"),
    limited: Some(("fail: 429", "retry")),
    works_in_background: Some(
        r#"tool: Agent {"description": "work behind", "subagent_type": "general-purpose", "prompt": "run: sleep 1; mkdir behind; echo from behind", "run_in_background": true}"#,
    ),
};

pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    home: Some(homes::Agent::Codex),
    saying: "",
    // The exclamation mark leaves the sandbox: about nothing else it asks.
    asking: "run: !",
    running: "run: ",
    refusal_ends_run: false,
    allows_always: true,
    takes_edited_input: false,
    steers: true,
    switches_model: true,
    other_model: Some("fake-b"),
    mode: Some(("read-only", Mode::Forbids)),
    fails_at_once: true,
    lists_conversations: true,
    tells_usage: true,
    tells_output: true,
    leaves_output_whole: true,
    takes_pictures: true,
    keeps_pictures: true,
    keeps_plan: true,
    compacts: None,
    limited: Some(("limit: 85", "rate_limit")),
    works_in_background: None,
};

pub(crate) const PI: Agent = Agent {
    name: "pi",
    home: Some(homes::Agent::Pi),
    saying: "",
    asking: "run: ",
    running: "run: ",
    refusal_ends_run: false,
    allows_always: true,
    takes_edited_input: false,
    steers: true,
    switches_model: true,
    other_model: None,
    mode: Some(("yolo", Mode::Runs)),
    fails_at_once: true,
    lists_conversations: true,
    tells_usage: true,
    tells_output: true,
    leaves_output_whole: false,
    takes_pictures: true,
    keeps_pictures: true,
    keeps_plan: false,
    compacts: None,
    limited: Some(("fail: 429", "retry")),
    works_in_background: None,
};

pub(crate) const GEMINI: Agent = Agent {
    name: "gemini",
    home: Some(homes::Agent::Gemini),
    saying: "",
    asking: "run: ",
    running: "run: ",
    refusal_ends_run: false,
    allows_always: true,
    takes_edited_input: false,
    steers: false,
    switches_model: true,
    other_model: None,
    mode: Some(("yolo", Mode::Runs)),
    fails_at_once: true,
    lists_conversations: false,
    tells_usage: true,
    tells_output: false,
    leaves_output_whole: false,
    takes_pictures: true,
    keeps_pictures: false,
    keeps_plan: false,
    compacts: None,
    limited: None,
    works_in_background: None,
};

pub(crate) const OPENCODE: Agent = Agent {
    name: "opencode",
    home: Some(homes::Agent::Opencode),
    saying: "",
    asking: "run: ",
    running: "run: ",
    refusal_ends_run: true,
    allows_always: true,
    takes_edited_input: false,
    steers: false,
    switches_model: true,
    other_model: None,
    mode: Some(("plan", Mode::Shown)),
    fails_at_once: false,
    lists_conversations: true,
    tells_usage: true,
    tells_output: true,
    leaves_output_whole: false,
    takes_pictures: true,
    keeps_pictures: true,
    keeps_plan: true,
    compacts: None,
    limited: None,
    works_in_background: None,
};

/// Needs no program and no model: it shows that the stage itself works.
pub(crate) const DEMO: Agent = Agent {
    name: "demo",
    home: None,
    saying: "say: ",
    asking: "ask: ",
    running: "tool: ",
    refusal_ends_run: false,
    allows_always: false,
    takes_edited_input: false,
    steers: true,
    switches_model: true,
    other_model: None,
    mode: Some(("yolo", Mode::Shown)),
    fails_at_once: true,
    lists_conversations: false,
    tells_usage: false,
    tells_output: true,
    leaves_output_whole: false,
    takes_pictures: false,
    keeps_pictures: false,
    keeps_plan: false,
    compacts: None,
    limited: None,
    works_in_background: None,
};
