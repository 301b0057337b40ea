//! Conversations that agents keep themselves, found in their own files.
//!
//! Thousands of files stay fast: file times are compared first, and only the beginnings of the
//! newest files are read, one page at a time.
//!
//! Not here: what a file contains (`agents`), whether a conversation is open already (`host`).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agents::{STORES, Store, Summary};
use domain::{AgentType, Timestamp};
use wire::native::shapes::{Conversation, Conversations, ResumableList};

/// Files of one store that are looked at; of more, those that the folders name first.
const FILES_MAX: usize = 50_000;
/// Bytes of a file's head that are read.
const HEAD_BYTES_MAX: u64 = 128 * 1024;
/// Conversations in one answer, at most and by default.
const PAGE_MAX: u32 = 200;
const PAGE_DEFAULT: u32 = 50;
/// Files that are opened for one answer: not each of them holds a conversation.
const OPENED_MAX: usize = 1_000;

/// The variables that an agent's program would see: those set for it, else the person's.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;
/// The same of any agent: which agent, which variable.
pub type AgentVariables<'a> = &'a dyn Fn(&str, &str) -> Option<String>;

/// Where one conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What its head says.
    pub summary: Summary,
    /// Its file.
    pub file: PathBuf,
}

/// Conversations that an agent told itself.
pub type Told = (AgentType, Summary);

/// Whether an agent's conversations are files that we know.
pub fn has_files(agent: &str) -> bool {
    STORES.iter().any(|store| store.agent == agent)
}

/// A page of all conversations, newest first: those in files and those that were told.
pub fn list(
    asked: &ResumableList,
    told: Vec<Told>,
    variables: AgentVariables<'_>,
) -> Conversations {
    list_in(STORES, asked, told, variables)
}

/// One conversation by the agent's own name for it. `None` where the agent keeps no files; an
/// empty answer where it has no such conversation.
pub fn find(agent: &str, id: &str, variables: Variables<'_>) -> Option<Option<Found>> {
    let store = STORES.iter().find(|store| store.agent == agent)?;
    Some(find_in(store, id, variables))
}

/// Where a conversation is known from.
enum Source<'a> {
    File(&'a Store, PathBuf),
    Told(Told),
}

fn list_in(
    stores: &[Store],
    asked: &ResumableList,
    told: Vec<Told>,
    variables: AgentVariables<'_>,
) -> Conversations {
    let wanted = |store: &&Store| {
        asked.agent_type.as_ref().is_none_or(|agent| agent.as_str() == store.agent)
    };
    let mut sources: Vec<(Timestamp, Source<'_>)> = vec![];
    for store in stores.iter().filter(wanted) {
        let files = files_of(store, &|name| variables(store.agent, name)).into_iter();
        sources.extend(files.map(|(at, file)| (timestamp(at), Source::File(store, file))));
    }
    let told = told.into_iter().map(|told| (told.1.updated_at.unwrap_or_default(), told));
    sources.extend(told.map(|(at, told)| (at, Source::Told(told))));
    sources.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let limit = usize::try_from(asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX));
    let limit = limit.unwrap_or(usize::MAX);
    let start = usize::try_from(asked.after.unwrap_or(0)).unwrap_or(usize::MAX);
    let mut page = Conversations::default();
    for (place, (changed_at, source)) in sources.into_iter().enumerate().skip(start) {
        if page.conversations.len() >= limit || place >= start + OPENED_MAX {
            page.next = u32::try_from(place).ok();
            break;
        }
        let (agent_type, summary) = match source {
            Source::Told(told) => told,
            Source::File(store, file) => match summary_of(store, &file) {
                Some(summary) => (store.agent.into(), summary),
                None => continue,
            },
        };
        let changed_at = summary.updated_at.unwrap_or(changed_at);
        page.conversations.push(Conversation {
            agent_type,
            conversation_id: summary.id,
            title: summary.title,
            workspace_path: summary.workspace,
            updated_at: changed_at.into(),
            session_id: None,
        });
    }
    page
}

fn find_in(store: &Store, id: &str, variables: Variables<'_>) -> Option<Found> {
    let mut files = files_of(store, variables);
    // Agents name their files after their conversations.
    files.sort_by_key(|(at, file)| {
        let is_named = file.file_name().is_some_and(|name| name.to_string_lossy().contains(id));
        (!is_named, std::cmp::Reverse(*at))
    });
    let mut opened = files.into_iter().take(OPENED_MAX);
    opened.find_map(|(_, file)| {
        let summary = summary_of(store, &file).filter(|summary| summary.id == id)?;
        Some(Found { summary, file })
    })
}

fn summary_of(store: &Store, file: &Path) -> Option<Summary> {
    let name = file.file_name()?.to_string_lossy().into_owned();
    (store.summary)(&name, &head(file)?)
}

/// The whole lines at a file's beginning.
fn head(file: &Path) -> Option<String> {
    let mut bytes = vec![];
    let opened = fs::File::open(file).ok()?;
    opened.take(HEAD_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read == HEAD_BYTES_MAX) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn files_of(store: &Store, variables: Variables<'_>) -> Vec<(SystemTime, PathBuf)> {
    let named = variables(store.variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variables("HOME").or_else(|| variables("USERPROFILE")).map(PathBuf::from);
    let Some(folder) = named.or_else(|| Some(home()?.join(store.below_home))) else {
        return vec![];
    };
    let mut folders = vec![folder.join(store.below)];
    for _ in 0..store.levels {
        let below = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
        let below = below.flat_map(Iterator::flatten);
        let is_folder = |entry: &fs::DirEntry| entry.path().is_dir();
        folders = below.filter(is_folder).take(FILES_MAX).map(|entry| entry.path()).collect();
    }
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
    let entries = entries.flat_map(Iterator::flatten);
    let is_one = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(store.prefix) && name.ends_with(store.suffix)
    };
    let with_time = |entry: fs::DirEntry| {
        let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((data.modified().ok()?, entry.path()))
    };
    entries.filter(is_one).filter_map(with_time).take(FILES_MAX).collect()
}

fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn summary(name: &str, text: &str) -> Option<Summary> {
        let title = text.lines().next().filter(|title| !title.is_empty())?.to_owned();
        let id = name.strip_prefix("talk-")?.strip_suffix(".jsonl")?.to_owned();
        Some(Summary { id, title: Some(title), workspace: None, updated_at: None })
    }

    const STORE: Store = Store {
        agent: "mine",
        variable: "MINE_HOME",
        below_home: ".mine",
        below: "talks",
        levels: 1,
        prefix: "talk-",
        suffix: ".jsonl",
        summary,
    };

    /// Talks from the oldest to the newest, a second apart.
    fn talks(count: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..count {
            let below = folder.path().join("talks").join(format!("p{}", number % 3));
            fs::create_dir_all(&below).unwrap();
            let file = below.join(format!("talk-{number}.jsonl"));
            fs::write(&file, format!("title {number}\nmore\n")).unwrap();
            let at = UNIX_EPOCH + Duration::from_secs(1_000_000 + number);
            fs::File::options().write(true).open(&file).unwrap().set_modified(at).unwrap();
        }
        folder
    }

    fn ids(page: &Conversations) -> Vec<&str> {
        page.conversations.iter().map(|it| it.conversation_id.as_str()).collect()
    }

    // spec: native/resumable_list.3
    #[test]
    fn conversations_are_listed_newest_first_and_in_pages() {
        let folder = talks(7);
        fs::write(folder.path().join("talks/p0/talk-empty.jsonl"), "").unwrap();
        fs::write(folder.path().join("talks/p0/notes.txt"), "x").unwrap();
        let place = folder.path().display().to_string();
        let variables = |_: &str, name: &str| (name == "MINE_HOME").then(|| place.clone());
        let ask = |after| {
            let asked = ResumableList { limit: Some(3), after, ..ResumableList::default() };
            list_in(&[STORE], &asked, vec![], &variables)
        };
        let first = ask(None);
        assert_eq!(ids(&first), ["6", "5", "4"], "the empty one is newer, and is none");
        let second = ask(first.next);
        assert_eq!(ids(&second), ["3", "2", "1"]);
        let last = ask(second.next);
        assert_eq!((ids(&last), last.next), (vec!["0"], None));
        assert_eq!(last.conversations[0].updated_at, Timestamp(1_000_000_000).into());
        let other = ResumableList { agent_type: Some("other".into()), ..ResumableList::default() };
        assert_eq!(list_in(&[STORE], &other, vec![], &variables), Conversations::default());
    }

    #[test]
    fn what_an_agent_tells_itself_is_listed_among_the_files() {
        let folder = talks(2);
        let place = folder.path().display().to_string();
        let variables = |_: &str, name: &str| (name == "MINE_HOME").then(|| place.clone());
        let told = |id: &str, at| {
            let (title, workspace, updated_at) = (None, None, Some(Timestamp(at)));
            ("other".into(), Summary { id: id.to_owned(), title, workspace, updated_at })
        };
        let told = vec![told("late", 1_000_002_000), told("early", 5)];
        let page = list_in(&[STORE], &ResumableList::default(), told, &variables);
        assert_eq!(ids(&page), ["late", "1", "0", "early"]);
    }

    #[test]
    fn a_conversation_is_found_by_its_name() {
        let folder = talks(30);
        let home = folder.path().join("home");
        fs::create_dir_all(&home).unwrap();
        fs::rename(folder.path().join("talks"), home.join("talks")).unwrap();
        fs::create_dir_all(folder.path().join(".mine")).unwrap();
        fs::rename(home.join("talks"), folder.path().join(".mine/talks")).unwrap();
        let place = folder.path().display().to_string();
        let variables = |name: &str| (name == "HOME").then(|| place.clone());
        let found = find_in(&STORE, "17", &variables).unwrap();
        assert_eq!(found.summary.title.as_deref(), Some("title 17"));
        assert!(found.file.ends_with(".mine/talks/p2/talk-17.jsonl"));
        assert_eq!(find_in(&STORE, "none", &variables), None);
    }

    #[test]
    fn of_a_long_file_only_whole_lines_at_its_head_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("long");
        let lines = "0123456789\n".repeat(20_000);
        fs::write(&file, &lines).unwrap();
        let head = head(&file).unwrap();
        assert!(head.len() as u64 <= HEAD_BYTES_MAX && head.ends_with("9\n"));
        assert!(lines.starts_with(&head));
    }

    /// Thousands of files, of which one page is read.
    #[test]
    fn a_page_of_many_conversations_opens_few_files() {
        let folder = talks(5_000);
        let place = folder.path().display().to_string();
        let variables = |_: &str, name: &str| (name == "MINE_HOME").then(|| place.clone());
        let asked = ResumableList { limit: Some(20), ..ResumableList::default() };
        let page = list_in(&[STORE], &asked, vec![], &variables);
        assert_eq!((page.conversations.len(), page.next), (20, Some(20)));
    }
}
