//! Attachments for agents that are told of them in words.

use crate::{File, Image};

/// A person's words with the files that came with them. Pictures that the agent gets as such are
/// not named again.
pub(crate) fn with_files(text: &str, files: &[File], takes_images: bool) -> String {
    let mut named = files.iter().filter(|file| !takes_images || file.image.is_none()).peekable();
    if named.peek().is_none() {
        return text.to_owned();
    }
    let mut words = text.trim_end().to_owned();
    if !words.is_empty() {
        words.push_str("\n\n");
    }
    words.push_str("Attached files, on this machine:");
    for file in named {
        let name: String = file
            .name
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        words.push_str("\n- ");
        words.push_str(name.trim());
        words.push_str(": ");
        words.push_str(&file.path.to_string_lossy());
    }
    words
}

/// The pictures among the files, for an agent that takes them.
pub(crate) fn images(files: &[File], takes_images: bool) -> impl Iterator<Item = &Image> {
    files.iter().filter(move |_| takes_images).filter_map(|file| file.image.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, image: Option<Image>) -> File {
        File { name: name.to_owned(), path: "/data/f1".into(), size_bytes: 1, image }
    }

    fn picture() -> Image {
        Image { media_type: "image/png".to_owned(), base64: "AAAA".to_owned() }
    }

    #[test]
    fn files_are_named_with_their_paths_and_nothing_is_added_without_any() {
        assert_eq!(with_files("look", &[], true), "look");
        let words = with_files("look", &[file("a\nb.txt", None)], true);
        assert_eq!(words, "look\n\nAttached files, on this machine:\n- a b.txt: /data/f1");
        assert!(!with_files("", &[file("b.txt", None)], true).starts_with('\n'));
    }

    #[test]
    fn a_picture_is_named_only_to_an_agent_that_cannot_see_it() {
        let files = [file("p.png", Some(picture()))];
        assert_eq!(with_files("look", &files, true), "look");
        assert!(with_files("look", &files, false).contains("p.png: /data/f1"));
        assert_eq!(images(&files, true).count(), 1);
        assert_eq!(images(&files, false).count(), 0);
    }
}
