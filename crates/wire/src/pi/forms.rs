//! An agent's questions that are answered together, asked in one dialog after the other.
//!
//! Not here: who is asked and what happens with the answers (`dialogs`).

use domain::session::prompts::AnswerDetail;
use serde_json::{Map, Value, json};

use super::dialogs::{meant, not_an_option, rows};
use crate::questions::Question;

/// Writes one question into the dialog that asks it. `text` is what the prompt says as a whole;
/// the first question comes with it.
pub(super) fn ask(request: &mut Value, text: &str, questions: &[Question], step: usize) {
    let Some(question) = questions.get(step) else { return };
    let options = labels(question);
    let is_select = !options.is_empty() && !question.is_many;
    let is_long = question.is_long && options.is_empty();
    request["method"] = json!(match (is_select, is_long) {
        (true, _) => "select",
        (false, true) => "editor",
        (false, false) => "input",
    });
    let count = match questions.len() {
        1 => String::new(),
        all => format!("Question {} of {all}. ", step + 1),
    };
    let how = match (options.is_empty(), question.is_many) {
        (true, _) => String::new(),
        (false, true) => {
            let how = "Answer with numbers or names, separated by commas";
            format!("{how}:\n{}\n\n", rows(&options))
        }
        (false, false) => format!("Answer with a number or a name:\n{}\n\n", rows(&options)),
    };
    let said = &question.text;
    let said = match (step, text.contains(said.as_str()), questions.len()) {
        (0, true, 1) => text.to_owned(),
        (0, false, _) => format!("{text}\n{said}"),
        (_, _, _) => said.clone(),
    };
    let may = if question.is_optional { " (optional)" } else { "" };
    request["title"] = json!(format!("{count}{how}{said}{may}"));
    if is_select {
        request["options"] = json!(options);
        return;
    }
    let (name, hint) = if is_long {
        ("prefill", &question.prefill)
    } else {
        ("placeholder", &question.placeholder)
    };
    if let Some(hint) = hint {
        request[name] = json!(hint);
    }
}

/// The answer to a question; `None` leaves it open, where it may stay so.
pub(super) fn read(question: &Question, value: &str) -> Result<Option<Value>, String> {
    if value.trim().is_empty() {
        let why = "This question wants an answer; cancel it to give none";
        return if question.is_optional { Ok(None) } else { Err(why.to_owned()) };
    }
    let options = labels(question);
    if options.is_empty() {
        return question.written(value).map(Some);
    }
    let plain: Vec<_> = question.options.iter().map(|pick| pick.label.clone()).collect();
    let one = |words: &str| meant(&plain, words).or_else(|| meant(&options, words));
    if let Some(at) = one(value) {
        return Ok(Some(question.picked(&[at])));
    }
    let several = || value.split(',').map(one).collect::<Option<Vec<_>>>();
    let picked = question.is_many.then(several).flatten();
    let mut picked = picked.ok_or_else(|| not_an_option(value, &options))?;
    picked.sort_unstable();
    picked.dedup();
    Ok(Some(question.picked(&picked)))
}

/// All answers together. Words of the only question go as a message as well: some agents ask for
/// nothing but words.
pub(super) fn answers(questions: &[Question], filled: &[Option<Value>]) -> AnswerDetail {
    let pairs = questions.iter().zip(filled);
    let pairs = pairs.filter_map(|(question, value)| Some((question.key.clone(), value.clone()?)));
    let answers: Map<String, Value> = pairs.collect();
    let message = match (questions, filled) {
        ([only], [Some(Value::String(words))]) if only.options.is_empty() => Some(words.clone()),
        _ => None,
    };
    AnswerDetail {
        message,
        answers: Some(Value::Object(answers).to_string()),
        ..AnswerDetail::default()
    }
}

fn labels(question: &Question) -> Vec<String> {
    let label = |pick: &crate::questions::Pick| match pick.description.as_str() {
        "" => pick.label.clone(),
        description => format!("{}: {description}", pick.label),
    };
    question.options.iter().map(label).collect()
}
