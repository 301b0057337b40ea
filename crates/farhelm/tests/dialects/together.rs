//! One session, all dialects at once: everybody sees everything once, in the same order.

use client::Seen;

use crate::guest::everybody;
use crate::support::{Place, Up};

#[tokio::test]
async fn everybody_sees_every_message_once_in_the_same_order() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody((&host(&up), token(&up)), &session, "say: ").await;
    let mut said = vec![];
    for speaking in 0..guests.len() {
        let words = format!("from {}", guests[speaking].dialect);
        guests[speaking].send(&format!("say: {words}")).await;
        for guest in &mut guests {
            guest.until_said(&words).await;
        }
        said.push(words);
    }
    let asked: Vec<String> = said.iter().map(|words| format!("say: {words}")).collect();
    for guest in &guests {
        assert_eq!(guest.people(), asked, "{}", guest.dialect);
        assert_eq!(guest.agent(), said, "{}", guest.dialect);
    }
}

#[tokio::test]
async fn a_question_that_one_answers_closes_for_all() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody((&host(&up), token(&up)), &session, "say: ").await;
    for deciding in 0..guests.len() {
        let command = format!("touch {}", guests[deciding].dialect);
        guests[0].send(&format!("ask: {command}")).await;
        let mut questions = vec![];
        for guest in &mut guests {
            let asked = guest.until(|seen| matches!(seen, Seen::Asked { .. })).await;
            let Seen::Asked { id, what } = asked else { continue };
            assert!(what.contains(&command), "{}: {what}", guest.dialect);
            questions.push(id);
        }
        let allow = deciding % 2 == 0;
        let frames = guests[deciding].speaker.decide(&questions[deciding], allow);
        assert!(!frames.is_empty(), "{} cannot decide", guests[deciding].dialect);
        guests[deciding].say(frames).await;
        let outcome = format!("{}: {command}", if allow { "ran" } else { "denied" });
        for (number, guest) in guests.iter_mut().enumerate() {
            if number != deciding {
                let id = questions[number].clone();
                guest.until(|seen| *seen == Seen::Settled { id: id.clone() }).await;
            }
            guest.until_said(&outcome).await;
        }
    }
}

#[tokio::test]
async fn a_steered_message_stands_where_the_agent_took_it_for_everybody() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody((&host(&up), token(&up)), &session, "say: ").await;
    for guest in &mut guests {
        guest.forget();
    }
    guests[0].send("slow: 20").await;
    for guest in &mut guests {
        guest.until(|seen| matches!(seen, Seen::Piece(_))).await;
    }
    let steer = serde_json::json!({
        "type": "send_message", "protocol_version": 1, "session_id": session,
        "client_message_id": "steer-1",
        "content": "say: steered", "mode": "steer", "created_at": "2026-11-16T10:00:00.000Z",
    });
    guests[0].ask(steer, |frame| frame["type"] == "message_delivered").await;
    for guest in &mut guests {
        guest.until_said("steered").await;
    }
    // In pieces: to a client of blob, all that is said in a run is one message.
    let order = |seen: &[Seen]| {
        let mut order = vec![];
        for seen in seen {
            match (seen, order.last_mut()) {
                (Seen::Person(words), _) => order.push((true, words.clone())),
                (Seen::Piece(words), Some((false, said))) => said.push_str(words),
                (Seen::Piece(words), _) => order.push((false, words.clone())),
                _ => {}
            }
        }
        order
    };
    let first = order(&guests[0].seen);
    let [(true, asked), (false, before), (true, steered), (false, after)] = &first[..] else {
        panic!("{first:?}")
    };
    assert_eq!((&**asked, &**steered), ("slow: 20", "say: steered"));
    assert!(before.starts_with("word1") && after.ends_with("word20steered"), "{first:?}");
    for guest in &guests {
        assert_eq!(order(&guest.seen), first, "{}", guest.dialect);
    }
}

#[tokio::test]
async fn a_run_that_one_stops_ends_for_all() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = session_of(&place);
    let mut guests = everybody((&host(&up), token(&up)), &session, "say: ").await;
    for stopping in 0..guests.len() {
        guests[0].send("slow: 10000").await;
        for guest in &mut guests {
            guest.until(|seen| matches!(seen, Seen::Piece(_))).await;
        }
        if guests[stopping].dialect == "webchannel" {
            // Its protocol has no word for it.
            assert!(guests[stopping].speaker.interrupt().is_empty());
            let frames = guests[0].speaker.interrupt();
            guests[0].say(frames).await;
        } else {
            let frames = guests[stopping].speaker.interrupt();
            guests[stopping].say(frames).await;
        }
        for guest in &mut guests {
            // What had been said by then stays, for everybody the same.
            guest.until(|seen| matches!(seen, Seen::Agent(_))).await;
            guest.until_ended().await;
        }
    }
}

fn session_of(place: &Place) -> String {
    let sessions = place.json(&["sessions", "--json"]);
    sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned()
}

fn host(up: &Up) -> String {
    up.told["url"].as_str().unwrap().trim_start_matches("http://").to_owned()
}

fn token(up: &Up) -> &str {
    up.told["token"].as_str().unwrap()
}
