//! A client's control requests and their answers.
//!
//! **Invariant**: a request with an id is answered once, with success or with an error and its
//! reason. Unknown requests are answered at once, so that no client waits forever.
//!
//! Not here: permission requests, which go the other way (`answers`).

use bytes::Bytes;
use domain::content::Failure;
use domain::session::config::AgentConfig;
use domain::session::controls::Control;
use domain::session::{Recorded, Wish};
use domain::{MessageId, Refusal, RequestId};
use serde_json::{Value, json};

use super::frames::Request;
use super::messages::encode;
use super::{Asked, Connection, modes, prompts};
use crate::port::Denied;
use crate::visitor::Act;

/// Requests of one connection that may wait for their answers. More are refused.
const REQUESTS_MAX: usize = 64;
/// Bytes of a model's name, a mode or a title.
const NAME_BYTES_MAX: usize = 256;
/// An interrupt that finds nothing to stop is no failure.
const NOT_ACTIVE: &str = "agent_not_active";

/// A request whose answer the session owes.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The client's id for it; a bare interrupt has none, a withdrawn request no longer.
    id: Option<Value>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Whether waiting sends go with it, and those that did.
    Interrupt(bool, Vec<MessageId>),
    Setting,
    /// The agent tells its models.
    Models,
    Rename,
    CancelMessage,
}

impl Connection {
    pub(super) fn on_request(&mut self, id: Option<Value>, request: &Request) -> Vec<Act> {
        let Some(named) = id else {
            // The one request that may come without an id, and that nobody waits for.
            if request.subtype == "interrupt" {
                return self.interrupt(None, request.cancel_queued);
            }
            return vec![];
        };
        if self.requests.len() >= REQUESTS_MAX {
            return vec![error(&named, "Too many requests in flight")];
        }
        match request.subtype.as_str() {
            "initialize" => vec![self.initialize(&named, request)],
            "interrupt" => self.interrupt(Some(named), request.cancel_queued),
            "set_model" => self.set_model(named, &request.model),
            "set_permission_mode" => self.set_mode(named, request.mode.as_deref()),
            "rename_session" => match request.title.as_deref().and_then(name) {
                Some(title) => self.wish(Some(named), Kind::Rename, Wish::Rename(title.to_owned())),
                None => vec![error(&named, "rename_session needs a title")],
            },
            "cancel_async_message" => match request.message_uuid.as_deref().and_then(name) {
                Some(id) => {
                    let wish = Wish::DiscardQueued { id: id.into() };
                    self.wish(Some(named), Kind::CancelMessage, wish)
                }
                None => vec![error(&named, "cancel_async_message needs a message_uuid")],
            },
            "get_context_usage" => vec![self.context_usage(&named)],
            "list_models" if self.view.config.as_ref().is_some_and(AgentConfig::hides_models) => {
                let request = self.name();
                let wish = Wish::Control { request: request.clone(), control: Control::ReadConfig };
                self.wish_as(request, Some(named), Kind::Models, wish)
            }
            "list_models" => vec![success(&named, &json!({ "models": self.models() }))],
            unknown => {
                vec![error(&named, &format!("Unsupported control request subtype: {unknown}"))]
            }
        }
    }

    /// The client no longer waits for this answer.
    pub(super) fn forget(&mut self, id: &Value) {
        for waiting in self.requests.values_mut() {
            waiting.id.take_if(|waiting| *waiting == *id);
        }
    }

    /// The session took a request, or did not.
    pub(super) fn on_asked(
        &mut self,
        request: &RequestId,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let is_settled = self.requests.get(request).is_some_and(|waiting| match waiting.kind {
            Kind::Interrupt(..) | Kind::Setting | Kind::Models => false,
            Kind::Rename | Kind::CancelMessage => true,
        });
        match done {
            // Its answer comes as an event.
            Ok(_) if !is_settled => vec![],
            Ok(_) => self.settle(request, None).into_iter().map(Act::Send).collect(),
            Err(denied) => {
                let code = match &denied {
                    Denied::Refused(Refusal::NotQueued(_)) => NOT_ACTIVE,
                    Denied::Refused(_) | Denied::Failed(_) | Denied::Code(..) => "refused",
                };
                let failure = Failure::new(code, words(&denied));
                self.settle(request, Some(&failure)).into_iter().map(Act::Send).collect()
            }
        }
    }

    /// A send was taken out of the queue for an interrupt, or was gone already.
    pub(super) fn on_discarded(&mut self, request: &RequestId, id: MessageId, was_there: bool) {
        let waiting = self.requests.get_mut(request).map(|waiting| &mut waiting.kind);
        if let Some(Kind::Interrupt(_, cancelled)) = waiting
            && was_there
        {
            cancelled.push(id);
        }
    }

    /// The answer to one of this connection's requests, if it is one and has an id.
    pub(super) fn settle(
        &mut self,
        request: &RequestId,
        failure: Option<&Failure>,
    ) -> Option<Bytes> {
        let Waiting { id, kind } = self.requests.remove(request)?;
        let id = id?;
        let is_idle = failure.is_some_and(|failure| failure.code.as_str() == NOT_ACTIVE);
        Some(match (kind, failure) {
            (Kind::Interrupt(with_queue, cancelled), failure) if failure.is_none() || is_idle => {
                let mut receipt = json!({ "still_queued": self.view.waiting });
                if with_queue {
                    receipt["cancelled"] = json!(cancelled);
                }
                succeeded(&id, &receipt, None)
            }
            (Kind::CancelMessage, failure) if failure.is_none() || is_idle => {
                succeeded(&id, &json!({ "cancelled": failure.is_none() }), None)
            }
            // As far as it told them by now.
            (Kind::Models, _) => succeeded(&id, &json!({ "models": self.models() }), None),
            (_, None) => succeeded(&id, &json!({}), None),
            (_, Some(failure)) => failed(&id, &failure.message),
        })
    }

    fn initialize(&self, id: &Value, request: &Request) -> Act {
        let mut answer = json!({
            "commands": [], "agents": [], "output_style": "default",
            "available_output_styles": ["default"], "models": self.models(), "account": {},
            "permissionMode": self.view.mode().map(modes::clients_word),
        });
        if request.hooks.is_some() {
            // Hooks run where the agent runs; the relay has none.
            answer["hooks_applied"] = json!(false);
        }
        let open: Vec<_> = self.view.prompts.values().map(prompts::request).collect();
        Act::Send(succeeded(id, &answer, Some(open)))
    }

    fn interrupt(&mut self, id: Option<Value>, with_queue: bool) -> Vec<Act> {
        let mut acts = vec![];
        let request = self.name();
        if with_queue {
            // Before the interrupt, so that the end of the run starts none of them.
            for id in self.view.waiting.clone() {
                let ticket = self.ticket(Asked::Discard(request.clone(), id.clone()));
                self.own_sends.retain(|own| *own != id);
                let wish = Box::new(Wish::DiscardQueued { id });
                acts.push(Act::Wish { session: self.view.session.clone(), wish, ticket });
            }
        }
        let control = Control::Interrupt { run: None };
        let kind = Kind::Interrupt(with_queue, vec![]);
        let wish = Wish::Control { request: request.clone(), control };
        acts.extend(self.wish_as(request, id, kind, wish));
        acts
    }

    fn set_model(&mut self, id: Value, model: &Value) -> Vec<Act> {
        let known = self.view.config.as_ref().and_then(|it| it.available_models.clone());
        let has = |word: &str| known.iter().flatten().any(|model| model.as_str() == word);
        let model = match model {
            Value::String(model) if model != "default" || has("default") => {
                name(model).map(Into::into)
            }
            // The agent's own first choice.
            Value::String(_) | Value::Null => known.and_then(|models| models.into_iter().next()),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let Some(model) = model else {
            return vec![error(&id, "set_model needs one of this agent's models")];
        };
        self.control(id, Control::SetModel(model))
    }

    fn set_mode(&mut self, id: Value, mode: Option<&str>) -> Vec<Act> {
        let Some(mode) = mode.and_then(name) else {
            return vec![error(&id, "set_permission_mode needs a mode")];
        };
        let known = self.view.config.as_ref().and_then(|it| it.available_modes.clone());
        if let Some(word) = modes::agents_word(mode, known.as_deref()) {
            return self.control(id, Control::SetMode(word.to_owned()));
        }
        let has = known.unwrap_or_default().join(", ");
        let words = format!("Unknown mode {mode}; this agent has: {has}");
        vec![error(&id, &words)]
    }

    fn context_usage(&self, id: &Value) -> Act {
        let Some(context) = self.view.context else {
            return error(id, "This agent has not reported its context usage");
        };
        let (used, window) = (context.used_tokens, context.window_tokens);
        let free = window.saturating_sub(used);
        let row = |name: &str, id: &str, kind: &str, tokens: u64| json!({ "id": id, "name": name, "tokens": tokens, "color": "inactive", "kind": kind });
        let percentage = (used * 100).checked_div(window).unwrap_or(0);
        let answer = json!({
            "categories": [
                row("Messages", "messages", "used", used),
                row("Free space", "free_space", "free", free),
            ],
            "totalTokens": used, "maxTokens": window, "rawMaxTokens": window,
            "percentage": percentage, "gridRows": [], "model": self.view.model(),
            "memoryFiles": [], "mcpTools": [], "agents": [], "isAutoCompactEnabled": false,
            "apiUsage": null,
        });
        success(id, &answer)
    }

    fn models(&self) -> Value {
        let config = self.view.config.as_ref();
        let models = config.and_then(|config| config.available_models.as_ref());
        let row = |model: &domain::ModelId| json!({ "value": model, "displayName": model, "description": "" });
        json!(models.into_iter().flatten().map(row).collect::<Vec<_>>())
    }

    fn control(&mut self, id: Value, control: Control) -> Vec<Act> {
        let request = self.name();
        let wish = Wish::Control { request: request.clone(), control };
        self.wish_as(request, Some(id), Kind::Setting, wish)
    }

    fn wish(&mut self, id: Option<Value>, kind: Kind, wish: Wish) -> Vec<Act> {
        let request = self.name();
        self.wish_as(request, id, kind, wish)
    }

    fn wish_as(
        &mut self,
        request: RequestId,
        id: Option<Value>,
        kind: Kind,
        wish: Wish,
    ) -> Vec<Act> {
        if self.requests.len() >= REQUESTS_MAX {
            return vec![];
        }
        if let Wish::DiscardQueued { id } = &wish {
            // Its sender took it out; that is no failure to tell.
            self.own_sends.retain(|own| own != id);
        }
        self.requests.insert(request.clone(), Waiting { id, kind });
        let ticket = self.ticket(Asked::Control(request));
        vec![Act::Wish { session: self.view.session.clone(), wish: Box::new(wish), ticket }]
    }

    /// A name for a request that no other connection has.
    fn name(&mut self) -> RequestId {
        self.count += 1;
        format!("{}:{}", self.own_name, self.count).into()
    }
}

/// Why nothing came of it, in words.
pub(super) fn words(denied: &Denied) -> String {
    match denied {
        Denied::Refused(refusal) => refusal.to_string(),
        Denied::Failed(words) | Denied::Code(_, words) => words.clone(),
    }
}

/// An answer that says what is wrong.
pub(super) fn error(id: &Value, words: &str) -> Act {
    Act::Send(failed(id, words))
}

fn success(id: &Value, answer: &Value) -> Act {
    Act::Send(succeeded(id, answer, None))
}

fn succeeded(id: &Value, answer: &Value, open: Option<Vec<Value>>) -> Bytes {
    let mut response = json!({ "subtype": "success", "request_id": id, "response": answer });
    if let Some(open) = open {
        response["pending_permission_requests"] = json!(open);
    }
    encode(&json!({ "type": "control_response", "response": response }))
}

fn failed(id: &Value, words: &str) -> Bytes {
    let response = json!({ "subtype": "error", "request_id": id, "error": words });
    encode(&json!({ "type": "control_response", "response": response }))
}

fn name(word: &str) -> Option<&str> {
    (!word.is_empty() && word.len() <= NAME_BYTES_MAX).then_some(word)
}
