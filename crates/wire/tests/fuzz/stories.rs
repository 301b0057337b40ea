//! Inputs of `fixtures/fuzz` that tell a story get where it goes: with a wrong verb or a wrong id
//! they would be noise, and nobody would see it.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use crate::fuzz::dialects::DIALECTS;
    use crate::fuzz::world::World;
    use crate::fuzz::{lines, sealing, verbs};

    /// An input, its dialect, facts of its session in their order, and frames that were sent in
    /// theirs. Each names a part of it.
    type Story = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

    const STORIES: [Story; 21] = [
        (
            "control/allow",
            "control",
            &[
                r#"{"run":{"started":"#,
                r#"{"asked":{"id":"101""#,
                r#"{"settled":{"prompt":"101","choice":"yes","settled":{"by_person""#,
                r#"{"prompt":{"confirmed":"101"}}"#,
                r#"{"run":{"ended":"#,
            ],
            &[r#""subtype":"can_use_tool""#, r#""type":"result""#],
        ),
        (
            "control/deny",
            "control",
            &[
                r#"{"asked":{"id":"101""#,
                r#"{"settled":{"prompt":"101","choice":"no","settled":{"by_person""#,
                r#"{"prompt":{"confirmed":"101"}}"#,
            ],
            &[r#""subtype":"can_use_tool""#],
        ),
        (
            "control/two_clients",
            "control",
            &[r#"{"settled":{"prompt":"101","choice":"yes","settled":{"by_person""#],
            &[r#""subtype":"can_use_tool""#],
        ),
        (
            "control/interrupt",
            "control",
            &[
                r#"{"control":{"requested":"#,
                r#"{"run":{"ended":{"run":"run_1","outcome":"interrupted""#,
                r#"{"control":{"requested":"#,
                r#"{"run":{"ended":{"run":"run_2","outcome":"interrupted""#,
            ],
            &[r#""type":"control_response""#],
        ),
        (
            "control/turn",
            "control",
            &[
                r#"{"delivery":{"accepted":"#,
                r#"{"delivery":{"delivered":"#,
                r#"{"transcript":{"message":{"id":"msg_1""#,
                r#"{"run":{"ended":{"run":"run_1","outcome":"completed""#,
            ],
            &[r#""type":"assistant""#, r#""type":"result""#],
        ),
        (
            "blob/agent",
            "blob",
            &[
                r#"{"delivery":{"accepted":"#,
                r#"{"delivery":{"delivered":"#,
                r#"{"tool_call":{"id":"t1","tool":"filesystem.read""#,
                r#"{"tool_update":{"id":"t1","status":"completed""#,
                r#"{"transcript":{"message":{"id":"msg_xyz""#,
                r#"{"run":{"ended":"#,
            ],
            &[r#""event":"token""#, r#""event":"tool_call""#, r#""event":"final""#],
        ),
        (
            "blob/errors",
            "blob",
            &[
                r#"{"delivery":{"delivered":"#,
                r#"{"tool_update":{"id":"t1","status":"failed""#,
                r#"{"run":{"ended":{"run":"run_1","outcome":{"failed":"#,
                r#"{"delivery":{"failed":"#,
            ],
            &[r#""event":"error""#],
        ),
        (
            "blob/queue",
            "blob",
            &[
                r#"{"delivery":{"accepted":"#,
                r#"{"delivery":{"accepted":"#,
                r#"{"delivery":{"accepted":"#,
                r#"{"run":{"ended":{"run":"run_1","outcome":"interrupted""#,
                r#"{"run":{"ended":{"run":"run_2","outcome":"completed""#,
            ],
            &[r#""event":"queued""#, r#""event":"cancelled""#, r#""event":"final""#],
        ),
        (
            "pi/dialogs",
            "pi",
            &[
                r#"{"settled":{"prompt":"p1","choice":"yes","settled":{"by_person""#,
                r#"{"settled":{"prompt":"p2","choice":"always","settled":{"by_person""#,
                r#"{"asked":{"id":"p3""#,
            ],
            &[r#""type":"extension_ui_request""#, r#""type":"extension_ui_resolved""#],
        ),
        (
            "control/questions",
            "control",
            &[
                r#"{"asked":{"id":"q1""#,
                r#"{"settled":{"prompt":"q1","choice":"yes","settled":{"by_person""#,
                r#"{"prompt":{"confirmed":"q1"}}"#,
            ],
            &[r#""tool_name":"AskUserQuestion""#],
        ),
        (
            "pi/questions",
            "pi",
            &[r#"{"asked":{"id":"q1""#, r#"{"settled":{"prompt":"q1","choice":"yes""#],
            &[r#""type":"extension_ui_request""#],
        ),
        (
            "blob/questions",
            "blob",
            &[
                r#"{"settled":{"prompt":"p1","choice":"yes","settled":{"by_person""#,
                r#"{"asked":{"id":"q1""#,
                r#"{"settled":{"prompt":"q1","choice":"no","settled":{"by_person""#,
            ],
            &[r#""state":"open""#, r#""state":"closed""#],
        ),
        (
            "pi/steering",
            "pi",
            &[r#"{"run":{"started":"#, r#"{"delivery":{"accepted":"#, r#"{"run":{"ended":"#],
            &[r#""type":"queue_update""#, r#""type":"agent_end""#],
        ),
        (
            "webchannel/sealed",
            "webchannel",
            &[
                r#"{"delivery":{"accepted":{"id":"web-a-"#,
                r#"{"delivery":{"delivered":"#,
                r#"{"transcript":{"message":{"id":"m1""#,
            ],
            &[r#""type":"pairing_result""#, r#""ciphertext""#],
        ),
        (
            "webchannel/tools",
            "webchannel",
            &[
                r#"{"asked":{"id":"p1""#,
                r#"{"settled":{"prompt":"p1","choice":"yes","settled":{"by_person""#,
            ],
            &[r#""type":"approval_request""#, r#""code":"approval_closed""#],
        ),
        (
            "native_client/prompts",
            "native",
            &[
                r#"{"asked":{"id":"p1""#,
                r#"{"settled":{"prompt":"p1","choice":"yes","settled":{"by_person""#,
                r#"{"prompt":{"confirmed":"p1"}}"#,
                r#"{"settled":{"prompt":"p2","choice":"no","settled":"by_expiry""#,
                r#"{"settled":{"prompt":"p3","settled":"withdrawn""#,
            ],
            &[r#""code":"invalid_choice""#, r#""code":"prompt_not_found""#],
        ),
        (
            "native_client/queue",
            "native",
            &[
                r#"{"delivery":{"accepted":{"id":"m1""#,
                r#"{"queue":{"edited":{"id":"m1""#,
                r#"{"status":{"renamed":"Kite"}}"#,
            ],
            &[r#""type":"message_accepted""#],
        ),
        (
            "native_client/sends",
            "native",
            &[
                r#"{"delivery":{"accepted":{"id":"m1""#,
                r#"{"delivery":{"delivered":{"id":"m1""#,
                r#"{"delivery":{"failed":{"id":"m2""#,
            ],
            &[r#""type":"message_accepted""#, r#""type":"message_failed""#],
        ),
        (
            "native_proxy/permission_prompt",
            "native proxy",
            &[
                r#"{"asked":{"id":"prompt_abc""#,
                r#"{"settled":{"prompt":"prompt_abc","choice":"yes","settled":{"by_person""#,
                r#"{"prompt":{"confirmed":"prompt_abc"}}"#,
            ],
            &[r#""type":"permission_response""#],
        ),
        (
            "native_proxy/proxy_send_result_1",
            "native proxy",
            &[r#"{"delivery":{"accepted":{"id":"msg_cli_123""#, r#"{"delivery":{"delivered":"#],
            &[r#""type":"send_message""#],
        ),
        (
            "native_proxy/numbered",
            "native proxy",
            &[
                r#"{"run":{"started":"#,
                r#"{"tool_call":{"id":"t1""#,
                r#"{"tool_update":{"id":"t1""#,
                r#"{"run":{"ended":"#,
            ],
            &[r#""type":"connection_ack""#, r#""code":"invalid_message""#],
        ),
    ];

    #[test]
    fn a_story_gets_where_it_goes() {
        for (input, dialect, facts, frames) in STORIES {
            let world = play(input, dialect);
            let session = if input.starts_with("native_proxy") { "sess_123" } else { "sess_1" };
            let ledger = world.rooms.get(&session.into()).map(|room| room.ledger.as_slice());
            let told = ledger
                .unwrap_or_default()
                .iter()
                .map(|it| serde_json::to_string(&it.event).unwrap());
            for (told, parts) in [(told.collect(), facts), (world.heard, frames)] {
                let missing = missing(&told, parts);
                assert_eq!(missing, None, "{input}: not there, or not in its place: {told:#?}");
            }
        }
    }

    #[test]
    fn what_is_sealed_is_taken_once_and_answered_sealed() {
        let world = play("webchannel/sealed", "webchannel");
        let opened = sealing::opened(&world);
        let words: Vec<_> = opened.iter().filter_map(|it| it["content"].as_str()).collect();
        assert_eq!(words, ["hello", "Hel", "Hello yourself"]);
        let again = world.heard.iter().filter(|frame| frame.contains("e2e_replay")).count();
        assert_eq!(again, 1, "{:#?}", world.heard);
    }

    /// What libFuzzer found has the name that it gave it, 40 digits; its verbs are cut and mixed.
    #[test]
    fn every_verb_of_an_input_that_a_person_wrote_is_one() {
        let mut count = 0;
        for (target, _) in lines::TARGETS {
            for input in fs::read_dir(folder().join(target)).unwrap() {
                let path = input.unwrap().path();
                if path.file_name().is_some_and(|name| name.len() == 40) {
                    continue;
                }
                for line in fs::read_to_string(&path).unwrap().lines() {
                    let Some(words) = line.strip_prefix('~') else { continue };
                    let verb = words.split(' ').next().unwrap();
                    assert!(verbs::VERBS.contains(&verb), "{}: {line}", path.display());
                    count += 1;
                }
            }
        }
        assert!(count > 100, "only {count}");
    }

    #[test]
    fn every_verb_does_something() {
        let mut world = World::new();
        let mut peer = (DIALECTS[0].open)(&mut world);
        for verb in verbs::VERBS {
            assert!(verbs::does(&mut world, peer.as_mut(), verb), "{verb}");
        }
        assert!(!verbs::does(&mut world, peer.as_mut(), "something"));
    }

    fn play(input: &str, dialect: &str) -> World {
        lines::play(dialect, &fs::read(folder().join(input)).unwrap())
    }

    fn folder() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz"))
    }

    /// The first part that is not told after those before it.
    fn missing<'a>(told: &[String], parts: &[&'a str]) -> Option<&'a str> {
        let mut told = told.iter();
        parts.iter().find(|part| !told.any(|it| it.contains(**part))).copied()
    }
}
