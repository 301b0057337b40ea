#![cfg(unix)]

mod served;

use std::time::Duration;

use agents::Ended;
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

struct Bench {
    processes: Processes,
    heard: mpsc::Receiver<Heard>,
    folder: tempfile::TempDir,
    session: SessionId,
}

impl Bench {
    fn new(session: &str) -> Self {
        Self::with_limit(session, None)
    }

    fn with_limit(session: &str, limit: Option<u64>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (told, heard) = mpsc::channel(HEARD_MAX);
        let processes = Processes::new(told, folder.path().join("notes"), limit, Handle::current());
        // Unique on this machine, because trees are found by it.
        let session = format!("{session}-{}", std::process::id()).as_str().into();
        Self { processes, heard, folder, session }
    }

    fn run(&mut self, script: &str) {
        let program = Program {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: vec![("GIVEN".to_owned(), "yes".to_owned())],
            folder: self.folder.path().to_owned(),
            files: vec![],
        };
        self.processes.carry_out(&self.session.clone(), Act::Spawn(program));
    }

    fn act(&mut self, act: Act) {
        self.processes.carry_out(&self.session.clone(), act);
    }

    /// What is heard next of the program that runs now.
    async fn next(&mut self) -> Input {
        loop {
            let heard = timeout(PATIENCE, self.heard.recv()).await.unwrap().unwrap();
            if self.processes.is_current(&heard) {
                return heard.input;
            }
        }
    }
}

fn line(text: &str) -> Input {
    Input::Line(text.to_owned())
}

fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

async fn until_gone(process: &str) {
    let gone = async {
        while is_running(process) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_program_is_heard_on_both_outputs_and_reads_what_is_written() {
    let mut bench = Bench::new("speaks");
    bench.run("read word; echo got $word $GIVEN; echo bad >&2; sleep 0.1; exit 3");
    bench.act(Act::Write("hello".to_owned()));
    let (one, two) = (bench.next().await, bench.next().await);
    let mut both = [one, two];
    both.sort_by_key(|input| matches!(input, Input::Complaint(_)));
    assert_eq!(both, [line("got hello yes"), Input::Complaint("bad".to_owned())]);
    assert_eq!(bench.next().await, Input::Ended(Ended::Exited(3)));
}

#[tokio::test]
async fn the_whole_tree_ends_also_what_left_the_group() {
    let mut bench = Bench::new("tree");
    bench
        .run("sleep 300 & echo $!; setsid sleep 300 & echo $!; trap '' TERM; sleep 300; sleep 300");
    let mut started = vec![];
    for _ in 0..2 {
        let Input::Line(process) = bench.next().await else { panic!("two processes") };
        started.push(process);
    }
    bench.act(Act::End);
    assert!(matches!(bench.next().await, Input::Ended(_)));
    for process in started {
        until_gone(&process).await;
    }
}

#[tokio::test]
async fn what_an_earlier_proxy_left_behind_is_ended() {
    let mut bench = Bench::new("left");
    bench.run("echo $$; sleep 300");
    let Input::Line(process) = bench.next().await else { panic!("a process") };
    let ended = end_leftovers(&bench.folder.path().join("notes"));
    assert_eq!(ended, [bench.session.clone()]);
    assert!(matches!(bench.next().await, Input::Ended(Ended::Killed(9))));
    until_gone(&process).await;
    assert_eq!(end_leftovers(&bench.folder.path().join("notes")), []);
}

#[tokio::test]
async fn of_a_program_that_was_replaced_nothing_is_heard() {
    let mut bench = Bench::new("again");
    bench.run("echo first; read word; echo never");
    assert_eq!(bench.next().await, line("first"));
    bench.run("echo second");
    assert_eq!(bench.next().await, line("second"));
    assert_eq!(bench.next().await, Input::Ended(Ended::Exited(0)));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_with_its_name() {
    let mut bench = Bench::new("absent");
    let program = Program {
        command: "no-such-agent".to_owned(),
        args: vec![],
        env: vec![],
        folder: bench.folder.path().to_owned(),
        files: vec![],
    };
    bench.act(Act::Spawn(program));
    let Input::Ended(Ended::NotStarted(failure)) = bench.next().await else { panic!("an end") };
    assert_eq!(failure.code, "agent_not_open".into());
    assert!(failure.message.contains("no-such-agent"));
}

#[tokio::test]
async fn a_program_is_given_the_files_it_needs() {
    let mut bench = Bench::new("files");
    let note = || Program::argument_of("note.txt");
    let program = Program {
        command: "sh".to_owned(),
        args: ["-c", "cat $0 $NOTE"].map(str::to_owned).into_iter().chain([note()]).collect(),
        env: vec![("NOTE".to_owned(), note())],
        folder: bench.folder.path().to_owned(),
        files: vec![("note.txt".to_owned(), "from us\n".to_owned())],
    };
    bench.act(Act::Spawn(program));
    assert_eq!(bench.next().await, Input::Line("from us".to_owned()));
    assert_eq!(bench.next().await, Input::Line("from us".to_owned()));
    assert_eq!(bench.next().await, Input::Ended(Ended::Exited(0)));
}

#[tokio::test]
async fn a_file_is_read_and_one_that_is_not_there_is_told() {
    let mut bench = Bench::new("reads");
    let file = bench.folder.path().join("notes.jsonl");
    std::fs::write(&file, "one\n").unwrap();
    bench.act(Act::Read(file.clone()));
    let text = Some("one\n".to_owned());
    assert_eq!(bench.next().await, Input::Read { path: file, text });
    bench.act(Act::Read("/nowhere/at/all".into()));
    let path = "/nowhere/at/all".into();
    assert_eq!(bench.next().await, Input::Read { path, text: None });
}

#[tokio::test]
async fn all_programs_end_with_the_proxy() {
    let mut bench = Bench::new("all");
    bench.run("echo $$; trap '' TERM; cat; sleep 300");
    let Input::Line(process) = bench.next().await else { panic!("a process") };
    bench.processes.end_all().await;
    until_gone(&process).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_tree_that_takes_too_much_memory_is_ended_whole_and_told_why() {
    let mut bench = Bench::with_limit("hungry", Some(100 << 20));
    // What eats is what it started.
    let eat = "x=$(head -c 160000000 /dev/zero | tr '\\0' x); echo fat; sleep 300";
    bench.run(&format!("echo $$; sh -c \"{}\"; sleep 300", eat.replace('$', "\\$")));
    let Input::Line(process) = bench.next().await else { panic!("a process") };
    let ended = loop {
        match bench.next().await {
            Input::Ended(ended) => break ended,
            Input::Line(_)
            | Input::Complaint(_)
            | Input::Read { .. }
            | Input::Filed { .. }
            | Input::Terminal(..)
            | Input::Kept { .. }
            | Input::Panel(_)
            | Input::Held(_) => {}
        }
    };
    let Ended::Guarded(failure) = ended else { panic!("{ended:?}") };
    assert!(failure.message.contains("100 MiB"), "{}", failure.message);
    until_gone(&process).await;
}

#[cfg(unix)]
#[tokio::test]
async fn of_two_paths_the_last_one_is_searched_as_the_program_itself_will_see_it() {
    let mut bench = Bench::new("paths");
    let program = bench.folder.path().join("my-agent");
    std::fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
    let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, runs).unwrap();
    let path = |value: &str| ("PATH".to_owned(), value.to_owned());
    let here = bench.folder.path().to_str().unwrap().to_owned();
    bench.act(Act::Spawn(Program {
        command: "my-agent".to_owned(),
        args: vec![],
        env: vec![path("/nowhere"), path(&format!("{here}:/usr/bin:/bin"))],
        folder: bench.folder.path().to_owned(),
        files: vec![],
    }));
    assert_eq!(bench.next().await, Input::Line("found".to_owned()));
    assert_eq!(bench.next().await, Input::Ended(Ended::Exited(0)));
}
