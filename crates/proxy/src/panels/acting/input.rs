//! Mouse and keyboard events that the browser treats as a person's.
//!
//! **Invariant:** every mouse press is followed by a release.
//!
//! Not here: where to press (`pressing`), what to type (`sending`).

use std::time::Duration;

use cdp::Fault;
use serde_json::{Value, json};

use super::Actor;
use super::hand::{CALL_TIMEOUT, Hand};

/// A point that no page has.
const OUTSIDE: (f64, f64) = (-1.0, -1.0);
const ALT: u32 = 1;
const CONTROL: u32 = 2;
const META: u32 = 4;
const SHIFT: u32 = 8;

/// A key with what is held down beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chord {
    modifiers: u32,
    key: String,
    code: String,
    number: u32,
    /// What it types.
    text: Option<String>,
    /// What an editor does at it, where the system and not the page knows the key.
    command: Option<&'static str>,
}

impl Chord {
    /// Reads `F1`, `Control+Shift+P`, `Enter`; `None` for a key that is not known.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut modifiers = 0;
        let mut parts: Vec<&str> = text.split('+').collect();
        let name = parts.pop()?;
        for part in parts {
            modifiers |= match part {
                "Alt" => ALT,
                "Control" | "Ctrl" => CONTROL,
                "Meta" | "Command" => META,
                "Shift" => SHIFT,
                _ => return None,
            };
        }
        Self::named(name).map(|chord| Self { modifiers, ..chord.held(modifiers) })
    }

    fn named(name: &str) -> Option<Self> {
        let plain = |key: &str, code: &str, number: u32, text: Option<&str>| Self {
            modifiers: 0,
            key: key.to_owned(),
            code: code.to_owned(),
            number,
            text: text.map(str::to_owned),
            command: None,
        };
        let known = [
            ("Enter", 13, Some("\r")),
            ("Escape", 27, None),
            ("Tab", 9, None),
            ("Backspace", 8, None),
            ("Delete", 46, None),
            ("ArrowUp", 38, None),
            ("ArrowDown", 40, None),
            ("ArrowLeft", 37, None),
            ("ArrowRight", 39, None),
            ("Home", 36, None),
            ("End", 35, None),
        ];
        if let Some((key, number, text)) = known.iter().find(|(key, _, _)| *key == name) {
            return Some(plain(key, key, *number, *text));
        }
        if let Some(number) = name.strip_prefix('F').and_then(|digits| digits.parse::<u32>().ok()) {
            return (1..=12).contains(&number).then(|| plain(name, name, 111 + number, None));
        }
        let mut letters = name.chars();
        let letter = letters.next().filter(|_| letters.next().is_none())?;
        if !letter.is_ascii_alphanumeric() {
            return None;
        }
        let upper = letter.to_ascii_uppercase();
        let code =
            if upper.is_ascii_digit() { format!("Digit{upper}") } else { format!("Key{upper}") };
        let lower = letter.to_ascii_lowercase().to_string();
        Some(plain(&lower, &code, u32::from(upper), Some(&lower)))
    }

    /// With Control or the like held down, a letter types nothing.
    fn held(mut self, modifiers: u32) -> Self {
        if modifiers & (CONTROL | META | ALT) != 0 {
            self.text = None;
        }
        self
    }

    /// Selects everything, as the system's own key for it does.
    fn select_all(is_mac: bool) -> Self {
        let modifiers = if is_mac { META } else { CONTROL };
        let (key, code) = ("a".to_owned(), "KeyA".to_owned());
        Self { modifiers, key, code, number: 65, text: None, command: Some("selectAll") }
    }

    /// Without a native code: systems number their keys differently, and with another's number
    /// pages do not know the key.
    fn event(&self, kind: &str) -> Value {
        let mut event = json!({
            "type": kind,
            "modifiers": self.modifiers,
            "key": self.key,
            "code": self.code,
            "windowsVirtualKeyCode": self.number,
        });
        if kind != "keyUp" {
            if let Some(text) = &self.text {
                event["text"] = text.as_str().into();
            }
            if let Some(command) = self.command {
                event["commands"] = json!([command]);
            }
        }
        event
    }
}

impl Hand<'_> {
    async fn input(&self, method: &str, params: Value) -> Result<(), Fault> {
        let Actor { browser, page, .. } = self.actor;
        browser.call_within(CALL_TIMEOUT, Some(page), method, params).await.map(drop)
    }

    /// Presses a key and lets it go.
    pub(super) async fn key(&self, chord: &Chord) -> Result<(), Fault> {
        let down = if chord.text.is_some() { "keyDown" } else { "rawKeyDown" };
        self.input("Input.dispatchKeyEvent", chord.event(down)).await?;
        self.input("Input.dispatchKeyEvent", chord.event("keyUp")).await
    }

    /// The same for the composer and nothing else; whether it came there.
    pub(super) async fn key_within(&self, chord: &Chord) -> Result<bool, Fault> {
        self.before_key(chord, false).await?;
        let pressed = self.key(chord).await;
        let came = self.after_key().await;
        pressed.and(came)
    }

    /// Only in the composer the next key does anything; one that sends only while the composer
    /// holds what is to be sent, and nothing is asked.
    pub(super) async fn before_key(&self, chord: &Chord, sends: bool) -> Result<(), Fault> {
        self.call("beforeKey", &[json!(chord.key), json!(sends)]).await
    }

    /// Whether it came to the composer.
    pub(super) async fn after_key(&self) -> Result<bool, Fault> {
        self.call("afterKey", &[]).await
    }

    /// Selects everything in the composer.
    pub(super) async fn select_all(&self, is_mac: bool) -> Result<bool, Fault> {
        self.key_within(&Chord::select_all(is_mac)).await
    }

    /// Puts text where the focus is, as an input method does.
    pub(super) async fn insert(&self, text: &str) -> Result<(), Fault> {
        self.insert_for(cdp::CALL_TIMEOUT, text).await
    }

    /// The same into the composer and nowhere else; whether it came there. A browser takes its
    /// time for a long text.
    pub(super) async fn insert_within(&self, time: Duration, text: &str) -> Result<bool, Fault> {
        if !self.call::<bool>("beforeText", &[]).await? {
            return Ok(false);
        }
        let inserted = self.insert_for(time, text).await;
        let came = self.call::<bool>("afterText", &[]).await;
        inserted.and(came)
    }

    async fn insert_for(&self, within: Duration, text: &str) -> Result<(), Fault> {
        let (browser, page) = (&self.actor.browser, Some(&self.actor.page));
        let params = json!({"text": text});
        browser.call_within(within, page, "Input.insertText", params).await.map(drop)
    }

    /// Brings the mouse to a point of the target.
    pub(super) async fn move_to(&self, point: (f64, f64)) -> Result<(), Fault> {
        self.mouse("mouseMoved", point, "none", 0).await
    }

    /// Takes the mouse out of the target: nothing is under it any more. A page that is gone has
    /// none.
    pub(super) async fn take_mouse_away(&self) {
        if let Err(fault) = self.move_to(OUTSIDE).await {
            tracing::debug!(%fault, "could not move the mouse away");
        }
    }

    /// Presses the left button there. The release follows at once: what moves between the two is
    /// not clicked. (To hold the press by pointer capture keeps VS Code's menus from hearing it.)
    pub(super) async fn click(&self, point: (f64, f64)) -> Result<(), Fault> {
        let down = self.mouse("mousePressed", point, "left", 1);
        let up = self.mouse("mouseReleased", point, "left", 1);
        let (down, up) = tokio::join!(biased; down, up);
        down.and(up)
    }

    async fn mouse(
        &self,
        kind: &str,
        (x, y): (f64, f64),
        button: &str,
        click_count: u32,
    ) -> Result<(), Fault> {
        let params = json!({"type": kind, "x": x, "y": y, "button": button,
            "clickCount": click_count, "pointerType": "mouse"});
        self.input("Input.dispatchMouseEvent", params).await
    }

    /// Lets the panel believe that its window has the focus, or stops doing so. Some editors take
    /// no text else. Where it cannot be had, it is tried without.
    pub(super) async fn emulate_focus(&self, is_on: bool) {
        let params = json!({"enabled": is_on});
        if let Err(fault) = self.input("Emulation.setFocusEmulationEnabled", params).await {
            tracing::debug!(%fault, "could not emulate focus for the panel");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_profiles_write_them() {
        let chord = Chord::parse("Control+Shift+P").unwrap();
        assert_eq!((chord.modifiers, chord.code.as_str(), chord.number), (10, "KeyP", 80));
        assert_eq!(chord.text, None);
        assert_eq!(Chord::parse("F1").unwrap().number, 112);
        assert_eq!(Chord::parse("Enter").unwrap().text.as_deref(), Some("\r"));
        assert_eq!(Chord::parse("7").unwrap().code, "Digit7");
        for odd in ["", "Hyper+A", "F13", "Return", "Control+", "ab"] {
            assert_eq!(Chord::parse(odd), None, "{odd}");
        }
    }
}
