use super::*;
use crate::arguments::Command as Task;

fn file(text: &str) -> File {
    File::parse("farhelm.toml".into(), text).unwrap()
}

fn spoken(words: &str) -> Vec<OsString> {
    words.split(' ').map(OsString::from).collect()
}

fn up(text: &str, words: &str) -> crate::arguments::Up {
    let Task::Up(up) = parse(&file(text), spoken(words)).unwrap().command else { panic!() };
    up
}

fn refused(text: &str, words: &str) -> String {
    match parse(&file(text), spoken(words)) {
        Err(Unusable::File(problem)) => problem.words().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    layered(&File::default()).debug_assert();
}

#[test]
fn the_file_is_below_the_flag_and_above_the_default() {
    let text = "send-grace-ms = 5\nallow-origin = [\"https://a.example\", \"https://b.example\"]\nno-demo = true";

    let from_file = up(text, "farhelm up");
    assert_eq!(from_file.serve.send_grace_ms, 5);
    assert_eq!(from_file.serve.allow_origin, ["https://a.example", "https://b.example"]);
    assert!(from_file.machine.no_demo);
    assert_eq!(from_file.serve.launch_timeout_ms, 30_000);
    assert_eq!(up(text, "farhelm up --send-grace-ms 7").serve.send_grace_ms, 7);
}

#[test]
fn tables_of_the_file_are_agents() {
    let text = "[[agents]]\nname = \"mine\"\ncommand = \"my-agent\"\nargs = [\"acp\"]\n\
                env = { KEY = \"value\" }\n\n[[agents]]\nname = \"claude\"";

    let agents = up(text, "farhelm up").machine.agents.agents;
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["mine", "claude"]);
    assert_eq!(
        (agents[0].command.as_str(), &agents[0].args[..]),
        ("my-agent", &["acp".to_owned()][..])
    );
    assert_eq!(agents[0].env, [("KEY".to_owned(), "value".to_owned())]);
}

#[test]
fn an_agent_without_a_name_is_blamed_on_the_file() {
    let words = refused("no-demo = true\n[[agents]]\ncommand = \"m\"", "farhelm up");
    assert!(words.starts_with("farhelm.toml:2: ") && words.contains("agents"), "{words}");
}

#[test]
fn what_the_file_says_need_not_be_said_again() {
    let words = spoken("farhelm token create");
    assert!(matches!(parse(&File::default(), words.clone()), Err(Unusable::Clap(_))));
    assert!(parse(&file("role = \"viewer\""), words).is_ok());
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let words = refused("listen = \"127.0.0.1:0\"\n\nlisten-on = 3", "farhelm up");
    assert!(words.starts_with("farhelm.toml:3: ") && words.contains("listen-on"), "{words}");
}

#[test]
fn a_wrong_value_in_the_file_is_named_with_its_line() {
    let words = refused("no-demo = false\nlisten = \"nowhere\"", "farhelm up");
    assert!(words.starts_with("farhelm.toml:2: ") && words.contains("nowhere"), "{words}");
}

#[test]
fn a_file_that_is_no_toml_is_named_with_its_line() {
    let problem = File::parse("farhelm.toml".into(), "a = 1\nb = = 2").unwrap_err();
    assert!(problem.words().starts_with("farhelm.toml:2: "), "{}", problem.words());
}

#[test]
fn every_flag_has_its_variable_and_its_key() {
    fn check(command: &Command, known: &BTreeSet<String>) -> usize {
        let mut flags = 0;
        for arg in command.get_arguments() {
            let Some(flag) = arg.get_long().filter(|flag| !NOT_IN_FILE.contains(flag)) else {
                continue;
            };
            let variable = arg.get_env().and_then(|name| name.to_str()).unwrap_or_default();
            assert!(variable.starts_with("FARHELM_"), "--{flag} of {}", command.get_name());
            assert!(known.contains(flag));
            flags += 1;
        }
        flags + command.get_subcommands().map(|below| check(below, known)).sum::<usize>()
    }
    let command = layered(&File::default());
    assert!(check(&command, &keys(&command)) > 40);
}

#[test]
fn every_command_has_an_example() {
    fn check(command: &Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // What only this program calls is not shown to people.
        assert!(command.is_hide_set() || help.contains("Example"), "{}", command.get_name());
        command.get_subcommands().for_each(check);
    }
    check(&layered(&File::default()));
}

#[test]
fn the_file_is_found_wherever_its_flag_stands() {
    for words in ["farhelm --config a.toml up", "farhelm up --config=a.toml"] {
        assert_eq!(named_file(&spoken(words)), Some("a.toml".into()), "{words}");
    }
    assert_eq!(named_file(&spoken("farhelm send x -- --config a.toml")), None);
}

#[test]
fn the_ide_table_is_the_ide_flags() {
    let text = "[ide]\nports = [9222, \"127.0.0.1:9223\"]\n\n[[ide.start]]\n\
                profiles = [\"cursor\"]\ncommand = \"cursor\"\nport = 9333\n";
    let ide = up(text, "farhelm up").machine.agents.ide;
    assert_eq!(ide.ide_ports, ["127.0.0.1:9222", "127.0.0.1:9223"]);
    assert_eq!(ide.ide_start[0].port, 9333);
    assert_eq!(ide.config().all_ports().len(), 3);
    let spoken = up(text, "farhelm up --ide-ports 1").machine.agents.ide;
    assert_eq!(spoken.ide_ports, ["127.0.0.1:1"]);
    let wrong = refused("[ide]\nports = [\"192.168.1.7:9222\"]", "farhelm up");
    assert!(wrong.starts_with("farhelm.toml:2: "), "{wrong}");
}

#[test]
fn the_notify_table_is_the_notify_flags() {
    use crate::arguments::Occasion;

    let text = "no-demo = true\n[notify]\nntfy = \"https://ntfy.sh/kite\"\non = [\"prompt\"]";
    let from_file = up(text, "farhelm up").serve.notify;
    assert_eq!(from_file.ntfy.as_deref(), Some("https://ntfy.sh/kite"));
    assert_eq!(from_file.on, [Occasion::Prompt]);
    let spoken = up(text, "farhelm up --notify-on run,failure").serve.notify;
    assert_eq!(spoken.on, [Occasion::Run, Occasion::Failure]);
    assert_eq!(up("", "farhelm up").serve.notify.on.len(), 3);

    let unknown = refused("[notify]\n\nntfi = \"x\"", "farhelm up");
    assert!(
        unknown.starts_with("farhelm.toml:3: ") && unknown.contains("notify-ntfi"),
        "{unknown}"
    );
    let wrong = refused("[notify]\non = [\"lunch\"]", "farhelm up");
    assert!(wrong.starts_with("farhelm.toml:2: "), "{wrong}");
}
