//! Peers that mean no good, against the real binary: each is answered or closed as documented,
//! memory stays bounded, and the others notice nothing.

mod crowds;
mod frames;
mod limits;
mod peer;
mod roles;
