//! When to stop: on Ctrl-C, or when a service manager asks for it.

use crate::problem::{Context as _, Problem};

/// Waits for either, from the moment that it is made.
#[derive(Debug)]
pub(crate) struct Stop {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Stop {
    /// From now on signals are heard here, and end nothing by themselves.
    #[cfg(unix)]
    pub(crate) fn listen() -> Result<Self, Problem> {
        use tokio::signal::unix::{SignalKind, signal};
        let hear = |kind| signal(kind).context("could not listen for signals");
        Ok(Self { signals: [hear(SignalKind::interrupt())?, hear(SignalKind::terminate())?] })
    }

    /// From now on Ctrl-C is heard here.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> Result<Self, Problem> {
        Ok(Self {})
    }

    /// Ends at the next one.
    pub(crate) async fn asked(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.context("could not listen for signals").is_err() {
            std::future::pending::<()>().await;
        }
    }
}
