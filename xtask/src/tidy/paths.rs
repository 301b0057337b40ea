//! Nothing in the checkout names a folder of one particular computer.

use super::{File, Problem};

/// Absolute folders of build machines, which no installation has. Written apart, or this file
/// would name them.
const MACHINE_FOLDERS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/fa", "rm/")];

/// A neighbour of the checkout.
const OUTSIDE: &str = concat!("../sh", "ared");

/// Checks every text file.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let machine = MACHINE_FOLDERS.into_iter().find(|folder| names(line, folder));
            if let Some(named) = machine.or(line.contains(OUTSIDE).then_some(OUTSIDE)) {
                problems.push(Problem(format!(
                    "{}:{}: names {named}, which does not exist on other computers",
                    file.path,
                    index + 1
                )));
            }
        }
    }
    problems
}

/// Whether the line has this absolute folder, and not only a longer path that contains it.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~*}]>)/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn an_absolute_place_is_a_problem_with_its_line() {
        for folder in MACHINE_FOLDERS {
            let text = format!("one\ncd {folder}main\n");
            let problems = check(&[file("docs/x.md", &text)]);
            assert_eq!(problems.len(), 1);
            assert!(problems[0].0.starts_with("docs/x.md:2:"), "{problems:?}");
        }
    }

    #[test]
    fn a_neighbour_of_the_checkout_is_a_problem() {
        assert_eq!(check(&[file("a.rs", &format!("include_str!(\"{OUTSIDE}/x\")"))]).len(), 1);
    }

    #[test]
    fn the_same_word_inside_a_longer_path_is_not() {
        let text =
            format!("~{0}repo and home{0}repo and https://example.org{0}", MACHINE_FOLDERS[0]);
        assert_eq!(check(&[file("docs/x.md", &text)]), []);
    }
}
