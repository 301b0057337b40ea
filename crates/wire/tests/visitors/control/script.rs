//! The words of this dialect's transcripts.

use domain::content::Part;
use domain::session::runs::Outcome;

use super::relay::Relay;
use crate::visitors::stage::script;

pub(crate) fn run(text: &str) {
    script::run(&mut Relay::new(), text, does);
}

fn does(relay: &mut Relay, words: &str) {
    let words: Vec<_> = words.splitn(3, ' ').collect();
    match words.as_slice() {
        ["asks", id] => relay.asks(id),
        ["obeys"] => relay.obey(None),
        ["obeys", run] => relay.obey(Some(run)),
        ["says", id, text] => relay.says(id, vec![Part::Text((*text).to_owned())]),
        ["starts", run] => relay.starts(run),
        ["ends", run] => relay.ends(run, Outcome::Completed),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}
