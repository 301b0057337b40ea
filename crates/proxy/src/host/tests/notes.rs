//! Notes of drivers, and that they do not grow forever.

use agents::Driver;

use super::*;

/// Notes that it is ready, and then whatever its program says; of that the newest counts.
#[derive(Debug)]
struct Noter;

impl Driver for Noter {
    fn start(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_order(&mut self, _: &AgentOrder, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_input(&mut self, input: AgentInput, _: Timestamp) -> Vec<Output> {
        let AgentInput::Line(line) = input else { return vec![] };
        vec![Output::Remember(line)]
    }

    fn on_deadline(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        let first = notes.lines().next()?;
        let last = notes.lines().last()?;
        Some(format!("{first}\n{last}\n"))
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

#[test]
fn notes_that_grow_long_are_shortened_and_the_line_that_is_written_once_stays() {
    let mut world = World::driven_by(|| Box::new(|_, _, _| Box::new(Noter)));
    let session = world.demo();
    let mut note = |line: String| {
        let input = Input::Agent(session.clone(), AgentInput::Line(line));
        world.handle([input]).unwrap();
        world.records.lines(&session)
    };
    note("ready".to_owned());
    let mut longest = 0;
    for number in 0..64 {
        let lines = note(format!("{number} {}", "x".repeat(64 << 10)));
        assert_eq!(lines[0], "ready");
        assert!(lines.last().unwrap().starts_with(&format!("{number} ")));
        longest = longest.max(lines.iter().map(String::len).sum());
    }
    assert!(longest < 2 << 20, "{longest} bytes");
}
