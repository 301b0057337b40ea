//! Clients of all five dialects on one session of the agent.

use client::Seen;

use crate::agents::agent::Agent;
use crate::agents::results::Verdict;
use crate::agents::stage::Stage;
use crate::guest::everybody;

/// Everybody sees everything once, in the same order; one answers for all, one stops for all.
pub(crate) async fn all_dialects(agent: &'static Agent) -> Verdict {
    let stage = Stage::open(agent).await;
    let (host, token) = stage.relay();
    let mut guests = everybody((&host, token), &stage.session, agent.saying).await;
    let mut asked = vec![];
    for speaking in 0..guests.len() {
        let words = format!("words from {}", guests[speaking].dialect);
        guests[speaking].send(&format!("{}{words}", agent.saying)).await;
        for guest in &mut guests {
            guest.until_said(&words).await;
        }
        asked.push(format!("{}{words}", agent.saying));
    }
    for guest in &guests {
        assert_eq!(guest.people(), asked, "{}", guest.dialect);
        assert_eq!(guest.agent().len(), asked.len(), "{}: {:?}", guest.dialect, guest.seen);
    }

    guests[1].send(&format!("{}mkdir ok-dir", agent.asking)).await;
    let mut questions = vec![];
    for guest in &mut guests {
        let question = guest.until(|seen| matches!(seen, Seen::Asked { .. })).await;
        let Seen::Asked { id, what } = question else { continue };
        assert!(what.contains("mkdir ok-dir"), "{}: {what}", guest.dialect);
        questions.push(id);
    }
    let deciding = guests.iter().position(|guest| guest.dialect == "pi").unwrap();
    let frames = guests[deciding].speaker.decide(&questions[deciding], true);
    guests[deciding].say(frames).await;
    for (number, guest) in guests.iter_mut().enumerate() {
        if number != deciding {
            let id = questions[number].clone();
            guest.until(|seen| *seen == Seen::Settled { id: id.clone() }).await;
        }
        guest.until_said("done").await;
    }
    assert!(stage.work().join("ok-dir").is_dir(), "it was allowed, and did not run");

    guests[0].send("slow: 300").await;
    for guest in &mut guests {
        guest.until(|seen| matches!(seen, Seen::Piece(_))).await;
    }
    let stopping = guests.iter().position(|guest| guest.dialect == "control").unwrap();
    let frames = guests[stopping].speaker.interrupt();
    guests[stopping].say(frames).await;
    for guest in &mut guests {
        guest.until_ended().await;
    }
    Verdict::Works
}
