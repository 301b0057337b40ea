//! Recognising the sessions that a proxy names.

use super::*;
use crate::SessionId;

// spec: native/proxy_session_snapshot.1, native/session_identifiers.1
#[test]
fn a_session_named_by_its_id_is_accepted_with_its_machine() {
    let mut story = Story::with_attic();
    for _ in 0..2 {
        let claim = story.name("socket-1", vec![named(Some("s-1"), None)]);
        assert_eq!(accepted(&claim), ["s-1"]);
        assert_eq!(claim.accepted[0].1.meta.machine, Some("attic".into()));
    }
}

// spec: native/proxy_session_snapshot.2
#[test]
fn what_is_no_longer_named_is_dropped_and_may_come_back() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), None), named(Some("s-2"), None)]);
    let claim = story.name("socket-1", vec![named(Some("s-2"), None)]);
    assert_eq!(claim.dropped, ["s-1".into()]);
    let claim = story.name("socket-1", vec![named(Some("s-1"), None), named(Some("s-2"), None)]);
    assert_eq!(accepted(&claim), ["s-1", "s-2"]);
    assert_eq!(claim.dropped, [] as [SessionId; 0]);
}

// spec: native/forwarding.3
#[test]
fn another_machines_session_is_refused_also_while_that_machine_is_away() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), None)]);
    story.disconnect("socket-1");
    story.connect("cellar", "socket-2", None, Offer::default());
    let claim = story.name("socket-2", vec![named(Some("s-1"), None)]);
    assert_eq!((accepted(&claim), claim.refused), (vec![], vec!["s-1".into()]));
    let registered = story.fleet.machines().registered(&"s-1".into()).unwrap();
    assert_eq!(registered.machine, "attic".into());
}

// spec: native/proxy_session_snapshot.3
#[test]
fn an_erased_session_that_is_named_as_over_does_not_come_back() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), None)]);
    assert_eq!(story.perform(&Command::Erased("s-1".into())).unwrap(), ["s-1 is erased"]);
    let over = || Named { is_over: true, ..named(Some("s-1"), None) };
    let claim = story.name("socket-1", vec![over()]);
    assert_eq!((accepted(&claim), claim.erased), (vec![], vec!["s-1".into()]));
    assert!(story.fleet.machines().registered(&"s-1".into()).is_none());

    let claim = story.name("socket-1", vec![named(Some("s-1"), None)]);
    assert_eq!(accepted(&claim), ["s-1"], "opened again under its old id");
    let claim = story.name("socket-1", vec![over()]);
    assert_eq!(accepted(&claim), ["s-1"], "the end of what was opened again is told");
}

#[test]
fn a_session_that_is_over_before_the_relay_heard_of_it_is_accepted() {
    let mut story = Story::with_attic();
    let over = Named { is_over: true, ..named(Some("s-1"), None) };
    assert_eq!(accepted(&story.name("socket-1", vec![over])), ["s-1"]);
}

#[test]
fn only_the_newest_erased_sessions_are_remembered() {
    let mut story = Story::with_attic();
    for n in 0..=places::ERASED_MAX {
        story.perform(&Command::Erased(format!("s-{n}").as_str().into())).unwrap();
    }
    let machines = story.fleet.machines();
    assert!(!machines.is_erased(&"s-0".into()) && machines.is_erased(&"s-1".into()));
}

#[test]
fn one_machines_words_drop_nothing_of_another() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), None)]);
    story.connect("cellar", "socket-2", None, Offer::default());
    assert_eq!(story.name("socket-2", vec![]).dropped, [] as [SessionId; 0]);
}

#[test]
fn a_target_known_only_by_its_signature_keeps_its_session() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), Some("sig"))]);
    let claim = story.name("socket-1", vec![named(None, Some("sig"))]);
    assert_eq!(accepted(&claim), ["s-1"]);
}

#[test]
fn a_signature_of_nobody_or_of_another_machine_matches_nothing() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), Some("sig"))]);
    story.connect("cellar", "socket-2", None, Offer::default());
    for (signature, why) in
        [(Some("sig"), "another machine's"), (Some("new"), "nobody's"), (None, "none")]
    {
        let claim = story.name("socket-2", vec![named(None, signature)]);
        assert_eq!((accepted(&claim), claim.unmatched), (vec![], 1), "{why}");
    }
}

#[test]
fn two_sessions_with_one_signature_match_nothing() {
    let mut story = Story::with_attic();
    let both = vec![named(Some("s-1"), Some("sig")), named(Some("s-2"), Some("sig"))];
    story.name("socket-1", both);
    let claim = story.name("socket-1", vec![named(None, Some("sig"))]);
    assert_eq!((accepted(&claim), claim.unmatched), (vec![], 1));
}

#[test]
fn two_targets_with_one_signature_match_nothing() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), Some("sig"))]);
    let claim = story.name("socket-1", vec![named(None, Some("sig")), named(None, Some("sig"))]);
    assert_eq!((accepted(&claim), claim.unmatched), (vec![], 2));
}

#[test]
fn a_session_that_is_named_by_its_id_is_not_matched_by_signature_too() {
    let mut story = Story::with_attic();
    story.name("socket-1", vec![named(Some("s-1"), Some("sig"))]);
    let by_signature = named(None, Some("sig"));
    let claim = story.name("socket-1", vec![by_signature, named(Some("s-1"), Some("sig"))]);
    assert_eq!((accepted(&claim), claim.unmatched), (vec!["s-1".to_owned()], 1));
}

#[test]
fn a_session_named_twice_is_accepted_once() {
    let mut story = Story::with_attic();
    let claim = story.name("socket-1", vec![named(Some("s-1"), None), named(Some("s-1"), None)]);
    assert_eq!(accepted(&claim), ["s-1"]);
}

fn accepted(claim: &Claim) -> Vec<String> {
    claim.accepted.iter().map(|(session, _)| session.to_string()).collect()
}
