//! History: `get_messages`, and whatever else is read from the whole ledger.
//!
//! **Invariant**: the answer ends at the last event that this client was shown before it. Later
//! live events are not in it, so a page that replaces everything with the answer loses nothing.
//!
//! Not here: the shapes of messages (`messages`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::content::{
    Attachment, Author, Failure, Message, Part, ToolCall, ToolDetail, ToolUpdate, Usage,
};
use domain::session::{Event, Recorded, runs, transcript};
use domain::{AttachmentId, RequestId, Sequence, SessionId, ToolCallId};
use serde_json::{Value, json};

use super::events::goes_on;
use super::messages::{self, encode};
use super::view::note_stop;
use super::{Asked, Connection, sessions};
use crate::port::{Denied, PageOf};
use crate::visitor::Act;

/// Events that are read at once.
const PAGE_EVENTS: usize = 500;
/// Bytes of messages in one answer. Of more, the newest.
const HISTORY_BYTES_MAX: usize = 16 << 20;
/// Pictures whose bytes one answer holds, and those bytes; older ones come without.
const PICTURES_MAX: usize = 16;
const PICTURES_BYTES_MAX: usize = 8 << 20;
/// Frames, and their bytes, that wait until messages are read. Of more, none waits.
const LATE_MAX: usize = 4_096;
const LATE_BYTES_MAX: usize = 8 << 20;
/// Tool calls whose names are remembered while reading; more are nameless.
const CALLS_MAX: usize = 100_000;

/// What is wanted of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Messages,
    Stats,
    LastText,
}

/// Readings of the ledger: one at a time, and who waits for the next.
#[derive(Debug, Default)]
pub(super) struct Readings {
    now: Option<Box<Reading>>,
    next: Vec<(u64, What)>,
    /// Whether the messages of this session were read.
    has_told: bool,
    /// What happens while they are read, and its bytes.
    late: Option<(Vec<Bytes>, usize)>,
}

#[derive(Debug)]
struct Reading {
    session: SessionId,
    upto: Sequence,
    told: Sequence,
    /// The message that streamed when it began, from its beginning.
    again: Vec<Bytes>,
    callers: Vec<(u64, What)>,
    past: Past,
    /// Pictures that are still to be read, newest first.
    wanted: VecDeque<Attachment>,
    pictures: BTreeMap<AttachmentId, String>,
    picture_bytes: usize,
}

/// The past, as far as it was read.
#[derive(Debug, Default)]
struct Past {
    model: String,
    items: VecDeque<(usize, Item)>,
    bytes: usize,
    calls: BTreeMap<ToolCallId, Call>,
    /// Calls that stand within a message.
    placed: BTreeSet<ToolCallId>,
    last_text: Option<String>,
    users: u64,
    assistants: u64,
    results: u64,
    usage: Usage,
    /// Items that came and went.
    dropped: usize,
    /// The agent's last message in the run, counted from the first item ever.
    last_said: Option<usize>,
    /// Who wants the run to stop.
    stops: BTreeSet<RequestId>,
    /// A message that came after somebody wanted that: the run may end with it.
    maybe_last: Option<Value>,
}

#[derive(Debug)]
struct Call {
    name: String,
    arguments: Value,
    printed: Option<String>,
}

#[derive(Debug)]
enum Item {
    Person(Message),
    /// A call that stands alone, unless a later message holds it.
    Call(ToolCallId, Bytes),
    Other(Bytes),
}

impl Connection {
    pub(super) fn read_history(&mut self, flight: u64, what: What) -> Vec<Act> {
        self.readings.next.push((flight, what));
        self.read_next()
    }

    fn read_next(&mut self) -> Vec<Act> {
        if self.readings.now.is_some() || self.readings.next.is_empty() {
            return vec![];
        }
        let model = self.view.model().to_owned();
        let reading = Reading {
            session: self.view.session.clone(),
            upto: self.view.shown,
            told: Sequence(0),
            again: if self.readings.has_told { vec![] } else { self.streaming.again() },
            callers: std::mem::take(&mut self.readings.next),
            past: Past { model, ..Past::default() },
            wanted: VecDeque::new(),
            pictures: BTreeMap::new(),
            picture_bytes: 0,
        };
        if reading.wants_messages() {
            self.readings.late = Some((vec![], 0));
        }
        let act = self.read_page(&reading);
        self.readings.now = Some(Box::new(reading));
        vec![act]
    }

    /// Keeps the frames after these acts until the messages that are being read are answered.
    /// Pages put the answer in the place of everything that they were told before it.
    pub(super) fn hold_back(&mut self, acts: &mut Vec<Act>, told: usize) {
        let Some((late, bytes)) = &mut self.readings.late else { return };
        for act in acts.split_off(told) {
            if let Act::Send(frame) = act {
                *bytes += frame.len();
                late.push(frame);
            } else {
                acts.push(act);
            }
        }
        if late.len() > LATE_MAX || *bytes > LATE_BYTES_MAX {
            acts.extend(self.release_late());
        }
    }

    /// What was kept back.
    pub(super) fn release_late(&mut self) -> impl Iterator<Item = Act> + use<> {
        let late = self.readings.late.take().unwrap_or_default().0;
        late.into_iter().map(Act::Send)
    }

    fn read_page(&mut self, reading: &Reading) -> Act {
        let (session, after, upto) = (reading.session.clone(), reading.told, Some(reading.upto));
        let ticket = self.ticket(Asked::Page);
        Act::Read { session, after, upto, limit: PAGE_EVENTS, ticket }
    }

    pub(super) fn on_page(&mut self, page: Result<PageOf, Denied>) -> Vec<Act> {
        let Some(mut reading) = self.readings.now.take() else { return vec![] };
        let page = match page {
            Ok(page) => page,
            Err(denied) => {
                let words = super::responses::words(&denied);
                let callers = reading.callers.iter();
                let mut acts: Vec<_> =
                    callers.filter_map(|(flight, _)| self.flights.fail(*flight, &words)).collect();
                acts.extend(self.release_late());
                acts.extend(self.read_next());
                return acts;
            }
        };
        for recorded in &page.events {
            reading.past.take(recorded);
            reading.told = recorded.sequence;
        }
        if !page.events.is_empty() && page.has_more && reading.told < reading.upto {
            let act = self.read_page(&reading);
            self.readings.now = Some(reading);
            return vec![act];
        }
        reading.past.settle();
        if reading.wants_messages() {
            reading.wanted = reading.past.pictures();
        }
        self.read_pictures(reading)
    }

    fn read_pictures(&mut self, mut reading: Box<Reading>) -> Vec<Act> {
        let is_full = reading.picture_bytes >= PICTURES_BYTES_MAX;
        if let Some(attachment) = reading.wanted.pop_front().filter(|_| !is_full) {
            let ticket = self.ticket(Asked::Picture(attachment.id.clone()));
            self.readings.now = Some(reading);
            return vec![Act::Load { attachment, ticket }];
        }
        self.read_to_the_end(&mut reading)
    }

    pub(super) fn on_picture(
        &mut self,
        id: AttachmentId,
        loaded: Result<Bytes, Failure>,
    ) -> Vec<Act> {
        let Some(mut reading) = self.readings.now.take() else { return vec![] };
        if let Ok(bytes) = loaded
            && reading.picture_bytes + bytes.len() <= PICTURES_BYTES_MAX
        {
            reading.picture_bytes += bytes.len();
            reading.pictures.insert(id, STANDARD.encode(&bytes));
        }
        self.read_pictures(reading)
    }

    fn read_to_the_end(&mut self, reading: &mut Reading) -> Vec<Act> {
        let is_here = self.view.session == reading.session;
        let mut acts = vec![];
        for (flight, what) in &reading.callers {
            let answer = match what {
                What::Messages => {
                    let list = reading.past.list(&reading.pictures);
                    self.flights.succeed_raw(*flight, &[b"{\"messages\":[", &list, b"]}"])
                }
                What::LastText => {
                    let data = json!({ "text": reading.past.last_text });
                    self.flights.succeed(*flight, Some(&data))
                }
                What::Stats => {
                    let mut stats = reading.past.stats(&reading.session);
                    if is_here {
                        stats["sessionFile"] = json!(self.view.path());
                        if let Some(usage) = self.usage() {
                            stats["contextUsage"] = usage;
                        }
                    }
                    self.flights.succeed(*flight, Some(&stats))
                }
            };
            acts.extend(answer);
        }
        if is_here && reading.wants_messages() {
            // What was told of it at the join is no longer on the page.
            self.readings.has_told = true;
            acts.extend(std::mem::take(&mut reading.again).into_iter().map(Act::Send));
            acts.extend(self.release_late());
        }
        acts.extend(self.read_next());
        acts
    }
}

impl Readings {
    /// The session is left; a reading of it goes on for who asked.
    pub(super) fn leave(&mut self) {
        self.has_told = false;
        if let Some(reading) = &mut self.now {
            reading.again.clear();
        }
    }
}

impl Reading {
    fn wants_messages(&self) -> bool {
        self.callers.iter().any(|(_, what)| *what == What::Messages)
    }
}

impl Past {
    fn take(&mut self, recorded: &Recorded) {
        if !matches!(recorded.event, Event::Run(runs::Event::Ended { .. }))
            && goes_on(&recorded.event)
        {
            self.settle();
        }
        match &recorded.event {
            Event::Transcript(transcript::Event::Message(message)) => self.message(message),
            Event::Transcript(transcript::Event::ToolCall(call)) => self.call(recorded, call),
            Event::Transcript(transcript::Event::ToolUpdate(update)) => {
                self.update(recorded, update);
            }
            Event::Run(runs::Event::Ended { outcome, usage, .. }) => {
                let stopped = self.maybe_last.take().map(|mut last| {
                    messages::end_with(&mut last, outcome);
                    last
                });
                let is_new = stopped.is_none();
                let end =
                    stopped.or_else(|| messages::ending(&self.model, outcome, &[], recorded.at));
                if let Some(end) = end {
                    self.assistants += u64::from(is_new);
                    self.say(Item::Other(encode(&end)));
                }
                if let Some(usage) = usage {
                    self.add(usage);
                    self.account(usage);
                }
                (self.last_said, self.stops) = (None, BTreeSet::new());
            }
            Event::Run(runs::Event::Started { .. }) => {
                (self.last_said, self.stops) = (None, BTreeSet::new());
            }
            Event::Control(event) => note_stop(&mut self.stops, event),
            Event::Config(config) => config.model.as_str().clone_into(&mut self.model),
            Event::Transcript(
                transcript::Event::Plan(_)
                | transcript::Event::Notice(_)
                | transcript::Event::Context(_)
                | transcript::Event::Echoed(_),
            )
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Status(_) => {}
        }
    }

    /// Something of the agent's.
    fn say(&mut self, item: Item) {
        self.push(item);
        self.last_said = Some(self.dropped + self.items.len().saturating_sub(1));
    }

    /// The message that the run might have ended with was not its last.
    fn settle(&mut self) {
        if let Some(message) = self.maybe_last.take() {
            self.say(Item::Other(encode(&message)));
        }
    }

    /// A run's last message says what the run took.
    fn account(&mut self, usage: &Usage) {
        let place = self.last_said.and_then(|said| said.checked_sub(self.dropped));
        let Some((size, item)) = place.and_then(|place| self.items.get_mut(place)) else { return };
        match item {
            Item::Call(_, body) | Item::Other(body) => {
                *body = messages::with_usage(body, usage);
                self.bytes = self.bytes + body.len() - *size;
                *size = body.len();
            }
            Item::Person(_) => {}
        }
    }

    fn message(&mut self, message: &Message) {
        match message.author {
            Author::User => {
                self.users += 1;
                self.push(Item::Person(message.clone()));
            }
            Author::Assistant => {
                self.assistants += 1;
                let parts = message.parts.open().into_iter().flatten();
                let mut texts = vec![];
                for part in parts {
                    match part {
                        Part::Text(text) => texts.push(text.as_str()),
                        Part::ToolCall(id) => {
                            self.placed.insert(id.clone());
                        }
                        Part::Thinking(_) | Part::Image(_) | Part::File(_) => {}
                    }
                }
                if !texts.is_empty() {
                    self.last_text = Some(texts.join("\n"));
                }
                let call = |id: &ToolCallId| match self.calls.get(id) {
                    Some(call) if call.arguments.is_null() => {
                        messages::tool_call(id, &call.name, &json!({}))
                    }
                    Some(call) => messages::tool_call(id, &call.name, &call.arguments),
                    None => messages::tool_call(id, "tool", &json!({})),
                };
                let told = messages::assistant(&self.model, message, call);
                if !self.stops.is_empty() && !messages::has_call(message) {
                    self.maybe_last = Some(told);
                } else {
                    self.say(Item::Other(encode(&told)));
                }
                self.forget_arguments(message);
            }
            Author::System => {}
        }
    }

    /// They may be large, and each call stands in one message.
    fn forget_arguments(&mut self, message: &Message) {
        for part in message.parts.open().into_iter().flatten() {
            if let Part::ToolCall(id) = part
                && let Some(call) = self.calls.get_mut(id)
            {
                call.arguments = Value::Null;
            }
        }
    }

    fn call(&mut self, recorded: &Recorded, call: &ToolCall) {
        let arguments = messages::arguments(&call.detail);
        let told = messages::tool_call(&call.id, &call.tool, &arguments);
        let body = encode(&messages::calls(&self.model, told, recorded.at));
        if self.placed.contains(&call.id) {
            self.push(Item::Call(call.id.clone(), body));
        } else {
            self.say(Item::Call(call.id.clone(), body));
        }
        if self.calls.len() < CALLS_MAX {
            let call_known = Call { name: call.tool.clone(), arguments, printed: None };
            self.calls.insert(call.id.clone(), call_known);
        }
        if messages::is_over(call.status).is_some() {
            let (id, status, detail) = (call.id.clone(), call.status, call.detail.clone());
            self.update(recorded, &ToolUpdate { id, status, detail });
        }
    }

    fn update(&mut self, recorded: &Recorded, update: &ToolUpdate) {
        let unread = ToolDetail::default();
        let detail = update.detail.open().unwrap_or(&unread);
        let Some(is_error) = messages::is_over(update.status) else {
            if let (Some(call), Some(output)) = (self.calls.get_mut(&update.id), &detail.output) {
                call.printed = Some(output.clone());
            }
            return;
        };
        let known = self.calls.get_mut(&update.id);
        let (name, printed) = match known {
            Some(call) => {
                call.arguments = Value::Null;
                (call.name.as_str(), call.printed.take())
            }
            None => ("tool", None),
        };
        let result = messages::result(update.status, detail, printed.as_deref());
        let body = messages::tool_result(&update.id, name, &result, is_error, recorded.at);
        self.results += 1;
        self.push(Item::Other(encode(&body)));
    }

    fn add(&mut self, more: &Usage) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = Some(sum.unwrap_or(0).saturating_add(more.unwrap_or(0)));
        };
        add(&mut self.usage.input_tokens, more.input_tokens);
        add(&mut self.usage.output_tokens, more.output_tokens);
        add(&mut self.usage.cached_tokens, more.cached_tokens);
        add(&mut self.usage.cost_micro_usd, more.cost_micro_usd);
    }

    fn push(&mut self, item: Item) {
        let size = match &item {
            Item::Person(message) => {
                message.parts.open().into_iter().flatten().map(part_size).sum()
            }
            Item::Call(_, body) | Item::Other(body) => body.len(),
        };
        self.bytes += size;
        self.items.push_back((size, item));
        while self.bytes > HISTORY_BYTES_MAX {
            let Some((size, _)) = self.items.pop_front() else { break };
            self.bytes -= size;
            self.dropped += 1;
        }
    }

    /// The newest pictures of people's messages.
    fn pictures(&self) -> VecDeque<Attachment> {
        let people = self.items.iter().rev().filter_map(|(_, item)| match item {
            Item::Person(message) => message.parts.open(),
            Item::Call(..) | Item::Other(_) => None,
        });
        let pictures = people.flatten().filter_map(|part| match part {
            Part::Image(file) => Some(file.clone()),
            Part::Text(_) | Part::Thinking(_) | Part::File(_) | Part::ToolCall(_) => None,
        });
        pictures.take(PICTURES_MAX).collect()
    }

    fn list(&self, pictures: &BTreeMap<AttachmentId, String>) -> Vec<u8> {
        let mut list = vec![];
        for (_, item) in &self.items {
            let body = match item {
                Item::Person(message) => encode(&messages::user(message, pictures)),
                Item::Call(id, _) if self.placed.contains(id) => continue,
                Item::Call(_, body) | Item::Other(body) => body.clone(),
            };
            if !list.is_empty() {
                list.push(b',');
            }
            list.extend_from_slice(&body);
        }
        list
    }

    fn stats(&self, session: &SessionId) -> Value {
        let alone = self
            .items
            .iter()
            .filter(|(_, item)| matches!(item, Item::Call(id, _) if !self.placed.contains(id)));
        let assistants = self.assistants + alone.count() as u64;
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let cached = count(self.usage.cached_tokens);
        let (input, output) = (count(self.usage.input_tokens), count(self.usage.output_tokens));
        let cost = messages::cost(&self.usage);
        json!({
            "sessionFile": sessions::path_of(session, None), "sessionId": session,
            "userMessages": self.users, "assistantMessages": assistants,
            "toolCalls": self.calls.len(), "toolResults": self.results,
            "totalMessages": self.users + assistants + self.results,
            "tokens": {
                "input": input.saturating_sub(cached), "output": output, "cacheRead": cached,
                "cacheWrite": 0, "total": input + output,
            },
            "cost": cost,
        })
    }
}

fn part_size(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Thinking(text) => text.len(),
        Part::Image(_) | Part::File(_) | Part::ToolCall(_) => 0,
    }
}
