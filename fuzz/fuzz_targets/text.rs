//! Bytes are read, printed and verified without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_testkit::properties;

fuzz_target!(|bytes: &[u8]| {
    if let Err(problem) = properties::text(bytes) {
        panic!("{problem}");
    }
});
