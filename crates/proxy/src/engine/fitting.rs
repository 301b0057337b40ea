//! Keeps frames to the relay within their size limit. If the output of a tool is longer, its middle
//! is omitted, because a frame that the relay rejects would hold up all that follow.

use std::borrow::Cow;

use domain::Content;
use domain::content::ToolDetail;
use domain::session::Report;
use wire::native::shapes::character_before;

/// Bytes of a tool's detail that fit into a frame with room to spare, also when JSON has to spell
/// every sixth of them out.
const DETAIL_BYTES_MAX: usize = 2 << 20;

/// The report as it fits.
pub(super) fn fitting(report: &Report) -> Cow<'_, Report> {
    if let Report::ToolCall(call) = report
        && is_long(&call.detail)
    {
        let mut shorter = call.clone();
        shorten(&mut shorter.detail);
        return Cow::Owned(Report::ToolCall(shorter));
    }
    if let Report::ToolUpdate(update) = report
        && is_long(&update.detail)
    {
        let mut shorter = update.clone();
        shorten(&mut shorter.detail);
        return Cow::Owned(Report::ToolUpdate(shorter));
    }
    Cow::Borrowed(report)
}

fn is_long(detail: &Content<ToolDetail>) -> bool {
    detail.open().is_some_and(|detail| spelled(detail) > DETAIL_BYTES_MAX)
}

/// Bytes of everything as JSON writes it.
fn spelled(detail: &ToolDetail) -> usize {
    let texts = [&detail.title, &detail.input, &detail.output].into_iter().flatten();
    let diffs = detail.diffs.iter().flat_map(|diff| [&diff.old_text, &diff.new_text]).flatten();
    texts.chain(diffs).map(|text| spelled_text(text)).sum()
}

fn spelled_text(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}

fn shorten(detail: &mut Content<ToolDetail>) {
    let Content::Open(detail) = detail else { return };
    // An input is JSON, which has no middle that could be left out.
    if detail.input.as_deref().is_some_and(|input| spelled_text(input) > DETAIL_BYTES_MAX / 4) {
        detail.input = None;
    }
    let diffs = detail.diffs.iter_mut().flat_map(|diff| [&mut diff.old_text, &mut diff.new_text]);
    let mut texts: Vec<&mut String> = diffs.flatten().chain(detail.output.as_mut()).collect();
    let share = DETAIL_BYTES_MAX / 2 / texts.len().max(1);
    for text in &mut texts {
        while spelled_text(text) > share {
            // Half of what is there, or what would fit if nothing had to be spelled out.
            let kept = (text.len() / 2).min(share);
            **text = without_middle(text, kept);
        }
    }
}

fn without_middle(text: &str, kept_bytes: usize) -> String {
    let head = character_before(text, kept_bytes / 2);
    let tail = character_before(text, text.len() - kept_bytes / 2);
    if tail <= head || kept_bytes < 64 {
        return String::new();
    }
    let left_out = tail - head;
    format!("{}\n… {left_out} bytes omitted …\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use domain::content::{Diff, ToolStatus, ToolUpdate};

    use super::*;

    fn report(detail: ToolDetail) -> Report {
        let (id, status) = ("t".into(), ToolStatus::Completed);
        Report::ToolUpdate(ToolUpdate { id, status, detail: Content::Open(detail) })
    }

    fn frame_bytes(report: &Report) -> usize {
        let frame = wire::native::proxy_frames::encode_report(
            &"s-1".into(),
            report,
            None,
            Some(1),
            domain::Timestamp(0),
        );
        frame.len()
    }

    #[test]
    fn what_fits_is_told_as_it_is() {
        let output = Some("x".repeat(DETAIL_BYTES_MAX));
        let whole = report(ToolDetail { output, ..ToolDetail::default() });
        assert_eq!(*fitting(&whole), whole);
    }

    #[test]
    fn whatever_a_tool_prints_its_frame_is_one_that_the_relay_takes() {
        let long = 12 << 20;
        let diff = Diff {
            path: "a".to_owned(),
            old_text: Some("\u{1}".repeat(long)),
            new_text: Some("ä\n".repeat(long / 3)),
        };
        for detail in [
            ToolDetail { output: Some("x".repeat(long)), ..ToolDetail::default() },
            ToolDetail { output: Some("\u{1}".repeat(long)), ..ToolDetail::default() },
            ToolDetail {
                input: Some(format!("\"{}\"", "x".repeat(long))),
                ..ToolDetail::default()
            },
            ToolDetail {
                diffs: vec![diff],
                output: Some("y".repeat(long)),
                ..ToolDetail::default()
            },
        ] {
            let whole = report(detail);
            assert!(frame_bytes(&fitting(&whole)) < 4 << 20);
        }
    }

    #[test]
    fn head_and_tail_of_an_output_stay() {
        let output = format!("head{}tail", "x".repeat(8 << 20));
        let shorter =
            fitting(&report(ToolDetail { output: Some(output), ..ToolDetail::default() }))
                .into_owned();
        let Report::ToolUpdate(ToolUpdate { detail: Content::Open(detail), .. }) = shorter else {
            panic!("an update")
        };
        let output = detail.output.unwrap();
        assert!(output.starts_with("headx") && output.ends_with("xtail"));
        assert!(output.contains("bytes omitted"));
    }
}
