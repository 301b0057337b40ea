//! The invariants hold in many worlds, and a relay that is broken on purpose is found out.

use sim::{Options, Sabotage, run};

/// Together with its siblings: the seeds of a normal test run.
const SEEDS_EACH: u64 = 500;

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
fn a_relay_that_drops_a_commit_is_found_out() {
    found_out(Sabotage::DropsCommits { one_in: 40 });
}

#[test]
fn a_relay_that_answers_before_its_commit_is_found_out() {
    found_out(Sabotage::AnswersEarly);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (one, two) = (run(7, Options::default()), run(7, Options::default()));
    assert_eq!(one.trace, two.trace);
    assert_eq!(one.events, two.events);
}

fn all_well(part: u64) {
    for seed in part * SEEDS_EACH..(part + 1) * SEEDS_EACH {
        let outcome = run(seed, Options::default());
        assert!(
            outcome.wrong.is_empty(),
            "seed {seed}: {:#?}\nagain, with its trace: cargo xtask sim --from {seed} --seeds 1",
            outcome.wrong
        );
    }
}

fn found_out(sabotage: Sabotage) {
    let options = Options { sabotage, ..Options::default() };
    let found = (0..20).any(|seed| !run(seed, options).wrong.is_empty());
    assert!(found, "20 worlds with {sabotage:?} looked all well");
}
