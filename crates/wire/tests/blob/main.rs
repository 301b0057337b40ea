//! The blob dialect: real connections and real sessions, without sockets or a disk.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod script;
#[cfg(test)]
mod sends;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod shown;
