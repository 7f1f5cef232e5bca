//! Tests how computations are recognised, and that identities change nothing: with the
//! interpreter, on the hardest numbers.

use tilewright_interp::compare::{Tolerance, compare};
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{Builder, ElementType, Literal, Opcode, Shape, Verified};
use tilewright_text::parse_and_verify;

const OPCODES: [Opcode; 7] = [
    Opcode::Add,
    Opcode::Multiply,
    Opcode::Maximum,
    Opcode::Minimum,
    Opcode::And,
    Opcode::Or,
    Opcode::Xor,
];

/// Returns the monoid of a computation with this body.
fn monoid_of(parameters: &str, body: &str) -> Option<Monoid> {
    let text = format!("HloModule m\nENTRY f {{\n{parameters}\n{body}\n}}");
    let module = parse_and_verify(&text).expect("a module");
    Monoid::of(&module, module.entry().expect("an entry"))
}

fn scalars(element_type: &str) -> String {
    format!("  a = {element_type}[] parameter(0)\n  b = {element_type}[] parameter(1)")
}

#[test]
fn the_known_ops_of_two_parameters_are_monoids() {
    for opcode in OPCODES {
        let element_type =
            if matches!(opcode, Opcode::And | Opcode::Or | Opcode::Xor) { "s32" } else { "f32" };
        let expected =
            Monoid { opcode, element_type: ElementType::from_name(element_type).expect("a type") };
        for operands in ["a, b", "b, a"] {
            let body = format!("  ROOT r = {element_type}[] {opcode}({operands})");
            assert_eq!(monoid_of(&scalars(element_type), &body), Some(expected), "{opcode}");
        }
    }
}

#[test]
fn nothing_else_is() {
    let cases = [
        ("a difference", "  ROOT r = f32[] subtract(a, b)"),
        ("a quotient", "  ROOT r = f32[] divide(a, b)"),
        ("a power", "  ROOT r = f32[] power(a, b)"),
        ("one parameter twice", "  ROOT r = f32[] add(a, a)"),
        ("the other twice", "  ROOT r = f32[] add(b, b)"),
        ("a constant", "  c = f32[] constant(1)\n  ROOT r = f32[] add(a, c)"),
        ("more than one op", "  c = f32[] negate(b)\n  ROOT r = f32[] add(a, c)"),
        ("a parameter", "  ROOT r = f32[] negate(a)"),
    ];
    for (what, body) in cases {
        assert_eq!(monoid_of(&scalars("f32"), body), None, "{what}");
    }
}

#[test]
fn parameters_of_other_numbers_or_types_are_not() {
    let three = format!("{}\n  c = f32[] parameter(2)", scalars("f32"));
    assert_eq!(monoid_of(&three, "  ROOT r = f32[] add(a, b)"), None);
    let one = "  a = f32[] parameter(0)";
    assert_eq!(monoid_of(one, "  ROOT r = f32[] add(a, a)"), None);
    let compare = "  ROOT r = pred[] compare(a, b), direction=LT";
    assert_eq!(monoid_of(&scalars("f32"), compare), None);
}

#[test]
fn only_floats_depend_on_their_order() {
    use ElementType::{BF16, C64, C128, F4E2M1FN, F8E4M3FN, F16, F32, F64};
    use ElementType::{Pred, S4, S8, S16, S32, S64, U4, U8, U16, U32, U64};
    let inexact = [F4E2M1FN, F8E4M3FN, BF16, F16, F32, F64, C64, C128];
    let exact = [Pred, S4, S8, S16, S32, S64, U4, U8, U16, U32, U64];
    for (types, is_exact) in [(&inexact[..], false), (&exact[..], true)] {
        for (&element_type, opcode) in types.iter().flat_map(|of| OPCODES.map(|op| (of, op))) {
            let monoid = Monoid { opcode, element_type };
            assert_eq!(monoid.regroups_exactly(), is_exact, "{opcode} of {element_type}");
        }
    }
}

/// `op(identity, x)`; `None` where the verifier refuses it.
fn combined(monoid: Monoid, identity: Literal) -> Option<Verified> {
    let mut b = Builder::new("combined");
    let x = b.parameter("x", Shape::array(monoid.element_type, [512])).ok()?;
    let identity = b.constant(identity).ok()?;
    let spread = b.broadcast(identity, [512], []).ok()?;
    let r = b.binary(monoid.opcode, spread, x).ok()?;
    b.finish(r).ok()
}

#[test]
fn combining_with_an_identity_changes_no_bit() {
    let mut checked = 0;
    for &element_type in ElementType::ALL {
        for opcode in OPCODES {
            let monoid = Monoid { opcode, element_type };
            // The interpreter has no arithmetic for types narrower than a byte.
            let Some(identity) = monoid
                .identity()
                .filter(|_| element_type.bits() >= 8 || element_type == ElementType::Pred)
                // Complex products turn infinities and zeros of either sign.
                .filter(|_| !element_type.is_complex() || monoid.opcode == Opcode::Add)
            else {
                continue;
            };
            let Some(module) = combined(monoid, identity.clone()) else { continue };
            assert!(monoid.is_neutral(&identity), "{monoid:?}");
            for kind in InputKind::ALL {
                let inputs = inputs_for(&module, 1, *kind).expect("inputs");
                let result = evaluate(&module, &inputs, &Limits::default());
                let result = match result {
                    Ok(result) => result,
                    Err(error) => panic!("{monoid:?}: {error}"),
                };
                let exact = |_| Tolerance { signed_zeros: true, ..Tolerance::EXACT };
                let compared = compare(&inputs[0], &result, exact).expect("arrays of a shape");
                assert!(compared.iter().all(|each| each.equal), "{monoid:?}, {kind:?}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 75, "{checked} monoids");
}

#[test]
fn small_floats_have_no_identity() {
    for element_type in [ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F4E2M1FN] {
        for opcode in OPCODES {
            let monoid = Monoid { opcode, element_type };
            assert_eq!(monoid.identity(), None, "{monoid:?}");
            let zero = Literal::scalar(element_type, 0u8).expect("a literal");
            assert!(!monoid.is_neutral(&zero), "{monoid:?}");
        }
    }
}

#[test]
fn inits_that_may_be_applied_twice() {
    let f32 = |opcode, value: f32| {
        let monoid = Monoid { opcode, element_type: ElementType::F32 };
        monoid.is_neutral(&Literal::scalar(ElementType::F32, value).expect("a literal"))
    };
    assert!(f32(Opcode::Add, 0.0) && f32(Opcode::Add, -0.0));
    assert!(!f32(Opcode::Add, 3.0) && !f32(Opcode::Add, f32::MIN_POSITIVE));
    assert!(f32(Opcode::Multiply, 1.0) && !f32(Opcode::Multiply, 2.0));
    assert!(!f32(Opcode::Multiply, 0.0) && !f32(Opcode::Multiply, -1.0));
    assert!(f32(Opcode::Maximum, f32::NEG_INFINITY) && !f32(Opcode::Maximum, f32::MIN));
    assert!(f32(Opcode::Minimum, f32::INFINITY) && !f32(Opcode::Minimum, f32::NEG_INFINITY));
    let s32 = |opcode, value: i32| {
        let monoid = Monoid { opcode, element_type: ElementType::S32 };
        monoid.is_neutral(&Literal::scalar(ElementType::S32, value).expect("a literal"))
    };
    assert!(s32(Opcode::Maximum, i32::MIN) && !s32(Opcode::Maximum, 0));
    assert!(s32(Opcode::Minimum, i32::MAX) && !s32(Opcode::Minimum, 0));
    assert!(s32(Opcode::And, -1) && !s32(Opcode::And, 1));
    assert!(s32(Opcode::Or, 0) && s32(Opcode::Xor, 0) && !s32(Opcode::Xor, 1));
}
