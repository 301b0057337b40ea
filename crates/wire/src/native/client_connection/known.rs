//! Answers that the relay can give from what it already knows.
//!
//! Not here: asking a machine (`relay`), reading the ledger (`relay`).

use std::collections::BTreeSet;

use domain::fleet::{AgentOffer, Fleet, Machine};
use domain::session::{Event, transcript};
use domain::{AgentType, Content, MachineLabel, ToolCallId};

use super::Listing;
use crate::native::frames::{Catalog, MachineEntry, ToolOutput};
use crate::native::shapes::{AgentEntry, character_before};

/// Folders of one machine that are listed.
pub const WORKSPACES_LISTED_MAX: usize = 100;
/// Bytes of a tool's output in one answer.
pub const TOOL_OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// All machines and what they have.
pub fn catalog(fleet: &Fleet, listings: &[Listing]) -> Catalog {
    let mut newest_first: Vec<&Listing> = listings.iter().collect();
    newest_first.sort_by_key(|listing| std::cmp::Reverse(listing.card.status.last_seen_at));
    let entry = |(label, machine): (&MachineLabel, &Machine)| {
        let own = |listing: &&&Listing| listing.card.status.meta.machine.as_ref() == Some(label);
        let own: Vec<&Listing> = newest_first.iter().filter(own).copied().collect();
        MachineEntry {
            machine_label: label.clone(),
            connected: machine.via.is_some(),
            agents: agents(machine, &own),
            workspaces: workspaces(machine, &own),
            limits: machine.offer.limits.map(Into::into),
        }
    };
    let mut machines: Vec<_> = fleet.machines().all().map(entry).collect();
    machines.sort_by_key(|machine| !machine.connected);
    Catalog { machines }
}

fn agents(machine: &Machine, own: &[&Listing]) -> Option<Vec<AgentEntry>> {
    let named = machine.offer.agents.as_ref()?;
    let plain = |agent: &AgentType| AgentOffer {
        agent: agent.clone(),
        display_name: None,
        is_installed: true,
        version: None,
        is_logged_in: None,
        install: None,
    };
    let details = &machine.offer.details;
    let bare = named.iter().filter(|agent| details.iter().all(|detail| detail.agent != **agent));
    let offers: Vec<_> = details.iter().cloned().chain(bare.map(plain)).collect();
    let entry = |offer: &AgentOffer| {
        let mut configs = own
            .iter()
            .filter(|listing| listing.card.status.meta.agent == offer.agent)
            .filter_map(|listing| listing.card.config.as_ref());
        AgentEntry {
            models: configs.clone().find_map(|config| config.available_models.clone()),
            modes: configs.find_map(|config| config.available_modes.clone()),
            ..offer.into()
        }
    };
    Some(offers.iter().map(entry).collect())
}

fn workspaces(machine: &Machine, own: &[&Listing]) -> Vec<String> {
    let used = own.iter().filter_map(|listing| listing.card.status.meta.workspace_path.clone());
    let mut seen = BTreeSet::new();
    let all = machine.offer.workspaces.iter().cloned().chain(used);
    all.filter(|path| seen.insert(path.clone())).take(WORKSPACES_LISTED_MAX).collect()
}

/// The output that an event tells of a tool call, if it does.
pub fn output_in<'a>(event: &'a Event, call: &ToolCallId) -> Option<&'a str> {
    let Event::Transcript(event) = event else { return None };
    let detail = match event {
        transcript::Event::ToolCall(told) if told.id == *call => &told.detail,
        transcript::Event::ToolUpdate(told) if told.id == *call => &told.detail,
        transcript::Event::ToolCall(_)
        | transcript::Event::ToolUpdate(_)
        | transcript::Event::Message(_)
        | transcript::Event::Plan(_)
        | transcript::Event::Notice(_)
        | transcript::Event::Context(_)
        | transcript::Event::Echoed(_) => return None,
    };
    let Content::Open(detail) = detail else { return None };
    detail.output.as_deref()
}

impl ToolOutput {
    /// A stretch of an output. It begins and ends between characters.
    pub fn stretch(
        tool_call_id: ToolCallId,
        whole: &str,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> Self {
        let place = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX);
        let start = character_before(whole, place(offset.unwrap_or(0)));
        let limit = limit.unwrap_or(TOOL_OUTPUT_BYTES_MAX).clamp(1, TOOL_OUTPUT_BYTES_MAX);
        let end = character_before(whole, start.saturating_add(place(limit)));
        // At least a character, however small the limit.
        let next = whole[start..].chars().next().map_or(start, |first| start + first.len_utf8());
        let end = end.max(next);
        let wide = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        Self {
            tool_call_id,
            offset: wide(start),
            content: whole[start..end].to_owned(),
            total_bytes: wide(whole.len()),
            next_offset: (end < whole.len()).then(|| wide(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: native/tool_output.3
    #[test]
    fn stretches_put_together_are_the_whole_output() {
        let whole = "aäöü€x".repeat(7);
        for limit in 1..9 {
            let (mut read, mut offset) = (String::new(), Some(0));
            while offset.is_some() {
                let part = ToolOutput::stretch("t".into(), &whole, offset, Some(limit));
                assert_eq!(part.total_bytes, whole.len() as u64);
                read.push_str(&part.content);
                offset = part.next_offset;
            }
            assert_eq!(read, whole, "by {limit}");
        }
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let part = ToolOutput::stretch("t".into(), "abc", Some(9), None);
        assert_eq!((part.content.as_str(), part.offset, part.next_offset), ("", 3, None));
    }
}
