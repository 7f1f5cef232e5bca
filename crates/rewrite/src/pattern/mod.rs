//! Patterns and rules: a rewrite of one expression in a dozen lines, in this crate or another one.
//!
//! A [`Pattern`] is written as the expression that it matches. It gives names to values and states
//! conditions on them:
//!
//! ```
//! use tilewright_rewrite::pattern::{any, reduce, reshape};
//!
//! // A reduce of a reshape that nothing else reads.
//! let pattern = reduce(reshape(any("x")).named("r").used_once(), any("init"));
//! assert_eq!(pattern.to_string(), "reduce(r: reshape(x), init)");
//! ```
//!
//! A [`Rule`] consists of a pattern, a condition, a replacement, and the law that makes the matched
//! expression and the replacement equal. A rule is a [`Pass`](crate::Pass): [`Options::with_pass`](crate::Options::with_pass) adds it to a pipeline.
//! A [`RuleSet`] is one pass that consists of several rules. Patterns follow XLA's
//! `pattern_matcher.h`, rules follow MLIR's declarative rewrite rules.

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

/// A description of the expressions that a rewrite applies to, with names for their parts.
///
/// The instruction that the whole pattern matches must carry no sharding, control dependencies or
/// frontend attributes, which a replacement would lose, and neither must those below it that an op
/// of the pattern matches, constants aside; see [`Pattern::with_extras`].
#[derive(Clone, Debug)]
pub struct Pattern {
    name: Option<&'static str>,
    /// The ops that match; if the list is empty, every op matches.
    opcodes: Vec<Opcode>,
    operands: Operands,
    may_have_extras: bool,
    conditions: Vec<Condition>,
}

/// The patterns that the operands of an instruction must match.
#[derive(Clone, Debug)]
enum Operands {
    /// Any operands match.
    Any,
    /// As many operands as patterns; each operand matches its pattern.
    InOrder(Vec<Pattern>),
    /// Two operands, which may match the two patterns in either order.
    EitherOrder(Box<[Pattern; 2]>),
}

type Holds = dyn Fn(&Module, InstId) -> bool + Send + Sync;

/// A condition on an instruction.
#[derive(Clone)]
struct Condition {
    /// The condition in words that follow "it must".
    says: &'static str,
    holds: Arc<Holds>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({:?})", self.says)
    }
}

/// Matches any value, and gives it a name. If a name occurs more than once in a pattern, all its
/// occurrences must match the same value: `subtract(any("x"), any("x"))` matches `x - x`.
pub fn any(name: &'static str) -> Pattern {
    Pattern { name: Some(name), ..Pattern::of(Vec::new(), Operands::Any) }
}

/// Matches an instruction of this op whose operands match these patterns. The operands of a
/// commutative op may match in either order.
pub fn op(opcode: Opcode, operands: impl Into<Vec<Pattern>>) -> Pattern {
    let operands = operands.into();
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

/// Matches an instruction with any of these ops (at least one), with any operands.
///
/// ```compile_fail
/// let nothing = tilewright_rewrite::pattern::any_of([]);
/// ```
pub fn any_of<const N: usize>(opcodes: [Opcode; N]) -> Pattern {
    const { assert!(N > 0, "`any_of` takes at least one op; `any` matches any value") };
    Pattern::of(opcodes.into(), Operands::Any)
}

/// Matches a constant, and gives it a name.
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
            #[doc = concat!("Matches `", stringify!($name), "` of two values. The operands of a ")]
            #[doc = "commutative op may match in either order."]
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

/// Matches `select`, which takes a truth value and the two values to choose from.
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

    /// Adds a condition on the matched instruction. `says` is the condition in words that follow
    /// "it must".
    #[must_use]
    pub fn when(
        mut self,
        says: &'static str,
        holds: impl Fn(&Module, InstId) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push(Condition { says, holds: Arc::new(holds) });
        self
    }

    /// Requires that the value has one use, the one in the pattern around it.
    #[must_use]
    pub fn used_once(self) -> Self {
        self.when("have no other use", |module, id| {
            module.instruction(id).use_count() == 1 && !module.is_root(id)
        })
    }

    /// Requires an array with static dims in row-major order.
    #[must_use]
    pub fn row_major(self) -> Self {
        self.when("be an array with static dims in row-major order", |module, id| {
            module.array_shape(id).is_some_and(is_plain)
        })
    }

    /// Requires an array with static dims, in any layout.
    #[must_use]
    pub fn static_dims(self) -> Self {
        self.when("be an array with static dims", |module, id| {
            module.array_shape(id).is_some_and(ArrayShape::is_static)
        })
    }

    /// Requires an array without dims.
    #[must_use]
    pub fn scalar(self) -> Self {
        self.when("be a scalar", |module, id| {
            module.array_shape(id).is_some_and(|shape| shape.rank() == 0)
        })
    }

    /// Requires an array of this element type.
    #[must_use]
    pub fn element_type(self, element_type: ElementType) -> Self {
        self.when("be an array of the rule's element type", move |module, id| {
            module.array_shape(id).is_some_and(|shape| shape.element_type == element_type)
        })
    }

    /// Adds a condition on the op of the matched instruction and its attributes. `says` is the
    /// condition in words that follow "it must".
    #[must_use]
    pub fn attributes(
        self,
        says: &'static str,
        holds: impl Fn(&Op) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.when(says, move |module, id| holds(module.op(id)))
    }

    /// Also matches instructions that carry a sharding, control dependencies or frontend
    /// attributes. The replacement has to preserve them, or else the rule does not apply: at
    /// the root by [`Replacement::keep_extras`], and below it by reading the instruction, which
    /// then stays.
    #[must_use]
    pub fn with_extras(self) -> Self {
        Self { may_have_extras: true, ..self }
    }

    /// Matches an instruction, with its operands, against the pattern; `None` if they differ.
    pub fn matches<'m>(&self, module: &'m Module, id: InstId) -> Option<Match<'m>> {
        let (found, ()) = matcher::search(self, module, id, &|_| Ok(())).ok()?;
        Some(found)
    }

    /// Like [`Self::matches`], with the reason for a difference.
    ///
    /// # Errors
    /// Returns an error if the expression differs from the pattern: the instruction at which it
    /// does, and how.
    pub fn matches_or_why<'m>(
        &self,
        module: &'m Module,
        id: InstId,
    ) -> Result<Match<'m>, Mismatch> {
        let found = matcher::search(self, module, id, &|_| Ok(()));
        found.map(|(found, ())| found).map_err(|unmatched| unmatched.mismatch(module))
    }

    /// Returns the ops that match; if the list is empty, every op matches.
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
