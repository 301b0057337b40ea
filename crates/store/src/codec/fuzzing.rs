//! Properties of these decoders that hold for any bytes. The targets in `fuzz/` look for bytes
//! that break them, and a test replays `fixtures/fuzz`.

use serde_json::Value;

use super::*;

/// A session's event. The two ways of reading agree, and what is read is written and read alike.
///
/// # Panics
///
/// Where that does not hold.
pub fn session_event(body: &[u8]) {
    let general = decode_general(body);
    if let Some(quick) = quick::message(body) {
        assert_eq!(Ok(&quick), general.as_ref(), "two ways of reading say two things");
    }
    let Ok(recorded) = decode_event(body) else {
        assert!(general.is_err());
        return;
    };
    assert_eq!(decode_event(&encode_event(&recorded)), Ok(recorded));
}

/// A fleet's event.
///
/// # Panics
///
/// Where that does not hold.
pub fn fleet_event(body: &[u8]) {
    let Ok(recorded) = decode_fleet_event(body) else { return };
    assert_eq!(decode_fleet_event(&encode_fleet_event(&recorded)), Ok(recorded));
}

/// A stored state of any kind: what is read is written and read alike.
///
/// # Panics
///
/// Where that does not hold.
pub fn state(body: &[u8]) {
    again(body, |body| decode_session(body).map(|stored| stored.state), encode_session);
    again(body, |body| decode_fleet(body).map(|stored| stored.state), encode_fleet);
    again(body, decode_card, encode_card);
    again(body, decode_told, encode_told);
}

/// States cannot be compared; what they are written as can.
fn again<T>(
    body: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, Fault>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let Ok(state) = decode(body) else { return };
    let written = encode(&state);
    let Ok(read) = decode(&written) else { panic!("what was written is not read") };
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    assert_eq!(value(&encode(&read)), value(&written));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fuzzing_found_is_survived() {
        for (target, holds) in [
            ("session_events", session_event as fn(&[u8])),
            ("fleet_events", fleet_event),
            ("states", state),
            ("packed_rows", crate::sqlite::fuzzing::row),
        ] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz");
            let folder = std::path::Path::new(folder).join(target);
            let inputs: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
            assert!(inputs.len() >= 3, "{} holds next to nothing", folder.display());
            for input in inputs {
                holds(&std::fs::read(input.unwrap().path()).unwrap());
            }
        }
    }
}
