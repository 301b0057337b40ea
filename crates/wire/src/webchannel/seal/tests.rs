use serde_json::Value;

use super::*;

/// Made with another implementation.
fn vectors() -> Value {
    let text = include_str!("../../../../../fixtures/webchannel/vectors.json");
    serde_json::from_str(text).unwrap()
}

fn from_hex<const N: usize>(text: &Value) -> [u8; N] {
    let text = text.as_str().unwrap();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.try_into().unwrap()
}

fn from_base64<const N: usize>(text: &Value) -> [u8; N] {
    decode_exactly(text.as_str().unwrap()).unwrap()
}

// spec: webchannel/sealing.1
#[test]
fn the_known_answers_are_known() {
    let vectors = vectors();
    let all = vectors["vectors"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    for vector in all {
        let (agent, client) = (&vector["agent_secret"], &vector["client_secret"]);
        let (agent, client) = (Secret::from(from_hex(agent)), Secret::from(from_hex(client)));
        assert_eq!(agent.public(), from_base64(&vector["agent_pub"]));
        assert_eq!(client.public(), from_base64(&vector["client_pub"]));
        let key = Key::agree(&agent, &client.public()).unwrap();
        assert_eq!(key.bytes(), from_hex(&vector["key"]));
        assert_eq!(Key::agree(&client, &agent.public()).unwrap().bytes(), key.bytes());

        let (nonce, plaintext) = (from_base64(&vector["nonce"]), vector["plaintext"].as_str());
        let mut sealed = plaintext.unwrap().as_bytes().to_vec();
        key.seal_in_place(nonce, &mut sealed);
        assert_eq!(encode(&sealed), vector["ciphertext"].as_str().unwrap());
        assert_eq!(key.open(nonce, &sealed).unwrap(), plaintext.unwrap().as_bytes());
    }
}

// spec: webchannel/pairing.4
#[test]
fn a_public_key_of_low_order_agrees_on_nothing() {
    let own = Secret::from([7; KEY_BYTES]);
    for point in vectors()["low_order"].as_array().unwrap() {
        assert!(Key::agree(&own, &from_hex(point)).is_none(), "{point}");
    }
}

// spec: webchannel/sealing.3
#[test]
fn what_was_changed_cut_or_sealed_otherwise_does_not_open() {
    let key = Key::from([1; KEY_BYTES]);
    let nonce = [2; NONCE_BYTES];
    let mut sealed = b"words".to_vec();
    key.seal_in_place(nonce, &mut sealed);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert_eq!(key.open(nonce, &changed), None);
        assert_eq!(key.open(nonce, &sealed[..at]), None);
    }
    assert_eq!(key.open([3; NONCE_BYTES], &sealed), None);
    assert_eq!(Key::from([9; KEY_BYTES]).open(nonce, &sealed), None);
}

#[test]
fn chance_never_gives_the_same_twice_and_differs_from_seed_to_seed() {
    let mut chance = Chance::new([1; KEY_BYTES]);
    let mut drawn: Vec<_> = (0..1_000).map(|_| chance.nonce()).collect();
    drawn.push(Chance::new([2; KEY_BYTES]).nonce());
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 1_001);
    assert_eq!(Chance::new([1; KEY_BYTES]).nonce(), Chance::new([1; KEY_BYTES]).nonce());
}

#[test]
fn base64_is_read_with_and_without_padding_and_only_of_its_length() {
    assert_eq!(decode_exactly::<1>("_w"), Some([255]));
    assert_eq!(decode_exactly::<1>("_w=="), Some([255]));
    assert_eq!(decode_exactly::<1>("_wA"), None);
    assert_eq!(decode_exactly::<1>("/w"), None);
    assert_eq!(decode_exactly::<1>(&"A".repeat(10_000)), None);
}

#[test]
fn secrets_are_not_in_debug_words() {
    let words =
        format!("{:?}{:?}{:?}", Key::from([7; 32]), Secret::from([7; 32]), Chance::new([7; 32]));
    assert!(!words.contains('7'), "{words}");
}
