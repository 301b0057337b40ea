//! The features that a client may name in its hello, and what each one covers.
//!
//! Not here: features of proxies (`proxy_connection`).

use domain::session::{Event, delivery, prompts, status, transcript};

use super::events::Form;

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Something beyond the document that a client asked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Feature {
            $($(#[$doc])* $variant,)*
        }

        impl Feature {
            /// Everything that the relay speaks to clients.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it is named on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

features! {
    /// Passing events of some sessions only.
    Watch = "watch",
    /// An agent's words as they come.
    Deltas = "deltas",
    /// Tool calls.
    Tools = "tools",
    /// Runs, their usage, and notices.
    Runs = "runs",
    /// The queue, and how a send joins it.
    Queue = "queue",
    /// Who answered a prompt.
    PromptResolved = "prompt_resolved",
    /// The matter of a prompt, and richer answers.
    PromptDetail = "prompt_detail",
    /// Permission modes and effort.
    Modes = "modes",
    /// Titles.
    SessionRename = "session_rename",
    /// Whether more pages follow.
    Paging = "paging",
    /// How full the context is.
    Context = "context",
    /// The agent's list of things to do.
    Plan = "plan",
    /// Machines, their agents and folders.
    Catalog = "catalog",
    /// Conversations that agents keep themselves.
    Resume = "resume",
    /// The rest of a long output.
    ToolOutput = "tool_output",
}

/// The features of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features(u32);

impl Features {
    /// Those of the named ones that the relay speaks.
    pub fn named<S: AsRef<str>>(names: &[S]) -> Self {
        let wanted = |f: &&Feature| names.iter().any(|name| name.as_ref() == f.name());
        Self(Feature::ALL.iter().filter(wanted).fold(0, |bits, f| bits | bit(*f)))
    }

    /// Whether this one is among them.
    pub fn has(self, feature: Feature) -> bool {
        self.0 & bit(feature) != 0
    }

    /// Their names.
    pub fn names(self) -> Vec<String> {
        let mine = Feature::ALL.iter().filter(|feature| self.has(**feature));
        mine.map(|feature| feature.name().to_owned()).collect()
    }

    /// A peer that named any is told more than the document has.
    pub fn form(self) -> Form {
        if self.0 == 0 { Form::Plain } else { Form::Full }
    }

    /// In which form this event is told, if it is told at all.
    pub fn form_of(self, event: &Event) -> Option<Form> {
        if needed(event).is_some_and(|feature| !self.has(feature)) {
            return None;
        }
        // Here the two forms are different frames, each meant for its own readers.
        let full = match event {
            Event::Prompt(prompts::Event::Settled { .. }) => self.has(Feature::PromptResolved),
            Event::Prompt(
                prompts::Event::Asked(_)
                | prompts::Event::Reopened { .. }
                | prompts::Event::Confirmed(_),
            ) => self.has(Feature::PromptDetail),
            Event::Delivery(_)
            | Event::Queue(_)
            | Event::Run(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_)
            | Event::Transcript(_) => return Some(self.form()),
        };
        Some(if full { Form::Full } else { Form::Plain })
    }
}

/// The feature without which an event is not told. `None` for what the document has.
fn needed(event: &Event) -> Option<Feature> {
    match event {
        Event::Delivery(delivery::Event::HandedOver { .. }) | Event::Queue(_) => {
            Some(Feature::Queue)
        }
        Event::Run(_) | Event::Transcript(transcript::Event::Notice(_)) => Some(Feature::Runs),
        Event::Transcript(transcript::Event::ToolCall(_) | transcript::Event::ToolUpdate(_)) => {
            Some(Feature::Tools)
        }
        Event::Transcript(transcript::Event::Plan(_)) => Some(Feature::Plan),
        Event::Transcript(transcript::Event::Context(_)) => Some(Feature::Context),
        Event::Status(status::Event::Renamed(_) | status::Event::Archived(_)) => {
            Some(Feature::SessionRename)
        }
        Event::Delivery(
            delivery::Event::Accepted(_)
            | delivery::Event::Delivered { .. }
            | delivery::Event::Failed { .. },
        )
        | Event::Prompt(_)
        | Event::Control(_)
        | Event::Config(_)
        | Event::Status(
            status::Event::Up { .. }
            | status::Event::Down { .. }
            | status::Event::Changed { .. }
            | status::Event::Closed { .. },
        )
        | Event::Transcript(transcript::Event::Message(_) | transcript::Event::Echoed(_)) => None,
    }
}

fn bit(feature: Feature) -> u32 {
    1 << (feature as u8)
}
