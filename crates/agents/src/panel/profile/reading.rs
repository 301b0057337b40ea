//! Reads a profile from TOML, and reports the line of everything that is wrong with it.
//!
//! Not here: which files there are (`proxy`).

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Profile;
use super::checking::{Step, check};

/// Bytes of one profile. A longer one is not read.
const PROFILE_BYTES_MAX: usize = 256 * 1024;

/// Something wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFault {
    /// Where, from 1; `None` for the whole.
    pub line: Option<usize>,
    /// What, in words for a person.
    pub words: String,
}

impl fmt::Display for ProfileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.words),
            None => f.write_str(&self.words),
        }
    }
}

impl Profile {
    /// The profile that a text says, or everything that is wrong with it.
    pub fn read(text: &str) -> Result<Self, Vec<ProfileFault>> {
        if text.len() > PROFILE_BYTES_MAX {
            let words = format!("The profile is larger than {PROFILE_BYTES_MAX} bytes");
            return Err(vec![ProfileFault { line: None, words }]);
        }
        let profile: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| line_of(text, span.start));
            vec![ProfileFault { line, words: error.message().to_owned() }]
        })?;
        let wrong = check(&profile);
        if wrong.is_empty() {
            return Ok(profile);
        }
        let places = DeTable::parse(text).ok();
        let mut faults: Vec<_> = wrong
            .into_iter()
            .map(|(path, words)| {
                let place = places.as_ref().and_then(|table| place(table, &path));
                ProfileFault { line: place.map(|at| line_of(text, at)), words }
            })
            .collect();
        faults.sort_by_key(|fault| fault.line);
        Err(faults)
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Where a path is written, or the nearest thing around it.
fn place(table: &Spanned<DeTable<'_>>, path: &[Step]) -> Option<usize> {
    let Some((Step::Key(first), rest)) = path.split_first() else { return None };
    let (key, value) = table.get_ref().get_key_value(*first)?;
    Some(place_in(value, rest).unwrap_or(key.span().start))
}

fn place_in(value: &Spanned<DeValue<'_>>, path: &[Step]) -> Option<usize> {
    let Some((step, rest)) = path.split_first() else { return Some(value.span().start) };
    match (step, value.get_ref()) {
        (Step::Key(name), DeValue::Table(table)) => {
            let (key, value) = table.get_key_value(*name)?;
            Some(place_in(value, rest).unwrap_or(key.span().start))
        }
        (Step::At(at), DeValue::Array(array)) => {
            let value = array.get(*at)?;
            Some(place_in(value, rest).unwrap_or(value.span().start))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
id = "test-panel"
revision = 1
display_name = "Test"

[target]
kind = "page"
scope = [".panel"]

[composer]
any = ["textarea"]
editor = "textarea"

[send]
any = ["button.send"]
ladder = ["mouse"]

[transcript]
root = [".rows"]
row = ".row"
roles = [
    { matches = ".user", role = "user" },
    { matches = ".agent", role = "assistant" },
]

[prompt]
root = [".dialog"]
buttons = "button"
choices = [
    { id = "allow", label = "^Allow$", effect = "allow_once" },
    { id = "deny", label = "(?i)^deny", effect = "reject" },
]
"#;

    fn faults(from: &str, to: &str) -> Vec<String> {
        assert!(GOOD.contains(from), "{from}");
        let faults = Profile::read(&GOOD.replacen(from, to, 1)).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_whole_profile_is_read() {
        let profile = Profile::read(GOOD).unwrap();
        assert_eq!(profile.id, "test-panel");
        assert_eq!(profile.prompt.unwrap().choices.len(), 2);
    }

    #[test]
    fn what_is_no_toml_and_what_nobody_knows_is_told_with_its_line() {
        assert!(faults("revision = 1", "revision = ")[0].starts_with("line 3: "));
        let told = faults("ladder = [\"mouse\"]", "ladder = [\"mouse\"]\nwrong = 1");
        assert!(told[0].starts_with("line 17: ") && told[0].contains("wrong"), "{told:?}");
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_told_with_its_line() {
        let told = faults("^Allow$", "^(Allow$");
        assert!(told[0].starts_with("line 30: prompt.choices.0.label"), "{told:?}");
    }

    #[test]
    fn a_pattern_that_a_page_reads_otherwise_is_refused() {
        let told = faults("^Allow$", "(?P<a>Allow)");
        assert!(told[0].contains("(?i)"), "{told:?}");
    }

    #[test]
    fn a_dialog_without_a_way_to_say_no_is_refused() {
        let told = faults("effect = \"reject\"", "effect = \"allow_once\"");
        assert!(
            told[0].contains("line 29: prompt.choices") && told[0].contains("reject"),
            "{told:?}"
        );
    }

    #[test]
    fn a_list_without_an_entry_and_a_broken_selector_are_told() {
        assert!(faults("any = [\"textarea\"]", "any = []")[0].starts_with("line 11: composer.any"));
        assert!(faults("button.send", "button[class='x]")[0].contains("line 15: send.any.0"));
    }

    #[test]
    fn all_faults_are_told_at_once_in_their_order() {
        let text = GOOD.replace("\"test-panel\"", "\"Test Panel\"").replace("^Allow$", "(");
        let lines: Vec<_> =
            Profile::read(&text).unwrap_err().iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [Some(2), Some(30)]);
    }

    #[test]
    fn a_profile_that_would_match_every_page_is_refused() {
        assert!(faults("scope = [\".panel\"]\n", "")[0].contains("every page"));
    }
}
