//! The invariants hold in many worlds, every fault takes effect in some of them, and a system that
//! is broken on purpose is found out.

use std::time::{Duration, Instant};

use sim::{Effect, Met, Options, Outcome, Sabotage, run};

/// Together with its siblings: the seeds of a normal test run.
const SEEDS_EACH: u64 = 500;
/// Seeds within which every sabotage is found. Without one, all of them are well: they are the
/// first of the normal run.
const SABOTAGE_SEEDS: u64 = 200;

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_seeds_0_to_499() {
    all_well(0);
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_seeds_500_to_999() {
    all_well(1);
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_seeds_1000_to_1499() {
    all_well(2);
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_seeds_1500_to_1999() {
    all_well(3);
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_seeds_2000_to_2499() {
    all_well(4);
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_seeds_2500_to_2999() {
    all_well(5);
}

#[test]
fn every_sabotage_is_found_out_within_200_seeds() {
    let mut found_by = vec![];
    for sabotage in Sabotage::ALL.iter().copied() {
        let options = Options { sabotage, ..Options::default() };
        let found = (0..SABOTAGE_SEEDS).find(|seed| !run(*seed, options).wrong.is_empty());
        let Some(seed) = found else {
            panic!("{SABOTAGE_SEEDS} worlds with {sabotage:?} looked all well");
        };
        found_by.push(format!("{sabotage:?} by seed {seed}"));
    }
    eprintln!("found out: {}", found_by.join(", "));
}

#[test]
fn the_same_seed_gives_the_same_ledgers() {
    // One of them has its ledger in files.
    let options = Options { tells_ledgers: true, ..Options::default() };
    for seed in 7..10 {
        let (one, two) = (run(seed, options), run(seed, options));
        assert!(!one.ledger.is_empty());
        assert_eq!(one.trace, two.trace, "seed {seed}");
        assert_eq!(one.ledger, two.ledger, "seed {seed}");
        assert_eq!(one.shown, two.shown, "seed {seed}");
        assert_eq!(one.met, two.met, "seed {seed}");
    }
}

/// Also: every kind of fault takes effect in these worlds, and every rare path is gone.
fn all_well(part: u64) {
    let begun = Instant::now();
    let (mut simulated, mut met) = (Duration::ZERO, Met::default());
    for seed in part * SEEDS_EACH..(part + 1) * SEEDS_EACH {
        let Outcome { wrong, simulated: lasted, met: now, .. } = run(seed, Options::default());
        assert!(
            wrong.is_empty(),
            "seed {seed}: {wrong:#?}\nagain, with its trace: cargo xtask sim --from {seed} --seeds 1",
        );
        simulated += lasted;
        met.add(&now);
    }
    for effect in Effect::ALL {
        assert!(met.times(*effect) > 0, "{SEEDS_EACH} worlds, and nothing of: {effect}");
    }
    let real = begun.elapsed().as_secs_f64();
    let times = simulated.as_secs_f64() / real;
    let each = met.faults() / SEEDS_EACH;
    eprintln!(
        "{SEEDS_EACH} seeds in {real:.1} s, {times:.0} times as fast as real time, \
         {each} faults in each; met: {met}"
    );
}
