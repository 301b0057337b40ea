//! The commands that keep running: relay, proxy, or both.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::agents::Hosting;
use super::{DataFolder, Notify};

/// The relay, and a proxy for this machine, in one process
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  farhelm up\n  farhelm up --listen 127.0.0.1:0 --data /tmp/try \
                        --ready-file /tmp/try/ready.json"
)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) serve: Serve,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// The relay alone; proxies connect from other machines
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  farhelm relay --listen 192.168.1.10:4780 --tls-cert chain.pem \
                        --tls-key key.pem"
)]
pub(crate) struct Relay {
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// A proxy: runs the agents of this machine for a relay elsewhere
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  farhelm token create --role proxy --name workshop   # where the \
                        relay is\n  farhelm proxy --relay https://relay.example.org --token fh_..."
)]
pub(crate) struct Proxy {
    /// The relay's address
    #[arg(long, value_name = "URL", env = "FARHELM_URL")]
    pub(crate) relay: Option<String>,
    /// A token of role proxy
    #[arg(long, value_name = "TOKEN", env = "FARHELM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Trust these certificates too (PEM): the relay's own, or of whoever signed it
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// What a proxy is told about its machine.
#[derive(Debug, Args)]
pub(crate) struct Machine {
    /// What people call this machine [default: the computer's name]
    #[arg(long = "machine", value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Do not start the demo session
    #[arg(long)]
    pub(crate) no_demo: bool,
    #[command(flatten)]
    pub(crate) agents: Hosting,
}

/// What a relay is told.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4780")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Write address and tokens here, as JSON, when the relay serves
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
    /// HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The address that people use, behind a reverse proxy or tunnel
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Whose forwarding headers to believe; repeatable
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<IpAddr>,
    /// A further origin whose pages may connect; repeatable
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) allow_origin: Vec<String>,
    /// How long a send waits for a machine that is away
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    pub(crate) send_grace_ms: u64,
    /// How long a launch may take
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    pub(crate) launch_timeout_ms: u64,
    /// How often peers are asked for a sign of life
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) heartbeat_interval_ms: u64,
    /// Silence after which a connection is stale
    #[arg(long, value_name = "N", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) heartbeat_timeout_ms: u64,
    /// The largest frame
    #[arg(long, value_name = "N", default_value_t = 5 * 1024 * 1024)]
    pub(crate) max_frame_bytes: usize,
    /// The largest content of one send
    #[arg(long, value_name = "N", default_value_t = 100 * 1024)]
    pub(crate) max_content_bytes: usize,
    /// The largest upload
    #[arg(long, value_name = "N", default_value_t = 50 * 1024 * 1024)]
    pub(crate) max_upload_bytes: u64,
    /// Sends of one client in ten seconds
    #[arg(long = "sends-per-10s", value_name = "N", default_value_t = 30)]
    pub(crate) sends_per_10s: u32,
    /// Frames of one client in a minute
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) frames_per_minute: u32,
    /// How many requests for the history of one session may wait for each other
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) history_requests_waiting: usize,
    /// How many prompts of one session may be open at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) prompts_open: usize,
    /// Forget events older than this many days [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_days: Option<u64>,
    /// Forget the oldest events while the ledger is larger than this [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) notify: Notify,
}
