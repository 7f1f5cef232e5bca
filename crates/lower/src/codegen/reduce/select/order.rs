//! The order of elements and their indices, as functions of kernels.

use half::{bf16, f16};
use smallvec::SmallVec;
use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::ops::elementwise::{CompareAttrs, CompareOrder, Direction};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Op, Opcode};

use super::PLACE;
use crate::error::{LowerError, Unsupported, internal};
use crate::kernel::{Function, FunctionValue};

/// Orders pairs of an element and its index: the greatest or the least element first; among
/// equal elements the least index first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    element_type: ElementType,
    largest: bool,
}

/// A pair, as numbers of values of a function.
type Pair = [usize; 2];

impl Order {
    pub(super) fn of(element_type: ElementType, largest: bool) -> Result<Self, LowerError> {
        let known = ends(element_type).is_some();
        let order = known.then_some(Self { element_type, largest });
        order.ok_or_else(|| Unsupported::Unordered(element_type).into())
    }

    /// Returns the element of the pair that comes after all others.
    pub(super) fn last_value(self) -> Result<Literal, LowerError> {
        self.end(!self.largest)
    }

    /// Returns the index of that pair, which no element has.
    pub(super) fn last_place(self) -> Result<Literal, LowerError> {
        literal(PLACE, Data::S32(vec![i32::MAX]))
    }

    /// Returns the element of the pair that comes before all others.
    pub(super) fn before_all_values(self) -> Result<Literal, LowerError> {
        self.end(self.largest)
    }

    /// Returns the index of that pair, which no element has.
    pub(super) fn before_all_places(self) -> Result<Literal, LowerError> {
        literal(PLACE, Data::S32(vec![-1]))
    }

    fn end(self, greatest: bool) -> Result<Literal, LowerError> {
        let [least, most] = ends(self.element_type)
            .ok_or_else(|| internal("an order without a first and a last element"))?;
        literal(self.element_type, if greatest { most } else { least })
    }

    /// Returns the function that returns the first of two pairs in the order.
    pub(super) fn first(self) -> Result<Function, LowerError> {
        let mut function = Function { name: "first".into(), ..Function::default() };
        let a = self.parameter(&mut function, ["a", "i"]);
        let b = self.parameter(&mut function, ["b", "j"]);
        let wins = self.is_before(&mut function, "wins", b, a)?;
        self.chosen(&mut function, wins, b, a)?;
        Ok(function)
    }

    /// Returns the function of a best pair, a last pair and another pair. It returns the other
    /// pair if that is better than the best pair and comes after the last one; otherwise the
    /// best pair.
    pub(super) fn next(self) -> Result<Function, LowerError> {
        let mut function = Function { name: "next".into(), ..Function::default() };
        let best = self.parameter(&mut function, ["a", "i"]);
        let last = self.parameter(&mut function, ["last", "at"]);
        let other = self.parameter(&mut function, ["b", "j"]);
        let is_left = self.is_before(&mut function, "is_left", last, other)?;
        let is_better = self.is_before(&mut function, "is_better", other, best)?;
        let wins = plain(&mut function, "wins", Opcode::And, [is_left, is_better])?;
        self.chosen(&mut function, wins, other, best)?;
        Ok(function)
    }

    fn parameter(self, function: &mut Function, names: [&str; 2]) -> Pair {
        let types = [self.element_type, PLACE];
        for (name, element_type) in names.into_iter().zip(types) {
            function.values.push(FunctionValue { name: name.into(), element_type });
        }
        function.parameters = function.values.len();
        [function.parameters - 2, function.parameters - 1]
    }

    /// Adds ops that test whether a pair comes before another.
    fn is_before(
        self,
        function: &mut Function,
        name: &str,
        [a, i]: Pair,
        [b, j]: Pair,
    ) -> Result<usize, LowerError> {
        let direction = if self.largest { Direction::Gt } else { Direction::Lt };
        let better = self.compare(function, "better", direction, [a, b]);
        let same = self.compare(function, "same", Direction::Eq, [a, b]);
        let op = compare(Direction::Lt, None);
        let before = function.apply("before", ElementType::Pred, op, SmallVec::from_slice(&[i, j]));
        let tie = plain(function, "tie", Opcode::And, [same, before])?;
        plain(function, name, Opcode::Or, [better, tie])
    }

    fn compare(
        self,
        function: &mut Function,
        name: &str,
        direction: Direction,
        operands: [usize; 2],
    ) -> usize {
        let order = self.element_type.is_float().then_some(CompareOrder::TotalOrder);
        let op = compare(direction, order);
        function.apply(name, ElementType::Pred, op, SmallVec::from_slice(&operands))
    }

    /// Makes the function return `winner` where `wins` is true, otherwise `other`.
    fn chosen(
        self,
        function: &mut Function,
        wins: usize,
        winner: Pair,
        other: Pair,
    ) -> Result<(), LowerError> {
        let types = [self.element_type, PLACE];
        for ((name, element_type), (winner, other)) in
            ["value", "place"].into_iter().zip(types).zip(winner.into_iter().zip(other))
        {
            let operands = SmallVec::from([wins, winner, other]);
            let result = function.apply(name, element_type, op(Opcode::Select)?, operands);
            function.results.push(result);
        }
        Ok(())
    }
}

fn compare(direction: Direction, order: Option<CompareOrder>) -> Op {
    Op::Compare(Box::new(CompareAttrs { direction, order }))
}

fn op(opcode: Opcode) -> Result<Op, LowerError> {
    Op::from_attrs(opcode, &mut AttrValues::default())
        .map_err(|_| internal("an op that lacks attributes"))
}

/// Adds an op on predicates.
fn plain(
    function: &mut Function,
    name: &str,
    opcode: Opcode,
    operands: [usize; 2],
) -> Result<usize, LowerError> {
    Ok(function.apply(name, ElementType::Pred, op(opcode)?, SmallVec::from_slice(&operands)))
}

fn literal(element_type: ElementType, data: Data) -> Result<Literal, LowerError> {
    let literal = ArrayLiteral::new(element_type, [], data);
    literal.map(Literal::Array).map_err(|_| internal("a number that is no literal"))
}

/// Returns the least and the greatest value of a type in total order; for floats, NaNs with all
/// mantissa bits set. `None` for types without such an order.
fn ends(element_type: ElementType) -> Option<[Data; 2]> {
    macro_rules! of {
        ($data:ident, $least:expr, $most:expr) => {
            [Data::$data(vec![$least]), Data::$data(vec![$most])]
        };
    }
    Some(match element_type {
        ElementType::S8 => of!(S8, i8::MIN, i8::MAX),
        ElementType::S16 => of!(S16, i16::MIN, i16::MAX),
        ElementType::S32 => of!(S32, i32::MIN, i32::MAX),
        ElementType::S64 => of!(S64, i64::MIN, i64::MAX),
        ElementType::U8 => of!(U8, u8::MIN, u8::MAX),
        ElementType::U16 => of!(U16, u16::MIN, u16::MAX),
        ElementType::U32 => of!(U32, u32::MIN, u32::MAX),
        ElementType::U64 => of!(U64, u64::MIN, u64::MAX),
        ElementType::F16 => of!(F16, f16::from_bits(0xffff), f16::from_bits(0x7fff)),
        ElementType::BF16 => of!(BF16, bf16::from_bits(0xffff), bf16::from_bits(0x7fff)),
        ElementType::F32 => {
            of!(F32, f32::from_bits(u32::MAX), f32::from_bits(u32::MAX >> 1))
        }
        ElementType::F64 => {
            of!(F64, f64::from_bits(u64::MAX), f64::from_bits(u64::MAX >> 1))
        }
        _ => return None,
    })
}
