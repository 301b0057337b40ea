//! The look of a panel and how to use it, as data.
//!
//! Invariant: a loaded profile is complete: every selector list has an entry, every pattern
//! compiles, every prompt's default is a refusal.
//!
//! Not here: reading files and watching them for changes (`proxy`).

mod builtin;
mod checking;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod reading;

use serde::{Deserialize, Serialize};

pub use builtin::{BUILT_IN, built_in};
pub use reading::ProfileFault;

/// One kind of panel. Written in TOML; handed to the observer as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, and the agent's name in `agent_type`: `claude-vscode`.
    pub id: String,
    /// Raised with every change.
    pub revision: u32,
    /// What people call it: "Claude Code in VS Code".
    pub display_name: String,
    /// With which versions of the panel it was checked, and when; empty where nobody could.
    #[serde(default)]
    pub verified: Vec<String>,
    /// Where such panels are.
    pub target: Target,
    /// How one panel is told from another.
    #[serde(default)]
    pub identity: Identity,
    /// Where it is typed.
    pub composer: Composer,
    /// What sends it.
    pub send: Send,
    /// What stops a run.
    #[serde(default)]
    pub stop: Option<Control>,
    /// The conversation.
    pub transcript: Transcript,
    /// Questions that block the agent.
    #[serde(default)]
    pub prompt: Option<PromptRules>,
    /// Which model, and how another is chosen.
    #[serde(default)]
    pub model: Option<ModelRules>,
    /// What the agent is doing; the first rule that matches counts.
    #[serde(default)]
    pub activity: Vec<ActivityRule>,
    /// What is there when a person has to log in, or while the panel loads: then a missing
    /// composer is no change of the panel.
    #[serde(default)]
    pub waiting: Vec<WaitingRule>,
    /// How a new chat is opened in an open window.
    #[serde(default)]
    pub new_chat: Vec<Step>,
    /// The same where what `new_chat` clicks or focuses first is not in sight, as in a narrow
    /// panel.
    #[serde(default)]
    pub new_chat_otherwise: Vec<Step>,
    /// How the panel itself is opened in a window that does not show it.
    #[serde(default)]
    pub open_panel: Vec<Step>,
}

/// Where such panels are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// A page of the browser, or a frame of its own (a webview).
    pub kind: TargetKind,
    /// Every one of these is in its address.
    #[serde(default)]
    pub url_contains: Vec<String>,
    /// The name of the frame inside that holds the panel, where there is one: `active-frame`.
    #[serde(default)]
    pub frame: Option<String>,
    /// The element that holds the panel: alternatives, best first. Without one, the document.
    #[serde(default)]
    pub scope: Vec<String>,
    /// What a window shows in which the panel can be opened by `open_panel`, whether or not it is
    /// open: alternatives.
    #[serde(default)]
    pub window: Vec<String>,
}

/// A page or a frame of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A page.
    Page,
    /// A frame in a process of its own, or one inside a page that looks the same.
    Iframe,
}

/// How one panel is told from another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Where the conversation's own lasting id is written; the first that is there counts.
    #[serde(default)]
    pub conversation: Vec<ConversationKey>,
    /// Takes the workspace's name out of the window's title: the pattern's first group.
    #[serde(default)]
    pub workspace_title: Option<String>,
}

/// Where a conversation's id is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ConversationKey {
    /// In this attribute of the first element that has it, within the scope.
    Attribute(String),
    /// In this parameter of the address.
    UrlParameter(String),
    /// The first group of this pattern on the address.
    UrlPattern(String),
}

/// Where it is typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composer {
    /// Alternatives, best first.
    pub any: Vec<String>,
    /// What it is made of.
    pub editor: Editor,
    /// Where its text is read, within or beside it; the editor's own way where none is named.
    #[serde(default)]
    pub read: Vec<String>,
    /// A text that stays in it and is nobody's draft: a pattern at its beginning.
    #[serde(default)]
    pub sticky: Option<String>,
    /// Whether it takes pictures by paste.
    #[serde(default)]
    pub takes_images: bool,
}

/// What a composer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Editor {
    /// `<textarea>` or `<input>`.
    Textarea,
    /// Lexical.
    Lexical,
    /// `ProseMirror` or `TipTap`.
    Prosemirror,
    /// Monaco.
    Monaco,
    /// `contenteditable="plaintext-only"` or a plain one.
    Plaintext,
}

/// What sends the composer's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The button: alternatives, best first. May be empty where only a key sends.
    #[serde(default)]
    pub any: Vec<String>,
    /// Its label must match this pattern (one button may have two meanings).
    #[serde(default)]
    pub label: Option<String>,
    /// How it is pressed, tried in this order until one reaches it: after a press that landed no
    /// other is tried, because a panel may only be slow.
    pub ladder: Vec<Press>,
    /// The composer gives the text away within this time after the press, in seconds. What is
    /// still there then may have been taken all the same.
    #[serde(default = "ten")]
    pub taken_within_s: u64,
    /// How the panel says that it does not take a message, and keeps its text.
    #[serde(default)]
    pub refusal: Option<Refusal>,
}

/// What shows that a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// It appears anywhere in the document after the press.
    pub matches: String,
    /// And its text matches this pattern. It must mean nothing else: the message is sent again.
    pub text: String,
}

/// How something is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Press {
    /// A trusted mouse click at its middle.
    Mouse,
    /// `element.click()`.
    Dom,
    /// Pointer and mouse events at the element, by script.
    Pointer,
    /// The Enter key in the composer.
    Enter,
}

/// The stop button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Alternatives, best first.
    pub any: Vec<String>,
    /// Its label must match this pattern.
    #[serde(default)]
    pub label: Option<String>,
    /// How it is pressed, tried in this order until the run is over. Whatever lies over the button,
    /// an agent that is to stop has to stop: by script, where the mouse does not reach it.
    #[serde(default = "mouse_or_script")]
    pub ladder: Vec<Press>,
}

/// The conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// What holds the rows: alternatives, best first.
    pub root: Vec<String>,
    /// One row.
    pub row: String,
    /// Whose a row is; the first that matches counts, a row that none matches is left out.
    pub roles: Vec<RoleRule>,
    /// The attribute with a row's lasting id, where there is one.
    #[serde(default)]
    pub id_attribute: Option<String>,
    /// The part of a row that holds its words; the whole row where none is there.
    #[serde(default)]
    pub text: Vec<String>,
    /// What inside is not part of the words: buttons, avatars, hidden copies.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Whether rows out of sight are taken out of the document.
    #[serde(default)]
    pub is_virtual: bool,
}

/// Whose a row is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleRule {
    /// The row itself, or something in it, matches this.
    pub matches: String,
    /// Then it is this one's.
    pub role: Role,
}

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person's.
    User,
    /// The agent's.
    Assistant,
    /// The agent's reasoning.
    Thinking,
    /// A tool's card.
    Tool,
    /// A notice.
    System,
}

/// Questions that block the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptRules {
    /// The dialog: alternatives, best first. Several in sight with the same words and buttons are
    /// one dialog.
    pub root: Vec<String>,
    /// What must be in it besides, so that no lookalike counts.
    #[serde(default)]
    pub requires: Option<String>,
    /// The part that asks; the whole dialog where none is there.
    #[serde(default)]
    pub text: Vec<String>,
    /// Its buttons.
    pub buttons: String,
    /// What a button means; a button that none matches is offered by its label alone.
    pub choices: Vec<ChoiceRule>,
    /// A button that must be pressed after the choice (radio buttons with a submit).
    #[serde(default)]
    pub submit: Option<String>,
    /// The attribute with the id of the call that waits, where there is one.
    #[serde(default)]
    pub id_attribute: Option<String>,
    /// How a button is pressed: in one way only, because a second press could answer the question
    /// that comes next.
    #[serde(default = "mouse")]
    pub press: Press,
}

/// What a button means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceRule {
    /// The choice's id: `allow`, `allow_always`, `deny`.
    pub id: String,
    /// The button's label matches this pattern.
    pub label: String,
    /// What it does.
    pub effect: ChoiceEffect,
}

/// What a button does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceEffect {
    /// Lets this one happen.
    AllowOnce,
    /// Lets this and its like happen.
    AllowAlways,
    /// Says no.
    Reject,
}

/// Which model, and how another is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRules {
    /// Where the present one is written, without opening anything.
    pub read: Vec<String>,
    /// Takes the name out of the text or label: the pattern's first group.
    #[serde(default)]
    pub pattern: Option<String>,
    /// What opens the menu.
    #[serde(default)]
    pub open: Vec<String>,
    /// What opens the rest of a menu that shows only some, if it is there.
    #[serde(default)]
    pub more: Vec<String>,
    /// One entry of the open menu; searched in the whole document.
    #[serde(default)]
    pub option: Option<String>,
    /// Where the entry's name is, within it; its whole text where none is named.
    #[serde(default)]
    pub option_text: Option<String>,
    /// The panel takes no message before it has one, though its send button can be pressed: after
    /// it was loaded, messages wait for the model longer than elsewhere, and until it has been there
    /// for some seconds.
    #[serde(default)]
    pub is_needed: bool,
}

/// What the agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivityRule {
    /// This is in sight, within the scope.
    pub matches: String,
    /// And its text or label matches this pattern.
    #[serde(default)]
    pub text: Option<String>,
    /// `thinking`, `generating`, `reading_files`, `running_command`, `applying_patch`,
    /// `waiting_for_user`.
    pub kind: String,
    /// What people read; the element's own text where none is named.
    #[serde(default)]
    pub label: Option<String>,
    /// Whether a run goes on while this is in sight.
    #[serde(default = "yes")]
    pub is_busy: bool,
}

/// Why a panel is not ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingRule {
    /// This is in sight.
    pub matches: String,
    /// In words for a person: "Log in to Claude in the IDE".
    pub reason: String,
}

/// One step of opening something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Step {
    /// Click the first of these that is in sight.
    Click(Vec<String>),
    /// Put the cursor into the first of these fields that is in sight, without a click: a
    /// notification may lie over it. Fails where the field does not take it, so that no key goes
    /// elsewhere.
    Focus(Vec<String>),
    /// Press this key: `F1`, `Primary+Shift+P`, `Enter`. `Primary` is Command on a Mac and
    /// Control elsewhere.
    Key(String),
    /// Type this where the focus is (a command palette).
    Type(String),
    /// Wait until one of these is in sight.
    Wait(Vec<String>),
}

fn mouse() -> Press {
    Press::Mouse
}

fn mouse_or_script() -> Vec<Press> {
    vec![Press::Mouse, Press::Pointer]
}

fn ten() -> u64 {
    10
}

fn yes() -> bool {
    true
}
