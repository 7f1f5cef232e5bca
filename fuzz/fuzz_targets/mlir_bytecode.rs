//! Bytes are read as MLIR's bytecode, and what is written of it is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_testkit::mlir_properties;

fuzz_target!(|bytes: &[u8]| {
    if let Err(problem) = mlir_properties::code(bytes) {
        panic!("{problem}");
    }
});
