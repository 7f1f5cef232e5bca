//! Printed forms of ops. The reader (`text/pretty`) and the printer (`print/pretty`) know how each
//! [`Part`] is read and written.

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
    /// The attribute of this name, by its kind.
    Attribute(&'static str),
    /// Parts that are there if the first of them is.
    Maybe(&'static [Part]),
    /// `{a = 1}` or nothing.
    Dictionary,
    /// Types of operands and results.
    Types(Types),
    /// The parts that only one form has.
    Own(Own),
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
    /// All of a module after its name.
    Module,
    /// All of a function after its name.
    Function,
    /// All of a reduction after its name.
    Reduce,
    /// All of a loop after its name.
    While,
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
            | Self::OperandsOrNone
            | Self::Module
            | Self::Function
            | Self::Reduce
            | Self::While => &[],
        }
    }
}

pub(super) const COMMA: Part = Part::Text(",");
pub(super) const EQUAL: Part = Part::Text("=");
pub(super) const GLUED: Part = Part::Glued("=");
pub(super) const COLON: Part = Part::Text(":");
pub(super) const FUNCTION: Part = Part::Types(Types::Function);
pub(super) const SAME: Part = Part::Types(Types::Same);
pub(super) const ARROW: Part = Part::Types(Types::Arrow);

/// `%a {..} : type`.
pub(super) const UNARY: &[Part] = &[Part::Operand, Part::Dictionary, COLON, SAME];

/// `%a, %b {..} : type`.
pub(super) const BINARY: &[Part] =
    &[Part::Operand, COMMA, Part::Operand, Part::Dictionary, COLON, SAME];

/// `%a, %b {..} : (type, type) -> type`.
pub(super) const PLAIN: &[Part] = &[Part::Operands, Part::Dictionary, COLON, FUNCTION];
