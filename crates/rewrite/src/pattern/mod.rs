//! Patterns and rules: rewrites in a dozen lines, from inside this crate or outside it.
//!
//! A [`Pattern`] is written as the expression that it matches. It names values, and asks of
//! them what the rewrite needs to hold:
//!
//! ```
//! use tilewright_rewrite::pattern::{any, reduce, reshape};
//!
//! // A reduce of a reshape that nothing else reads.
//! let pattern = reduce(reshape(any("x")).named("r").used_once(), any("init"));
//! assert_eq!(pattern.to_string(), "reduce(r: reshape(x), init)");
//! ```
//!
//! A [`Rule`] is a pattern, a condition, a replacement and the law that makes them equal. It is a
//! [`Pass`](crate::Pass): [`Options::with_pass`](crate::Options::with_pass) adds it to a pipeline.
//! A [`RuleSet`] is a pass of several rules. The idea is that of XLA's `pattern_matcher.h` and of
//! MLIR's declarative rewrite rules.

mod instance;
mod matcher;
mod refused;
mod replacement;
mod rule;
mod rule_set;

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{ArrayShape, ElementType, InstId, Module, Op, Opcode};

pub use matcher::{Match, Mismatch};
pub use replacement::Replacement;
pub use rule::Rule;
pub use rule_set::RuleSet;

use crate::analysis::reduce::is_plain;

/// A shape of expressions, with names for their parts.
///
/// The instruction that the whole pattern matches must carry no sharding, control dependencies or
/// frontend attributes, which a replacement would lose, and neither must those below it that an op
/// of the pattern matches, constants aside; see [`Pattern::with_extras`].
#[derive(Clone, Debug)]
pub struct Pattern {
    name: Option<&'static str>,
    /// The ops that match; any where there are none.
    opcodes: Vec<Opcode>,
    operands: Operands,
    may_have_extras: bool,
    conditions: Vec<Condition>,
}

/// What the operands of an instruction must be.
#[derive(Clone, Debug)]
enum Operands {
    Any,
    InOrder(Vec<Pattern>),
    EitherOrder(Box<[Pattern; 2]>),
}

type Holds = dyn Fn(&Module, InstId) -> bool + Send + Sync;

/// What must hold of an instruction, and how to say it.
#[derive(Clone)]
struct Condition {
    says: &'static str,
    holds: Arc<Holds>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?})", self.says)
    }
}

/// Matches any value, and gives it a name. Where one name stands in several places, these must
/// be one value: `subtract(any("x"), any("x"))`.
pub fn any(name: &'static str) -> Pattern {
    Pattern { name: Some(name), ..Pattern::of(Vec::new(), Operands::Any) }
}

/// Matches an instruction of an op whose operands match these patterns, in either order if the op
/// is commutative.
pub fn op<const N: usize>(opcode: Opcode, operands: [Pattern; N]) -> Pattern {
    let operands = Vec::from(operands);
    let operands = match <[Pattern; 2]>::try_from(operands) {
        Ok(pair) if opcode.is_commutative() => Operands::EitherOrder(Box::new(pair)),
        Ok(pair) => Operands::InOrder(pair.into()),
        Err(operands) => Operands::InOrder(operands),
    };
    Pattern::of(vec![opcode], operands)
}

/// Matches an instruction of any of these commutative ops of two operands, in either order. At
/// least one op; all are commutative, which a build with debug assertions checks.
pub fn either_order<const N: usize>(opcodes: [Opcode; N], a: Pattern, b: Pattern) -> Pattern {
    const { assert!(N > 0, "`either_order` takes at least one op") };
    debug_assert!(
        opcodes.iter().all(|opcode| opcode.is_commutative()),
        "`either_order` takes commutative ops, not all of {opcodes:?}"
    );
    Pattern::of(opcodes.into(), Operands::EitherOrder(Box::new([a, b])))
}

/// Matches an instruction of any of these ops, of which there is at least one, whatever its
/// operands are.
///
/// ```compile_fail
/// let nothing = tilewright_rewrite::pattern::any_of([]);
/// ```
pub fn any_of<const N: usize>(opcodes: [Opcode; N]) -> Pattern {
    const { assert!(N > 0, "`any_of` takes at least one op; `any` matches any value") };
    Pattern::of(opcodes.into(), Operands::Any)
}

/// Matches a constant.
pub fn constant(name: &'static str) -> Pattern {
    any_of([Opcode::Constant]).named(name)
}

macro_rules! one_operand {
    ($($name:ident $opcode:ident)*) => {
        $(
            #[doc = concat!("Matches `", stringify!($name), "` of a value.")]
            pub fn $name(operand: Pattern) -> Pattern {
                op(Opcode::$opcode, [operand])
            }
        )*
    };
}

macro_rules! two_operands {
    ($($name:ident $opcode:ident)*) => {
        $(
            #[doc = concat!("Matches `", stringify!($name), "` of two values; in either order, ")]
            #[doc = "if it is commutative."]
            pub fn $name(a: Pattern, b: Pattern) -> Pattern {
                op(Opcode::$opcode, [a, b])
            }
        )*
    };
}

one_operand! {
    abs Abs broadcast Broadcast convert Convert copy Copy cos Cos exp Exp iota_of Iota log Log
    logistic Logistic negate Negate not Not reshape Reshape reverse Reverse rsqrt Rsqrt sin Sin
    slice Slice sqrt Sqrt tanh Tanh transpose Transpose
}

two_operands! {
    add Add and And divide Divide dot Dot maximum Maximum minimum Minimum multiply Multiply or Or
    power Power reduce Reduce subtract Subtract xor Xor
}

/// Matches `select` by a truth value between two values.
pub fn select(which: Pattern, on_true: Pattern, on_false: Pattern) -> Pattern {
    op(Opcode::Select, [which, on_true, on_false])
}

impl Pattern {
    fn of(opcodes: Vec<Opcode>, operands: Operands) -> Self {
        Self { name: None, opcodes, operands, may_have_extras: false, conditions: Vec::new() }
    }

    /// Gives the matched value a name.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// With a condition on the matched instruction; `says` completes "it must ...".
    #[must_use]
    pub fn when(
        mut self,
        says: &'static str,
        holds: impl Fn(&Module, InstId) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push(Condition { says, holds: Arc::new(holds) });
        self
    }

    /// Used once: by the pattern around it alone.
    #[must_use]
    pub fn used_once(self) -> Self {
        self.when("have no other use", |module, id| {
            module.instruction(id).use_count() == 1 && !module.is_root(id)
        })
    }

    /// An array with static dims in row-major order.
    #[must_use]
    pub fn row_major(self) -> Self {
        self.when("be an array with static dims in row-major order", |module, id| {
            module.array_shape(id).is_some_and(is_plain)
        })
    }

    /// An array with static dims, in any layout.
    #[must_use]
    pub fn static_dims(self) -> Self {
        self.when("be an array with static dims", |module, id| {
            module.array_shape(id).is_some_and(ArrayShape::is_static)
        })
    }

    /// An array without dims.
    #[must_use]
    pub fn scalar(self) -> Self {
        self.when("be a scalar", |module, id| {
            module.array_shape(id).is_some_and(|shape| shape.rank() == 0)
        })
    }

    /// An array of elements of a type.
    #[must_use]
    pub fn element_type(self, element_type: ElementType) -> Self {
        self.when("be an array of the rule's element type", move |module, id| {
            module.array_shape(id).is_some_and(|shape| shape.element_type == element_type)
        })
    }

    /// An instruction whose op and attributes satisfy a condition; `says` completes "it must ...".
    #[must_use]
    pub fn attributes(
        self,
        says: &'static str,
        holds: impl Fn(&Op) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.when(says, move |module, id| holds(module.op(id)))
    }

    /// Matches instructions that carry a sharding, control dependencies or frontend attributes,
    /// too. The replacement has to take care of them, or else the rule does not apply: at the root
    /// by [`Replacement::keep_extras`], and below it by reading the instruction, which then stays.
    #[must_use]
    pub fn with_extras(self) -> Self {
        Self { may_have_extras: true, ..self }
    }

    /// Matches the value of an instruction against the pattern.
    pub fn matches<'m>(&self, module: &'m Module, id: InstId) -> Option<Match<'m>> {
        let (found, ()) = matcher::search(self, module, id, &|_| Ok(())).ok()?;
        Some(found)
    }

    /// As [`Self::matches`].
    ///
    /// # Errors
    /// Says at which instruction the expression differs from the pattern, and how.
    pub fn matches_or_why<'m>(
        &self,
        module: &'m Module,
        id: InstId,
    ) -> Result<Match<'m>, Mismatch> {
        let found = matcher::search(self, module, id, &|_| Ok(()));
        found.map(|(found, ())| found).map_err(|unmatched| unmatched.mismatch(module))
    }

    /// The ops that an instruction may have that matches; any where there are none.
    fn opcodes(&self) -> &[Opcode] {
        &self.opcodes
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.opcodes.is_empty()) {
            (Some(name), true) => return f.write_str(name),
            (None, true) => return f.write_str("_"),
            (Some(name), false) => write!(f, "{name}: ")?,
            (None, false) => {}
        }
        let names: Vec<&str> = self.opcodes.iter().map(|opcode| opcode.name()).collect();
        f.write_str(&names.join("|"))?;
        let operands: &[Pattern] = match &self.operands {
            Operands::Any => return Ok(()),
            Operands::InOrder(operands) => operands,
            Operands::EitherOrder(pair) => &**pair,
        };
        f.write_str("(")?;
        for (place, operand) in operands.iter().enumerate() {
            let gap = if place == 0 { "" } else { ", " };
            write!(f, "{gap}{operand}")?;
        }
        f.write_str(")")
    }
}
