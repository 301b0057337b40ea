//! Converts dialogs of the panel to prompts for all clients.
//!
//! Invariant: a button is pressed only by its exact label in the dialog that was answered. No
//! prompt expires, and no default allows anything.

use std::collections::BTreeMap;

use domain::content::Failure;
use domain::session::prompts::{AnswerDetail, Choice, Effect, PROMPTS_OPEN_MAX, Prompt};
use domain::{ChoiceId, Content, PromptId, RequestId, RunId, Timestamp};

use super::{PanelDriver, Phase, Purpose};
use crate::panel::frames::DialogSeen;
use crate::panel::profile::{ChoiceEffect, PromptRules};
use crate::panel::{Task, pattern};

/// How long a dialog may stay in sight after its button was pressed.
const LEAVES_WITHIN_MS: u64 = 5_000;
/// Bytes of a choice's id that is made of a label.
const ID_BYTES_MAX: usize = 40;

/// A button that is being pressed.
#[derive(Debug)]
pub(super) struct Press {
    prompt: PromptId,
    request: RequestId,
    is_last_word: bool,
}

/// The dialogs in sight, by their prompts.
#[derive(Debug, Default)]
pub(super) struct Dialogs(BTreeMap<PromptId, Dialog>);

#[derive(Debug)]
struct Dialog {
    id: String,
    /// The choices with the labels of their buttons.
    labels: Vec<(ChoiceId, String)>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Somebody may answer.
    Open,
    /// Its button is being pressed.
    Pressing,
    /// Its button was pressed: it should be gone by then.
    Pressed { until: Timestamp },
    /// It was said to be over; its buttons are left alone.
    Left,
}

impl Dialogs {
    /// When a dialog that was answered should be gone.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let pressed = |dialog: &Dialog| match dialog.state {
            State::Pressed { until } => Some(until),
            State::Open | State::Pressing | State::Left => None,
        };
        self.0.values().filter_map(pressed).min()
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl PanelDriver {
    /// Takes in the dialogs in sight.
    pub(super) fn follow_dialogs(&mut self, seen: &[DialogSeen], now: Timestamp) {
        let Some(rules) = self.profile.prompt.clone() else { return };
        let run = self.scribe.run().cloned();
        for dialog in seen.iter().filter(|dialog| !dialog.buttons.is_empty()) {
            let id = prompt_id(dialog);
            let is_back = match self.dialogs.0.get(&id).map(|known| known.state) {
                None => self.dialogs.0.len() < PROMPTS_OPEN_MAX,
                // The press changed nothing.
                Some(State::Pressed { until }) => until <= now,
                Some(State::Open | State::Pressing | State::Left) => false,
            };
            if is_back {
                let (prompt, labels) = prompt(&id, dialog, &rules, run.as_ref(), now);
                let known = Dialog { id: dialog.id.clone(), labels, state: State::Open };
                self.dialogs.0.insert(id, known);
                self.scribe.ask(prompt, now);
            }
        }
        let is_seen = |id: &PromptId| seen.iter().any(|dialog| prompt_id(dialog) == *id);
        let mut gone = vec![];
        self.dialogs.0.retain(|id, dialog| {
            // Of one that is being pressed the outcome tells.
            let stays = is_seen(id) || dialog.state == State::Pressing;
            if !stays {
                gone.push(id.clone());
            }
            stays
        });
        for id in gone {
            self.scribe.prompt_gone(&id, now);
        }
    }

    /// Open questions are withdrawn, and asked as the profile understands them now.
    pub(super) fn ask_anew(&mut self, now: Timestamp) {
        let all = self.dialogs.0.iter();
        let open = all.filter(|(_, dialog)| dialog.state == State::Open).map(|(id, _)| id.clone());
        for id in open.collect::<Vec<_>>() {
            self.dialogs.0.remove(&id);
            self.scribe.prompt_gone(&id, now);
        }
    }

    pub(super) fn answer(
        &mut self,
        request: &RequestId,
        prompt: &PromptId,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
        now: Timestamp,
    ) {
        let not_found = || Failure::new("prompt_not_found", "The question is no longer open");
        let is_attached = self.phase == Phase::Attached;
        let known = self.dialogs.0.get_mut(prompt);
        let Some(dialog) = known.filter(|it| is_attached && it.state == State::Open) else {
            return self.scribe.answered(request, Some(not_found()));
        };
        let Some(choice) = choice else {
            dialog.state = State::Left;
            self.scribe.prompt_answered(prompt, now);
            self.scribe.answered(request, None);
            return self.stop_with(detail, now);
        };
        let label = dialog.labels.iter().find(|(id, _)| id == choice).map(|(_, label)| label);
        let Some(label) = label.cloned() else {
            return self.scribe.answered(request, Some(not_found()));
        };
        dialog.state = State::Pressing;
        let task = Task::Press { dialog: dialog.id.clone(), label };
        let is_last_word = detail.stop;
        let press = Press { prompt: prompt.clone(), request: request.clone(), is_last_word };
        self.ask(task, Purpose::Press(press), now);
        let has_words = detail.message.as_ref().is_some_and(|words| !words.trim().is_empty());
        if has_words || detail.updated_input.is_some() || detail.answers.is_some() {
            let words = "A dialog in a panel accepts only a button. The text you added was not \
                         sent to the agent";
            self.scribe.notice("answer", words);
        }
    }

    fn stop_with(&mut self, detail: &AnswerDetail, now: Timestamp) {
        if detail.stop && self.profile.stop.is_some() {
            self.ask(Task::Stop, Purpose::Stop(None), now);
        }
    }

    /// What came of pressing a button.
    pub(super) fn pressed(&mut self, press: &Press, failure: Option<Failure>, now: Timestamp) {
        let Some(failure) = failure else {
            if let Some(dialog) = self.dialogs.0.get_mut(&press.prompt) {
                dialog.state = State::Pressed { until: now.plus_ms(LEAVES_WITHIN_MS) };
            }
            self.scribe.prompt_answered(&press.prompt, now);
            self.scribe.answered(&press.request, None);
            if press.is_last_word && self.profile.stop.is_some() {
                self.ask(Task::Stop, Purpose::Stop(None), now);
            }
            return self.follow(now);
        };
        if let Some(dialog) = self.dialogs.0.get_mut(&press.prompt) {
            dialog.state = State::Open;
        }
        self.scribe.answered(&press.request, Some(failure));
        // It may be gone meanwhile.
        self.follow(now);
    }
}

fn prompt_id(dialog: &DialogSeen) -> PromptId {
    PromptId::from(format!("dialog-{}", dialog.id))
}

/// The prompt, and which label stands for each of its choices.
fn prompt(
    id: &PromptId,
    dialog: &DialogSeen,
    rules: &PromptRules,
    run: Option<&RunId>,
    now: Timestamp,
) -> (Prompt, Vec<(ChoiceId, String)>) {
    let mut choices: Vec<Choice> = vec![];
    let mut labels = vec![];
    for button in &dialog.buttons {
        let matches = |label: &str| pattern(label).is_some_and(|it| it.is_match(&button.label));
        let rule = rules.choices.iter().find(|rule| matches(&rule.label));
        let is_taken = |id: &ChoiceId| choices.iter().any(|choice| choice.id == *id);
        let named = rule.map(|rule| ChoiceId::from(rule.id.as_str()));
        let named = named.filter(|id| !is_taken(id)).unwrap_or_else(|| {
            let slug = slug(&button.label);
            let numbered = (2..).map(|n| format!("{slug}_{n}"));
            let mut all = std::iter::once(slug.clone()).chain(numbered).map(ChoiceId::from);
            all.find(|id| !is_taken(id)).unwrap_or_else(|| ChoiceId::from(slug.as_str()))
        });
        let effect = rule.map(|rule| effect(rule.effect));
        // A button that allows something is nobody's default.
        let is_default = button.is_default && effect == Some(Effect::Reject);
        labels.push((named.clone(), button.label.clone()));
        let (label, wants_answers) = (button.label.clone(), false);
        choices.push(Choice { id: named, label, is_default, effect, wants_answers });
    }
    let text = if dialog.text.is_empty() { "The agent is asking" } else { dialog.text.as_str() };
    let prompt = Prompt {
        id: id.clone(),
        text: Content::Open(text.to_owned()),
        choices,
        expiry: None,
        detected_at: now,
        run: run.cloned(),
        detail: None,
    };
    (prompt, labels)
}

fn effect(effect: ChoiceEffect) -> Effect {
    match effect {
        ChoiceEffect::AllowOnce => Effect::AllowOnce,
        ChoiceEffect::AllowAlways => Effect::AllowAlways,
        ChoiceEffect::Reject => Effect::Reject,
    }
}

/// An id that is made of a label.
fn slug(label: &str) -> String {
    let mut slug = String::new();
    for c in label.chars().flat_map(char::to_lowercase) {
        if slug.len() >= ID_BYTES_MAX {
            break;
        }
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('_') {
            slug.push('_');
        }
    }
    let slug = slug.trim_end_matches('_');
    if slug.is_empty() { "button".to_owned() } else { slug.to_owned() }
}
