//! Merges all sources of settings into arguments: flag, else environment, else file, else default.
//!
//! The environment variable of `--some-name` is `FARHELM_SOME_NAME`, its key in the file is
//! `some-name`. Both are added to every flag here, so that none can be forgotten. A value from the
//! file becomes the flag's default, so that it is validated like a flag.
//!
//! Not here: which flags there are (`arguments`), reading the file (`file`).

mod file;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};

use self::file::{Entry, File};
use crate::arguments::Arguments;
use crate::folders;
use crate::problem::Problem;

/// Flags that have no place in a file: it would have to be read first, or they end the program.
const NOT_IN_FILE: [&str; 3] = ["config", "help", "version"];

/// Why there are no arguments.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// Clap's own words: wrong usage, but also help and version.
    Clap(clap::Error),
    /// The file.
    File(Problem),
}

/// The arguments of this process.
pub(crate) fn read() -> Result<Arguments, Unusable> {
    let spoken: Vec<OsString> = std::env::args_os().collect();
    let named = named_file(&spoken).or_else(|| std::env::var_os("FARHELM_CONFIG").map(Into::into));
    let file = match named {
        Some(path) => File::read(path),
        None => folders::configuration_file().map_or(Ok(File::default()), File::read_if_there),
    };
    match file {
        Ok(file) => parse(&file, spoken),
        Err(problem) => Err(unless_help(problem, &spoken)),
    }
}

/// Help does not depend on a file that cannot be used.
fn unless_help(problem: Problem, spoken: &[OsString]) -> Unusable {
    match layered(&File::default()).try_get_matches_from(spoken) {
        Err(error) if !error.use_stderr() => Unusable::Clap(error),
        Ok(_) | Err(_) => Unusable::File(problem),
    }
}

fn parse(file: &File, spoken: Vec<OsString>) -> Result<Arguments, Unusable> {
    let known = keys(&layered(&File::default()));
    if let Some(unknown) = file.entries.iter().find(|entry| !known.contains(&entry.key)) {
        let words = format!("unknown key {:?}; docs/config.md lists the keys", unknown.key);
        return Err(unless_help(file.problem(unknown, &words), &spoken));
    }
    let matches = layered(file).try_get_matches_from(spoken);
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments
        .map_err(|error| blame_file(file, &error).map_or(Unusable::Clap(error), Unusable::File))
}

/// The command line, with the environment and the file below it.
fn layered(file: &File) -> Command {
    below(Arguments::command(), file)
}

fn below(command: Command, file: &File) -> Command {
    command.mut_args(|arg| layer(arg, file)).mut_subcommands(|command| below(command, file))
}

fn layer(arg: Arg, file: &File) -> Arg {
    let Some(flag) = arg.get_long().map(str::to_owned) else { return arg };
    let arg = if arg.get_env().is_none() && !NOT_IN_FILE.contains(&flag.as_str()) {
        arg.env(variable(&flag))
    } else {
        arg
    };
    match file.entries.iter().find(|entry| entry.key == flag) {
        // What the file says is no longer asked for.
        Some(entry) => arg.default_values(entry.values.clone()).required(false),
        None => arg,
    }
}

fn variable(flag: &str) -> String {
    format!("FARHELM_{}", flag.replace('-', "_").to_uppercase())
}

/// Every key that a file may have.
fn keys(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(Arg::get_long);
    let own = own.filter(|flag| !NOT_IN_FILE.contains(flag)).map(str::to_owned);
    own.chain(command.get_subcommands().flat_map(keys)).collect()
}

/// What `--config` says. It must be known before the rest can be understood.
fn named_file(spoken: &[OsString]) -> Option<PathBuf> {
    let mut words = spoken.iter().skip(1).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    None
}

/// A value that a flag refused and that came from the file: say where it stands.
fn blame_file(file: &File, error: &clap::Error) -> Option<Problem> {
    if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        return None;
    }
    let text = |kind| {
        let Some(ContextValue::String(text)) = error.get(kind) else { return None };
        Some(text.clone())
    };
    let (flag, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let flag = flag.strip_prefix("--")?.split([' ', '=']).next()?.to_owned();
    let blamed = |entry: &&Entry| entry.key == flag && entry.values.contains(&value);
    let entry = file.entries.iter().find(blamed)?;
    let words = format!("{value:?} is not a valid value for {flag}; see `farhelm COMMAND --help`");
    Some(file.problem(entry, &words))
}

#[cfg(test)]
mod tests;
