//! What people do, and what goes wrong meanwhile.

use std::time::Duration;

use bytes::Bytes;
use domain::SessionId;
use serde_json::{Value, json};
use store::Failure;
use tokio::time::Instant;

use super::{REVOKED_AFTER, World};
use crate::client_node::{Deed, REPEAT_REQUEST};
use crate::disk::{Moment, Operation};
use crate::effects::Effect;
use crate::net::Break;
use crate::visitor_node;

/// What people say. The agent's answer has the number of the message in it where it can.
const WORDS: [&str; 10] = [
    "hello",
    "say: one two three",
    "slow: 5",
    "ask: rm -rf target",
    "tool: read",
    "think: hard",
    "fail: send_rejected",
    "degrade",
    "recover",
    "say: four five six seven eight nine ten",
];
/// After how long the system gives up a connection that went silent.
const SILENCE: Duration = Duration::from_secs(35);
/// How far back a person begins to read again, in events.
const BACK_MAX: u64 = 60;
/// How long a machine may be away.
const AWAY_S_MAX: u64 = 120;

impl World {
    pub(super) async fn step(&mut self, step: u64) {
        match self.rng.below(115) {
            0..34 => self.send(step),
            34..40 => self.send_again(),
            40..47 => self.one_person(Deed::Answer, "answers"),
            47..52 => self.control(step),
            52..57 => self.one_person(Deed::HangUp, "hangs up"),
            57..73 => self.visit(step),
            73..76 => self.launch(step),
            76..79 => self.close_or_erase(step).await,
            79..81 => self.send_file(step),
            81..82 => self.revoke().await,
            82..85 => self.read_again(step),
            _ => self.trouble().await,
        }
    }

    async fn trouble(&mut self) {
        match self.rng.below(32) {
            0..7 => self.break_something(),
            7..11 => self.crash_relay().await,
            11..16 => self.crash_proxy().await,
            16..21 => self.fail_disk(),
            21..24 if self.clock_jumps => self.jump_clock(),
            24..25 => self.stop_relay(),
            25..26 => self.stop_proxy(),
            26..28 => self.send_away(),
            28..30 if self.disk.files().is_some() => self.harm_files().await,
            _ => {
                self.note("a while passes");
                for _ in 0..self.rng.below(45) {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.relight().await;
                }
            }
        }
    }

    fn words(&mut self, step: u64) -> String {
        let words = self.rng.pick(&WORDS).copied().unwrap_or_default();
        if words.starts_with("say: ") || words == "hello" {
            format!("{words} m{step}")
        } else {
            words.to_owned()
        }
    }

    fn send(&mut self, step: u64) {
        let Some(session) = self.rng.pick(&self.sessions).cloned() else { return };
        let (id, text) = (format!("m{step}"), self.words(step));
        self.sent.push((session.clone(), id.clone(), text.clone()));
        self.note(&format!("somebody sends {id} {text:?} to {session}"));
        self.one_person(Deed::Send { session, id, text }, "sends");
    }

    /// The same id again, perhaps from somebody else.
    fn send_again(&mut self) {
        let Some((session, id, text)) = self.rng.pick(&self.sent).cloned() else { return };
        self.note(&format!("somebody sends {id} again"));
        self.one_person(Deed::Send { session, id, text }, "sends again");
    }

    /// A send with a file, or to a session that may be closed meanwhile: said once.
    fn send_file(&mut self, step: u64) {
        let Some(session) = self.rng.pick(&self.sessions).cloned() else { return };
        let file = format!("upload-{step}");
        let bytes = Bytes::from(vec![b'x'; usize::try_from(step).unwrap_or_default()]);
        self.uploads.put(&file, "text/plain", bytes);
        let mut frame = message(&session, &format!("f{step}"), &format!("look m{step}"));
        frame["attachments"] = json!([{
            "attachment_id": file, "name": format!("notes-{step}.txt"), "kind": "uploaded_file",
        }]);
        self.note(&format!("somebody sends {file} to {session}"));
        self.one_person(Deed::Control(frame), "sends a file");
    }

    /// Somebody requests a stretch of a history that they were shown before.
    fn read_again(&mut self, step: u64) {
        let Some(session) = self.rng.pick(&self.sessions).cloned() else { return };
        let back = self.rng.below(BACK_MAX);
        let request = format!("{REPEAT_REQUEST}{step}");
        self.note(&format!("somebody reads the last {back} events of {session} again"));
        self.one_person(Deed::ReadAgain { session, request, back }, "reads again");
    }

    fn control(&mut self, step: u64) {
        let Some(session) = self.rng.pick(&self.sessions).cloned() else { return };
        let kind = self.rng.below(3);
        let mut frame = request("agent_interrupt", &session, step);
        if kind == 1 {
            frame["type"] = json!("agent_set_model");
            frame["model_id"] = json!("demo-large");
        } else if kind == 2 {
            frame["type"] = json!("queue_resume");
        }
        self.note(&format!("somebody asks {}", frame["type"]));
        self.one_person(Deed::Control(frame), "controls");
    }

    fn one_person(&mut self, deed: Deed, what: &str) {
        let index = usize::try_from(self.rng.below(self.people.len() as u64)).unwrap_or_default();
        // One that is not let in any more would wait for ever.
        let index = if self.people[index].is_revoked { 0 } else { index };
        self.note(&format!("person {index} {what}"));
        self.people[index].does(deed);
    }

    /// Somebody with another client does something.
    fn visit(&mut self, step: u64) {
        let index = usize::try_from(self.rng.below(self.visitors.len() as u64)).unwrap_or_default();
        let deed = match self.rng.below(10) {
            0..5 => visitor_node::Deed::Send(self.words(step)),
            5..7 => visitor_node::Deed::Decide(self.rng.once_in(2)),
            7 => visitor_node::Deed::Interrupt,
            _ => visitor_node::Deed::HangUp,
        };
        let visitor = &self.visitors[index];
        let dialect = visitor.dialect;
        if visitor.lock().is_connected && !visitor.is_revoked {
            visitor.does(deed);
            self.note(&format!("visitor {index} ({dialect:?}) does something"));
        }
    }

    fn launch(&mut self, step: u64) {
        let Some(machine) = self.rng.pick(&self.proxies).map(|it| it.machine().to_owned()) else {
            return;
        };
        self.launches += 1;
        self.note(&format!("somebody launches a session on {machine}"));
        let frame = json!({
            "type": "launch_session", "protocol_version": 1, "request_id": format!("l{step}"),
            "agent_type": "demo", "machine_label": machine, "workspace_path": "/tmp",
        });
        self.one_person(Deed::Control(frame), "launches");
    }

    /// A launched session is spoken to, closed, and in the end erased.
    async fn close_or_erase(&mut self, step: u64) {
        let launched: Vec<_> = self.launched.iter().cloned().collect();
        let Some(session) = self.rng.pick(&launched).cloned() else { return };
        if self.closed.contains(&session) {
            let id = SessionId::from(session.as_str());
            let erased = self.relay.erase(&id).await;
            self.note(&format!("{session} is erased: {erased}"));
            if erased {
                self.erased.insert(session);
            }
        } else if self.rng.once_in(2) {
            self.closed.insert(session.clone());
            self.note(&format!("somebody closes {session}"));
            self.one_person(Deed::Control(request("close_session", &session, step)), "closes");
        } else {
            let frame = message(&session, &format!("c{step}"), &format!("hello m{step}"));
            self.one_person(Deed::Control(frame), "speaks to it");
        }
    }

    /// A credential is revoked: what is on its way may arrive, and nothing after it.
    async fn revoke(&mut self) {
        let index = usize::try_from(self.rng.below(self.visitors.len() as u64)).unwrap_or_default();
        let is_person = self.rng.once_in(2);
        let credential = if is_person {
            let Some(last) = self.people.last_mut() else { return };
            last.is_revoked = true;
            last.principal.credential.clone()
        } else {
            self.visitors[index].is_revoked = true;
            self.visitors[index].principal.credential.clone()
        };
        self.note(&format!("{credential} is revoked"));
        self.effects.count(Effect::CredentialRevoked);
        self.relay.awake().await;
        self.credentials.revoke(credential.as_str());
        tokio::time::sleep(REVOKED_AFTER).await;
        if is_person {
            if let Some(last) = self.people.last() {
                last.cut_off();
            }
        } else {
            self.visitors[index].lock().is_cut_off = true;
        }
    }

    fn break_something(&mut self) {
        let silent = self.rng.once_in(3);
        self.breaks.retain(Break::is_live);
        let Some(broken) = self.rng.pick(&self.breaks).cloned() else { return };
        if silent {
            broken.silence(SILENCE);
            self.effects.count(Effect::ConnectionSilent);
        } else {
            broken.cut();
            self.effects.count(Effect::ConnectionCut);
        }
        self.note(if silent { "a connection goes silent" } else { "a connection is cut" });
    }

    async fn crash_relay(&mut self) {
        self.note("the relay crashes");
        self.relay.crash();
        tokio::time::sleep(Duration::from_millis(self.rng.below(3_000))).await;
        self.relay.start().await;
    }

    async fn crash_proxy(&mut self) {
        let count = (self.proxies.len() + self.plain.len()) as u64;
        let index = usize::try_from(self.rng.below(count)).unwrap_or_default();
        self.note(&format!("proxy {index} crashes"));
        if let Some(plain) = index.checked_sub(self.proxies.len()) {
            self.effects.count(Effect::PlainProxyCrashed);
            self.plain[plain].restart();
            return;
        }
        self.effects.count(Effect::ProxyCrashed);
        self.proxies[index].crash();
        tokio::time::sleep(Duration::from_millis(self.rng.below(3_000))).await;
        self.proxies[index].restart();
    }

    /// Most of the time the next commit fails, sometimes another operation.
    fn fail_disk(&mut self) {
        let failures = [Failure::BeforeCommit, Failure::AfterCommit, Failure::Full];
        let failure = *self.rng.pick(&failures).unwrap_or(&Failure::Full);
        let operation = match self.rng.pick(&Operation::ALL) {
            Some(operation) if self.rng.once_in(2) => *operation,
            Some(_) | None => Operation::Commit,
        };
        self.note(&format!("the disk will fail: {operation:?}, {failure:?}"));
        self.flaws.add(operation, failure);
    }

    /// The power fails in the middle of a commit or of a checkpoint, or a bit of what is on the disk flips.
    async fn harm_files(&mut self) {
        let Some(files) = self.disk.files().cloned() else { return };
        if self.damaged.is_some() || !self.rng.once_in(4) {
            let moments = [Moment::Commit, Moment::CommitOverOldLog, Moment::Checkpoint];
            let moment = *self.rng.pick(&moments).unwrap_or(&Moment::Commit);
            self.note(&format!("the power will fail: {moment:?}"));
            return files.fail_power(moment);
        }
        let unique: Vec<_> =
            self.sent.iter().filter(|(_, _, text)| text.contains(" m")).cloned().collect();
        let Some((session, _, text)) = self.rng.pick(&unique).cloned() else { return };
        self.relay.stop();
        while files.is_in_use() {
            tokio::task::yield_now().await;
        }
        let session = SessionId::from(session.as_str());
        let kept = self.keep(&session);
        // To the end of the text in its JSON: another message may begin alike.
        let flipped = files.flip(format!("{text}\"").as_bytes()).unwrap_or(false);
        self.note(&format!("a bit flips in {session} at {text:?}: {flipped} {kept:?}"));
        if flipped {
            self.effects.count(Effect::BitFlipped);
            self.damaged = Some(session);
        }
        self.relay.start().await;
    }

    /// What a session holds before it is harmed.
    fn keep(&self, session: &SessionId) -> Result<(), store::Fault> {
        let ledger = self.disk.open()?;
        self.archive.keep(ledger.reader()?.as_mut(), session)
    }

    fn jump_clock(&mut self) {
        let by_ms = i64::try_from(self.rng.below(120_000)).unwrap_or_default() - 60_000;
        self.note(&format!("the clock jumps by {by_ms} ms"));
        let effect = if by_ms < 0 { Effect::ClockBack } else { Effect::ClockForward };
        self.effects.count(effect);
        self.clock.jump(by_ms);
    }

    /// The relay's process is stopped for a while, and goes on.
    fn stop_relay(&mut self) {
        let pause = Duration::from_secs(1 + self.rng.below(20));
        self.note(&format!("the relay stands still for {pause:?}"));
        self.relay.pause(pause);
    }

    /// The same of a proxy.
    fn stop_proxy(&mut self) {
        let pause = Duration::from_secs(1 + self.rng.below(60));
        self.note(&format!("a proxy stands still for {pause:?}"));
        if let Some(proxy) = self.rng.pick(&self.proxies) {
            self.effects.count(Effect::ProxyPaused);
            proxy.pause(pause);
        }
    }

    /// A machine's network is away.
    fn send_away(&mut self) {
        let index = usize::try_from(self.rng.below(self.proxies.len() as u64)).unwrap_or_default();
        let away = Duration::from_secs(20 + self.rng.below(AWAY_S_MAX));
        self.note(&format!("proxy {index} is away for {away:?}"));
        self.effects.count(Effect::ProxyAway);
        self.proxies[index].away_until = Some(Instant::now() + away);
        self.proxies[index].restart();
    }
}

fn request(kind: &str, session: &str, step: u64) -> Value {
    json!({
        "type": kind, "protocol_version": 1, "request_id": format!("r{step}"),
        "session_id": session,
    })
}

fn message(session: &str, id: &str, text: &str) -> Value {
    json!({
        "type": "send_message", "protocol_version": 1, "client_message_id": id,
        "session_id": session, "content": text, "created_at": "2026-10-01T00:00:00.000Z",
    })
}
