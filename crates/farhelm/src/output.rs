//! All output goes through here.
//!
//! **Invariant**: when the reader has seen enough (`farhelm tail … | head`), the command ends
//! normally and silently.
//!
//! Not here: what is printed (`commands`, `view`).

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::problem::Problem;

/// Prints a line.
pub(crate) fn line(words: impl Display) -> Result<(), Problem> {
    raw(&format!("{words}\n"))
}

/// Prints one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_string(value).map_err(Problem::new)?;
    line(text)
}

/// Prints as it is, at once.
pub(crate) fn raw(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Problem::reader_left()),
        Err(error) => Err(Problem::new(format!("could not write the output: {error}"))),
    }
}

/// Tells a person something beside the output. Nobody there to read it is no reason to stop.
pub(crate) fn aside(words: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{words}");
}

/// Whether a person reads the output.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person reads what is said beside the output.
pub(crate) fn aside_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Rows as columns, the last one ragged. The first row is the heading.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width - cell.chars().count() + 2;
            line.push_str(cell);
            line.push_str(&" ".repeat(padding));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Words from elsewhere, without what would move the cursor or colour the terminal.
pub(crate) fn tame(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_its_columns_up() {
        let rows =
            [["ID", "NAME"], ["sess_1", "größer"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "ID      NAME\nsess_1  größer\n");
    }

    #[test]
    fn words_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(tame("a\u{1b}[2Jb\nc\r"), "a[2Jb\nc");
    }
}
