//! Files and terminals, for a small program that speaks ACP, and for hostile ones.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind among all")]

use agents::acp::Acp;
use agents::{
    Driver, Exit, Launcher, Order, Output, Setup, TerminalCommand, TerminalId, TerminalJob,
    TerminalNews,
};
use domain::session::Report;
use domain::session::delivery::Send;
use domain::{Content, Sequence, Timestamp};
use serde_json::{Value, json};

use super::*;

impl Bench {
    fn open(&mut self, number: u64, script: &str) {
        self.open_with(number, script, vec![]);
    }

    fn open_with(&mut self, number: u64, script: &str, env: Vec<(String, String)>) {
        let command = TerminalCommand {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env,
            folder: None,
        };
        self.act(Act::Terminal(TerminalJob::Open(TerminalId(number), Box::new(command))));
    }

    /// The next news of any terminal.
    async fn news(&mut self) -> (u64, TerminalNews) {
        loop {
            match self.next().await {
                Input::Terminal(TerminalId(number), news) => return (number, news),
                Input::Line(_) | Input::Complaint(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Everything that a terminal prints until it ends.
    async fn prints(&mut self) -> (String, Exit) {
        let mut text = String::new();
        loop {
            match self.news().await.1 {
                TerminalNews::Opened => {}
                TerminalNews::Printed(more) => text.push_str(&more),
                TerminalNews::Ended(exit) => return (text, exit),
                TerminalNews::NotOpened(failure) => panic!("{failure:?}"),
            }
        }
    }

    /// What a terminal prints first.
    async fn first_words(&mut self) -> String {
        loop {
            match self.news().await.1 {
                TerminalNews::Opened => {}
                TerminalNews::Printed(text) => return text.trim().to_owned(),
                other => panic!("{other:?}"),
            }
        }
    }
}

const IDLE: &str = "while read line; do :; done";

#[tokio::test]
async fn a_command_prints_both_outputs_in_order_and_tells_its_end() {
    let mut bench = Bench::new("terminal");
    bench.run(IDLE);
    let env = vec![("GIVEN".to_owned(), "yes".to_owned())];
    let script = "echo one $GIVEN; echo two >&2; pwd; echo ${FARHELM_SESSION:+marked}; exit 3";
    bench.open_with(1, script, env);
    let (text, exit) = bench.prints().await;
    let folder = bench.folder.path().canonicalize().unwrap();
    assert_eq!(text, format!("one yes\ntwo\n{}\nmarked\n", folder.display()));
    assert_eq!(exit, Exit::Code(3));
}

#[tokio::test]
async fn a_line_of_shell_is_run_by_one_and_what_is_not_there_is_told() {
    let mut bench = Bench::new("shell-line");
    bench.run(IDLE);
    let root = bench.folder.path().to_owned();
    let open = |number, command: &str, folder: &Path| {
        let (command, args, env) = (command.to_owned(), vec![], vec![]);
        let command = TerminalCommand { command, args, env, folder: Some(folder.to_owned()) };
        Act::Terminal(TerminalJob::Open(TerminalId(number), Box::new(command)))
    };
    bench.act(open(1, "echo a; echo b | tr b c", &root));
    assert_eq!(bench.prints().await, ("a\nc\n".to_owned(), Exit::Code(0)));
    for (number, command, folder) in [
        (2, "no-such-program", root.as_path()),
        (3, "ls", Path::new("/")),
        (4, "ls", Path::new("..")),
    ] {
        bench.act(open(number, command, folder));
        let (told, TerminalNews::NotOpened(failure)) = bench.news().await else { panic!("opened") };
        assert_eq!(told, number);
        assert!(!failure.message.is_empty());
    }
}

#[tokio::test]
async fn a_killed_command_ends_with_all_that_it_started_however_it_resists() {
    let mut bench = Bench::new("killed");
    bench.run(IDLE);
    bench.open(1, "trap '' TERM; sleep 300 & echo $!; wait; sleep 300");
    let child = bench.first_words().await;
    bench.act(Act::Terminal(TerminalJob::Kill(TerminalId(1))));
    bench.act(Act::Terminal(TerminalJob::Kill(TerminalId(1))));
    let (_, exit) = bench.prints().await;
    assert_eq!(exit, Exit::Signal(9));
    until_gone(&child).await;
}

#[tokio::test]
async fn what_a_command_leaves_in_its_group_ends_with_it() {
    let mut bench = Bench::new("left-over");
    bench.run(IDLE);
    bench.open(1, "sleep 300 & echo $!");
    let (child, exit) = bench.prints().await;
    assert_eq!(exit, Exit::Code(0));
    until_gone(child.trim()).await;
}

#[tokio::test]
async fn a_command_does_not_outlive_its_agent() {
    for how in ["end", "exit", "forget"] {
        let mut bench = Bench::new(&format!("outlives-{how}"));
        bench.run("read line");
        // One in its group, one that left it, one that also forgot whose it is.
        let script = "trap '' HUP TERM; sleep 300 & echo $!; setsid sleep 300 & echo $!; \
            env -i sleep 300 & echo $!; echo $$; sleep 300";
        bench.open(1, script);
        let mut words = String::new();
        while words.split_whitespace().count() < 4 {
            words.push_str(&bench.first_words().await);
            words.push('\n');
        }
        match how {
            "end" => bench.act(Act::End),
            "exit" => bench.act(Act::Write("done".to_owned())),
            _ => bench.act(Act::Forget(None)),
        }
        for process in words.split_whitespace() {
            until_gone(process).await;
        }
    }
}

#[tokio::test]
async fn a_command_that_prints_without_end_is_held_back() {
    let mut bench = Bench::new("endless");
    bench.run(IDLE);
    bench.open(1, "echo $$; exec yes");
    let process = bench.first_words().await;
    let process = process.split_whitespace().next().unwrap().to_owned();
    let (mut bytes, mut pieces) = (0, 0);
    while pieces < 20 {
        if let (1, TerminalNews::Printed(text)) = bench.news().await {
            assert!(text.len() <= 64 << 10, "{}", text.len());
            bytes += text.len();
            pieces += 1;
        }
    }
    assert!(bytes > 64 << 10);
    // Nobody listens: the queue fills up, and everything still ends.
    while bench.heard.len() < bench.heard.max_capacity().min(64) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.processes.end_all().await;
    until_gone(&process).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_terminal_takes_counts_as_its_agent_s_memory() {
    let mut bench = Bench::with_limit("hungry-terminal", Some(100 << 20));
    bench.run(IDLE);
    bench.open(1, "x=$(head -c 160000000 /dev/zero | tr '\\0' x); echo fat; sleep 300");
    loop {
        match bench.next().await {
            Input::Ended(Ended::Guarded(failure)) => {
                assert!(failure.message.contains("100 MiB"), "{}", failure.message);
                return;
            }
            Input::Terminal(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A driver with its program.
struct Session {
    bench: Bench,
    acp: Acp,
    told: Vec<Output>,
}

impl Session {
    fn start(name: &str, script: &str) -> Self {
        let bench = Bench::new(name);
        let workspace = bench.folder.path().join("w");
        std::fs::create_dir(&workspace).unwrap();
        let launcher = Launcher {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), format!("{PREFACE}{script}")],
            env: vec![],
        };
        let setup = Setup {
            session: bench.session.clone(),
            notes: String::new(),
            launcher,
            workspace,
            model: None,
            mode: None,
            earlier: None,
            ready_by: None,
            variables: BTreeMap::new(),
        };
        let mut acp = Acp::new("other", setup);
        let outputs = acp.start(now());
        let mut session = Self { bench, acp, told: vec![] };
        session.obey(outputs);
        session
    }

    fn workspace(&self) -> PathBuf {
        self.bench.folder.path().join("w")
    }

    fn obey(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Spawn(program) => self.bench.act(Act::Spawn(program)),
                Output::Write(line) => self.bench.act(Act::Write(line)),
                Output::End => self.bench.act(Act::End),
                Output::File(job) => self.bench.act(Act::File(job)),
                Output::Terminal(job) => self.bench.act(Act::Terminal(job)),
                other => self.told.push(other),
            }
        }
    }

    /// Goes on until something was told.
    async fn until(&mut self, is_it: impl Fn(&Output) -> bool) {
        while !self.told.iter().any(&is_it) {
            let input = self.bench.next().await;
            let outputs = self.acp.on_input(input, now());
            self.obey(outputs);
        }
    }

    /// Lets it work on one message to the end, and gives the answers that it got, by their ids.
    async fn work(&mut self) -> BTreeMap<String, Value> {
        self.until(|output| *output == Output::Ready).await;
        let send = Send {
            id: "m1".into(),
            text: Content::Open("go".to_owned()),
            attachments: vec![],
            mode: None,
            by: "ada".to_owned(),
            created_at: Timestamp(1),
            digest: None,
        };
        let order = Order::Deliver { send, attempt: Sequence(1), files: vec![] };
        let outputs = self.acp.on_order(&order, now());
        self.obey(outputs);
        self.until(|output| matches!(output, Output::Report(Report::RunEnded { .. }))).await;
        let heard = std::fs::read_to_string(self.workspace().join("heard")).unwrap();
        let answers = heard.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        answers.map(|answer| (answer["id"].as_str().unwrap().to_owned(), answer)).collect()
    }
}

/// An agent of a few lines: it asks, waits, and writes down what it was answered.
const PREFACE: &str = r#"
say() { printf '%s\n' "$1"; }
hear() { IFS= read -r answer; printf '%s\n' "$answer" >> heard; }
ask() { say "{\"jsonrpc\":\"2.0\",\"id\":\"$1\",\"method\":\"$2\",\"params\":{\"sessionId\":\"c1\",$3}}"; }
IFS= read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
IFS= read -r line; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"c1"}}'
IFS= read -r line
"#;
const DONE: &str = r#"
say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
while IFS= read -r line; do :; done
"#;

fn now() -> Timestamp {
    Timestamp(1_000_000)
}

#[tokio::test]
async fn an_agent_reads_writes_and_runs_what_is_in_its_workspace() {
    let script = r#"
ask w fs/write_text_file '"path":"made/a.txt","content":"one\ntwo\nthree\n"'; hear
ask r fs/read_text_file "\"path\":\"$PWD/made/a.txt\",\"line\":2,\"limit\":1"; hear
ask t terminal/create '"command":"cat","args":["made/a.txt"]'; hear
ask e terminal/wait_for_exit '"terminalId":"terminal-1"'; hear
ask o terminal/output '"terminalId":"terminal-1"'; hear
say '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"cat","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"terminal-1"}]}}}'
ask f terminal/release '"terminalId":"terminal-1"'; hear
"#;
    let mut session = Session::start("serves", &format!("{script}{DONE}"));
    let answers = session.work().await;
    assert_eq!(answers["w"]["result"], json!({}));
    assert_eq!(answers["r"]["result"]["content"], "two\n");
    assert_eq!(answers["t"]["result"]["terminalId"], "terminal-1");
    assert_eq!(answers["e"]["result"]["exitCode"], 0);
    let output = &answers["o"]["result"];
    assert_eq!(
        (&output["output"], &output["truncated"]),
        (&json!("one\ntwo\nthree\n"), &json!(false))
    );
    assert_eq!(answers["f"]["result"], json!({}));
    let shown = session.told.iter().find_map(|output| match output {
        Output::Report(Report::ToolCall(call)) => call.detail.open()?.output.clone(),
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some("one\ntwo\nthree\n"));
    session.bench.processes.end_all().await;
}

#[tokio::test]
async fn a_hostile_agent_gets_nothing_from_outside() {
    let script = r#"
ln -s ../secret link; ln -s .. up
ask a fs/read_text_file '"path":"../../etc/passwd"'; hear
ask b fs/read_text_file '"path":"/etc/passwd"'; hear
ask c fs/read_text_file '"path":"link"'; hear
ask d fs/write_text_file '"path":"up/new.txt","content":"x"'; hear
ask e fs/write_text_file '"path":"up","content":"x"'; hear
ask f terminal/create '"command":"ls","cwd":"/etc"'; hear
ask g terminal/create '"command":"ls","cwd":"up"'; hear
"#;
    let mut session = Session::start("hostile", &format!("{script}{DONE}"));
    std::fs::write(session.bench.folder.path().join("secret"), "secret").unwrap();
    let answers = session.work().await;
    for id in ["a", "b", "c", "d", "e", "f", "g"] {
        let words = answers[id]["error"]["message"].as_str();
        assert!(words.is_some_and(|words| !words.is_empty()), "{id}: {}", answers[id]);
    }
    assert!(!session.bench.folder.path().join("new.txt").exists());
    session.bench.processes.end_all().await;
}

#[tokio::test]
async fn a_link_that_is_swapped_all_the_time_never_leads_out() {
    let script = r#"
mkdir in; echo inside > in/file; ln -s in flip
( while :; do ln -sfn ../out flip; ln -sfn in flip; done ) &
i=0
while [ $i -lt 300 ]; do
  ask "r$i" fs/read_text_file '"path":"flip/file"'; hear
  ask "w$i" fs/write_text_file '"path":"flip/new/file","content":"x"'; hear
  i=$((i+1))
done
kill $!
"#;
    let mut session = Session::start("swaps", &format!("{script}{DONE}"));
    let out = session.bench.folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("file"), "outside").unwrap();
    let answers = session.work().await;
    assert_eq!(answers.len(), 600);
    let read: Vec<_> =
        answers.values().filter_map(|answer| answer["result"]["content"].as_str()).collect();
    assert!(read.iter().all(|text| *text == "inside\n"), "{read:?}");
    let left: Vec<_> = std::fs::read_dir(&out).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
    session.bench.processes.end_all().await;
}

#[tokio::test]
async fn a_thousand_terminals_of_one_agent_are_a_few_processes() {
    let script = r#"
i=0
while [ $i -lt 1000 ]; do
  ask "t$i" terminal/create '"command":"echo $$; exec sleep 300"'; hear
  i=$((i+1))
done
"#;
    let mut session = Session::start("thousand", &format!("{script}{DONE}"));
    let answers = session.work().await;
    let opened = answers.values().filter(|answer| answer.get("result").is_some()).count();
    assert_eq!((answers.len(), opened), (1_000, 32));
    let marked = session.bench.session.clone();
    session.bench.processes.end_all().await;
    // What was killed is in the list until the system has put it away.
    let gone = async {
        while running_of(&marked) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

/// Processes that carry the mark of a session.
fn running_of(session: &SessionId) -> usize {
    let mark = format!("FARHELM_SESSION={session}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let environments = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments
        .filter(|environment| environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()))
        .count()
}
