#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store::packed_rows::row(bytes));
