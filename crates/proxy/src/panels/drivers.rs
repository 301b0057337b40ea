//! Drivers for sessions that live in panels.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agents::panel::{Origin, PanelDriver};
use agents::{Launcher, Setup};
use tokio::sync::watch;

use super::ProfileSet;
use crate::host::Drivers;

/// The same drivers, and those of agents that have a profile.
pub(crate) fn drivers(others: Drivers, profiles: watch::Receiver<Arc<ProfileSet>>) -> Drivers {
    Box::new(move |session, opened, notes| {
        let profile = profiles.borrow().get(opened.agent.as_str()).map(Arc::clone);
        let Some(profile) = profile else { return others(session, opened, notes) };
        let setup = Setup {
            session: session.clone(),
            notes,
            launcher: Launcher::default(),
            workspace: opened.workspace_path.as_ref().map(PathBuf::from).unwrap_or_default(),
            model: opened.model.clone(),
            mode: opened.mode.clone(),
            earlier: None,
            ready_by: None,
            variables: BTreeMap::new(),
        };
        let is_launched = opened.launch.is_some();
        let origin = if is_launched { Origin::Launched } else { Origin::Found };
        Box::new(PanelDriver::new(profile, setup, origin))
    })
}
