//! Every dialect's decoder and machine against random and spoilt frames, made from the fixtures.
//!
//! A run is a number of cases, each from a seed of its own: one connection, a session that goes on
//! beside it, a shell that answers when it likes. Nothing may panic, and everything that is sent
//! must be JSON. `cargo xtask fuzz --seconds N` runs it for longer; a failure names its seed, and
//! `--seconds 0 --seed S` plays that one again. `lines` is the same for what coverage led to.

mod chance;
mod corpus;
mod dialects;
mod lines;
mod native;
mod sealing;
mod spoil;
mod stories;
mod verbs;
mod visiting;
mod world;

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, Instant};

    use crate::fuzz::chance::Chance;
    use crate::fuzz::corpus::Corpus;
    use crate::fuzz::dialects::{DIALECTS, Dialect};
    use crate::fuzz::lines;
    use crate::fuzz::world::World;

    /// How long a run takes unless it is told.
    const SECONDS_DEFAULT: f64 = 2.0;
    /// Steps of one case.
    const STEPS_MAX: u64 = 80;

    #[test]
    fn every_dialect_survives_whatever_is_said() {
        let seconds = setting("FARHELM_FUZZ_SECONDS").unwrap_or(SECONDS_DEFAULT);
        let first_seed = setting::<u64>("FARHELM_FUZZ_SEED").unwrap_or(0);
        let share = Duration::from_secs_f64(seconds) / u32::try_from(DIALECTS.len()).unwrap();
        for dialect in &DIALECTS {
            let corpus = Corpus::of(dialect);
            let (begun, mut cases) = (Instant::now(), 0);
            while cases == 0 || begun.elapsed() < share {
                let case = first_seed.wrapping_add(cases);
                let played = catch_unwind(AssertUnwindSafe(|| play(dialect, &corpus, case)));
                assert!(
                    played.is_ok(),
                    "{} fell over at seed {case}: cargo xtask fuzz --seconds 0 --seed {case}",
                    dialect.name
                );
                cases += 1;
            }
            let told = format!("{}: {cases} cases from seed {first_seed}", dialect.name);
            let _ = writeln!(std::io::stderr(), "{told}");
        }
    }

    #[test]
    fn the_same_seed_plays_the_same_case() {
        for dialect in &DIALECTS {
            let corpus = Corpus::of(dialect);
            assert_eq!(play(dialect, &corpus, 7), play(dialect, &corpus, 7), "{}", dialect.name);
        }
    }

    #[test]
    fn cases_get_past_the_door_and_hear_the_session() {
        for dialect in &DIALECTS {
            let corpus = Corpus::of(dialect);
            let heard: usize = (0..20).map(|seed| play(dialect, &corpus, seed).len()).sum();
            assert!(heard > 40, "{} heard only {heard} frames", dialect.name);
        }
    }

    #[test]
    fn what_fuzzing_with_coverage_found_is_survived() {
        for (target, play) in lines::TARGETS {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz");
            let folder = std::path::Path::new(folder).join(target);
            let inputs: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
            assert!(inputs.len() >= 3, "{} holds next to nothing", folder.display());
            for input in inputs {
                play(&std::fs::read(input.unwrap().path()).unwrap());
            }
        }
    }

    /// One case. Gives every frame that was heard.
    fn play(dialect: &Dialect, corpus: &Corpus, seed: u64) -> Vec<String> {
        let mut chance = Chance::new(seed);
        let mut world = World::new();
        let mut peer = (dialect.open)(&mut world);
        peer.start(&mut world);
        // Mostly properly greeted: what is behind the door has more to fall over.
        if chance.one_in(8) {
            peer.says(&mut world, &corpus.frame(&mut chance, &[]));
        } else {
            for text in dialect.first {
                peer.says(&mut world, text);
                peer.answer(&mut world, &mut chance, true);
            }
        }
        peer.answer(&mut world, &mut chance, true);
        for _ in 0..chance.below(STEPS_MAX) {
            if peer.is_closed() {
                break;
            }
            match chance.below(10) {
                0..=4 => {
                    let text = corpus.frame(&mut chance, &world.words);
                    peer.says(&mut world, &text);
                }
                5..=7 => world.goes_on(&mut chance, peer.as_mut()),
                8 => peer.lags(&mut world),
                _ => {
                    world.now = world.now.plus_ms(chance.below(20_000));
                    peer.ticks(&mut world);
                }
            }
            let all = chance.one_in(3);
            peer.answer(&mut world, &mut chance, all);
        }
        peer.answer(&mut world, &mut chance, true);
        world.heard
    }

    fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
}
