//! From hello to ack.

use domain::session::status::Reach;
use domain::{Role, Sequence, Tail, Timestamp};

use super::feeds::Feed;
use super::{
    ClientConnection, Feature, Listing, Output, Purpose, SESSIONS_NAMED_MAX, Stage, Throttle,
    Welcome, close, refuse,
};
use crate::native::events::Form;
use crate::native::features::Features;
use crate::native::frames::{
    ClientFrame, ConnectionAck, ConnectionHello, OpenPrompt, PeerRole, RelayFrame, SessionSnapshot,
};
use crate::native::shapes::{AgentConfig, Envelope, Malformed, Session, VERSION};

impl ClientConnection {
    pub(super) fn on_first(
        &mut self,
        envelope: &Envelope,
        text: &str,
        throttle: &mut dyn Throttle,
        now: Timestamp,
    ) -> Vec<Output> {
        if envelope.kind != "connection_hello" {
            let words = format!("{} was sent before connection_hello", envelope.kind);
            return self.on_malformed(Malformed::rule(text, &words), throttle, now);
        }
        if envelope.protocol_version != Some(VERSION) {
            let code = "protocol_version_unsupported";
            let told = refuse(envelope, code, "Expected protocol_version 1", now);
            let reason = "protocol_version must be 1";
            return vec![told, Output::Close { code: close::PROTOCOL, reason }];
        }
        match ClientFrame::read(envelope, text) {
            Ok(ClientFrame::ConnectionHello(hello)) => self.on_hello(envelope, hello, now),
            // A hello that lacks something may be said again.
            Err(Malformed::Invalid { message, .. }) => {
                vec![refuse(envelope, "invalid_message", &message, now)]
            }
            Ok(_) | Err(Malformed::NotJson) => vec![],
        }
    }

    fn on_hello(
        &mut self,
        envelope: &Envelope,
        hello: ConnectionHello,
        now: Timestamp,
    ) -> Vec<Output> {
        if hello.peer_role == PeerRole::Proxy {
            let words = "connection_hello: this endpoint is for clients; proxies connect to \
                /ws/proxy";
            let told = refuse(envelope, "invalid_message", words, now);
            return vec![told, Output::Close { code: close::FORBIDDEN, reason: "clients only" }];
        }
        if self.principal.as_ref().is_some_and(|principal| principal.role == Role::Proxy) {
            let words = "A proxy token cannot open a client connection";
            let told = refuse(envelope, "unauthorized", words, now);
            return vec![told, Output::Close { code: close::FORBIDDEN, reason: "proxy token" }];
        }
        let resume = hello.resume.unwrap_or_default().sessions;
        if resume.len() > SESSIONS_NAMED_MAX {
            let words =
                format!("connection_hello: at most {SESSIONS_NAMED_MAX} sessions can resume");
            return vec![refuse(envelope, "invalid_message", &words, now)];
        }
        let names = hello.features.unwrap_or_default();
        self.named_features = !names.is_empty();
        self.features = Features::named(&names);
        let Some(principal) = self.principal.as_mut() else {
            self.stage = Stage::Joined;
            let ack = self.ack(ConnectionAck::default(), now);
            return vec![ack, self.snapshot(&[], now)];
        };
        principal.client = hello.client_id;
        self.resume = resume;
        self.stage = Stage::Joining;
        vec![Output::Join]
    }

    /// What there is to see, after [`Output::Join`].
    pub fn on_welcome(&mut self, welcome: &Welcome, now: Timestamp) -> Vec<Output> {
        match self.stage {
            Stage::Opened => vec![],
            Stage::Joining => self.on_arrival(welcome, now),
            Stage::Joined => self.on_return(welcome, now),
        }
    }

    fn on_arrival(&mut self, welcome: &Welcome, now: Timestamp) -> Vec<Output> {
        self.stage = Stage::Joined;
        let mut outputs = vec![self.ack(self.greeting(welcome), now)];
        outputs.push(self.snapshot(&welcome.sessions, now));
        outputs.extend(self.on_launches(&welcome.launches, now));
        let resume = std::mem::take(&mut self.resume);
        for listing in &welcome.sessions {
            let resumes = resume.iter().any(|at| at.session_id == listing.id);
            let feed = self.feeds.entry(listing.id.clone()).or_default();
            // What went by since hello is known by its number alone.
            feed.start(listing.head);
            // A session that is resumed is read from the client's own cursor.
            if feed.tail.is_behind() && !resumes {
                outputs.push(self.begin(&listing.id, Purpose::CatchUp, listing.head));
            }
            outputs.extend(self.drafts_of(listing));
        }
        for at in resume {
            outputs.extend(self.ask(&at.session_id, Purpose::Delta(None), at.last_sequence, now));
        }
        for (envelope, frame) in std::mem::take(&mut self.early) {
            outputs.extend(self.dispatch(&envelope, frame, now));
        }
        outputs
    }

    /// Live events were missed; this is how things stand now.
    fn on_return(&mut self, welcome: &Welcome, now: Timestamp) -> Vec<Output> {
        let mut outputs = self.on_launches(&welcome.launches, now);
        for listing in &welcome.sessions {
            let feed = self
                .feeds
                .entry(listing.id.clone())
                .or_insert_with(|| Feed { tail: Tail::new(Sequence(0)), ..Feed::default() });
            feed.wants_drafts = true;
            feed.hear(listing.head);
            let after = feed.tail.cursor();
            if feed.is_reading() {
                continue;
            }
            // A lower head may be that of a session that was erased and made again: reading tells.
            if feed.tail.is_behind() || listing.head < after {
                outputs.push(self.begin(&listing.id, Purpose::CatchUp, after));
            } else {
                outputs.extend(self.drafts_of(listing));
            }
        }
        outputs
    }

    fn ack(&self, ack: ConnectionAck, now: Timestamp) -> Output {
        let ack = ConnectionAck {
            heartbeat_interval_ms: self.limits.heartbeat_interval_ms,
            heartbeat_timeout_ms: self.limits.heartbeat_timeout_ms,
            features: self.named_features.then(|| self.features.names()),
            ..ack
        };
        let (connection_id, server_ts) = (Some(self.connection.clone()), Some(now.into()));
        let envelope = Envelope { connection_id, server_ts, ..Envelope::new("") };
        Output::Send(RelayFrame::ConnectionAck(Box::new(ack)).encode(envelope))
    }

    fn greeting(&self, welcome: &Welcome) -> ConnectionAck {
        let shown = || welcome.sessions.iter().filter(|listing| !listing.card.status.is_closed());
        let form = self.features.form();
        let configs = shown().filter_map(|listing| {
            let config = listing.card.config.as_ref()?;
            let config = match form {
                Form::Plain => AgentConfig::plain(config),
                Form::Full => AgentConfig::full(config),
            };
            Some((listing.id.clone(), config))
        });
        let detailed = self.has(Feature::PromptDetail);
        let prompts = shown().flat_map(|listing| {
            listing.card.prompts.iter().map(move |prompt| {
                let of = if detailed { OpenPrompt::full } else { OpenPrompt::plain };
                of(&listing.id, prompt)
            })
        });
        let pending = welcome.launches.iter().filter(|launch| launch.outcome.is_none());
        ConnectionAck {
            session_configs: Some(configs.collect()),
            open_prompts: Some(prompts.collect()),
            pending_launches: Some(pending.map(Into::into).collect()),
            ..ConnectionAck::default()
        }
    }

    fn snapshot(&self, listings: &[Listing], now: Timestamp) -> Output {
        let shown = listings.iter().filter(|listing| !listing.card.status.is_closed());
        let described = shown.map(|listing| {
            let session = Session::of_card(&listing.id, &listing.card);
            match self.features.form() {
                Form::Plain => session,
                Form::Full => session.with_extensions(&listing.card, listing.head),
            }
        });
        let body = SessionSnapshot { sessions: described.collect() };
        let envelope = Envelope { server_ts: Some(now.into()), ..Envelope::new("") };
        Output::Send(RelayFrame::SessionSnapshot(body).encode(envelope))
    }

    fn drafts_of(&self, listing: &Listing) -> Option<Output> {
        let up = matches!(listing.card.status.reach, Reach::Up(_));
        let hears = up && self.hears_passing(&listing.id);
        hears.then(|| Output::Drafts(listing.id.clone()))
    }
}
