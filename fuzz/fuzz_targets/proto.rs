//! Bytes are read as a proto, and what is written of it is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_testkit::properties;

fuzz_target!(|bytes: &[u8]| {
    if let Err(problem) = properties::proto(bytes) {
        panic!("{problem}");
    }
});
