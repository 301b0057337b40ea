//! What the targets run. The conversations are those of `crates/wire/tests/fuzz`, from the same
//! files; the other decoders bring their own, behind the feature `fuzzing`.

mod fuzz;
mod visitors;

/// Frames, by the name of their target.
pub fn frames(target: &str, bytes: &[u8]) {
    for (name, play) in fuzz::lines::TARGETS {
        if name == target {
            return play(bytes);
        }
    }
    panic!("no target is called {target}");
}
