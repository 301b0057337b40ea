//! What the ledgers and the people's records say of what happened, counted (`effects`).
//!
//! Not here: what is counted at the moment it happens.

use domain::content::{Author, Part};
use domain::session::{Event, delivery, prompts, transcript};

use super::World;
use crate::check::{Fleet, History};
use crate::effects::Effect;
use crate::visitor_node::Dialect;

impl World {
    pub(super) fn count(&self, fleet: &Fleet, histories: &[History]) {
        let (launched, failed) = fleet.outcomes();
        self.effects.count_times(Effect::Launched, launched);
        self.effects.count_times(Effect::LaunchFailed, failed);
        self.effects.count_times(Effect::Erased, self.erased.len() as u64);
        for history in histories {
            self.effects.count_times(Effect::Forgotten, history.first_kept.saturating_sub(1));
            for recorded in &history.events {
                self.count_event(&recorded.event);
            }
        }
        for person in &self.people {
            let anew = person.look(|seen| seen.anew.len() as u64);
            self.effects.count_times(Effect::StartedOver, anew);
            let repeats = person
                .look(|seen| seen.pages.iter().filter(|page| page.repeats_events()).count() as u64);
            self.effects.count_times(Effect::ReadAgain, repeats);
            let refused = person.look(|seen| seen.refused.len() as u64);
            self.effects.count_times(Effect::SendRefused, refused);
        }
    }

    fn count_event(&self, event: &Event) {
        match event {
            Event::Delivery(delivery::Event::Accepted(send)) => {
                self.effects.count(send_in(self.dialect_of(&send.by)));
            }
            Event::Prompt(prompts::Event::Settled {
                settled: prompts::Settled::ByPerson { name },
                ..
            }) => self.effects.count(decision_in(self.dialect_of(name))),
            Event::Transcript(transcript::Event::Message(message))
                if message.author == Author::Assistant =>
            {
                let parts = message.parts.open().into_iter().flatten();
                let texts = parts.filter_map(|part| match part {
                    Part::Text(text) => Some(text),
                    Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::ToolCall(_) => None,
                });
                // The demo agent says which files it was given; `check` compares that.
                let named = texts.filter(|text| text.starts_with("echo: look m")).count();
                self.effects.count_times(Effect::FileReceived, named as u64);
            }
            Event::Delivery(_)
            | Event::Prompt(_)
            | Event::Transcript(_)
            | Event::Queue(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }

    /// The dialect of a person's client; none for a native one.
    fn dialect_of(&self, name: &str) -> Option<Dialect> {
        let visitor = self.visitors.iter().find(|visitor| visitor.principal.name == name);
        visitor.map(|visitor| visitor.dialect)
    }
}

fn send_in(dialect: Option<Dialect>) -> Effect {
    match dialect {
        None => Effect::NativeSend,
        Some(Dialect::Blob) => Effect::BlobSend,
        Some(Dialect::Pi) => Effect::PiSend,
        Some(Dialect::Control) => Effect::ControlSend,
        Some(Dialect::Webchannel) => Effect::WebchannelSend,
    }
}

fn decision_in(dialect: Option<Dialect>) -> Effect {
    match dialect {
        None => Effect::NativeDecision,
        Some(Dialect::Blob) => Effect::BlobDecision,
        Some(Dialect::Pi) => Effect::PiDecision,
        Some(Dialect::Control) => Effect::ControlDecision,
        Some(Dialect::Webchannel) => Effect::WebchannelDecision,
    }
}
