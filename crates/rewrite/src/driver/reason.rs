//! Why a rewrite is not made, other than for its cost.

use std::fmt;

/// Why a rewrite is not made, other than for its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// An array has dims whose sizes only a run tells.
    DynamicDims,
    /// An array does not lie row major.
    Layout,
    /// An instruction has a sharding, control edges or other attributes that would be lost.
    Attached,
    /// A sharding constraint cannot be stated in the other dims.
    Constraint,
    /// A computation that reduces is none that is known.
    Reducer,
    /// The type of a reduction has no known identity.
    Identity,
    /// The order in which floats are combined must stay.
    Order,
    /// The order by which NaNs are chosen must stay.
    OrderOfNans,
    /// Operands of one instruction are floats of different precision.
    MixedPrecision,
    /// The module would hold more bytes at once.
    Memory,
    /// The devices would exchange more.
    Traffic,
    /// A rule does not keep its own word.
    Rule,
    /// A rule may change floats more than is allowed.
    Class,
    /// A pass that is not gated by cost simplified expressions that no other pass needed.
    PutBack,
}

impl Reason {
    /// Returns the reason in words that follow the name of an instruction.
    pub const fn of_instruction(self) -> &'static str {
        match self {
            Self::DynamicDims => "has dynamic dims",
            Self::Layout => "does not lie row major",
            Self::Attached => {
                "has a sharding, control edges or other attributes that would be lost"
            }
            Self::Constraint => "has a sharding that cannot be stated in the other dims",
            Self::Reducer => {
                "reduces by a computation that is no plain sum, product, minimum, maximum, and, \
                 or, xor, nor several of these, nor the place of a minimum or maximum"
            }
            Self::Identity => "has a type without a known identity",
            Self::Order => "combines floats, whose order --exact keeps",
            Self::OrderOfNans => "chooses among NaNs by their order, which --exact keeps",
            Self::MixedPrecision => "has operands that are floats of different precision",
            Self::Memory => "would let the module hold more bytes at once",
            Self::Traffic => "would let the devices exchange more",
            Self::Rule => "is rewritten by a rule that does not keep its word",
            Self::Class => {
                "is rewritten only where --fast-math is given, as the rule says that it may change \
                 floats without a bound, or does not say what it does to them (`with_class`)"
            }
            Self::PutBack => {
                "is put back as it was where no cost-gated pass had a part in the change, as the \
                 rule is applied `always`; to keep such changes, name the rule in a list of passes, \
                 or use the pipeline `cleanup`"
            }
        }
    }
}

/// The reason as a sentence about some instruction.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an instruction {}", self.of_instruction())
    }
}

/// A rewrite that is not made: the reason, and its words in a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) text: String,
}
