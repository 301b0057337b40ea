//! `fake-panels`: the panels as a program, to look at them by hand.

fn main() {}
