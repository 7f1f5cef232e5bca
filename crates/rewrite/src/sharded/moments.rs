//! The moments of an array, as devices have them before they exchange anything.

use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{ArrayLiteral, ArrayShape, Dims, ElementType, Literal, Op, Shape, Value};

use super::partial::{Combine, Partial, PartialPlanner, Split};
use crate::analysis::whole_number::whole_number;

/// The sums of an array within each device.
struct Local {
    /// The sum of the array.
    total: Partial,
    /// The mean m of the array.
    mean: Partial,
    /// The sum of the squares of the array less m.
    squares: Partial,
    /// The sum of the array less m, if it was asked for.
    rest: Option<Partial>,
    /// The number of elements of each sum.
    count: i64,
}

/// The sums of an array and of its squares over all devices, in f64.
pub(super) struct Moments {
    pub(super) sum: Value,
    pub(super) squares: Value,
}

impl PartialPlanner<'_> {
    /// Sums an array of f32 and its squares along these dims over all devices, in one round:
    ///
    /// ```text
    /// sum x   = sum over devices of n m + D             T = sum x, m = T / n, Q = sum (x-m)^2
    /// sum x^2 = sum over devices of Q + m (2 D + n m)       of the n elements of each
    /// ```
    ///
    /// `D = sum (x-m)` is not zero, since T and m are rounded. It takes one more reading, unless T
    /// may count as exact, which makes it `T - n m`. `adds` adds in f32 and in f64. `None` if a dim
    /// is not divided evenly.
    pub(super) fn moments(
        &mut self,
        from: &Partial,
        dims: &[usize],
        adds: [Combine; 2],
        total_is_exact: bool,
    ) -> Option<Moments> {
        let [narrow, wide] = adds;
        let local = self.local(from, dims, narrow, !total_is_exact)?;
        let like = self.array(local.total.value)?;
        let layout = like.layout.clone();
        let like =
            ArrayShape::new(ElementType::F64, like.dims().iter().copied()).with_layout(layout);
        let all = local.total.all_dims(self.mesh);
        let given = [&local.total, &local.mean, &local.squares];
        let [total, mean, squares] =
            given.map(|partial| self.op(Op::Convert, &like, &all, [partial.value]));
        let rest = local.rest.map(|rest| self.op(Op::Convert, &like, &all, [rest.value]));
        let count = self.number(ElementType::F64, local.count, &like, &all)?;
        let mut op = |op: Op, a: Value, b: Value| self.op(op, &like, &all, [a, b]);
        let times = op(Op::Multiply, count, mean);
        let rest_of_total = rest.unwrap_or_else(|| op(Op::Subtract, total, times));
        let twice = op(Op::Add, rest_of_total, rest_of_total);
        let inner = op(Op::Add, twice, times);
        let product = op(Op::Multiply, mean, inner);
        let squares = op(Op::Add, squares, product);
        let sum = match rest {
            None => total,
            Some(rest) => {
                let sum = op(Op::Add, times, rest);
                // An infinite element makes D NaN, but the sum infinite.
                let predicate = ArrayShape::new(ElementType::Pred, all.iter().copied());
                let is_finite = self.op(Op::IsFinite, &predicate, &all, [total]);
                self.op(Op::Select, &like, &all, [is_finite, sum, total])
            }
        };
        let mut over_all =
            |value: Value| self.combine(&Partial { value, ..local.total.clone() }, wide);
        Some(Moments { sum: over_all(sum)?, squares: over_all(squares)? })
    }

    /// Sums an array within each device.
    fn local(
        &mut self,
        from: &Partial,
        dims: &[usize],
        by: Combine,
        has_rest: bool,
    ) -> Option<Local> {
        let like = self.array(from.value)?;
        let split = Split::of(from, dims, self.mesh)?;
        let array = self.reshaped(from.value, &like, &split.dims);
        let total = self.within(&split, array, by)?;
        let count = split.count()?;
        let number = self.number(like.element_type, count, &like, &split.left)?;
        let mean = self.op(Op::Divide, &like, &split.left, [total, number]);
        let dimensions = split.places_left();
        let broadcast = Op::Broadcast(Box::new(BroadcastAttrs { dimensions }));
        let everywhere = self.op(broadcast, &like, &split.dims, [mean]);
        let centred = self.op(Op::Subtract, &like, &split.dims, [array, everywhere]);
        let rest = if has_rest { Some(self.within(&split, centred, by)?) } else { None };
        let squared = self.op(Op::Multiply, &like, &split.dims, [centred, centred]);
        let squares = self.within(&split, squared, by)?;
        let placed = |planner: &mut Self, value| planner.placed(from, &split, value);
        Some(Local {
            total: placed(self, total)?,
            mean: placed(self, mean)?,
            squares: placed(self, squares)?,
            rest: match rest {
                Some(rest) => Some(placed(self, rest)?),
                None => None,
            },
            count,
        })
    }

    /// Plans a whole number.
    pub(super) fn scalar(&mut self, element_type: ElementType, number: i64) -> Option<Value> {
        let number = whole_number(element_type, number)?;
        let number = Literal::Array(ArrayLiteral::new(element_type, [], number).ok()?);
        let scalar = Shape::scalar(element_type);
        Some(self.patch.add(self.before, Op::Constant(Box::new(number)), scalar, []))
    }

    /// Plans a whole number, broadcast to these dims.
    pub(super) fn number(
        &mut self,
        element_type: ElementType,
        number: i64,
        like: &ArrayShape,
        dims: &[i64],
    ) -> Option<Value> {
        let number = self.scalar(element_type, number)?;
        let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
        Some(self.op(op, like, dims, [number]))
    }
}
