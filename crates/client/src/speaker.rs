//! What every dialect's client can do and report, behind one interface.
//!
//! The dialects' own clients can do more. This is what `farhelm tail --dialect`, the benchmarks
//! and the test of all dialects on one session need from each of them.
//!
//! Not here: any dialect's frames, sockets.

/// Something that a client heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A person's words, also this client's own, once the relay tells them.
    Person(String),
    /// The next words of the agent's message in the making.
    Piece(String),
    /// A message of the agent, whole.
    Agent(String),
    /// The agent calls a tool of this name.
    Tool(String),
    /// The agent waits for a decision.
    Asked {
        /// What a decision names.
        id: String,
        /// What for, in words.
        what: String,
    },
    /// It no longer does, whoever decided.
    Settled {
        /// Which.
        id: String,
    },
    /// The agent's run is over; `Some` says why it failed or was stopped.
    Ended(Option<String>),
    /// Something went wrong, in the relay's words.
    Trouble(String),
}

/// One client of a dialect across its connections, as text frames.
pub trait Speaker: Send {
    /// The path to dial, this time, without the token.
    fn path(&self) -> String;
    /// A new connection is open: what to say on it first.
    fn on_open(&mut self) -> Vec<String>;
    /// Words for the agent.
    fn send(&mut self, text: &str) -> Vec<String>;
    /// Decides an open question: the plain "allow this once", or the plain "no".
    fn decide(&mut self, id: &str, allow: bool) -> Vec<String>;
    /// Stops the run.
    fn interrupt(&mut self) -> Vec<String>;
    /// A frame arrives. Gives what was heard, and what to say in turn.
    fn on_text(&mut self, text: &str) -> (Vec<Seen>, Vec<String>);
}
