//! `farhelm up` and `farhelm relay`: start, print the address, and stop on request.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use ::proxy::ProxyConfig;
use domain::Role;
use server::{clock, pairing_link};
use tokio::sync::oneshot;

use crate::arguments::{Relay, Serve, Up};
use crate::problem::Problem;
use crate::serve::{self, Served};
use crate::stop::Stop;
use crate::{output, qr};

/// The files that say "ready" wait this long for this machine and its demo session, so that
/// whoever reads them can use both. A machine that is slower than that is ready all the same.
const MACHINE_WITHIN: Duration = Duration::from_secs(5);
/// How often to look whether a machine without a session is there.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Relay and proxy.
pub(super) async fn up(up: Up) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let mut served = serve::start(&up.serve).await?;
    let config = ProxyConfig {
        relay: served.local_url.clone(),
        token: served.proxy_token.clone(),
        tls_ca: None,
        machine: up.machine.label,
        data: served.data.clone(),
        has_demo: !up.machine.no_demo,
        workspaces: up.machine.agents.workspaces(),
        allowed_roots: up.machine.agents.allowed_roots(),
        guards: up.machine.agents.guards(),
        ide: up.machine.agents.ide.config(),
        agents: up.machine.agents.agents,
    };
    let live = served.relay.watch();
    let (leave, left) = oneshot::channel::<()>();
    let mut machine = tokio::spawn(::proxy::run(config, async {
        let _ = left.await;
    }));
    let there = async {
        if up.machine.no_demo {
            machine_connected(&served).await;
        } else {
            connected(&served, live).await;
        }
    };
    let _ = tokio::time::timeout(MACHINE_WITHIN, there).await;
    let mut ended = served.post();
    if ended.is_ok() {
        greet(&served, &up.serve, !up.machine.no_demo).await;
        ended = tokio::select! {
            () = stop.asked() => Ok(()),
            ended = &mut machine => Err(Problem::new(match ended {
                Ok(Ok(())) => "the proxy stopped unexpectedly".to_owned(),
                Ok(Err(fault)) => fault.to_string(),
                Err(error) => format!("the proxy crashed: {error}"),
            })),
        };
    }
    tracing::info!("stopping");
    let farewell = async {
        let _ = leave.send(());
        if !machine.is_finished() {
            let _ = (&mut machine).await;
        }
        served.stop().await;
    };
    finish(farewell, &mut stop).await;
    ended.map(|()| ExitCode::SUCCESS)
}

/// The relay alone.
pub(super) async fn relay(relay: Relay) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let mut served = serve::start(&relay.serve).await?;
    let posted = served.post();
    if posted.is_ok() {
        greet(&served, &relay.serve, false).await;
        stop.asked().await;
    }
    tracing::info!("stopping");
    finish(served.stop(), &mut stop).await;
    posted.map(|()| ExitCode::SUCCESS)
}

/// Stops in order; whoever asks twice does not want to wait.
async fn finish(farewell: impl Future<Output = ()>, stop: &mut Stop) {
    tokio::select! {
        () = farewell => {}
        () = stop.asked() => tracing::warn!("stopping immediately"),
    }
}

/// Ends when some machine is there, with or without sessions.
async fn machine_connected(served: &Served) {
    loop {
        match served.relay.look_at_fleet().await {
            Ok(fleet) if fleet.machines().all().all(|(_, machine)| machine.via.is_none()) => {}
            Ok(_) | Err(_) => return,
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Ends when some session's machine is there.
async fn connected(served: &Served, mut live: relay::hub::Watch) {
    loop {
        let listings = served.relay.listings();
        if listings.iter().any(|listing| listing.card.status.via().is_some()) {
            return;
        }
        if let Err(relay::hub::Missing::Closed) = live.recv().await {
            return;
        }
    }
}

/// Tells a person what there is. Nobody there to read it is no reason to stop.
async fn greet(served: &Served, serve: &Serve, has_demo: bool) {
    let (farhelm, folder) = (called(), with_folder(serve));
    let mut words =
        format!("Farhelm {} is running at {}\n", env!("CARGO_PKG_VERSION"), served.public_url);
    if let Some(warning) = &served.warning {
        let _ = writeln!(words, "\n{warning}");
    }
    match served.auth.offer_code(Role::Operator, clock::now()).await {
        Ok(offered) => {
            let link = pairing_link(&served.public_url, &offered.code);
            let is_reachable = !serve.listen.ip().is_loopback() || serve.public_url.is_some();
            let place = if is_reachable { "another device" } else { "this computer" };
            let _ = writeln!(
                words,
                "\nOpen this link on {place}. It works once, within 5 minutes (`{farhelm} \
                 pair{folder}` creates another):\n  {link}"
            );
            if !is_reachable {
                words.push_str(
                    "Other devices cannot connect yet. docs/reach.md explains how to let them \
                     in.\n",
                );
            }
            if output::is_terminal()
                && let Some(code) = qr::draw(&link)
            {
                let _ = write!(words, "\n{code}");
            }
        }
        Err(fault) => tracing::warn!(%fault, "could not create a pairing code"),
    }
    if has_demo {
        let _ = write!(
            words,
            "\nTry, in another terminal:\n  {farhelm} sessions{folder}\n  {farhelm} tail \
             demo{folder}\n  {farhelm} send demo{folder} \"say: hello there\"\n"
        );
    }
    words.push_str("\nPress Ctrl-C to stop.\n");
    let _ = output::raw(&words);
}

/// How this program was called, which need not be on the path.
fn called() -> String {
    let called = std::env::args().next().filter(|called| !called.is_empty());
    called.unwrap_or_else(|| "farhelm".to_owned())
}

/// What a command needs to find this relay, when its folder is not the usual one.
fn with_folder(serve: &Serve) -> String {
    serve.data.data.as_ref().map_or(String::new(), |data| format!(" --data {}", data.display()))
}
