//! The run's handle on a helper process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::lab::{Lab, Program};
use super::process::Ready;
use super::trouble::{During as _, Outcome, Trouble};
use super::websocket::SILENCE_MAX;

/// Many watchers in another process.
pub(crate) struct Watchers {
    complete: u64,
    told: Receiver<u64>,
    _program: Program,
}

impl Watchers {
    /// Native clients of a relay. Returns when all of them have said hello.
    pub(crate) fn of_relay(lab: &Lab, ready: &Ready, count: usize) -> Outcome<Self> {
        Self::start(lab, ready.address()?, count, &ready.token, "native")?.in_place()
    }

    /// Clients that stream one session: `streaming`, all of them native, or `mixed`. They are
    /// connected then, but may still be on their way to the session.
    pub(crate) fn of_dialects(
        lab: &Lab,
        ready: &Ready,
        count: usize,
        greeting: &str,
    ) -> Outcome<Self> {
        Self::start(lab, ready.address()?, count, &ready.token, greeting)?.in_place()
    }

    /// Sockets that read frames without having greeted.
    pub(crate) fn plain(lab: &Lab, address: SocketAddr, count: usize) -> Outcome<Self> {
        Self::start(lab, address, count, "", "plain")?.in_place()
    }

    fn start(
        lab: &Lab,
        address: SocketAddr,
        count: usize,
        token: &str,
        greeting: &str,
    ) -> Outcome<Self> {
        let mut program = lab.start_helper(|start| {
            start.args(["watchers", &address.to_string(), &count.to_string(), greeting]);
            start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        })?;
        // The pipe stays open in the child's handle until the program is dropped.
        if let Some(stdin) = &mut program.child.stdin {
            writeln!(stdin, "{token}")?;
        }
        let out = program
            .child
            .stdout
            .take()
            .ok_or_else(|| Trouble::new("a helper process has no stdout"))?;
        let (tell, told) = mpsc::channel();
        std::thread::Builder::new().name("watchers".to_owned()).spawn(move || {
            let mut out = out;
            while let Some(complete) = read_number(&mut out) {
                if tell.send(complete).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { complete: 0, told, _program: program })
    }

    /// Waits until every watcher is connected.
    fn in_place(mut self) -> Outcome<Self> {
        self.wait()?;
        Ok(self)
    }

    /// How many frames all of them have.
    pub(crate) fn complete(&self) -> u64 {
        self.complete
    }

    /// Waits for this long. Whether all of them have more.
    pub(crate) fn wait_briefly(&mut self, time: Duration) -> Outcome<bool> {
        match self.told.recv_timeout(time) {
            Ok(told) => {
                self.complete = self.told.try_iter().last().unwrap_or(told);
                Ok(true)
            }
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => Err(Trouble::new("the watchers stopped")),
        }
    }

    /// Waits until all of them have more.
    pub(crate) fn wait(&mut self) -> Outcome<u64> {
        let told = self.told.recv_timeout(SILENCE_MAX).map_err(|error| match error {
            RecvTimeoutError::Timeout => Trouble::new("the watchers no longer receive anything"),
            RecvTimeoutError::Disconnected => Trouble::new("the watchers stopped"),
        })?;
        self.complete = self.told.try_iter().last().unwrap_or(told);
        Ok(self.complete)
    }
}

fn read_number(out: &mut ChildStdout) -> Option<u64> {
    let mut bytes = [0; 8];
    out.read_exact(&mut bytes).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// A server in another process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _program: Program,
}

impl Server {
    /// An axum server that echoes.
    pub(crate) fn echo(lab: &Lab) -> Outcome<Self> {
        Self::start(lab, &["echo"])
    }

    /// One that sends to its first `count` connections what the next one says.
    pub(crate) fn repeater(lab: &Lab, count: usize) -> Outcome<Self> {
        Self::start(lab, &["repeater", &count.to_string()])
    }

    fn start(lab: &Lab, part: &[&str]) -> Outcome<Self> {
        let mut program = lab.start_helper(|start| {
            start.args(part);
            start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        })?;
        let out = program
            .child
            .stdout
            .take()
            .ok_or_else(|| Trouble::new("a helper process has no stdout"))?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().parse().during("a helper server did not print its address")?;
        Ok(Self { address, _program: program })
    }
}
