//! Calling somebody who is not looking, through the real binary.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::{Lines, PATIENCE, Place, said};

/// Requests that one test may make.
const REQUESTS_MAX: usize = 32;
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// What was posted.
struct Posted {
    path: String,
    head: String,
    body: String,
}

impl Posted {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }
}

/// Takes what is posted to it; the first answer is the one given.
struct Listener {
    url: String,
    posted: Receiver<Posted>,
}

impl Listener {
    fn new(first_status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, posted) = channel();
        std::thread::spawn(move || {
            let mut status = first_status;
            for stream in listener.incoming().take(REQUESTS_MAX).map_while(Result::ok) {
                if tell.send(take(stream, status)).is_err() {
                    return;
                }
                status = 200;
            }
        });
        Self { url, posted }
    }

    fn next(&self) -> Posted {
        self.posted.recv_timeout(PATIENCE).unwrap()
    }
}

fn take(mut stream: TcpStream, status: u16) -> Posted {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    Posted { path, head, body: String::from_utf8(body).unwrap() }
}

fn secret_file(place: &Place) -> PathBuf {
    let file = place.path("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    file
}

/// What a receiver of the webhook computes: HMAC-SHA256, with a secret shorter than a block.
fn signed(posted: &Posted) -> String {
    let words = format!("{}.{}", posted.header("x-farhelm-timestamp"), posted.body);
    let padded = |pad: u8| {
        let secret = SECRET.bytes().chain(std::iter::repeat(0)).take(64);
        secret.map(|byte| byte ^ pad).collect::<Vec<u8>>()
    };
    let inner = Sha256::digest([padded(0x36), words.into_bytes()].concat());
    let outer = Sha256::digest([padded(0x5c), inner.to_vec()].concat());
    outer.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn whoever_was_named_is_called_when_a_question_waits_and_nobody_looks() {
    let place = Place::new();
    // The webhook's first answer is a fault that may pass.
    let (topic, hook) = (Listener::new(200), Listener::new(503));
    let (secret, written) = (secret_file(&place), place.path("written"));
    let command = format!(
        "printf '%s' \"$FARHELM_NOTICE_TITLE\" > '{0}.title'; cat > '{0}.part'; mv '{0}.part' '{0}'",
        written.display()
    );
    let config = place.path("farhelm.toml");
    let text = format!(
        "public-url = \"https://farhelm.example.org\"\n[notify]\nntfy = \"{}/kite-7\"\nwebhook = \
         \"{}/hook?a=1\"\nsecret-file = {secret:?}\ncommand = {command:?}\non = [\"prompt\"]\n",
        topic.url, hook.url
    );
    std::fs::write(&config, text).unwrap();
    let _up = place.up(&["--config", config.to_str().unwrap(), "--machine", "workshop"]);
    let session = place.json(&["sessions", "--json"])["sessions"][0]["session_id"].clone();
    place.told(&["send", "demo", "ask: git push"]);

    let published = topic.next();
    let told = published.json();
    assert_eq!((published.path.as_str(), &told["topic"]), ("/", &"kite-7".into()));
    let link = told["click"].clone();
    let start = format!("https://farhelm.example.org/#/s/{}/p/", session.as_str().unwrap());
    assert!(link.as_str().unwrap().starts_with(&start), "{link}");
    let words = told["message"].as_str().unwrap();
    assert!(words.contains("git push") && words.contains("on workshop"), "{words}");

    let first = hook.next();
    let again = hook.next();
    assert_eq!(first.body, again.body, "the same call, tried again");
    let told = again.json();
    assert_eq!((&told["kind"], &told["command"]), (&"prompt_waits".into(), &"git push".into()));
    assert_eq!((&told["session_id"], &told["link"]), (&session, &link));
    assert_eq!(link, format!("{start}{}", told["prompt_id"].as_str().unwrap()));
    assert_eq!(again.path, "/hook?a=1");
    assert_eq!(again.header("x-farhelm-signature"), format!("v1={}", signed(&again)));

    let begun = Instant::now();
    while !written.exists() {
        assert!(begun.elapsed() < PATIENCE, "the command was not called");
        std::thread::sleep(Duration::from_millis(5));
    }
    let given: Value = serde_json::from_slice(&std::fs::read(&written).unwrap()).unwrap();
    assert_eq!(given, told, "a command and a webhook are told the same");
    let title = std::fs::read_to_string(place.path("written.title")).unwrap();
    assert_eq!(told["title"], title);
}

#[test]
fn nobody_is_called_while_a_client_watches() {
    let place = Place::new();
    let (hook, secret) = (Listener::new(200), secret_file(&place));
    let secret = secret.to_str().unwrap();
    let _up = place.up(&["--notify-webhook", &hook.url, "--notify-secret-file", secret]);
    let mut tail = Lines::of(place.farhelm(&["tail", "demo", "--json", "--after", "0"]));
    let is_end = |event: &Value| event["type"] == "run_ended";
    place.told(&["send", "demo", "say: seen"]);
    let seen = tail.until(is_end);
    assert!(seen.iter().any(|event| said(event) == Some("seen")));
    // This takes longer than a matter rests: by its end the first one was decided about.
    place.told(&["send", "demo", "slow: 35"]);
    tail.until(is_end);
    tail.running.stop();

    place.run(&["send", "demo", "fail: boom"]);
    let mut told = hook.next().json();
    if told["kind"] == "run_ended" {
        // The one who saw this end left before it was decided about.
        let first_end = seen.last().unwrap()["sequence"].as_u64().unwrap();
        assert!(told["sequence"].as_u64().unwrap() > first_end, "somebody saw it: {told}");
        told = hook.next().json();
    }
    assert_eq!(told["kind"], "send_failed", "each is told once: {told}");
    assert_eq!(told["left_out"], 0, "what somebody saw is not counted either");
}

#[test]
fn a_question_of_which_nobody_was_told_is_told_after_a_restart_and_only_once() {
    let place = Place::new();
    let (hook, secret) = (Listener::new(200), secret_file(&place));
    let secret = secret.to_str().unwrap();
    let notify = ["--notify-webhook", &hook.url, "--notify-secret-file", secret];
    let mut up = place.up(&notify);
    // Somebody watches, so nobody is called.
    let mut tail = Lines::of(place.farhelm(&["tail", "demo", "--json", "--after", "0"]));
    place.told(&["send", "demo", "ask: git push"]);
    let seen = tail.until(|event| event["type"] == "permission_prompt");
    let prompt = seen.last().unwrap()["prompt_id"].clone();
    up.running.kill();
    tail.running.kill();

    // Nothing but the ledger is left; the machine is away.
    let mut relay = place.serving("relay", &notify);
    let told = hook.next().json();
    assert_eq!((&told["kind"], &told["prompt_id"]), (&"prompt_waits".into(), &prompt));
    let link = told["link"].as_str().unwrap();
    assert!(link.ends_with(&format!("/p/{}", prompt.as_str().unwrap())), "{link}");
    wait_until_noted(&place, prompt.as_str().unwrap());
    relay.running.kill();

    // A run that takes longer than a question rests after a start: it would have come before.
    let relay = place.serving("relay", &notify);
    let (url, token) = (relay.told["url"].as_str().unwrap(), relay.told["proxy_token"].clone());
    let other = place.path("other");
    let mut proxy = place.farhelm(&["proxy", "--relay", url, "--machine", "other"]);
    proxy.args(["--token", token.as_str().unwrap(), "--data", other.to_str().unwrap()]);
    let _proxy = Lines::of(proxy);
    let begun = Instant::now();
    let session = loop {
        assert!(begun.elapsed() < PATIENCE, "the other machine never comes");
        let listed = place.json(&["sessions", "--json"]);
        let found =
            listed["sessions"].as_array().unwrap().iter().find(|it| it["machine_label"] == "other");
        if let Some(found) = found {
            break found["session_id"].as_str().unwrap().to_owned();
        }
    };
    place.told(&["send", &session, "slow: 60"]);
    let told = hook.next().json();
    assert_eq!(told["kind"], "run_ended", "it was told before: {told}");
}

/// It is noted after the target's answer; the file of the ledger shows when.
fn wait_until_noted(place: &Place, prompt: &str) {
    let begun = Instant::now();
    let is_noted = || {
        let files = std::fs::read_dir(place.data()).unwrap().map_while(Result::ok);
        let mut bytes = files.filter_map(|file| std::fs::read(file.path()).ok());
        let (key, prompt) = (b"notify.told".as_slice(), prompt.as_bytes());
        bytes.any(|bytes| {
            let at = bytes.windows(key.len()).position(|it| it == key);
            at.is_some_and(|at| {
                let after = &bytes[at..bytes.len().min(at + 400)];
                after.windows(prompt.len()).any(|it| it == prompt)
            })
        })
    };
    while !is_noted() {
        assert!(begun.elapsed() < PATIENCE, "it is never noted");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_setting_that_cannot_work_is_refused_at_the_start() {
    let place = Place::new();
    for (words, advice) in [
        (&["--notify-ntfy", "kite"][..], "https://ntfy.sh/"),
        (&["--notify-webhook", "http://127.0.0.1:9/"], "--notify-secret-file"),
    ] {
        let refused = place.run(&[&["up", "--listen", "127.0.0.1:0"], words].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains(advice), "{told}");
    }
}
