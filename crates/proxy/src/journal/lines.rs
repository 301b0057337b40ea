//! Records as lines: a checksum, a space, and the record.
//!
//! A frame is `F NUMBER MEANS<tab>FRAME`, everything else `R JSON`. The JSON written here contains
//! line ends and tabs only in escaped form.

use bytes::Bytes;

use super::{Means, Record};

/// Adds a record to a text of lines.
pub fn encode(record: &Record, lines: &mut Vec<u8>) {
    let payload = match record {
        Record::Frame { number, frame, means } => {
            let means = serde_json::to_string(means).unwrap_or_default();
            let mut payload = format!("F {number} {means}\t").into_bytes();
            payload.extend_from_slice(frame);
            payload
        }
        Record::Link(_)
        | Record::Acked(_)
        | Record::Received { .. }
        | Record::Attempting(_)
        | Record::Settled(..)
        | Record::Opened(..)
        | Record::Launched(..)
        | Record::Closing(..)
        | Record::Running(..)
        | Record::Seen(_)
        | Record::Piece(..)
        | Record::Whole(..) => {
            let mut payload = b"R ".to_vec();
            payload.extend(serde_json::to_vec(record).unwrap_or_default());
            payload
        }
    };
    lines.extend_from_slice(format!("{:08x} ", checksum(&payload)).as_bytes());
    lines.extend(payload);
    lines.push(b'\n');
}

/// The records of a text of lines, and how many bytes at its end are not whole.
pub fn decode(bytes: &[u8]) -> (Vec<Record>, usize) {
    let mut records = vec![];
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let Some(record) = decode_line(&rest[..end]) else { break };
        records.push(record);
        rest = &rest[end + 1..];
    }
    (records, rest.len())
}

fn decode_line(line: &[u8]) -> Option<Record> {
    let (sum, payload) = (line.get(..8)?, line.get(9..)?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    if line[8] != b' ' || sum != checksum(payload) {
        return None;
    }
    match (payload.first()?, payload.get(1)?) {
        (b'R', b' ') => serde_json::from_slice(&payload[2..]).ok().filter(is_countable),
        (b'F', b' ') => decode_frame(&payload[2..]),
        _ => None,
    }
}

fn decode_frame(payload: &[u8]) -> Option<Record> {
    let tab = payload.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&payload[..tab]).ok()?;
    let (number, means) = head.split_once(' ')?;
    let means: Option<Means> = serde_json::from_str(means).ok()?;
    let frame = Bytes::copy_from_slice(&payload[tab + 1..]);
    Some(Record::Frame { number: number.parse().ok()?, frame, means }).filter(is_countable)
}

/// Whether a number can come after those that the record names. No link comes near the highest
/// one there is: a record that names it is damaged.
fn is_countable(record: &Record) -> bool {
    !matches!(record, Record::Frame { number: u64::MAX, .. } | Record::Acked(u64::MAX))
}

/// CRC-32, as in Ethernet and zip.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        TABLE[usize::from((sum ^ u32::from(*byte)).to_le_bytes()[0])] ^ (sum >> 8)
    })
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut entry: usize = 0;
    let mut start: u32 = 0;
    while entry < table.len() {
        let mut sum = start;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xEDB8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[entry] = sum;
        entry += 1;
        start += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Attempt, Going};
    use domain::content::Failure;
    use domain::passing::{Delta, Voice};
    use domain::{Content, Sequence, Timestamp};

    #[test]
    fn the_checksum_is_the_well_known_one() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn every_record_is_read_back_as_it_was_written() {
        let records = some_records();
        let mut lines = vec![];
        for record in &records {
            encode(record, &mut lines);
        }
        assert_eq!(decode(&lines), (records, 0));
    }

    #[test]
    fn wherever_the_file_is_cut_the_whole_lines_before_are_read() {
        let records = some_records();
        let mut lines = vec![];
        let mut ends = vec![];
        for record in &records {
            encode(record, &mut lines);
            ends.push(lines.len());
        }
        for cut in 0..lines.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let (read, left) = decode(&lines[..cut]);
            assert_eq!(read, records[..whole], "cut at {cut}");
            assert_eq!(left, cut - ends[..whole].last().copied().unwrap_or(0));
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_reading() {
        let mut lines = vec![];
        for record in some_records() {
            encode(&record, &mut lines);
        }
        let first = lines.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        lines[first + 12] ^= 4;
        let (read, left) = decode(&lines);
        assert_eq!(read.len(), 1);
        assert_eq!(left, lines.len() - first);
    }

    #[test]
    fn a_piece_that_an_earlier_release_wrote_has_no_parent() {
        let payload = r#"R {"piece":["s",{"message":"a1","part":0,"voice":"text","offset":3,"words":{"open":"ab"}}]}"#;
        let line = format!("{:08x} {payload}\n", checksum(payload.as_bytes()));
        let words = Content::Open("ab".to_owned());
        let piece = Delta { message: "a1".into(), part: 0, voice: Voice::Text, offset: 3, words };
        let record = Record::Piece("s".into(), piece, None);
        assert_eq!(decode(line.as_bytes()), (vec![record.clone()], 0));
        let mut written = vec![];
        encode(&record, &mut written);
        assert_eq!(written, line.as_bytes());
    }

    fn some_records() -> Vec<Record> {
        let attempt = Attempt { session: "s".into(), number: Sequence(4), id: "m\t1\n".into() };
        let failure = Failure::new("code", "with a\ttab");
        let words = Content::Open("a\n\tb".to_owned());
        let piece = Delta { message: "a1".into(), part: 0, voice: Voice::Text, offset: 3, words };
        vec![
            Record::Link("l".into()),
            Record::Frame {
                number: 7,
                frame: Bytes::from_static(br#"{"type":"notice","text":"a\tb"}"#),
                means: Some(Means::Settled(attempt.clone(), Some(failure))),
            },
            Record::Frame { number: 8, frame: Bytes::from_static(b"{}"), means: None },
            Record::Attempting(attempt.clone()),
            Record::Settled(attempt, None),
            Record::Running("s".into(), Some(Going { run: "r1".into(), since: Timestamp(1) })),
            Record::Piece("s".into(), piece.clone(), None),
            Record::Piece("s".into(), piece, Some("t1".into())),
            Record::Seen(Timestamp(2)),
            Record::Whole("s".into(), "a1".into()),
            Record::Running("s".into(), None),
            Record::Acked(7),
        ]
    }
}
