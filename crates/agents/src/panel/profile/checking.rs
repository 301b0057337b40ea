//! The rules of a profile that TOML cannot express.
//!
//! Patterns are read by two engines, this one and the page's: only syntax that both treat the same
//! is allowed. Selectors are checked only roughly; the page itself reports which it does not
//! understand.

use regex::Regex;

use super::{
    ActivityRule, ChoiceEffect, Composer, ConversationKey, Editor, ModelRules, Press, Profile,
    PromptRules, Role, Send, Step as Deed, Transcript,
};
use crate::panel::pattern;

/// Alternatives, rules or steps of one list.
const LIST_MAX: usize = 64;
/// Bytes of a selector or a pattern.
const TEXT_BYTES_MAX: usize = 1_024;
/// Bytes of an id.
const ID_BYTES_MAX: usize = 64;
/// What an agent may be doing.
const ACTIVITIES: &[&str] = &[
    "thinking",
    "generating",
    "reading_files",
    "running_command",
    "applying_patch",
    "waiting_for_user",
    "idle",
];
/// Keys of more than one character that a step may press.
const KEYS: &[&str] = &[
    "Enter",
    "Escape",
    "Tab",
    "Backspace",
    "Delete",
    "Space",
    "ArrowUp",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    "F1",
    "F2",
    "F3",
    "F4",
    "F5",
    "F6",
    "F7",
    "F8",
    "F9",
    "F10",
    "F11",
    "F12",
];
/// A message has two minutes in all, and somebody who types is waited for before it.
const TAKEN_WITHIN_S_MAX: u64 = 60;
const ENTER_PRESSES_NOTHING: &str = "enter does not press a button";
/// What may be held down with a key.
const MODIFIERS: &[&str] = &["Primary", "Control", "Shift", "Alt", "Meta"];

/// A step of the way to something in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Key(&'static str),
    At(usize),
}

type Wrong = (Vec<Step>, String);

/// Everything that is wrong.
pub(super) fn check(profile: &Profile) -> Vec<Wrong> {
    let mut checker = Checker::default();
    checker.profile(profile);
    checker.wrong
}

#[derive(Debug, Default)]
struct Checker {
    at: Vec<Step>,
    wrong: Vec<Wrong>,
}

impl Checker {
    fn within(&mut self, step: Step, look: impl FnOnce(&mut Self)) {
        self.at.push(step);
        look(self);
        self.at.pop();
    }

    fn key(&mut self, key: &'static str, look: impl FnOnce(&mut Self)) {
        self.within(Step::Key(key), look);
    }

    fn refuse(&mut self, words: &str) {
        let step = |step: &Step| match step {
            Step::Key(key) => (*key).to_owned(),
            Step::At(at) => at.to_string(),
        };
        let path = self.at.iter().map(step).collect::<Vec<_>>().join(".");
        self.wrong.push((self.at.clone(), format!("{path}: {words}")));
    }

    fn each<T>(&mut self, key: &'static str, list: &[T], look: impl Fn(&mut Self, &T)) {
        self.key(key, |this| {
            if list.len() > LIST_MAX {
                this.refuse(&format!("has more than {LIST_MAX} entries"));
            }
            for (at, entry) in list.iter().enumerate() {
                this.within(Step::At(at), |this| look(this, entry));
            }
        });
    }

    fn selectors(&mut self, key: &'static str, list: &[String]) {
        self.each(key, list, |this, selector| this.selector(selector));
    }

    fn some_selectors(&mut self, key: &'static str, list: &[String]) {
        if list.is_empty() {
            self.key(key, |this| this.refuse("needs at least one selector"));
        }
        self.selectors(key, list);
    }

    fn maybe_selector(&mut self, key: &'static str, selector: Option<&String>) {
        if let Some(selector) = selector {
            self.key(key, |this| this.selector(selector));
        }
    }

    fn selector(&mut self, selector: &str) {
        if selector.trim().is_empty() {
            self.refuse("is an empty selector");
        } else if selector.len() > TEXT_BYTES_MAX {
            self.refuse(&format!("is longer than {TEXT_BYTES_MAX} bytes"));
        } else if !is_balanced(selector) {
            self.refuse("is not a selector: a bracket or a quote is not closed");
        } else if selector.trim_end().ends_with([',', '>', '+', '~']) {
            self.refuse("is not a selector: something is missing at its end");
        }
    }

    fn maybe_pattern(&mut self, key: &'static str, text: Option<&String>, groups: usize) {
        if let Some(text) = text {
            self.key(key, |this| this.pattern(text, groups));
        }
    }

    fn pattern(&mut self, text: &str, groups: usize) {
        if text.len() > TEXT_BYTES_MAX {
            return self.refuse(&format!("is longer than {TEXT_BYTES_MAX} bytes"));
        }
        let rest = text.strip_prefix("(?i)").unwrap_or(text);
        if rest.replace("(?:", "(").contains("(?") {
            return self.refuse("may use (?i) at its beginning and (?: ), but no other (? group");
        }
        match pattern(text) {
            Some(pattern) if pattern.captures_len() <= groups => {
                self.refuse("needs a group around the part to extract");
            }
            Some(_) => {}
            None => {
                let why = Regex::new(text).err().map(|error| error.to_string());
                let why = why.as_deref().and_then(|why| why.lines().last()).unwrap_or("too large");
                self.refuse(&format!("is not a valid pattern: {why}"));
            }
        }
    }

    fn profile(&mut self, profile: &Profile) {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if profile.id.is_empty()
            || profile.id.len() > ID_BYTES_MAX
            || !profile.id.chars().all(is_plain)
        {
            self.key("id", |this| {
                this.refuse("must consist of lower-case letters, digits and hyphens");
            });
        }
        if profile.display_name.trim().is_empty() {
            self.key("display_name", |this| this.refuse("is empty"));
        }
        self.key("target", |this| {
            let target = &profile.target;
            this.selectors("scope", &target.scope);
            this.selectors("window", &target.window);
            if target.scope.is_empty() && target.url_contains.iter().all(String::is_empty) {
                this.refuse("without url_contains and scope it would match every page");
            }
        });
        self.key("identity", |this| {
            let identity = &profile.identity;
            this.maybe_pattern("workspace_title", identity.workspace_title.as_ref(), 1);
            this.each("conversation", &identity.conversation, |this, key| match key {
                ConversationKey::UrlPattern(text) => {
                    this.key("url_pattern", |this| this.pattern(text, 1));
                }
                ConversationKey::Attribute(name) | ConversationKey::UrlParameter(name) => {
                    if name.is_empty() {
                        this.refuse("sets nothing");
                    }
                }
            });
        });
        self.key("composer", |this| this.composer(&profile.composer));
        self.key("send", |this| this.send(&profile.send));
        if let Some(stop) = &profile.stop {
            self.key("stop", |this| {
                this.some_selectors("any", &stop.any);
                this.maybe_pattern("label", stop.label.as_ref(), 0);
                this.ladder(&stop.ladder);
            });
        }
        self.key("transcript", |this| this.transcript(&profile.transcript));
        if let Some(prompt) = &profile.prompt {
            self.key("prompt", |this| this.prompt(prompt));
        }
        if let Some(model) = &profile.model {
            self.key("model", |this| this.model(model));
        }
        self.each("activity", &profile.activity, Self::activity);
        self.each("waiting", &profile.waiting, |this, rule| {
            this.key("matches", |this| this.selector(&rule.matches));
        });
        self.each("new_chat", &profile.new_chat, Self::deed);
        self.each("new_chat_otherwise", &profile.new_chat_otherwise, Self::deed);
        self.each("open_panel", &profile.open_panel, Self::deed);
    }

    fn composer(&mut self, composer: &Composer) {
        self.some_selectors("any", &composer.any);
        self.selectors("read", &composer.read);
        self.maybe_pattern("sticky", composer.sticky.as_ref(), 0);
        if composer.editor == Editor::Monaco && composer.read.is_empty() {
            self.key("editor", |this| {
                this.refuse(
                    "is monaco, whose text is outside the element that takes the keys: add its \
                     selector to read",
                );
            });
        }
    }

    fn send(&mut self, send: &Send) {
        self.selectors("any", &send.any);
        self.maybe_pattern("label", send.label.as_ref(), 0);
        if send.ladder.is_empty() {
            self.key("ladder", |this| this.refuse("needs at least one method"));
        }
        if !(1..=TAKEN_WITHIN_S_MAX).contains(&send.taken_within_s) {
            let words = format!("is not between 1 and {TAKEN_WITHIN_S_MAX} seconds");
            self.key("taken_within_s", |this| this.refuse(&words));
        }
        if let Some(refusal) = &send.refusal {
            self.key("refusal", |this| {
                this.key("matches", |this| this.selector(&refusal.matches));
                this.maybe_pattern("text", Some(&refusal.text), 0);
            });
        }
        if send.any.is_empty() && send.ladder.iter().any(|press| *press != Press::Enter) {
            self.key("ladder", |this| this.refuse("only enter can send without a button"));
        }
    }

    fn ladder(&mut self, ladder: &[Press]) {
        if ladder.is_empty() {
            self.key("ladder", |this| this.refuse("needs at least one method"));
        }
        if ladder.contains(&Press::Enter) {
            self.key("ladder", |this| this.refuse(ENTER_PRESSES_NOTHING));
        }
    }

    fn transcript(&mut self, transcript: &Transcript) {
        self.some_selectors("root", &transcript.root);
        self.key("row", |this| this.selector(&transcript.row));
        self.selectors("text", &transcript.text);
        self.selectors("exclude", &transcript.exclude);
        for role in [Role::User, Role::Assistant] {
            if transcript.roles.iter().all(|rule| rule.role != role) {
                self.key("roles", |this| {
                    this.refuse("needs one rule for user and one for assistant");
                });
                break;
            }
        }
        self.each("roles", &transcript.roles, |this, rule| {
            this.key("matches", |this| this.selector(&rule.matches));
        });
    }

    fn prompt(&mut self, prompt: &PromptRules) {
        self.some_selectors("root", &prompt.root);
        self.maybe_selector("requires", prompt.requires.as_ref());
        self.selectors("text", &prompt.text);
        self.key("buttons", |this| this.selector(&prompt.buttons));
        self.maybe_selector("submit", prompt.submit.as_ref());
        if prompt.press == Press::Enter {
            self.key("press", |this| this.refuse(ENTER_PRESSES_NOTHING));
        }
        self.each("choices", &prompt.choices, |this, rule| {
            this.key("label", |this| this.pattern(&rule.label, 0));
            if rule.id.is_empty() || rule.id.len() > ID_BYTES_MAX {
                this.key("id", |this| this.refuse("is empty or too long"));
            }
        });
        if prompt.choices.iter().all(|rule| rule.effect != ChoiceEffect::Reject) {
            self.key("choices", |this| this.refuse("needs one with the effect reject"));
        }
    }

    fn model(&mut self, model: &ModelRules) {
        self.some_selectors("read", &model.read);
        self.maybe_pattern("pattern", model.pattern.as_ref(), 1);
        self.selectors("open", &model.open);
        self.selectors("more", &model.more);
        self.maybe_selector("option", model.option.as_ref());
        self.maybe_selector("option_text", model.option_text.as_ref());
        if model.open.is_empty() == model.option.is_some() {
            self.refuse("open and option must be set together");
        }
    }

    fn activity(&mut self, rule: &ActivityRule) {
        self.key("matches", |this| this.selector(&rule.matches));
        self.maybe_pattern("text", rule.text.as_ref(), 0);
        if !ACTIVITIES.contains(&rule.kind.as_str()) {
            let words = format!("must be one of {}", ACTIVITIES.join(", "));
            self.key("kind", |this| this.refuse(&words));
        }
    }

    fn deed(&mut self, deed: &Deed) {
        match deed {
            Deed::Click(any) => self.some_selectors("click", any),
            Deed::Focus(any) => self.some_selectors("focus", any),
            Deed::Wait(any) => self.some_selectors("wait", any),
            Deed::Key(key) if !is_key(key) => {
                self.key("key", |this| this.refuse("is not a key such as F1 or Control+Shift+P"));
            }
            Deed::Key(_) | Deed::Type(_) => {}
        }
    }
}

fn is_key(text: &str) -> bool {
    let mut parts: Vec<_> = text.split('+').collect();
    let Some(key) = parts.pop() else { return false };
    let is_one = key.chars().count() == 1;
    (is_one || KEYS.contains(&key)) && parts.iter().all(|part| MODIFIERS.contains(part))
}

/// Whether brackets and quotes are closed.
fn is_balanced(selector: &str) -> bool {
    let mut open = vec![];
    let mut quote = None;
    let mut characters = selector.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\\', _) => drop(characters.next()),
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('[', None) => open.push(']'),
            ('(', None) => open.push(')'),
            (']' | ')', None) if open.pop() != Some(c) => return false,
            ('{' | '}' | ';', None) => return false,
            _ => {}
        }
    }
    open.is_empty() && quote.is_none()
}
