//! Tests from outside: one program, linked once. A new file of tests is a module here.

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod native;
#[cfg(test)]
mod visitors;
