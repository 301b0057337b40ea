//! The real binary, as people and scripts use it.

mod machines;
mod notify;
mod plain;
mod served;

use std::io::Write as _;

use crate::support::{self, Lines, Place, is_private, said};

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn up_serves_and_a_clean_stop_leaves_nothing_that_names_it() {
    let place = Place::new();
    let mut up = place.up(&[]);
    let relay_file = place.data().join("relay.json");

    assert_eq!(up.told["pid"], up.running.0.id());
    assert_eq!(up.told["version"], env!("CARGO_PKG_VERSION"));
    let url = up.told["url"].as_str().unwrap();
    assert_eq!(up.told["ws"], format!("{}/ws", url.replacen("http", "ws", 1)));
    let owner = std::fs::read_to_string(place.data().join("owner.token")).unwrap();
    assert_eq!(up.told["token"], owner.trim());
    assert_ne!(up.told["token"], up.told["proxy_token"]);
    assert!(is_private(&up.ready) && is_private(&place.data().join("owner.token")));
    assert!(relay_file.exists());
    let sessions = place.json(&["sessions", "--json"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(sessions["sessions"][0]["agent_type"], "demo");

    assert!(up.running.stop().success());
    assert!(!up.ready.exists() && !relay_file.exists());
    let away = place.run(&["sessions"]);
    assert_eq!(away.status.code(), Some(1));
    assert!(stderr(&away).contains("farhelm up"), "{}", stderr(&away));
}

#[test]
fn the_exit_code_of_send_tells_what_became_of_the_message() {
    let place = Place::new();
    let _up = place.up(&[]);

    let delivered = place.json(&["send", "demo", "say: hello", "--id", "m1", "--json"]);
    assert_eq!(delivered["type"], "message_delivered");
    let again = place.json(&["send", "demo", "say: hello", "--id", "m1", "--json"]);
    assert_eq!(again["sequence"], delivered["sequence"], "told again, not done again");
    let accepted = place.json(&["send", "demo", "hello", "--no-wait", "--json"]);
    assert_eq!(accepted["type"], "message_accepted");
    let failed = place.run(&["send", "demo", "fail: boom"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stderr(&failed).contains("boom"), "{}", stderr(&failed));
    let unknown = place.run(&["send", "nobody", "hello"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("farhelm sessions"), "{}", stderr(&unknown));
}

#[test]
fn a_tail_goes_on_over_a_killed_relay_without_gap_or_repeat() {
    let place = Place::new();
    let mut up = place.up(&[]);
    let (first_token, demo) = (up.told["token"].clone(), demo(&place));
    let tail = Lines::of(place.farhelm(&["tail", &demo, "--after", "0", "--json"]));
    place.told(&["send", &demo, "say: one"]);
    let mut seen = tail.until(|event| said(event) == Some("one"));

    up.running.kill();
    let up = place.up(&[]);
    assert_eq!(up.told["token"], first_token, "the owner's token outlives the relay");
    assert_eq!(self::demo(&place), demo, "so does the demo session");
    place.told(&["send", &demo, "say: two"]);
    seen.extend(tail.until(|event| said(event) == Some("two")));

    let sequences: Vec<u64> = seen.iter().filter_map(|event| event["sequence"].as_u64()).collect();
    assert!(sequences.is_sorted_by(|before, after| before < after), "{sequences:?}");
    let words: Vec<&str> = seen.iter().filter_map(said).collect();
    assert_eq!(words, ["say: one", "one", "say: two", "two"]);
}

#[test]
fn a_send_waits_for_a_relay_that_restarts() {
    let place = Place::new();
    let mut relay = place.serving("relay", &["--send-grace-ms", "60000"]);
    let (url, token) = (relay.told["url"].clone(), relay.told["proxy_token"].clone());
    let words = ["proxy", "--relay", url.as_str().unwrap(), "--token", token.as_str().unwrap()];
    let machine = place.path("machine");
    let start = |words: &[&str]| {
        let mut command = place.farhelm(words);
        command.env("FARHELM_DATA", &machine);
        Lines::of(command)
    };
    let mut proxy = start(&words);
    let demo = until_there(&place);
    proxy.running.stop();

    // The machine is away: accepted, but not delivered.
    let send = Lines::of(place.farhelm(&["send", &demo, "say: late", "--json"]));
    let accepted = Lines::of(place.farhelm(&["tail", &demo, "--after", "0", "--json"]));
    accepted.until(|event| event["type"] == "message_accepted");
    relay.running.kill();
    let relay = place.serving("relay", &["--send-grace-ms", "60000"]);
    let words = ["proxy", "--relay", relay.told["url"].as_str().unwrap(), "--token"];
    let _proxy = start(&[&words[..], &[token.as_str().unwrap()]].concat());

    let told = send.until(|_| true);
    assert_eq!(told[0]["type"], "message_delivered", "{told:?}");
}

#[test]
fn a_question_is_answered_from_the_command_line() {
    let place = Place::new();
    let _up = place.up(&[]);
    let tail = Lines::of(place.farhelm(&["tail", "demo", "--json"]));
    place.told(&["send", "demo", "ask: make clean"]);
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    let prompt = asked.last().unwrap()["prompt_id"].as_str().unwrap().to_owned();

    let wrong = place.run(&["answer", "demo", &prompt, "perhaps"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("invalid_choice"), "{}", stderr(&wrong));
    place.told(&["answer", "demo", &prompt, "yes"]);

    tail.until(|event| said(event) == Some("ran: make clean"));
}

#[test]
fn an_agent_that_runs_in_a_terminal_is_the_same_session_for_everybody_else() {
    let place = Place::new();
    let _up = place.up(&["--no-demo"]);
    let (desk, mut keys) = Lines::typing(place.farhelm(&["run", "demo"]));
    let mut press = |line: &str| keys.write_all(format!("{line}\n").as_bytes()).unwrap();
    desk.until_line("- connected");
    press("say: hello");
    desk.until_line("assistant: hello");

    let elsewhere = Lines::of(place.farhelm(&["tail", "demo", "--json", "--after", "0"]));
    elsewhere.until(|event| said(event) == Some("hello"));
    place.told(&["send", "demo", "ask: make clean"]);
    desk.until_line("? Run this command?");
    desk.until_line("    2  No");
    press("2");
    desk.until_line("assistant: denied: make clean");
    elsewhere.until(|event| said(event) == Some("denied: make clean"));
    press("slow: 400");
    elsewhere.until(|event| event["type"] == "message_delta");
    press("/stop");
    desk.until_line("- interrupted");
    drop(keys);
    let mut desk = desk;
    assert!(desk.running.0.wait().unwrap().success());
    place.told(&["send", "demo", "say: it goes on"]);
}

#[test]
fn a_run_is_interrupted_and_sessions_come_and_go() {
    let place = Place::new();
    let _up = place.up(&[]);
    let demo = demo(&place);
    let tail = Lines::of(place.farhelm(&["tail", &demo, "--json"]));
    place.told(&["send", &demo, "slow: 200"]);
    tail.until(|event| event["type"] == "message_delta");
    place.told(&["interrupt", &demo]);
    let seen = tail.until(|event| event["type"] == "run_ended");
    assert_eq!(seen.last().unwrap()["outcome"], "interrupted");

    let launched = place.told(&["launch", "demo"]).trim().to_owned();
    place.told(&["send", &launched, "say: here"]);
    place.told(&["close", &launched]);
    let closed = place.run(&["send", &launched, "say: gone"]);
    assert_eq!(closed.status.code(), Some(1), "{}", stderr(&closed));
}

#[test]
fn a_tail_ends_with_its_session() {
    let place = Place::new();
    let _up = place.up(&[]);
    let session = place.told(&["launch", "demo"]).trim().to_owned();
    let mut tail = Lines::of(place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    place.told(&["send", &session, "say: here"]);
    place.told(&["close", &session]);
    let seen = tail.until(|event| event["type"] == "session_closed");
    assert!(seen.iter().any(|event| event["message"]["content"] == "here"));
    assert!(tail.running.0.wait().unwrap().success());
    // So does one that begins afterwards, wherever it begins.
    for more in [&["--after", "0"][..], &["--last", "1"], &["--last", "0"], &["--dialect", "pi"]] {
        let ended = place.run(&[&["tail", session.as_str()], more].concat());
        assert!(ended.status.success(), "{more:?}: {}", stderr(&ended));
    }
    let whole = place.told(&["tail", &session, "--after", "0", "--json"]);
    assert!(whole.lines().last().unwrap().contains("session_closed"), "{whole}");
}

#[test]
fn a_tail_in_another_dialect_ends_with_its_session() {
    let place = Place::new();
    let _up = place.up(&[]);
    for dialect in ["blob", "control", "pi", "webchannel"] {
        let session = place.told(&["launch", "demo"]).trim().to_owned();
        let words = ["tail", &session, "--dialect", dialect, "--json"];
        let mut tail = Lines::of(place.farhelm(&words));
        // It follows from now on: what is sent before it is there is not for it.
        let has_answer = |seen: &serde_json::Value| seen["seen"] == "agent";
        let begun = std::time::Instant::now();
        while tail.within(std::time::Duration::from_secs(1), has_answer).is_err() {
            assert!(begun.elapsed() < support::PATIENCE, "{dialect} shows nothing");
            place.told(&["send", &session, "say: here"]);
        }
        place.told(&["close", &session]);
        assert!(tail.running.ended().success(), "{dialect}");
    }
}

#[test]
fn who_names_a_session_by_its_beginning_says_enough_of_it_and_is_told_which_it_is() {
    let place = Place::new();
    let _up = place.up(&[]);
    let session = demo(&place);
    for length in 1..4 {
        let output = place.run(&["send", &session[..length], "say: hi"]);
        assert_eq!(output.status.code(), Some(1), "{length}");
        assert!(stderr(&output).contains("at least 4 characters"), "{}", stderr(&output));
    }
    for named in [&session[..session.len() - 1], session.as_str(), "demo"] {
        let output = place.run(&["send", named, "say: hi"]);
        assert!(output.status.success());
        assert!(stderr(&output).contains(&format!("session {session} (Demo)")), "{named}");
    }
    place.run(&["send", &session, "slow: 500", "--no-wait"]);
    let stopped = place.run(&["interrupt", "demo"]);
    assert!(stderr(&stopped).contains(&format!("session {session} (Demo)")), "interrupt");
    let closed = place.run(&["close", "demo", "--json"]);
    assert!(stderr(&closed).contains(&session), "close");
    let _: serde_json::Value = serde_json::from_slice(&closed.stdout).unwrap();
}

#[test]
fn a_second_up_on_the_same_folder_is_refused_with_the_process_that_has_it() {
    let place = Place::new();
    let up = place.up(&[]);
    let second = place.run(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(1));
    let words = stderr(&second);
    assert!(words.contains(&format!("process {}", up.running.0.id())), "{words}");
    assert!(place.data().join("relay.json").exists(), "the first one is still to be found");
}

#[test]
fn a_busy_port_is_named_with_what_to_do() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = place.run(&["up", "--listen", &address]);
    assert_eq!(refused.status.code(), Some(1));
    let words = stderr(&refused);
    assert!(words.contains(&address) && words.contains("--listen"), "{words}");
}

#[test]
fn tokens_are_made_listed_and_revoked_with_and_without_a_relay() {
    let place = Place::new();
    let made = place.json(&["token", "create", "--role", "viewer", "--name", "wall", "--json"]);
    assert_eq!((&made["role"], &made["name"]), (&"viewer".into(), &"wall".into()));
    let id = made["id"].as_str().unwrap().to_owned();
    let names = |place: &Place| {
        let listed = place.json(&["token", "list", "--json"]);
        let tokens = listed["tokens"].as_array().unwrap().clone();
        tokens.iter().map(|token| token["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&place), std::slice::from_ref(&id));

    let _up = place.up(&[]);
    assert!(names(&place).contains(&id), "the relay knows it");
    let viewer = made["token"].as_str().unwrap();
    place.told(&["sessions", "--token", viewer]);
    let refused = place.run(&["send", "demo", "hello", "--token", viewer]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("unauthorized"), "{}", stderr(&refused));
    place.told(&["token", "revoke", &id]);
    assert!(!names(&place).contains(&id));
    assert_eq!(place.run(&["sessions", "--token", viewer]).status.code(), Some(1));
    assert_eq!(place.run(&["token", "revoke", &id]).status.code(), Some(1));
}

#[test]
fn a_pairing_code_has_a_link_and_an_end() {
    let place = Place::new();
    let _up = place.up(&["--no-demo"]);
    let offered = place.json(&["pair", "--json"]);
    let (code, link) = (offered["code"].as_str().unwrap(), offered["link"].as_str().unwrap());
    assert!(link.ends_with(code) && offered["expires_at"].is_string(), "{offered}");
    assert_ne!(place.json(&["pair", "--json"])["code"], code);
}

#[test]
fn the_flag_wins_over_the_environment_and_that_over_the_file() {
    let place = Place::new();
    let file = place.path("farhelm.toml");
    std::fs::write(&file, "role = \"viewer\"\njson = true\n").unwrap();
    let role = |variable: Option<&str>, words: &[&str]| {
        let mut command = place.farhelm(&["token", "create", "--config", file.to_str().unwrap()]);
        command.args(words);
        if let Some(role) = variable {
            command.env("FARHELM_ROLE", role);
        }
        let output = command.output().unwrap();
        let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        made["role"].as_str().unwrap().to_owned()
    };
    assert_eq!(role(None, &[]), "viewer");
    assert_eq!(role(Some("operator"), &[]), "operator");
    assert_eq!(role(Some("operator"), &["--role", "owner"]), "owner");
}

#[test]
fn what_is_not_understood_ends_with_two_and_help_with_zero() {
    let place = Place::new();
    let file = place.path("farhelm.toml");
    std::fs::write(&file, "\nlissten = \"127.0.0.1:0\"\n").unwrap();
    let file = file.to_str().unwrap();
    let unknown_key = place.run(&["sessions", "--config", file]);
    assert_eq!(unknown_key.status.code(), Some(2));
    assert!(stderr(&unknown_key).contains(&format!("{file}:2: ")), "{}", stderr(&unknown_key));
    for words in [&["sesions"][..], &["up", "--listen", "x"], &["sessions", "--relay", "ftp://x"]] {
        assert_eq!(place.run(words).status.code(), Some(2), "{words:?}");
    }
    for words in [&["--help"][..], &["send", "--help", "--config", file], &["--version"]] {
        assert_eq!(place.run(words).status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_tail_without_a_word() {
    let place = Place::new();
    let _up = place.up(&[]);
    place.told(&["send", "demo", "say: enough"]);
    let mut command = place.farhelm(&["tail", "demo", "--after", "0", "--json"]);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    drop((command, reader));
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), stderr(&ended).as_str()), (Some(0), ""));
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let place = Place::new();
    let mut up = place.up(&[]);
    let well = place.json(&["doctor", "--json"]);
    assert_eq!(well["ok"], true, "{well:#}");

    up.running.kill();
    let output = place.run(&["doctor", "--json", "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong = told["checks"].as_array().unwrap().iter().find(|it| it["verdict"] == "wrong");
    assert!(wrong.unwrap()["advice"].as_str().unwrap().contains("farhelm up"), "{told:#}");
}

#[test]
fn over_tls_a_certificate_of_ones_own_is_trusted_when_it_is_named() {
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (place.path("relay.pem"), place.path("relay.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let relay = place.serving("relay", &["--tls-cert", certificate, "--tls-key", key]);
    let url = relay.told["url"].as_str().unwrap();
    assert!(url.starts_with("https://"), "{url}");
    let elsewhere = |token: &str, words: &[&str]| {
        // Nothing of the relay's folder is to be seen, as on another computer.
        let mut command = place.farhelm(words);
        command.env("FARHELM_DATA", place.path("elsewhere"));
        command.env("FARHELM_URL", url).env("FARHELM_TOKEN", token);
        command
    };
    let (owner, machine) = (&relay.told["token"], &relay.told["proxy_token"]);
    let (owner, machine) = (owner.as_str().unwrap(), machine.as_str().unwrap());

    let stranger = support::ended(elsewhere(owner, &["sessions"]));
    assert_eq!(stranger.status.code(), Some(1));
    assert!(stderr(&stranger).contains("--tls-ca"), "{}", stderr(&stranger));

    let _proxy = Lines::of(elsewhere(machine, &["proxy", "--tls-ca", certificate]));
    let demo = until_there(&place);
    let listed = support::ended(elsewhere(owner, &["sessions", "--tls-ca", certificate]));
    assert!(listed.status.success(), "{}", stderr(&listed));
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&demo[..8]));
    let mut sending = elsewhere(owner, &["send", &demo, "say: sealed", "--json"]);
    sending.env("FARHELM_TLS_CA", certificate);
    let sent = support::ended(sending);
    let told: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(told["type"], "message_delivered", "{}", stderr(&sent));
}

#[test]
fn a_command_that_is_typed_before_attach_is_connected_is_not_lost() {
    let place = Place::new();
    let _up = place.up(&[]);
    let demo = demo(&place);
    let (_attached, mut typed) = Lines::typing(place.farhelm(&["attach", &demo]));
    writeln!(typed, "/model demo-large").unwrap();
    let tail = Lines::of(place.farhelm(&["tail", &demo, "--after", "0", "--json"]));
    tail.until(|event| event["type"] == "agent_config" && event["model_id"] == "demo-large");
}

#[test]
fn an_attachment_lies_on_the_machine_before_the_agent_hears_of_it() {
    let place = Place::new();
    let up = place.up(&[]);
    let demo = demo(&place);
    let tail = Lines::of(place.farhelm(&["tail", &demo, "--json"]));
    let upload = up.post("/v1/uploads?name=notes.txt", "text/plain", "12345");
    let id = upload["attachment_id"].as_str().unwrap();
    let message = serde_json::json!({ "content": "see", "attachments": [id] }).to_string();
    up.post(&format!("/v1/sessions/{demo}/messages"), "application/json", &message);

    tail.until(|event| said(event) == Some("echo: see [notes.txt, 5 bytes]"));
    let kept = place.data().join("proxy/attachments").join(id);
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "12345");
}

#[test]
fn after_a_crash_of_the_demo_agent_there_is_another_to_try() {
    let place = Place::new();
    let _up = place.up(&[]);
    let old = demo(&place);
    let tail = Lines::of(place.farhelm(&["tail", &old, "--json"]));
    place.told(&["send", "demo", "crash"]);
    tail.until(|event| event["type"] == "session_closed");
    let begun = std::time::Instant::now();
    let new = loop {
        let listed = place.json(&["sessions", "--json"]);
        let sessions = listed["sessions"].as_array().unwrap().clone();
        let mut healthy = sessions.iter().filter(|session| session["status"] == "healthy");
        if let Some(session) = healthy.next() {
            break session["session_id"].clone();
        }
        assert!(begun.elapsed() < support::PATIENCE, "no session comes");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_ne!(new, old);
    place.told(&["send", "demo", "say: here"]);
}

/// The id of the only session.
fn demo(place: &Place) -> String {
    let listed = place.json(&["sessions", "--json"]);
    listed["sessions"][0]["session_id"].as_str().unwrap().to_owned()
}

/// The same, as soon as there is one.
fn until_there(place: &Place) -> String {
    let begun = std::time::Instant::now();
    loop {
        let listed = place.json(&["sessions", "--json"]);
        if let Some(id) = listed["sessions"][0]["session_id"].as_str() {
            return id.to_owned();
        }
        assert!(begun.elapsed() < support::PATIENCE, "no session comes");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
