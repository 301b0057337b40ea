//! Finds the relay: by flag, by environment, or by the data folder.
//!
//! **Invariant**: a relay found through the data folder is looked up again at every attempt, since
//! a restart may give it another port.
//!
//! Not here: talking to it (`http`, `client`).

use std::path::{Path, PathBuf};

use crate::arguments::Reach;
use crate::problem::Problem;
use crate::{folders, ready};

/// How a relay is found.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    relay: Option<String>,
    token: Option<String>,
    data: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
}

/// A relay, and what to show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The HTTP base, without a slash at its end.
    pub(crate) url: String,
    /// The credential.
    pub(crate) token: String,
    /// Certificates to trust besides the system's.
    pub(crate) tls_ca: Option<PathBuf>,
}

impl Finder {
    /// From the command line.
    pub(crate) fn new(reach: &Reach) -> Result<Self, Problem> {
        // A wrong address is wrong at once, not at the first attempt.
        if let Some(url) = &reach.relay {
            base(url)?;
        }
        let data = match (&reach.relay, &reach.token) {
            (Some(_), Some(_)) => None,
            (None, _) | (_, None) => Some(folders::data(reach.data.data.as_deref())?),
        };
        let (relay, token) = (reach.relay.clone(), reach.token.clone());
        Ok(Self { relay, token, data, tls_ca: reach.tls_ca.clone() })
    }

    /// Whether the relay is the one of the data folder.
    pub(crate) fn is_local(&self) -> bool {
        self.relay.is_none()
    }

    /// The relay as it is to be reached now.
    pub(crate) fn find(&self) -> Result<Found, Problem> {
        let data = self.data.as_deref();
        let url = match (&self.relay, data) {
            (Some(url), _) => base(url)?,
            (None, Some(data)) => local_url(data)?,
            (None, None) => return Err(nowhere(Path::new("."))),
        };
        let token = match (&self.token, data) {
            (Some(token), _) => token.trim().to_owned(),
            (None, Some(data)) => owner_token(data)?,
            (None, None) => return Err(tokenless()),
        };
        Ok(Found { url, token, tls_ca: self.tls_ca.clone() })
    }

    /// In words, for a relay that does not answer.
    pub(crate) fn silent(&self, url: &str, error: &str) -> Problem {
        if self.relay.is_some() {
            return Problem::new(format!("no relay responds at {url} ({error})"));
        }
        Problem::new(format!("no relay responds at {url} ({error}); start one with: farhelm up"))
    }
}

/// An address as people type it, as an HTTP base.
pub(crate) fn base(typed: &str) -> Result<String, Problem> {
    let typed = typed.trim();
    let (scheme, rest) = typed.split_once("://").unwrap_or(("http", typed));
    let rest = rest.trim_end_matches('/');
    let scheme = match scheme {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        other => {
            let words = format!("{other}:// is not a relay address; use http:// or https://");
            return Err(Problem::usage(words));
        }
    };
    // The address of a socket leads to the same relay.
    let host = rest.strip_suffix("/ws").unwrap_or(rest);
    if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
        let words = format!("{typed} is not a relay address; use one like http://127.0.0.1:4780");
        return Err(Problem::usage(words));
    }
    Ok(format!("{scheme}://{host}"))
}

fn local_url(data: &Path) -> Result<String, Problem> {
    let file = ready::read_relay_file(data).ok_or_else(|| nowhere(data))?;
    base(&file.url)
}

fn owner_token(data: &Path) -> Result<String, Problem> {
    let path = data.join(folders::OWNER_TOKEN_FILE_NAME);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let path = path.display();
        Problem::new(format!("could not read the token {path} ({error}); pass one with --token"))
    })?;
    Ok(text.trim().to_owned())
}

fn nowhere(data: &Path) -> Problem {
    Problem::new(format!(
        "no relay is running in {}; start one with: farhelm up (or connect to another with \
         --relay URL --token T)",
        data.display()
    ))
}

fn tokenless() -> Problem {
    Problem::new("no token given; pass one with --token or FARHELM_TOKEN")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::DataFolder;

    fn finder(relay: Option<&str>, token: Option<&str>, data: &Path) -> Finder {
        let data = DataFolder { data: Some(data.to_path_buf()) };
        let (relay, token) = (relay.map(Into::into), token.map(Into::into));
        let reach = Reach { relay, token, tls_ca: None, data };
        Finder::new(&reach).unwrap()
    }

    #[test]
    fn the_data_folder_is_asked_again_at_every_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let finder = finder(None, None, folder.path());
        assert!(finder.find().is_err_and(|problem| problem.words().contains("farhelm up")));

        std::fs::write(folder.path().join("owner.token"), "fh_x\n").unwrap();
        for port in [1, 2] {
            let url = format!("http://127.0.0.1:{port}");
            let text = format!(r#"{{"url":"{url}","pid":7}}"#);
            std::fs::write(folder.path().join("relay.json"), text).unwrap();
            let found = finder.find().map_err(|problem| problem.words().to_owned()).unwrap();
            assert_eq!((found.url, found.token), (url, "fh_x".to_owned()));
        }
    }

    #[test]
    fn what_is_named_is_taken() {
        let found = finder(Some("ws://h:1/ws"), Some("t"), Path::new("/nowhere")).find();
        let found = found.map_err(|problem| problem.words().to_owned()).unwrap();
        assert_eq!((found.url.as_str(), found.token.as_str()), ("http://h:1", "t"));
    }

    #[test]
    fn an_address_is_a_host_and_perhaps_a_port() {
        assert_eq!(
            base("relay.example.org:4780/").ok().as_deref(),
            Some("http://relay.example.org:4780")
        );
        for wrong in ["ftp://x", "http://", "http://x/y", "http://u@x"] {
            assert!(base(wrong).is_err(), "{wrong}");
        }
    }
}
