//! Reductions by kernels of this CPU, as custom calls of XLA's typed interface.
//!
//! `custom-call(x), custom_call_target="tilewright_reduce", api_version=API_VERSION_TYPED_FFI,
//! backend_config={axes = array<i64: 1>, fold = "sum"}` is `x` reduced along the axes. The pass
//! `native-calls` makes such calls, the interpreter evaluates them, and the Python package has the
//! handler that XLA calls.

use std::fmt;

use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::control::ApiVersion;
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::shape::{Dims, Shape};

/// The computation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NativeFold {
    /// The sum of numbers, in their own type; floats of 16 bits are added in `f32`.
    Sum,
    /// The product of numbers, as the sum.
    Product,
    /// The greatest number; NaN if one is.
    Max,
    /// The least number; NaN if one is.
    Min,
    /// Whether all truth values are true.
    And,
    /// Whether any truth value is true.
    Or,
    /// The first place of the greatest number, or of a NaN, along one axis: an `s32` or `s64`.
    ArgMax,
    /// The first place of the least number, or of a NaN, along one axis: an `s32` or `s64`.
    ArgMin,
}

impl NativeFold {
    /// Every fold, with its name in the configuration of a call.
    pub const ALL: [(Self, &str); 8] = [
        (Self::Sum, "sum"),
        (Self::Product, "product"),
        (Self::Max, "max"),
        (Self::Min, "min"),
        (Self::And, "and"),
        (Self::Or, "or"),
        (Self::ArgMax, "argmax"),
        (Self::ArgMin, "argmin"),
    ];

    /// Returns the fold of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, one)| *one == name).map(|&(fold, _)| fold)
    }

    /// Returns its name in the configuration of a call.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(one, _)| *one == self).map_or("", |&(_, name)| name)
    }

    /// Returns the op that joins two elements; none for places.
    pub fn opcode(self) -> Option<Opcode> {
        match self {
            Self::Sum => Some(Opcode::Add),
            Self::Product => Some(Opcode::Multiply),
            Self::Max => Some(Opcode::Maximum),
            Self::Min => Some(Opcode::Minimum),
            Self::And => Some(Opcode::And),
            Self::Or => Some(Opcode::Or),
            Self::ArgMax | Self::ArgMin => None,
        }
    }

    /// Checks whether there is a kernel for elements of a type: numbers of 8 bits and more, and truth
    /// values for `And` and `Or`.
    pub fn reduces(self, element_type: ElementType) -> bool {
        use ElementType::{BF16, F16, F32, F64, Pred, S8, S16, S32, S64, U8, U16, U32, U64};
        match self {
            Self::And | Self::Or => element_type == Pred,
            _ => matches!(
                element_type,
                S8 | S16 | S32 | S64 | U8 | U16 | U32 | U64 | F16 | BF16 | F32 | F64
            ),
        }
    }

    /// Checks whether results are places, and no elements.
    pub fn tells_places(self) -> bool {
        self.opcode().is_none()
    }
}

/// A reduction by a kernel of this CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeCall {
    /// The computation.
    pub fold: NativeFold,
    /// The reduced dims.
    pub axes: Dims,
}

impl NativeCall {
    /// The target of the custom call.
    pub const TARGET: &str = "tilewright_reduce";
    /// The name of the fold in the configuration.
    pub const FOLD: &str = "fold";
    /// The name of the axes in the configuration.
    pub const AXES: &str = "axes";

    /// Returns the call that an instruction is, if it is one of the typed interface with a
    /// configuration as [`fmt::Display`] writes it.
    pub fn of(module: &Module, id: InstId) -> Option<Self> {
        let Op::CustomCall(attrs) = module.op(id) else { return None };
        let is_one =
            attrs.custom_call_target == Self::TARGET && attrs.api_version == ApiVersion::TypedFfi;
        let config = module.extras(id)?.backend_config.as_ref()?;
        if is_one { Self::of_config(&config.0) } else { None }
    }

    fn of_config(config: &str) -> Option<Self> {
        let config = config.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let axes = config.strip_prefix("axes = array<i64: ")?;
        let (axes, fold) = axes.split_once(">, fold = \"")?;
        let axes = axes.split(',').map(|axis| axis.trim().parse());
        let fold = NativeFold::of_name(fold.strip_suffix('"')?)?;
        Some(Self { fold, axes: axes.collect::<Result<_, _>>().ok()? })
    }
}

/// A program by kernels of this CPU: the custom call computes what the computation that it calls does.
///
/// `custom-call(x), custom_call_target="tilewright_program", api_version=API_VERSION_TYPED_FFI,
/// called_computations={%norm}` becomes, when it is handed to XLA, a call whose configuration has the
/// computation as the text of a module: `backend_config={program = "HloModule norm ..."}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeProgram {
    /// The computation.
    pub computation: CompId,
}

impl NativeProgram {
    /// The target of the custom call.
    pub const TARGET: &str = "tilewright_program";
    /// The name of the text in the configuration.
    pub const PROGRAM: &str = "program";

    /// Returns the program that an instruction is, if it is a call of the typed interface whose
    /// computation takes its operands and has its result.
    pub fn of(module: &Module, id: InstId) -> Option<Self> {
        let Op::CustomCall(attrs) = module.op(id) else { return None };
        let is_one =
            attrs.custom_call_target == Self::TARGET && attrs.api_version == ApiVersion::TypedFfi;
        let &[computation] = attrs.called_computations.as_slice() else { return None };
        let parameters = module.computation(computation).parameters();
        let same = |a: &Shape, b: &Shape| a.compatible(b);
        let fits = parameters.len() == module.operands(id).len()
            && parameters
                .iter()
                .zip(module.operands(id))
                .all(|(&a, &b)| same(module.shape(a), module.shape(b)))
            && module
                .computation(computation)
                .root()
                .is_some_and(|root| same(module.shape(root), module.shape(id)));
        (is_one && fits).then_some(Self { computation })
    }

    /// Returns the configuration of a call with the text of its program, on one line; `None` if the
    /// text has characters that would be escaped there.
    pub fn config(text: &str) -> Option<String> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_plain = text.chars().all(|c| (' '..='~').contains(&c) && c != '"' && c != '\\');
        is_plain.then(|| format!("{{{} = \"{text}\"}}", Self::PROGRAM))
    }
}

impl fmt::Display for NativeCall {
    /// Writes the configuration, a dictionary in MLIR's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> = self.axes.iter().map(ToString::to_string).collect();
        let (axes, fold) = (axes.join(", "), self.fold.name());
        write!(f, "{{{} = array<i64: {axes}>, {} = \"{fold}\"}}", Self::AXES, Self::FOLD)
    }
}

#[cfg(test)]
mod tests {
    use super::{NativeCall, NativeFold, NativeProgram};
    use crate::types::shape::dims;

    #[test]
    fn configurations_come_back() {
        for (fold, _) in NativeFold::ALL {
            let call = NativeCall { fold, axes: dims([0, 12]) };
            assert_eq!(NativeCall::of_config(&call.to_string()), Some(call));
        }
    }

    /// As XLA's own parser of MLIR attributes prints a dictionary: sorted by name.
    #[test]
    fn configurations_are_read_as_xla_writes_them() {
        let call = NativeCall { fold: NativeFold::Sum, axes: dims([1, 2]) };
        let text = "{axes = array<i64: 1, 2>, fold = \"sum\"}";
        assert_eq!((call.to_string().as_str(), NativeCall::of_config(text)), (text, Some(call)));
        for wrong in ["", "{}", "{axes = array<i64: x>, fold = \"sum\"}", "{fold = \"sum\"}"] {
            assert_eq!(NativeCall::of_config(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn texts_are_on_one_line_and_plain() {
        let config = NativeProgram::config("HloModule m\n\nENTRY e {\n  x = f32[] add(a, b)\n}\n");
        let expected = "{program = \"HloModule m ENTRY e { x = f32[] add(a, b) }\"}";
        assert_eq!(config.as_deref(), Some(expected));
        for text in ["a \"quoted\" name", "back\\slash", "\u{e9}"] {
            assert_eq!(NativeProgram::config(text), None, "{text}");
        }
    }
}
