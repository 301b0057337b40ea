//! A relay in this process: ledger, owners, door, and the files by which it is found.
//!
//! **Invariant**: the folder is locked before anything else happens to it. The files that name the
//! relay appear when it is ready and are removed when it stops.
//!
//! Not here: flags (`arguments`), what is printed (`commands::up`), the proxy (`proxy`).

mod settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Role;
use relay::gate::Throttles;
use relay::metrics::Metrics;
use relay::ports::Ports;
use relay::{Books, Relay, Tasks};
use server::{Auth, Behind, Bound, Issued, RandomIds, Running, Shelf, SystemClock, clock};
use store::{Ledger as _, SqliteLedger};

use crate::arguments::Serve;
use crate::folders;
use crate::notify::Plan;
use crate::problem::Problem;
use crate::ready::{Posted, RELAY_FILE_NAME, ReadyFile, RelayFile, socket_url};

/// A relay that serves.
pub(crate) struct Served {
    /// Its mind.
    pub(crate) relay: Relay,
    /// Its credentials.
    pub(crate) auth: Auth,
    /// For programs on this computer: the HTTP base.
    pub(crate) local_url: String,
    /// For people.
    pub(crate) public_url: String,
    /// For the proxy on this computer.
    pub(crate) proxy_token: String,
    /// Where it keeps everything.
    pub(crate) data: PathBuf,
    /// What a person must know when others can reach it.
    pub(crate) warning: Option<String>,
    ready: ReadyFile,
    ready_path: Option<PathBuf>,
    doors: Vec<Running>,
    posted: Vec<Posted>,
}

/// Starts a relay. It serves when this returns; nobody is told yet.
pub(crate) async fn start(serve: &Serve) -> Result<Served, Problem> {
    let config = settings::door(serve)?;
    let plan = Plan::new(&serve.notify)?;
    let data = folders::made_data(serve.data.data.as_deref())?;
    let ledger =
        SqliteLedger::open(&data.join(folders::DATABASE_FILE_NAME)).map_err(Problem::new)?;
    let bound = server::bind(config.clone()).await.map_err(Problem::new)?;
    let inner = inner_door(&config).await?;
    let memory = ledger.vault().map_err(Problem::new)?;
    let auth = Auth::open(ledger.vault().map_err(Problem::new)?).map_err(Problem::new)?;
    let owner = local(&auth, &data, folders::OWNER_TOKEN_FILE_NAME, Role::Owner, "owner").await?;
    let machine =
        local(&auth, &data, folders::PROXY_TOKEN_FILE_NAME, Role::Proxy, "this machine").await?;
    let shelf =
        Shelf::open(&data.join(folders::UPLOADS_FOLDER_NAME), &auth).await.map_err(Problem::new)?;
    let relay = mind(serve, ledger, shelf.clone()).await?;
    let throttles = Throttles::new(settings::rates(serve));
    let limits = settings::limits(serve);
    let behind = Arc::new(Behind::new(relay.clone(), throttles, limits, auth.clone()));

    let local_url = inner.as_ref().map_or_else(|| bound.local_url(), Bound::local_url);
    let (public_url, warning) = (bound.public_url(), bound.warning());
    plan.start(&relay, &public_url, memory)?;
    let url = bound.local_url();
    let ready = ReadyFile {
        ws: socket_url(&url, "/ws"),
        url,
        token: owner.token,
        proxy_token: machine.token.clone(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let doors = std::iter::once(bound).chain(inner);
    let doors = doors.map(|door| door.serve(auth.clone(), shelf.clone(), behind.clone())).collect();
    Ok(Served {
        relay,
        auth,
        local_url,
        public_url,
        proxy_token: machine.token,
        data,
        warning,
        ready,
        ready_path: serve.ready_file.clone(),
        doors,
        posted: vec![],
    })
}

impl Served {
    /// Lets programs find it.
    pub(crate) fn post(&mut self) -> Result<(), Problem> {
        let relay_file = RelayFile {
            url: self.local_url.clone(),
            pid: self.ready.pid,
            version: self.ready.version.clone(),
        };
        self.posted.push(Posted::write(&self.data.join(RELAY_FILE_NAME), &relay_file)?);
        if let Some(path) = &self.ready_path {
            self.posted.push(Posted::write(path, &self.ready)?);
        }
        Ok(())
    }

    /// Stops: nobody finds it, every socket is told, everything is committed.
    pub(crate) async fn stop(self) {
        for file in self.posted {
            file.remove();
        }
        for door in self.doors {
            if !door.stop().await {
                tracing::warn!("some connections did not close in time and were cut off");
            }
        }
        self.relay.books().stop().await;
    }
}

/// With TLS, programs on this computer have a plain door of their own on loopback: the certificate
/// is for the name that people use.
async fn inner_door(config: &server::Config) -> Result<Option<Bound>, Problem> {
    if config.tls.is_none() {
        return Ok(None);
    }
    let inner = server::Config {
        listen: ([127, 0, 0, 1], 0).into(),
        tls: None,
        public_url: None,
        trusted_proxies: vec![],
        ..config.clone()
    };
    server::bind(inner).await.map(Some).map_err(Problem::new)
}

async fn local(
    auth: &Auth,
    data: &Path,
    file_name: &str,
    role: Role,
    name: &str,
) -> Result<Issued, Problem> {
    let path = data.join(file_name);
    auth.local_token(&path, role, name, clock::now()).await.map_err(Problem::new)
}

async fn mind(serve: &Serve, ledger: SqliteLedger, shelf: Shelf) -> Result<Relay, Problem> {
    let clock = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::default());
    let owner = format!("farhelm-{}", std::process::id());
    let books = Books::on_threads(
        Box::new(ledger),
        &owner,
        settings::retention(serve),
        clock.clone(),
        metrics.clone(),
    );
    let ids = Arc::new(RandomIds::new().map_err(Problem::new)?);
    let ports = Ports { clock, ids, uploads: Arc::new(shelf), tasks: Tasks::default() };
    let books = books.map_err(Problem::new)?;
    Relay::start(books, ports, settings::policies(serve), metrics).await.map_err(Problem::new)
}
