//! What people run.
fn main() {}
