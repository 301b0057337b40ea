#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::run("fleet_events", bytes));
