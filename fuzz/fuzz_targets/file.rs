//! Bytes are read as any file that the verbs take, compressed ones too, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = tilewright::load_bytes("fuzz", bytes.to_vec()) {
        assert!(!error.to_string().is_empty());
    }
});
