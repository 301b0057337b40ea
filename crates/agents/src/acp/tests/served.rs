//! Files, terminals and pictures.

use super::*;
use crate::{
    Exit, FileDeed, FileFault, FileFaultKind, FileJob, TerminalCommand, TerminalId, TerminalJob,
    TerminalNews,
};
use domain::content::ToolStatus;

impl Bench {
    fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.line(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(super) fn input(&mut self, input: Input) {
        let outputs = self.acp.on_input(input, self.now);
        self.hear(outputs);
    }

    fn news(&mut self, terminal: u64, news: TerminalNews) {
        self.input(Input::Terminal(TerminalId(terminal), news));
    }

    fn prints(&mut self, terminal: u64, text: &str) {
        self.news(terminal, TerminalNews::Printed(text.to_owned()));
    }

    /// What was answered to a request of theirs.
    fn answered(&self, id: u64) -> Vec<&Value> {
        let written = self.written.iter();
        written.filter(|line| line["id"] == id && line.get("method").is_none()).collect()
    }

    fn one_answer(&self, id: u64) -> &Value {
        let all = self.answered(id);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0]
    }

    fn jobs(&self) -> Vec<&FileJob> {
        let jobs = self.told.iter().filter_map(|output| match output {
            Output::File(job) => Some(job),
            _ => None,
        });
        jobs.collect()
    }

    fn terminal_jobs(&self) -> Vec<&TerminalJob> {
        let jobs = self.told.iter().filter_map(|output| match output {
            Output::Terminal(job) => Some(job),
            _ => None,
        });
        jobs.collect()
    }

    /// A terminal that runs, and the number of the request for it.
    fn terminal(&mut self, number: u64, limit: Option<u64>) {
        let params = json!({"sessionId": "c1", "command": "make", "outputByteLimit": limit});
        self.ask(1_000 + number, "terminal/create", params);
        self.news(number, TerminalNews::Opened);
        let id = format!("terminal-{number}");
        assert_eq!(self.one_answer(1_000 + number)["result"], json!({ "terminalId": id }));
    }
}

fn at_work() -> Bench {
    let mut bench = Bench::up("other");
    bench.deliver("m1", 1, "go");
    bench.take();
    bench
}

#[test]
fn what_is_served_is_declared_save_what_an_agent_had_better_do_itself() {
    let agents = [("gemini", false, true), ("other", true, true), ("opencode", true, false)];
    for (agent, reads, writes) in agents {
        let bench = Bench::new(agent);
        let capabilities = &bench.written[0]["params"]["clientCapabilities"];
        let expected =
            json!({"fs": {"readTextFile": reads, "writeTextFile": writes}, "terminal": true});
        assert_eq!(capabilities, &expected, "{agent}");
    }
}

#[test]
fn a_file_is_read_as_it_was_asked_for_and_answered_once() {
    let mut bench = at_work();
    let params = json!({"sessionId": "c1", "path": "/w/a.txt", "line": 3, "limit": 2});
    bench.ask(7, "fs/read_text_file", params);
    let deed = FileDeed::Read { line: Some(3), limit: Some(2) };
    let job = FileJob { number: 1, path: "/w/a.txt".into(), deed };
    assert_eq!(bench.jobs(), [&job]);
    assert_eq!(bench.answered(7).len(), 0);
    for _ in 0..2 {
        bench.input(Input::Filed { number: 1, outcome: Ok(Some("c\nd\n".to_owned())) });
    }
    assert_eq!(bench.one_answer(7)["result"], json!({"content": "c\nd\n"}));
}

#[test]
fn a_file_is_written_and_what_goes_wrong_is_an_error_in_words() {
    let mut bench = at_work();
    for id in 7..10 {
        bench.ask(id, "fs/write_text_file", json!({"path": "/w/a", "content": "x"}));
    }
    assert_eq!(bench.jobs().len(), 3);
    assert_eq!(bench.jobs()[2].deed, FileDeed::Write("x".to_owned()));
    bench.input(Input::Filed { number: 1, outcome: Ok(None) });
    assert_eq!(bench.one_answer(7)["result"], json!({}));
    let kinds = [(2, FileFaultKind::Refused), (3, FileFaultKind::Missing)];
    for (number, kind) in kinds {
        let fault = FileFault { kind, words: "why".to_owned() };
        bench.input(Input::Filed { number, outcome: Err(fault) });
    }
    assert_eq!(bench.one_answer(8)["error"], json!({"code": -32_602, "message": "why"}));
    assert_eq!(bench.one_answer(9)["error"]["code"], -32_002);
}

#[test]
fn requests_without_sense_or_without_end_are_refused() {
    let mut bench = at_work();
    bench.ask(1, "fs/write_text_file", json!({"path": "/w/a"}));
    bench.ask(2, "fs/read_text_file", json!({}));
    bench.ask(3, "terminal/create", json!({"command": " "}));
    bench.ask(4, "terminal/output", json!({"terminalId": "terminal-1"}));
    for id in 1..=4 {
        assert_eq!(bench.one_answer(id)["error"]["code"], -32_602, "{id}");
    }
    bench.ask(5, "terminal/dance", json!({}));
    assert_eq!(bench.one_answer(5)["error"]["code"], -32_601);
    for id in 100..1_100 {
        bench.ask(id, "fs/read_text_file", json!({"path": "/w/a"}));
    }
    assert_eq!(bench.jobs().len(), 64);
    assert_eq!(bench.one_answer(1_099)["error"]["code"], -32_603);
}

#[test]
fn a_write_that_is_only_announced_is_answered_and_not_done() {
    let mut bench = Bench::up("opencode");
    bench.ask(7, "fs/write_text_file", json!({"path": "/w/a", "content": "x"}));
    assert_eq!(bench.one_answer(7)["result"], json!({}));
    assert_eq!(bench.jobs().len(), 0);
}

#[test]
fn a_command_runs_in_the_workspace_unless_it_says_where_below_it() {
    let mut bench = at_work();
    let params = json!({"command": "npm", "args": ["test"], "cwd": "/w/sub",
        "env": [{"name": "A", "value": "b"}]});
    bench.ask(1, "terminal/create", params);
    let command = TerminalCommand {
        command: "npm".to_owned(),
        args: vec!["test".to_owned()],
        env: vec![("A".to_owned(), "b".to_owned())],
        folder: Some("/w/sub".into()),
    };
    let open = TerminalJob::Open(TerminalId(1), Box::new(command));
    assert_eq!(bench.terminal_jobs(), [&open]);
    assert_eq!(bench.answered(1).len(), 0, "it is not open yet");
    bench.news(1, TerminalNews::NotOpened(Failure::new("internal", "no such program")));
    assert_eq!(bench.one_answer(1)["error"]["message"], "no such program");
    bench.ask(2, "terminal/output", json!({"terminalId": "terminal-1"}));
    assert_eq!(bench.one_answer(2)["error"]["code"], -32_602);
}

#[test]
fn what_a_terminal_printed_is_told_while_it_runs_and_after() {
    let mut bench = at_work();
    bench.terminal(1, None);
    let named = json!({"terminalId": "terminal-1"});
    bench.ask(2, "terminal/wait_for_exit", named.clone());
    bench.prints(1, "one\n");
    bench.ask(3, "terminal/output", named.clone());
    assert_eq!(bench.one_answer(3)["result"], json!({"output": "one\n", "truncated": false}));
    assert_eq!(bench.answered(2).len(), 0);
    bench.prints(1, "two\n");
    bench.news(1, TerminalNews::Ended(Exit::Code(3)));
    assert_eq!(bench.one_answer(2)["result"], json!({"exitCode": 3, "signal": null}));
    bench.ask(4, "terminal/output", named.clone());
    let told = &bench.one_answer(4)["result"];
    assert_eq!(told["output"], "one\ntwo\n");
    assert_eq!(told["exitStatus"], json!({"exitCode": 3, "signal": null}));
    bench.ask(5, "terminal/wait_for_exit", named.clone());
    assert_eq!(bench.one_answer(5)["result"]["exitCode"], 3);
    bench.take();
    bench.ask(6, "terminal/release", named.clone());
    assert_eq!(bench.one_answer(6)["result"], json!({}));
    assert_eq!(bench.terminal_jobs().len(), 0, "it was over");
    bench.ask(7, "terminal/output", named);
    assert_eq!(bench.one_answer(7)["error"]["code"], -32_602);
}

#[test]
fn output_is_cut_from_its_start_between_characters() {
    let mut bench = at_work();
    bench.terminal(1, Some(5));
    bench.prints(1, "aäö");
    bench.prints(1, "ü");
    bench.ask(2, "terminal/output", json!({"terminalId": "terminal-1"}));
    assert_eq!(bench.one_answer(2)["result"], json!({"output": "öü", "truncated": true}));
    bench.terminal(2, None);
    for _ in 0..40 {
        bench.prints(2, &"x".repeat(64 << 10));
    }
    bench.ask(3, "terminal/output", json!({"terminalId": "terminal-2"}));
    let told = &bench.one_answer(3)["result"];
    assert_eq!(told["output"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(told["truncated"], true);
}

#[test]
fn a_terminal_is_killed_on_request_and_with_its_release() {
    let mut bench = at_work();
    bench.terminal(1, None);
    bench.terminal(2, None);
    bench.take();
    bench.ask(1, "terminal/kill", json!({"terminalId": "terminal-1"}));
    bench.ask(2, "terminal/wait_for_exit", json!({"terminalId": "terminal-1"}));
    bench.ask(3, "terminal/wait_for_exit", json!({"terminalId": "terminal-2"}));
    bench.ask(4, "terminal/release", json!({"terminalId": "terminal-2"}));
    let kills = [TerminalJob::Kill(TerminalId(1)), TerminalJob::Kill(TerminalId(2))];
    assert_eq!(bench.terminal_jobs(), [&kills[0], &kills[1]]);
    assert_eq!(bench.one_answer(1)["result"], json!({}));
    bench.news(1, TerminalNews::Ended(Exit::Signal(9)));
    assert_eq!(bench.one_answer(2)["result"], json!({"exitCode": null, "signal": "SIGKILL"}));
    assert_eq!(bench.one_answer(3)["error"]["message"], "The terminal was released");
    assert_eq!(bench.one_answer(4)["result"], json!({}));
    bench.news(2, TerminalNews::Ended(Exit::Signal(9)));
    assert_eq!(bench.answered(3).len(), 1);
}

#[test]
fn of_a_thousand_terminals_as_many_are_opened_as_there_may_be() {
    let mut bench = at_work();
    for id in 1..=1_000 {
        bench.ask(id, "terminal/create", json!({"command": "sleep", "args": ["9"]}));
    }
    assert_eq!(bench.terminal_jobs().len(), 32);
    let words = bench.one_answer(1_000)["error"]["message"].as_str().unwrap();
    assert!(words.contains("release"), "{words}");
    bench.news(1, TerminalNews::Opened);
    bench.ask(2_000, "terminal/release", json!({"terminalId": "terminal-1"}));
    bench.ask(2_001, "terminal/create", json!({"command": "ls"}));
    assert_eq!(bench.answered(2_001).len(), 0, "there is room again");
}

#[test]
fn people_see_what_the_terminal_of_a_tool_call_prints_and_all_of_it_in_the_end() {
    let mut bench = at_work();
    bench.terminal(1, None);
    bench.prints(1, "early\n");
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "make",
        "kind": "execute", "status": "in_progress",
        "content": [{"type": "terminal", "terminalId": "terminal-1"}]}));
    let outputs = |bench: &Bench| -> Vec<(ToolStatus, Option<String>)> {
        let updates = bench.tool_updates();
        let output =
            |update: &&ToolUpdate| (update.status, update.detail.open().unwrap().output.clone());
        updates.iter().map(output).collect()
    };
    let begun = bench.tools()[0].detail.open().unwrap().output.clone();
    assert_eq!(begun.as_deref(), Some("early\n"));
    bench.prints(1, "more\n");
    assert_eq!(outputs(&bench), [(ToolStatus::Running, Some("early\nmore\n".to_owned()))]);
    // So soon that it is not told by itself.
    bench.prints(1, "last\n");
    assert_eq!(outputs(&bench).len(), 1);
    bench.news(1, TerminalNews::Ended(Exit::Code(0)));
    bench.ask(2, "terminal/release", json!({"terminalId": "terminal-1"}));
    bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "status": "completed", "content": [{"type": "terminal", "terminalId": "terminal-1"}]}));
    let whole = Some("early\nmore\nlast\n".to_owned());
    assert_eq!(outputs(&bench)[1], (ToolStatus::Completed, whole));
}

#[test]
fn a_program_that_ended_waits_for_nothing_and_its_successor_hears_nothing_of_it() {
    let mut bench = at_work();
    bench.terminal(1, None);
    bench.ask(2, "terminal/wait_for_exit", json!({"terminalId": "terminal-1"}));
    bench.ask(3, "fs/read_text_file", json!({"path": "/w/a"}));
    bench.ended(Ended::Killed(9));
    bench.written.clear();
    bench.news(1, TerminalNews::Ended(Exit::Signal(9)));
    bench.input(Input::Filed { number: 1, outcome: Ok(Some("x".to_owned())) });
    assert_eq!(bench.written, Vec::<Value>::new());
}

#[test]
fn a_session_with_a_command_that_runs_is_not_at_rest() {
    let mut bench = Bench::up("opencode");
    assert!(bench.acp.is_at_rest());
    bench.terminal(1, None);
    assert!(!bench.acp.is_at_rest());
    bench.news(1, TerminalNews::Ended(Exit::Code(0)));
    assert!(bench.acp.is_at_rest());
}

#[test]
fn a_picture_of_the_agent_becomes_a_message_when_it_is_kept() {
    let mut bench = at_work();
    bench.says("look: ");
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
    bench.update(json!({"sessionUpdate": "agent_message_chunk", "content": image}));
    bench.says("nice");
    let picture = bench.told.iter().find_map(|output| match output {
        Output::Keep(picture) => Some(picture.clone()),
        _ => None,
    });
    let picture = picture.unwrap();
    assert_eq!((picture.name.as_str(), picture.base64.as_str()), ("picture.png", "AAAA"));
    for _ in 0..2 {
        let message = picture.message.clone();
        bench.input(Input::Kept { message, outcome: Ok("upl_1".into()) });
    }
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    let messages = bench.messages();
    assert_eq!(messages.len(), 3, "{messages:?}");
    let [Part::Image(file)] = messages[1].parts.open().unwrap().as_slice() else {
        panic!("{messages:?}")
    };
    assert_eq!(file.id, "upl_1".into());
    assert_eq!(file.media_type.as_deref(), Some("image/png"));
    assert!(messages[1].run.is_some());
}

#[test]
fn a_picture_of_a_tool_is_kept_once_however_often_it_is_told() {
    let mut bench = at_work();
    let image = json!({"type": "content",
        "content": {"type": "image", "mimeType": "image/png", "data": "AAAA"}});
    for (kind, status) in [("tool_call", "in_progress"), ("tool_call_update", "completed")] {
        bench.update(json!({"sessionUpdate": kind, "toolCallId": "t1", "name": "screenshot",
            "status": status, "content": [image]}));
    }
    let kept: Vec<_> = bench
        .told
        .iter()
        .filter_map(|output| match output {
            Output::Keep(picture) => Some(picture.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(kept, ["screenshot.png"]);
}

#[test]
fn a_picture_that_cannot_be_kept_is_told_in_words() {
    let mut bench = at_work();
    let long = "A".repeat(15 << 20);
    for (kind, data) in [("image/png", long.as_str()), ("text/html", "AAAA"), ("image/png", "AAAA")]
    {
        let image = json!({"type": "image", "mimeType": kind, "data": data});
        bench.update(json!({"sessionUpdate": "agent_message_chunk", "content": image}));
    }
    let kept: Vec<_> = bench
        .told
        .iter()
        .filter_map(|output| match output {
            Output::Keep(picture) => Some(picture.message.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(kept.len(), 1);
    let failure = Failure::new("disk_full", "the disk is full");
    bench.input(Input::Kept { message: kept[0].clone(), outcome: Err(failure) });
    let texts = bench.texts();
    assert_eq!(texts.len(), 3);
    for (text, why) in texts.iter().zip(["10 MiB", "its type", "the disk is full"]) {
        assert!(text.contains(why), "{text}");
    }
}
