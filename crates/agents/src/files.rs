//! Attachments, put into words for agents that read files but take none.
//!
//! Not here: fetching them (`proxy`), how an agent takes pictures (the drivers).

use crate::File;

/// A person's words, and after them where the files lie that came with them.
pub fn words_with_files<'a>(words: &str, files: impl IntoIterator<Item = &'a File>) -> String {
    let lines: Vec<String> = files.into_iter().map(line).collect();
    if lines.is_empty() {
        return words.to_owned();
    }
    let list = format!("Attached files, on this machine:\n{}", lines.join("\n"));
    if words.trim().is_empty() { list } else { format!("{words}\n\n{list}") }
}

fn line(file: &File) -> String {
    // The name may say anything; it is kept on its line.
    let name: String = file.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("- {} ({name}, {} bytes)", file.path.display(), file.size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> File {
        File { name: name.into(), path: "/data/f1".into(), size_bytes: 3, image: None }
    }

    #[test]
    fn files_are_named_after_the_words() {
        assert_eq!(words_with_files("look", []), "look");
        let told = words_with_files("look", [&file("a\nb.txt")]);
        assert_eq!(told, "look\n\nAttached files, on this machine:\n- /data/f1 (a b.txt, 3 bytes)");
        assert!(words_with_files(" ", [&file("a")]).starts_with("Attached"));
    }
}
