//! Permission prompts as `can_use_tool` requests, and what an answer to one means.
//!
//! **Invariant**: an allow never becomes more than it says, and a deny never becomes an allow.
//!
//! Not here: who answers and what happens next (`answers`).

use domain::session::prompts::{AnswerDetail, Choice, Detail, Effect, Prompt};
use domain::{ChoiceId, Content};
use serde_json::{Map, Value, json};

use super::frames::Permission;
use crate::questions::{self, Question};

/// The tool that asks where nobody named one, with a question that has other buttons than yes and
/// no: the one that clients of this dialect know for questions.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// The tool that asks where nobody named one.
const UNNAMED_TOOL: &str = "Permission";

/// A prompt as the request that a client answers. Its id is the prompt's.
pub(super) fn request(prompt: &Prompt) -> Value {
    let (unknown, unread) = (Detail::default(), "The question is sealed".to_owned());
    let detail = prompt.detail.as_ref().and_then(Content::open).unwrap_or(&unknown);
    let text = prompt.text.open().unwrap_or(&unread);
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": tool(prompt, detail),
        "input": original_input(prompt),
        "tool_use_id": detail.tool_call.as_ref().map_or(prompt.id.as_str(), |id| id.as_str()),
        "description": text,
    });
    let default = prompt.choices.iter().find(|choice| choice.is_default);
    if default.is_some_and(|choice| effect(choice) == Some(Effect::Reject)) {
        request["default_to_no"] = json!(true);
    }
    if let Some(suggestions) = suggestions(prompt, detail) {
        request["permission_suggestions"] = suggestions;
    }
    json!({ "type": "control_request", "request_id": prompt.id, "request": request })
}

/// The input that the agent would use.
pub(super) fn original_input(prompt: &Prompt) -> Value {
    let detail = prompt.detail.as_ref().and_then(Content::open);
    let input = detail.and_then(|detail| detail.input.as_deref());
    if let Some(input) = input {
        return match serde_json::from_str::<Value>(input) {
            Ok(value @ Value::Object(_)) => value,
            Ok(other) => json!({ "input": other }),
            Err(_) => json!({ "input": input }),
        };
    }
    if has_questions(prompt) {
        return json!({ "questions": asked(prompt) });
    }
    let text = prompt.text.open().map_or("", String::as_str);
    if !is_question(prompt) {
        return json!({ "prompt": text });
    }
    let option = |choice: &Choice| json!({ "label": choice.label, "description": "" });
    let options: Vec<_> = prompt.choices.iter().map(option).collect();
    json!({ "questions": [{
        "question": text, "header": "Choose", "options": options, "multiSelect": false,
    }] })
}

/// The button that an answer presses, and what goes with it; or why it presses none.
pub(super) fn verdict(
    prompt: &Prompt,
    answer: &Permission,
) -> Result<(ChoiceId, Option<AnswerDetail>), String> {
    match answer.behavior.as_str() {
        "allow" => allow(prompt, answer),
        "deny" => {
            let choice = refusing(prompt).ok_or("This question has no deny option")?;
            let message = answer.message.clone().filter(|words| !words.is_empty());
            let stop = answer.interrupt;
            let detail = (message.is_some() || stop).then(|| AnswerDetail {
                message,
                stop,
                ..AnswerDetail::default()
            });
            Ok((choice.id.clone(), detail))
        }
        _ => Err("behavior must be allow or deny".to_owned()),
    }
}

/// Whether this button says no.
pub(super) fn is_refusal(prompt: &Prompt, choice: &ChoiceId) -> bool {
    let chosen = prompt.choices.iter().find(|it| it.id == *choice);
    chosen.and_then(effect) == Some(Effect::Reject)
}

fn allow(prompt: &Prompt, answer: &Permission) -> Result<(ChoiceId, Option<AnswerDetail>), String> {
    if has_questions(prompt) {
        return answered(prompt, answer);
    }
    let edited = edited_input(prompt, answer);
    if is_question(prompt) && prompt.detail.as_ref().and_then(Content::open).is_none() {
        let answers = edited.as_ref().and_then(|(_, value)| value["answers"].as_object());
        let label = answers.and_then(|answers| answers.values().next()).and_then(Value::as_str);
        let chosen = prompt.choices.iter().find(|it| Some(it.label.as_str()) == label);
        let chosen = chosen.ok_or("Answer this question with one of its options")?;
        return Ok((chosen.id.clone(), None));
    }
    let wanted = if is_always(answer) {
        [Effect::AllowAlways, Effect::AllowOnce]
    } else {
        [Effect::AllowOnce, Effect::AllowOnce]
    };
    let find = |wanted: Effect| prompt.choices.iter().find(|it| effect(it) == Some(wanted));
    let choice = wanted.into_iter().find_map(find);
    let choice = choice.ok_or("This question has no allow-once option")?;
    let detail = edited.map(|(text, value)| AnswerDetail {
        updated_input: Some(text),
        answers: value.get("answers").map(Value::to_string),
        ..AnswerDetail::default()
    });
    Ok((choice.id.clone(), detail))
}

/// An allow of questions. Without answers it would press an option that nobody chose.
fn answered(
    prompt: &Prompt,
    answer: &Permission,
) -> Result<(ChoiceId, Option<AnswerDetail>), String> {
    let raw = answer.updated_input.as_ref().map_or("null", |raw| raw.get());
    let mut input = serde_json::from_str::<Value>(raw).unwrap_or_default();
    let answers = input.as_object_mut().and_then(|input| input.remove("answers"));
    let given = match answers {
        Some(Value::Object(answers)) => answers,
        Some(_) | None => Map::new(),
    };
    let answers = enough(&questions::of(prompt), given).map_err(|why| {
        format!("Put the answers to these questions in updatedInput.answers ({why})")
    })?;
    let is_chosen = |choice: &&Choice| {
        answers.len() == 1 && answers.values().any(|it| it.as_str() == Some(&choice.label))
    };
    let choice = answering(prompt).find(is_chosen).or_else(|| answering(prompt).next());
    let choice = choice.ok_or("This question has no option that answers it")?;
    let is_unchanged = input == json!({}) || input == original_input(prompt);
    let detail = AnswerDetail {
        updated_input: (!is_unchanged).then(|| input.to_string()),
        answers: (!answers.is_empty()).then(|| Value::Object(answers).to_string()),
        ..AnswerDetail::default()
    };
    Ok((choice.id.clone(), Some(detail)))
}

/// The answers as the agent reads them, or why they are too few.
fn enough(questions: &[Question], given: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let answers = questions::translated(questions, given)?;
    if !questions.iter().any(Question::is_field) {
        let has_any = !answers.is_empty();
        return has_any.then_some(answers).ok_or_else(|| "none has an answer".to_owned());
    }
    let is_missing = |it: &&Question| !it.is_optional && !answers.contains_key(&it.key);
    let missing: Vec<_> = questions.iter().filter(is_missing).map(|it| it.text.as_str()).collect();
    if missing.is_empty() {
        Ok(answers)
    } else {
        Err(format!("no answer to {}", missing.join("; ")))
    }
}

/// The buttons that send answers: those that allow; without any, those that do not say no.
fn answering(prompt: &Prompt) -> impl Iterator<Item = &Choice> {
    let allows = |choice: &&Choice| effect(choice) == Some(Effect::AllowOnce);
    let has_allowing = prompt.choices.iter().any(|choice| allows(&choice));
    let is_answering = move |choice: &&Choice| match effect(choice) {
        Some(Effect::AllowOnce) => true,
        None => !has_allowing,
        Some(Effect::AllowAlways | Effect::Reject) => false,
    };
    prompt.choices.iter().filter(is_answering)
}

fn has_questions(prompt: &Prompt) -> bool {
    !questions::of(prompt).is_empty()
}

/// The questions that an agent asks at once, as this dialect words them: a list as the agent made
/// it, the fields of a schema each as a question.
fn asked(prompt: &Prompt) -> Value {
    let detail = prompt.detail.as_ref().and_then(Content::open);
    let raw = detail.and_then(|detail| detail.questions.as_deref());
    let raw = raw.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
    if let Some(list @ Value::Array(_)) = raw {
        return list;
    }
    let option =
        |pick: &questions::Pick| json!({ "label": pick.label, "description": pick.description });
    let question = |it: Question| {
        let options: Vec<_> = it.options.iter().map(option).collect();
        json!({
            "question": it.text, "header": it.header, "options": options,
            "multiSelect": it.is_many,
        })
    };
    questions::of(prompt).into_iter().map(question).collect()
}

/// What the client wrote in place of the input, unless that is nothing or the same.
fn edited_input(prompt: &Prompt, answer: &Permission) -> Option<(String, Value)> {
    let raw = answer.updated_input.as_ref()?.get();
    let value: Value = serde_json::from_str(raw).ok()?;
    let is_empty = value.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty && value != original_input(prompt)).then(|| (raw.to_owned(), value))
}

/// Whether rules come with an allow that make it more than this once.
fn is_always(answer: &Permission) -> bool {
    answer.updated_permissions.iter().flatten().any(|update| match update["type"].as_str() {
        Some("addRules" | "replaceRules") => update["behavior"] == "allow",
        Some("setMode" | "addDirectories") => true,
        Some(_) | None => false,
    })
}

fn refusing(prompt: &Prompt) -> Option<&Choice> {
    let rejects = prompt.choices.iter().find(|it| effect(it) == Some(Effect::Reject));
    let default = || prompt.choices.iter().find(|it| it.is_default && effect(it).is_none());
    rejects.or_else(default)
}

fn tool<'a>(prompt: &Prompt, detail: &'a Detail) -> &'a str {
    // Programs look for questions under this name, whatever the agent calls its tool.
    if has_questions(prompt) {
        return QUESTION_TOOL;
    }
    let unnamed = if is_question(prompt) { QUESTION_TOOL } else { UNNAMED_TOOL };
    detail.tool.as_deref().unwrap_or(unnamed)
}

/// Whether the buttons are something else than yes and no.
fn is_question(prompt: &Prompt) -> bool {
    let has = |wanted| prompt.choices.iter().any(|it| effect(it) == Some(wanted));
    !has(Effect::AllowOnce) || !has(Effect::Reject)
}

/// What a button does, as its agent says; else as its own words say, where they are plain.
fn effect(choice: &Choice) -> Option<Effect> {
    choice.effect.or_else(|| {
        let plain = |word: &str| match word.to_lowercase().as_str() {
            "yes" | "allow" | "approve" | "accept" | "ok" => Some(Effect::AllowOnce),
            "no" | "deny" | "reject" | "decline" | "cancel" => Some(Effect::Reject),
            "always" => Some(Effect::AllowAlways),
            _ => None,
        };
        plain(choice.id.as_str()).or_else(|| plain(&choice.label))
    })
}

fn suggestions(prompt: &Prompt, detail: &Detail) -> Option<Value> {
    let own = detail.suggestions.as_deref().and_then(|text| serde_json::from_str(text).ok());
    if let Some(own @ Value::Array(_)) = own {
        return Some(own);
    }
    let has_always = prompt.choices.iter().any(|it| effect(it) == Some(Effect::AllowAlways));
    has_always.then(|| {
        json!([{
            "type": "addRules", "rules": [{ "toolName": tool(prompt, detail) }],
            "behavior": "allow", "destination": "session",
        }])
    })
}

#[cfg(test)]
mod tests;
