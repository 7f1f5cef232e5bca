//! Tests which results can be compared.

use tilewright_interp::{CompareError, Tolerance, compare};
use tilewright_ir::{ElementType, Literal, Shape};

fn one() -> Literal {
    Literal::scalar(ElementType::F32, 1f32).unwrap()
}

fn elided() -> Literal {
    Literal::Elided(Box::new(Shape::scalar(ElementType::F32)))
}

#[test]
fn tokens_are_equal_and_unknown_values_are_nothing() {
    let of = |expected: Literal, actual: Literal| {
        compare(&expected, &actual, Tolerance::of).map(|found| found.iter().all(|c| c.equal))
    };
    assert_eq!(of(Literal::Token, Literal::Token), Ok(true));
    assert_eq!(of(one(), one()), Ok(true));
    for (expected, actual) in [(elided(), one()), (one(), elided()), (elided(), elided())] {
        assert_eq!(of(expected, actual), Err(CompareError::Elided { index: 0 }));
    }
    let pair = |second| Literal::Tuple(vec![one(), second]);
    let error = of(pair(elided()), pair(one())).unwrap_err();
    let message = "array 1 has no value to compare: it was left out (`{...}`)";
    assert_eq!(error.to_string(), message);
    let error = of(Literal::Token, one()).unwrap_err();
    assert_eq!(error.to_string(), "array 0 was expected to be token[], but is f32[]");
}
