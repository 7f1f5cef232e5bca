//! Bytes are read as MLIR's text, printed and converted to HLO and back without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_testkit::mlir_properties;

fuzz_target!(|bytes: &[u8]| {
    if let Err(problem) = mlir_properties::text(bytes) {
        panic!("{problem}");
    }
});
