//! What the conversations share with other tests of `wire`.

pub(crate) mod stage;
