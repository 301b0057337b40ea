//! The scenarios by name, and the alternation of floor and scenario.

use std::time::Instant;

use clap::ValueEnum;

use super::agents::{ProxyMemory, TokenHop};
use super::cold_start::ColdStart;
use super::deltas::Deltas;
use super::dialects::Dialects;
use super::fanout::Fanout;
use super::figures::{Figure, Good};
use super::idle::Idle;
use super::lab::Lab;
use super::ledger::LedgerAppend;
use super::replay::Replay;
use super::send_accept::SendAccept;
use super::senders::Senders;
use super::statistics::median;
use super::trouble::{During as _, Outcome};
use super::webchannel::Sealing;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Scenario {
    /// One sender: from sending to durable acceptance
    SendAccept,
    /// 64 senders on 64 sessions: accepted sends per second
    #[value(name = "senders_64")]
    Senders64,
    /// The ledger alone: events per second in batches of 256 over 256 streams
    LedgerAppend,
    /// Recorded events to 1,000 watchers: deliveries per second
    #[value(name = "fanout_1000")]
    Fanout1000,
    /// An agent's text from proxy to client, 1,000 deltas per second
    DeltaHop,
    /// 100,000 events to a client that reconnects: events per second
    #[value(name = "replay_100k")]
    Replay100k,
    /// Memory of one of 9,000 idle connections
    IdleConnection,
    /// From the start of farhelm up to the first accepted send, new database
    ColdStartNew,
    /// The same with a database of 1 GB
    #[value(name = "cold_start_1gb")]
    ColdStart1gb,
    /// A streaming run to 1,000 watchers of four dialects: deliveries per second
    DialectsMixed,
    /// 8 agents with 50 words per second each: delay that proxy and relay add to their stdout
    AgentsTokenHop,
    /// Memory of a proxy with 8 silent agents
    AgentsProxyMemory,
    /// Both scenarios of agents
    Agents,
    /// An encrypted webchannel frame, per receiving client
    WebchannelSeal,
}

/// One scenario, ready to be measured.
pub(crate) trait Contest {
    /// One turn of the floor, in the scenario's unit; `None` where there is none.
    fn floor(&mut self) -> Outcome<Option<f64>>;

    /// One turn of the scenario.
    fn measure(&mut self) -> Outcome<f64>;

    /// What else the last turn showed.
    fn details(&self) -> Vec<(&'static str, f64)> {
        vec![]
    }
}

impl Scenario {
    pub(crate) const ALL: [Self; 13] = [
        Self::SendAccept,
        Self::Senders64,
        Self::LedgerAppend,
        Self::Fanout1000,
        Self::DeltaHop,
        Self::Replay100k,
        Self::IdleConnection,
        Self::ColdStartNew,
        Self::ColdStart1gb,
        Self::DialectsMixed,
        Self::AgentsTokenHop,
        Self::AgentsProxyMemory,
        Self::WebchannelSeal,
    ];

    /// What a name on the command line stands for.
    pub(crate) fn scenarios(&self) -> &[Self] {
        if *self == Self::Agents {
            return &[Self::AgentsTokenHop, Self::AgentsProxyMemory];
        }
        std::slice::from_ref(self)
    }

    /// Name, unit, and what is to be reached.
    fn terms(self) -> ((&'static str, &'static str), (Good, f64)) {
        match self {
            Self::SendAccept => (("send_accept", "µs"), (Good::AtMost, 3.0)),
            Self::Senders64 => (("senders_64", "sends/s"), (Good::AtLeast, 4.0)),
            Self::LedgerAppend => (("ledger_append", "events/s"), (Good::AtLeast, 0.2)),
            Self::Fanout1000 => (("fanout_1000", "deliveries/s"), (Good::AtLeast, 0.6)),
            Self::DeltaHop => (("delta_hop", "µs"), (Good::AtMost, 2.5)),
            Self::Replay100k => (("replay_100k", "events/s"), (Good::AtLeast, 0.2)),
            Self::IdleConnection => (("idle_connection", "KiB"), (Good::AtMost, 32.0)),
            Self::ColdStartNew => (("cold_start_new", "ms"), (Good::AtMost, 100.0)),
            Self::ColdStart1gb => (("cold_start_1gb", "ms"), (Good::AtMost, 100.0)),
            Self::DialectsMixed => (("dialects_mixed", "deliveries/s"), (Good::AtLeast, 0.6)),
            Self::AgentsTokenHop | Self::Agents => {
                (("agents_token_hop", "µs"), (Good::AtMost, 500.0))
            }
            Self::AgentsProxyMemory => (("agents_proxy_memory", "MiB"), (Good::AtMost, 25.0)),
            Self::WebchannelSeal => (("webchannel_seal", "µs"), (Good::AtMost, 5.0)),
        }
    }

    fn prepare(self, lab: &Lab) -> Outcome<Box<dyn Contest + '_>> {
        Ok(match self {
            Self::SendAccept => Box::new(SendAccept::prepare(lab)?),
            Self::Senders64 => Box::new(Senders::prepare(lab)?),
            Self::LedgerAppend => Box::new(LedgerAppend::prepare(lab)?),
            Self::Fanout1000 => Box::new(Fanout::prepare(lab)?),
            Self::DeltaHop => Box::new(Deltas::prepare(lab)?),
            Self::Replay100k => Box::new(Replay::prepare(lab)?),
            Self::IdleConnection => Box::new(Idle::prepare(lab)),
            Self::ColdStartNew => Box::new(ColdStart::new(lab)),
            Self::ColdStart1gb => Box::new(ColdStart::with_large_database(lab)?),
            Self::DialectsMixed => Box::new(Dialects::prepare(lab)?),
            Self::AgentsTokenHop | Self::Agents => Box::new(TokenHop::prepare(lab)?),
            Self::AgentsProxyMemory => Box::new(ProxyMemory::prepare(lab)),
            Self::WebchannelSeal => Box::new(Sealing::prepare()?),
        })
    }
}

/// Floor and scenario take turns.
pub(crate) fn run(scenario: Scenario, lab: &Lab) -> Outcome<Figure> {
    let (terms, target) = scenario.terms();
    let (name, unit) = terms;
    let begun = Instant::now();
    lab.say(&format!("{name}: preparing"));
    let mut contest = scenario.prepare(lab).during(name)?;
    let (mut floors, mut values) = (vec![], vec![]);
    let mut details: Vec<(&'static str, Vec<f64>)> = vec![];
    for round in 1..=lab.rounds {
        let floor = contest.floor().during(format_args!("floor of {name}"))?;
        let value = contest.measure().during(name)?;
        let beside = floor.map_or(String::new(), |floor| format!(" (floor {floor:.1})"));
        lab.say(&format!("{name}: {round}/{}: {value:.1} {unit}{beside}", lab.rounds));
        floors.extend(floor);
        values.push(value);
        for (name, value) in contest.details() {
            match details.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => details.push((name, vec![value])),
            }
        }
    }
    drop(contest);
    lab.say(&format!("{name}: took {:.1} s", begun.elapsed().as_secs_f64()));
    let floor = (!floors.is_empty()).then(|| median(&floors));
    let mut figure = Figure::new(terms, median(&values), floor, target);
    figure.details = details.into_iter().map(|(name, values)| (name, median(&values))).collect();
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_named_the_same_on_the_command_line_and_in_the_output() {
        for scenario in Scenario::ALL {
            let named = scenario.to_possible_value().unwrap();
            assert_eq!(named.get_name(), scenario.terms().0.0);
        }
        // All but the name for two of them.
        assert_eq!(Scenario::ALL.len() + 1, Scenario::value_variants().len());
    }
}
