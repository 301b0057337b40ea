//! The questions of a prompt, read from an agent's input, and answers in the form that agents
//! read. The input may contain anything.
//!
//! Two forms are known: a list of questions, answered by their text, and a JSON schema of an
//! object (an MCP server's), answered by its fields. The page reads them in the same way
//! (`web/src/lib/features/prompt/questions.ts`).
//!
//! Not here: how a dialect asks them.

use domain::Content;
use domain::session::prompts::{Choice, Effect, Prompt};
use serde_json::{Map, Value, json};

/// Questions that are asked; of more, the first. An agent that asks more is asked in its window.
const QUESTIONS_MAX: usize = 32;
/// Options of a question that are offered; of more, the first.
const OPTIONS_MAX: usize = 100;

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// What its answer is called.
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) header: Option<String>,
    pub(crate) placeholder: Option<String>,
    pub(crate) prefill: Option<String>,
    pub(crate) options: Vec<Pick>,
    /// Several options may be chosen.
    pub(crate) is_many: bool,
    /// The answer may have several lines.
    pub(crate) is_long: bool,
    /// It may stay without an answer.
    pub(crate) is_optional: bool,
    kind: Kind,
}

/// One option.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pick {
    pub(crate) label: String,
    pub(crate) description: String,
    value: Value,
}

/// As what the agent wants to read the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One text, also of several options: a question of a list.
    Listed,
    /// One text: a field of a schema, as the kinds below.
    Text,
    Integer,
    Number,
    List,
}

impl Question {
    /// Whether it is a field of a schema, whose answer goes by its name and has its type.
    pub(crate) fn is_field(&self) -> bool {
        self.kind != Kind::Listed
    }

    /// The answer that these options make; in the order of `picked`.
    pub(crate) fn picked(&self, picked: &[usize]) -> Value {
        let picks = picked.iter().filter_map(|at| self.options.get(*at));
        match self.kind {
            Kind::List => picks.map(|pick| pick.value.clone()).collect(),
            Kind::Listed | Kind::Text | Kind::Integer | Kind::Number if self.is_many => {
                let labels: Vec<_> = picks.map(|pick| pick.label.as_str()).collect();
                json!(labels.join(", "))
            }
            Kind::Listed | Kind::Text | Kind::Integer | Kind::Number => {
                picks.map(|pick| pick.value.clone()).next().unwrap_or_default()
            }
        }
    }

    /// The answer that these words make, or why they make none.
    pub(crate) fn written(&self, words: &str) -> Result<Value, String> {
        let trimmed = words.trim();
        match self.kind {
            Kind::Listed | Kind::Text => Ok(json!(words)),
            Kind::List => Ok(json!([words])),
            Kind::Integer => {
                let number = trimmed.parse::<i64>();
                number.map(Value::from).map_err(|_| format!("{trimmed:?} is not a whole number"))
            }
            Kind::Number => {
                let number = trimmed.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
                let number =
                    trimmed.parse::<i64>().map(Value::from).ok().or(number.map(Value::from));
                number.ok_or_else(|| format!("{trimmed:?} is not a number"))
            }
        }
    }
}

/// The questions of a prompt; none where it asks none, or where they are sealed.
pub(crate) fn of(prompt: &Prompt) -> Vec<Question> {
    let detail = prompt.detail.as_ref().and_then(Content::open);
    detail.and_then(|detail| detail.questions.as_deref()).map(read).unwrap_or_default()
}

/// The same prompt, with its buttons marked that need answers to its questions. A machine does
/// not say so: it follows from the questions.
#[must_use]
pub fn marked(mut prompt: Prompt) -> Prompt {
    let questions = of(&prompt);
    if questions.iter().all(|question| question.is_optional) {
        return prompt;
    }
    for choice in &mut prompt.choices {
        let is_allowing = match choice.effect {
            Some(Effect::AllowOnce | Effect::AllowAlways) => true,
            Some(Effect::Reject) | None => false,
        };
        choice.wants_answers = is_allowing && !is_answer(&questions, choice);
    }
    prompt
}

/// Whether a bare yes is too little for a prompt: its questions want answers, or one of several
/// buttons.
pub(crate) fn is_more_than_yes(prompt: &Prompt) -> bool {
    let allows = |choice: &&Choice| choice.effect == Some(Effect::AllowOnce);
    let is_marked = prompt.choices.iter().any(|choice| choice.wants_answers);
    is_marked || (prompt.choices.iter().filter(allows).count() > 1 && !of(prompt).is_empty())
}

/// Whether this button is itself the answer to the only question.
fn is_answer(questions: &[Question], choice: &Choice) -> bool {
    let [only] = questions else { return false };
    !only.is_many && only.options.iter().any(|pick| pick.label == choice.label)
}

fn read(text: &str) -> Vec<Question> {
    let raw = serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut all: Vec<Question> = vec![];
    let mut add = |question: Question| {
        // Two questions in the same words have one answer.
        if all.len() < QUESTIONS_MAX && all.iter().all(|known| known.key != question.key) {
            all.push(question);
        }
    };
    match &raw {
        Value::Array(list) => list.iter().filter_map(listed).for_each(&mut add),
        Value::Object(schema) => {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
            let properties = schema.get("properties").and_then(Value::as_object);
            let properties = properties.into_iter().flatten();
            properties.filter_map(|(name, it)| property(name, it, is_required(name))).for_each(add);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    all
}

/// A question of a list.
fn listed(raw: &Value) -> Option<Question> {
    let words = ["question", "prompt", "header"].iter().find_map(|name| words(&raw[*name]))?;
    let options = raw["options"].as_array().into_iter().flatten();
    let option = |raw: &Value| {
        let label = words_of_option(raw)?;
        let description = self::words(&raw["description"]).unwrap_or_default();
        Some(Pick { value: json!(label), label, description })
    };
    Some(Question {
        key: words.clone(),
        text: words,
        header: self::words(&raw["header"]),
        placeholder: self::words(&raw["placeholder"]),
        prefill: self::words(&raw["prefill"]),
        options: options.filter_map(option).take(OPTIONS_MAX).collect(),
        is_many: raw["multiSelect"] == true || raw["multi_select"] == true,
        is_long: raw["multiline"] == true,
        is_optional: false,
        kind: Kind::Listed,
    })
}

fn words_of_option(raw: &Value) -> Option<String> {
    words(raw).or_else(|| words(&raw["label"]))
}

/// A field of a schema.
fn property(name: &str, raw: &Value, is_required: bool) -> Option<Question> {
    let fields = raw.as_object()?;
    let several = fields.get("items").filter(|_| raw["type"] == "array");
    let is_boolean = raw["type"] == "boolean";
    let plain = |label: &str, value: Value| Pick {
        label: label.to_owned(),
        description: String::new(),
        value,
    };
    let options = if is_boolean {
        vec![plain("Yes", json!(true)), plain("No", json!(false))]
    } else {
        picks(several.unwrap_or(raw))
    };
    let title = words(&raw["title"]).unwrap_or_else(|| name.to_owned());
    let text = match words(&raw["description"]) {
        Some(description) => format!("{title}: {description}"),
        None => title.clone(),
    };
    let kind = match raw["type"].as_str() {
        Some("array") => Kind::List,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some(_) | None => Kind::Text,
    };
    let default = match &raw["default"] {
        Value::String(words) => Some(words.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    Some(Question {
        key: name.to_owned(),
        text,
        header: Some(title),
        placeholder: None,
        prefill: default,
        options,
        is_many: several.is_some(),
        is_long: false,
        is_optional: !is_required,
        kind,
    })
}

/// `enum` with or without names, or `oneOf` and `anyOf` with a title each.
fn picks(raw: &Value) -> Vec<Pick> {
    let list = |name: &str| raw[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = list("enumNames");
    let pick = |label: Option<String>, value: &Value| {
        let label = label.or_else(|| words(value)).or_else(|| Some(value.as_number()?.to_string()));
        Some(Pick { label: label?, description: String::new(), value: value.clone() })
    };
    let plain = list("enum")
        .iter()
        .enumerate()
        .filter_map(|(at, value)| pick(names.get(at).and_then(words), value));
    let titled = list("oneOf").iter().chain(list("anyOf"));
    let titled = titled.filter_map(|it| pick(words(&it["title"]), it.get("const")?));
    plain.chain(titled).take(OPTIONS_MAX).collect()
}

fn words(raw: &Value) -> Option<String> {
    raw.as_str().filter(|words| !words.is_empty()).map(str::to_owned)
}

/// What a client answered by the questions' words, as the agent reads it: by its own names. What
/// says nothing is left out. What is no known question stays as it was said. An error says which
/// answers their questions cannot take, and why.
pub(crate) fn translated(
    questions: &[Question],
    given: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut answers = Map::new();
    let mut unfit = vec![];
    for (name, value) in given.into_iter().filter(|(_, value)| !is_blank(value)) {
        let question = questions.iter().find(|it| it.text == name || it.key == name);
        let Some(question) = question else {
            answers.insert(name, value);
            continue;
        };
        match question.said(value) {
            Ok(value) => drop(answers.insert(question.key.clone(), value)),
            Err(why) => unfit.push(format!("{name}: {why}")),
        }
    }
    if unfit.is_empty() { Ok(answers) } else { Err(unfit.join("; ")) }
}

/// Whether an answer says nothing: a form that a person left empty sends such values.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(words) => words.trim().is_empty(),
        Value::Array(all) => all.iter().all(is_blank),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

impl Question {
    /// A client's answer as the agent reads it, or why the agent could not read it.
    fn said(&self, value: Value) -> Result<Value, String> {
        match (self.kind, value) {
            (Kind::Listed, value) => Ok(value),
            (_, Value::String(words)) => self.said_in_words(&words),
            (Kind::List, Value::Array(all)) if self.options.is_empty() => Ok(all.into()),
            (Kind::List, Value::Array(all)) => all.iter().map(|one| self.chosen(one)).collect(),
            (_, value) if !self.options.is_empty() => self.chosen(&value),
            (Kind::Text, value) => Ok(value),
            (Kind::Integer, value) if value.is_i64() || value.is_u64() => Ok(value),
            (Kind::Number, value) if value.is_number() => Ok(value),
            (Kind::Integer, value) => Err(format!("{value} is not a whole number")),
            (Kind::Number, value) => Err(format!("{value} is not a number")),
            (Kind::List, value) => Err(format!("{value} is not a list")),
        }
    }

    fn said_in_words(&self, words: &str) -> Result<Value, String> {
        if self.options.is_empty() {
            return self.written(words);
        }
        if let Some(at) = self.option(&json!(words)) {
            return Ok(self.picked(&[at]));
        }
        let several = || words.split(',').map(|one| self.option(&json!(one))).collect();
        let several: Option<Vec<_>> = self.is_many.then(several).flatten();
        let picked = several.map(|picked| self.picked(&picked));
        picked.ok_or_else(|| format!("{words:?} is not one of the options"))
    }

    fn chosen(&self, said: &Value) -> Result<Value, String> {
        let pick = self.option(said).and_then(|at| self.options.get(at));
        pick.map(|pick| pick.value.clone())
            .ok_or_else(|| format!("{said} is not one of the options"))
    }

    /// The option that an answer names: by its label, else by its value.
    fn option(&self, said: &Value) -> Option<usize> {
        let words = said.as_str().map(str::trim);
        let labelled = self.options.iter().position(|pick| Some(pick.label.as_str()) == words);
        // A number, or yes and no, may come as text.
        let read = words.and_then(|words| serde_json::from_str::<Value>(words).ok());
        let named = words.map(Value::from);
        let is_value =
            |pick: &Pick| [Some(said), named.as_ref(), read.as_ref()].contains(&Some(&pick.value));
        labelled.or_else(|| self.options.iter().position(is_value))
    }
}

#[cfg(test)]
mod tests;
