//! Which machines are connected, and which machine gets a launch.

use super::*;
use crate::AgentType;

// spec: native/forwarding.3
#[test]
fn a_newer_connection_of_the_same_machine_takes_over() {
    let mut story = Story::with_attic();
    story.connect("attic", "socket-2", Some("j"), Offer::default());
    let machines = story.fleet.machines();
    assert_eq!(machines.via(&"attic".into()), Some(&via("socket-2", Some("j"))));
    assert_eq!(machines.of(&"socket-1".into()), None);
    assert_eq!(story.disconnect("socket-1"), [""; 0], "the old one takes nothing down");
    let refused = story.fleet.claim(&"socket-1".into(), vec![]);
    assert_eq!(refused, Err(Refusal::NotThisProxy));
}

#[test]
fn after_a_restart_nobody_is_there() {
    let mut story = Story::with_attic();
    story.connect("cellar", "socket-2", None, Offer::default());
    let told = story.perform(&Command::Restarted).unwrap();
    assert_eq!(told, ["attic went", "cellar went"]);
    assert_eq!(story.launch(&ada(), wish("l1")), Err(Refusal::NoProxyConnected));
    assert_eq!(story.perform(&Command::Restarted), Ok(vec![]));
}

// spec: native/launch_session.2
#[test]
fn without_a_machine_a_launch_is_refused_at_once() {
    let mut story = Story::new();
    assert_eq!(story.launch(&ada(), wish("l1")), Err(Refusal::NoProxyConnected));
    story.connect("attic", "socket-1", None, Offer::default());
    story.disconnect("socket-1");
    assert_eq!(story.launch(&ada(), wish("l1")), Err(Refusal::NoProxyConnected));
}

// spec: native/catalog.3
#[test]
fn an_agent_that_is_installed_later_is_offered_from_then_on() {
    let mut story = two_machines();
    let codex = LaunchWish { agent: "codex".into(), ..wish("l1") };
    let offer = Offer { agents: Some(vec!["demo".into(), "codex".into()]), ..Offer::default() };
    let offered =
        |connection: &str| Command::Offered { connection: connection.into(), offer: offer.clone() };
    assert_eq!(story.perform(&offered("socket-1")).unwrap(), ["attic offers 2"]);
    assert_eq!(story.perform(&offered("socket-1")), Ok(vec![]), "nothing new");
    assert_eq!(story.perform(&offered("nowhere")), Err(Refusal::NotThisProxy));
    assert_eq!(choice(&story, &codex), "attic");
}

// spec: native/launch_session.7
#[test]
fn the_machine_that_is_named_gets_the_launch_or_nobody() {
    let mut story = two_machines();
    let on = |machine: &str| LaunchWish { machine: Some(machine.into()), ..wish(machine) };
    assert_eq!(story.launch(&ada(), on("attic")).unwrap(), ["launch attic on attic"]);
    assert_eq!(story.launch(&ada(), on("moon")), Err(Refusal::NoProxyConnected));
    story.disconnect("socket-2");
    assert_eq!(story.launch(&ada(), on("cellar")), Err(Refusal::NoProxyConnected));
}

// spec: native/launch_session.4
#[test]
fn the_machine_that_knows_the_folder_comes_first() {
    let mut story = two_machines();
    let at = |path: &str| LaunchWish { workspace_path: Some(path.to_owned()), ..wish(path) };
    assert_eq!(choice(&story, &at("/kite")), "attic");
    assert_eq!(choice(&story, &at("/elsewhere")), "cellar", "active last");
    let codex = LaunchWish { agent: "codex".into(), ..at("/kite") };
    assert_eq!(choice(&story, &codex), "attic", "only it can say why it cannot");
    story.disconnect("socket-1");
    assert_eq!(choice(&story, &at("/kite")), "cellar");
}

#[test]
fn a_folder_is_known_by_the_sessions_in_it() {
    let mut story = two_machines();
    story.connect("plain", "socket-3", None, Offer::default());
    let mut session = named(Some("s-1"), None);
    session.meta.workspace_path = Some("/boat".to_owned());
    story.name("socket-3", vec![session]);
    story.connect("cellar", "socket-2", None, offer(&["demo"], &[]));
    let path = Some("/boat".to_owned());
    assert_eq!(choice(&story, &LaunchWish { workspace_path: path, ..wish("l1") }), "plain");
}

#[test]
fn else_the_machine_that_offers_the_agent_and_was_active_last() {
    let mut story = two_machines();
    assert_eq!(choice(&story, &wish("l1")), "cellar");
    story.now = story.now.plus_ms(1);
    story.name("socket-1", vec![named(Some("s-1"), None)]);
    assert_eq!(choice(&story, &wish("l1")), "attic", "naming a session is activity");
    story.now = story.now.plus_ms(1);
    story.connect("roof", "socket-4", None, offer(&["codex"], &[]));
    assert_eq!(choice(&story, &wish("l1")), "attic");
    let codex = LaunchWish { agent: "codex".into(), ..wish("l1") };
    assert_eq!(choice(&story, &codex), "roof");
}

#[test]
fn a_machine_that_does_not_say_what_it_offers_comes_before_one_that_does_not_offer_it() {
    let mut story = two_machines();
    story.connect("plain", "socket-3", None, Offer::default());
    story.now = story.now.plus_ms(1);
    story.connect("cellar", "socket-2", None, offer(&["demo"], &[]));
    let gemini = LaunchWish { agent: "gemini".into(), ..wish("l1") };
    assert_eq!(choice(&story, &gemini), "plain");
    assert_eq!(choice(&story, &wish("l1")), "cellar");
}

#[test]
fn what_a_proxy_names_belongs_to_its_machine_until_it_is_over() {
    let mut story = Story::with_attic();
    let connection = "socket-1".into();
    let claim = story.fleet.claim(&connection, vec![named(Some("s-1"), None)]).unwrap();
    let name = Command::Named { connection, claim };
    assert_eq!(story.perform(&name).unwrap(), ["s-1 is on attic"]);
    assert_eq!(story.perform(&name), Ok(vec![]), "nothing new");
    let gone = || Command::Gone("s-1".into());
    assert_eq!(story.perform(&gone()).unwrap(), ["s-1 is gone"]);
    assert_eq!(story.perform(&gone()), Ok(vec![]));
}

fn choice(story: &Story, wish: &LaunchWish) -> String {
    story.fleet.machines().choose(wish).unwrap().to_string()
}

fn offer(agents: &[&str], workspaces: &[&str]) -> Offer {
    let agents = agents.iter().map(|agent| AgentType::from(*agent)).collect();
    let workspaces = workspaces.iter().map(|path| (*path).to_owned()).collect();
    Offer { agents: Some(agents), workspaces, details: vec![], limits: None }
}

/// `attic` knows `/kite`; `cellar` came last. Both offer `demo`.
fn two_machines() -> Story {
    let mut story = Story::new();
    story.connect("attic", "socket-1", None, offer(&["demo"], &["/kite"]));
    story.now = story.now.plus_ms(1);
    story.connect("cellar", "socket-2", None, offer(&["demo"], &[]));
    story
}
