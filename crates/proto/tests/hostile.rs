//! Tests that damaged bytes only give an error or another module.

use crate::common;
use crate::common::modules;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use tilewright_proto::{decode, encode};
use tilewright_testkit::properties;

/// Checks whether the bytes are a module; a property that does not hold is a panic.
fn swallow(bytes: &[u8]) -> bool {
    match properties::proto(bytes) {
        Ok(is_module) => is_module,
        Err(problem) => panic!("{problem}: {bytes:?}"),
    }
}

fn some() -> Vec<(String, Vec<u8>)> {
    let wanted =
        ["layer_norm", "attributes", "shapes", "sharding", "collectives", "literals", "recovery"];
    let mut found = modules(&["models", "text/ok"]);
    found.retain(|(name, _)| wanted.iter().any(|wanted| name.contains(wanted)));
    let mut found: Vec<(String, Vec<u8>)> = found
        .into_iter()
        .map(|(name, module)| (name, encode(&module).expect("proto")))
        .filter(|(_, bytes)| bytes.len() < 20_000)
        .collect();
    found.sort_by_key(|(_, bytes)| bytes.len());
    found.truncate(6);
    assert!(found.len() >= 3, "{} modules", found.len());
    found
}

#[test]
fn truncation_at_every_byte() {
    for (name, bytes) in some() {
        let read = (0..bytes.len()).filter(|&end| swallow(&bytes[..end])).count();
        // All that can be missing are the last fields of the header.
        assert!(read < 60, "{name}: {read} of {} prefixes were read", bytes.len());
        assert!(swallow(&bytes), "{name}");
    }
}

#[test]
fn flipped_bytes() {
    for (seed, (_, bytes)) in some().into_iter().enumerate() {
        let mut random = ChaCha8Rng::seed_from_u64(seed as u64);
        for _ in 0..1_500 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + random.next_u32() % 3 {
                let at = random.next_u32() as usize % bytes.len();
                bytes[at] = random.next_u32() as u8;
            }
            swallow(&bytes);
        }
    }
}

#[test]
fn random_bytes() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.next_u32() as usize % 64];
        random.fill_bytes(&mut bytes);
        swallow(&bytes);
    }
}

/// Nesting is bounded before anything recurses.
#[test]
fn deep_nesting() {
    let mut shape = common::shape(common::F32, &[]);
    for _ in 0..100_000 {
        shape = common::Message::new().int(2, 13).message(4, &shape);
        if shape.0.len() > 400_000 {
            break;
        }
    }
    let instruction = common::Message::new().text(1, "x").text(2, "parameter").message(3, &shape);
    let error = decode(&common::main_of(0, &[instruction])).expect_err("too deep");
    assert!(error.message.contains("recursion limit"), "{error}");
}

/// A number in the bytes must not cause an allocation.
#[test]
fn large_claims() {
    let shape = common::shape(common::F32, &[1 << 40, 1 << 20]);
    let literal = common::Message::new().message(1, &shape).bytes(8, &[0; 8]);
    let constant = common::Message::new()
        .text(1, "c")
        .text(2, "constant")
        .message(3, &shape)
        .message(8, &literal);
    let error = decode(&common::main_of(0, &[constant])).expect_err("too few elements");
    assert_eq!(error.path, "computations[0].instructions[0].literal");
    assert!(error.message.contains("2 elements for f32[1099511627776,1048576]"), "{error}");
    // The length goes beyond the end.
    assert!(decode(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f").is_err());
}
