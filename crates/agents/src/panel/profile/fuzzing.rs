//! What must hold of a profile for any text: a target in `fuzz/` looks for texts that break it, and
//! a test replays `fixtures/fuzz`.

use super::Profile;

/// A profile is read, or everything that is wrong with it is told with its line. One that is read
/// is written and read alike.
///
/// # Panics
///
/// Where that does not hold.
pub fn profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Profile::read(text) {
        Ok(profile) => {
            let Ok(written) = toml::to_string(&profile) else { panic!("it cannot be written") };
            assert_eq!(Profile::read(&written), Ok(profile));
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            let lines = text.lines().count() + 1;
            for fault in faults {
                assert!(fault.line.is_none_or(|line| (1..=lines).contains(&line)), "{fault}");
                assert!(!fault.words.is_empty());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_fuzzing_found_is_survived() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz/panel_profiles");
        let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(inputs.len() >= 3, "{folder} holds next to nothing");
        for input in inputs {
            super::profile(&std::fs::read(input.unwrap().path()).unwrap());
        }
    }
}
