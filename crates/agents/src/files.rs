//! Lists attachments as text, for agents that can read files but accept no attachments.
//!
//! Not here: downloading them (`proxy`), how an agent accepts pictures (the drivers).

use crate::{File, Image};

/// A person's words, and after them where the files lie that came with them.
pub fn words_with_files<'a>(words: &str, files: impl IntoIterator<Item = &'a File>) -> String {
    let lines: Vec<String> = files.into_iter().map(line).collect();
    if lines.is_empty() {
        return words.to_owned();
    }
    let list = format!("Attached files, on this machine:\n{}", lines.join("\n"));
    if words.trim().is_empty() { list } else { format!("{words}\n\n{list}") }
}

/// The same for an agent that may get pictures as such: those are not named again.
pub(crate) fn with_files(words: &str, files: &[File], takes_images: bool) -> String {
    words_with_files(words, files.iter().filter(|file| !takes_images || file.image.is_none()))
}

/// The pictures among the files, for an agent that takes them.
pub(crate) fn images(files: &[File], takes_images: bool) -> impl Iterator<Item = &Image> {
    files.iter().filter(move |_| takes_images).filter_map(|file| file.image.as_ref())
}

fn line(file: &File) -> String {
    // The name may say anything; it is kept on its line.
    let name: String = file.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("- {} ({name}, {} bytes)", file.path.display(), file.size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, image: Option<Image>) -> File {
        File { name: name.into(), path: "/data/f1".into(), size_bytes: 3, image }
    }

    #[test]
    fn files_are_named_after_the_words() {
        assert_eq!(words_with_files("look", []), "look");
        let told = words_with_files("look", [&file("a\nb.txt", None)]);
        assert_eq!(told, "look\n\nAttached files, on this machine:\n- /data/f1 (a b.txt, 3 bytes)");
        assert!(words_with_files(" ", [&file("a", None)]).starts_with("Attached"));
    }

    #[test]
    fn a_picture_is_named_only_to_an_agent_that_cannot_see_it() {
        let picture = Image { media_type: "image/png".to_owned(), base64: "AAAA".to_owned() };
        let files = [file("p.png", Some(picture))];
        assert_eq!(with_files("look", &files, true), "look");
        assert!(with_files("look", &files, false).contains("p.png"));
        assert_eq!(images(&files, true).count(), 1);
        assert_eq!(images(&files, false).count(), 0);
    }
}
