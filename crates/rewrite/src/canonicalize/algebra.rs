//! Replaces operations by an existing value that equals their result.
//!
//! ```text
//! x ∘ e = e ∘ x = x      x * 1, x + 0, x + (-0.0), max(x, -inf), and(x, true) ...
//! x ∘ x = x              max, min, and, or
//! x ∘ a = a ∘ x = a      integer x * 0, and(x, false), or(x, true)
//! x / 1 = x - 0 = x      -(-x) = not(not(x)) = reverse(reverse(x)) = x
//! x ^ 1 = x              x ^ 2 = x * x
//! select(true, x, y) = select(p, x, x) = x             slice(x) = x, where it keeps all
//! ```
//!
//! Each law but the last holds to the last bit for all values of its type, including NaN and `-0.0`.
//! A square is rounded once, and a power may be off by more; XLA multiplies, too
//! (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`). So
//! `x + 0.0` stays, because it turns `-0.0` into `0.0`; `x - x` and `x * 0.0` of floats stay, and
//! so do complex products, where an infinite part may meet a zero. A constant of equal elements
//! counts as a number, and so does a broadcast or reshape of one.
//!
//! Preconditions: static dims, one layout, nothing attached to the removed instructions.

use std::sync::LazyLock;

use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, ArrayShape, Data, Dims, InstId, Module, Op, Opcode};

use crate::driver::numbers::Class;
use crate::pattern::{
    Match, Pattern, Rule, RuleSet, any, divide, either_order, negate, not, op, reverse, select,
    slice, subtract,
};

/// The ops that may have a neutral element, with the names of their rules.
const MONOIDS: [(Opcode, &str); 7] = [
    (Opcode::Add, "neutral-of-add"),
    (Opcode::And, "neutral-of-and"),
    (Opcode::Maximum, "neutral-of-maximum"),
    (Opcode::Minimum, "neutral-of-minimum"),
    (Opcode::Multiply, "neutral-of-multiply"),
    (Opcode::Or, "neutral-of-or"),
    (Opcode::Xor, "neutral-of-xor"),
];

/// The ops that may have an absorbing element, with the names of their rules.
const ABSORBING: [(Opcode, &str); 3] = [
    (Opcode::And, "absorbing-in-and"),
    (Opcode::Multiply, "absorbing-in-multiply"),
    (Opcode::Or, "absorbing-in-or"),
];

/// The ops for which `x ∘ x = x`.
const IDEMPOTENT: [Opcode; 4] = [Opcode::And, Opcode::Maximum, Opcode::Minimum, Opcode::Or];

/// The longest chain of broadcasts and reshapes followed; other passes merge longer ones.
const MOST_LOOKED_THROUGH: usize = 8;

/// The rules of the pass `algebra`.
pub static ALGEBRA: LazyLock<RuleSet> = LazyLock::new(|| {
    let (x, y) = (|| any("x").static_dims(), || any("y").static_dims());
    let number = || any("n").static_dims();
    let is = |name, pattern: Pattern, law, value: &'static str| {
        let rule = Rule::new(name, pattern).with_law(law).with_class(Class::Exact).always();
        rule.replace(move |found, _| found.value(value))
    };
    let truth = |truth: bool| {
        move |module: &Module, id: InstId| {
            let data = |splat: ArrayLiteral| splat.data() == &Data::Pred(vec![truth]);
            splat(module, id).is_some_and(data)
        }
    };
    let rules = [
        is("select-equal", select(any("p"), x(), x()), "select(p, x, x) = x", "x"),
        is(
            "select-true",
            select(any("p").when("be true", truth(true)), x(), any("y")),
            "select(true, x, y) = x",
            "x",
        ),
        is(
            "select-false",
            select(any("p").when("be false", truth(false)), any("x"), y()),
            "select(false, x, y) = y",
            "y",
        ),
        is("negate-twice", negate(negate(x())), "-(-x) = x", "x"),
        is("not-twice", not(not(x())), "not(not(x)) = x", "x"),
        is(
            "reverse-twice",
            reverse(reverse(x()).named("inner")).named("outer"),
            "reverse(reverse(x)) = x",
            "x",
        )
        .when("reverse the same dims twice", |found| {
            dims(found, "inner").is_some_and(|inner| Some(inner) == dims(found, "outer"))
        }),
        is("slice-of-everything", slice(x()).named("part").static_dims(), "slice(x) = x", "x")
            .when("keep every element", |found| {
                let whole = found.array("x").map(ArrayShape::dims);
                whole.is_some() && found.array("part").map(ArrayShape::dims) == whole
            }),
        is("minus-zero", subtract(x(), number()), "x - 0 = x", "x")
            .when("subtract zero", |found| number_of(found).is_some_and(|n| is_zero(&n))),
        is("divided-by-one", divide(x(), number()), "x / 1 = x", "x")
            .when("divide by one", |found| {
                number_of(found).is_some_and(|n| is_neutral(Opcode::Multiply, &n))
            }),
        is("to-the-one", op(Opcode::Power, [x(), number()]), "x ^ 1 = x", "x")
            .when("raise to the power of one", |found| {
                number_of(found).is_some_and(|n| is_neutral(Opcode::Multiply, &n))
            }),
        Rule::new("squared", op(Opcode::Power, [x(), number()]))
            .with_law("x ^ 2 = x * x")
            .with_class(Class::Bounded)
            .with_class_of(|found| {
                let is_float = number_of(found)?.element_type().is_float();
                Some(if is_float { Class::Bounded } else { Class::Exact })
            })
            .always()
            .when("square", |found| {
                number_of(found).is_some_and(|n| {
                    !n.element_type().is_complex() && n.scalar_as_f64() == Some(2.0)
                })
            })
            .replace(|found, new| {
                let x = found.get("x")?;
                new.op_like_root(Op::Multiply, [x, x])
            }),
        is("idempotent", either_order(IDEMPOTENT, x(), x()), "x ∘ x = x", "x"),
    ];
    let with_number = |opcode: Opcode, holds: fn(Opcode, &ArrayLiteral) -> bool| {
        let number = any("n").static_dims();
        let number = number.when("be a number that decides", move |module, id| {
            splat(module, id).is_some_and(|n| holds(opcode, &n))
        });
        op(opcode, [number, x()])
    };
    let neutral = MONOIDS.map(|(op, name)| is(name, with_number(op, is_neutral), "x ∘ e = x", "x"));
    let absorbing =
        ABSORBING.map(|(op, name)| is(name, with_number(op, absorbs), "x ∘ a = a", "n"));
    RuleSet::new(
        "algebra",
        "drop operations that change no value: `x * 1`, `select(true, x, y)`",
        rules.into_iter().chain(neutral).chain(absorbing),
    )
});

fn dims(found: &Match<'_>, name: &str) -> Option<Dims> {
    let Op::Reverse(attrs) = found.op(name)? else { return None };
    let mut dims = attrs.dimensions.clone();
    dims.sort_unstable();
    Some(dims)
}

fn number_of(found: &Match<'_>) -> Option<ArrayLiteral> {
    splat(found.module(), found.get("n")?)
}

/// Returns the number that all elements of an array equal, if the array is a constant or a
/// broadcast or reshape of one.
fn splat(module: &Module, mut id: InstId) -> Option<ArrayLiteral> {
    for _ in 0..=MOST_LOOKED_THROUGH {
        match (module.op(id), module.operands(id)) {
            (Op::Constant(value), _) => return value.as_array()?.splat(),
            (Op::Broadcast(_) | Op::Reshape(_), &[source]) => id = source,
            _ => return None,
        }
    }
    None
}

/// Checks whether combining any value with a number leaves it unchanged, to the last bit.
fn is_neutral(opcode: Opcode, number: &ArrayLiteral) -> bool {
    let element_type = number.element_type();
    if element_type.is_complex() && opcode != Opcode::Add {
        return false;
    }
    let identity = Monoid { opcode, element_type }.identity();
    identity.as_ref().and_then(|identity| identity.as_array()) == Some(number)
}

/// Checks whether combining any value with a number yields that number.
fn absorbs(opcode: Opcode, number: &ArrayLiteral) -> bool {
    let element_type = number.element_type();
    match opcode {
        Opcode::Multiply => {
            !element_type.is_float() && !element_type.is_complex() && is_zero(number)
        }
        // The neutral element of one operation absorbs in the other.
        Opcode::And => is_neutral(Opcode::Or, number),
        Opcode::Or => is_neutral(Opcode::And, number),
        _ => false,
    }
}

/// Checks whether a number is zero and not `-0.0`. Always `false` for floats of 8 bits and
/// fewer, because some of these types have no zero.
fn is_zero(number: &ArrayLiteral) -> bool {
    let element_type = number.element_type();
    let small = element_type.is_float() && element_type.bits() <= 8;
    !small && number.data() == &Data::zeros(element_type, 1)
}
