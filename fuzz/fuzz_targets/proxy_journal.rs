#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| proxy::journal::fuzzing::journal(bytes));
