//! The titles that the browser reports for targets.
//!
//! Not here: which targets there are (`port`), what is in them (`watcher`).

/// What a target is called now.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct About {
    pub(super) window: String,
    pub(super) window_title: String,
    pub(super) window_url: String,
    pub(super) url: String,
}

impl About {
    /// Whether the window has its name. While a page loads, browsers show its address instead.
    pub(super) fn is_named(&self) -> bool {
        let place = self.window_url.split_once("://").map_or("", |(_, place)| place);
        let host = place.split(['/', '?', '#']).next().unwrap_or_default();
        !self.window_title.is_empty() && (host.is_empty() || !self.window_title.starts_with(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_no_name_of_a_window() {
        let named = |title: &str, url: &str| {
            let (window_title, window_url) = (title.to_owned(), url.to_owned());
            About { window_title, window_url, ..About::default() }.is_named()
        };
        let url = "http://127.0.0.1:8390/?folder=/src/a%20-%20b";
        assert!(named("main.rs - kite - Visual Studio Code", url));
        assert!(!named("127.0.0.1:8390/?folder=/src/a - b", url));
        assert!(!named("", url));
        assert!(named("kite - Cursor", "vscode-file://vscode-app/workbench.html"));
        assert!(!named("vscode-app/workbench.html", "vscode-file://vscode-app/workbench.html"));
    }
}
