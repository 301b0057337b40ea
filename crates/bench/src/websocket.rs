//! A minimal WebSocket client whose cost does not affect the measurement.
//!
//! Text frames in one piece, masked with zeros (a valid key that leaves the bytes unchanged).
//! Incoming data is examined in place and never copied as a whole.
//!
//! Not here: a client for people (`client`).

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

use super::trouble::{During as _, Outcome, Trouble};

/// A measurement in which nothing arrives for so long has failed.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);
const BUFFER_BYTES: usize = 256 * 1024;
const RESPONSE_BYTES_MAX: usize = 16 * 1024;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// The request that opens a WebSocket.
pub(crate) fn handshake(path: &str, token: &str) -> String {
    let bearer =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n{bearer}\r\n"
    )
}

/// Where the answer to the handshake ends, once it is there; trouble if it is not a yes.
pub(crate) fn handshake_end(answer: &[u8]) -> Outcome<Option<usize>> {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else {
        let endless = answer.len() > RESPONSE_BYTES_MAX;
        return if endless {
            Err(Trouble::new("the relay's handshake response is too long"))
        } else {
            Ok(None)
        };
    };
    if answer.starts_with(b"HTTP/1.1 101 ") {
        return Ok(Some(end + 4));
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(Trouble::new(format!("the relay responded with {}", String::from_utf8_lossy(line))))
}

/// Appends a client's text frame.
pub(crate) fn write_text(text: &str, into: &mut Vec<u8>) {
    write_head(text.len(), 0x80, into);
    into.extend_from_slice(&[0; 4]);
    into.extend_from_slice(text.as_bytes());
}

/// Appends a text frame as a server sends it.
pub(crate) fn write_server_text(text: &[u8], into: &mut Vec<u8>) {
    write_head(text.len(), 0, into);
    into.extend_from_slice(text);
}

fn write_head(length: usize, masked: u8, into: &mut Vec<u8>) {
    into.push(0x80 | TEXT);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length), _) if length < 126 => into.push(masked | length),
        (_, Ok(length)) => {
            into.push(masked | 0x7e);
            into.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            into.push(masked | 0x7f);
            into.extend_from_slice(&u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
        }
    }
}

/// A frame at the beginning of some bytes.
struct Frame {
    opcode: u8,
    payload: Range<usize>,
}

/// `None` while it is not whole. Servers do not mask.
fn first_frame(bytes: &[u8]) -> Option<Frame> {
    let (opcode, short) = (bytes.first()? & 0x0f, bytes.get(1)? & 0x7f);
    let (head, length) = match short {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => {
            let length = u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?);
            (10, usize::try_from(length).ok()?)
        }
        short => (2, usize::from(short)),
    };
    let end = head + length;
    (bytes.len() >= end).then_some(Frame { opcode, payload: head..end })
}

/// Finds the frames in what arrives in pieces. Keeps only what is not whole yet, so that
/// thousands of connections can share one read buffer.
#[derive(Default)]
pub(crate) struct Frames {
    rest: Vec<u8>,
}

impl Frames {
    /// Shows each whole text frame.
    pub(crate) fn feed(&mut self, chunk: &[u8], mut show: impl FnMut(&[u8])) -> Outcome<()> {
        if self.rest.is_empty() {
            let used = Self::walk(chunk, &mut show)?;
            self.rest.extend_from_slice(&chunk[used..]);
            return Ok(());
        }
        self.rest.extend_from_slice(chunk);
        let used = Self::walk(&self.rest, &mut show)?;
        self.rest.drain(..used);
        Ok(())
    }

    fn walk(bytes: &[u8], show: &mut impl FnMut(&[u8])) -> Outcome<usize> {
        let mut used = 0;
        while let Some(Frame { opcode, payload }) = first_frame(&bytes[used..]) {
            let range = used + payload.start..used + payload.end;
            used = range.end;
            match opcode {
                TEXT => show(&bytes[range]),
                CLOSE => return Err(closed(&bytes[range])),
                _ => {}
            }
        }
        Ok(used)
    }
}

/// A blocking connection.
pub(crate) struct Socket {
    stream: TcpStream,
    bytes: Vec<u8>,
    held: Range<usize>,
    out: Vec<u8>,
}

impl Socket {
    pub(crate) fn connect(address: SocketAddr, path: &str, token: &str) -> Outcome<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.write_all(handshake(path, token).as_bytes())?;
        let mut socket = Self {
            stream,
            bytes: vec![0; BUFFER_BYTES],
            held: 0..0,
            out: Vec::with_capacity(1024),
        };
        loop {
            socket.fill()?;
            if let Some(end) = handshake_end(&socket.bytes[socket.held.clone()])? {
                socket.held.start += end;
                return Ok(socket);
            }
        }
    }

    /// Another handle for writing.
    pub(crate) fn writer(&self) -> Outcome<Writer> {
        Ok(Writer { stream: self.stream.try_clone()?, out: vec![] })
    }

    pub(crate) fn send(&mut self, text: &str) -> Outcome<()> {
        self.out.clear();
        write_text(text, &mut self.out);
        Ok(self.stream.write_all(&self.out)?)
    }

    /// The next text frame.
    pub(crate) fn next(&mut self) -> Outcome<&[u8]> {
        loop {
            if let Some(range) = self.take()? {
                return Ok(&self.bytes[range]);
            }
            self.fill()?;
        }
    }

    /// The next text frame, however long it takes.
    pub(crate) fn next_patiently(&mut self) -> Outcome<&[u8]> {
        self.stream.set_read_timeout(None)?;
        self.next()
    }

    /// The next text frame, if it has arrived already.
    pub(crate) fn next_held(&mut self) -> Outcome<Option<&[u8]>> {
        Ok(self.take()?.map(|range| &self.bytes[range]))
    }

    /// The next text frame whose beginning fits.
    pub(crate) fn next_of(&mut self, kind: &str) -> Outcome<&[u8]> {
        let begin = format!("{{\"type\":\"{kind}\"");
        loop {
            if let Some(range) = self.take()? {
                let frame = &self.bytes[range.clone()];
                if frame.starts_with(b"{\"type\":\"connection_error\"") {
                    return Err(Trouble::new(String::from_utf8_lossy(frame)));
                }
                if frame.starts_with(begin.as_bytes()) {
                    return Ok(&self.bytes[range]);
                }
                continue;
            }
            self.fill().during(format_args!("waiting for {kind}"))?;
        }
    }

    fn take(&mut self) -> Outcome<Option<Range<usize>>> {
        while let Some(Frame { opcode, payload }) = first_frame(&self.bytes[self.held.clone()]) {
            let range = self.held.start + payload.start..self.held.start + payload.end;
            self.held.start = range.end;
            match opcode {
                TEXT => return Ok(Some(range)),
                CLOSE => return Err(closed(&self.bytes[range])),
                _ => {}
            }
        }
        Ok(None)
    }

    fn fill(&mut self) -> Outcome<()> {
        if self.held.is_empty() {
            self.held = 0..0;
        } else if self.held.end == self.bytes.len() {
            self.bytes.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
            if self.held.end * 2 > self.bytes.len() {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        match self.stream.read(&mut self.bytes[self.held.end..]) {
            Ok(0) => Err(Trouble::new("the relay closed the connection")),
            Ok(count) => {
                self.held.end += count;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Trouble::new("no more data is arriving"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The writing end of a connection.
pub(crate) struct Writer {
    stream: TcpStream,
    out: Vec<u8>,
}

impl Writer {
    /// Sends frames together.
    pub(crate) fn send_all<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Outcome<()> {
        self.out.clear();
        for text in texts {
            write_text(text, &mut self.out);
        }
        Ok(self.stream.write_all(&self.out)?)
    }

    /// Ends the connection, also for whoever waits at its reading end.
    pub(crate) fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn closed(payload: &[u8]) -> Trouble {
    let code = payload.get(..2).and_then(|code| code.try_into().ok()).map(u16::from_be_bytes);
    let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default());
    Trouble::new(format!("the relay closed the connection: {} {reason}", code.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let texts = ["a".repeat(5), "b".repeat(300), "c".repeat(70_000), String::new()];
        let mut stream = vec![];
        for text in &texts {
            write_server_text(text.as_bytes(), &mut stream);
        }
        for piece_bytes in [1, 3, 100, 4096, stream.len()] {
            let mut frames = Frames::default();
            let mut found: Vec<Vec<u8>> = vec![];
            for piece in stream.chunks(piece_bytes) {
                frames.feed(piece, |text| found.push(text.to_vec())).unwrap();
            }
            let expected: Vec<Vec<u8>> = texts.iter().map(|text| text.clone().into()).collect();
            assert_eq!(found, expected, "in pieces of {piece_bytes}");
        }
    }

    #[test]
    fn a_close_frame_ends_the_walk_with_its_words() {
        let closing = [0x88, 4, 0x0f, 0xa0, b'h', b'i'];
        let trouble = Frames::default().feed(&closing, |_| {}).unwrap_err();
        assert!(trouble.to_string().ends_with("4000 hi"), "{trouble}");
    }

    #[test]
    fn only_a_switch_of_protocols_is_a_yes() {
        assert_eq!(handshake_end(b"HTTP/1.1 101 Switching\r\n").unwrap(), None);
        assert_eq!(handshake_end(b"HTTP/1.1 101 S\r\n\r\nrest").unwrap(), Some(18));
        assert!(handshake_end(b"HTTP/1.1 401 Unauthorized\r\n\r\n").is_err());
    }
}
