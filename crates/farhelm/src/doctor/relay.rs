//! Checks the relay: whether it runs, how fast it responds, which machines are connected, and
//! whether its port is free.

use std::net::TcpListener;
use std::time::Instant;

use hyper::Method;
use serde_json::Value;

use super::Look;
use crate::arguments::Doctor;
use crate::discovery::{Finder, Found};
use crate::http::{self, HttpFault};
use crate::problem::Problem;

/// An answer that takes longer is told.
const SLOW_MS: u128 = 500;

pub(super) async fn look(asked: &Doctor) -> Result<Vec<Look>, Problem> {
    let finder = Finder::new(&asked.reach)?;
    let found = match finder.find() {
        Ok(found) => found,
        Err(problem) if finder.is_local() => {
            return Ok(vec![Look::note("relay", problem.words()), port(asked)]);
        }
        Err(problem) => return Err(problem),
    };
    let begun = Instant::now();
    let alive = match http::ask_at(&found, Method::GET, "/healthz", None).await {
        Ok(alive) => alive,
        Err(fault) => return Ok(silent(asked, &finder, &found, &fault)),
    };
    let took_ms = begun.elapsed().as_millis();
    let version = alive["version"].as_str().unwrap_or("?");
    let words = format!("version {version} at {}, responds in {took_ms} ms", found.url);
    let mut looks = vec![if took_ms > SLOW_MS {
        Look::wrong("relay", words, "slow response: check the load of the machine and the network")
    } else {
        Look::ok("relay", words)
    }];
    looks.push(ready(&found).await);
    looks.push(proxies(&alive));
    looks.push(token(&found).await);
    Ok(looks)
}

fn silent(asked: &Doctor, finder: &Finder, found: &Found, fault: &HttpFault) -> Vec<Look> {
    match fault {
        HttpFault::Silent(error) if finder.is_local() => {
            let words =
                format!("relay.json names {}, but nothing responds there ({error})", found.url);
            let advice = "the relay was probably killed; start it again with: farhelm up";
            vec![Look::wrong("relay", words, advice), port(asked)]
        }
        HttpFault::Silent(error) => {
            let words = format!("nothing responds at {} ({error})", found.url);
            vec![Look::wrong(
                "relay",
                words,
                "check the address, and that a relay is running there",
            )]
        }
        HttpFault::Refused { status, message, .. } => {
            let words = format!("{} responded with {status}: {message}", found.url);
            vec![Look::wrong("relay", words, "check the address and the token")]
        }
    }
}

async fn ready(found: &Found) -> Look {
    match http::ask_at(found, Method::GET, "/readyz", None).await {
        Ok(_) => Look::ok("ledger", "readable"),
        Err(HttpFault::Refused { message, .. } | HttpFault::Silent(message)) => {
            Look::wrong("ledger", message, "check the relay's log, the disk and its permissions")
        }
    }
}

fn proxies(alive: &Value) -> Look {
    match alive["connections"]["proxies"].as_i64() {
        Some(0) | None => {
            let advice = "start one with: farhelm up, or farhelm proxy on another machine";
            Look::wrong("machines", "no machine is connected: no agent can be used", advice)
        }
        Some(count) => Look::ok("machines", format!("{count} connected")),
    }
}

async fn token(found: &Found) -> Look {
    match http::ask_at(found, Method::GET, "/v1/sessions", None).await {
        Ok(answer) => {
            let count = answer["sessions"].as_array().map_or(0, Vec::len);
            let sessions = if count == 1 { "session" } else { "sessions" };
            Look::ok("token", format!("accepted; {count} {sessions}"))
        }
        Err(HttpFault::Refused { message, .. } | HttpFault::Silent(message)) => {
            let advice = "create one where the relay runs, with: farhelm token create";
            Look::wrong("token", message, advice)
        }
    }
}

fn port(asked: &Doctor) -> Look {
    match TcpListener::bind(asked.listen) {
        Ok(_) => Look::ok("port", format!("{} is free", asked.listen)),
        Err(error) => {
            let words = format!("cannot listen on {} ({error})", asked.listen);
            let advice = "stop the program that uses it, or choose another address with --listen \
                          (port 0: any free port)";
            Look::wrong("port", words, advice)
        }
    }
}
