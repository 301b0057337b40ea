//! Tests from outside: one program, linked once. A new file of tests is a module here.

mod chromium;
mod observer;
mod panels;
