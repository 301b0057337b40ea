//! What must hold of the journal for any bytes: a target in `fuzz/` looks for bytes that break it,
//! and a test replays `fixtures/fuzz`.

use super::lines::checksum;
use super::{Book, Record, decode, encode};

/// A journal of these bytes, and one of which each line is given its right checksum: damage is met
/// before anything else, a line that another release wrote is not.
///
/// # Panics
///
/// Where that does not hold.
pub fn journal(bytes: &[u8]) {
    check(bytes);
    let mut whole = vec![];
    for line in bytes.split(|byte| *byte == b'\n') {
        whole.extend(format!("{:08x} ", checksum(line)).into_bytes());
        whole.extend_from_slice(line);
        whole.push(b'\n');
    }
    check(&whole);
}

fn check(bytes: &[u8]) {
    let (records, left) = decode(bytes);
    assert!(left <= bytes.len());
    assert!(records.len() <= bytes.split(|byte| *byte == b'\n').count());
    assert_eq!(decode(&written(&records)), (records.clone(), 0));

    // What they add up to is written back as fewer records that say the same.
    let kept = Book::replay(records).records();
    assert_eq!(decode(&written(&kept)), (kept.clone(), 0));
    assert_eq!(Book::replay(kept.clone()).records(), kept);
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut lines = vec![];
    for record in records {
        encode(record, &mut lines);
    }
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_fuzzing_found_is_survived() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/fuzz/proxy_journal");
        let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(inputs.len() >= 3, "{folder} holds next to nothing");
        for input in inputs {
            super::journal(&std::fs::read(input.unwrap().path()).unwrap());
        }
    }
}
