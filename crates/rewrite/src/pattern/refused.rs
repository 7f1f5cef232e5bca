//! Why a rule does not apply where its pattern matches.

use std::fmt;

use tilewright_ir::InstId;

use crate::driver::numbers::Class;

/// Why a rule does not apply to a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The rule does not state its change to floats here.
    NoClass,
    /// The rule states a larger change to floats here than its general class.
    Exceeds(Class),
    /// It does more to them than is allowed.
    NotAllowed(Class),
    /// This does not hold of the expression.
    Condition(&'static str),
    /// It asked the match for this name.
    UnknownName(String),
    NoReplacement,
    /// The replacement is a value that was not planned.
    NotPlanned,
    OtherShape,
    /// The replacement is the expression.
    Itself,
    /// The extras of this instruction would be lost.
    Lost(InstId),
}

impl Refused {
    /// Returns the instruction that it is about, if that is not the root.
    pub(super) fn place(&self) -> Option<InstId> {
        match *self {
            Self::Lost(id) => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClass => f.write_str("nothing is known of what it does to floats here"),
            Self::Exceeds(class) => write!(
                f,
                "a rewrite of class `{}` is more than the rule says that it does at most",
                class.name()
            ),
            Self::NotAllowed(class) => {
                write!(f, "a rewrite of class `{}` is not allowed", class.name())
            }
            Self::Condition(says) => write!(f, "the expression must {says}"),
            Self::UnknownName(name) => write!(
                f,
                "the pattern has no name `{name}`, for which the rule asks: name it with \
                 `any(\"{name}\")` or `.named(\"{name}\")`"
            ),
            Self::NoReplacement => f.write_str("it has no replacement here"),
            Self::NotPlanned => {
                f.write_str("the replacement is an instruction that the rule did not plan")
            }
            Self::OtherShape => f.write_str("the replacement has another shape"),
            Self::Itself => f.write_str("the replacement is the expression itself"),
            Self::Lost(_) => f.write_str(
                "it carries a sharding, control dependencies or other attributes that a rewrite \
                 would lose",
            ),
        }
    }
}
