//! The pretty forms of operations, from which both the reader and the printer of MLIR's text work.
//!
//! Most forms are rows of [`table`]; the reader (`text/pretty`) and the printer (`print/pretty`)
//! know how each [`Part`] is read and written.

mod table;

use crate::mlir::Sign;

pub(crate) use table::{form, names};

/// A part of a pretty form.
pub(crate) enum Part {
    /// A word or punctuation.
    Text(&'static str),
    /// A word or punctuation that is written without spaces around it.
    Glued(&'static str),
    /// One operand.
    Operand,
    /// Operands with commas between them, or none.
    Operands,
    /// As `Operands`, but where there is none, there is no space either.
    SomeOperands,
    /// Operands, each with a comma after it.
    OperandsBefore,
    /// An attribute with this name.
    Attribute(&'static str, Kind),
    /// Parts that are there if the first of them is.
    Maybe(&'static [Part]),
    /// `{a = 1}` or nothing.
    Dictionary,
    /// Types of operands and results.
    Types(Types),
    /// The parts that only one form has.
    Own(Own),
}

/// How an attribute is written in a pretty form.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// An integer without its type: the number of bits and the sign.
    Integer(u32, Sign),
    /// A number without its type `f64`.
    Float,
    /// `true` or `false`.
    Bool,
    /// `[0, 1]`.
    Integers,
    /// `"text"`.
    Text,
    /// `@name`, as a string.
    Name,
    /// `@name`.
    Symbol,
    /// A word of an attribute of the operation's dialect: `FLOAT` of `comparison_type`.
    Word(&'static str),
    /// One of these words, as its number of type `i32`.
    Number(&'static [&'static str]),
    /// The part of an attribute of Shardy after its name: `<@mesh, [{}]>` of `sharding`.
    Sharding(&'static str),
    /// `[<@mesh, [{}]>, ...]`.
    Shardings,
    /// An attribute as it is elsewhere.
    Any,
}

/// A part that only one form, or a few, have.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    /// The value of a constant and its type.
    Constant,
    /// `[0:4:2, 1:3]`.
    SliceRanges,
    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
    DotDims,
    /// `, precision = [DEFAULT, DEFAULT], algorithm = <...>`, each of which may be missing.
    Precision,
    /// `dim_numbers = ..., window = {...}`.
    Convolution,
    /// `e5m10`.
    ReducedFormat,
    /// `({...}, {...})` or nothing.
    CompositeRegions,
    /// A scan after its name.
    Scan,
    /// Nothing: the type of the result is always the same.
    GeneratorState,
    /// `(%a: type, ...) {...}`.
    LabelledRegion,
    /// `max`, or nothing for `sum`.
    ReductionKind,
    /// Operands, or `()`.
    OperandsOrNone,
}

/// Which types a form gives.
#[derive(Clone, Copy)]
pub(crate) enum Types {
    /// `(a, b) -> c`.
    Function,
    /// `a, b -> c`; operands in parentheses are read, too.
    Arrow,
    /// `(a, b) -> c`; operands without parentheses are read, too.
    Brackets,
    /// `a, b to c`.
    To,
    /// One type of all operands and of the result, or `(a, b) -> c`.
    Same,
    /// The types of the results.
    Results,
    /// The types of the operands; there are no results.
    Operands,
    /// The type of each operand; there are no results.
    SameOperands,
    /// The types of the operands, which are also those of the results.
    Pairwise,
    /// The type of the only operand, which is that of the result, too.
    Unary,
    /// The condition and the result of a `select`, or `(a, b, b) -> b`.
    Select,
    /// A tensor of complex numbers; those of the operands are real.
    Complex,
    /// A tuple of the types of the operands.
    Tuple,
}

impl Own {
    /// The attributes that this part says.
    pub(crate) fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Constant => &["value"],
            Self::SliceRanges => &["limit_indices", "start_indices", "strides"],
            Self::DotDims => &["dot_dimension_numbers"],
            Self::Precision => &["algorithm", "precision_config"],
            Self::Convolution => &[
                "dimension_numbers",
                "lhs_dilation",
                "padding",
                "rhs_dilation",
                "window_reversal",
                "window_strides",
            ],
            Self::ReducedFormat => &["exponent_bits", "mantissa_bits"],
            Self::Scan => &["dimension", "operandSegmentSizes", "resultSegmentSizes"],
            Self::ReductionKind => &["reduction_op"],
            Self::CompositeRegions
            | Self::GeneratorState
            | Self::LabelledRegion
            | Self::OperandsOrNone => &[],
        }
    }
}
