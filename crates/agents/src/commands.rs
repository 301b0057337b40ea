//! Slash commands of agents, in a size that can be shown.

use domain::session::config::SlashCommand;

/// Commands that are told; more are left out.
const COMMANDS_MAX: usize = 256;
/// Letters of a name, and of what it is for.
const NAME_MAX: usize = 100;
const DESCRIPTION_MAX: usize = 160;

/// Commands as an agent lists them: names, without the slash, and what each is for.
pub(crate) fn slash_commands<'a>(
    listed: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Vec<SlashCommand> {
    let named = listed.into_iter().filter_map(|(name, description)| {
        let name = name.trim().trim_start_matches('/');
        // Some name a command and its first word together, as in `memory show`.
        let is_one_line = !name.chars().any(char::is_control);
        let is_name = !name.is_empty() && name.chars().count() <= NAME_MAX && is_one_line;
        is_name
            .then(|| SlashCommand { name: name.to_owned(), description: first_line(description) })
    });
    named.take(COMMANDS_MAX).collect()
}

fn first_line(description: Option<&str>) -> Option<String> {
    let line = description?.trim().lines().next()?;
    let mut short: String = line.chars().take(DESCRIPTION_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_left_out_and_what_is_long_is_cut() {
        let long = "d".repeat(1_000);
        let told = slash_commands([
            ("/compact", Some("Makes room\nin two lines")),
            ("two\nlines", None),
            ("memory show", None),
            ("", None),
            ("review", Some(long.as_str())),
        ]);
        let names: Vec<_> = told.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["compact", "memory show", "review"]);
        assert_eq!(told[0].description.as_deref(), Some("Makes room"));
        assert_eq!(told[2].description.as_ref().map(|it| it.chars().count()), Some(161));
        let many: Vec<String> = (0..1_000).map(|number| format!("c{number}")).collect();
        let told = slash_commands(many.iter().map(|name| (name.as_str(), None)));
        assert_eq!(told.len(), COMMANDS_MAX);
    }
}
