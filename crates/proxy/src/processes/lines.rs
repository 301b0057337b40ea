//! Splits a program's output into lines, however long or broken they are.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Bytes of a line. A longer one is left out, because nobody can tell what it says.
pub(super) const LINE_BYTES_MAX: usize = 32 << 20;
const BUFFER_BYTES: usize = 16 * 1024;

/// Reads lines until the end.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line(String),
    /// A line was too long; its bytes are gone.
    TooLong(usize),
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(BUFFER_BYTES, reader), line: vec![] }
    }

    pub(super) async fn next(&mut self) -> Next {
        let mut left_out = 0;
        loop {
            let Ok(buffer) = self.reader.fill_buf().await else { return Next::End };
            if buffer.is_empty() {
                return if self.line.is_empty() { Next::End } else { self.taken(left_out) };
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if left_out > 0 || self.line.len() + piece.len() > LINE_BYTES_MAX {
                left_out += self.line.len() + piece.len();
                self.line = vec![];
            } else {
                self.line.extend_from_slice(piece);
            }
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return self.taken(left_out);
            }
        }
    }

    fn taken(&mut self, left_out: usize) -> Next {
        if left_out > 0 {
            return Next::TooLong(left_out);
        }
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        // Most lines are UTF-8 and are not copied.
        let text = String::from_utf8(line);
        Next::Line(text.unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_taken_whole_and_the_last_needs_no_end() {
        let mut lines = Lines::new(&b"one\r\n\xff\n\nlast"[..]);
        assert_eq!(lines.next().await, Next::Line("one".into()));
        assert_eq!(lines.next().await, Next::Line("\u{fffd}".into()));
        assert_eq!(lines.next().await, Next::Line(String::new()));
        assert_eq!(lines.next().await, Next::Line("last".into()));
        assert_eq!(lines.next().await, Next::End);
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_is_left_out_and_the_next_is_read() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 1];
        text.extend_from_slice(b"\nnext\n");
        let mut lines = Lines::new(&text[..]);
        assert_eq!(lines.next().await, Next::TooLong(LINE_BYTES_MAX + 1));
        assert_eq!(lines.next().await, Next::Line("next".into()));
    }
}
