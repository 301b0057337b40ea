//! Messages for the agent, and cancelling them.
//!
//! **Invariant**: the response to a request comes before the events that it led to; a cancelled
//! run ends with `cancelled` and nothing else.
//!
//! Not here: how the queue and the runs are shown (`events`).

use bytes::Bytes;
use domain::session::controls::Control;
use domain::session::delivery::{self, Send};
use domain::session::{Event, Recorded, Wish};
use domain::{Content, MessageId, Refusal, RequestId, SessionId, Timestamp};
use serde::Deserialize;
use serde_json::json;

use super::frames::{Request, granted, params, refuse, refused};
use super::sessions::ListFor;
use super::switch::Purpose;
use super::{Asked, Connection, DENIED, commands, names, not_found, words};
use crate::echo::echo_digest;
use crate::port::Denied;
use crate::visitor::{Act, Followed};

/// Interrupts of one connection whose outcome is waited for; of more, a failure is not told.
const INTERRUPTS_MAX: usize = 64;
/// Sends of one connection whose sessions it remembers, so that it can cancel them from anywhere.
const SAID_MAX: usize = 256;
/// An interrupt that finds nothing to stop is no failure.
const NOT_ACTIVE: &str = "agent_not_active";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Agent {
    #[serde(default)]
    session_id: Option<String>,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancel {
    run_id: String,
}

impl Connection {
    pub(super) fn agent(&mut self, request: Request, now: Timestamp) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        let agent = match params::<Agent>(given) {
            Ok(agent) => agent,
            Err(words) => return refuse(&id, &words),
        };
        let menu = std::mem::take(&mut self.menu.numbers);
        if let Some(command) = commands::read(&agent.message, &menu) {
            return self.command(&id, command);
        }
        if !self.may_steer() {
            return refuse(&id, DENIED);
        }
        if agent.message.trim().is_empty() {
            return refuse(&id, "Invalid parameters: message is empty");
        }
        let most = self.limits.max_content_bytes;
        if agent.message.len() > most {
            let words = format!("Invalid parameters: message is longer than {most} bytes");
            return refuse(&id, &words);
        }
        let current = self.view.as_ref().map(|view| view.session.clone());
        match (agent.session_id, current) {
            (Some(named), current) => match SessionId::parse(&named) {
                None => refuse(&id, &not_found(&named)),
                Some(session) if Some(&session) == current.as_ref() => {
                    self.say(id, agent.message, now)
                }
                Some(session) => self.switch_to(session, Purpose::Agent(id, agent.message)),
            },
            (None, Some(_)) => self.say(id, agent.message, now),
            (None, None) => self.list(ListFor::Latest(Purpose::Agent(id, agent.message))),
        }
    }

    /// Sends words to the current session.
    pub(super) fn say(&mut self, request: String, text: String, now: Timestamp) -> Vec<Act> {
        let Some(view) = &self.view else { return refuse(&request, "No session selected") };
        let session = view.session.clone();
        self.count += 1;
        let id = names::send(&self.own_name, self.count, &request);
        let by = self.principal.as_ref().map_or("", |principal| principal.name.as_str());
        let send = Send {
            id: id.clone(),
            digest: Some(echo_digest(&text)),
            text: Content::Open(text),
            attachments: vec![],
            mode: None,
            by: by.to_owned(),
            created_at: now,
        };
        self.sends.insert(id.clone(), request);
        if self.said.len() >= SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back((id.clone(), session.clone()));
        let ticket = self.ticket(Asked::Send(id));
        vec![Act::Wish { session, wish: Box::new(Wish::Send { send, earlier: None }), ticket }]
    }

    /// The relay took a send, or did not. Mostly its event was shown already, and answered.
    pub(super) fn on_sent(
        &mut self,
        id: &MessageId,
        done: Result<Vec<Recorded>, Denied>,
        now: Timestamp,
    ) -> Vec<Act> {
        let Some(request) = self.sends.remove(id) else { return vec![] };
        let response = match done {
            Ok(events) => {
                let leaves = |it: &Recorded| {
                    matches!(&it.event, Event::Delivery(
                    delivery::Event::HandedOver { id: gone, .. }) if gone == id)
                };
                accepted(&request, id, !events.iter().any(leaves))
            }
            Err(denied) => {
                let session = self.view.as_ref().map(|view| &view.session);
                refused(&request, &words(&denied, session))
            }
        };
        if self.switches_for(&request) {
            return self.finish(Some(response), now);
        }
        vec![Act::Send(response)]
    }

    pub(super) fn cancel(&mut self, request: Request) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        match params::<Cancel>(given) {
            Ok(cancel) => self.cancel_run(id, cancel.run_id),
            Err(words) => refuse(&id, &words),
        }
    }

    fn cancel_run(&mut self, request: String, run: String) -> Vec<Act> {
        if !self.may_steer() {
            return refuse(&request, DENIED);
        }
        let here = self.view.as_ref().map(|view| &view.session);
        let said = self.said.iter().find(|(id, _)| id.as_str() == run);
        let elsewhere = said.map(|(_, session)| session).filter(|said| Some(*said) != here);
        if let Some(session) = elsewhere.cloned() {
            return self.look_for_run(request, run, session);
        }
        let Some(view) = &self.view else { return refuse(&request, &no_run(&run)) };
        if view.is_waiting(&run) {
            let (session, id) = (view.session.clone(), MessageId::from(run));
            self.cancels.insert(id.clone(), request);
            let ticket = self.ticket(Asked::Discard(id.clone()));
            let wish = Box::new(Wish::DiscardQueued { id });
            return vec![Act::Wish { session, wish, ticket }];
        }
        if view.run.as_ref().is_some_and(|active| active.is(&run)) {
            return self.interrupt(Some(request), run);
        }
        if view.is_handed(&run) {
            // It is on its way to the agent: stopped as soon as it runs.
            if self.stops.len() < INTERRUPTS_MAX {
                self.stops.push(run);
            }
            return vec![Act::Send(requested(&request))];
        }
        refuse(&request, &no_run(&run))
    }

    /// A waiting send was taken out, or had left meanwhile.
    pub(super) fn on_discarded(
        &mut self,
        id: &MessageId,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let Some(request) = self.cancels.remove(id) else { return vec![] };
        match done {
            Ok(_) => vec![Act::Send(requested(&request))],
            Err(Denied::Refused(Refusal::NotQueued(_))) => {
                let is_stale = self.view.as_ref().is_some_and(|view| view.is_waiting(id.as_str()));
                if is_stale {
                    return refuse(&request, &no_run(id.as_str()));
                }
                self.cancel_run(request, id.as_str().to_owned())
            }
            Err(denied) => refuse(&request, &words(&denied, None)),
        }
    }

    /// The response to a cancellation whose event is about to be told.
    pub(super) fn cancelled(&mut self, id: &MessageId) -> Option<Bytes> {
        self.cancels.remove(id).map(|request| requested(&request))
    }

    /// A send of this connection, in a session that it has left.
    fn look_for_run(&mut self, request: String, run: String, session: SessionId) -> Vec<Act> {
        let asked = Asked::Elsewhere(request, run, session.clone());
        vec![Act::Glance { session, ticket: self.ticket(asked) }]
    }

    pub(super) fn on_elsewhere(
        &mut self,
        request: String,
        run: String,
        session: SessionId,
        glanced: Option<Box<Followed>>,
    ) -> Vec<Act> {
        let Some(Followed { glance, .. }) = glanced.map(|glanced| *glanced) else {
            return refuse(&request, &no_run(&run));
        };
        if glance.waiting.iter().any(|send| send.id.as_str() == run) {
            let wish = Box::new(Wish::DiscardQueued { id: MessageId::from(run.as_str()) });
            let asked = Asked::DiscardElsewhere(request, run, session.clone());
            return vec![Act::Wish { session, wish, ticket: self.ticket(asked) }];
        }
        let cause = glance.run.and_then(|(_, cause)| cause);
        if cause.is_some_and(|cause| cause.as_str() == run) {
            let resumes = !glance.waiting.is_empty() && !glance.is_held;
            return self.interrupt_in(session, resumes, Some(request), run);
        }
        if glance.handed.iter().any(|send| send.id.as_str() == run) {
            let words = format!("Request {run} is being delivered to the agent; try again");
            return refuse(&request, &words);
        }
        refuse(&request, &no_run(&run))
    }

    pub(super) fn on_discarded_elsewhere(
        &mut self,
        request: String,
        run: String,
        session: SessionId,
        done: Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        match done {
            Ok(_) => vec![Act::Send(requested(&request))],
            // It left the line just now, and never comes back into it.
            Err(Denied::Refused(Refusal::NotQueued(_))) => self.look_for_run(request, run, session),
            Err(denied) => refuse(&request, &words(&denied, Some(&session))),
        }
    }

    /// Stops the run of the session that the connection is in.
    pub(super) fn interrupt(&mut self, request: Option<String>, run: String) -> Vec<Act> {
        let Some(view) = &self.view else { return vec![] };
        let resumes = !view.line.is_empty() && !view.line.is_held();
        self.interrupt_in(view.session.clone(), resumes, request, run)
    }

    /// Stops a run. What else waits goes on afterwards: only this run was cancelled.
    fn interrupt_in(
        &mut self,
        session: SessionId,
        resumes: bool,
        request: Option<String>,
        run: String,
    ) -> Vec<Act> {
        self.count += 1;
        let name = RequestId::from(format!("{}:{}", self.own_name, self.count));
        if self.interrupts.len() < INTERRUPTS_MAX {
            self.interrupts.insert(name.clone(), run);
        }
        let control = Control::Interrupt { run: None };
        let wish = Box::new(Wish::Control { request: name.clone(), control });
        let ticket = self.ticket(Asked::Interrupt(request, name));
        let mut acts = vec![Act::Wish { session: session.clone(), wish, ticket }];
        if resumes {
            let ticket = self.ticket(Asked::Nothing);
            acts.push(Act::Wish { session, wish: Box::new(Wish::ResumeQueue), ticket });
        }
        acts
    }

    pub(super) fn on_interrupted(
        &mut self,
        request: Option<&str>,
        name: &RequestId,
        denied: Option<&Denied>,
    ) -> Vec<Act> {
        if denied.is_some() {
            self.interrupts.remove(name);
        }
        let Some(request) = request else { return vec![] };
        match denied {
            None => vec![Act::Send(requested(request))],
            Some(denied) => refuse(request, &words(denied, None)),
        }
    }

    /// An interrupt of this connection was tried. Gives the run that could not be stopped.
    pub(super) fn stopped(
        &mut self,
        name: &RequestId,
        failure: Option<&domain::content::Failure>,
    ) -> Option<String> {
        let run = self.interrupts.remove(name)?;
        failure.is_some_and(|failure| failure.code.as_str() != NOT_ACTIVE).then_some(run)
    }
}

/// A send was taken.
pub(super) fn accepted(request: &str, send: &MessageId, waits: bool) -> Bytes {
    let status = if waits { "queued" } else { "accepted" };
    granted(request, &json!({ "runId": send, "status": status }))
}

fn requested(request: &str) -> Bytes {
    granted(request, &json!({ "message": "Cancellation requested" }))
}

fn no_run(run: &str) -> String {
    format!("Request {run} not found")
}
