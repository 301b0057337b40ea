//! `user_message`s, plain and sealed, and what happens to them.
//!
//! **Invariant**: a sealed message is accepted once. Its nonce is spent for good before the
//! message is sent, and becomes the message's id.
//!
//! Not here: the window of spent nonces (`server`).

use domain::content::Failure;
use domain::session::delivery::{Send, State};
use domain::session::{Recorded, Wish};
use domain::{Content, MessageId, Refusal, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{Asked, Connection, OwnSend, seal};
use crate::echo::echo_digest;
use crate::port::Denied;
use crate::visitor::Act;

/// Bytes of a sealed message, once opened.
pub(super) const SEALED_BYTES_MAX: usize = 65_536;
/// Sends of this connection that are not delivered yet; of more, the oldest fail in silence. The
/// relay's queue is shorter.
const OWN_SENDS_MAX: usize = 1_024;
/// What went wrong went wrong with the agent.
pub(super) const AGENT_ERROR: &str = "agent_error";
/// What ciphertext has more than its plaintext.
const TAG_BYTES: usize = 16;

/// A sealed payload.
#[derive(Deserialize)]
struct Sealed {
    #[serde(default)]
    alg: Option<String>,
    nonce: String,
    ciphertext: String,
}

/// What a client seals.
#[derive(Deserialize)]
struct Matter {
    #[serde(default)]
    content: Option<String>,
    /// The relay's own mark: no client sets it, so what has it was thrown back at us.
    #[serde(default)]
    role: Option<Value>,
}

/// An opened message.
struct Opened {
    nonce: [u8; seal::NONCE_BYTES],
    text: String,
}

impl Connection {
    /// A client speaks. It is known and with its session.
    pub(super) fn on_user(
        &mut self,
        request: Option<String>,
        content: Option<String>,
        sealed: Option<Value>,
        now: Timestamp,
    ) -> Vec<Act> {
        if self.is_full() {
            return vec![self.too_much(request.as_deref())];
        }
        let refuse = |(code, words): (&str, &str)| {
            vec![Act::Send(self.writer.error(request.as_deref(), code, words))]
        };
        let key = self.known.as_ref().and_then(|known| known.key.as_ref());
        match (key, sealed, content) {
            (Some(key), Some(sealed), _) => match open(key, sealed) {
                Ok(opened) => self.spend(request, opened),
                Err(why) => refuse(why),
            },
            (Some(_), None, _) => {
                refuse(("e2e_required", "This client has a key: seal its messages in payload.e2e"))
            }
            (None, Some(_), _) => refuse((
                "e2e_not_initialized",
                "This client has no key: pair with client_pub, or send the message unsealed",
            )),
            (None, None, None) => refuse(("invalid_payload", "content is missing")),
            (None, None, Some(text)) => {
                let id = self.new_id();
                self.send(id, request, text, now)
            }
        }
    }

    /// The nonce of a sealed message was noted, or was known already.
    pub(super) fn on_spent(
        &mut self,
        is_new: bool,
        nonce: &[u8; seal::NONCE_BYTES],
        request: Option<String>,
        text: String,
        now: Timestamp,
    ) -> Vec<Act> {
        if !is_new {
            return vec![self.replayed(request.as_deref())];
        }
        let who = self.known.as_ref().map_or("", |it| it.principal.credential.as_str());
        let id = MessageId::from(format!("web-{who}-{}", seal::encode(nonce)));
        self.send(id, request, text, now)
    }

    /// The relay took a send, or did not.
    pub(super) fn on_sent(
        &mut self,
        id: &MessageId,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let Err(denied) = done else { return vec![] };
        let Some(OwnSend { request, .. }) = self.disown(id) else { return vec![] };
        if let Denied::Refused(Refusal::SendRepeated(_)) = &denied {
            return vec![self.replayed(request.as_deref())];
        }
        let (code, words) = denial(&denied);
        vec![Act::Send(self.writer.error(request.as_deref(), &code, &words))]
    }

    /// A send did not reach the agent. Its sender is told.
    pub(super) fn on_send_failed(&mut self, id: &MessageId, failure: &Failure) -> Option<Act> {
        let OwnSend { request, .. } = self.disown(id)?;
        let (code, words) = (told_code(failure), &failure.message);
        Some(Act::Send(self.writer.error(request.as_deref(), code, words)))
    }

    /// A send is settled. It, if this connection sent it.
    pub(super) fn disown(&mut self, id: &MessageId) -> Option<OwnSend> {
        let at = self.own_sends.iter().position(|own| own.id == *id)?;
        self.own_sends.remove(at)
    }

    fn spend(&mut self, request: Option<String>, opened: Opened) -> Vec<Act> {
        let Some(known) = &self.known else { return vec![] };
        let (credential, nonce) = (known.principal.credential.clone(), opened.nonce);
        let ticket = self.ticket(Asked::Spend { nonce, request, text: opened.text });
        self.busy = Some(ticket);
        vec![Act::Spend { credential, nonce, ticket }]
    }

    fn send(
        &mut self,
        id: MessageId,
        request: Option<String>,
        text: String,
        now: Timestamp,
    ) -> Vec<Act> {
        let most = self.limits.max_content_bytes;
        let refused = match text.len() {
            0 => Some(("invalid_payload", "The message is empty".to_owned())),
            bytes if bytes > most => {
                let words = format!("The message is too large: at most {most} bytes");
                Some(("message_too_large", words))
            }
            _ => None,
        };
        if let Some((code, words)) = refused {
            return vec![Act::Send(self.writer.error(request.as_deref(), code, &words))];
        }
        if self.own_sends.len() >= OWN_SENDS_MAX {
            self.own_sends.pop_front();
        }
        self.own_sends.push_back(OwnSend { id: id.clone(), request });
        let by = self.who().map_or("", |who| who.name.as_str()).to_owned();
        let digest = Some(echo_digest(&text));
        let send = Send {
            id: id.clone(),
            text: Content::Open(text),
            attachments: vec![],
            mode: None,
            by,
            created_at: now,
            digest,
        };
        let ticket = self.ticket(Asked::Send(id));
        self.wish(Wish::Send { send, earlier: None }, ticket)
    }

    fn replayed(&self, request: Option<&str>) -> Act {
        let words = "This sealed message was already received; seal it again to resend it";
        Act::Send(self.writer.error(request, "e2e_replay", words))
    }

    /// A message that was said openly gets a name that no other connection makes.
    fn new_id(&mut self) -> MessageId {
        self.count += 1;
        format!("web-{}-{}", self.own_name, self.count).into()
    }
}

/// Opens a sealed payload, or says what is wrong with it: a code, and words.
fn open(key: &seal::Key, sealed: Value) -> Result<Opened, (&'static str, &'static str)> {
    const SHAPE: (&str, &str) =
        ("invalid_e2e_payload", "payload.e2e needs nonce (12 bytes) and ciphertext, in base64url");
    let sealed: Sealed = serde_json::from_value(sealed).map_err(|_| SHAPE)?;
    if sealed.alg.is_some_and(|alg| alg != seal::ALGORITHM) {
        return Err(("unsupported_e2e_alg", "The algorithm must be x25519-chacha20poly1305-v1"));
    }
    let nonce = seal::decode_exactly(&sealed.nonce).ok_or(SHAPE)?;
    let ciphertext = seal::decode(&sealed.ciphertext).ok_or(SHAPE)?;
    if ciphertext.len() > SEALED_BYTES_MAX + TAG_BYTES {
        return Err(("message_too_large", "A sealed message can have at most 65536 bytes"));
    }
    let failed =
        ("e2e_decrypt_failed", "The message was not sealed with this client's key; pair again");
    let matter = key.open(nonce, &ciphertext).ok_or(failed)?;
    let shape = ("invalid_payload", "The sealed payload must be a JSON object with content");
    let matter: Matter = serde_json::from_slice(&matter).map_err(|_| shape)?;
    if matter.role.is_some() {
        return Err(("e2e_replay", "The message was sealed by the relay, not by this client"));
    }
    Ok(Opened { nonce, text: matter.content.ok_or(shape)? })
}

/// The code of a send that failed. What an agent is not allowed is not what this client is not
/// allowed: it would forget its token.
fn told_code(failure: &Failure) -> &str {
    match failure.code.as_str() {
        "unauthorized" => AGENT_ERROR,
        code => code,
    }
}

/// Why nothing came of a wish: a code, and words. `unauthorized` is not among them: a client would
/// forget its token for it.
pub(super) fn denial(denied: &Denied) -> (String, String) {
    let code = match denied {
        Denied::Refused(refusal) => match refusal {
            Refusal::Unauthorized | Refusal::OwnerOnly => "forbidden",
            Refusal::SessionUnknown => "session_unknown",
            Refusal::SessionClosed | Refusal::NoProxyConnected => "session_not_connected",
            Refusal::PromptNotOpen(_) => "approval_closed",
            Refusal::NoSuchChoice { .. } | Refusal::AnswersMissing(_) | Refusal::NotSupported => {
                "approval_unsupported"
            }
            Refusal::TooManyPrompts { .. }
            | Refusal::QueueFull { .. }
            | Refusal::TooManyRequests { .. } => "rate_limited",
            Refusal::SendRepeated(told) => match &told.state {
                State::Accepted | State::Delivered => "e2e_replay",
                State::Failed(failure) => told_code(failure),
            },
            Refusal::AgentAtWork
            | Refusal::NotQueued(_)
            | Refusal::RequestRepeated(_)
            | Refusal::LaunchRepeated(_)
            | Refusal::RequestInUse(_)
            | Refusal::NotThisProxy
            | Refusal::OtherMachine => "internal_error",
        },
        Denied::Failed(_) => "internal_error",
        Denied::Code(code, _) if code.as_str() == "unauthorized" => "forbidden",
        Denied::Code(code, _) => code.as_str(),
    };
    let words = match denied {
        Denied::Refused(refusal) => refusal.to_string(),
        Denied::Failed(words) | Denied::Code(_, words) => words.clone(),
    };
    (code.to_owned(), words)
}
