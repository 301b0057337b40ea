#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store::codec::fuzzing::state(bytes));
