#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agents::panel::profile::fuzzing::profile(bytes));
