//! Slash commands: what a person types to the relay instead of the agent.
//!
//! A command is answered at once with `command_processed`; its result follows as a system message
//! to the client that typed it. Text that is not a command of the relay goes to the agent, which
//! may have its own commands.
//!
//! Not here: what the commands do (`sessions`, `prompts`, `gateway`).

use bytes::Bytes;
use domain::SessionId;
use domain::session::prompts::Effect;
use serde_json::{Value, json};

use super::events::{Role, said};
use super::frames::{event, granted, refuse};
use super::sessions::{ListFor, New, Reply};
use super::switch::{Purpose, RECENT_DEFAULT};
use super::view::title;
use super::{Connection, DENIED, not_found};
use crate::port::Listing;
use crate::visitor::Act;

/// Sessions on one page of `/sessions`.
const MENU_PAGE: usize = 9;
const HELP: &str = "\
/new, /new TITLE        start a session and switch to it
/sessions, /sessions N  list sessions (page N; also next, prev, search WORD); then type a number
/switch NUMBER or ID    switch to a session
/history, /history N    show the last messages
/status                 show the state of the relay and of this session
/approve, /approve ID   allow the agent's request once
/deny, /deny ID         deny the agent's request
/help                   show this list";

/// A command of the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    New(Option<String>),
    Sessions(Turn),
    Switch(String),
    History(usize),
    Status,
    Decide(Effect, Option<String>),
}

/// Which page of the sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    To(usize),
    Next,
    Back,
    Search(String, usize),
}

/// The last list that was shown.
#[derive(Debug, Default)]
pub(super) struct Menu {
    /// What a bare number names, until something else is said.
    pub(super) numbers: Vec<SessionId>,
    page: usize,
    search: Option<String>,
}

/// Whether the words of `agent` are for the relay. They cost less than words for an agent.
pub(super) fn is_known(params: &Value) -> bool {
    params["message"].as_str().is_some_and(|message| read(message, &[]).is_some())
}

/// Reads a command; `None` is for the agent. Right after a list, a number of it is a command too.
pub(super) fn read(text: &str, menu: &[SessionId]) -> Option<Command> {
    let text = text.trim();
    if let Ok(number) = text.parse::<usize>() {
        let chosen = menu.get(number.checked_sub(1)?)?;
        return Some(Command::Switch(chosen.to_string()));
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    Some(match word {
        "/help" => Command::Help,
        "/new" => Command::New(rest.map(str::to_owned)),
        "/sessions" => Command::Sessions(turn(rest.unwrap_or("1"))?),
        "/switch" => {
            let named = rest?;
            let number = named.parse::<usize>().ok();
            let chosen = number.and_then(|number| menu.get(number.checked_sub(1)?));
            Command::Switch(chosen.map_or(named, |chosen| chosen.as_str()).to_owned())
        }
        "/history" => Command::History(rest.map_or(Ok(RECENT_DEFAULT), str::parse).ok()?),
        "/status" => Command::Status,
        "/approve" => Command::Decide(Effect::AllowOnce, rest.map(str::to_owned)),
        "/deny" => Command::Decide(Effect::Reject, rest.map(str::to_owned)),
        _ => return None,
    })
}

fn turn(words: &str) -> Option<Turn> {
    let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
    Some(match word {
        "next" => Turn::Next,
        "prev" => Turn::Back,
        "page" => Turn::To(rest.trim().parse().ok()?),
        "search" => {
            let (wanted, page) = match rest.trim().rsplit_once(' ') {
                Some((wanted, page)) => match page.parse() {
                    Ok(page) => (wanted, page),
                    Err(_) => (rest.trim(), 1),
                },
                None => (rest.trim(), 1),
            };
            Turn::Search(wanted.to_owned(), page)
        }
        number => Turn::To(number.parse().ok()?),
    })
}

impl Connection {
    pub(super) fn command(&mut self, request: &str, command: Command) -> Vec<Act> {
        let changes = matches!(command, Command::New(_) | Command::Decide(..));
        if changes && !self.may_steer() {
            return refuse(request, DENIED);
        }
        let processed = json!({ "status": "command_processed" });
        let mut acts = vec![Act::Send(granted(request, &processed))];
        let current = self.view.as_ref().map(|view| view.session.clone());
        acts.extend(match command {
            Command::Help => self.tell(HELP),
            Command::New(title) => self.list(ListFor::New(New { request: None, title })),
            Command::Sessions(turn) => {
                let (page, search) = match turn {
                    Turn::To(page) => (page, None),
                    Turn::Next => (self.menu.page.saturating_add(1), self.menu.search.clone()),
                    Turn::Back => (self.menu.page.saturating_sub(1), self.menu.search.clone()),
                    Turn::Search(words, page) => (page, Some(words)),
                };
                self.list(ListFor::Menu { page: page.max(1), search })
            }
            Command::Switch(named) => match SessionId::parse(&named) {
                Some(session) => self.switch_to(session, Purpose::Command("You are now in")),
                None => self.tell(&not_found(&named)),
            },
            Command::History(limit) => match current {
                Some(session) => self.history(Reply::Words, session, None, limit),
                None => self.tell("No session selected"),
            },
            Command::Status => self.look_around(Reply::Words, current),
            Command::Decide(effect, named) => self.decide(named.as_deref(), effect),
        });
        acts
    }

    /// Every session, most recently active first.
    pub(super) fn on_menu(
        &mut self,
        page: usize,
        search: Option<String>,
        listings: &[Listing],
    ) -> Vec<Act> {
        let wanted = search.as_deref().unwrap_or_default().to_lowercase();
        let fits = |it: &&Listing| title(&it.card.status).to_lowercase().contains(&wanted);
        let found: Vec<_> = listings.iter().filter(fits).collect();
        let pages = found.len().div_ceil(MENU_PAGE).max(1);
        let page = page.min(pages);
        let shown = found.iter().skip((page - 1) * MENU_PAGE).take(MENU_PAGE);
        let current = self.view.as_ref().map(|view| view.session.clone());
        let (mut numbers, mut lines) = (vec![], vec![]);
        for listing in shown {
            numbers.push(listing.id.clone());
            let here = if current.as_ref() == Some(&listing.id) { " (here)" } else { "" };
            let (number, title) = (numbers.len(), title(&listing.card.status));
            lines.push(format!("{number}. {title}, {}{here}", listing.id));
        }
        let words = if lines.is_empty() {
            "No sessions".to_owned()
        } else {
            format!("{}\nPage {page} of {pages}; type a number to switch", lines.join("\n"))
        };
        self.menu = Menu { numbers, page, search };
        self.tell(&words)
    }

    /// Words of the system for this client alone.
    pub(super) fn tell(&mut self, words: &str) -> Vec<Act> {
        vec![Act::Send(self.told(words))]
    }

    /// The same as a frame.
    pub(super) fn told(&mut self, words: &str) -> Bytes {
        self.count += 1;
        let id = format!("note_{}_{}", self.own_name, self.count);
        event("message", &said(Role::System, words, &id, self.now), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: blob/commands.1
    #[test]
    fn a_command_is_told_from_words_for_the_agent() {
        let menu = ["sess_a".into(), "sess_b".into()];
        assert_eq!(read("/help", &[]), Some(Command::Help));
        assert_eq!(read(" /new  a title ", &[]), Some(Command::New(Some("a title".to_owned()))));
        assert_eq!(read("/history 5", &[]), Some(Command::History(5)));
        assert_eq!(read("/switch 2", &menu), Some(Command::Switch("sess_b".to_owned())));
        assert_eq!(read("/switch sess_x", &menu), Some(Command::Switch("sess_x".to_owned())));
        assert_eq!(read("2", &menu), Some(Command::Switch("sess_b".to_owned())));
        let search =
            |words: &str, page| Some(Command::Sessions(Turn::Search(words.to_owned(), page)));
        assert_eq!(read("/sessions search big fish 2", &[]), search("big fish", 2));
        assert_eq!(read("/sessions search fish", &[]), search("fish", 1));
        assert_eq!(read("/sessions next", &[]), Some(Command::Sessions(Turn::Next)));
        for for_the_agent in ["2", "3", "0", "hello", "/compact", "/helpme", "/", "", "/history x"]
        {
            let menu = if for_the_agent == "2" { &[][..] } else { &menu[..] };
            assert_eq!(read(for_the_agent, menu), None, "{for_the_agent}");
        }
    }
}
