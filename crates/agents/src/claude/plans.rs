//! The agent's to-do list, in both of its forms: written as a whole, or task by task.

use std::collections::BTreeMap;

use domain::content::{PlanEntry, PlanStatus};
use serde_json::Value;

/// Tasks that are kept. More than these are not listed.
const TASKS_MAX: usize = 256;

/// The tasks of a conversation, as far as their calls were seen.
#[derive(Debug, Default)]
pub(super) struct Plan {
    tasks: BTreeMap<u64, PlanEntry>,
}

impl Plan {
    /// A tool did its work. Returns the list if it is another now.
    pub(super) fn heard(
        &mut self,
        tool: &str,
        input: &Value,
        result: &Value,
    ) -> Option<Vec<PlanEntry>> {
        match tool {
            "TodoWrite" => whole(input),
            "TaskCreate" => {
                let number = number(&result["task"]["id"])?;
                let text = input["subject"].as_str()?.to_owned();
                if self.tasks.len() >= TASKS_MAX {
                    return None;
                }
                self.tasks.insert(number, PlanEntry { text, status: PlanStatus::Pending });
                Some(self.list())
            }
            "TaskUpdate" => {
                let number = number(&input["taskId"])?;
                if input["status"] == "deleted" {
                    self.tasks.remove(&number)?;
                    return Some(self.list());
                }
                let task = self.tasks.get_mut(&number)?;
                if let Some(subject) = input["subject"].as_str() {
                    subject.clone_into(&mut task.text);
                }
                task.status = status(&input["status"]).unwrap_or(task.status);
                Some(self.list())
            }
            _ => None,
        }
    }

    /// The conversation began anew.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
    }

    fn list(&self) -> Vec<PlanEntry> {
        self.tasks.values().cloned().collect()
    }
}

fn whole(input: &Value) -> Option<Vec<PlanEntry>> {
    let todos = input["todos"].as_array()?.iter().take(TASKS_MAX);
    let entry = |todo: &Value| {
        let text = todo["content"].as_str()?.to_owned();
        Some(PlanEntry { text, status: status(&todo["status"]).unwrap_or(PlanStatus::Pending) })
    };
    Some(todos.filter_map(entry).collect())
}

fn status(word: &Value) -> Option<PlanStatus> {
    match word.as_str()? {
        "pending" => Some(PlanStatus::Pending),
        "in_progress" => Some(PlanStatus::InProgress),
        "completed" => Some(PlanStatus::Completed),
        _ => None,
    }
}

fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(text: &str, status: PlanStatus) -> PlanEntry {
        PlanEntry { text: text.into(), status }
    }

    #[test]
    fn a_list_is_told_whole() {
        let input = json!({"todos": [
            {"content": "look", "status": "completed", "activeForm": "Looking"},
            {"content": "mend", "status": "in_progress"},
        ]});
        let list = Plan::default().heard("TodoWrite", &input, &Value::Null).unwrap();
        let expected =
            [entry("look", PlanStatus::Completed), entry("mend", PlanStatus::InProgress)];
        assert_eq!(list, expected);
    }

    #[test]
    fn tasks_are_gathered_to_a_list() {
        let mut plan = Plan::default();
        plan.heard("TaskCreate", &json!({"subject": "look"}), &json!({"task": {"id": "1"}}));
        plan.heard("TaskCreate", &json!({"subject": "mend"}), &json!({"task": {"id": "2"}}));
        let list =
            plan.heard("TaskUpdate", &json!({"taskId": "1", "status": "completed"}), &Value::Null);
        let expected = [entry("look", PlanStatus::Completed), entry("mend", PlanStatus::Pending)];
        assert_eq!(list.unwrap(), expected);
        let gone = json!({"taskId": "2", "status": "deleted"});
        assert_eq!(plan.heard("TaskUpdate", &gone, &Value::Null).unwrap().len(), 1);
        assert_eq!(plan.heard("TaskUpdate", &json!({"taskId": "9"}), &Value::Null), None);
    }
}
