//! The port, TLS, and the messages about them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Knocked;
use super::client::Ask;
use crate::tls::{LOOK_EVERY, Tls};
use crate::{Config, TlsFiles};

/// Writes a new self-made certificate; a reader that trusts it alone.
fn certify(folder: &Path) -> (TlsFiles, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = TlsFiles { certificate: folder.join("c.pem"), key: folder.join("k.pem") };
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (files, TlsConnector::from(Arc::new(config)))
}

#[tokio::test]
async fn https_is_served_from_certificate_files() {
    let folder = tempfile::tempdir().unwrap();
    let (files, connector) = certify(folder.path());
    let door = Knocked::with(|config| config.tls = Some(files)).await;
    let address = door.running.address();

    assert_eq!(door.running.url(), format!("https://{address}"));
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let told = Ask::new(address, "GET", "/v1/sessions").bearer(&door.viewer.token);
    let told = told.header("origin", &format!("https://{address}")).send_over(stream).await;
    assert_eq!(told.status, 200);
}

#[tokio::test]
async fn changed_certificate_files_are_read_again_and_broken_ones_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (files, old) = certify(folder.path());
    let mut tls = Tls::open(files.clone()).unwrap();
    let later = |looks: u32| Instant::now() + LOOK_EVERY * (looks + 1);
    assert!(greets(&mut tls, &old, Instant::now()).await);

    std::fs::write(&files.certificate, "not a certificate").unwrap();
    assert!(greets(&mut tls, &old, later(1)).await);
    let (_, new) = certify(folder.path());
    assert!(greets(&mut tls, &new, later(2)).await);
    assert!(!greets(&mut tls, &old, later(3)).await);
}

/// Whether this reader and the server agree on TLS, in memory.
async fn greets(tls: &mut Tls, connector: &TlsConnector, now: Instant) -> bool {
    let (one, other) = tokio::io::duplex(64 * 1024);
    let acceptor = tls.acceptor(now);
    let name = ServerName::try_from("localhost").unwrap();
    let (agreed, _) = tokio::join!(connector.connect(name, one), acceptor.accept(other));
    agreed.is_ok()
}

#[tokio::test]
async fn unusable_certificate_files_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (files, _) = certify(folder.path());
    std::fs::remove_file(&files.key).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let config = Config { listen, tls: Some(files), ..Config::default() };

    let told = crate::bind(config).await.err().unwrap().to_string();

    assert!(told.contains("k.pem") && told.contains("PEM file"), "{told}");
}

#[tokio::test]
async fn a_busy_port_is_named_with_what_to_do() {
    let door = Knocked::new().await;
    let address = door.running.address();
    let config = Config { listen: address, ..Config::default() };

    let told = crate::bind(config).await.err().unwrap().to_string();

    assert!(told.contains(&address.to_string()) && told.contains("--listen"), "{told}");
}

#[tokio::test]
async fn only_loopback_goes_without_a_warning() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let mut config = Config { listen, ..Config::default() };
    assert_eq!(crate::bind(config.clone()).await.unwrap().warning(), None);
    config.public_url = Some("https://far.example".parse().unwrap());
    let bound = crate::bind(config).await.unwrap();
    assert_eq!((bound.warning(), bound.public_url().as_str()), (None, "https://far.example"));
    assert!(bound.local_url().starts_with("http://127.0.0.1:"));
}

#[tokio::test]
async fn a_peer_that_says_nothing_delays_nobody() {
    let door = Knocked::new().await;
    let mut silent = vec![];
    for _ in 0..50 {
        silent.push(TcpStream::connect(door.running.address()).await.unwrap());
    }

    let asked = door.ask("GET", "/healthz").send();
    let told = tokio::time::timeout(Duration::from_secs(5), asked).await.unwrap();

    assert_eq!(told.status, 200);
}
