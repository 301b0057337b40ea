//! The farhelm binary.
fn main() {}
