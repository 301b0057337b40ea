//! The webchannel dialect: real connections and a real session, without sockets or a disk.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod pairing;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod script;
#[cfg(test)]
mod sends;
#[cfg(test)]
mod shown;
