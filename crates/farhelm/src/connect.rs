//! Connects to the relay, for requests and for sockets.
//!
//! Not here: TLS and addresses (`proxy::dial`), which relay (`discovery`).

use client::{Dial, DialFault};
use proxy::Fault;
use proxy::dial::{Dialer, Socket, Stream};

use crate::discovery::{Finder, Found};
use crate::ready::socket_url;

/// Opens a connection for HTTP.
pub(crate) async fn stream(found: &Found) -> Result<Box<dyn Stream>, String> {
    let dialer = Dialer::new(&found.url, "", found.tls_ca.as_deref());
    let dialer = dialer.map_err(|fault| fault.to_string())?;
    open(&dialer).await
}

/// Opens a connection; what goes wrong is told without the address.
pub(crate) async fn open(dialer: &Dialer) -> Result<Box<dyn Stream>, String> {
    dialer.open().await.map_err(|fault| plainly(&fault))
}

/// Opens native sockets to wherever the relay is by then.
#[derive(Debug)]
pub(crate) struct NativeDial(SocketDial);

impl NativeDial {
    pub(crate) fn new(finder: Finder) -> Self {
        Self(SocketDial { finder, path: "/ws/native".to_owned() })
    }
}

impl Dial for NativeDial {
    type Socket = Socket;

    async fn dial(&mut self) -> Result<Socket, DialFault> {
        self.0.dial().await
    }
}

/// Opens sockets of any dialect.
#[derive(Debug)]
pub(crate) struct SocketDial {
    finder: Finder,
    path: String,
}

impl SocketDial {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder, path: "/ws".to_owned() }
    }

    /// The next socket leads there.
    pub(crate) fn aim(&mut self, path: &str) {
        path.clone_into(&mut self.path);
    }
}

impl Dial for SocketDial {
    type Socket = Socket;

    async fn dial(&mut self) -> Result<Socket, DialFault> {
        // A relay that is being restarted has no relay.json for a moment.
        let found = self.finder.find();
        let found = found.map_err(|problem| DialFault::Away(problem.words().to_owned()))?;
        let url = socket_url(&found.url, &self.path);
        let dialer = Dialer::new(&url, &found.token, found.tls_ca.as_deref());
        let dialer = dialer.map_err(|fault| DialFault::Refused(fault.to_string()))?;
        dialer.dial().await.map_err(|fault| match &fault {
            Fault::Refused { status, .. } => {
                let words = format!("the relay at {} rejected the token ({status})", found.url);
                DialFault::Refused(words)
            }
            Fault::Address(_)
            | Fault::Certificates(_)
            | Fault::TrustFile { .. }
            | Fault::NotAToken => DialFault::Refused(fault.to_string()),
            Fault::Disk { .. } | Fault::Locked(_) | Fault::Randomness(_) | Fault::Worker => {
                DialFault::Away(plainly(&fault))
            }
        })
    }
}

/// Without what the caller says anyway.
fn plainly(fault: &Fault) -> String {
    match fault {
        Fault::Disk { source, .. } => source.to_string(),
        Fault::Locked(_)
        | Fault::Address(_)
        | Fault::Refused { .. }
        | Fault::Certificates(_)
        | Fault::TrustFile { .. }
        | Fault::NotAToken
        | Fault::Randomness(_)
        | Fault::Worker => fault.to_string(),
    }
}
