//! send(2) in a loop: the floor of a fan-out.
//!
//! It reads what its publisher sends and forwards it to every socket unchanged.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::trouble::Outcome;

const BUFFER_BYTES: usize = 256 * 1024;

/// The first `count` connections are watchers; the one after them is the publisher.
pub(crate) fn run(count: usize) -> Outcome<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let accept = || -> Outcome<TcpStream> {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        Ok(socket)
    };
    let mut watchers = (0..count).map(|_| accept()).collect::<Outcome<Vec<_>>>()?;
    let mut publisher = accept()?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = publisher.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        for watcher in &mut watchers {
            watcher.write_all(&buffer[..count])?;
        }
    }
}
