//! A session's transient state: it needs no journal and ends with the process.

use std::collections::BTreeSet;

use domain::session::Report;
use domain::session::config::AgentConfig;
use domain::session::status::{Activity, Health};
use domain::{PromptId, RunId};

use crate::journal::Unfinished;

/// A session's passing state, as its agent last told it.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) prompts: BTreeSet<PromptId>,
    pub(super) run: Option<RunId>,
    pub(super) drafts: Unfinished,
    pub(super) health: Option<Health>,
    pub(super) activity: Option<Activity>,
    pub(super) config: Option<AgentConfig>,
}

impl Live {
    /// Takes in what the agent tells.
    pub(super) fn hear(&mut self, report: &Report) {
        match report {
            Report::Status { health, activity, .. } => {
                self.health = Some(*health);
                if activity.is_some() {
                    self.activity.clone_from(activity);
                }
            }
            Report::Message { message, .. } => self.drafts.finish(&message.id),
            Report::RunStarted { run, .. } | Report::SendDelivered { run: Some(run), .. } => {
                self.run = Some(run.clone());
            }
            Report::RunEnded { run, .. } => {
                self.run.take_if(|active| active == run);
                self.drafts.end_run();
            }
            Report::Asked(prompt) => {
                self.prompts.insert(prompt.id.clone());
            }
            Report::PromptGone(prompt) => {
                self.prompts.remove(prompt);
            }
            Report::Config(config) => self.config = Some(config.clone()),
            Report::SendDelivered { run: None, .. }
            | Report::SendFailed { .. }
            | Report::ToolCall(_)
            | Report::ToolUpdate(_)
            | Report::Plan(_)
            | Report::Notice(_)
            | Report::Context(_)
            | Report::ControlResult { .. }
            | Report::Resumed { .. }
            | Report::Closed { .. } => {}
        }
    }
}
