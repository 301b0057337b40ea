//! Pictures waiting for upload, and a proxy that dies meanwhile.

use agents::{Driver, Kept, Scribe};
use domain::content::Failure;

use super::*;

/// Shows a picture with every line of its program.
#[derive(Debug, Default)]
struct Painter(Scribe);

impl Driver for Painter {
    fn start(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_order(&mut self, order: &AgentOrder, _: Timestamp) -> Vec<Output> {
        if let AgentOrder::Control { request, .. } = order {
            let reason = domain::session::status::CloseReason::UserRequested;
            self.0.closed(reason, Some(request.clone()));
        }
        self.0.take()
    }

    fn on_input(&mut self, input: AgentInput, now: Timestamp) -> Vec<Output> {
        match input {
            AgentInput::Line(data) => self.0.picture("shot", ("image/png", &data), None, now),
            AgentInput::Kept { message, outcome } => self.0.kept(&message, outcome),
            AgentInput::Held(picture) => self.0.held(picture),
            AgentInput::Complaint(_)
            | AgentInput::Ended(_)
            | AgentInput::Read { .. }
            | AgentInput::Filed { .. }
            | AgentInput::Panel(_)
            | AgentInput::Terminal(..) => {}
        }
        self.0.take()
    }

    fn on_deadline(&mut self, _: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}

fn world() -> World {
    let mut world = World::driven_by(|| Box::new(|_, _, _| Box::new(Painter::default())));
    world.connect();
    world
}

impl World {
    fn paint(&mut self) -> (SessionId, Picture) {
        let session = self.demo();
        let line = AgentInput::Line("AAAA".to_owned());
        self.handle([Input::Agent(session, line)]).unwrap();
        self.pictures.pop().unwrap()
    }

    fn kept(&mut self, (session, picture): &(SessionId, Picture), outcome: Kept) -> bool {
        let message = picture.message.clone();
        let input = Input::Agent(session.clone(), AgentInput::Kept { message, outcome });
        self.handle([input]).is_ok()
    }

    /// The messages that the relay heard, each as it is written.
    fn messages(&self) -> Vec<String> {
        self.of("proxy_message").iter().map(ToString::to_string).collect()
    }
}

#[test]
fn a_picture_that_was_on_its_way_when_the_proxy_died_is_handed_over_by_the_next() {
    for crash in CRASHES {
        let mut world = world();
        let asked = world.paint();
        world.crash(crash);
        world.connect();
        assert_eq!(world.messages(), Vec::<String>::new());
        assert_eq!(world.pictures, std::slice::from_ref(&asked), "{crash:?}");
        assert!(world.kept(&asked, Ok("upl_1".into())));
        let told = world.messages();
        assert!(told.len() == 1 && told[0].contains("upl_1"), "{crash:?}: {told:?}");
        assert_eq!(world.records.held(&asked.0), []);
        world.crash(crash);
        world.connect();
        assert_eq!((world.messages().len(), world.pictures.len()), (1, 0), "{crash:?}");
    }
}

#[test]
fn a_picture_is_held_until_its_message_is_on_disk() {
    let mut world = world();
    let asked = world.paint();
    world.disk.fail_at(0);
    assert!(!world.kept(&asked, Ok("upl_1".into())));
    world.crash(Crash::KeepsNone);
    world.connect();
    assert_eq!(world.pictures, [asked]);
}

#[test]
fn a_picture_that_came_to_nothing_is_told_in_words_and_held_no_longer() {
    let mut world = world();
    let asked = world.paint();
    world.crash(Crash::KeepsAll);
    world.connect();
    assert!(world.kept(&asked, Err(Failure::new("internal", "the relay is full"))));
    let told = world.messages();
    assert!(told.len() == 1 && told[0].contains("the relay is full"), "{told:?}");
    assert_eq!(world.records.held(&asked.0), []);
}

#[test]
fn the_pictures_of_a_session_that_was_closed_are_forgotten() {
    let mut world = world();
    let asked = world.paint();
    world.offer(&control(&asked.0, "r1", Control::Close)).unwrap();
    assert_eq!(world.records.held(&asked.0), []);
}
