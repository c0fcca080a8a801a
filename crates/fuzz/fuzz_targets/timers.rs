#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bevy_due_proofs::fuzz::timers(bytes));
