//! The meaning of instructions over the field, derived from the table of ops.

use rustc_hash::FxHashMap;
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{CompId, ElementType, Family, InstId, Op, Opcode, Shape, Verified};

use crate::eval::moves_only;

/// The way an instruction is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// By the ordinary evaluation, with the functions of the field.
    Evaluated,
    /// By the ordinary evaluation if it takes no floats, whose bits it looks at.
    Bits,
    /// By a random function of all its operands.
    Unknown,
}

macro_rules! of_row {
    (linalg $rule:ident) => {
        Meaning::Unknown
    };
    (random rng) => {
        Meaning::Unknown
    };
    (contract ragged_dot) => {
        Meaning::Unknown
    };
    (contract scaled_dot) => {
        Meaning::Unknown
    };
    (elementwise stochastic_convert) => {
        Meaning::Unknown
    };
    (shaping bitcast_convert) => {
        Meaning::Bits
    };
    ($family:ident $rule:ident) => {
        Meaning::Evaluated
    };
}

macro_rules! meanings {
    ($($variant:ident $(($payload:ident))? $text:literal $arity:ident($count:literal)
        $family:ident::$rule:ident [$($flag:ident)*];)*) => {
        fn of_opcode(opcode: Opcode) -> Meaning {
            match opcode {
                $(Opcode::$variant => of_row!($family $rule),)*
            }
        }
    };
}

tilewright_ir::for_each_op!(meanings);

pub(super) fn meaning(module: &Verified, id: InstId) -> Meaning {
    match module.op(id) {
        Op::CustomCall(attrs) if !moves_only(attrs) => Meaning::Unknown,
        Op::Bitcast => match (first_type(module, id), module.array_shape(id)) {
            (Some(from), Some(to)) if from == to.element_type => Meaning::Evaluated,
            _ => Meaning::Bits,
        },
        op => of_opcode(op.opcode()),
    }
}

fn first_type(module: &Verified, id: InstId) -> Option<ElementType> {
    Some(module.array_shape(*module.operands(id).first()?)?.element_type)
}

/// Checks whether the instruction hands values on, or runs a computation on them instruction by
/// instruction: marks travel with the values then.
pub(super) fn hands_on(module: &Verified, id: InstId) -> bool {
    let opcode = module.opcode(id);
    opcode.takes_values_whole() && opcode != Opcode::CustomCall
}

/// Checks whether a shape has floats.
pub(super) fn has_floats(shape: &Shape) -> bool {
    any_array(shape, |element_type| element_type.is_float() || element_type.is_complex())
}

/// Checks whether a shape has integers or truth values.
fn has_others(shape: &Shape) -> bool {
    any_array(shape, |element_type| !element_type.is_float() && !element_type.is_complex())
}

fn any_array(shape: &Shape, test: impl Fn(ElementType) -> bool) -> bool {
    shape.leaves().into_iter().filter_map(Shape::as_array).any(|array| test(array.element_type))
}

/// Checks whether an instruction's results from floats may have no known relation to reals;
/// reports list these.
pub(super) fn is_unsure(module: &Verified, id: InstId) -> bool {
    let of_floats = has_floats(module.shape(id));
    let orders = matches!(module.opcode(id), Opcode::Maximum | Opcode::Minimum | Opcode::Clamp);
    orders && of_floats || own_doubt(module, id) != Doubt::None
}

/// The reason why a result is unsure for all operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The result is not unsure.
    None,
    /// It compares its operands, so unsure elements make it unsure.
    IfUnsure,
    /// It is unsure always.
    Always,
}

/// The computations whose results are unsure.
#[derive(Debug, Default)]
pub(super) struct Doubts(FxHashMap<CompId, bool>);

impl Doubts {
    /// Returns the doubt that an instruction adds to those of its operands.
    pub(super) fn of(&mut self, module: &Verified, id: InstId) -> Doubt {
        let own = own_doubt(module, id);
        if own != Doubt::None || hands_on(module, id) {
            return own;
        }
        let called = module.called(id);
        if called.iter().any(|&computation| self.within(module, computation)) {
            return Doubt::Always;
        }
        Doubt::None
    }

    fn within(&mut self, module: &Verified, computation: CompId) -> bool {
        if let Some(&known) = self.0.get(&computation) {
            return known;
        }
        // Computations do not call themselves, so this is for a bad module only.
        self.0.insert(computation, false);
        let mut found = false;
        for id in module.instructions(computation) {
            let called = module.called(id);
            found |= own_doubt(module, id) != Doubt::None
                || called.iter().any(|&computation| self.within(module, computation));
        }
        self.0.insert(computation, found);
        found
    }
}

/// Returns the doubt that an instruction adds, without called computations.
fn own_doubt(module: &Verified, id: InstId) -> Doubt {
    let opcode = module.opcode(id);
    if hands_on(module, id) || opcode == Opcode::GetDimensionSize {
        return Doubt::None;
    }
    let operands = module.operands(id);
    let takes_floats = operands.iter().any(|&operand| has_floats(module.shape(operand)));
    if meaning(module, id) == Meaning::Unknown || multiplies_complex(module, id) {
        return Doubt::Always;
    }
    if !takes_floats || !has_others(module.shape(id)) {
        return Doubt::None;
    }
    match (module.op(id), operands) {
        (Op::Compare(_), [a, b]) if a == b => Doubt::None,
        (Op::Compare(attrs), _) if is_equality(attrs.direction) => Doubt::IfUnsure,
        (Op::IsFinite, _) => Doubt::IfUnsure,
        _ => Doubt::Always,
    }
}

const fn is_equality(direction: Direction) -> bool {
    matches!(direction, Direction::Eq | Direction::Ne)
}

/// Checks whether an instruction does more with complex numbers than move and add them: the
/// field has no imaginary unit.
fn multiplies_complex(module: &Verified, id: InstId) -> bool {
    let is_complex = |id: InstId| any_array(module.shape(id), ElementType::is_complex);
    let opcode = module.opcode(id);
    if !matches!(opcode.family(), Family::Elementwise | Family::Contract) {
        return false;
    }
    let from = module.operands(id).iter().any(|&operand| is_complex(operand));
    match opcode {
        Opcode::Add | Opcode::Subtract | Opcode::Negate | Opcode::Select | Opcode::Complex => false,
        Opcode::Convert => from && !is_complex(id),
        _ => from || is_complex(id),
    }
}
