//! What panels cost: measured, not judged. `cargo xtask ide --bench` prints the figures.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ide::stage::{Stage, id};
use crate::support::{Lines, said};

const PANELS: u32 = 20;
const IDLE: Duration = Duration::from_secs(30);
const CHANGES: usize = 100;
/// Of the kernel's clock, in which it counts a process's time.
const TICKS_A_SECOND: f64 = 100.0;

#[test]
#[ignore = "measures: run `cargo xtask ide --bench`"]
fn figures_of_twenty_panels() {
    let Some(mut stage) = Stage::new("figures of panels") else { return };
    let tabs: Vec<String> = (0..PANELS)
        .map(|number| {
            let switches = format!("rows=50&title=window%20{number}.");
            stage.open("opencode-web", &format!("p{number}"), &switches)
        })
        .collect();
    let bare = browser_use(&stage, IDLE);
    stage.up();
    stage.until("every panel", |sessions| {
        (sessions.iter().filter(|it| it["status"] == "healthy").count() == tabs.len()).then_some(())
    });
    let process = stage.up.as_ref().map(|up| up.running.0.id()).unwrap();
    // What attaching takes is no part of being idle.
    std::thread::sleep(Duration::from_secs(3));
    let before = processor_seconds(process);
    let watched = browser_use(&stage, IDLE);
    let machine = (processor_seconds(process) - before) / IDLE.as_secs_f64();
    let share = |seconds: f64| seconds / f64::from(PANELS) * 100.0;

    eprintln!(
        "panels: {PANELS} attached, idle: farhelm {:.3} % of a core for each, the browser {:.3} % \
         (without farhelm {:.3} %)",
        share(machine),
        share(watched),
        share(bare),
    );
    // Behind others, and in front.
    time_changes(&stage, "behind others", (0, &tabs[0]));
    let in_front = tabs.last().unwrap();
    stage.call("Target.activateTarget", json!({"targetId": in_front}));
    time_changes(&stage, "in front", (PANELS - 1, in_front));
}

/// How long a change in a window takes to a client that watches.
fn time_changes(stage: &Stage, place: &str, (number, tab): (u32, &str)) {
    let title = format!("window {number}.");
    let session = stage.until("the window's session", |sessions| {
        sessions.iter().find(|it| it["window_title"] == title.as_str()).map(id)
    });
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    let page = stage.page(tab);
    let time = |what: &str,
                order: &dyn Fn(&str) -> Value,
                is_seen: &dyn Fn(&Value, &str) -> bool| {
        let mut times: Vec<Duration> = vec![];
        for number in 0..CHANGES {
            let words = format!("{what} number {number}. ");
            let begun = Instant::now();
            stage.page_does(&page, &order(&words));
            tail.until(|event| is_seen(event, words.trim()));
            times.push(begun.elapsed());
        }
        times.sort();
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_millis();
        eprintln!(
            "panels: {what} in a window {place} reach a client in {} ms (p50), {} ms (p95), {} ms \
             at most",
            at(50),
            at(95),
            at(100),
        );
    };
    let is_said = |event: &Value, words: &str| said(event).is_some_and(|it| it.contains(words));
    let say = |words: &str| json!({"do": "say", "role": "assistant", "text": words});
    time("messages", &say, &is_said);
    time("questions", &|words| json!({"do": "ask", "text": words}), &|event, words| {
        event["type"] == "permission_prompt"
            && event["prompt_text"].as_str().is_some_and(|it| it.contains(words))
    });
    stage.page_does(&page, &json!({"do": "withdraw"}));
    stage.page_does(&page, &json!({"do": "busy", "busy": true}));
    stage.page_does(&page, &say("It begins. "));
    time("streamed words", &|words| json!({"do": "write", "text": words}), &|event, words| {
        event["type"] == "message_delta"
            && event["content"].as_str().is_some_and(|it| it.contains(words))
    });
    stage.page_does(&page, &json!({"do": "busy", "busy": false}));
}

/// How much of a core the browser takes meanwhile, all its processes together.
fn browser_use(stage: &Stage, time: Duration) -> f64 {
    let total = || -> f64 {
        let processes = stage.call("SystemInfo.getProcessInfo", json!({}));
        let all = processes["processInfo"].as_array().unwrap().clone();
        all.iter().filter_map(|it| it["cpuTime"].as_f64()).sum()
    };
    let before = total();
    std::thread::sleep(time);
    (total() - before) / time.as_secs_f64()
}

fn processor_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / TICKS_A_SECOND
}
