//! Finds the measured time of a sum of a shared value: the target's table lists such values by the
//! ops that compute them ([`Source`]). The pass `rematerialize` asks whether copies are faster.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::reducer::Reducer;
use tilewright_ir::{ArrayShape, ElementType, InstId, Module, Op, Opcode};
use tilewright_target::reductions::{Form, ReductionFeatures, Reductions, Source};

use super::Copies;
use crate::analysis::reduce::reduced_arrays;
use crate::cost::reductions::reduction;
use crate::cost::shared::Shared;
use crate::cost::takes_minor;

/// The most instructions between a value and a reduction of it that are visited.
const MOST_VISITED: usize = 64;

impl Copies {
    /// Checks whether each sum was measured to be faster with its own copy of the value.
    pub(super) fn pay(&self, module: &Module, table: &Reductions) -> bool {
        self.reductions.iter().all(|one| self.is_faster(module, one, table).unwrap_or(false))
    }

    fn is_faster(&self, module: &Module, one: &Shared, table: &Reductions) -> Option<bool> {
        let Op::Reduce(attrs) = module.op(one.reduction) else { return None };
        let reducer = Reducer::of(module, attrs.to_apply)?;
        // The maximum of a copy might equal no element of the value: copies may differ in the last
        // place.
        if reducer.monoid()?.opcode != Opcode::Add {
            return None;
        }
        let &first = reduced_arrays(module, one.reduction).first()?;
        let array = module.array_shape(first)?;
        let found =
            reduction(&reducer, array, &attrs.dimensions, self.element_source(module, one)?)?;
        let innermost = array.dims().iter().rev().copied().find(|&size| size != 1)?;
        let found = ReductionFeatures { innermost, several: self.several, ..found };
        Some(table.best(&found, |form| form == Form::Copied).is_some())
    }

    /// Returns the source of a sum's elements: the dearest one among the instructions that are
    /// computed for the sum. `None` if the table has no source for one of these instructions.
    fn element_source(&self, module: &Module, one: &Shared) -> Option<Source> {
        let ids = self.copied.iter().map(|one| one.id);
        let computed = ids.chain(between(module, self.value, one)?);
        let mut dearest =
            if self.reads_several(module) { Source::SharedArrays } else { Source::Shared };
        for id in computed {
            dearest = dearest.max(inst_source(module, id)?);
        }
        Some(dearest)
    }

    /// Checks whether the copied elementwise ops read several values that are not copied. The
    /// operands of copied broadcasts do not count.
    fn reads_several(&self, module: &Module) -> bool {
        let is_copied = |id: InstId| self.copied.iter().any(|one| one.id == id);
        let elementwise =
            self.copied.iter().map(|one| one.id).filter(|&id| module.opcode(id).is_elementwise());
        let operands = elementwise.flat_map(|id| module.operands(id).iter().copied());
        let read: FxHashSet<InstId> = operands.filter(|&id| !is_copied(id)).collect();
        read.len() > 1
    }
}

/// Returns the elementwise instructions that are computed between a value and a reduction of it.
/// `None` if there are more than [`MOST_VISITED`].
fn between(module: &Module, value: InstId, shared: &Shared) -> Option<FxHashSet<InstId>> {
    let mut next: SmallVec<[InstId; 4]> = reduced_arrays(module, shared.reduction).into();
    let mut met: FxHashSet<InstId> = FxHashSet::default();
    while let Some(id) = next.pop() {
        let is_computed = id != value && module.opcode(id).is_elementwise();
        if !is_computed || !met.insert(id) {
            continue;
        }
        if met.len() > MOST_VISITED {
            return None;
        }
        if !shared.readers.contains(&id) {
            next.extend_from_slice(module.operands(id));
        }
    }
    Some(met)
}

/// Returns the source of a value that an instruction takes part in computing. `None` if the table
/// has no such source.
fn inst_source(module: &Module, id: InstId) -> Option<Source> {
    let array = module.array_shape(id)?;
    let opcode = module.opcode(id);
    if matches!(opcode, Opcode::Reshape | Opcode::Bitcast | Opcode::OptimizationBarrier) {
        return Some(Source::Shared);
    }
    let mut dearest = match module.op(id) {
        Op::Broadcast(spread) => spread_source(array, &spread.dimensions),
        _ => elementwise_source(opcode)?,
    };
    for &value in module.operands(id).iter().chain([&id]) {
        dearest = dearest.max(match (module.array_shape(value)?.element_type, opcode) {
            (ElementType::F32 | ElementType::Pred, _) => Source::Shared,
            (ElementType::BF16, Opcode::Convert) => Source::SharedNarrow,
            (ElementType::BF16, _) => Source::SharedRounded,
            _ => return None,
        });
    }
    Some(dearest)
}

/// Returns the source of a value with a broadcast along `dims` of an array.
fn spread_source(array: &ArrayShape, dims: &[i64]) -> Source {
    if dims.is_empty() {
        Source::SharedScalar
    } else if takes_minor(array, dims) {
        Source::SharedRow
    } else {
        Source::SharedColumn
    }
}

/// Returns the source of a value with an elementwise op. `None` if the table has no such source.
fn elementwise_source(opcode: Opcode) -> Option<Source> {
    match opcode {
        Opcode::Abs
        | Opcode::Add
        | Opcode::Convert
        | Opcode::Copy
        | Opcode::Divide
        | Opcode::Maximum
        | Opcode::Minimum
        | Opcode::Multiply
        | Opcode::Negate
        | Opcode::Subtract => Some(Source::Shared),
        Opcode::And
        | Opcode::Clamp
        | Opcode::Compare
        | Opcode::Not
        | Opcode::Or
        | Opcode::Select => Some(Source::SharedChoice),
        _ if opcode.is_transcendental() => Some(Source::SharedFunction),
        _ => None,
    }
}
