//! The verifier says the same of a module and of its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_testkit::properties;

fuzz_target!(|bytes: &[u8]| {
    if let Err(problem) = properties::verifier(bytes) {
        panic!("{problem}");
    }
});
