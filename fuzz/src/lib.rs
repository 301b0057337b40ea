//! What the targets run. The conversations are those of `crates/wire/tests/fuzz`, from the same
//! files; the other decoders bring their own, behind the feature `fuzzing`.

mod fuzz;
mod visitors;

/// The name of a target, and what plays its inputs.
type Target = (&'static str, fn(&[u8]));

/// Targets whose inputs are not conversations with the relay.
const OTHERS: [Target; 7] = [
    ("clients", client::fuzzing::client),
    ("fleet_events", store::codec::fuzzing::fleet_event),
    ("packed_rows", store::packed_rows::row),
    ("panel_profiles", agents::panel::profile::fuzzing::profile),
    ("proxy_journal", proxy::journal::fuzzing::journal),
    ("session_events", store::codec::fuzzing::session_event),
    ("states", store::codec::fuzzing::state),
];

/// Plays an input of a target.
///
/// # Panics
///
/// Where something does not hold, and when no target has that name.
pub fn run(target: &str, bytes: &[u8]) {
    for (name, play) in fuzz::lines::TARGETS.into_iter().chain(OTHERS) {
        if name == target {
            return play(bytes);
        }
    }
    panic!("no target is called {target}");
}
