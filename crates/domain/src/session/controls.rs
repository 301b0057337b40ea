//! Control commands on their way to the proxy, and their answers on the way back.
//!
//! Each request has an id chosen by its client, takes effect at most once, and has one answer. A
//! client that repeats a request gets the same answer again. Pending requests are owed to the
//! proxy.
//!
//! Not here: the content of a prompt's answer (`prompts`), who receives the answer (`wire`).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::content::Failure;
use crate::{ClientKey, ModelId, PromptId, Refusal, RequestId, RunId, Timestamp};

/// Requests in flight per session.
pub const REQUESTS_PENDING_MAX: usize = 64;
/// Answers that are remembered for those who ask again.
pub const ANSWERS_REMEMBERED_MAX: usize = 128;
/// How long a request waits for its proxy, unless it is bound to a run or a prompt.
pub const CONTROL_TIMEOUT_MS: u64 = 30_000;

/// What a client asks of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Stop the run.
    Interrupt {
        /// The run that was going on; void when it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
    },
    /// Use another model.
    SetModel(ModelId),
    /// Use another permission mode.
    SetMode(String),
    /// Think harder or less hard.
    SetEffort(String),
    /// Read the configuration anew.
    ReadConfig,
    /// End the session on its machine.
    Close,
    /// An answer to a prompt; the prompt itself holds it.
    Answer(PromptId),
}

/// The names of control commands, without their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// See [`Control::Interrupt`].
    Interrupt,
    /// See [`Control::SetModel`].
    SetModel,
    /// See [`Control::SetMode`].
    SetMode,
    /// See [`Control::SetEffort`].
    SetEffort,
    /// See [`Control::ReadConfig`].
    ReadConfig,
    /// See [`Control::Close`].
    Close,
    /// See [`Control::Answer`].
    Answer,
}

impl Control {
    /// Which command this is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Interrupt { .. } => Kind::Interrupt,
            Self::SetModel(_) => Kind::SetModel,
            Self::SetMode(_) => Kind::SetMode,
            Self::SetEffort(_) => Kind::SetEffort,
            Self::ReadConfig => Kind::ReadConfig,
            Self::Close => Kind::Close,
            Self::Answer(_) => Kind::Answer,
        }
    }

    /// A newer one of these replaces the older.
    fn is_setting(&self) -> bool {
        matches!(self, Self::SetModel(_) | Self::SetMode(_) | Self::SetEffort(_))
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which request.
    pub request: RequestId,
    /// What it asked for.
    pub kind: Kind,
    /// `None` when it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// When it was answered.
    pub at: Timestamp,
}

/// Facts about control commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A client asks; the proxy is owed the order.
    Requested {
        /// The client's id for it.
        request: RequestId,
        /// Who asks.
        by: ClientKey,
        /// What for.
        control: Control,
    },
    /// It is answered.
    Settled {
        /// The client's id for it.
        request: RequestId,
        /// Who asked.
        by: ClientKey,
        /// What for.
        kind: Kind,
        /// `None` when it was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controls {
    pending: BTreeMap<RequestId, Pending>,
    answered: VecDeque<(ClientKey, Outcome)>,
}

/// A request whose answer is awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Who asked.
    pub by: ClientKey,
    /// What for.
    pub control: Control,
    /// When to give up.
    pub expires_at: Option<Timestamp>,
}

impl Controls {
    /// A client asks. Repeats are told the first one's answer.
    pub fn request(
        &self,
        request: &RequestId,
        by: &ClientKey,
        control: Control,
    ) -> Result<Vec<Event>, Refusal> {
        self.check_repeat(request, by)?;
        if self.pending.len() >= REQUESTS_PENDING_MAX {
            return Err(Refusal::TooManyRequests { limit: REQUESTS_PENDING_MAX });
        }
        let mut events = vec![];
        if control.is_setting() {
            let older = self.pending.iter().filter(|(_, p)| p.control.kind() == control.kind());
            events.extend(older.map(|(id, pending)| {
                settled(id, pending, Some(Failure::new("send_rejected", "replaced by a newer one")))
            }));
        }
        let (request, by) = (request.clone(), by.clone());
        events.push(Event::Requested { request, by, control });
        Ok(events)
    }

    /// Refuses an id that was used before: told again to its own client, refused to others.
    pub fn check_repeat(&self, request: &RequestId, by: &ClientKey) -> Result<(), Refusal> {
        if let Some(pending) = self.pending.get(request) {
            if pending.by == *by {
                return Err(Refusal::RequestRepeated(None));
            }
            return Err(Refusal::RequestInUse(request.clone()));
        }
        let answered = self
            .answered
            .iter()
            .rev()
            .find(|(whose, outcome)| whose == by && outcome.request == *request);
        match answered {
            Some((_, outcome)) => Err(Refusal::RequestRepeated(Some(outcome.clone()))),
            None => Ok(()),
        }
    }

    /// The proxy answers. `None` for one that is not pending: a repeat changes nothing.
    pub fn settle(&self, request: &RequestId, failure: Option<Failure>) -> Option<Event> {
        self.pending.get(request).map(|pending| settled(request, pending, failure))
    }

    /// The request that is pending under this id.
    pub fn pending(&self, request: &RequestId) -> Option<&Pending> {
        self.pending.get(request)
    }

    /// Whether somebody wants this run stopped.
    pub fn has_interrupt(&self, of: &RunId) -> bool {
        let control = |pending: &Pending| matches!(&pending.control, Control::Interrupt { run: Some(run) } if run == of);
        self.pending.values().any(control)
    }

    /// Interrupts of a run that has ended: done if the run was stopped, else too late.
    pub fn void_interrupts(&self, ended: &RunId, was_stopped: bool) -> Vec<Event> {
        let of_run = self.pending.iter().filter(|(_, pending)| {
            matches!(&pending.control, Control::Interrupt { run: Some(run) } if run == ended)
        });
        let too_late = || Failure::new("agent_not_active", "The run had already finished");
        of_run.map(|(id, p)| settled(id, p, (!was_stopped).then(too_late))).collect()
    }

    /// Everything pending, with this failure (or as done): the session is over.
    pub fn settle_all(&self, kind: Kind, failure: Option<&Failure>) -> Vec<Event> {
        let of_kind = self.pending.iter().filter(|(_, p)| p.control.kind() == kind);
        of_kind.map(|(id, pending)| settled(id, pending, failure.cloned())).collect()
    }

    /// Requests whose time is up.
    pub fn expire(&self, now: Timestamp) -> Vec<Event> {
        let late = || Failure::new("control_timeout", "The machine did not answer in time");
        self.pending
            .iter()
            .filter(|(_, pending)| pending.expires_at.is_some_and(|at| at <= now))
            .map(|(id, pending)| settled(id, pending, Some(late())))
            .collect()
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Requested { request, by, control } => {
                let bound = matches!(
                    control,
                    Control::Interrupt { run: Some(_) } | Control::Answer(_) | Control::Close
                );
                let expires_at = (!bound).then(|| at.plus_ms(CONTROL_TIMEOUT_MS));
                let pending = Pending { by: by.clone(), control: control.clone(), expires_at };
                self.pending.insert(request.clone(), pending);
            }
            Event::Settled { request, by, kind, failure } => {
                self.pending.remove(request);
                let (request, kind, failure) = (request.clone(), *kind, failure.clone());
                let outcome = Outcome { request, kind, failure, at };
                self.answered.push_back((by.clone(), outcome));
                if self.answered.len() > ANSWERS_REMEMBERED_MAX {
                    self.answered.pop_front();
                }
            }
        }
    }

    /// What the proxy must still be told. Answers to prompts are owed by the prompts.
    pub fn owed(&self) -> impl Iterator<Item = (&RequestId, &Control)> {
        let pending = self.pending.iter().map(|(id, pending)| (id, &pending.control));
        pending.filter(|(_, control)| control.kind() != Kind::Answer)
    }

    /// When to call [`Controls::expire`] next.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.pending.values().filter_map(|pending| pending.expires_at).min()
    }
}

fn settled(request: &RequestId, pending: &Pending, failure: Option<Failure>) -> Event {
    Event::Settled {
        request: request.clone(),
        by: pending.by.clone(),
        kind: pending.control.kind(),
        failure,
    }
}
