//! What a webchannel client with a key says: no input can hold what is sealed for a key that is
//! agreed on as it is played.
//!
//! `"$token"` is the token that pairing gave, `"$public"` the client's public key, and an `e2e` of
//! `{"seal": …}` is sealed.

use serde_json::{Value, json};
use wire::webchannel::seal::{self, Key, Secret};

use crate::fuzz::world::World;

/// The token that pairing gives.
pub(crate) const TOKEN: &str = "fh_paired";
/// The token of a client that was paired before, with the key [`KEY`].
pub(crate) const TOKEN_EARLIER: &str = "fh_earlier";
/// Its key.
pub(crate) const KEY: [u8; 32] = [7; 32];
/// The client's half of the key that pairing agrees on.
const SECRET: [u8; 32] = [9; 32];

/// The frame that such a client says.
pub(crate) fn said(world: &World, line: &str) -> String {
    let public = seal::encode(&Secret::from(SECRET).public());
    let line = line.replace("$token", TOKEN).replace("$public", &public);
    if !line.contains("\"seal\"") {
        return line;
    }
    let Ok(mut frame) = serde_json::from_str::<Value>(&line) else { return line };
    let Some(payload) = frame.pointer_mut("/payload") else { return line };
    let Some(matter) = payload.pointer_mut("/e2e/seal").map(Value::take) else { return line };
    let mut buffer = matter.to_string().into_bytes();
    // The same words twice are a replay, others are not.
    let mut nonce = [0; seal::NONCE_BYTES];
    for (at, byte) in buffer.iter().enumerate() {
        nonce[at % seal::NONCE_BYTES] ^= byte.rotate_left(u32::try_from(at % 8).unwrap_or(0));
    }
    key(world, &payload["access_token"]).seal_in_place(nonce, &mut buffer);
    payload["e2e"] = json!({ "nonce": seal::encode(&nonce), "ciphertext": seal::encode(&buffer) });
    frame.to_string()
}

/// What was sealed for this client.
#[cfg(test)]
pub(crate) fn opened(world: &World) -> Vec<Value> {
    let key = key(world, &json!(TOKEN));
    let open = |frame: &String| {
        let frame: Value = serde_json::from_str(frame).ok()?;
        let sealed = &frame["payload"]["e2e"];
        let nonce = seal::decode_exactly(sealed["nonce"].as_str()?)?;
        let ciphertext = seal::decode(sealed["ciphertext"].as_str()?)?;
        serde_json::from_slice(&key.open(nonce, &ciphertext)?).ok()
    };
    world.heard.iter().filter_map(open).collect()
}

fn key(world: &World, token: &Value) -> Key {
    if token == TOKEN_EARLIER {
        return KEY.into();
    }
    let paired = world.heard.iter().rev().filter(|frame| frame.contains("agent_pub"));
    let mut agreed = paired.filter_map(|frame| {
        let frame: Value = serde_json::from_str(frame).ok()?;
        let public = seal::decode_exactly(frame["payload"]["e2e"]["agent_pub"].as_str()?)?;
        Key::agree(&Secret::from(SECRET), &public)
    });
    agreed.next().unwrap_or_else(|| KEY.into())
}
