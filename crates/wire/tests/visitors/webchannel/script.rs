//! The words of this dialect's transcripts.

use domain::content::ToolStatus;
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
        ["says", id, text] => relay.says_text(id, text),
        ["streams", id, words] => relay.streams(id, 0, words),
        ["calls", id, input] => relay.calls(id, Some(input)),
        ["called", id, output] => relay.tool(id, ToolStatus::Completed, Some(output)),
        ["failed", id, output] => relay.tool(id, ToolStatus::Failed, Some(output)),
        ["starts", run] => relay.starts(run),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        ["offers", code] => relay.shell.codes = vec![((*code).to_owned(), domain::Role::Operator)],
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}
