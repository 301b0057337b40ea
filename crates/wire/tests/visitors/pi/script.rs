//! The words of this dialect's transcripts.

use domain::content::{Part, ToolStatus};
use domain::session::prompts::Effect;
use domain::session::runs::Outcome;

use super::relay::Relay;
use crate::visitors::stage::machine::YES_NO;
use crate::visitors::stage::script;

pub(crate) fn run(text: &str) {
    script::run(&mut Relay::new(), text, does);
}

fn does(relay: &mut Relay, words: &str) {
    let words: Vec<_> = words.splitn(3, ' ').collect();
    match words.as_slice() {
        ["asks", id] => relay.asks(id, &YES_NO),
        ["chooses", id] => {
            let more = [("always", Some(Effect::AllowAlways))];
            relay.asks(id, &[&YES_NO[..], &more[..]].concat());
        }
        ["obeys"] => relay.obey(None),
        ["obeys", run] => relay.obey(Some(run)),
        ["says", id, text] => relay.says(id, vec![Part::Text((*text).to_owned())]),
        ["streams", id, text] => relay.streams(id, 0, text),
        ["calls", id, input] => relay.calls(id, input),
        ["prints", id, output] => relay.tool(id, ToolStatus::Running, Some(output)),
        ["returns", id, output] => relay.tool(id, ToolStatus::Completed, Some(output)),
        ["knows", "model", model] => relay.configures(model, "low"),
        ["another", id, folder] => relay.add(id, folder),
        ["starts", run] => relay.starts(run),
        ["ends", run] => relay.ends(run, Outcome::Completed),
        ["stops", run] => relay.ends(run, Outcome::Interrupted),
        unknown => panic!("{unknown:?} is no word of a transcript"),
    }
}
