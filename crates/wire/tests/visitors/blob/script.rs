//! The words of this dialect's transcripts.

use domain::content::ToolStatus;
use domain::session::runs::Outcome;

use super::relay::Relay;
use crate::visitors::stage::script;

pub(crate) fn run(text: &str) {
    script::run(&mut Relay::new(), text, does);
}

fn does(relay: &mut Relay, words: &str) {
    let words: Vec<_> = words.splitn(4, ' ').collect();
    match words.as_slice() {
        ["asks", id] => relay.asks(id),
        ["obeys"] => relay.obey(None),
        ["obeys", run] => relay.obey(Some(run)),
        ["refuses", code] => relay.refuse(code),
        ["says", id, text @ ..] => relay.says_text(id, &text.join(" ")),
        ["streams", id, offset, text] => relay.streams(id, offset.parse().unwrap(), text),
        ["calls", id, tool, input] => relay.calls(id, tool, input),
        ["returns", id, output @ ..] => {
            relay.returns(id, ToolStatus::Completed, &output.join(" "));
        }
        ["breaks", id, output @ ..] => relay.returns(id, ToolStatus::Failed, &output.join(" ")),
        ["starts", run] => relay.starts(run),
        ["ends", run] => relay.ends(run, Outcome::Completed),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        ["fails", run, text @ ..] => relay.ends(run, Outcome::Failed(text.join(" "))),
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}
