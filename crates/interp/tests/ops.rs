//! Every op fixture evaluates to what XLA:CPU (or NumPy) computed.
//!
//! A comment line `tolerance: ulps=4 relative=1e-6 signed zeros, why` says by
//! how much; without it the outputs are equal, but for the sign of zeros.

use std::collections::BTreeSet;

use tilewright_interp::{Limits, Tolerance, compare, evaluate, npz};
use tilewright_ir::Opcode;
use tilewright_testkit::fixture::{Fixture, Header, Language, fixtures};

/// The language of the headers.
const LANGUAGE: Language = Language { flags: &[], once: &["tolerance"], many: &[] };

#[test]
fn ops_evaluate_to_what_xla_computed() {
    let all = fixtures("ops").unwrap();
    let failures: Vec<String> = all
        .iter()
        .filter_map(|f| check(f).err().map(|error| format!("{}: {error}", f.name)))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), all.len(), failures.join("\n"));
}

/// The ops that XLA:CPU does not run or whose results are not specified, with
/// tests by hand in `devices.rs` and `random.rs`.
const BY_HAND: &[Opcode] = &[
    Opcode::AllGatherDone,
    Opcode::AllGatherStart,
    Opcode::AllReduceDone,
    Opcode::AllReduceStart,
    Opcode::AsyncDone,
    Opcode::AsyncStart,
    Opcode::AsyncUpdate,
    Opcode::CollectiveBroadcast,
    Opcode::CollectivePermuteDone,
    Opcode::CollectivePermuteStart,
    Opcode::CollectiveReduce,
    Opcode::CopyDone,
    Opcode::CopyStart,
    Opcode::Infeed,
    Opcode::Outfeed,
    Opcode::RaggedAllToAll,
    Opcode::Recv,
    Opcode::RecvDone,
    Opcode::Rng,
    Opcode::Send,
    Opcode::SendDone,
];

#[test]
fn every_op_has_a_fixture_or_is_tested_by_hand() {
    let mut covered = BTreeSet::new();
    for fixture in ["ops", "devices"].iter().flat_map(|folder| fixtures(folder).unwrap()) {
        let module = tilewright_text::parse(&fixture.text().unwrap()).unwrap().module;
        for &computation in module.computations() {
            covered.extend(module.instructions(computation).map(|id| module.opcode(id)));
        }
    }
    let all: BTreeSet<Opcode> = Opcode::ALL.iter().copied().collect();
    let missing: BTreeSet<Opcode> = all.difference(&covered).copied().collect();
    assert_eq!(missing, BY_HAND.iter().copied().collect());
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let mut tolerance = Tolerance::EXACT;
    let header = Header::read(text, &LANGUAGE).map_err(|error| error.to_string())?;
    let values =
        header.value("tolerance").unwrap_or_default().split(',').next().unwrap_or_default();
    tolerance.signed_zeros = values.contains("signed zeros");
    for word in values.split_whitespace() {
        match word.split_once('=') {
            Some(("ulps", value)) => tolerance.ulps = value.parse().map_err(|_| word)?,
            Some(("relative", value)) => tolerance.relative = value.parse().map_err(|_| word)?,
            _ if ["signed", "zeros"].contains(&word) => {}
            _ => return Err(format!("unknown tolerance `{word}`")),
        }
    }
    Ok(tolerance)
}

fn check(fixture: &Fixture) -> Result<(), String> {
    let text = fixture.text().map_err(|e| e.to_string())?;
    let module = tilewright_text::parse_and_verify(&text).map_err(|e| format!("{e:?}"))?;
    let arrays = fixture.npz.as_ref().ok_or("it has no .npz")?;
    let inputs = npz::read_inputs(arrays, &module).map_err(|e| e.to_string())?;
    let expected = npz::read_outputs(arrays, &module).map_err(|e| e.to_string())?;
    let actual = evaluate(&module, &inputs, &Limits::default()).map_err(|e| e.to_string())?;
    let tolerance = tolerance(&text)?;
    let comparisons = compare(&expected, &actual, |_| tolerance).map_err(|e| e.to_string())?;
    let different: Vec<String> =
        comparisons.iter().filter(|c| !c.equal).map(|c| format!("{c:?}")).collect();
    if different.is_empty() { Ok(()) } else { Err(different.join("\n    ")) }
}
