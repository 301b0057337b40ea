//! The commands that keep running: relay, proxy, or both.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::agents::Hosting;
use super::{DataFolder, Notify};

/// Run the relay and a proxy for this machine in one process
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

/// Run the relay alone; proxies connect from other machines
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  farhelm relay --listen 192.168.1.10:4780 --tls-cert chain.pem \
                        --tls-key key.pem"
)]
pub(crate) struct Relay {
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// Run a proxy: it runs this machine's agents for a relay elsewhere
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm token create --role proxy --name workshop   # on the \
                        relay's computer\n  farhelm proxy --relay https://relay.example.org --token fh_...")]
pub(crate) struct Proxy {
    /// Address of the relay
    #[arg(long, value_name = "URL", env = "FARHELM_URL")]
    pub(crate) relay: Option<String>,
    /// Token with the role proxy
    #[arg(long, value_name = "TOKEN", env = "FARHELM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Also trust these certificates (PEM): the relay's own, or the authority that signed it
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// Settings of a proxy's machine.
#[derive(Debug, Args)]
pub(crate) struct Machine {
    /// Name of this machine [default: the computer's name]
    #[arg(long = "machine", value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Do not start the demo session
    #[arg(long)]
    pub(crate) no_demo: bool,
    #[command(flatten)]
    pub(crate) agents: Hosting,
}

/// Settings of a relay.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4780")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Write the address and tokens to this file (JSON) once the relay is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Address that people use to reach the relay, behind a reverse proxy or tunnel
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Trust X-Forwarded-* headers from this address; repeatable
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<IpAddr>,
    /// Allow pages from this origin to connect; repeatable
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) allow_origin: Vec<String>,
    /// How long a message waits for a machine that is offline (ms)
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    pub(crate) send_grace_ms: u64,
    /// How long starting a session may take (ms)
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    pub(crate) launch_timeout_ms: u64,
    /// How often peers send a heartbeat (ms)
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) heartbeat_interval_ms: u64,
    /// Close a connection after this much silence (ms)
    #[arg(long, value_name = "N", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) heartbeat_timeout_ms: u64,
    /// Maximum size of a frame
    #[arg(long, value_name = "N", default_value_t = 5 * 1024 * 1024)]
    pub(crate) max_frame_bytes: usize,
    /// Maximum size of a message's text
    #[arg(long, value_name = "N", default_value_t = 100 * 1024)]
    pub(crate) max_content_bytes: usize,
    /// Maximum size of an upload
    #[arg(long, value_name = "N", default_value_t = 50 * 1024 * 1024)]
    pub(crate) max_upload_bytes: u64,
    /// Maximum number of messages per client in ten seconds
    #[arg(long = "sends-per-10s", value_name = "N", default_value_t = 30)]
    pub(crate) sends_per_10s: u32,
    /// Maximum number of frames per client in a minute
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) frames_per_minute: u32,
    /// Maximum number of queued history requests per client and session
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) history_requests_waiting: usize,
    /// Maximum number of open prompts per session
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) prompts_open: usize,
    /// Delete events older than this many days [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_days: Option<u64>,
    /// Delete the oldest events while the ledger is larger than N bytes [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) notify: Notify,
}
