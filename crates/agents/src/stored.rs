//! Conversations that agents keep themselves, as lists show them.
//!
//! Not here: finding the files (`proxy`), what one agent's files say (`<agent>::stored`).

use domain::Timestamp;

/// An earlier conversation of an agent's own, as far as the head of its record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// As the agent names it.
    pub id: String,
    /// One line for people: its title, or its first words.
    pub title: Option<String>,
    /// Where it was held.
    pub workspace: Option<String>,
    /// When it was last added to; `None` where only the file's own time says.
    pub updated_at: Option<Timestamp>,
}
