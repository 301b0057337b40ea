//! A conversation from bytes, for fuzzing that is led by coverage: one line is one frame.
//!
//! The targets in `fuzz/` and the test that replays `fixtures/fuzz` play the same. Nothing may
//! panic, everything that is sent must be JSON, and what can be written must read back.
//!
//! | line | |
//! |---|---|
//! | `-`, as the first | the client does not say hello before the others |
//! | `~` and a verb (`verbs`) | that happens in a session |
//! | `~` and anything else | something happens in a session |
//! | `+` | twenty seconds pass |
//! | `!` | the client was too slow |
//! | anything else | a frame (`sealing` says what a webchannel client may leave out of it) |

use domain::Timestamp;
use domain::session::Report;
use wire::native::frames::{ClientFrame, RelayFrame};
use wire::native::proxy_frames::{
    FromRelay, encode_order, encode_report, link_number, read_from_relay, read_report,
};
use wire::native::shapes::Envelope;

use crate::fuzz::chance::Chance;
use crate::fuzz::dialects::DIALECTS;
use crate::fuzz::world::World;
use crate::fuzz::{sealing, verbs};

/// Frames of one conversation; more say nothing new.
const LINES_MAX: usize = 100;
const NOW: Timestamp = Timestamp(1_773_915_330_000);

/// A name, and what is done with an input.
type Target = (&'static str, fn(&[u8]));

/// One for each folder of `fixtures/fuzz` whose inputs are frames.
pub(crate) const TARGETS: [Target; 7] = [
    ("native_client", native_client),
    ("native_proxy", native_proxy),
    ("link", link),
    ("blob", blob),
    ("pi", pi),
    ("control", control),
    ("webchannel", webchannel),
];

/// What a native client says.
pub(crate) fn native_client(bytes: &[u8]) {
    for line in texts(bytes) {
        if let Ok((envelope, frame)) = ClientFrame::parse(line) {
            let written = frame.encode(envelope.clone());
            let again = ClientFrame::parse(std::str::from_utf8(&written).unwrap());
            assert_eq!(again, Ok((envelope, frame)));
        }
        if let Ok((envelope, frame)) = RelayFrame::parse(line) {
            let written = frame.encode(envelope.clone());
            let again = RelayFrame::parse(std::str::from_utf8(&written).unwrap());
            assert_eq!(again, Ok((envelope, frame)));
        }
    }
    play("native", bytes);
}

/// What a proxy says to the relay.
pub(crate) fn native_proxy(bytes: &[u8]) {
    play("native proxy", bytes);
}

/// What proxy and relay say to each other, frame by frame.
pub(crate) fn link(bytes: &[u8]) {
    for line in texts(bytes) {
        if let Ok(FromRelay::Order(session, order)) = read_from_relay(line) {
            let written = encode_order(&session, &order, false, NOW);
            let again = read_from_relay(std::str::from_utf8(&written).unwrap());
            assert_eq!(again, Ok(FromRelay::Order(session, order)));
        }
        let Ok(envelope) = Envelope::read(line) else { continue };
        let read =
            |envelope: &Envelope, text: &str| read_report(envelope, text, || "unnamed".into(), NOW);
        let Ok(Some((session, mut report))) = read(&envelope, line) else { continue };
        without_digest(&mut report);
        let written = encode_report(&session, &report, Some("agent_interrupt"), Some(7), NOW);
        let written = std::str::from_utf8(&written).unwrap();
        assert_eq!(link_number(written), Ok(Some(7)));
        let (session_again, mut again) =
            read(&Envelope::read(written).unwrap(), written).unwrap().unwrap();
        without_digest(&mut again);
        assert_eq!((session_again, again), (session, report));
    }
}

/// A message without an id is recognised by a digest of what was said, also of the time, which a
/// written message always has.
fn without_digest(report: &mut Report) {
    if let Report::Message { message, .. } = report {
        message.digest = None;
    }
}

/// What a client says in this dialect.
pub(crate) fn blob(bytes: &[u8]) {
    play("blob", bytes);
}

/// What a client says in this dialect.
pub(crate) fn pi(bytes: &[u8]) {
    play("pi", bytes);
}

/// What a client says in this dialect.
pub(crate) fn control(bytes: &[u8]) {
    play("control", bytes);
}

/// What a client says in this dialect.
pub(crate) fn webchannel(bytes: &[u8]) {
    play("webchannel", bytes);
}

/// Plays a conversation in this dialect, and gives what came of it.
pub(crate) fn play(name: &str, bytes: &[u8]) -> World {
    let dialect = DIALECTS.iter().find(|dialect| dialect.name == name).unwrap();
    let (mut world, mut order) = (World::new(), Chance::new(0));
    let mut peer = (dialect.open)(&mut world);
    peer.start(&mut world);
    peer.answer(&mut world, &mut order, true);
    let mut lines = texts(bytes).peekable();
    if lines.next_if_eq(&"-").is_none() {
        for text in dialect.first {
            peer.says(&mut world, text);
            peer.answer(&mut world, &mut order, true);
        }
    }
    for line in lines {
        if peer.is_closed() {
            break;
        }
        match line.as_bytes().first() {
            Some(b'~') if verbs::does(&mut world, peer.as_mut(), &line[1..]) => {}
            Some(b'~') => {
                let seed = line
                    .bytes()
                    .fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
                world.goes_on(&mut Chance::new(seed), peer.as_mut());
            }
            Some(b'+') => world.waits(20_000, peer.as_mut()),
            Some(b'!') => peer.lags(&mut world),
            Some(_) | None => {
                let frame = sealing::said(&world, line);
                peer.says(&mut world, &frame);
            }
        }
        peer.answer(&mut world, &mut order, true);
    }
    world
}

fn texts(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let lines = bytes.split(|byte| *byte == b'\n').take(LINES_MAX);
    lines.filter_map(|line| std::str::from_utf8(line).ok())
}
