//! `farhelm token`: through the running relay, or directly in its store when none runs.

use std::process::ExitCode;

use clap::ValueEnum as _;
use domain::Role;
use hyper::Method;
use serde_json::{Value, json};
use server::{Auth, clock};
use store::{CredentialKind, Ledger as _, SqliteLedger};

use crate::arguments::{Reach, RoleWord, TokenTask};
use crate::discovery::Finder;
use crate::http::{self, HttpFault};
use crate::problem::Problem;
use crate::{folders, output};

/// Makes, lists or revokes.
pub(super) async fn run(task: TokenTask) -> Result<ExitCode, Problem> {
    match task {
        TokenTask::Create(create) => {
            let role = word(create.role);
            let name = create.name.unwrap_or_else(|| role.clone());
            let ask = Ask::Create { role: create.role, name };
            let made = answer(&create.reach, &ask).await?;
            if create.json {
                return print(&made);
            }
            let text = |key: &str| made[key].as_str().unwrap_or_default();
            output::line(text("token"))?;
            output::aside(format_args!(
                "This is token {} ({role}). It will not be shown again. Revoke it with: farhelm \
                 token revoke {}",
                text("id"),
                text("id")
            ));
        }
        TokenTask::List(list) => {
            let listed = answer(&list.reach, &Ask::List).await?;
            if list.json {
                return print(&listed);
            }
            let heading = ["TOKEN", "ROLE", "KIND", "CREATED", "LAST USED", "NAME"];
            let mut rows = vec![heading.map(str::to_owned).to_vec()];
            rows.extend(listed["tokens"].as_array().into_iter().flatten().map(row));
            output::raw(&output::table(&rows))?;
        }
        TokenTask::Revoke(revoke) => {
            let revoked = answer(&revoke.reach, &Ask::Revoke(revoke.id.clone())).await?;
            if revoke.json {
                return print(&revoked);
            }
            output::aside(format_args!("revoked {}", revoke.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

enum Ask {
    Create { role: RoleWord, name: String },
    List,
    Revoke(String),
}

async fn answer(reach: &Reach, ask: &Ask) -> Result<Value, Problem> {
    let finder = Finder::new(reach)?;
    let found = match finder.find() {
        Ok(found) => found,
        Err(problem) if finder.is_local() => return in_store(reach, ask, problem).await,
        Err(problem) => return Err(problem),
    };
    let (method, path, body) = match ask {
        Ask::Create { role, name } => {
            let body = json!({ "role": word(*role), "name": name });
            (Method::POST, "/v1/tokens".to_owned(), Some(body))
        }
        Ask::List => (Method::GET, "/v1/tokens".to_owned(), None),
        Ask::Revoke(id) => (Method::DELETE, format!("/v1/tokens/{}", plain(id)?), None),
    };
    match http::ask_at(&found, method, &path, body.as_ref()).await {
        Ok(answer) => Ok(answer),
        Err(HttpFault::Refused { message, .. }) => Err(Problem::new(message)),
        Err(HttpFault::Silent(error)) => {
            let silent = finder.silent(&found.url, &error);
            if finder.is_local() { in_store(reach, ask, silent).await } else { Err(silent) }
        }
    }
}

/// No relay answers. If none holds the folder either, this process may.
async fn in_store(reach: &Reach, ask: &Ask, silent: Problem) -> Result<Value, Problem> {
    let data = folders::made_data(reach.data.data.as_deref())?;
    let ledger = match SqliteLedger::open(&data.join(folders::DATABASE_FILE_NAME)) {
        Ok(ledger) => ledger,
        Err(store::Fault::Locked { .. }) => return Err(silent),
        Err(fault) => return Err(Problem::new(fault)),
    };
    let auth = Auth::open(ledger.vault().map_err(Problem::new)?).map_err(Problem::new)?;
    let now = clock::now();
    match ask {
        Ask::Create { role, name } => {
            let made = auth.create(CredentialKind::Token, meaning(*role), name, now).await;
            let made = made.map_err(Problem::new)?;
            let role = word(*role);
            Ok(json!({ "id": made.id, "token": made.token, "role": role, "name": made.name }))
        }
        Ask::List => {
            let all = auth.list().await.map_err(Problem::new)?;
            let valid = all.iter().filter(|it| it.revoked_at.is_none());
            Ok(json!({ "tokens": valid.map(describe).collect::<Vec<_>>() }))
        }
        Ask::Revoke(id) => {
            if !auth.revoke(&id.as_str().into(), now).await.map_err(Problem::new)? {
                let words = "No valid token has this id. Run `farhelm token list` to list the \
                             tokens";
                return Err(Problem::new(words));
            }
            Ok(json!({ "id": id, "revoked": true }))
        }
    }
}

fn describe(credential: &store::Credential) -> Value {
    let kind = match credential.kind {
        CredentialKind::Token => "token",
        CredentialKind::Device => "device",
        CredentialKind::Webchannel => "webchannel",
    };
    let time = |at| wire::native::shapes::Time::from(at);
    json!({
        "id": credential.id,
        "role": credential.role,
        "name": credential.name,
        "kind": kind,
        "created_at": time(credential.created_at),
        "last_used_at": credential.last_used_at.map(time),
    })
}

fn row(token: &Value) -> Vec<String> {
    let columns = ["id", "role", "kind", "created_at", "last_used_at", "name"];
    let cell = |column: &str| token[column].as_str().map_or("-".to_owned(), output::tame);
    columns.iter().map(|column| cell(column)).collect()
}

fn print(value: &Value) -> Result<ExitCode, Problem> {
    output::json(value).map(|()| ExitCode::SUCCESS)
}

fn word(role: RoleWord) -> String {
    role.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn meaning(role: RoleWord) -> Role {
    match role {
        RoleWord::Owner => Role::Owner,
        RoleWord::Operator => Role::Operator,
        RoleWord::Viewer => Role::Viewer,
        RoleWord::Proxy => Role::Proxy,
    }
}

/// An id that can stand in a path.
fn plain(id: &str) -> Result<&str, Problem> {
    let fits =
        !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if fits { Ok(id) } else { Err(Problem::usage(format!("{id:?} is not a token id"))) }
}
