//! The configuration file: flat keys, each with its line.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::problem::Problem;

/// Tables whose keys are flags: `ntfy` in `[notify]` is `notify-ntfy`.
const SECTIONS: [&str; 2] = ["ide", "notify"];

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    path: PathBuf,
    pub(super) entries: Vec<Entry>,
}

/// One key of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// As they would be typed after a flag; one, unless it is a list.
    pub(super) values: Vec<String>,
    line: usize,
}

impl File {
    /// The platform's file, which need not be there.
    pub(super) fn read_if_there(path: PathBuf) -> Result<Self, Problem> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    /// The file that somebody named.
    pub(super) fn read(path: PathBuf) -> Result<Self, Problem> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(path, &text),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    pub(super) fn parse(path: PathBuf, text: &str) -> Result<Self, Problem> {
        let mut file = Self { path, entries: vec![] };
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            Problem::usage(format!("{}:{line}: {}", file.path.display(), error.message()))
        })?;
        let mut keys = vec![];
        for (key, value) in table.get_ref() {
            let name = key.get_ref().to_string();
            if let DeValue::Table(section) = value.get_ref()
                && SECTIONS.contains(&name.as_str())
            {
                let below = section.iter();
                keys.extend(below.map(|(key, it)| (format!("{name}-{}", key.get_ref()), key, it)));
            } else {
                keys.push((name, key, value));
            }
        }
        for (key, place, value) in keys {
            let line = line_of(text, place.span().start);
            let mut entry = Entry { key, values: vec![], line };
            let values = if let DeValue::Array(items) = value.get_ref() {
                items.iter().map(|item| word(item.get_ref())).collect()
            } else {
                word(value.get_ref()).map(|word| vec![word])
            };
            let words = "the value must be a string, a number, true or false, a list of these, \
                         or tables where the flag takes JSON";
            entry.values = values.ok_or_else(|| file.problem(&entry, words))?;
            file.entries.push(entry);
        }
        Ok(file)
    }

    /// Something is wrong with an entry.
    pub(super) fn problem(&self, entry: &Entry, words: &str) -> Problem {
        Problem::usage(format!("{}:{}: {words}", self.path.display(), entry.line))
    }
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> Problem {
    let path = path.display();
    Problem::usage(format!("could not read the configuration file {path}: {error}"))
}

/// A value as it would be typed.
fn word(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|it| it.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        // What a flag takes as JSON.
        DeValue::Table(_) => json(value).map(|json| json.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) => None,
    }
}

/// A table as a flag would get it.
fn json(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok().map(Value::from),
        DeValue::Boolean(truth) => Some(Value::from(*truth)),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let fields = table.iter();
            let fields = fields
                .map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)));
            fields.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
        }
        DeValue::Datetime(_) => None,
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
