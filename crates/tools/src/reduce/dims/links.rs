//! Which dims of operands and results have one size, op by op.

use tilewright::ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright::ir::ops::indexing::{GatherAttrs, ScatterAttrs};
use tilewright::ir::{CompId, InstId, Module, Op};

use super::classes::Classes;
use crate::reduce::walk::all_instructions;

pub(super) fn link_all(module: &Module, classes: &mut Classes) {
    for id in all_instructions(module) {
        let mut linker = Linker { module, classes, id };
        if linker.link().is_none() {
            freeze(module, classes, id);
        }
    }
}

/// Keeps the sizes of all that an op takes, yields and hands to what it calls.
fn freeze(module: &Module, classes: &mut Classes, id: InstId) {
    let mut all = vec![id];
    all.extend(module.operands(id));
    for callee in module.called(id) {
        all.extend(module.computation(callee).parameters());
        all.extend(module.computation(callee).root());
    }
    for id in all {
        let slots = classes.slots.all(id);
        classes.freeze(&slots);
    }
}

/// Finds the links of one instruction.
struct Linker<'a> {
    module: &'a Module,
    classes: &'a mut Classes,
    id: InstId,
}

impl Linker<'_> {
    /// Links the dims; `None` if the rule is not clear.
    fn link(&mut self) -> Option<()> {
        let module = self.module;
        match module.op(self.id) {
            op if op.opcode().is_elementwise() => self.elementwise(),
            Op::Parameter(_) | Op::Iota(_) | Op::AfterAll | Op::Rng(_) => {}
            Op::GetDimensionSize(_) | Op::PartitionId | Op::ReplicaId => {}
            Op::Constant(literal) if literal.as_array().is_some() => {}
            Op::Copy
            | Op::Reverse(_)
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::CollectivePermute(_)
            | Op::Domain(_) => self.whole(self.operand(0)?, self.id),
            op if op.is_sharding_constraint() => self.whole(self.operand(0)?, self.id),
            Op::AllReduce(_) | Op::Sort(_) => self.side_by_side(),
            Op::Transpose(attrs) => {
                let from = self.array(0)?;
                let to = attrs
                    .dimensions
                    .iter()
                    .map(|&dim| at(&from, dim))
                    .collect::<Option<Vec<_>>>()?;
                self.classes.link_each(&to, &self.result());
            }
            Op::Broadcast(attrs) => {
                let to = self.result();
                let from = self.array(0)?;
                let given =
                    attrs.dimensions.iter().map(|&dim| at(&to, dim)).collect::<Option<Vec<_>>>()?;
                self.classes.link_each(&from, &given);
            }
            Op::Reduce(attrs) => self.reduce(&attrs.dimensions),
            Op::Reshape(_) | Op::Bitcast => self.reshape()?,
            Op::Concatenate(attrs) => self.concatenate(&attrs.dimensions)?,
            Op::Slice(attrs) => {
                let is_whole: Vec<bool> =
                    attrs.slice.iter().map(|s| s.start == 0 && s.stride == 1).collect();
                self.equal_dims(&is_whole)?;
            }
            Op::Pad(attrs) => {
                let is_whole: Vec<bool> =
                    attrs.padding.iter().map(|pad| *pad == Default::default()).collect();
                self.equal_dims(&is_whole)?;
            }
            Op::DynamicSlice(_) => self.parts(&self.array(0)?, &self.result()),
            Op::DynamicUpdateSlice => {
                self.whole(self.operand(0)?, self.id);
                self.parts(&self.array(0)?, &self.array(1)?);
            }
            Op::Dot(attrs) => self.dot(attrs)?,
            Op::Convolution(attrs) => self.convolution(attrs)?,
            Op::Gather(attrs) => self.gather(attrs)?,
            Op::Scatter(attrs) => self.scatter(attrs)?,
            op => return self.structure(&op.clone()),
        }
        Some(())
    }

    /// Links what tuples, calls, loops and branches hand on.
    fn structure(&mut self, op: &Op) -> Option<()> {
        let module = self.module;
        let operands = module.operands(self.id);
        match op {
            Op::Tuple => {
                let mut leaf = 0usize;
                for &operand in operands {
                    for own in 0..self.classes.slots.leaves(operand) {
                        let a = self.classes.slots.leaf(operand, own);
                        let b = self.classes.slots.leaf(self.id, leaf);
                        self.classes.link_each(&a, &b);
                        leaf = leaf.saturating_add(1);
                    }
                }
            }
            Op::GetTupleElement(attrs) => {
                let tuple = self.operand(0)?;
                let elements = module.shape(tuple).as_tuple()?;
                let before = elements.get(..usize::try_from(attrs.index).ok()?)?;
                let first: usize = before.iter().map(|shape| shape.leaves().len()).sum();
                for leaf in 0..self.classes.slots.leaves(self.id) {
                    let a = self.classes.slots.leaf(tuple, first.checked_add(leaf)?);
                    let b = self.classes.slots.leaf(self.id, leaf);
                    self.classes.link_each(&a, &b);
                }
            }
            Op::Call(attrs) => self.called(attrs.to_apply, operands)?,
            Op::Fusion(attrs) => self.called(attrs.calls, operands)?,
            Op::While(attrs) => {
                self.called(attrs.body, operands)?;
                let state = *module.computation(attrs.condition).parameters().first()?;
                self.whole(state, *operands.first()?);
                self.whole(*operands.first()?, self.id);
            }
            Op::Conditional(_) => {
                for (callee, &argument) in module.called(self.id).iter().zip(operands.get(1..)?) {
                    self.called(*callee, &[argument])?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn called(&mut self, callee: CompId, arguments: &[InstId]) -> Option<()> {
        let computation = self.module.computation(callee);
        for (&parameter, &argument) in computation.parameters().iter().zip(arguments) {
            self.whole(parameter, argument);
        }
        self.whole(computation.root()?, self.id);
        Some(())
    }

    fn operand(&self, number: usize) -> Option<InstId> {
        self.module.operands(self.id).get(number).copied()
    }

    /// Returns the dims of an operand that is an array.
    fn array(&self, number: usize) -> Option<Vec<usize>> {
        let operand = self.operand(number)?;
        self.module.array_shape(operand)?;
        Some(self.classes.slots.leaf(operand, 0))
    }

    /// Returns the dims of the result, or of its first array.
    fn result(&self) -> Vec<usize> {
        self.classes.slots.leaf(self.id, 0)
    }

    /// Links two values of one shape.
    fn whole(&mut self, a: InstId, b: InstId) {
        let (a, b) = (self.classes.slots.all(a), self.classes.slots.all(b));
        self.classes.link_each(&a, &b);
    }

    fn elementwise(&mut self) {
        let result = self.result();
        for &operand in self.module.operands(self.id) {
            let slots = self.classes.slots.leaf(operand, 0);
            // A scalar may choose between arrays, or bound them.
            if !slots.is_empty() {
                self.classes.link_each(&slots, &result);
            }
        }
    }

    /// Links operands with the elements of the result, and with each other.
    fn side_by_side(&mut self) {
        let first = self.classes.slots.leaf(self.id, 0);
        let is_sort = matches!(self.module.op(self.id), Op::Sort(_));
        for (number, &operand) in self.module.operands(self.id).iter().enumerate() {
            let slots = self.classes.slots.all(operand);
            let result = self.classes.slots.leaf(self.id, number);
            self.classes.link_each(&slots, &result);
            if is_sort {
                self.classes.link_each(&slots, &first);
            }
        }
    }

    fn reduce(&mut self, reduced: &[i64]) {
        let operands = self.module.operands(self.id);
        let first = operands.first().map(|&id| self.classes.slots.all(id)).unwrap_or_default();
        let kept: Vec<usize> = first
            .iter()
            .zip(0i64..)
            .filter(|(_, dim)| !reduced.contains(dim))
            .map(|(&slot, _)| slot)
            .collect();
        for (number, &operand) in operands.iter().take(operands.len() / 2).enumerate() {
            let slots = self.classes.slots.all(operand);
            self.classes.link_each(&slots, &first);
            let result = self.classes.slots.leaf(self.id, number);
            self.classes.link_each(&kept, &result);
        }
    }

    /// Links groups of dims with one product: dim to dim, or a dim to its factors.
    fn reshape(&mut self) -> Option<()> {
        let (from, to) = (self.array(0)?, self.result());
        self.module.array_shape(self.id)?;
        let sizes = |slots: &[usize], classes: &Classes| -> Option<Vec<(usize, i64)>> {
            let own = |&slot: &usize| Some((slot, *classes.slots.sizes.get(slot)?));
            let all: Vec<(usize, i64)> = slots.iter().map(own).collect::<Option<_>>()?;
            // Dims of size 1 stay as they are, wherever they stand.
            Some(all.into_iter().filter(|&(_, size)| size != 1).collect())
        };
        let (a, b) = (sizes(&from, self.classes)?, sizes(&to, self.classes)?);
        let ones: Vec<usize> = from.iter().chain(&to).copied().collect();
        let ones: Vec<usize> =
            ones.into_iter().filter(|&s| self.classes.slots.sizes.get(s) == Some(&1)).collect();
        self.classes.freeze(&ones);
        if a.iter().chain(&b).any(|&(_, size)| size < 1) {
            return None;
        }
        let (mut a, mut b) = (a.as_slice(), b.as_slice());
        while let (Some((&first_a, rest_a)), Some((&first_b, rest_b))) =
            (a.split_first(), b.split_first())
        {
            (a, b) = (rest_a, rest_b);
            let (mut of_a, mut of_b) = (vec![first_a.0], vec![first_b.0]);
            let (mut product_a, mut product_b) = (first_a.1, first_b.1);
            while product_a != product_b {
                let (rest, group, product) = if product_a < product_b {
                    (&mut a, &mut of_a, &mut product_a)
                } else {
                    (&mut b, &mut of_b, &mut product_b)
                };
                let (&(slot, size), tail) = rest.split_first()?;
                *rest = tail;
                group.push(slot);
                *product = product.checked_mul(size)?;
            }
            self.group(of_a, of_b);
        }
        Some(())
    }

    fn group(&mut self, a: Vec<usize>, b: Vec<usize>) {
        match (a.as_slice(), b.as_slice()) {
            (&[a], &[b]) => self.classes.link(a, b),
            (&[whole], _) => self.classes.product(whole, b),
            (_, &[whole]) => self.classes.product(whole, a),
            _ => {
                self.classes.freeze(&a);
                self.classes.freeze(&b);
            }
        }
    }

    fn concatenate(&mut self, joined: &[i64]) -> Option<()> {
        let result = self.result();
        let is_alone = self.module.operands(self.id).len() == 1;
        for number in 0..self.module.operands(self.id).len() {
            let operand = self.array(number)?;
            for ((&a, &b), dim) in operand.iter().zip(&result).zip(0i64..) {
                if joined.contains(&dim) && !is_alone {
                    self.classes.freeze(&[a, b]);
                } else {
                    self.classes.link(a, b);
                }
            }
        }
        Some(())
    }

    /// Links dims where the op keeps them whole; others keep their sizes.
    fn equal_dims(&mut self, is_whole: &[bool]) -> Option<()> {
        let (from, to) = (self.array(0)?, self.result());
        for ((&a, &b), &is_whole) in from.iter().zip(&to).zip(is_whole) {
            if is_whole {
                self.classes.link(a, b);
            } else {
                self.classes.freeze(&[a, b]);
            }
        }
        Some(())
    }

    /// Links the dims of a whole with those of a part of the same size. A smaller part has a size
    /// of its own.
    fn parts(&mut self, whole: &[usize], part: &[usize]) {
        for (&whole, &part) in whole.iter().zip(part) {
            if self.classes.slots.sizes.get(whole) == self.classes.slots.sizes.get(part) {
                self.classes.link(whole, part);
            }
        }
    }

    fn dot(&mut self, attrs: &DotAttrs) -> Option<()> {
        let (lhs, rhs, result) = (self.array(0)?, self.array(1)?, self.result());
        let mut expected = Vec::new();
        for (&a, &b) in attrs.lhs_batch_dims.iter().zip(&attrs.rhs_batch_dims) {
            self.classes.link(at(&lhs, a)?, at(&rhs, b)?);
            expected.push(at(&lhs, a)?);
        }
        for (&a, &b) in attrs.lhs_contracting_dims.iter().zip(&attrs.rhs_contracting_dims) {
            self.classes.link(at(&lhs, a)?, at(&rhs, b)?);
        }
        let lhs_used = [&attrs.lhs_batch_dims, &attrs.lhs_contracting_dims];
        let rhs_used = [&attrs.rhs_batch_dims, &attrs.rhs_contracting_dims];
        for (slots, used) in [(&lhs, lhs_used), (&rhs, rhs_used)] {
            let is_free = |dim: &i64| used.iter().all(|dims| !dims.contains(dim));
            expected.extend(
                slots.iter().zip(0i64..).filter(|(_, dim)| is_free(dim)).map(|(&slot, _)| slot),
            );
        }
        self.classes.link_each(&expected, &result);
        Some(())
    }

    fn convolution(&mut self, attrs: &ConvolutionAttrs) -> Option<()> {
        let labels = &attrs.dim_labels;
        if attrs.feature_group_count != 1
            || attrs.batch_group_count != 1
            || attrs.sparsity_config.is_some()
        {
            return None;
        }
        let (lhs, rhs, result) = (self.array(0)?, self.array(1)?, self.result());
        self.classes.link(at(&lhs, labels.input_batch)?, at(&result, labels.output_batch)?);
        self.classes.link(at(&lhs, labels.input_feature)?, at(&rhs, labels.kernel_input_feature)?);
        self.classes
            .link(at(&rhs, labels.kernel_output_feature)?, at(&result, labels.output_feature)?);
        let spatial = [
            (&lhs, &labels.input_spatial),
            (&rhs, &labels.kernel_spatial),
            (&result, &labels.output_spatial),
        ];
        for (slots, dims) in spatial {
            for &dim in dims {
                self.classes.freeze(&[at(slots, dim)?]);
            }
        }
        Some(())
    }

    /// Splits the dims of indices from the dim that holds the entries of an index, which keeps its
    /// size.
    fn counted(&mut self, indices: &[usize], vector_dim: i64) -> Vec<usize> {
        if let Some(vector) = at(indices, vector_dim) {
            self.classes.freeze(&[vector]);
        }
        let others = indices.iter().zip(0i64..).filter(|&(_, dim)| dim != vector_dim);
        others.map(|(&slot, _)| slot).collect()
    }

    fn gather(&mut self, attrs: &GatherAttrs) -> Option<()> {
        let (from, indices, result) = (self.array(0)?, self.array(1)?, self.result());
        let counted = self.counted(&indices, attrs.index_vector_dim);
        let is_offset = |dim: &i64| attrs.offset_dims.contains(dim);
        let batch: Vec<usize> =
            result.iter().zip(0i64..).filter(|(_, d)| !is_offset(d)).map(|(&s, _)| s).collect();
        self.classes.link_each(&counted, &batch);
        for (&a, &b) in attrs.operand_batching_dims.iter().zip(&attrs.start_indices_batching_dims) {
            self.classes.link(at(&from, a)?, at(&indices, b)?);
        }
        let gone = [&attrs.collapsed_slice_dims, &attrs.operand_batching_dims];
        let is_kept = |dim: &i64| gone.iter().all(|dims| !dims.contains(dim));
        let window: Vec<usize> =
            from.iter().zip(0i64..).filter(|(_, d)| is_kept(d)).map(|(&s, _)| s).collect();
        let offsets =
            attrs.offset_dims.iter().map(|&dim| at(&result, dim)).collect::<Option<Vec<_>>>()?;
        self.parts(&window, &offsets);
        Some(())
    }

    fn scatter(&mut self, attrs: &ScatterAttrs) -> Option<()> {
        let count = self.module.operands(self.id).len() / 2;
        let indices = self.array(count)?;
        let counted = self.counted(&indices, attrs.index_vector_dim);
        let first = self.array(0)?;
        for (&a, &b) in attrs.input_batching_dims.iter().zip(&attrs.scatter_indices_batching_dims) {
            self.classes.link(at(&first, a)?, at(&indices, b)?);
        }
        let gone = [&attrs.inserted_window_dims, &attrs.input_batching_dims];
        let is_kept = |dim: &i64| gone.iter().all(|dims| !dims.contains(dim));
        for number in 0..count {
            let array = self.array(number)?;
            let update = self.array(count.checked_add(number)?.checked_add(1)?)?;
            self.classes.link_each(&array, &first);
            let result = self.classes.slots.leaf(self.id, number);
            self.classes.link_each(&array, &result);
            let is_window = |dim: &i64| attrs.update_window_dims.contains(dim);
            let (in_window, batch): (Vec<_>, Vec<_>) =
                update.iter().zip(0i64..).partition(|(_, dim)| is_window(dim));
            let batch: Vec<usize> = batch.into_iter().map(|(&slot, _)| slot).collect();
            self.classes.link_each(&batch, &counted);
            let in_window: Vec<usize> = in_window.into_iter().map(|(&slot, _)| slot).collect();
            let window: Vec<usize> =
                array.iter().zip(0i64..).filter(|(_, d)| is_kept(d)).map(|(&s, _)| s).collect();
            self.parts(&window, &in_window);
        }
        Some(())
    }
}

/// Returns the slot of a dim.
fn at(slots: &[usize], dim: i64) -> Option<usize> {
    slots.get(usize::try_from(dim).ok()?).copied()
}
