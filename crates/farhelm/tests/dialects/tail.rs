//! `farhelm tail --dialect`: the same session, as a client of each other dialect sees it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Lines, PATIENCE, Place};

#[test]
fn a_session_is_followed_as_a_client_of_each_dialect_sees_it() {
    for dialect in ["blob", "control", "pi", "webchannel"] {
        let place = Place::new();
        let _up = place.up(&[]);
        let tail = Lines::of(place.farhelm(&["tail", "demo", "--dialect", dialect, "--json"]));
        let send = || place.told(&["send", "demo", "say: one two three"]);
        // Webchannel tells the ends of messages alone.
        let last = if dialect == "webchannel" { "agent" } else { "ended" };
        let has_ended = |seen: &Value| seen["seen"] == last;
        // It follows from now on: what is sent before it is there is not for it.
        let begun = Instant::now();
        send();
        while tail.within(Duration::from_secs(1), has_ended).is_err() {
            assert!(begun.elapsed() < PATIENCE, "{dialect} hears nothing");
            send();
        }
        send();
        let told = tail.until(has_ended);
        let words = |kind: &str| -> Vec<&str> {
            let of_kind = told.iter().filter(|seen| seen["seen"] == kind);
            of_kind.map(|seen| seen["text"].as_str().unwrap()).collect()
        };
        assert_eq!(words("person"), ["say: one two three"], "{dialect}: {told:?}");
        assert_eq!(words("agent"), ["one two three"], "{dialect}: {told:?}");
    }
}
