//! Makes operands that belong together equally long: if one ends at a size known only at run time,
//! the elements of others beyond it are cut off, and one element is repeated. XLA pads to the bound, ignores the
//! elements beyond the least size or multiplies them by zero, and broadcasts a dynamic dim of size 1
//! (`xla/service/dynamic_dimension_inference.cc`, elementwise ops).

use std::rc::Rc;

use smallvec::SmallVec;
use tilewright_ir::ops::contract::DotAttrs;
use tilewright_ir::shape::checked_product;
use tilewright_ir::{ArrayShape, Dims, InstId, Op, Verified};

use crate::error::{Fault, Outcome};
use crate::eval::Operands;
use crate::limits::Ledger;
use crate::strides::{Level, Nest, collect, extent, row_major};
use crate::value::{Array, Value, num_bytes};

/// Dims that are walked together: the number of the operand, and of the dim.
type Together = SmallVec<[(usize, usize); 4]>;

pub(super) fn to_the_shortest(
    module: &Verified,
    id: InstId,
    operands: &mut Operands,
    ledger: &Rc<Ledger>,
) -> Outcome<()> {
    let declared: Vec<Option<&ArrayShape>> =
        module.operands(id).iter().map(|&operand| module.array_shape(operand)).collect();
    let mut wanted: Vec<Option<Dims>> = vec![None; operands.len()];
    for together in walked_together(module, id, &declared) {
        let actual = |&(operand, dim): &(usize, usize)| {
            operands.get(operand)?.array().ok()?.dims().get(dim).copied()
        };
        let is_dynamic = |&(operand, dim): &(usize, usize)| {
            declared.get(operand).copied().flatten().is_some_and(|s| s.dim_is_dynamic(dim))
        };
        let ends = || together.iter().filter(|end| is_dynamic(end)).filter_map(actual);
        let Some(shortest) = ends().min() else { continue };
        let is_repeated = shortest == 1 && module.op(id).opcode().is_elementwise();
        let least = ends().filter(|&size| !is_repeated || size > 1).min().unwrap_or(shortest);
        for end @ &(operand, dim) in &together {
            let whole = operands.get(operand).ok_or(Fault::Internal("an operand is missing"))?;
            let whole = whole.array()?.dims();
            let dims = wanted[operand].get_or_insert_with(|| whole.into());
            if let Some(size) = dims.get_mut(dim) {
                *size = if is_repeated && *size == 1 && is_dynamic(end) {
                    least
                } else {
                    least.min(*size)
                };
            }
        }
    }
    for (operand, dims) in operands.iter_mut().zip(wanted) {
        match dims {
            Some(dims) if operand.array()?.dims() != &*dims => {
                *operand = leading(operand.array()?, &dims, ledger)?;
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// Returns the dims of different operands that an op walks together.
fn walked_together(
    module: &Verified,
    id: InstId,
    declared: &[Option<&ArrayShape>],
) -> Vec<Together> {
    let op = module.op(id);
    match op {
        Op::Dot(attrs) => paired(attrs),
        Op::Sort(_) | Op::Map(_) => same_place(declared),
        // Half of the operands are the values that sums begin with.
        Op::Reduce(_) | Op::ReduceWindow(_) => same_place(&declared[..declared.len() / 2]),
        op if op.opcode().is_elementwise() => same_place(declared),
        _ => Vec::new(),
    }
}

fn paired(attrs: &DotAttrs) -> Vec<Together> {
    let pairs = |lhs: &[i64], rhs: &[i64]| -> Vec<Together> {
        let pairs = lhs.iter().zip(rhs);
        pairs.map(|(&l, &r)| SmallVec::from_slice(&[(0, extent(l)), (1, extent(r))])).collect()
    };
    let batch = pairs(&attrs.lhs_batch_dims, &attrs.rhs_batch_dims);
    let summed = pairs(&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims);
    batch.into_iter().chain(summed).collect()
}

/// Returns each dim of all operands that are no scalars.
fn same_place(declared: &[Option<&ArrayShape>]) -> Vec<Together> {
    let arrays = declared.iter().enumerate().filter_map(|(i, shape)| Some((i, (*shape)?)));
    let arrays: Vec<(usize, &ArrayShape)> = arrays.filter(|(_, shape)| shape.rank() > 0).collect();
    let rank = arrays.iter().map(|(_, shape)| shape.rank()).max().unwrap_or(0);
    (0..rank).map(|dim| arrays.iter().map(|&(i, _)| (i, dim)).collect()).collect()
}

/// Returns the first elements of each dim, or its one element repeated.
fn leading(array: &Array, dims: &Dims, ledger: &Rc<Ledger>) -> Outcome<Value> {
    let count = checked_product(dims).and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(Fault::Internal("a part is larger than the whole"))?;
    let charge = ledger.reserve(num_bytes(array.element_type(), count))?;
    ledger.spend(u64::try_from(count).unwrap_or(u64::MAX))?;
    let levels = dims.iter().zip(row_major(array.dims()));
    let levels = levels.zip(array.dims()).map(|((&size, stride), &own)| {
        let stride = if own < size { 0 } else { stride };
        Level { size: extent(size), strides: [stride] }
    });
    let data = collect(array.data(), &Nest::new(levels), 0);
    Ok(Value::Array(Array::new(array.element_type(), dims.clone(), data, charge)?))
}
