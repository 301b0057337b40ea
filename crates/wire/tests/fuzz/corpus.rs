//! The frames of a dialect's fixtures, as they are and spoilt.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::fuzz::chance::Chance;
use crate::fuzz::dialects::Dialect;
use crate::fuzz::spoil;

/// What can be said.
#[derive(Debug)]
pub(crate) struct Corpus {
    frames: Vec<Value>,
}

impl Corpus {
    /// Everything that is JSON in the fixtures of a dialect, in a fixed order.
    pub(crate) fn of(dialect: &Dialect) -> Self {
        let name = dialect.name.split(' ').next().unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
        let entries = fs::read_dir(&folder).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let mut frames = vec![];
        for path in paths {
            let text = fs::read_to_string(&path).unwrap();
            if path.extension().is_some_and(|it| it == "json") {
                frames.extend(serde_json::from_str::<Value>(&text).ok());
                continue;
            }
            let spoken = text.lines().filter_map(|line| line.find('{').map(|at| &line[at..]));
            frames.extend(spoken.filter_map(|frame| serde_json::from_str(frame).ok()));
        }
        assert!(frames.len() > 10, "{} has next to nothing", folder.display());
        Self { frames }
    }

    /// Something to say. `words` were heard before: names that mean something.
    pub(crate) fn frame(&self, chance: &mut Chance, words: &[String]) -> String {
        let mut frame = self.any(chance).clone();
        // Text that is no JSON mostly ends the connection: rarely, so that a case goes on.
        match chance.below(40) {
            0 => spoil::noise(chance),
            1 => {
                let other = self.any(chance).to_string();
                spoil::text(chance, &frame.to_string(), &other)
            }
            2..=19 => {
                for _ in 0..=chance.below(3) {
                    spoil::value(chance, &mut frame, words);
                }
                frame.to_string()
            }
            _ => {
                spoil::rename(chance, &mut frame, words);
                frame.to_string()
            }
        }
    }

    fn any(&self, chance: &mut Chance) -> &Value {
        &self.frames[chance.place(self.frames.len())]
    }
}
