//! Every model fixture evaluates to the outputs that XLA:CPU computed.

use tilewright_interp::{Limits, Tolerance, Tolerances, compare, evaluate, npz};
use tilewright_ir::ElementType;
use tilewright_testkit::fixture::{Fixture, fixtures};

#[test]
fn models_evaluate_to_what_xla_computed() {
    let all = fixtures("models").unwrap();
    let failures: Vec<String> = all
        .iter()
        .filter_map(|f| check(f).err().map(|error| format!("{}: {error}", f.name)))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), all.len(), failures.join("\n"));
}

fn check(fixture: &Fixture) -> Result<(), String> {
    let text = fixture.text().map_err(|e| e.to_string())?;
    let module = tilewright_text::parse_and_verify(&text).map_err(|e| format!("{e:?}"))?;
    let arrays = fixture.npz.as_ref().ok_or("it has no .npz")?;
    let inputs = npz::read_inputs(arrays, &module).map_err(|e| e.to_string())?;
    let expected = npz::read_outputs(arrays, &module).map_err(|e| e.to_string())?;
    let actual = evaluate(&module, &inputs, &Limits::default()).map_err(|e| e.to_string())?;
    let tolerances = Tolerances::of_module(&module);
    let tolerance = |element_type| {
        let mut tolerance = tolerances.of(element_type);
        if tolerance.relative >= Tolerance::of(ElementType::F16).relative {
            // XLA:CPU rounds every partial sum of a narrow type.
            tolerance.relative *= 2.0;
        }
        tolerance
    };
    let comparisons = compare(&expected, &actual, tolerance).map_err(|e| e.to_string())?;
    match comparisons.into_iter().find(|c| !c.equal) {
        Some(worst) => Err(format!("{worst:?}")),
        None => Ok(()),
    }
}
